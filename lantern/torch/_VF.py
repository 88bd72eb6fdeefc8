"""The functions of ``torch`` under another name, by which its own layers call them."""

import importlib
from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    """The function of this name."""
    return getattr(importlib.import_module("lantern.torch"), name)
