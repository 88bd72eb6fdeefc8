"""Linear algebra, under the names of ``numpy.linalg`` and the array API standard."""

__all__: list[str] = []
