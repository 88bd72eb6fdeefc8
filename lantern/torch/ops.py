"""Operations by the names of their libraries: ``torch.ops``."""

import importlib
from typing import Any

from lantern.errors import MissingExtraError, MissingRuleError
from lantern.torch import asking
from lantern.torch.autograd.profiler import record_function
from lantern.torch.library import OPERATIONS, OwnOp
from lantern.torch.of_libraries.files import of_file

__all__ = ["load_library"]


def _enter(name: str, args: Any = None) -> record_function:
    """Begin a block that has a name."""
    block = record_function(name, args)
    block.__enter__()
    return block


OPERATIONS["profiler::_record_function_enter"] = _enter
OPERATIONS["profiler::_record_function_enter_new"] = _enter
OPERATIONS["profiler::_record_function_exit"] = record_function.__exit__


class Operation:
    """An operation with all its forms: ``torch.ops.aten.add.Tensor`` is one."""

    def __init__(self, name: str, function: Any) -> None:
        self.name, self.function = name, function
        self.__name__ = name.rpartition(":")[2]

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What it computes, or what its arguments make of it."""
        found = asking.asked((*args, *options.values())) if asking.is_armed() else ()
        if found:
            return asking.handled(self, list(found), args, options)
        return self.function(*args, **options)

    def __getattr__(self, name: str) -> Any:
        """One form of it; all compute the same."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def __repr__(self) -> str:
        return self.name.replace("::", ".")


class OfLibrary:
    """The operations of one library."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        """One of them."""
        full = f"{self.name}::{name}"
        function = OPERATIONS.get(full)
        if function is None and self.name == "aten":
            function = _of_pytorch(name) or _absent(full)
        if function is None:
            raise AttributeError(
                f"'_OpNamespace' '{self.name}' object has no attribute '{name}'"
            )
        return Operation(full, function)


def _absent(name: str) -> Any:
    """An operation that can be named, as libraries do in tables, but not called."""

    def refuse(*args: Any, **options: Any) -> Any:
        raise MissingRuleError(f"{name}: PyTorch's inner operation is not here.")

    return refuse


def _of_pytorch(name: str) -> Any:
    """A function of PyTorch's by its inner name; None for one that is not here."""
    for path in ("", ".nn.functional", ".special", ".linalg"):
        part = importlib.import_module(f"lantern.torch{path}")
        for word in (name, name.removeprefix("_").removeprefix("native_")):
            try:
                return getattr(part, word)
            except AttributeError:
                continue
    return None


def load_library(path: Any) -> None:
    """Make a library's operations known: torchvision's and torchaudio's, written anew.

    Args:
        path: the file.

    Raises:
        ImportError: for another one, as for a file that cannot be loaded: compiled code
            is for PyTorch itself.
    """
    operations = of_file(path)
    if not operations:
        raise MissingExtraError(
            f"torch.ops.load_library: {path} is for PyTorch itself. Use a version of "
            "the library that is Python alone."
        )
    for name, function in operations.items():
        OwnOp(name, function)


def __getattr__(name: str) -> OfLibrary:
    """The operations of a library."""
    if name.startswith(("__", "pytest")):  # which pytest looks for in every module
        raise AttributeError(name)
    return OfLibrary(name)
