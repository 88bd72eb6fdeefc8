"""What ``help`` shows of functions and methods: PyTorch's parameters, by its names."""

import ast
import inspect
import pydoc
from collections import defaultdict
from operator import attrgetter
from pathlib import Path

import pytest

import lantern.torch as ours

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

PARTS = "", "Tensor", "fft", "linalg", "nn.functional", "special"
# Which take anything, as PyTorch's do.
FREE = {"": {"compile"}, "Tensor": {"to"}}
# What has no effect here, so that not every function says it takes it.
UNSEEN = {"device", "implicit", "layout", "memory_format", "pin_memory"}
# As PyTorch's pages have it, where its stubs call something otherwise; and less than
# PyTorch takes (norms that are former), the number before the tensor (polygamma), a
# word of Python's (uniform_).
OTHERWISE = {
    "": "cholesky_inverse cholesky_solve lu_solve resize_as_ result_type tensor "
    "set_num_interop_threads set_num_threads unsafe_split frobenius_norm nuclear_norm",
    "Tensor": "cholesky_solve copy_ is_pinned map_ new new_tensor polygamma polygamma_ "
    "requires_grad_ resize_as_ to uniform_",
}
STUBS = Path(theirs.__file__).parent / "_C"


def stated():
    """What the stubs of PyTorch say: by name, the parameters of each way to call it."""
    functions = ast.parse((STUBS / "_VariableFunctions.pyi").read_text("utf-8")).body
    body = ast.parse((STUBS / "__init__.pyi").read_text("utf-8")).body
    methods = next(n for n in body if getattr(n, "name", "") == "TensorBase").body
    for path, nodes in (("", functions), ("Tensor", methods)):
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                yield (path, node.name), node.args


WAYS = defaultdict(list)
for _key, _way in stated():
    WAYS[_key].append(_way)


def of(torch, path):
    return attrgetter(path)(torch) if path else torch


def functions(path):
    for name, function in sorted(vars(of(ours, path)).items()):
        if name[0] != "_" and inspect.isfunction(function):
            rows = list(inspect.signature(function).parameters.values())
            if hasattr(of(theirs, path), name):
                yield name, rows[1:] if path == "Tensor" else rows


@pytest.mark.parametrize("path", PARTS)
def test_no_parameter_hides(path):
    """A star stands for lengths, tensors, axes: for what may be there many times."""
    hidden = {
        name
        for name, rows in functions(path)
        if any(p.kind is p.VAR_KEYWORD or p.name == "args" for p in rows)
    }
    assert hidden == FREE.get(path, set())


@pytest.mark.parametrize("path", ["", "Tensor"])
def test_parameters_are_those_that_pytorch_states(path):
    """In one of the ways at least in which PyTorch's function may be called."""
    compared = {name: rows for name, rows in functions(path) if WAYS[path, name]}
    assert len(compared) > 400
    others = {name for name, rows in compared.items() if not fits(path, name, rows)}
    assert others == set(OTHERWISE[path].split())


def fits(path, name, rows):
    names = {p.name for p in rows}
    places = [p.name for p in rows if p.kind is p.POSITIONAL_OR_KEYWORD]
    free = name.endswith("split") or any(p.kind is p.VAR_POSITIONAL for p in rows)
    unseen = UNSEEN | ({"out"} if path == "Tensor" else set())
    for way in WAYS[path, name]:
        other = [a.arg for a in (*way.posonlyargs, *way.args) if a.arg != "self"]
        same = {*other} <= names if free else places[: len(other)] == other
        if same and {a.arg for a in way.kwonlyargs} <= names | unseen:
            return True
    return False


def test_help_of_a_function_that_a_table_made():
    assert str(inspect.signature(ours.sin)) == "(input, *, out=None)"
    assert str(inspect.signature(ours.Tensor.clamp_)) == "(input, min=None, max=None)"
    assert "sin(input, *, out=None)\n    The sine" in pydoc.plain(
        pydoc.render_doc(ours.sin)
    )
