"""Linear algebra beyond products: solving, factorising, eigenvalues, norms.

A part is imported when it is asked for: ``linalg.solve.inv(a)``.
"""

from importlib import import_module
from typing import Any

_PARTS = frozenset("eigen_svd factorisations matrix_functions norms solve".split())


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
