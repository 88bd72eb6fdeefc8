"""Books and their programs, as they are, under PyTorch and under ``lantern.torch``.

    python tests/conformance/torch_books.py FOLDER [BOOK ...] [--pairs N] [--write]

FOLDER holds checkouts of the books' repositories, by their names, and what else they
import in ``site``. Each program is run with small batches and made-up data; what it
learns is stopped after some steps. All draws are the same under both, and so losses and
numbers printed agree within 1 %. Then what trains is run as it is, in turns: the
processor time of PyTorch's steps divided by ours, the median of the pairs. What was
found is kept in FOLDER/found.json, and not measured again. ``--write`` puts it into
docs/torch_scripts.md.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import mean, median

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "torch_scripts.md"
BEGIN, END = "<!-- books: begin -->", "<!-- books: end -->"
LIMIT, SECONDS = 300, 5  # that a program, and what trains in one cell, may take
MINGPT = "--model.model_type=gpt-mini --data.block_size=64".split()
# Each book's repository and its programs: patterns of files, each with its arguments.
BOOKS = {
    "d2l-en": [("chapter_*/*.md", [])],
    "LLMs-from-scratch": [
        ("*/01_main-chapter-code/*.ipynb", []),
        ("ch0[234]/0[2-8]*/*.ipynb", []),
        ("ch04/*/gpt_with*.py", []),
        ("ch05/01*/gpt_train.py", []),
        ("ch05/10*/0[01]*.py", []),
        ("ch05/*/standalone*.ipynb", []),
        ("ch06/01*/gpt_class_finetune.py", ["--test_mode"]),
        ("ch07/01*/gpt_instruction_finetuning.py", ["--test_mode"]),
        ("ch07/04*/dpo*.ipynb", []),
    ],
    "minGPT": [
        ("projects/chargpt/chargpt.py", MINGPT),
        ("projects/adder/adder.py", []),
        ("demo.ipynb", []),
    ],
    "makemore": [
        ("makemore.py", ["-i", "../../makemore/names.txt", "--type", kind])
        for kind in "transformer bigram mlp rnn gru bow".split()
    ],
    "annotated_deep_learning_paper_implementations": [("labml_nn/**/*.py", [])],
    "examples": [
        ("mnist/main.py", ["--epochs=1"]),
        ("mnist_forward_forward/main.py", ["--epochs=1"]),
        ("mnist_rnn/main.py", ["--epochs=1"]),
        ("vae/main.py", ["--epochs=1"]),
        ("regression/main.py", []),
        ("siamese_network/main.py", ["--epochs=1"]),
        ("dcgan/main.py", ["--dataset=fake", "--niter=1", "--workers=0"]),
    ],
}
PATHS = (
    "d2l-en minGPT annotated_deep_learning_paper_implementations "
    "LLMs-from-scratch/pkg site"
)


def programs(folder, book):
    """A book's programs that train or show tensors, with their arguments."""
    for pattern, args in BOOKS[book]:
        for path in sorted((folder / book).glob(pattern)):
            text = path.read_text(encoding="utf-8")
            starts = path.suffix != ".py" or "__main__" in text
            if "torch" in text and starts:
                yield path, args


def cells(folder, mine, mode, path, args):
    """What a program's cells come to under one library."""
    where = folder / "runs" / ("ours" if mine else "theirs")
    where.mkdir(parents=True, exist_ok=True)
    paths = [ROOT, HERE, *(folder.resolve() / p for p in PATHS.split())]
    surroundings = {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    surroundings |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    surroundings |= {"PYTHONHASHSEED": "0"}
    surroundings |= {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    under = ["-m", "lantern.torch"] if mine else []
    run = [str(HERE / "torch_books_run.py"), mode, str(SECONDS), str(path.resolve())]
    command = [sys.executable, *under, *run, *args]
    options = {"env": os.environ | surroundings, "cwd": where, "text": True}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=LIMIT, check=False, **options
        )
    except subprocess.TimeoutExpired:
        return [{"error": f"more than {LIMIT} s", "losses": [], "numbers": []}]
    return [json.loads(s) for s in done.stdout.splitlines() if s.startswith('{"error')]


def differs(mine, theirs):
    """Whether numbers are not the same within 1 %."""
    if len(mine) != len(theirs):
        return True
    pairs = zip(mine, theirs, strict=True)
    return any(not abs(a - b) <= 0.01 * max(abs(b), 0.1) and a == a for a, b in pairs)


def compared(mine, theirs):
    """What came of a program, and of which cell if not all are the same."""
    known = [(i, t) for i, t in enumerate(theirs) if not t["error"]]
    if not known:
        return f"not under PyTorch: {theirs[0]['error'] if theirs else 'ends at once'}"
    for i, t in known:
        m = mine[i] if i < len(mine) else {"error": "ends"}
        if m["error"]:
            return f"stops: {m['error']}"
        if differs(m["losses"], t["losses"]):
            return "other losses"
    if any(differs(mine[i]["numbers"], t["numbers"]) for i, t in known):
        return "runs"
    return "same"


def step(found):
    """The mean time of a step, in what has at least three of them."""
    times = [t for cell in found for t in cell.get("times", [])]
    return mean(times) if len(times) > 2 else None


def ratio(folder, pairs, path, args):
    """PyTorch's time for a step divided by ours, in turns."""
    found = []
    for _ in range(pairs):
        theirs, mine = (
            step(cells(folder, m, "time", path, args)) for m in (False, True)
        )
        if not theirs or not mine:
            return None
        found.append(theirs / mine)
    return median(found) if found else None


def named(folder, book):
    """A book's programs by their names."""
    for path, args in programs(folder, book):
        name = str(path.relative_to(folder / book))
        yield name + (" " + args[-1] if book == "makemore" else ""), path, args


def measured(folder, pairs, path, args):
    """A program's outcome and its speed, where it trains."""
    theirs, mine = (cells(folder, m, "same", path, args) for m in (False, True))
    out = compared(mine, theirs)
    trains = out in ("same", "runs") and any(t["losses"] for t in theirs)
    return out, ratio(folder, pairs, path, args) if trains else None


def speeds_of(rows):
    """How fast the programs of some rows are."""
    speeds = [s for _, s in rows if s]
    if not speeds:
        return "not measured"
    return f"{median(speeds):.2f} ({min(speeds):.2f} to {max(speeds):.2f})"


def table(found):
    """Lines for the page."""
    lines = ["| book | same | run | stop or differ | not under PyTorch | speed |"]
    lines += ["|---|---|---|---|---|---|"]
    for book, rows in found.items():
        outs = [out.partition(":")[0] for out, _ in rows.values()]
        same, runs, none = map(outs.count, ("same", "runs", "not under PyTorch"))
        rest = len(rows) - same - runs - none
        speed = speeds_of(rows.values())
        lines.append(f"| {book} | {same} | {runs} | {rest} | {none} | {speed} |")
    rows = [(f"{b}, {n}", *row) for b, all in found.items() for n, row in all.items()]
    speeds = [s for *_, s in rows if s]
    if speeds:
        below = sum(s < 0.5 for s in speeds)
        lines += ["", f"Of {len(speeds)} that were timed, the median is "]
        lines[-1] += f"{median(speeds):.2f}, and {below} are below 0.5."
    good = ("same", "runs", "not under PyTorch")
    rest = [row for row in rows if row[1].partition(":")[0] not in good]
    lines += [""] * bool(rest) + [f"* {name}: {out}" for name, out, _ in rest]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the checkouts' place")
    parser.add_argument("books", nargs="*", help="some books only")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    folder, kept = given.folder.resolve(), given.folder / "found.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    for book in given.books or BOOKS:
        rows = found.setdefault(book, {})
        for name, path, args in named(folder, book):
            if name not in rows:
                rows[name] = measured(folder, given.pairs, path, args)
                print(book, name, *rows[name], sep=" | ", flush=True)
                kept.write_text(json.dumps(found, indent=1))
    text = "\n".join(table(found))
    print(text)
    if given.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
