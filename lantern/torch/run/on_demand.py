"""Packages whose rest is imported when one of its names is asked for."""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from lantern.torch.run.aliases import Path, missing

__all__ = ["on_demand"]


def on_demand(
    package: str,
    paths: Iterable[str] = (),
    made: Callable[[str], Any] | None = None,
    known: Iterable[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package that imports the rest late.

    A name that it does not have yet is made, or is a module of its own, or stands in
    its module ``seldom``, all of whose names it has then.

    Args:
        package: its name.
        paths: modules of its own that it shows.
        made: what a known name stands for.
        known: the names of all that can be made.

    Example:
        >>> import lantern.torch as torch
        >>> "Conv2d" in dir(torch.nn), torch.nn.Conv2d(1, 2, 3).out_channels
        (True, 2)
    """
    names, known, paths = vars(sys.modules[package]), frozenset(known), frozenset(paths)

    def find(name: str) -> Any:
        if name == "__all__":  # which ``import *`` asks for
            return [n for n in listed() if n[0] != "_" and is_shown(n)]
        if made is not None and name in known:
            return names.setdefault(name, made(name))
        if name[:2] != "__":
            part = _part(f"{package}.{name}", names["__path__"])
            if part is not None:
                return part
            take_rest()
        if name in names:
            return names[name]
        what = f"module '{package.removeprefix('lantern.')}'"
        raise missing(what, name, names, known, paths)

    def take_rest() -> None:
        for name, x in vars(import_module(f"{package}.seldom")).items():
            if name[0] != "_":
                names.setdefault(name, x)

    def is_shown(name: str) -> bool:
        return name in paths or not isinstance(names.get(name), ModuleType)

    def listed() -> list[str]:
        take_rest()
        return sorted({*names, *known, *paths})

    return find, listed


def _part(path: str, folders: Any) -> ModuleType | None:
    """The module of a path that has a file in one of a package's folders."""
    found = sys.modules.get(path)
    if found is None and PathFinder.find_spec(path, folders):
        found = import_module(path)
    return None if isinstance(found, Path) else found
