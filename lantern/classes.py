"""Which class tracks a primal."""

from collections.abc import Callable
from typing import Any

from lantern.errors import ArgumentError
from lantern.namespace import is_array_class
from lantern.value import Value

__all__ = ["refuse", "register_class", "value_class"]

ValueClass = type[Value] | Callable[[type], type[Value]]

_registered: dict[type | str, ValueClass] = {}
_classes: dict[type, type[Value]] = {}  # those that were found


def register_class(kind: type | str, cls: ValueClass) -> None:
    """Let a class, or what a function makes of each type, track a type or a module."""
    _registered[kind] = cls
    _classes.clear()


def refuse(kind: type) -> type[Value]:
    """Arrays whose arithmetic is not NumPy's, or not known, have no class here."""
    raise ArgumentError(
        f"lantern: an array of {kind.__module__}.{kind.__qualname__} cannot be "
        f"tracked, nor meet tracked values. Convert it to an array of NumPy: "
        f"numpy.array(x)."
    )


def value_class(primal: Any) -> type[Value]:
    """The class that tracks a primal; of a tracked one, its own class."""
    kind = type(primal)
    if kind not in _classes:
        own = isinstance(primal, Value) and kind not in _registered
        _classes[kind] = kind if own else _class_for(kind)
    return _classes[kind]


def _class_for(kind: type) -> type[Value]:
    names: list[Any] = []
    for cls in kind.__mro__:
        names += cls, cls.__module__, cls.__module__.partition(".")[0]
    found = next(_registered[name] for name in names if name in _registered)
    if found is _registered[object] and is_array_class(kind):
        refuse(kind)
    return found if isinstance(found, type) else found(kind)
