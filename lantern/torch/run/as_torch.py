"""The only file that puts our modules in place of ``torch`` for a program."""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from lantern.torch.run.aliases import below, missing

__all__ = ["Finder", "install", "run"]

OURS = "lantern."
# A package beside PyTorch and its part, and where their names are here.
BESIDE = {
    "functorch": "lantern.torch.functorch",
    "functorch.experimental": "lantern.torch.func.batch_norms",
}


class MissingError(ModuleNotFoundError):
    """A module or a name of PyTorch's that is not here."""


def _missing(name: str) -> MissingError:
    """The error of a name such as ``torch.nn.missing``, with the nearest one."""
    parent, _, last = name.rpartition(".")
    module = sys.modules[OURS + parent]
    nearest = missing(
        "lantern.torch", last, [*dir(module), *getattr(module, "_LAZY", ())]
    )
    return MissingError(
        f"cannot import name {last!r} from {parent!r}: {nearest}", name=OURS + name
    )


class Installed(Distribution):
    """The package ``torch``, as ``importlib.metadata`` shows it."""

    def read_text(self, filename: str) -> Any:
        """Name and version."""
        from lantern.torch.version import __version__

        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        """Where a file would be: beside ours."""
        return Path(__file__).parents[1] / path


class Finder(MetaPathFinder, Loader):
    """Finds ``torch`` and its parts in ``lantern.torch``."""

    def __init__(self) -> None:
        self.specs: dict[str, Any] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The place of one of PyTorch's modules; None for any other."""
        if fullname in BESIDE:
            importlib.import_module(BESIDE[fullname])
            return ModuleSpec(fullname, self)
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        try:
            if not below(OURS + fullname):
                importlib.import_module(OURS + fullname)
        except ModuleNotFoundError as error:
            if error.name != OURS + fullname:
                raise
            raise _missing(fullname) from None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Our module, already loaded."""
        module = sys.modules[BESIDE.get(spec.name, OURS + spec.name)]
        self.specs[spec.name] = module.__spec__
        if spec.name == "torch":
            module.__name__ = "torch"  # libraries look for paths that begin so
        return module

    def find_distributions(self, context: Any = None) -> Any:
        """What libraries ask of an installed package: its version."""
        if getattr(context, "name", None) == "torch":
            yield Installed()

    def exec_module(self, module: ModuleType) -> None:
        """Give our module back what importing it under another name has changed."""
        name = module.__spec__.name if module.__spec__ else ""
        module.__spec__ = self.specs.pop(name, module.__spec__)


class Absent(MetaPathFinder):
    """The last finder: says what is nearest to a name that ``torch`` lacks."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Nothing; an error for a part of ``lantern.torch`` that nobody has found."""
        if fullname.startswith(f"{OURS}torch."):
            name = fullname.removeprefix(OURS)
            parent, _, last = name.rpartition(".")
            if last not in getattr(sys.modules[OURS + parent], "_LAZY", ()):
                raise _missing(name)
        return None


def install() -> None:
    """Let ``import torch`` find ours, in this process, from now on."""
    from lantern.torch.asking import watch

    taken = ("torch", *BESIDE)
    for name in [n for n in sys.modules if n.partition(".")[0] in taken]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder())
    sys.meta_path.append(Absent())
    watch()


def _hook(path: str, outer: Any) -> Any:
    """``sys.excepthook`` without the frames in front of the program's first one."""

    def hook(
        kind: type[BaseException], error: BaseException, frames: TracebackType | None
    ) -> None:
        while frames is not None and frames.tb_frame.f_code.co_filename != path:
            frames = frames.tb_next
        error.__traceback__ = frames
        outer(kind, error, frames)

    return hook


def run(path: str, arguments: list[str]) -> None:
    """Run a script as Python would, with ours in place of ``torch``.

    Its exit status, its traceback and ``sys.argv`` are as without us.
    """
    import os

    sys.argv = [path, *arguments]
    path = os.path.abspath(path)
    sys.path[0] = os.path.dirname(path)
    with open(path, "rb") as file:
        source = file.read()
    install()
    sys.excepthook = _hook(path, sys.excepthook)
    code: CodeType = compile(source, path, "exec", dont_inherit=True)
    main: Any = ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__
    # The module that started us lives on: what it refers to is still needed.
    main.__dict__["__lantern__"] = sys.modules["__main__"]
    sys.modules["__main__"] = main
    exec(code, main.__dict__)
