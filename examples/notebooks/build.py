"""The notebooks, made from their twins: a script in cells in, an executed notebook out.

The twin (``NN_name.py``, jupytext's percent format) is what people edit and review; the
notebook beside it is this script's work. What is out of step, ``--check`` says.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 60  # for a whole notebook
LARGEST = 150_000  # bytes of one picture
VARIES = "varies"  # the tag of a cell whose text differs from run to run

Notebook = Any


def twins(names: list[str]) -> list[Path]:
    """Return the twins whose names begin as one of ``names``; all, if there is none."""
    found = sorted(HERE.glob("[0-9][0-9]_*.py"))
    for name in names:
        if not any(path.name.startswith(Path(name).stem) for path in found):
            sys.exit(f"build.py: no notebook is called {name}. See {HERE}.")
    stems = tuple(Path(name).stem for name in names)
    return [path for path in found if not stems or path.name.startswith(stems)]


def read(twin: Path) -> Notebook:
    """Return the twin as a notebook without outputs, the same bits every time."""
    notebook = jupytext.read(twin)
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    for i, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{i:02d}"
    return notebook


def execute(notebook: Notebook) -> Notebook:
    """Run a notebook from top to bottom in a kernel of its own."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["PYTHONHASHSEED"] = "0"
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # times are steadier beside other load
    os.environ.pop("MPLBACKEND", None)  # so that pictures are drawn in the notebook
    end = time.monotonic() + SECONDS
    client = NotebookClient(
        notebook,
        timeout_func=lambda cell: max(1, round(end - time.monotonic())),
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(HERE)}},
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [tidy(output) for output in joined(cell.outputs)]
    return notebook


def joined(outputs: list[Any]) -> Iterator[Any]:
    """Neighbouring pieces of one stream as one: they arrive cut at random."""
    last: Any = None
    for output in outputs:
        same = last is not None and last.get("name", "") == output.get("name")
        if same and output.output_type == "stream":
            last.text += output.text
            continue
        if last is not None:
            yield last
        last = output
    if last is not None:
        yield last


def tidy(output: Any) -> Any:
    """An output without what changes from run to run: addresses and processes."""
    if "text" in output:
        output.text = stable(output.text)
    for kind, content in output.get("data", {}).items():
        if kind.startswith("text/"):
            output.data[kind] = stable(content)
    return output


def stable(text: str) -> str:
    """A text in which addresses in memory and files of a kernel are all alike."""
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", text)
    return re.sub(r"[^\s\"'<>]*ipykernel_\d+[/\\]\d+\.py", "the notebook", text)


def source(cell: Any) -> tuple[Any, ...]:
    """What a cell is, outputs aside."""
    metadata = {k: cell.metadata[k] for k in sorted(cell.metadata)}
    return cell.cell_type, cell.source, metadata


def text(cell: Any) -> list[Any]:
    """What a cell has printed and shown, and of which kinds its pictures are."""
    if VARIES in cell.metadata.get("tags", ()):
        return []
    shown: list[Any] = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        pictures = sorted(kind for kind in data if kind != "text/plain")
        shown.append(output.get("text", data.get("text/plain")))
        shown.append(around(data.get("text/html", "")))
        shown.append(pictures)
    return shown


def around(page: str) -> str:
    """What stands around a drawing: its lines depend on the version of Matplotlib."""
    return re.sub(r"<svg.*</svg>|lantern-[0-9a-f]{12}", "", page, flags=re.DOTALL)


def differences(twin: Path) -> Iterator[str]:
    """What is out of step between a twin, its notebook, and what its cells do."""
    path = twin.with_suffix(".ipynb")
    if not path.exists():
        yield "it has not been built"
        return
    stored, fresh = nbformat.read(path, as_version=4), read(twin)
    if list(map(source, stored.cells)) != list(map(source, fresh.cells)):
        yield "its cells are not those of the twin"
        return
    for old, new in zip(stored.cells, execute(fresh).cells, strict=True):
        if text(old) != text(new):
            yield f"{old.source!r}\n  has {text(old)}\n  but gives {text(new)}"
    for size in picture_sizes(stored):
        if size > LARGEST:
            yield f"a picture of {size} bytes is larger than {LARGEST}"


def picture_sizes(notebook: Notebook) -> Iterator[int]:
    """How many bytes each output that is no plain text takes."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            yield from (len(data[kind]) for kind in data if kind != "text/plain")


def slides(notebook: Notebook) -> str:
    """A built notebook as a page of slides for a lecture, without the solutions.

    A heading begins a slide, text behind code one below it.
    """
    try:
        from nbconvert import SlidesExporter
    except ImportError:
        sys.exit('build.py: slides need nbconvert. Install ".[notebooks]".')
    last = ""
    for cell in notebook.cells:
        kind = "-"
        if cell.cell_type == "markdown":
            kind = "subslide" if last == "code" else "-"
            kind = "slide" if cell.source.startswith("#") else kind
        if "solution" in cell.metadata.get("tags", ()):
            kind = "skip"
        cell.metadata["slideshow"] = {"slide_type": kind}
        last = cell.cell_type
    exporter = SlidesExporter(reveal_scroll=True, reveal_number="c/t")
    page: str = exporter.from_notebook_node(notebook)[0]
    return page


def main() -> int:
    """Build or check; return 0 if all is well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="01, 02, …; all if there is none")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; say what is out of step"
    )
    parser.add_argument(
        "--slides", type=Path, metavar="FOLDER", help="write slides there instead"
    )
    options = parser.parse_args()
    wrong = 0
    for twin in twins(options.names):
        begin = time.monotonic()
        if options.slides:
            options.slides.mkdir(parents=True, exist_ok=True)
            page = options.slides / f"{twin.stem}.html"
            built = nbformat.read(twin.with_suffix(".ipynb"), as_version=4)
            page.write_text(slides(built), encoding="utf-8")
            print(f"{page}: {page.stat().st_size:,} bytes")
            continue
        if options.check:
            found = list(differences(twin))
            wrong += bool(found)
            state = "out of step" if found else "in step"
            print(f"{twin.stem}: {state}, {time.monotonic() - begin:.0f} s")
            for difference in found:
                print(f"- {difference}")
            continue
        notebook = execute(read(twin))
        nbformat.write(notebook, twin.with_suffix(".ipynb"))
        largest = max(picture_sizes(notebook), default=0)
        seconds = f"{time.monotonic() - begin:.0f} s"
        print(f"{twin.stem}: built in {seconds}, largest picture {largest:,} bytes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
