"""Residuals: of an array that its owner may change later, a rule keeps a copy.

A constant operand waits in a rule's frame until the backward pass, and the array is the
user's. So the rule gets a copy, and a derivative copies a large array only once, as
long as its bytes stay the same. What is kept as it is: an array that is marked
read-only together with all that it is a view of. That mark is its owner's promise.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any
from weakref import ref

from lantern.core.tree import tree_map

__all__ = [
    "Mutable",
    "changed",
    "copied",
    "is_array",
    "is_ours",
    "is_promised",
    "keep",
    "keep_as_it_is",
    "mark",
    "owned",
    "owners",
    "register_mutable",
    "residual",
    "secured",
    "unchanged",
    "waits",
]

# Up to so many bytes, to copy takes less time than to compare.
_SMALL = 4096
_NOTHING = (lambda: None, lambda: None)


class Mutable:
    """What can be done with the values of a type that their owner may change.

    Attributes:
        copy: makes a copy.
        same: whether a value has the bytes of an earlier copy; None if it takes too
            long to find out, as on a GPU.
    """

    __slots__ = ("copy", "same")

    def __init__(
        self, copy: Callable[[Any], Any], same: Callable[[Any, Any], bool] | None
    ) -> None:
        self.copy, self.same = copy, same


# For each type that was met; None: its values never change.
_types: dict[type, Mutable | None] = {}


def register_mutable(
    kind: type,
    copy: Callable[[Any], Any],
    same: Callable[[Any, Any], bool] | None = None,
) -> None:
    """Let derivatives keep copies of the values of a type and of its subclasses."""
    _types[kind] = Mutable(copy, same)


register_mutable(list, list.copy)


def _mutable(kind: type) -> Mutable | None:
    if kind not in _types:
        known = (_types[cls] for cls in kind.__mro__ if cls in _types)
        _types[kind] = next(known, None)
    return _types[kind]


def copied(x: Any) -> Any:
    """A copy of a plain value that its owner may change; any other value itself."""
    kind = type(x)
    mutable = _types[kind] if kind in _types else _mutable(kind)
    return x if mutable is None else mutable.copy(x)


def unchanged(x: Any, copy: Any) -> bool:
    """Whether a value has the bytes of an earlier copy, and that is soon found out."""
    mutable = _mutable(type(x))
    return mutable is not None and mutable.same is not None and mutable.same(x, copy)


def mark(x: Any, keep: Callable[[Any], Any]) -> Any:
    """What tells later whether an array has changed; None for one that will not.

    Args:
        x: the array.
        keep: makes a copy; or returns x itself, if it is promised not to change.
    """
    mutable = _mutable(type(x))
    if mutable is not None and mutable.same is not None and x.nbytes <= _SMALL:
        return None if is_promised(x) else x.tobytes()
    copy = keep(x)
    return None if copy is x else copy


def changed(x: Any, mark: Any) -> bool:
    """Whether an array has other bytes than when it was marked; elements, on a GPU."""
    if type(mark) is bytes:
        return bool(x.tobytes() != mark)
    if x.shape != mark.shape or x.dtype != mark.dtype:
        return True
    mutable = _mutable(type(x))
    if mutable is None or mutable.same is None:
        same = (x == mark) | ((x != x) & (mark != mark))  # nan is nan
        return not bool(same.all())
    return not mutable.same(x, mark) and bool(x.tobytes() != mark.tobytes())


def is_array(x: Any) -> bool:
    """Whether a value is an array, which its owner may change."""
    kind = type(x)
    if kind not in _types:
        _mutable(kind)
    return _types[kind] is not None and hasattr(kind, "dtype")


def waits(level: Any) -> bool:
    """Whether the rules of a derivative wait, and so keep what they need."""
    return type(level).keep is not keep_as_it_is


def owned(x: Any, taken: set[int]) -> Any:
    """An array that nobody else holds: a copy of a view, or of one that is taken.

    Args:
        x: anything; a value is left as it is.
        taken: what is known to be somebody's, by identity; the result is added.
    """
    flags = getattr(x, "flags", None)
    if flags is not None and (not flags.owndata or id(x) in taken):
        x = copied(x)
    taken.add(id(x))
    return x


def residual(level: Any, x: Any) -> Any:
    """A constant, operand or static, as a rule of a derivative may keep it."""
    kind = type(x)
    mutable = _types[kind] if kind in _types else _mutable(kind)
    return x if mutable is None else level.keep(mutable, x)


def keep(level: Any, mutable: Mutable, x: Any) -> Any:
    """A constant that its owner may change, as rules that wait may keep it."""
    if mutable.same is None or x.nbytes <= _SMALL:
        return mutable.copy(x)
    if is_promised(x):
        return x
    known = level.kept
    original, copy = (found() for found in known.get(id(x), _NOTHING))
    if original is not x or copy is None or not mutable.same(x, copy):
        copy = mutable.copy(x)
        copy.setflags(write=False)
        known[id(x)] = ref(x), ref(copy)
    return copy


def keep_as_it_is(level: Any, mutable: Mutable, x: Any) -> Any:
    """A constant itself, for rules that do not wait."""
    return x


def is_promised(x: Any) -> bool:
    """Whether an array of NumPy is read-only, with all that it is a view of."""
    while x is not None:
        flags = getattr(x, "flags", None)
        if flags is None or getattr(flags, "writeable", True):
            return type(x) is bytes
        x = x.base
    return True


def secured(
    tree: Any, keep: Callable[[Any], Any] = copied, given: Iterable[Any] = ()
) -> Any:
    """What a user's function hands over, with copies of the arrays in it.

    Args:
        tree: any structure.
        keep: makes a copy.
        given: arrays that nobody writes to: they, and read-only views of them, are
            left as they are.
    """
    ours = owners(given)
    return tree_map(lambda x: x if is_ours(x, ours) else keep(x), tree)


def owners(arrays: Iterable[Any]) -> set[int]:
    """The identities of arrays, and of the arrays that they are views of."""
    found = set()
    for x in arrays:
        while x is not None:
            found.add(id(x))
            x = getattr(x, "base", None)
    return found


def is_ours(x: Any, ours: Collection[int]) -> bool:
    """Whether an array is one of ours, or a read-only view of one."""
    if id(x) in ours:
        return True
    if getattr(getattr(x, "flags", None), "writeable", True):
        return False
    while x is not None and id(x) not in ours:
        x = getattr(x, "base", None)
    return x is not None
