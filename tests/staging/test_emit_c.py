"""Programs and adjoints as C: compiled by the system's compiler, they are the same."""

import ctypes
import shutil
import subprocess

import pytest

import lantern
from lantern.errors import StagingError
from lantern.staging import emit_c
from lantern.staging.dispatch import staged
from lantern.staging.structure import leaves_of
from tests.staging.random_programs import alike, outcome, program
from tests.staging.test_jit import OTHERS, PROGRAMS

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
KINDS = {"float": ctypes.c_double, "int": ctypes.c_int64, "bool": ctypes.c_bool}
needs_compiler = pytest.mark.skipif(not COMPILER, reason="there is no compiler of C")


def compiled(f, args, folder):
    """A function by way of C: the result, or None if it was left."""
    made = staged(f, args)[0]
    text = str(emit_c(f, *args))
    name = f"f{len(list(folder.iterdir()))}"  # a library is loaded once by its path
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    options = ["-std=c11", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Wall"]
    command = [COMPILER, *options, "-Werror=implicit", str(source), "-o", str(library)]
    subprocess.run([*command, "-lm"], check=True, capture_output=True)
    name = [x for x in text.splitlines() if x.startswith("int ")][-1]
    function = ctypes.CDLL(str(library))[name[4:].partition("(")[0]]
    body = made.function.body

    def call(*args):
        given = made.take_apart(args)
        try:
            given = [
                KINDS[p.type.kind](x)
                for p, x in zip(body.parameters, given, strict=True)
            ]
        except TypeError:  # it is compiled for other types
            return NotImplemented
        results = [KINDS[x.type.kind]() for x in body.results]
        if function(*given, *map(ctypes.byref, results)):
            return None
        return made.put_together([x.value for x in results])

    return call


def check(f, examples, folder):
    call = compiled(f, examples[0], folder)
    for args in examples:
        right, found = outcome(f, args), call(*args)
        if found is NotImplemented:
            continue
        if found is None:
            values = leaves_of(right) if not isinstance(right, type) else []
            values = [x for x in values if not isinstance(x, str)]
            assert not values or not all(abs(x) < 2**63 for x in values)
        elif isinstance(right, float | int):
            assert alike(found, right, 1e-12)
        else:
            assert repr(found) == repr(right)


@needs_compiler
@pytest.mark.parametrize("f", [*PROGRAMS, *OTHERS], ids=lambda f: f.__name__)
def test_values(f, tmp_path):
    check(f, {**PROGRAMS, **OTHERS}[f], tmp_path)


@needs_compiler
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_adjoints(f, tmp_path):
    check(lantern.grad(f), PROGRAMS[f], tmp_path)


@needs_compiler
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed, tmp_path):
    _, f = program(seed)
    tree = None

    def g(x, y, n):
        return f(x, y, n, tree, [0.5, x, 1.5])

    for way in (g, lantern.grad(g)):
        try:
            emit_c(way, 0.7, 0.3, 4)
        except StagingError:
            continue
        check(way, [(0.7, 0.3, 4)], tmp_path)


def test_what_walks_objects_is_an_error():
    def product(x, t):
        return x if t is None else product(x, t[0]) * product(x, t[1]) * t[2]

    with pytest.raises(StagingError, match="emit_c"):
        emit_c(product, 1.0, (None, None, 2.0))
