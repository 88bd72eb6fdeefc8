"""Classes of tensors of a program's own: which of them functions ask, and from when on.

Tensors are made before there are functions of them, so it is noted here that there are
such tensors, and done elsewhere what follows from it (``lantern.torch.asking``).
"""

from collections.abc import Callable
from types import NoneType
from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.tensor.dtypes import Size

__all__ = ["ARMING", "SILENT", "asks", "disabled", "joined"]

# The classes of most of what is among arguments, which are not looked at any further.
SILENT: set[Any] = {bool, int, float, complex, str, slice, Size, NoneType}
ARMING: list[Callable[[], None]] = []  # what is done when there are such tensors


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A class's ``__torch_function__`` if its objects are as plain tensors."""
    return func(*args, **(kwargs or {}))


def asks(x: Any) -> bool:
    """Whether a value says itself what functions do with it."""
    if type(x) in SILENT:
        return False
    found = getattr(type(x), "__torch_function__", None)
    return found is not None and found is not disabled


def joined(cls: Any) -> None:
    """Note that there is an object of a class of tensors: functions ask from now on.

    Raises:
        NotImplementedError: if the class wants to see inner operations.
    """
    if cls in SILENT:
        return
    if getattr(cls, "__torch_dispatch__", disabled) is not disabled:
        raise MissingRuleError(
            f"{cls.__name__}: the operations that PyTorch computes others with are "
            "not shown to __torch_dispatch__ here. Define __torch_function__."
        )
    if cls.__torch_function__ is not disabled:
        for begin in ARMING:
            begin()
