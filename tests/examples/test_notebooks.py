"""The notebooks run from top to bottom, print what they say, test their solutions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2] / "examples" / "notebooks"
TWINS = sorted(HOME.glob("[0-9][0-9]_*.py"))


def build(*options):
    pytest.importorskip("jupytext", reason="the extra 'notebooks'")
    pytest.importorskip("nbclient", reason="the extra 'notebooks'")
    pytest.importorskip("ipykernel", reason="the extra 'notebooks'")
    pytest.importorskip("matplotlib", reason="the extra 'viz'")
    return subprocess.run(
        [sys.executable, str(HOME / "build.py"), *options],
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )


def cells(twin):
    return json.loads(twin.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]


def with_tag(twin, tag):
    return [cell for cell in cells(twin) if tag in cell["metadata"].get("tags", ())]


def source(cell):
    return "".join(cell["source"])


@pytest.mark.parametrize("twin", TWINS, ids=lambda path: path.stem)
class TestNotebook:
    def test_it_runs_and_is_in_step(self, twin):
        result = build("--check", twin.stem)
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stdout.strip() == f"{twin.stem}: in step"

    def test_it_is_listed_and_begins_with_a_question(self, twin):
        assert f"]({twin.stem}.ipynb)" in (HOME / "README.md").read_text("utf-8")
        title, _, rest = source(cells(twin)[0]).partition("\n")
        assert title.startswith(f"# {twin.stem[:2]} ")
        assert "?" in rest, "the question of the chapter"

    def test_cells_are_short(self, twin):
        for cell in cells(twin):
            assert len(source(cell).splitlines()) <= 40, source(cell)

    def test_exercises_have_solutions_that_are_hidden_and_tested(self, twin):
        exercises = sum(
            source(cell).count("**Exercise") for cell in cells(twin)
        )  # in bold, where they are set
        solutions = with_tag(twin, "solution")
        assert exercises >= 2
        assert len(solutions) == exercises
        for cell in solutions:
            assert cell["metadata"]["jupyter"] == {"source_hidden": True}
            assert "assert " in source(cell)


def test_what_is_out_of_step_is_found(tmp_path):
    pytest.importorskip("jupytext", reason="the extra 'notebooks'")
    for name in ("build.py", "01_the_rest_of_the_program.ipynb"):
        (tmp_path / name).write_bytes((HOME / name).read_bytes())
    twin = HOME / "01_the_rest_of_the_program.py"
    changed = twin.read_text("utf-8").replace("Exercise 1", "Exercise 7")
    (tmp_path / twin.name).write_text(changed, "utf-8")
    result = subprocess.run(
        [sys.executable, str(tmp_path / "build.py"), "--check"],
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )
    assert result.returncode == 1
    assert "not those of the twin" in result.stdout


def test_the_film_is_that_of_the_player():
    image = pytest.importorskip("PIL.Image", reason="the extra 'viz'")
    from lantern import viz

    player = viz.trace(lambda x: 2 * x + x * x * x, 3.0).play()
    with image.open(HOME / "who_waits_where.gif") as film:
        assert film.n_frames == player.steps
    moving = (HOME / "who_waits_where.svg").read_text("utf-8")
    assert moving.count("@keyframes") > player.steps
