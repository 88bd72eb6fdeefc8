"""Factorisations of matrices."""

__all__: list[str] = []
