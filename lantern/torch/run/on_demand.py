"""Packages whose rest is imported when one of its names is asked for."""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from lantern.torch.run.aliases import Path, missing

__all__ = ["on_demand"]


class Incomplete(ModuleType):
    """A package that has not imported all: it does when someone looks through it.

    Many libraries do (``vars(torch.nn)``, ``torch.nn.__dict__["Conv2d"]``).
    """

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return _names(self)["__complete__"]()


def on_demand(
    package: str,
    paths: Iterable[str] = (),
    made: Callable[[str], Any] | None = None,
    known: Iterable[str] = (),
) -> None:
    """Let a package import its rest late, which then is as if it had been there.

    A name that it does not have yet is made, or is a module of its own, or stands in
    its module ``seldom``, all of whose names it has then.

    Args:
        package: its name.
        paths: modules of its own that it shows.
        made: what a known name stands for.
        known: the names of all that can be made.

    Example:
        >>> import lantern.torch as torch
        >>> "Conv2d" in vars(torch.nn), torch.nn.Conv2d(1, 2, 3).out_channels
        (True, 2)
    """
    module = sys.modules[package]
    names, known, paths = vars(module), frozenset(known), frozenset(paths)

    def find(name: str) -> Any:
        if name == "__all__":  # which ``import *`` asks for
            return [n for n in listed() if n[0] != "_" and is_shown(n)]
        if made is not None and name in known:
            return names.setdefault(name, made(name))
        if name[:2] != "__":
            part = _part(f"{package}.{name}", names["__path__"])
            if part is not None:
                return part
            complete()
        if name in names:
            return names[name]
        what = f"module '{package.removeprefix('lantern.')}'"
        raise missing(what, name, names, paths)

    def complete() -> dict[str, Any]:
        for name, x in vars(import_module(f"{package}.seldom")).items():
            if name[0] != "_":
                names.setdefault(name, x)
        if made is not None:
            for name in known:
                names.setdefault(name, made(name))
        module.__class__ = ModuleType  # as which its names are found faster
        return names

    def is_shown(name: str) -> bool:
        return name in paths or not isinstance(names.get(name), ModuleType)

    def listed() -> list[str]:
        return sorted({*complete(), *paths})

    names.update(__getattr__=find, __dir__=listed, __complete__=complete)
    module.__class__ = Incomplete


_names: Any = vars(ModuleType)["__dict__"].__get__


def _part(path: str, folders: Any) -> ModuleType | None:
    """The module of a path that has a file in one of a package's folders."""
    found = sys.modules.get(path)
    if isinstance(found, Path) or not (found or PathFinder.find_spec(path, folders)):
        return None
    return import_module(path)  # which waits if another thread is importing it
