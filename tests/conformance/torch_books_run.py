"""One program of a book under one library: what each of its cells comes to.

    python torch_books_run.py MODE SECONDS PROGRAM [ARGUMENT ...]

PROGRAM is a script, a notebook, or a page of the d2l book, whose cells are run in turn.
MODE ``same`` lets both libraries draw the same numbers and compares; ``time`` leaves
them as they are and measures. What is trained is stopped after some steps: a loss that
says ``backward()`` ends one. Prints a line of JSON for each cell.
"""

import ast
import contextlib
import io
import json
import linecache
import os
import re
import sys
import time
import types
from pathlib import Path

import numpy as np

STEPS = {"same": 4, "time": 40}  # of one cell
BATCH = {"same": 8, "time": 32}  # examples of one batch, at most
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d*(?:e[+-]?\d+)?(?![\w.])")
OF_TIME = re.compile(r"\bsec|\d ?m?s\b|second|time|memory|lantern|version|0x", re.I)


class EnoughError(BaseException):
    """What was trained has taken enough steps."""


class Watch:
    """Counts steps, notes losses and the processor time between them.

    Args:
        torch: the library.
        steps: that a cell may take.
        seconds: that a cell may take, once there are seven steps.
    """

    def __init__(self, torch, steps, seconds):
        self.steps, self.seconds = steps, seconds
        self.start()
        back = torch.Tensor.backward

        def backward(x, *args, **options):
            back(x, *args, **options)
            self.note(x)

        torch.Tensor.backward = backward

    def start(self):
        """Begin with a cell."""
        self.losses, self.ends = [], []

    def note(self, loss):
        """A step has been taken."""
        if not self.ends:
            self.began = time.perf_counter()
        self.ends.append(time.process_time())
        self.losses.append(float(loss.detach().sum()))
        n, passed = len(self.losses), time.perf_counter() - self.began
        if n >= self.steps or (n > 6 and passed > self.seconds):
            raise EnoughError

    def times(self):
        """Of the steps after the first two."""
        return np.diff(self.ends[1:]).tolist()


def parts(path):
    """A program's cells: of a page, those of PyTorch."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        found = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    else:
        found = []
        for part in re.findall(r"^```\{\.python.*?\n(.*?)^```", text, re.M | re.S):
            tab = re.search(r"^(?:%%|#@)tab (.*)", part, re.M)
            if tab and re.search("pytorch|all", tab[1]):
                found.append(part)
    return [re.sub(r"^\s*[%!].*|^tab\.interact.*", "", c, flags=re.M) for c in found]


def shown(code, space, name):
    """Run a cell, and print what its last line is."""
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    tree = ast.parse(code, name)
    last = (
        tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    )
    exec(compile(tree, name, "exec"), space)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        if value is not None:
            print(repr(value))


def outcome(run, watch):
    """What a cell comes to."""
    watch.start()
    said, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(said):
            run()
    except EnoughError:
        pass
    except (Exception, SystemExit) as e:
        if not isinstance(e, SystemExit) or e.code:
            error = f"{type(e).__name__}: {e}".splitlines()[0][:300]
            if "TRACE" in os.environ:
                raise
    lines = [s for s in said.getvalue().splitlines() if not OF_TIME.search(s)]
    numbers = [float(x) for s in lines for x in NUMBER.findall(s)]
    values = {"error": error, "losses": watch.losses, "numbers": numbers}
    return values | {"times": watch.times()}


def whole(path):
    """Run a script."""
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.modules["__main__"] = module
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))


class Tab:
    """What the d2l book's pages ask for which library they are."""

    def selected(self, *names):
        """Whether PyTorch is among them."""
        return "pytorch" in names


def main():
    """Run one program."""
    mode, seconds, program, *args = sys.argv[1:]
    path = Path(program).resolve()
    sys.argv, out = [str(path), *args], sys.stdout
    from torch_books_surroundings import surround

    sys.path.insert(0, str(path.parent))
    torch = surround(mode == "same", BATCH[mode])
    watch = Watch(torch, STEPS[mode], float(seconds))
    if path.suffix == ".py":
        runs = [lambda: whole(path)]
    else:
        space = vars(types.ModuleType("__main__")) | {"tab": Tab()}
        runs = [
            lambda code=code, i=i: shown(code, space, f"cell {i}")
            for i, code in enumerate(parts(path))
        ]
    for run in runs:
        print(json.dumps(outcome(run, watch)), file=out, flush=True)


if __name__ == "__main__":
    main()
