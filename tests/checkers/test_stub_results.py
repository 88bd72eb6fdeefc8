"""Functions give what their stubs say, in every example that is shown."""

import ast
import doctest
import importlib
import inspect
import io
from contextlib import redirect_stdout
from types import SimpleNamespace

import pytest

import lantern.torch as torch
from tests.checkers.stubs import ROOT

KINDS = {
    "Tensor": torch.Tensor,
    "_bool": bool,
    "_int": int,
    "_str": str,
    "_tuple": tuple,
    "_list": list,
    "return_types": tuple,
}
PARSER = doctest.DocTestParser()


def stated(module):
    """Functions of a module's stub, and what it says that they give."""
    path = ROOT.joinpath(*module.split(".")[1:], "__init__.pyi")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name[-1] != "_":
            kind = ast.unparse(node.returns).partition("[")[0].partition(".")[0]
            if kind in KINDS:
                yield node.name, KINDS[kind]


class Watched:
    """A module, one of whose functions is watched."""

    def __init__(self, module, name, given):
        self.module, self.name, self.given = module, name, given

    def __getattr__(self, name):
        x = getattr(self.module, name)
        return self.watch if name == self.name else x

    def watch(self, *args, **options):
        z = getattr(self.module, self.name)(*args, **options)
        self.given.append(z)
        return z


class Over:
    """A module with some of its parts replaced."""

    def __init__(self, module, parts):
        self.__dict__.update(parts, module=module)

    def __getattr__(self, name):
        return getattr(self.module, name)


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        pytest.param(path, name, kind, id=f"{path}.{name}")
        for path in (
            "lantern.torch",
            "lantern.torch.linalg",
            "lantern.torch.nn.functional",
        )
        for name, kind in stated(path)
    ],
)
def test_a_function_gives_what_its_stub_says(path, name, kind):
    module, given = importlib.import_module(path), []
    text = inspect.getdoc(getattr(module, name)) or ""
    watched = Watched(module, name, given)
    scope = {"torch": watched, "F": watched, **vars(module), name: watched.watch}
    if path != "lantern.torch":
        nn = SimpleNamespace(functional=watched)
        scope["torch"] = Over(torch, {"linalg": watched, "nn": nn})
    with redirect_stdout(io.StringIO()):
        for example in PARSER.get_examples(text):
            if not example.source.startswith(("import lantern", "from lantern")):
                try:
                    exec(compile(example.source, name, "single"), scope)
                except Exception:
                    if example.exc_msg is None:
                        raise
    assert all(isinstance(z, kind) for z in given), [type(z) for z in given]
