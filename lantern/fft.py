"""Fourier transforms, under the names of ``numpy.fft`` and the array API standard."""

from lantern.tensor.ops import fft as fourier
from lantern.tensor.ops.fft import *  # noqa: F403  # these names and no others

__all__ = fourier.__all__
