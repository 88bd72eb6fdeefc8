"""Object files brought into memory: by ourselves, or else by LLVM's linker."""

import platform
import struct
import sys

import pytest

import lantern
from lantern.staging.native import engine, loader
from lantern.staging.native.engine import is_available
from tests.staging.test_jit import PROGRAMS, TREES, built

pytestmark = pytest.mark.skipif(
    not is_available() or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="only object files of Linux on x86-64 are placed",
)


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch):
    monkeypatch.setenv("LANTERN_JIT_CACHE", "off")


@pytest.fixture
def seen(monkeypatch):
    """The files that were to be placed, and whether they were."""
    found = []

    def placed(code, address_of):
        names = loader.placed(code, address_of)
        found.append((code, names is not None))
        return names

    monkeypatch.setattr(engine, "placed", placed)
    return found


def results(level, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", level)
    found = [lantern.jit(lantern.grad(f))(*PROGRAMS[f][0]) for f in PROGRAMS]
    for f, make in TREES.values():
        found.append(lantern.jit(lantern.grad(f))(1.1, built(3, make)))
    return found


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_placed_code_gives_what_linked_code_gives(level, seen, monkeypatch):
    placed = results(level, monkeypatch)
    assert len(seen) >= len(placed)
    assert all(is_placed for _, is_placed in seen)
    monkeypatch.setattr(engine, "placed", lambda code, address_of: None)
    assert results(level, monkeypatch) == placed


def test_spaces_come_when_they_are_needed(seen, monkeypatch):
    monkeypatch.setattr(loader, "SPACE", 1 << 15)
    monkeypatch.setattr(loader, "_spaces", [])
    first = results("O0", monkeypatch)
    assert all(is_placed for _, is_placed in seen)
    assert len(loader._spaces) > 1
    monkeypatch.undo()
    assert results("O0", monkeypatch) == first


def an_object(seen, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O0")
    lantern.jit(lantern.grad(lantern.sin))(0.5)
    return seen[0][0]


def relocated(code):
    """The file with a relocation that is none of those that are known."""
    start, count = struct.unpack_from("<Q", code, 40)[0], code[60]
    sections = struct.iter_unpack("<IIQQQQIIQQ", code[start : start + 64 * count])
    at = next(x[4] for x in sections if x[1] == 4)
    return code[: at + 8] + b"\x17" + code[at + 9 :]


CHANGES = {
    "another format": lambda code: b"MZ" + code[2:],
    "another processor": lambda code: code[:18] + b"\xb7\0" + code[20:],
    "cut off": lambda code: code[:-8],
    "a name that nobody knows": lambda code: code.replace(
        b"_FromDouble", b"_FromTriple"
    ),
    "another relocation": relocated,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_known_is_left_to_the_linker(change, seen, monkeypatch):
    code = an_object(seen, monkeypatch)
    assert loader.placed(code, engine.address_of) is not None
    changed = CHANGES[change](code)
    assert changed != code
    assert loader.placed(changed, engine.address_of) is None


def test_a_system_that_gives_no_such_memory(seen, monkeypatch):
    code = an_object(seen, monkeypatch)

    def refused(*args):
        raise PermissionError

    monkeypatch.setattr(loader, "_spaces", [])
    monkeypatch.setattr(loader.mmap, "mmap", refused)
    assert loader.placed(code, engine.address_of) is None
