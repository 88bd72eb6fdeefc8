"""What a result is written to, if a caller hands over a tensor for it: ``out=...``."""

from functools import wraps
from typing import Any

from lantern.errors import EagerError
from lantern.torch import dtypes
from lantern.torch.gradients import set_data
from lantern.value import base

__all__ = ["into", "of_its_type", "with_out"]


def into(z: Any, out: Any) -> Any:
    """A result, or the tensor that it is to be written to; of a tuple, each part."""
    if out is None:
        return z
    if isinstance(z, tuple):
        return type(z)(*map(into, z, out))
    if z.requires_grad or out.requires_grad:
        raise EagerError(
            "functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    if dtypes.category(base(z).dtype) > dtypes.category(base(out).dtype):
        raise EagerError(
            f"result type {z.dtype} can't be cast to the desired output type "
            f"{out.dtype}"
        )
    if base(out).shape == base(z).shape:
        return out.copy_(z)
    set_data(out, z.to(out.dtype))
    return out


def of_its_type(z: Any, out: Any) -> Any:
    """A result, of which what it is to be written to must have the type."""
    several = isinstance(z, tuple)
    for x, y in zip(z if several else [z], out if several else [out], strict=True):
        if y is not None and base(x).dtype != base(y).dtype:
            raise EagerError(
                f"Expected out tensor to have dtype {x.dtype}, but got {y.dtype} "
                f"instead"
            )
    return z


def with_out(function: Any) -> Any:
    """A function whose result may be written to a tensor: ``out=...``."""
    if "out" in function.__code__.co_varnames:
        return function

    @wraps(function)
    def either(*args: Any, out: Any = None, **options: Any) -> Any:
        return into(function(*args, **options), out)

    return either
