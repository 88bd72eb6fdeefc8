"""Costs of a derivative: time and memory of each operation, there and back again."""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lantern.core.replay import Replayable
from lantern.debugging.backward_steps import Pass
from lantern.debugging.source_line import Watched, user_line
from lantern.viz.drawing import (
    BACK,
    BACK_LIGHT,
    CODE,
    FAINT,
    INK,
    MONO,
    SIZE,
    SOFT,
    THERE,
    THERE_LIGHT,
    Picture,
    clipped,
    new_figure,
    sheet,
)

__all__ = ["Cost", "OperationCost", "cost"]

_LETTERS = 40  # at most, of an operation and its line
_ROWS = 10  # operations in the picture


class Timed(Watched):
    """A started rule that knows how long its forward step took."""

    __slots__ = ("seconds",)

    def __next__(self) -> Any:
        """The rule's forward step."""
        begin = time.perf_counter()
        value = Replayable.__next__(self)
        self.seconds = time.perf_counter() - begin
        self.line, self.contributions = user_line(), None
        self.forget()
        return value


class Weighed(Watched):
    """A started rule that knows how much memory was in use behind its forward step."""

    __slots__ = ("bytes",)

    def __next__(self) -> Any:
        """The rule's forward step."""
        value = super().__next__()
        self.bytes = tracemalloc.get_traced_memory()[0]
        return value


class OperationCost(NamedTuple):
    """What the calls of one operation on one line took together.

    Attributes:
        name: of the operation.
        line: the program's text there.
        calls: how many there were.
        there: seconds, of all forward steps.
        back: seconds, of all backward steps.

    Example:
        >>> import numpy as np
        >>> picture = cost(lambda x: (x * x * x).sum(), np.ones(1000))
        >>> picture.operations[0].calls in (1, 2)
        True
    """

    name: str
    line: str
    calls: int
    there: float
    back: float


class Cost(Picture):
    """The picture that ``cost`` returns.

    Attributes:
        operations: one ``OperationCost`` for each operation and line, dearest first.
        there: bytes in use behind each operation of the forward pass.
        back: bytes in use behind each operation of the backward pass.
        peak: the largest of these.

    Example:
        >>> import numpy as np
        >>> picture = cost(lambda x: (np.tanh(x) * x).sum(), np.ones(1000))
        >>> picture.peak == max(picture.there + picture.back)
        True
    """

    def __init__(
        self, operations: list[OperationCost], there: list[int], back: list[int]
    ) -> None:
        self.operations, self.there, self.back = operations, there, back
        self.peak = max([*there, *back], default=0)
        super().__init__(lambda: _draw(self), "\n".join(_lines(self)))


def cost(f: Callable[..., Any], *args: Any, argnums: Any = 0, **kwargs: Any) -> Cost:
    """What f and its backward pass cost, operation by operation.

    f is run twice: once to take times, once to weigh the memory that Python and NumPy
    have in use beyond what there was before (that of a GPU is not seen). What values
    keep for the way back grows operation by operation, and is let go in reverse.

    Args:
        f: returns one real number.
        args: its positional arguments.
        argnums: which of them to differentiate: one, or several.
        kwargs: its other arguments.

    Raises:
        ArgumentError: if f is no plain function or an argument is not differentiable.
        NotScalarError: if f's result is not one number.

    Example:
        >>> import numpy as np
        >>> picture = cost(lambda x: (np.tanh(x) * x).sum(), np.ones(1000))
        >>> sorted(x.name for x in picture.operations)
        ['multiply', 'sum', 'tanh']
        >>> len(picture.there), len(picture.back)
        (3, 3)
        >>> 8_000 < picture.peak < 80_000
        True
    """
    operations = _timed(Pass("viz.cost", f, args, kwargs, argnums, Timed))
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        steps = Pass("viz.cost", f, args, kwargs, argnums, Weighed)
        there, back = _weighed(steps)
    finally:
        if started:
            tracemalloc.stop()
    return Cost(operations, [x - before for x in there], [x - before for x in back])


def _steps(steps: Pass) -> Iterator[Any]:
    """Each operation's rule, just before its backward step is taken."""
    try:
        while (op := steps.peek()) is not None:
            rule = None
            if op.path is None:
                rule = getattr(steps.entries[-1], "suspended", None)
            yield rule
            steps.step()
    finally:
        steps.close()


def _timed(steps: Pass) -> list[OperationCost]:
    rules = [rule for x in steps.entries if isinstance(rule := x.suspended, Timed)]
    table: dict[tuple[str, str], OperationCost] = {}
    for rule in rules:
        key = rule.name, rule.line.text
        known = table.get(key, OperationCost(*key, 0, 0.0, 0.0))
        there = known.there + rule.seconds
        table[key] = known._replace(calls=known.calls + 1, there=there)
    begin = 0.0
    key = "", ""  # of no operation
    for rule in _steps(steps):
        if key in table:
            seconds = time.perf_counter() - begin
            table[key] = table[key]._replace(back=table[key].back + seconds)
        key = (rule.name, rule.line.text) if isinstance(rule, Timed) else ("", "")
        begin = time.perf_counter()
    if key in table:
        seconds = time.perf_counter() - begin
        table[key] = table[key]._replace(back=table[key].back + seconds)
    return sorted(table.values(), key=lambda x: -x.there - x.back)


def _weighed(steps: Pass) -> tuple[list[int], list[int]]:
    there = [
        x.suspended.bytes for x in steps.entries if isinstance(x.suspended, Weighed)
    ]
    back: list[int] = []
    was_operation = False
    for rule in _steps(steps):
        if was_operation:
            back.append(tracemalloc.get_traced_memory()[0])
        was_operation = isinstance(rule, Weighed)
    if was_operation:
        back.append(tracemalloc.get_traced_memory()[0])
    return there, back


def _amount(x: float, units: list[str], factor: float) -> str:
    """A quantity with the unit that suits it."""
    for unit in units:
        if x < factor or unit == units[-1]:
            return f"{x:.3g} {unit}"
        x /= factor
    raise AssertionError


def seconds_text(x: float) -> str:
    """A time with its unit."""
    return _amount(1e6 * x, ["µs", "ms", "s"], 1000)


def bytes_text(x: float) -> str:
    """A size with its unit."""
    return _amount(x, ["B", "kB", "MB", "GB"], 1000)


def _label(x: OperationCost) -> str:
    times = f" ×{x.calls}" if x.calls > 1 else ""
    return clipped(f"{x.name}{times}: {x.line}" if x.line else x.name + times, _LETTERS)


def _lines(picture: Cost) -> Iterator[str]:
    yield f"{'there':>9} {'back':>9}  operation"
    for x in picture.operations[:_ROWS]:
        yield f"{seconds_text(x.there):>9} {seconds_text(x.back):>9}  {_label(x)}"
    yield f"at most {bytes_text(picture.peak)} in use"


def _draw(picture: Cost) -> Any:
    if not picture.operations:
        figure, axes = sheet(4.0, 0.6)
        words = "no operation depends on the argument"
        axes.text(2.0, 0.3, words, ha="center", va="center", color=SOFT)
        return figure
    shown = picture.operations[:_ROWS]
    labels = [_label(x) for x in shown]
    left = max([*map(len, labels), 9]) * MONO * 0.9 + 0.3
    bars, width = 0.28 * len(shown), max(8.0, left + 5.0)
    height = bars + 3.55
    figure = new_figure(width, height)
    span = (width - left - 1.0) / width
    memory = figure.add_axes((left / width, (bars + 1.55) / height, span, 1.6 / height))
    times = figure.add_axes((left / width, 0.6 / height, span, bars / height))
    _draw_memory(memory, picture)
    _draw_times(times, shown, labels)
    return figure


def _draw_memory(axes: Any, picture: Cost) -> None:
    there, back = [0, *picture.there], picture.back
    unit = bytes_text(picture.peak).split()[1]
    scale = 1000.0 ** ["B", "kB", "MB", "GB"].index(unit)
    turn, end = len(picture.there), len(picture.there) + len(back)
    up = [x / scale for x in there]
    down = [up[-1], *(x / scale for x in back)]
    for xs, ys, color, light in (
        (range(turn + 1), up, THERE, THERE_LIGHT),
        (range(turn, end + 1), down, BACK, BACK_LIGHT),
    ):
        axes.fill_between(xs, ys, color=light, linewidth=0)
        axes.plot(xs, ys, color=color, linewidth=1.6)
    top = max(picture.peak / scale, 1e-9)
    axes.axvline(turn, color=SOFT, linestyle=(0, (1, 2)), linewidth=1)
    axes.set(xlim=(0, max(end, 1)), ylim=(0, 1.12 * top), ylabel=f"memory, {unit}")
    style = {"va": "bottom", "weight": "bold"}
    where = {"transform": axes.get_xaxis_transform()}
    axes.text(turn / 2, 1.02, "there", color=THERE, ha="center", **style, **where)
    middle = (turn + end) / 2
    axes.text(middle, 1.02, "back again", color=BACK, ha="center", **style, **where)
    axes.set_xlabel("operations, in the order in which they run")
    axes.locator_params(axis="y", nbins=4)
    axes.locator_params(axis="x", integer=True)


def _draw_times(axes: Any, shown: list[OperationCost], labels: list[str]) -> None:
    unit, scale = "µs", 1e6
    longest = max((x.there + x.back for x in shown), default=0.0)
    if longest >= 1e-3:
        unit, scale = "ms", 1e3
    for row, x in enumerate(shown):
        there, back = scale * x.there, scale * x.back
        axes.barh(row, there, color=THERE, height=0.62)
        axes.barh(row, back, left=there, color=BACK, height=0.62)
        place = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
        total = seconds_text(x.there + x.back)
        axes.annotate(total, (there + back, row), fontsize=SIZE - 1.5, **place)
    axes.set_yticks(range(len(shown)), labels, color=INK, **CODE)
    axes.tick_params(axis="y", length=0, labelsize=SIZE * 0.9)
    axes.set(ylim=(len(shown) - 0.5, -0.5), xlim=(0, scale * longest * 1.04 or 1.0))
    axes.set_xlabel(f"time, {unit}: there and back")
    axes.grid(axis="x", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
