"""Books and their programs, as they are, under PyTorch and under ``lantern.torch``.

    python tests/conformance/torch_books.py FOLDER [BOOK ...] [--again] [--write]

FOLDER holds checkouts of the books' repositories, by their names, and what else they
import in ``site``. Each program is run with small batches and made-up data; what it
learns is stopped after some steps. All draws are the same under both, and so losses and
numbers printed agree within 1 %; what has other losses is run once more in double
precision, where steps that make small differences large leave them small. Then the
first that trains in a program is run as it is, in turns: the processor time of its
steps under PyTorch divided by ours, the median of the pairs. What was found is kept in
FOLDER/found.json, and not measured again but with ``--again``; what PyTorch came to is
kept in FOLDER/theirs.json. ``--write`` puts the table into docs/torch_scripts.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean, median

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "torch_scripts.md"
BEGIN, END = "<!-- books: begin -->", "<!-- books: end -->"
# Seconds of a processor that a program may take under PyTorch, and under Lantern; and
# those that a loop that trains may.
LIMITS, SECONDS = (60, 180), 3
SPACE = {"PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0"} | {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")
}
DOUBLE = "same in double precision"
GOOD = ("same", DOUBLE, "runs", "not under PyTorch")
MINGPT = "--model.model_type=gpt-mini --data.block_size=64".split()
FEW = "--n_layers=2 --max_new_tokens=40".split()
WIKI = "--epochs=1 --data={book}/word_language_model/data/wikitext-2".split()
# Each book's repository and its programs: patterns of files, each with its arguments.
BOOKS = {
    "d2l-en": [("chapter_*/*.md", [])],
    "LLMs-from-scratch": [
        ("*/01_main-chapter-code/*.ipynb", []),
        ("ch0[234]/0[2-8]*/*.ipynb", []),
        ("ch04/03*/gpt_with*.py", []),
        *((f"ch04/{n}*/gpt_with*.py", FEW) for n in "04 05 06 07".split()),
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
        ("makemore.py", ["-i", "{book}/names.txt", "--type", kind])
        for kind in "transformer bigram mlp rnn gru bow".split()
    ],
    "annotated_deep_learning_paper_implementations": [("labml_nn/**/*.py", [])],
    "examples": [
        ("mnist/main.py", ["--epochs=1"]),
        ("mnist_forward_forward/main.py", ["--epochs=3"]),
        ("mnist_rnn/main.py", ["--epochs=1"]),
        ("vae/main.py", ["--epochs=1"]),
        ("regression/main.py", []),
        ("siamese_network/main.py", ["--epochs=1"]),
        ("dcgan/main.py", ["--dataset=fake", "--niter=1", "--workers=0"]),
        ("reinforcement_learning/*.py", []),
        ("time_sequence_prediction/*.py", []),
        *(
            ("word_language_model/main.py", [*WIKI, "--model", kind])
            for kind in "RNN_TANH LSTM GRU Transformer".split()
        ),
        ("gcn/main.py", ["--epochs=1"]),
        ("gat/main.py", ["--epochs=1"]),
        ("fx/*.py", []),
    ],
}
PATHS = (
    "d2l-en minGPT annotated_deep_learning_paper_implementations "
    "LLMs-from-scratch/pkg site"
)


# Programs whose steps take as long as chance will have it: both draw alike.
BY_CHANCE = "reinforcement_learning"

# What is known of programs that do not come to the same.
REASONS = {
    "hybridize.md": "Lantern writes no TorchScript",
    "rcnn.md": "torchvision's own operators are compiled for PyTorch",
}


def named(folder, book):
    """A book's programs that train or show tensors: names, paths, arguments."""
    for pattern, args in BOOKS[book]:
        for path in sorted((folder / book).glob(pattern)):
            text = path.read_text(encoding="utf-8")
            starts = "**" not in pattern or "__main__" in text
            if "torch" in text and starts:
                name, given = str(path.relative_to(folder / book)), args[-2:]
                name += (
                    " " + given[1] if given[:-1] in (["--type"], ["--model"]) else ""
                )
                yield name, path, [a.format(book=folder / book) for a in args]


class Library:
    """A process that runs programs under one library.

    Args:
        folder: where the books are.
        mine: whether it is Lantern.
    """

    def __init__(self, folder, mine):
        self.folder, self.mine, self.process = folder, mine, None

    def start(self):
        """Start it."""
        paths = [ROOT, HERE, *(self.folder / p for p in PATHS.split())]
        space = {"PYTHONPATH": os.pathsep.join(map(str, paths))}
        under = ["-m", "lantern.torch"] if self.mine else []
        self.process = subprocess.Popen(
            [sys.executable, *under, str(HERE / "torch_books_run.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | SPACE | space,
            text=True,
        )

    def cells(self, mode, path, args):
        """What a program's cells come to."""
        if self.process is None:
            self.start()
        book = path.relative_to(self.folder).parts[0]
        name = "ours" if self.mine else "theirs"
        where = self.folder / "runs" / name / book / "run"
        where.mkdir(parents=True, exist_ok=True)
        task = {"path": str(path), "args": args, "where": str(where), "mode": mode}
        task |= {"seconds": SECONDS, "limit": LIMITS[self.mine]}
        print(json.dumps(task), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


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
    """The mean time of a step, but for the tenth that took longest.

    In those lies what is done once, such as an import. None for fewer than three steps.
    """
    times = sorted(t for cell in found for t in cell.get("times", []))
    usual = times[: len(times) - len(times) // 10]
    return mean(usual) if len(times) > 2 else None


def ratio(libraries, pairs, path, args):
    """PyTorch's time for a step divided by ours, in turns."""
    mode, found = "time" + " alike" * (BY_CHANCE in str(path)), []
    for _ in range(pairs):
        theirs, mine = (step(library.cells(mode, path, args)) for library in libraries)
        if not theirs or not mine:
            return None
        found.append(theirs / mine)
    return median(found) if found else None


class Kept:
    """Results by book and program in a file of JSON."""

    def __init__(self, path, again=False):
        self.path, known = path, path.exists() and not again
        self.rows = json.loads(path.read_text()) if known else {}

    def of(self, book, name, measure, *args):
        """What is known of a program; measured if it is not."""
        rows = self.rows.setdefault(book, {})
        if name not in rows:
            rows[name] = measure(*args)
            self.write()
        return rows[name]

    def write(self):
        """Keep what there is."""
        self.path.write_text(json.dumps(self.rows, indent=1))


def outcome(their, mine, theirs, path, args):
    """A program's outcome, and whether it trains."""
    worth = any(not cell["error"] for cell in theirs)
    out = compared(mine.cells("same", path, args) if worth else [], theirs)
    if out == "other losses":  # an error, or steps that make small differences large
        found = (library.cells("double", path, args) for library in (mine, their))
        out = DOUBLE if compared(*found) in ("same", "runs") else out
    trains = out in GOOD and any(cell["losses"] for cell in theirs)
    return {"out": out, "trains": trains}


def outcomes(folder, theirs, found, book):
    """Run a book's programs under Lantern, and what is not known under PyTorch."""
    their, mine = Library(folder, False), Library(folder, True)
    for name, path, args in named(folder, book):
        start = time.perf_counter()
        called = " ".join([name, *args])
        known = theirs.of(book, called, their.cells, "same", path, args)
        row = found.of(book, name, outcome, their, mine, known, path, args)
        taken = f"{time.perf_counter() - start:.0f} s"
        print(book, name, row["out"], taken, sep=" | ", flush=True)


def speeds(folder, found, pairs, book):
    """Time what trains in a book's programs."""
    libraries = Library(folder, False), Library(folder, True)
    for name, path, args in named(folder, book):
        row = found.rows[book][name]
        if row["trains"] and "speed" not in row:
            row["speed"] = ratio(libraries, pairs, path, args)
            print(book, name, row["speed"], sep=" | ", flush=True)
            found.write()


def speeds_of(rows):
    """How fast the programs of some rows are."""
    found = [row["speed"] for row in rows if row.get("speed")]
    if not found:
        return "not measured"
    return f"{median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def table(found):
    """Lines for the page."""
    lines = ["| book | same | in double precision | run | stop or differ | "]
    lines[0] += "not under PyTorch | speed |"
    lines += ["|---|---|---|---|---|---|---|"]
    for book, rows in found.items():
        outs = [row["out"].partition(":")[0] for row in rows.values()]
        same, double, runs, none = map(outs.count, GOOD)
        rest = len(rows) - same - double - runs - none
        speed = speeds_of(rows.values())
        counts = f"{same} | {double} | {runs} | {rest} | {none}"
        lines.append(f"| {book} | {counts} | {speed} |")
    rows = {f"{b}, {n}": row for b, all in found.items() for n, row in all.items()}
    timed = [row["speed"] for row in rows.values() if row.get("speed")]
    if timed:
        below = sum(s < 0.5 for s in timed)
        lines += ["", f"Of {len(timed)} that were timed, the median is "]
        lines[-1] += f"{median(timed):.2f}, and {below} are below 0.5."
    fine = set(GOOD) - {DOUBLE}
    bad = [(n, r["out"]) for n, r in rows.items() if r["out"].split(":")[0] not in fine]
    lines += [""] * bool(bad)
    for name, out in bad:
        reason = next((r for part, r in REASONS.items() if part in name), "")
        lines.append(f"* {name}: {out}" + (f" ({reason})" if reason else ""))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the checkouts' place")
    parser.add_argument("books", nargs="*", help="some books only")
    parser.add_argument("--pairs", type=int, default=1, help="0 to time nothing")
    parser.add_argument("--jobs", type=int, default=2, help="books at a time")
    parser.add_argument("--again", action="store_true", help="forget what was found")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    folder, books = given.folder.resolve(), given.books or list(BOOKS)
    theirs, found = (
        Kept(folder / "theirs.json"),
        Kept(folder / "found.json", given.again),
    )
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda b: outcomes(folder, theirs, found, b), books))
    for book in books if given.pairs else ():
        speeds(folder, found, given.pairs, book)
    text = "\n".join(table({b: found.rows[b] for b in BOOKS if b in found.rows}))
    print(text)
    if given.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
