"""Running sums, products and maxima."""

__all__: list[str] = []
