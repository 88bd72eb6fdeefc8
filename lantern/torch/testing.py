"""Comparisons that raise, and tensors for tests."""

import math
from typing import Any

import numpy as np

from lantern.blocks import between_turns
from lantern.core.value import base
from lantern.errors import OptionError, SizeError
from lantern.torch.functions.creation import empty
from lantern.torch.methods.sampling import rand, randint
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.tensor.devices import on_host
from lantern.torch.tensor.dtypes import as_numpy_dtype, by_numpy, finfo, float64
from lantern.torch.tensor.tensor import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# PyTorch's tolerances, relative and absolute, by the coarser of two types.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raise AssertionError unless two tensors, or structures of them, are close.

    Args:
        actual: a tensor, a number, or a list, a tuple or a dictionary of them.
        expected: the same, with the right values.
        rtol: the relative tolerance; by default, as ``atol``, by the type.
        atol: the absolute tolerance.
        equal_nan: whether nan is close to nan.
        check_device: whether they must lie on the same device.
        check_dtype: whether types must be the same.
        check_layout: has no effect.
        check_stride: has no effect.
        msg: what to say instead.

    Example:
        >>> import lantern.torch as torch
        >>> torch.testing.assert_close(torch.ones(2) / 3, torch.full((2,), 1 / 3))
    """
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    for path, a, b in _pairs("", actual, expected):
        checks = {"device": check_device, "dtype": check_dtype}
        complaint = _complaint(path, a, b, checks, **options)
        if complaint:
            raise SizeError(msg(complaint) if callable(msg) else msg or complaint)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: Any = None,
    high: Any = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Uniform draws for tests, of any type.

    Args:
        shape: the lengths of the axes.
        dtype: the type.
        device: where it lies.
        low: the least value; of each type a small one by default.
        high: what values stay below.
        requires_grad: whether a derivative may be asked for.
        noncontiguous: whether elements lie apart in memory.
        exclude_zero: whether 0 is replaced by 1, or the least number above 0.
        memory_format: the order of the axes in memory.

    Raises:
        ValueError: for bounds without anything between them.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.testing.make_tensor(3, dtype=torch.uint8, device="cpu")
        >>> x.shape, bool((x < 10).all())
        (torch.Size([3]), True)
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        (shape,) = shape
    shape, kind = tuple(shape), as_numpy_dtype(dtype)
    options: dict[str, Any] = {"dtype": dtype, "device": device}
    twice = noncontiguous and math.prod(shape) > 1
    drawn = (*shape[:-1], 2 * shape[-1]) if twice else shape
    low, high = _bounds(kind, low, high)
    if kind.kind in "biu":
        x = randint(low, high, drawn, **options)
    else:
        x = empty(drawn, **options)
        parts = FUNCTIONS["view_as_real"](x) if kind.kind == "c" else x
        parts.copy_(rand(parts.shape, dtype=float64) * (high - low) + low)
    x = x[..., ::2] if twice else x
    if memory_format is not None:
        x = x.clone(memory_format=memory_format)
    if exclude_zero:
        x[x == 0] = 1 if kind.kind in "biu" else finfo(by_numpy[kind]).tiny
    return x.requires_grad_() if requires_grad else x


def _bounds(kind: Any, low: Any, high: Any) -> Any:
    """The least number of draws, and what they stay below."""
    usual = {"b": (0, 2), "u": (0, 10), "i": (-9, 10)}.get(kind.kind, (-9, 9))
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    whole = kind.kind in "biu"
    if math.isnan(low) or math.isnan(high):
        raise OptionError(f"`low` and `high` cannot be NaN, but got {low} and {high}")
    if low > high or (low == high and whole):
        raise OptionError(
            f"make_tensor: `low` must be less than `high`, but got {low} >= {high}"
        )
    if not whole:
        most = float(finfo(by_numpy[kind]).max)
        return max(float(low), -most), min(float(high), most)
    least, most = (0, 1) if kind.kind == "b" else _limits(kind)
    return max(math.ceil(low), least), min(math.ceil(high), most + 1)


def _limits(kind: Any) -> tuple[int, int]:
    limits = np.iinfo(kind)
    return int(limits.min), min(int(limits.max), 2**63 - 2)


def assert_allclose(actual: Any, expected: Any, *args: Any, **options: Any) -> None:
    """As ``assert_close``, for values of any types.

    Example:
        >>> import lantern.torch as torch
        >>> torch.testing.assert_allclose(torch.tensor([1.0]), torch.tensor([1.000001]))
    """
    names = dict(zip(("rtol", "atol", "equal_nan", "msg"), args, strict=False))
    loose: Any = {"check_dtype": False, "check_device": False}
    assert_close(actual, expected, **loose, **{**names, **options})


def _pairs(path: str, a: Any, b: Any) -> Any:
    """The leaves of two structures, side by side."""
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            raise SizeError(
                f"The keys of the mappings do not match: {[*a]} and {[*b]}{path}."
            )
        for key in a:
            yield from _pairs(f"{path}[{key!r}]", a[key], b[key])
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            raise SizeError(
                f"The length of the sequences mismatch: {len(a)} != {len(b)}{path}."
            )
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _pairs(f"{path}[{i}]", x, y)
    else:
        yield path, a, b


@between_turns
def _complaint(
    path: str, a: Any, b: Any, checks: Any, rtol: Any, atol: Any, equal_nan: bool
) -> str:
    where = f" (item {path})" if path else ""
    tensors = isinstance(a, Tensor) and isinstance(b, Tensor)
    x, y = (np.asarray(on_host(base(z))) for z in (a, b))
    if x.shape != y.shape:
        return (
            f"The values for attribute 'shape' do not match: {list(x.shape)} != "
            f"{list(y.shape)}{where}."
        )
    for what in [name for name in checks if tensors and checks[name]]:
        found = getattr(a, what), getattr(b, what)
        if found[0] != found[1]:
            both = f"{found[0]} != {found[1]}"
            return f"The values for attribute '{what}' do not match: {both}."
    if (rtol is None) != (atol is None):
        return "rtol and atol must both be specified or both be unspecified"
    if rtol is None:
        kinds = [by_numpy[z.dtype].name if z.dtype in by_numpy else "" for z in (x, y)]
        rtol, atol = max(_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds)
    close = np.isclose(x, y, rtol, atol, equal_nan=equal_nan)
    if close.all():
        return ""
    wrong = int(close.size - close.sum())
    with np.errstate(invalid="ignore"):
        difference = np.abs(np.subtract(x, y, dtype=np.result_type(x, y, float)))
    return (
        f"Tensor-likes are not close!\n\nMismatched elements: {wrong} / {close.size} "
        f"({100 * wrong / close.size:.1f}%)\nGreatest absolute difference: "
        f"{difference.max()} (up to {atol} allowed, with rtol={rtol}){where}"
    )
