"""examples/paper.py, run as a reader would run it, and its parts one by one."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "examples" / "paper.py"

spec = importlib.util.spec_from_file_location("example_paper", PAPER)
paper = importlib.util.module_from_spec(spec)
spec.loader.exec_module(paper)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    places = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    return subprocess.run(
        [sys.executable, str(PAPER), *options],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def test_prints_a_table_with_every_row_checked():
    result = run()
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    head, *rows = result.stdout.splitlines()
    assert len(rows) == len(paper.ROWS)
    assert all(row.endswith("✓") for row in rows)
    assert len({len(row) for row in rows}) == 1, "the columns do not line up"
    assert max(map(len, [head, *rows])) <= 80
    values = [row.split()[-2] for row in rows]
    assert (values.count("29"), values.count("18")) == (8, 2)
    for where in ("5", "7", "8", "12", "13"):
        assert any(row.startswith(f"Figure {where} ") for row in rows)
    for where in ("2.4", "3.6"):
        assert any(row.startswith(f"Section {where} ") for row in rows)


def test_help():
    result = run("--help")
    assert result.returncode == 0
    assert "2x + x³" in result.stdout


@pytest.mark.parametrize(
    ("what", "gives", "derivative"),
    [row[1:] for row in paper.ROWS],
    ids=[row[1] for row in paper.ROWS],
)
def test_row(what, gives, derivative):
    expected = paper.DERIVATIVES[gives]
    assert len(paper.POINTS) > 100
    for x in paper.POINTS:
        assert derivative(x) == expected(x)


ONE_LEVEL = [
    paper.forward,
    paper.library_forward,
    paper.reverse,
    lambda f, x: paper.reverse(f, x, kind=paper.Yielding),
    paper.reverse_taped,
    paper.reverse_pure,
]


@pytest.mark.parametrize("derivative", ONE_LEVEL)
def test_used_many_times_or_once_or_twice_in_one_operation(derivative):
    assert derivative(lambda x: x * x, 3.0) == 6.0
    assert derivative(lambda x: x + x, 3.0) == 2.0
    assert derivative(lambda x: 1 * x, 3.0) == 1.0
    assert derivative(lambda x: x, 3.0) == 1.0
    assert derivative(lambda x: x * x * x * x * x, 2.0) == 80.0


@pytest.mark.parametrize("derivative", ONE_LEVEL)
def test_a_value_that_nothing_uses(derivative):
    def f(x):
        x * x + x
        return 2 * x

    assert derivative(f, 3.0) == 2.0


@pytest.mark.parametrize("derivative", ONE_LEVEL)
def test_ordinary_control_flow(derivative):
    def power(x, n):
        return 1 if n == 0 else x * power(x, n - 1)

    def halve(x):
        while getattr(x, "primal", x) > 1:
            x = x * 0.5
        return x

    assert derivative(lambda x: power(x, 4), 3.0) == 108.0
    if derivative is not paper.library_forward:  # whose values have other names
        assert derivative(halve, 6.0) == 0.125


@pytest.mark.parametrize("derivative", ONE_LEVEL)
def test_every_call_is_on_its_own(derivative):
    def f(x):
        return x * derivative(lambda y: y * y, 3.0)

    assert derivative(f, 5.0) == 6.0


def test_the_second_level_runs_generators_too():
    class Inner(paper.Yielding):
        prompt = paper.Prompt("inner")

    class Outer(paper.Yielding):
        prompt = paper.Prompt("outer")

    def slope(x):
        return paper.reverse(paper.f, x, kind=Inner)

    for x in paper.POINTS:
        assert paper.reverse(slope, x, kind=Outer) == 6 * x


def test_is_short():
    assert len(PAPER.read_text(encoding="utf-8").splitlines()) < 300
