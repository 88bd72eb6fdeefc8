"""Docstrings of what tables make, and the paths under which it is found again."""

import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any, TypeVar

__all__ = ["documented", "place"]

T = TypeVar("T")
_EXAMPLE = "\n\nExample:\n    >>> import lantern.torch as torch\n    "
# What the compiler leaves in front of the lines of a function's docstring.
_MARGIN = "\n" if sys.version_info >= (3, 13) else "\n    "


def documented(thing: T, text: str) -> T:
    """What a row makes, with an example, and words in the place of its own.

    Args:
        thing: a function, a class or a property that no ``def`` of its own describes.
        text: what it is, unless that is known, and an example that imports nothing. Its
            last line is as far from the margin as the others.
    """
    words, _, example = text.partition(">>> ")
    words = words.strip() or (thing.__doc__ or "").replace(_MARGIN, "\n").rstrip()
    margin = text[text.rindex("\n") :]
    example = example.rstrip().replace(margin, "\n    ")
    thing.__doc__ = f"{words}{_EXAMPLE}>>> {example}"
    return thing


def in_place_example(name: str, function: Any) -> str:
    """The example of ``x.abs_()``, which is that of ``torch.abs(x)``.

    Args:
        name: of the method.
        function: whose example calls it in its last line but what that prints.
    """
    words = function.__doc__ or ""
    words = words if _EXAMPLE in words else words.replace(_MARGIN, "\n")
    before, _, call = words.rstrip().partition(_EXAMPLE)[2].rpartition(">>> torch.")
    call = call.partition("(x")[2].removeprefix(", ")
    return f"{_EXAMPLE}{before}>>> x.{name}({call}" if call else ""


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
