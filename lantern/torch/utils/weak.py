"""Dictionaries and references that do not keep tensors alive, by identity."""

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(weakref.ref[Any]):
    """A reference that equals another of the same object, not of an equal one.

    Example:
        >>> import lantern.torch as torch
        >>> x, y = torch.ones(2), torch.ones(2)
        >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(y)
        (True, False)
    """

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, key: Any, callback: Any = None) -> "WeakIdRef":
        """A reference; the callback is called when the object is gone."""
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]  # typeshed has none

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if not isinstance(other, WeakIdRef) or mine is None:
            return self is other
        return mine is other()


TensorWeakRef = WeakIdRef


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are objects, forgotten when nobody else has them.

    Args:
        dict: what it holds at first.
        ref_type: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2)
        >>> known = WeakIdKeyDictionary({x: "ones"})
        >>> known[x], len(known)
        ('ones', 1)
        >>> del x
        >>> len(known)
        0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.update(dict or {})

    def __setitem__(self, key: Any, value: Any) -> None:
        data = self.data
        self.data[WeakIdRef(key, lambda ref: data.pop(ref, None))] = value

    def __getitem__(self, key: Any) -> Any:
        return self.data[WeakIdRef(key)]

    def __delitem__(self, key: Any) -> None:
        del self.data[WeakIdRef(key)]

    def __iter__(self) -> Iterator[Any]:
        return (key for ref in list(self.data) if (key := ref()) is not None)

    def __len__(self) -> int:
        return len(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary
