"""SciPy's names for what Lantern differentiates; SciPy itself computes most of it.

Example:
    >>> import lantern
    >>> from lantern.scipy import stats
    >>> lantern.grad(stats.norm.logpdf)(2.0)
    -2.0
"""

import importlib as _importlib
from typing import Any as _Any

__all__ = ["integrate", "linalg", "signal", "special", "stats"]


def __getattr__(name: str) -> _Any:
    """The modules, imported when they are asked for."""
    if name in __all__:
        return _importlib.import_module(f"lantern.scipy.{name}")
    raise AttributeError(f"module 'lantern.scipy' has no attribute {name!r}")
