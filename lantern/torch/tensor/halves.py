"""Sums of halves, taken in float32: the only file that rounds sums to 16 bits.

As in PyTorch, elements become float32, everything is computed in that type, and the
result is rounded once. The cotangents go the same way back.
"""

from functools import wraps
from typing import Any

from lantern.torch.tensor import dtypes
from lantern.torch.tensor.dtypes import F32, F64
from lantern.torch.tensor.error_messages import refuse_type
from lantern.torch.tensor.named_results import Row, into
from lantern.torch.tensor.operators import cast
from lantern.torch.tensor.tensor import Tensor

__all__ = ["in_single", "is_half", "single"]


def is_half(x: Any) -> bool:
    """Whether x is a tensor of float16 or bfloat16."""
    return isinstance(x, Tensor) and dtypes.is_half(x.primal.dtype)


def in_single(function: Any, *args: Any, **options: Any) -> Any:
    """A function of tensors of one half type, computed in float32 and rounded once."""
    out = options.pop("out", None)
    half = next(kind for kind in _types((args, options)) if dtypes.is_half(kind))
    z = function(*_as(F32, args, half), **_as(F32, options, half))
    return into(_as(half, z, F32), out)


def _as(kind: Any, x: Any, former: Any) -> Any:
    """The tensors of one type in another one, however deep they lie in lists."""
    if isinstance(x, Tensor):
        return cast(x, kind) if x.primal.dtype == former else x
    if isinstance(x, dict):
        return {name: _as(kind, part, former) for name, part in x.items()}
    if isinstance(x, Row):
        return type(x)(*(_as(kind, part, former) for part in x))
    if type(x) in (tuple, list):
        return type(x)(_as(kind, part, former) for part in x)
    return x


def _types(x: Any) -> set[Any]:
    """The types of all floating-point tensors in a list."""
    if isinstance(x, Tensor):
        return {x.primal.dtype} if x.primal.dtype.kind in dtypes.INEXACT else set()
    if not isinstance(x, dict | tuple | list):
        return set()
    parts = x.values() if isinstance(x, dict) else x
    return {kind for part in parts for kind in _types(part)}


def single(function: Any, mixed: bool = False, whole: bool = True) -> Any:
    """A function of tensors that computes float16 and bfloat16 in float32.

    Args:
        function: what adds up; a ``dtype`` that it is given counts first.
        mixed: whether the first tensor alone decides, and others may be wider. Without,
            types that differ meet in the function itself.
        whole: whether it takes whole numbers.
    """

    @wraps(function)
    def operate(*args: Any, **options: Any) -> Any:
        first = args[0] if args else None
        if isinstance(first, Tensor):
            kind = first.primal.dtype
            if kind is F32 or kind is F64:
                return function(*args, **options)
            if not whole and kind.kind in "iub" and first.primal.size:
                raise refuse_type(function.__name__, first)
        found = {kind} if mixed and is_half(first) else _types((args, options))
        halves = len(found) == 1 and dtypes.is_half(*found)
        if halves and options.get("dtype") is None:
            return in_single(function, *args, **options)
        return function(*args, **options)

    return operate
