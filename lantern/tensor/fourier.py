"""Fourier transforms: linear, each the adjoint of another."""

__all__: list[str] = []
