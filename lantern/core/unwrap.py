"""Layers of a value: its derivatives, and at last something plain."""

from collections.abc import Iterator
from gc import get_referents
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.residuals import copied
from lantern.core.tree import tree_map
from lantern.core.value import UNTRACKED, Level, Value, base, is_tracked

__all__ = [
    "detached",
    "frozen",
    "holds",
    "levels_of",
    "like_original",
    "plain",
    "read_only",
    "strip",
]


def levels_of(x: Any) -> Iterator[Level]:
    """The derivatives that track a value, innermost first."""
    while isinstance(x, Value):
        if x.level is not UNTRACKED and x.level.is_derivative:
            yield x.level
        x = x.inside


_MOST_OBJECTS = 10_000  # that are looked at in one result
_NOT_CONTENTS = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, Level)


def holds(x: Any, level: Level) -> bool:
    """Whether something that is no value holds one of a derivative, however deep.

    It may be an array of objects, or of any class: xarray's keep their data in slots.
    """
    todo, seen = [x], {id(x)}
    for other in todo:
        while isinstance(other, Value):
            if other.level is level:
                return True
            other = other.inside
        if getattr(getattr(other, "dtype", None), "kind", "") == "O":
            contents = list(getattr(other, "flat", ()))  # the collector sees none
        else:
            contents = []
        for part in (*contents, *get_referents(other)):
            if id(part) not in seen and not isinstance(part, _NOT_CONTENTS):
                seen.add(id(part))
                todo.append(part)
        if len(todo) > _MOST_OBJECTS:
            return False
    return False


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


def every_example(x: Any) -> Any:
    """The plain array inside of a value; of all examples, where it is mapped over."""
    x = base(x)
    while isinstance(x, Value):
        mapped: Any = x
        x = base(mapped.stacked)
    return x


def like_original(original: Any, z: Any) -> Any:
    """What a transform gives for an argument or a result, under its names."""
    return original.like_this(z) if isinstance(original, Value) else z


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


def frozen(tree: Any) -> Any:
    """A structure like ``tree`` with its buffers as the tensors that they are now."""
    return tree_map(lambda x: x.frozen() if isinstance(x, Value) else x, tree)


def strip(tree: Any, level: Level, fresh: bool = False) -> Any:
    """A structure like ``tree`` with the values of a derivative made plain.

    Where rules will need what the values hold (``fresh``), copies are returned.
    """

    def plain(leaf: Any) -> Any:
        if not isinstance(leaf, Value) or leaf.level is not level:
            return leaf
        return leaf.like_this(copied(leaf.primal) if fresh else leaf.primal)

    return tree_map(plain, tree)
