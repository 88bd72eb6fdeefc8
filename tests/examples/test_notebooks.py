"""The notebooks run from top to bottom, print what they say, test their solutions."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2] / "examples" / "notebooks"
TWINS = sorted(HOME.glob("[0-9][0-9]_*.py"))


def build_is_possible():
    for package in ("jupytext", "nbclient", "ipykernel"):
        pytest.importorskip(package, reason="the extra 'notebooks'")
    pytest.importorskip("matplotlib", reason="the extra 'viz'")


def run(*command):
    return subprocess.run(
        [sys.executable, *map(str, command)],
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
        build_is_possible()
        result = run(HOME / "build.py", "--check", twin.stem)
        assert result.returncode == 0, result.stdout + result.stderr
        assert re.fullmatch(rf"{twin.stem}: in step, \d+ s\n", result.stdout)

    def test_it_is_listed_and_begins_with_a_question(self, twin):
        assert f"]({twin.stem}.ipynb)" in (HOME / "README.md").read_text("utf-8")
        title, _, rest = source(cells(twin)[0]).partition("\n")
        assert title.startswith(f"# {twin.stem[:2]} ")
        assert "?" in rest, "the question of the chapter"

    def test_it_ends_with_what_to_remember_and_leads_on(self, twin):
        last = cells(twin)[-1]
        assert last["cell_type"] == "markdown"
        assert source(last).startswith("## What to remember\n\n- ")
        following = [*TWINS, None][TWINS.index(twin) + 1]
        assert following is None or f"({following.stem}.ipynb)" in source(last)

    def test_there_is_something_to_look_at(self, twin):
        outputs = [x for cell in cells(twin) for x in cell.get("outputs", ())]
        kinds = {kind for x in outputs for kind in x.get("data", ())}
        assert kinds & {"image/png", "image/svg+xml", "text/html"}

    def test_code_in_the_text_is_run_in_a_cell(self, twin):
        """Line by line, comments aside: an exercise's code is in its solution."""

        def lines(text):
            return {x.partition("#")[0].strip() for x in text.splitlines()}

        parts = {"code": "", "markdown": ""}
        for cell in cells(twin):
            parts[cell["cell_type"]] += source(cell) + "\n"
        blocks = re.findall(r"^```python\n(.*?)^```$", parts["markdown"], re.S | re.M)
        assert lines("".join(blocks)) <= lines(parts["code"]) | {""}
        assert "```" not in re.sub(
            r"^```python\n.*?^```$", "", parts["markdown"], flags=re.S | re.M
        )

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


FAULTS = {
    "a cell": (".py", "Exercise 1", "Exercise 7", "not those of the twin"),
    "an output": (".ipynb", '"160"', '"161"', "'161', '', []]\n"),
    "a code cell's result": (".py", "program(3, lambda", "program(4, lambda", "cells"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_out_of_step_is_found(fault, tmp_path):
    build_is_possible()
    kind, old, new, words = FAULTS[fault]
    for path in (HOME / "build.py", *HOME.glob("01_*")):
        text = path.read_text("utf-8")
        if path.suffix == kind and path.name != "build.py":
            assert old in text
            text = text.replace(old, new)
        (tmp_path / path.name).write_text(text, "utf-8")
    result = run(tmp_path / "build.py", "--check")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "out of step" in result.stdout
    assert words in result.stdout


def test_the_film_is_that_of_the_player():
    image = pytest.importorskip("PIL.Image", reason="the extra 'viz'")
    from lantern import viz

    player = viz.trace(lambda x: 2 * x + x * x * x, 3.0).play()
    with image.open(HOME / "who_waits_where.gif") as film:
        assert film.n_frames == player.steps
    moving = (HOME / "who_waits_where.svg").read_text("utf-8")
    assert moving.count("@keyframes") > player.steps


def test_the_lectures_name_sections_that_are_there():
    text = (HOME.parents[1] / "docs" / "teaching.md").read_text("utf-8")
    named = re.findall(r'\b(\d\d), (?:to )?"([^"]+)"', text)
    assert len(named) > 5
    for number, section in named:
        twin = next(x for x in TWINS if x.name.startswith(number))
        assert f"# ## {section}\n" in twin.read_text("utf-8"), (number, section)


def test_lectures_take_fifty_minutes():
    text = (HOME.parents[1] / "docs" / "teaching.md").read_text("utf-8")
    lectures = text.split("\n## Lecture ")[1:]
    assert len(lectures) == 4
    for lecture in lectures:
        spans = re.findall(r"^\| (\d+)–(\d+) \|", lecture, re.M)
        ends = ["0", *(end for _, end in spans)]
        assert [begin for begin, _ in spans] == ends[:-1]
        assert ends[-1] == "50"
        assert "### What students usually get wrong" in lecture
        assert "**To set.**" in lecture


def test_slides_begin_at_headings_and_keep_solutions_back(tmp_path):
    build_is_possible()
    pytest.importorskip("nbconvert", reason="the extra 'notebooks'")
    (twin,) = HOME.glob("04_*.py")
    result = run(HOME / "build.py", "--slides", tmp_path, "04")
    assert result.returncode == 0, result.stderr
    page = (tmp_path / f"{twin.stem}.html").read_text("utf-8")
    sources = map(source, (x for x in cells(twin) if x["cell_type"] == "markdown"))
    headings = sum(text.startswith("#") for text in sources)
    assert page.count("<section><section>") == headings
    given = [cell for cell in cells(twin) if cell not in with_tag(twin, "solution")]
    names = functions(with_tag(twin, "solution")) - functions(given)
    assert names
    text = re.sub(r"<[^>]*>", "", page)
    assert not any(f"def {name}(" in text for name in names)


def functions(cells):
    return {x for cell in cells for x in re.findall(r"^def (\w+)", source(cell), re.M)}
