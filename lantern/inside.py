"""What is inside of a value: its derivatives, and at last something plain."""

from collections.abc import Iterator
from typing import Any

from lantern.namespace import namespace
from lantern.saving import copied
from lantern.value import UNTRACKED, Level, Value, base, is_tracked

__all__ = ["detached", "levels_of", "plain", "read_only"]


def levels_of(x: Any) -> Iterator[Level]:
    """The derivatives that track a value, innermost first."""
    while isinstance(x, Value):
        if x.prompt is not UNTRACKED and x.prompt.is_derivative:
            yield x.prompt
        x = x.inside


def plain(x: Any) -> Any:
    """As ``base``; of a value that stands for many examples all of them."""
    while isinstance(x, Value):
        x = x.inside
    return x


def detached(x: Any) -> Any:
    """A value as a constant, in memory that nobody else writes to."""
    if not is_tracked(x):
        return base(x)
    x = base(x)
    if not isinstance(x, Value):
        return copied(x)
    batched: Any = x
    return batched.detached()


def read_only(x: Any) -> Any:
    """A view that cannot be written to, for others may hold the same buffer."""
    if not getattr(x, "shape", ()) or isinstance(x, Value):
        return x
    try:
        view = x.view()
        view.flags.writeable = False
    except AttributeError:  # arrays of other libraries have no such flag
        return namespace(x).array(x)
    return view
