"""A report of what was run together: group by group, and as a picture."""

import io
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from lantern.errors import MissingExtraError
from lantern.files import write_file

__all__ = ["Log", "Results", "Run"]

# After Okabe and Ito: everyone can tell them apart.
_COLORS = ("#0072b2", "#c25000", "#007a54", "#b5548a", "#8a6d00", "#3f8fbf", "#555555")


class Run(NamedTuple):
    """One group that was run.

    Attributes:
        name: of the batched function.
        size: how many calls it answered.
        depth: how many calls lay behind each of them, on average.
        calls: how many of them each example made.
    """

    name: str
    size: int
    depth: float
    calls: Counter[int]


class Log:
    """All groups of a batch, in the order in which they were run."""

    def __init__(self) -> None:
        self.groups: list[Any] = []

    def record(self, group: Any) -> None:
        """Take one more group."""
        indices = [call.body.index for call in group.calls]
        self.groups.append((group.name, group.size, group.depth, indices))

    def runs(self) -> list[Run]:
        """The groups, as records."""
        return [Run(n, s, d, Counter(indices)) for n, s, d, indices in self.groups]


class Results(list[Any]):
    """The results of ``lantern.batch``, one for each example, and how they came about.

    Attributes:
        runs: the groups of calls, in the order in which they were run.
    """

    def __init__(self, results: Any = (), log: Log | None = None) -> None:
        super().__init__(results)
        self._log = Log() if log is None else log

    @property
    def runs(self) -> list[Run]:
        """The groups of calls, in the order in which they were run."""
        return self._log.runs()

    def report(self) -> str:
        """What was run together: for each function its calls, groups and their sizes.

        "Padding avoided" says how many calls more it would have been, had each example
        been filled up to as many calls as the longest one makes.
        """
        by_name: dict[str, list[Run]] = defaultdict(list)
        for run in self.runs:
            by_name[run.name].append(run)
        lines = [
            (
                f"{'function':<16}{'calls':>8}{'groups':>8}{'smallest':>10}{'mean':>8}"
                f"{'largest':>9}{'padding avoided':>17}"
            )
        ]
        for name, runs in by_name.items():
            sizes = [run.size for run in runs]
            calls = sum(sizes)
            each: Counter[int] = sum((run.calls for run in runs), Counter())
            padding = len(self) * max(each.values()) - calls
            lines.append(
                f"{name:<16}{calls:>8}{len(runs):>8}{min(sizes):>10}"
                f"{calls / len(runs):>8.1f}{max(sizes):>9}{padding:>17}"
            )
        return "\n".join(lines)

    def plot(self, path: str | Path) -> None:
        """Draw the size of each group over time, a colour for each function.

        Args:
            path: where to write the picture.

        Raises:
            MissingExtraError: if matplotlib is not installed.
        """
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingExtraError(
                "plot: matplotlib is not installed. Install it with pip install "
                "matplotlib."
            ) from None
        figure = Figure(figsize=(8, 4), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for number, name in enumerate(dict.fromkeys(run.name for run in self.runs)):
            places = [i for i, run in enumerate(self.runs, 1) if run.name == name]
            sizes = [run.size for run in self.runs if run.name == name]
            color = _COLORS[number % len(_COLORS)]
            axes.bar(places, sizes, color=color, label=name, width=0.9)
        axes.set_xlabel("group of calls, in the order of their running")
        axes.set_ylabel("calls in the group")
        axes.locator_params(integer=True)
        axes.grid(axis="y", color="#e6e6e6")
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0)
        axes.legend(frameon=False)
        out, path = io.BytesIO(), Path(path)
        path = path if path.suffix else path.with_suffix(".png")
        figure.savefig(out, format=path.suffix[1:], dpi=150)
        write_file("plot", path, out.getvalue())
