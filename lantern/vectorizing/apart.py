"""The examples of a ``vmap`` by themselves, and together again.

A program that computes with one example after another takes values apart and puts the
results together. To a derivative inside the ``vmap`` both are linear operations, each
the transpose of the other; what it tracks stays tracked.
"""

from collections.abc import Sequence
from typing import Any

from lantern.core.value import Rule, Value
from lantern.op import linear
from lantern.tensor.ops.concat_stack import stack
from lantern.vectorizing.batched import Batched, Examples

__all__ = ["apart", "together"]


def apart(x: Any, examples: Examples) -> Sequence[Any]:
    """A value of each example, without the level of the examples.

    Args:
        x: an array or a value, tracked by levels inside or outside of this one.
        examples: the level.
    """
    if examples.owns(x):
        count = range(examples.size)
        return tuple(x.stacked[i] if x.mapped else x.stacked for i in count)
    if _is_inside(x, examples):
        parts: Sequence[Any] = _apart(x, examples=examples)
        return parts
    return (x,) * examples.size


def together(parts: Sequence[Any], examples: Examples) -> Any:
    """The values of all examples as one, of the level of the examples."""
    if any(_is_inside(x, examples) for x in parts):
        return _together(*parts, examples=examples)
    return Batched(stack(parts), examples)


def _is_inside(x: Any, examples: Examples) -> bool:
    return isinstance(x, Value) and x.level.depth > examples.depth


@linear
def _apart(x: Any, /, examples: Examples) -> Rule:
    """The examples of a value by themselves.

    Shapes:
        x: (...), of all examples; each result: (...)

    Rule:
        x_bar is that of each example
    """
    z_bars = yield (apart(x, examples), x := None)[0]
    yield together(z_bars, examples)


@linear
def _together(*parts: Any, examples: Examples) -> Rule:
    """The values of all examples as one.

    Shapes:
        each of parts: (...); result: (...), of all examples

    Rule:
        part_bar = z_bar, of the part's example
    """
    z_bar = yield (together(parts, examples), parts := ())[0]
    for part_bar in apart(z_bar, examples):  # noqa: UP028  # it is sent to
        yield part_bar
