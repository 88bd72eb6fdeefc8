"""Libraries that compute the values of some operations: how, never what.

A part is imported when it is asked for: ``engines.softmax.softmax(x, axis)``.
"""

from importlib import import_module
from typing import Any

from lantern.engines.onednn import in_use, set_threads, switch, switched

__all__ = ["in_use", "set_threads", "switch", "switched"]

_PARTS = frozenset("affine elementwise normalisation softmax".split())


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
