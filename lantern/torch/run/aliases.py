"""Names that lead elsewhere or nowhere: paths without a file, and missing names."""

import difflib
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

__all__ = ["absent", "lead", "missing"]


class Path(ModuleType):
    """A path that leads to the names of another module."""

    def __init__(self, name: str, target: ModuleType) -> None:
        super().__init__(name, f"What PyTorch has there stands in {target.__name__}.")
        # With an empty path, which lets paths below it be loaded.
        self.__dict__.update(target=target, __path__=[])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["target"], name)


class AbsentPart(ModuleType):
    """A part of PyTorch's that can be imported, so that programs may not use it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = self.__name__.removeprefix("lantern.")
        raise AttributeError(
            f"module {path!r} has no attribute {name!r}: {self.__doc__}"
        )


def lead(parent: str, names: str, target: str | None = None) -> dict[str, Any]:
    """Let paths below a module lead to its own names, or to another module's.

    Args:
        parent: the module's name; it must be loaded, or about to be.
        names: the last words of the paths.
        target: the module whose names are found there; the parent itself by default.
    """
    found = sys.modules[target or parent]
    made: dict[str, Any] = {}
    for name in names.split():
        path = f"{parent}.{name}"
        made[name] = sys.modules.setdefault(path, Path(path, found))
    return made


def absent(parent: str, reasons: dict[str, str]) -> dict[str, Any]:
    """Let the parts that are not here be imported, and say why when they are used."""
    made: dict[str, Any] = {}
    for name, reason in reasons.items():
        path = f"{parent}.{name}"
        made[name] = sys.modules.setdefault(path, AbsentPart(path, reason))
    return made


def missing(what: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error of a name that is not there, with the nearest one that is.

    Example:
        >>> missing("module 'torch.nn'", "Linaer", ["Linear", "_Line"])
        AttributeError("module 'torch.nn' has no attribute 'Linaer'. Did you mean: \
'Linear'?")
    """
    public = [] if name.startswith("_") else [n for n in known if n[:1] != "_"]
    near = difflib.get_close_matches(name, public, 1, 0.5)
    hint = f". Did you mean: {near[0]!r}?" if near else ""
    # With an object of its own, so that Python does not look for a name as well.
    return AttributeError(f"{what} has no attribute {name!r}{hint}", obj=what)
