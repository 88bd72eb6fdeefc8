"""Where functions that tables make are found again: so they can be pickled."""

import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any

__all__ = ["place"]


def place(module: str, names: Mapping[str, Any], within: str = "") -> None:
    """Let functions be found under the path that programs know them by.

    Args:
        module: where they are found, unless they already are under their own path.
        names: the functions, among other things.
        within: what their names begin with: of methods, the class and a dot.
    """
    for name, thing in names.items():
        if isinstance(thing, FunctionType) and not _is_found(thing):
            thing.__module__, thing.__qualname__ = module, f"{within}{name}"


def _is_found(function: Any) -> bool:
    """Whether a function's module has it under its name."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function
