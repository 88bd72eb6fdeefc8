"""Weights that fade a signal out at both ends: ``torch.signal.windows``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.errors import ShapeError
from lantern.torch.functions.creation import finished
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.dtypes import as_numpy_dtype
from lantern.torch.tensor.layouts import strided
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(
    M: int,
    shape: Callable[[Any, int], Any],
    sym: bool,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A window from a function of the places 0 to M - 1, and the last one's number."""
    kind = dtypes.default()
    if dtype is not None and dtype is not dtypes.bfloat16:
        kind = as_numpy_dtype(dtype)
    if dtype is dtypes.bfloat16 or kind not in (dtypes.F32, dtypes.F64):
        raise ShapeError(f"expects float32 or float64 dtypes, got: {dtype}")
    if layout not in (None, strided):
        raise ShapeError(f"is implemented for strided tensors only, got: {layout}")
    if M < 0:
        raise ShapeError(f"requires non-negative window length, got M={M}")
    last = M - 1 if sym else M
    if M == 1:
        return finished(np.ones(1, kind), device, requires_grad)
    array = np.asarray(shape(np.arange(M), last), kind)
    return finished(array, device, requires_grad)


def general_cosine(M: int, *, a: Any, sym: bool = True, **options: Any) -> Tensor:
    """A sum of cosines with weights of alternating sign.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    weights = list(a)
    if not weights:
        raise ShapeError("Coefficients cannot be empty")

    def shape(k: Any, last: int) -> Any:
        waves = (
            (-1) ** i * w * np.cos(2 * np.pi * i * k / last)
            for i, w in enumerate(weights)
        )
        return sum(waves)

    return _window(M, shape, sym, **options)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any
) -> Tensor:
    """A cosine on a pedestal.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.general_hamming(5, alpha=0.6)
        tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hamming window: a cosine on a pedestal of 0.08.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hann window: a cosine from 0 up to 1 and down again.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Blackman window: a constant and two cosines.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.blackman(5)[1:4]
        tensor([0.3400, 1.0000, 0.3400])
    """
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Blackman-Harris window with Nuttall's weights.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.nuttall(5)
        tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    weights = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=weights, sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A triangle: from 0 up to 1 and down again, in M places.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window(M, lambda k, last: 1 - abs(2 * k / last - 1), sym, **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Half a wave of the sine, in M places.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.cosine(3)
        tensor([0.5000, 1.0000, 0.5000])
    """
    return _window(
        M, lambda k, last: np.sin(np.pi * (k + 0.5) / (last + 1)), sym, **options
    )


def exponential(
    M: int, *, center: Any = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Tensor:
    """An exponential to both sides of a center.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.exponential(3, tau=0.5)
        tensor([0.1353, 1.0000, 0.1353])
    """
    if tau <= 0:
        raise ShapeError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ShapeError("Center must be None for symmetric windows")

    def shape(k: Any, last: int) -> Any:
        middle = last / 2 if center is None else center
        return np.exp(-abs(k - middle) / tau)

    return _window(M, shape, sym, **options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """A bell of standard deviation ``std``, in M places.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ShapeError(f"Standard deviation must be positive, got: {std} instead.")
    return _window(
        M, lambda k, last: np.exp(-(((k - last / 2) / std) ** 2) / 2), sym, **options
    )


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """The Kaiser window; the greater beta, the steeper.

    Example:
        >>> import lantern.torch as torch
        >>> torch.signal.windows.kaiser(5, beta=2.0)
        tensor([0.4387, 0.8348, 1.0000, 0.8348, 0.4387])
    """
    if beta < 0:
        raise ShapeError(f"beta must be non-negative, got: {beta} instead.")

    def shape(k: Any, last: int) -> Any:
        inside = np.sqrt(np.maximum(1 - (2 * k / last - 1) ** 2, 0))
        return np.i0(beta * inside) / np.i0(beta)

    return _window(M, shape, sym, **options)
