"""Sums of products, named by letters."""

__all__: list[str] = []
