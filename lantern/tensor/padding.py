"""Arrays with more around them."""

__all__: list[str] = []
