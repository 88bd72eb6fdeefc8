"""Fourier transforms, under the names of ``numpy.fft`` and the array API standard."""

__all__: list[str] = []
