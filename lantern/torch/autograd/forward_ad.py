"""Numbers with a tangent: derivatives that go forward with the program."""

from contextvars import ContextVar
from typing import Any, NamedTuple

from lantern.blocks import Setting, from_the_start
from lantern.core.value import base
from lantern.errors import EagerError, OptionError
from lantern.torch.tensor.dtypes import INEXACT
from lantern.torch.tensor.tensor import Tensor, numpy_face, torch_face
from lantern.transforms.forward import Forward, give_tangent
from lantern.transforms.reverse import track

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """Where a tensor is, and how it moves.

    Attributes:
        primal: the tensor without its tangent.
        tangent: the direction; None for a tensor that stands still.
    """

    primal: Any
    tangent: Any


_level: ContextVar[Any] = ContextVar("lantern.dual_level", default=None)


class Dual(Forward):
    """The derivative of one block."""

    __slots__ = ()


def enter_dual_level() -> int:
    """Begin a derivative; its number is 0, since there is one at a time."""
    _level.set(_new(_level.get()))
    return 0


def _new(before: Any) -> Any:
    if before is not None:
        raise EagerError("Nested forward mode AD is not supported at the moment")
    return Dual("forward_ad")


def __getattr__(name: str) -> Any:
    """The number of the derivative that is being taken; -1 for none."""
    if name == "_current_level":
        return -1 if _level.get() is None else 0
    raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute {name}")


def exit_dual_level(*, level: Any = None) -> None:
    """End a derivative: what was computed in it has no tangent any longer."""
    now = _level.get()
    if now is None or level not in (None, 0):
        raise EagerError(
            "Trying to exit a forward AD level that was not the last one that was "
            "created. This is not supported."
        )
    _level.set(None)
    now.close()


class dual_level(Setting):
    """A block in which tensors may have tangents.

    Example:
        >>> import lantern.torch as torch
        >>> with dual_level():
        ...     x = make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     unpack_dual(x * x).tangent
        tensor(6.)
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_level, None)

    def within(self, before: Any) -> Any:
        """A new derivative."""
        return _new(before)

    def __enter__(self) -> int:
        super().__enter__()
        return 0

    @from_the_start
    def __exit__(self, *exception: Any) -> None:
        try:
            now = _level.get()
        finally:
            Setting.__exit__(self)
        now.close()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: Any = None) -> Tensor:
    """A tensor that moves in a direction.

    A write to it in place gives it a new value and a new tangent. It does not write to
    the two tensors that it was made of, since others may move by the same memory.

    Args:
        tensor: where it is; it may have a derivative of its own.
        tangent: the direction, of the same shape and type.
        level: 0, or None.

    Raises:
        RuntimeError: outside of ``dual_level``, or if the two do not fit.
        ValueError: if one of them has no floating-point or complex numbers.
    """
    now = _level.get()
    if now is None:
        raise EagerError(
            "Trying to create a dual Tensor for forward AD but no level exists, make "
            "sure to enter_dual_level() first."
        )
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if base(x).dtype.kind not in INEXACT:
            raise OptionError(
                f"Expected {name} to be floating point or complex, but got: {x.dtype}"
            )
    a, b = base(tensor), base(tangent)
    if a.shape != b.shape:
        raise EagerError(
            f"Trying to set a forward gradient that has a different size than that of "
            f"the original Tensor, this is not supported. Tensor is of size "
            f"{list(a.shape)} while the given forward gradient is of size "
            f"{list(b.shape)}."
        )
    x = track("make_dual", numpy_face(tensor), now)
    give_tangent(x, numpy_face(tangent))
    z = torch_face(x)
    z.__dict__["_tangent"] = z.receiver, tangent
    return z


def unpack_dual(tensor: Tensor, *, level: Any = None) -> Any:
    """A tensor without its tangent, and the tangent; None where it has none."""
    if not isinstance(tensor.level, Dual):
        return UnpackedDualTensor(tensor, None)
    tangent = None
    if tensor.level is _level.get():
        receiver, tangent = tensor.__dict__.get("_tangent", (None, None))
        if receiver is not tensor.receiver:
            tangent = torch_face(tensor.receiver.tangent)
    return UnpackedDualTensor(torch_face(tensor.primal), tangent)
