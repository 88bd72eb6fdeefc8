"""Times of a statement, as ``torch.utils.benchmark`` measures them."""

import statistics
import textwrap
import timeit
from typing import Any

from lantern import torch

__all__ = ["Compare", "Measurement", "Timer"]


class Measurement:
    """The times of several runs of a statement.

    Attributes:
        times: seconds for each repetition, divided by the number of runs in it.

    Example:
        >>> import lantern.torch as torch
        >>> found = torch.utils.benchmark.Timer("abs(-1)").timeit(100)
        >>> found.mean > 0, found.number_per_run
        (True, 100)
    """

    def __init__(self, number: int, seconds: list[float], what: str) -> None:
        self.number_per_run, self.raw_times, self.what = number, seconds, what
        self.times = [s / number for s in seconds]

    @property
    def mean(self) -> float:
        """The mean time of a run."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median time of a run."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The distance of the quartiles."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    def __repr__(self) -> str:
        units = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
        unit = next((u for u, size in units.items() if self.median >= size), "us")
        count = len(self.times)
        text = f"{self.what}\n  {self.median / units[unit]:.2f} {unit}\n"
        return text + f"  {count} measurement(s), {self.number_per_run} run(s) each"


class Timer:
    """A statement that can be timed.

    Args:
        stmt: the statement.
        setup: what comes first, once.
        timer: the clock.
        globals: the names that it can use, besides ``torch``.
        label: what it is called.
        sub_label: more of its name.
        description: more still.
        options: have no effect.

    Example:
        >>> import lantern.torch as torch
        >>> timer = torch.utils.benchmark.Timer("x + 1", globals={"x": 1})
        >>> timer.timeit(10).number_per_run
        10
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        timer: Any = timeit.default_timer,
        globals: Any = None,
        label: Any = None,
        sub_label: Any = None,
        description: Any = None,
        **options: Any,
    ) -> None:
        stmt, setup = (textwrap.dedent(code).strip() for code in (stmt, setup))
        names = {"torch": torch, **(globals or {})}
        self.inner = timeit.Timer(stmt, setup, timer, names)
        words = (label or stmt, sub_label, description)
        self.what = ": ".join(word for word in words if word)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """The time of a number of runs."""
        self.inner.timeit(max(int(number // 100), 2))
        return Measurement(number, [self.inner.timeit(number)], self.what)

    def blocked_autorange(
        self, callback: Any = None, min_run_time: float = 0.2
    ) -> Measurement:
        """The times of as many runs as a fraction of a second allows."""
        number = 1
        while self.inner.timeit(number) < min_run_time / 100:
            number *= 10
        seconds: list[float] = []
        while sum(seconds) < min_run_time or len(seconds) < 2:
            seconds.append(self.inner.timeit(number))
        return Measurement(number, seconds, self.what)

    adaptive_autorange = blocked_autorange


class Compare:
    """Measurements, printed below one another.

    Example:
        >>> import lantern.torch as torch
        >>> found = torch.utils.benchmark.Timer("abs(-1)", label="abs").timeit(10)
        >>> torch.utils.benchmark.Compare([found]).print()
        abs
          ... us
          1 measurement(s), 10 run(s) each
    """

    def __init__(self, results: Any) -> None:
        self.results = list(results)

    def trim_significant_figures(self) -> None:
        """Has no effect."""

    colorize = highlight_warnings = trim_significant_figures

    def print(self) -> None:
        """Print them."""
        print(self)

    def __str__(self) -> str:
        return "\n".join(map(repr, self.results))
