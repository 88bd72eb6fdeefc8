"""Constants of operations that run later: each as it was when it was met."""

import operator
from typing import Any
from weakref import WeakValueDictionary, ref

from lantern.core.residuals import copied, is_promised, unchanged
from lantern.core.value import Value
from lantern.tensor.backend.numpy_namespace import buffers

__all__ = ["IMMUTABLE", "Constants", "Same", "is_array", "plain_index"]

IMMUTABLE = frozenset({int, bool, complex, str, type(None), type(...)})

_SMALL = 4096  # bytes: what is found sooner by its content than by its identity
_NOTHING: tuple[Any, Any] = (lambda: None, None)


class Same:
    """In a key: an array, by its identity."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __hash__(self) -> int:
        return id(self.array)

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and self.array is other.array


class Constants:
    """Copies of arrays that their owners may change."""

    def __init__(self) -> None:
        self.large: dict[int, tuple[Any, Any]] = {}
        self.small: Any = WeakValueDictionary()

    def now(self, x: Any) -> Any:
        """An array as it is now: a copy, the same one while nobody changes it."""
        if isinstance(x, Value):
            return x.frozen() if x.changes else x
        if type(x) not in buffers:
            return copied(x)
        if is_promised(x):
            return x
        if x.nbytes <= _SMALL:
            key = (x.shape, x.dtype, x.tobytes())
            return self.small.setdefault(key, x.copy())
        large, name = self.large, id(x)
        original, copy = large.get(name, _NOTHING)
        if original() is not x or not unchanged(x, copy):
            copy = x.copy()
            large[name] = ref(x, lambda _: large.pop(name, None)), copy
        return copy


def is_array(x: Any) -> bool:
    """Whether x is an array of numbers, or a scalar of NumPy, tracked or not."""
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    return kind in ("f", "c", "i", "u", "b") and not isinstance(x, type)


def plain_index(part: Any) -> Any:
    """A part of an index in plain integers."""
    if type(part) is not slice:
        return part
    ends = (part.start, part.stop, part.step)
    return slice(*[None if end is None else operator.index(end) for end in ends])
