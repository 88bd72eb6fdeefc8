"""What mypy and pyright say of users' programs, by the stubs of tables of names."""

import ast
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lantern
from tests.checkers.programs import PROGRAMS
from tests.checkers.stubs import MODULES, ROOT

pytestmark = pytest.mark.timeout(600)  # checkers read the whole library

WRONG = {
    (name, number)
    for name, program in PROGRAMS.items()
    for number, line in enumerate(program.splitlines(), 1)
    if line.endswith("# wrong")
}


def test_stubs_are_as_the_command_makes_them():
    """In a process of its own, where no test has imported anything twice."""
    done = run(ROOT.parent, sys.executable, "-m", "tests.checkers.stubs", "--check")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", "run python -m tests.checkers.stubs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The programs, a file for each."""
    folder = tmp_path_factory.mktemp("programs")
    for name, program in PROGRAMS.items():
        (folder / f"{name.replace(' ', '_')}.py").write_text(program, encoding="utf-8")
    return folder


def run(folder, *command):
    paths = {"MYPYPATH": str(ROOT.parent), "PYTHONPATH": str(ROOT.parent)}
    return subprocess.run(
        command, cwd=folder, env=os.environ | paths, capture_output=True, text=True
    )


def faults(found):
    """Files and lines as the programs' names and lines."""
    return {(Path(file).stem.replace("_", " "), line) for file, line in found}


@pytest.mark.slow
def test_mypy_finds_fault_with_the_wrong_lines_alone(folder):
    (folder / "mypy.ini").write_text("[mypy]\n")
    # Of the library, installed as it is for a user, a checker says nothing.
    options = "strict no-warn-return-any follow-imports=silent ignore-missing-imports"
    options = [f"--{option}" for option in options.split()]
    done = run(folder, sys.executable, "-m", "mypy", *options, ".")
    found = re.findall(r"^(.*?):(\d+): error", done.stdout, re.MULTILINE)
    assert faults((f, int(n)) for f, n in found) == WRONG, done.stdout


@pytest.mark.slow
def test_pyright_finds_fault_with_the_wrong_lines_alone(folder):
    pyright = shutil.which("pyright") or shutil.which(
        "pyright", path=str(Path(sys.executable).parent)
    )
    if pyright is None:
        pytest.skip("pyright is not installed; it needs node")
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(ROOT.parent)], "reportMissingImports": False})
    )
    done = run(folder, pyright, "--outputjson", "--pythonpath", sys.executable, ".")
    found = [
        (x["file"], x["range"]["start"]["line"] + 1)
        for x in json.loads(done.stdout)["generalDiagnostics"]
        if x["severity"] == "error"
    ]
    assert faults(found) == WRONG


def test_help_shows_what_an_operation_gives_and_not_the_rule():
    assert str(inspect.signature(lantern.sin)) == "(x: Any, /) -> Any"


@pytest.mark.parametrize("module", MODULES)
def test_a_stub_has_the_names_of_its_module(module):
    module = importlib.import_module(module)
    path = Path(module.__file__).with_suffix(".pyi")
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
        else:
            names.add(getattr(node, "name", "") or ast.unparse(node.target))
    missing = set(getattr(module, "__all__", ())) - names
    assert not missing
