"""Classes of tracked values, by what they track."""

from collections.abc import Callable
from typing import Any

from lantern.core.namespace import tables
from lantern.core.value import Value
from lantern.errors import ArgumentError

__all__ = ["refuse", "register_class", "value_class"]

ValueClass = type[Value] | Callable[[type], type[Value]]

_registered: dict[type | str, ValueClass] = {}
_classes: dict[type, type[Value]] = {}  # those that were found


def register_class(kind: type | str, cls: ValueClass) -> None:
    """Let a class, or what a function makes of each type, track a type or a module."""
    _registered[kind] = cls
    _classes.clear()


def refuse(kind: type) -> type[Value]:
    """No class tracks what looks like NumPy's arrays, and is something else."""
    if kind.__module__.partition(".")[0] == "pandas":
        raise tables.refusal(kind.__name__)
    raise ArgumentError(
        f"{kind.__module__}.{kind.__qualname__}: unsupported array type. Give an "
        f"array: numpy.asarray(x), x.toarray() of a sparse one; of a masked one "
        f"x.filled(0.0), and leave elements out with lantern.where."
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
    if found is _registered[object] and (
        hasattr(kind, "__array__") or hasattr(kind, "dtype")
    ):
        found = refuse
    return found if isinstance(found, type) else found(kind)
