"""What waits for an import: parts of packages, and work that other libraries ask for.

The only file that watches what a program imports.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["late_parts", "once_imported"]


def late_parts(package: str, names: str) -> Callable[[str], ModuleType]:
    """The ``__getattr__`` of a package that imports modules when they are asked for.

    Args:
        package: its name.
        names: of the modules, in a row.
    """
    parts = frozenset(names.split())

    def find(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


def once_imported(name: str, action: Callable[[Any], None]) -> None:
    """Call a function with a module: now, or as soon as the program imports it.

    Example:
        >>> _ = sys.modules.pop("colorsys", None)
        >>> once_imported("colorsys", lambda module: print("here is", module.__name__))
        >>> import colorsys
        here is colorsys
        >>> once_imported("colorsys", lambda module: print("it was here"))
        it was here
    """
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, Watch(name, action))


class Watch:
    """Asked first for every import; finds the module with all others, once."""

    __slots__ = ("action", "name")

    def __init__(self, name: str, action: Callable[[Any], None]) -> None:
        self.name, self.action = name, action

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's own specification; loaded, it is given to the function."""
        if name != self.name:
            return None
        from importlib.util import find_spec  # it takes its time, and may not be needed

        sys.meta_path.remove(self)
        spec: Any = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader, self.action)
        return spec


class Loader:
    """Loads as another loader does, and then calls a function."""

    def __init__(self, loader: Any, action: Callable[[Any], None]) -> None:
        self.loader, self.action = loader, action

    def create_module(self, spec: ModuleSpec) -> Any:
        """As the other does."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the other does; then whoever waits for the module has it."""
        spec: Any = module.__spec__
        spec.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.action(module)
