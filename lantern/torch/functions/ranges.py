"""Numbers at equal distances, or at equal ratios."""

from typing import Any

import numpy as np

from lantern.errors import ArgumentError, EagerError, MissingRuleError
from lantern.torch.functions.creation import complete, finished
from lantern.torch.tables import parameters, takes
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import plain_number
from lantern.torch.tensor.dtypes import as_numpy_dtype
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.tensor import Tensor

__all__ = ["arange", "linspace", "logspace"]


def _number(x: Any) -> Any:
    """A bound as a number, wherever it lies."""
    x = plain_number("arange, linspace", x)
    return x.item() if isinstance(x, Tensor) else x


@complete
def _arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    if start is end is None:
        raise ArgumentError("arange(): missing the argument 'end'")
    start, end, step = map(_number, (start, end, step))
    start, end = (0, start) if end is None else (0 if start is None else start, end)
    kind = as_numpy_dtype(dtype)
    if kind is not None and kind.kind in "bc":
        name = dtypes.type_name(kind)
        raise MissingRuleError(f"\"arange_cpu\" not implemented for '{name}'")
    if not all(np.isfinite(x) for x in (start, end, step)):
        raise EagerError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise EagerError("step must be nonzero")
    if (end - start) * step < 0:
        raise EagerError("upper bound and lower bound inconsistent with step sign")
    kind = as_numpy_dtype(dtype)
    if kind is None:
        whole = all(
            isinstance(x, int)
            or getattr(getattr(x, "dtype", None), "kind", "f") in "iu"
            for x in (start, end, step)
        )
        kind = dtypes.I64 if whole else dtypes.default()
    count = max(int(np.ceil((end - start) / step)), 0)
    if kind == dtypes.I64:  # of all steps, as many whole ones
        start, step = int(start), int(step)
    array = (start + step * np.arange(count)).astype(kind)
    return finished(array, device, requires_grad)


def arange(*args: Any, out: Tensor | None = None, **options: Any) -> Tensor:
    """Numbers from start to before end, in steps.

    Args:
        args: end; start and end; or start, end and step.
        out: what they are to be written to; whole numbers go in whole steps.
        options: dtype, device, requires_grad, ...

    Example:
        >>> import lantern.torch as torch
        >>> torch.arange(3)
        tensor([0, 1, 2])
    """
    if out is not None:
        options.setdefault("dtype", out.dtype)
    return _arange(*args, out=out, **options)


takes(arange, parameters(_arange))


@each_example
@complete
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers at equal distances, from start to end.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linspace(0, 1, 3)
        tensor([0.0000, 0.5000, 1.0000])
    """
    kind = dtypes.default() if dtype is None else as_numpy_dtype(dtype)
    if steps < 0:
        raise EagerError("number of steps must be non-negative")
    if np.ndim(base(start)) or np.ndim(base(end)):
        raise EagerError(
            "linspace only supports 0-dimensional start and end tensors, but got start "
            f"with {np.ndim(base(start))} dimension(s) and end with "
            f"{np.ndim(base(end))} dimension(s)."
        )
    start, end = _number(start), _number(end)
    if kind.kind in dtypes.FLOATING:
        start, end = float(start), float(end)
    array = np.linspace(start, end, steps, dtype=kind)
    if kind.kind in "iu" and steps > 1:  # cut off, from both ends
        first, last, i = int(start), int(end), np.arange(steps)
        step = (last - first) / (steps - 1)
        back = last - step * (steps - 1 - i)
        array = np.where(i < steps // 2, first + step * i, back).astype(kind)
    return finished(array, device, requires_grad)


@each_example
@complete
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Powers of a base, whose exponents have equal distances.

    Example:
        >>> import lantern.torch as torch
        >>> torch.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
    """
    exponents = linspace(start, end, steps, dtype=dtypes.float64, device="cpu").primal
    kind = as_numpy_dtype(dtype) or dtypes.default()
    return finished((base**exponents).astype(kind), device, requires_grad)
