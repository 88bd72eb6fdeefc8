"""The flow of gradients through layers: where they vanish, explode or are nan."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from lantern.core.namespace import namespace
from lantern.core.tree import tree_paths
from lantern.core.value import base
from lantern.errors import ArgumentError
from lantern.tensor.backend.device import to_device
from lantern.viz.drawing import (
    BACK,
    CODE,
    FAINT,
    INK,
    MONO,
    SIZE,
    SOFT,
    THERE,
    Picture,
    new_figure,
    squeezed,
)

__all__ = ["Flow", "Spread", "gradient_flow"]

LIGHT = "#A9CFE6"
_LETTERS = 28  # at most, of a name
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Spread(NamedTuple):
    """How large the elements of one gradient are.

    Attributes:
        name: the keys that lead to it.
        shape: of the gradient.
        size: the root of the mean square of its finite elements.
        low, high: between them lie nine tenths of the finite elements that are not
            zero, by absolute value; nan if there is none.
        zeros: which part of the elements is zero.
        strange: how many elements are nan or infinite.

    Example:
        >>> import numpy as np
        >>> spread = gradient_flow(np.array([0.0, 4.0])).spreads[0]
        >>> spread.zeros, spread.strange
        (0.5, 0)
    """

    name: str
    shape: tuple[int, ...]
    size: float
    low: float
    high: float
    zeros: float
    strange: int

    @property
    def remark(self) -> str:
        """What should be noticed, in a few words."""
        if self.strange:
            return f"{self.strange} not finite"
        if self.zeros == 1.0:
            return "all zero"
        return f"{self.zeros:.0%} zero" if self.zeros >= 0.005 else ""


class Flow(Picture):
    """The picture that ``gradient_flow`` returns.

    Attributes:
        spreads: one ``Spread`` for each gradient.

    Example:
        >>> import numpy as np
        >>> picture = gradient_flow({"w": np.array([3.0, 4.0]), "b": np.zeros(2)})
        >>> [spread.name for spread in picture.spreads]
        ['w', 'b']
    """

    def __init__(self, spreads: list[Spread]) -> None:
        self.spreads = spreads
        super().__init__(lambda: _draw(spreads), "\n".join(_lines(spreads)))


def gradient_flow(gradients: Any) -> Flow:
    """How large the gradients of a model are, layer by layer.

    A dot is the root mean square of a gradient's elements, a bar holds nine tenths of
    them (zeros aside). Sizes are on a logarithmic scale: what shrinks from layer to
    layer vanishes, what grows explodes.

    Args:
        gradients: any structure of arrays and numbers, as ``grad`` returns it.

    Raises:
        ArgumentError: if there is nothing in it.

    Example:
        >>> import numpy as np
        >>> print(gradient_flow({"w": np.array([3.0, 4.0]), "b": np.zeros(2)}))
        w  3.536     ████████████████████
        b  0                              all zero
        >>> gradient_flow({"w": np.array([3.0, 4.0])}).spreads[0].high
        3.95
    """
    spreads = [_spread(path, leaf) for path, leaf in tree_paths(gradients)]
    if not spreads:
        raise ArgumentError(
            "gradient_flow: there is no gradient in the structure. Give it what grad "
            "has returned."
        )
    return Flow(spreads)


def _spread(path: tuple[Any, ...], gradient: Any) -> Spread:
    x = base(to_device(gradient, "cpu"))
    name = "/".join(map(str, path)) or "gradient"
    shape = tuple(getattr(x, "shape", ()))
    if not shape:
        size = float(abs(x))
        strange = not math.isfinite(size)
        size = math.nan if strange else size
        bound = size if size > 0 else math.nan
        return Spread(name, shape, size, bound, bound, float(size == 0), strange)
    xp = namespace(x)
    flat = abs(x).ravel()
    finite = flat[xp.isfinite(flat)]
    some = finite[finite > 0]
    low, high = (math.nan, math.nan)
    if some.size:
        low, high = (float(xp.quantile(some, q)) for q in (0.05, 0.95))
    size = _size(xp, finite)
    zeros = float((flat == 0).mean()) if flat.size else 1.0
    return Spread(name, shape, size, low, high, zeros, int(flat.size - finite.size))


def _size(xp: Any, finite: Any) -> float:
    """The root mean square, which must not overflow."""
    largest = float(finite.max()) if finite.size else math.nan
    if not largest > 0:
        return largest
    return largest * float(xp.sqrt(xp.mean((finite / largest) ** 2)))


def _exponents(spreads: list[Spread]) -> tuple[float, float]:
    """The powers of ten between which everything lies."""
    ends = [x for s in spreads for x in (s.size, s.low, s.high) if x > 0]
    if not ends:
        return -1.0, 0.0
    low, high = math.log10(min(ends)), math.log10(max(ends))
    room = max(0.15, 0.06 * (high - low))
    low, high = low - room, high + room
    if math.floor(high) - math.ceil(low) < 1:  # less than two powers of ten
        low, high = math.floor(low), math.ceil(high)
    return low, high


def _lines(spreads: list[Spread]) -> Iterator[str]:
    low, high = _exponents(spreads)
    width = max(len(squeezed(s.name, _LETTERS)) for s in spreads)
    for s in spreads:
        part = (math.log10(s.size) - low) / (high - low) if s.size > 0 else 0.0
        single = len(spreads) == 1 or sum(x.size > 0 for x in spreads) == 1
        bar = "█" * (20 if single and s.size > 0 else round(20 * part))
        name = f"{squeezed(s.name, _LETTERS):<{width}}"
        yield f"{name}  {s.size:<9.4g} {bar:<20} {s.remark}".rstrip()


def _draw(spreads: list[Spread]) -> Any:
    names = [squeezed(s.name, _LETTERS) for s in spreads]
    left = max(map(len, names)) * MONO + 0.35
    right = 1.15 if any(s.remark for s in spreads) else 0.3
    width, height = max(7.0, left + right + 4.5), 0.3 * len(spreads) + 0.96
    figure = new_figure(width, height)
    area = (left / width, 0.8 / height, (width - left - right) / width)
    axes = figure.add_axes((*area, 0.3 * len(spreads) / height))
    low, high = _exponents(spreads)
    # The axis is of exponents: matplotlib's logarithmic one ends before floats do.
    axes.set(xlim=(low, high), ylim=(len(spreads) - 0.4, -0.6))
    ticks = range(math.ceil(low), math.floor(high) + 1)
    ticks = ticks[:: len(ticks) // 9 + 1]
    axes.set_xticks(ticks, [f"10{str(tick).translate(_RAISED)}" for tick in ticks])
    for row, s in enumerate(spreads):
        axes.axhline(row, color=FAINT, linewidth=0.6, zorder=0)
        if s.low > 0:
            bar = {"color": LIGHT, "linewidth": 7, "zorder": 1}
            ends = [math.log10(s.low), math.log10(s.high)]
            axes.plot(ends, [row, row], solid_capstyle="round", **bar)
        if s.size > 0:
            color = BACK if s.strange else THERE
            axes.plot([math.log10(s.size)], [row], "o", color=color, markersize=6)
        color = BACK if s.strange or s.zeros == 1.0 else SOFT
        place = {"xy": (1, row), "xycoords": ("axes fraction", "data")}
        offset = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
        axes.annotate(s.remark, color=color, fontsize=SIZE - 1, **place, **offset)
    axes.set_yticks(range(len(spreads)), names, color=INK, **CODE)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(
        "absolute value of the gradient's elements, logarithmic\n"
        "dot: root of the mean square · bar: nine tenths of them"
    )
    return figure
