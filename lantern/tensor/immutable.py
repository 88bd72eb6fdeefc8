"""Writes that an ndarray allows and a tensor refuses; what is no ndarray."""

from typing import Any

from lantern.core.dispatch import refuse, register_class
from lantern.core.operation import Function
from lantern.core.value import base, is_tracked
from lantern.errors import DetachError, MutationError
from lantern.tensor.array_api_methods import writeable
from lantern.tensor.backend.numpy_namespace import numpy_namespace

__all__ = ["refuse_out", "refuse_to_set", "refuse_writing"]

_METHODS = {
    "byteswap": "x.astype(dtype)",
    "fill": "lantern.full_like(x, v)",
    "partition": "lantern.partition(x, kth)",
    "put": "x.at[index].set(v)",
    "resize": "lantern.resize(x, shape)",
    "setfield": "x.at[index].set(v)",
    "setflags": "x.copy()",
    "sort": "lantern.sort(x)",
}
_PROPERTIES = "T mT dtype flat imag ndim real shape size".split()


def _in_place(name: str, instead: str) -> Function:
    """A method that writes into an array: only where no derivative tracks it."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        if not any(map(is_tracked, (self, *args))):
            return getattr(writeable(base(self)), name)(*map(base, args), **options)
        raise MutationError(
            f"x.{name}(): a tracked array cannot be written to. Use {instead}, or a "
            f"buffer: lantern.Buffer(x)."
        )

    method.__name__ = method.__qualname__ = name
    return method


def refuse_writing(cls: type) -> None:
    """Give a class the methods that write."""
    for name, instead in _METHODS.items():
        setattr(cls, name, _in_place(name, instead))


def refuse_to_set(cls: type) -> None:
    """Let assignments to a class's properties raise MutationError."""

    def refuse(self: Any, value: Any) -> None:
        raise MutationError(
            "x.shape = s: the properties of a tensor cannot be set. Use what returns a "
            "new array: x.reshape(s), x.astype(dtype), v + 1j * x.imag, x.at[i].set(v)."
        )

    for name in _PROPERTIES:
        setattr(cls, name, getattr(cls, name).setter(refuse))


def refuse_out(name: str, args: Any, kwargs: dict[str, Any]) -> None:
    """Refuse ``out=``, and what NumPy would write into where that is no keyword."""
    second = args[1:] if name in ("fix", "isneginf", "isposinf") else ()
    out = kwargs.pop("out", None)
    if any(x is not None for x in (out if type(out) is tuple else (out, *second))):
        raise DetachError(
            f"numpy.{name}: inside vmap there is another result for each example, "
            f"which out= cannot hold. Use the function's result."
        )


for _kind in (numpy_namespace.matrix, "numpy.ma"):
    register_class(_kind, refuse)
