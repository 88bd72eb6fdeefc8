"""Docstrings of what tables make: what it is, and an example, from a file of text.

``examples/PART.txt`` has blocks with an empty line between. A block is a name, after a
colon what it is, unless its docstring says so already, and an example.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["document", "in_place"]

_EXAMPLE = "\n\nExample:\n    >>> import lantern.torch as torch\n"
_FOLDER = os.path.join(os.path.dirname(__file__), "examples")
# What the compiler leaves in front of the lines of a function's docstring.
_MARGIN = "\n" if sys.version_info >= (3, 13) else "\n    "


def document(part: str, names: Mapping[str, Any]) -> None:
    """Give things their examples, and words to those without.

    Args:
        part: the file's name.
        names: the functions and properties that it tells of, among others.
    """
    with open(os.path.join(_FOLDER, f"{part}.txt"), encoding="utf-8") as file:
        blocks = file.read().rstrip().split("\n\n")
    for block in blocks:
        head, _, example = block.partition("\n")
        name, _, words = head.partition(": ")
        thing = names[name]
        words = words or (thing.__doc__ or "").replace(_MARGIN, "\n").rstrip()
        thing.__doc__ = f"{words}{_EXAMPLE}{example}"


def in_place(cls: Any) -> None:
    """Give methods such as ``abs_`` the example of the function, read as a method.

    Where that is ``torch.abs(x)``, a line of its own, it becomes ``x.abs_()``.
    """
    methods = vars(cls)
    for name, method in methods.items():
        if name[-1] != "_" or name[0] == "_" or ">>>" in (method.__doc__ or ">>>"):
            continue
        example = methods[name[:-1]].__doc__.partition(_EXAMPLE)[2]
        before, _, call = example.rpartition(">>> torch.")
        call = call.partition("(x")[2].removeprefix(", ")
        method.__doc__ += f"{_EXAMPLE}{before}>>> x.{name}({call}"
