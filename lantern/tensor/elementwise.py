"""Functions of each element of an array that numbers do not have."""

__all__: list[str] = []
