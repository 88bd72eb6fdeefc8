"""Fourier transforms of short frames of a signal; windows, by other names."""

import warnings
from typing import Any

import numpy as np

from lantern.errors import EagerError
from lantern.torch import fft
from lantern.torch.functions import creation
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.nn import functional as F
from lantern.torch.signal import windows
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "istft",
    "kaiser_window",
    "stft",
]


def bartlett_window(
    window_length: int, periodic: bool = True, **options: Any
) -> Tensor:
    """A triangle; periodic: without its last 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(windows.bartlett, window_length, periodic, options)


def blackman_window(
    window_length: int, periodic: bool = True, **options: Any
) -> Tensor:
    """Blackman's window; periodic: without its last element.

    Example:
        >>> import lantern.torch as torch
        >>> torch.blackman_window(4)
        tensor([-1.3878e-17,  3.4000e-01,  1.0000e+00,  3.4000e-01])
    """
    return _window(windows.blackman, window_length, periodic, options)


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Hann's window; periodic: without its last 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(windows.hann, window_length, periodic, options)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Any,
) -> Tensor:
    """``alpha - beta cos``; periodic: without its last element.

    Example:
        >>> import lantern.torch as torch
        >>> torch.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    shape = {"a": [alpha, beta]}
    return _window(windows.general_cosine, window_length, periodic, options | shape)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any
) -> Tensor:
    """Kaiser's window; periodic: without its last element.

    Example:
        >>> import lantern.torch as torch
        >>> torch.kaiser_window(4)
        tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """
    shape = {"beta": beta}
    return _window(windows.kaiser, window_length, periodic, options | shape)


def _window(function: Any, length: int, periodic: bool, options: Any) -> Tensor:
    options.pop("pin_memory", None)
    return function(length, sym=not periodic, **options)


class _Frames:
    """How a signal is cut: the frames' length, their distance, and the window.

    Args:
        name: the function that was called, for messages.
        n_fft: the length of a frame.
        hop_length: the distance of two frames; a quarter of their length by default.
        win_length: the length of the window, which zeros are added to.
        window: the weights in a frame; 1 by default.
        like: a tensor of the window's type by default.
    """

    def __init__(
        self,
        name: str,
        n_fft: int,
        hop_length: Any,
        win_length: Any,
        window: Any,
        like: Tensor,
    ) -> None:
        self.n, self.hop = n_fft, n_fft // 4 if hop_length is None else hop_length
        length = n_fft if win_length is None else win_length
        if self.hop <= 0 or not 0 < length <= n_fft:
            raise EagerError(
                f"{name}: expected 0 < hop_length and 0 < win_length <= n_fft, but got "
                f"hop_length={self.hop}, win_length={length}, n_fft={n_fft}"
            )
        if window is None:
            kind = dtypes.as_dtype(base(like).real.dtype)
            window = creation.ones(length, dtype=kind)
        if window.ndim != 1 or len(window) != length:
            raise EagerError(
                f"{name}: expected a 1D window tensor of size equal to win_length="
                f"{length}, but got window with size {list(window.shape)}"
            )
        left = (n_fft - length) // 2
        self.window = F.pad(window, (left, n_fft - length - left))


def _is_complex(wanted: Any, real: bool) -> bool:
    """Whether frames are complex numbers, as PyTorch has it at this time."""
    if wanted is None and real:
        raise EagerError(
            "stft requires the return_complex parameter be given for real inputs, and "
            "will further require that return_complex=True in a future PyTorch release."
        )
    if wanted is not None and not wanted:
        warnings.warn(
            "stft with return_complex=False is deprecated. In a future pytorch "
            "release, stft will return complex tensors for all inputs, and "
            "return_complex=False will raise an error.",
            stacklevel=3,
        )
    return wanted is None or bool(wanted)


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Any = None,
    return_complex: Any = None,
    align_to_window: Any = None,
) -> Tensor:
    """The Fourier transforms of overlapping frames of a signal.

    Args:
        input: one signal, or several in rows.
        n_fft: the length of a frame.
        hop_length: the distance of two frames; a quarter of their length by default.
        win_length: the length of the window, which zeros are added to.
        window: the weights in a frame; 1 by default.
        center: whether the signal is continued at both ends by half a frame.
        pad_mode: how: see ``nn.functional.pad``.
        normalized: whether to divide by the root of the frames' length.
        onesided: whether frequencies from 0 up are enough, as they are of real signals.
        return_complex: complex numbers, or pairs along a last axis.
        align_to_window: not supported.

    Shapes:
        input: (time,) or (n, time); result: (n, frequencies, frames)

    Example:
        >>> import lantern.torch as torch
        >>> torch.stft(torch.ones(8), 4, return_complex=True).abs()
        tensor([[4., 4., 4., 4., 4., 4., 4., 4., 4.],
                [0., 0., 0., 0., 0., 0., 0., 0., 0.],
                [0., 0., 0., 0., 0., 0., 0., 0., 0.]])
    """
    if align_to_window:
        raise EagerError("stft: align_to_window is not supported. Pad the signal.")
    frames = _Frames("stft", n_fft, hop_length, win_length, window, input)
    real = not (input.is_complex() or frames.window.is_complex())
    return_complex = _is_complex(return_complex, real)
    if input.ndim not in (1, 2):
        raise EagerError(f"stft: expected a 1D or 2D tensor, got {input.ndim}D")
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        x = F.pad(x.unsqueeze(1), (n_fft // 2, n_fft // 2), pad_mode).squeeze(1)
    if not 0 < n_fft <= x.shape[-1]:
        raise EagerError(f"stft: expected 0 < n_fft <= {x.shape[-1]}, but got {n_fft}")
    parts = x.unfold(-1, n_fft, frames.hop) * frames.window
    onesided = real if onesided is None else onesided
    if onesided and not real:
        raise EagerError("Cannot have onesided output if window or input is complex")
    transform = fft.rfft if onesided else fft.fft
    z = transform(parts, norm="ortho" if normalized else None).transpose(1, 2)
    z = z if input.ndim == 2 else z.squeeze(0)
    return z if return_complex else FUNCTIONS["view_as_real"](z)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: Any = None,
    length: Any = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal that ``stft`` has the same frames of: its inverse, by least squares.

    Args:
        input: complex, as ``stft`` has it.
        n_fft: as in ``stft``, and so are the other arguments.
        hop_length, win_length, window, center, normalized, onesided: see there.
        length: of the signal; what the frames tell of it by default.
        return_complex: whether the signal is complex.

    Shapes:
        input: (n, frequencies, frames); result: (n, time)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.arange(8.0)
        >>> torch.istft(torch.stft(x, 4, return_complex=True), 4)
        tensor([0., 1., 2., 3., 4., 5., 6., 7.])

    References:
        Griffin and Lim (1984), equation 6.
    """
    if not input.is_complex():
        raise EagerError(
            "istft requires a complex-valued input tensor matching the output from "
            "stft with return_complex=True."
        )
    if input.ndim not in (2, 3):
        raise EagerError(f"istft: expected a 2D or 3D tensor, got {input.ndim}D")
    frames = _Frames("istft", n_fft, hop_length, win_length, window, input)
    z = input if input.ndim == 3 else input.unsqueeze(0)
    parts = _frames_of(z, n_fft, normalized, onesided, return_complex)
    parts = parts * frames.window
    y = _overlapped(parts, frames.hop)
    square = (frames.window * frames.window).expand(1, parts.shape[1], n_fft)
    weights = _overlapped(square, frames.hop)
    start, total = n_fft // 2 if center else 0, y.shape[1]
    end = total - start if length is None else start + length
    y, weights = y[:, start:end], weights[:, start:end]
    every = of_all_examples(base(weights))
    if not every.size or abs(every).min() < 1e-11:
        raise EagerError(
            "istft: window overlap add min: 0. The windows leave a part of the signal "
            "without weight. Take another window, or a smaller hop_length."
        )
    y = y / weights
    if end > total:
        y = F.pad(y, (0, end - total))
    return y if input.ndim == 3 else y.squeeze(0)


def _frames_of(
    z: Tensor, n: int, normalized: bool, onesided: Any, return_complex: bool
) -> Any:
    """The frames that have some Fourier transforms."""
    onesided = z.shape[1] != n if onesided is None else onesided
    if z.shape[1] != (n // 2 + 1 if onesided else n):
        raise EagerError(
            f"istft: expected the frequency dimension (3rd to the last) of the input "
            f"tensor to match n_fft={n} with onesided={onesided}, but got {z.shape[1]}"
        )
    z, norm = z.transpose(1, 2), "ortho" if normalized else None
    if return_complex:
        return fft.ifft(z, norm=norm)
    # The other half of the frequencies says the same.
    return fft.irfft(z[:, :, : n // 2 + 1], n, norm=norm)


def _overlapped(parts: Tensor, hop: int) -> Tensor:
    """The sum of frames, each where it lies."""
    rows, count, n = parts.shape
    where = np.arange(count)[:, None] * hop + np.arange(n)
    whole = creation.zeros(rows, n + hop * (count - 1), dtype=parts.dtype)
    flat = parts.reshape(rows, -1)
    return whole.index_add(1, fresh(where.reshape(-1)), flat)
