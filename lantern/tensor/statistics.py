"""Norms, medians, quantiles."""

__all__: list[str] = []
