"""Convolution, correlation and interpolation."""

__all__: list[str] = []
