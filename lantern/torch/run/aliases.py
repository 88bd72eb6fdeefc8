"""Names that lead elsewhere or nowhere: paths without a file, and missing names."""

import builtins
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from lantern.errors import MissingRuleError

__all__ = ["Path", "absent", "below", "lead", "missing", "refusing"]

Names = Iterable[str] | Callable[[], Iterable[str]]


class Path(ModuleType):
    """A path that leads to the names of another module.

    Args:
        name: its path.
        target: the module whose names are found there.
    """

    def __init__(self, name: str, target: str) -> None:
        super().__init__(name, f"What PyTorch has there stands in {target}.")
        # With an empty path, which lets paths below it be loaded.
        self.__dict__.update(target=target, __path__=[])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(self.__dict__["target"]), name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the function of the same name gives: PyTorch has both at some paths."""
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **options)


class AbsentPart(ModuleType):
    """A part of PyTorch's that can be imported, so that programs may not use it.

    Whatever is imported from it is a class that nothing is of, in the place of a class
    or a function, and says the reason when it is called. Libraries import more of such
    parts than a list could hold, and mostly for what a program does not do. But from a
    part that PyTorch itself can be built without, only what is named can be imported:
    libraries ask such a part what it has before they use it.

    Args:
        name: its path.
        reason: why it is not here.
        names: what ``import *`` takes from it, and ``dir`` shows.
        optional: whether PyTorch can be built without it.
    """

    def __init__(
        self,
        name: str,
        reason: str,
        names: Iterable[str] = (),
        optional: bool = False,
    ) -> None:
        super().__init__(name, reason)
        # With an empty path, which lets paths below it be loaded.
        own = {"__all__": sorted(names), "__path__": [], "optional": optional}
        self.__dict__.update(own)

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *self.__dict__["__all__"]}

    def __getattr__(self, name: str) -> Any:
        path = self.__name__.removeprefix("lantern.")
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self.__dict__["__all__"]:
            if name.lstrip("_").startswith("is_"):  # nothing is what is not here
                return lambda *args, **options: False
            if self.__dict__["optional"]:
                raise AttributeError(f"{path} has no {name!r}: {self.__doc__}")
        made = refusing(f"{path}.{name}", self.__doc__ or "it is not here.")
        return self.__dict__.setdefault(name, made)


class _Refusing(type):
    """The class of such classes; their members in capitals are choices, as names."""

    def __getattr__(cls, name: str) -> Any:
        if not name.isupper() or name.startswith("_"):
            raise AttributeError(
                f"{cls.__name__} has no attribute {name!r}: {cls.__doc__}"
            )
        return f"{cls.__name__}.{name}"


def refusing(path: str, reason: str) -> type:
    """A class, in the place of a class or a function, that cannot be called.

    Example:
        >>> refusing("torch.later", "it is not here.")()
        Traceback (most recent call last):
            ...
        lantern.errors.MissingRuleError: torch.later: it is not here.
    """

    def refuse(self: Any, *args: Any, **options: Any) -> None:
        raise MissingRuleError(f"{path}: {reason}")

    members = {"__init__": refuse, "__doc__": reason, "__module__": "lantern.torch"}
    return _Refusing(path.rpartition(".")[2], (), members)


def below(path: str) -> bool:
    """Whether a path leads into a part that is not here; then it can be imported.

    Args:
        path: the whole path, ``"lantern.torch.fx.experimental.rewriter"``.
    """
    parent, _, last = path.rpartition(".")
    if path not in sys.modules and parent.count(".") > 1:
        import_module(parent)
        outer = sys.modules[parent]
        if isinstance(outer, AbsentPart):
            setattr(outer, last, absent(parent, {last: outer.__doc__ or ""})[last])
    return path in sys.modules


def lead(parent: str, names: str, target: str | None = None) -> dict[str, Any]:
    """Let paths below a module lead to its own names, or to another module's.

    Args:
        parent: the module's name, which has them as attributes if it is loaded.
        names: the last words of the paths.
        target: the module whose names are found there, imported when one is asked for;
            the parent itself by default.
    """
    made: dict[str, Any] = {}
    for name in names.split():
        path = f"{parent}.{name}"
        made[name] = sys.modules.setdefault(path, Path(path, target or parent))
        known = vars(sys.modules[parent]) if parent in sys.modules else {name}
        if name not in known and not hasattr(builtins, name):  # which the module uses
            setattr(sys.modules[parent], name, made[name])
    return made


def absent(
    parent: str,
    reasons: dict[str, str],
    names: Mapping[str, str] | None = None,
    optional: bool = False,
) -> dict[str, Any]:
    """Let the parts that are not here be imported, and say why when they are used.

    Args:
        parent: the module's name.
        reasons: for each part, why it is not here; ``"fx.node"`` stands in ``fx``.
        names: for parts, what can be imported from them.
        optional: whether PyTorch can be built without them.
    """
    made: dict[str, Any] = {}
    for name, reason in reasons.items():
        path, known = f"{parent}.{name}", (names or {}).get(name, "").split()
        part = AbsentPart(path, reason, known, optional)
        made[name] = sys.modules.setdefault(path, part)
        outer, _, last = name.rpartition(".")
        if outer:
            setattr(sys.modules[f"{parent}.{outer}"], last, made[name])
    return {name: part for name, part in made.items() if "." not in name}


class Missing(str):
    """The words for a name that is not there; shown, they have the nearest that is.

    The nearest is looked for among all names, which takes milliseconds: only when
    someone reads the words, not whenever a program asks with ``hasattr``.

    Args:
        what: what does not have it.
        name: the name.
        known: names that are there, or functions that give them.
    """

    name: str
    known: tuple[Names, ...]

    def __new__(cls, what: str, name: str, *known: Names) -> "Missing":
        self = super().__new__(cls, f"{what} has no attribute {name!r}")
        self.name, self.known = name, known
        return self

    def __str__(self) -> str:
        from difflib import get_close_matches  # which few programs need

        near: list[str] = []
        if not self.name.startswith("_"):
            parts = [names() if callable(names) else names for names in self.known]
            public = [name for names in parts for name in names if name[:1] != "_"]
            near = get_close_matches(self.name, public, 1, 0.5)
        hint = f". Did you mean: {near[0]!r}?" if near else ""
        return f"{self:s}{hint}"

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> Any:
        return str, (str(self),)


def missing(what: str, name: str, *known: Names) -> AttributeError:
    """The error of a name that is not there, with the nearest one that is.

    Example:
        >>> missing("module 'torch.nn'", "Linaer", ["Linear", "_Line"])
        AttributeError("module 'torch.nn' has no attribute 'Linaer'. Did you mean: \
'Linear'?")
    """
    # With an object of its own, so that Python does not look for a name as well.
    return AttributeError(Missing(what, name, *known), obj=what)
