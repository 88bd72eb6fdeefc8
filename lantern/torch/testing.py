"""Comparisons that raise."""

from typing import Any

import numpy as np

from lantern.blocks import between_turns
from lantern.core.value import base
from lantern.errors import SizeError
from lantern.torch.tensor.devices import on_host
from lantern.torch.tensor.dtypes import by_numpy
from lantern.torch.tensor.tensor import Tensor

__all__ = ["assert_allclose", "assert_close"]

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
