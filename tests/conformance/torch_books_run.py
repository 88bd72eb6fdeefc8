"""Programs of books under one library: what each of their cells comes to.

A line of JSON on standard input names a program, a script, a notebook, or a page of the
d2l book, whose cells are run in turn in a process of their own; a line of JSON on
standard output says what they came to. The mode ``same`` lets both libraries draw the
same numbers and compares, ``double`` does so in double precision; ``time`` leaves them
as they are and measures, up to the first cell that trains, and so does ``time alike``
with the same numbers. Large models of notebooks have two blocks but where time counts.
What is trained is stopped after some steps: a loss that says ``backward()`` ends one.
"""

import ast
import contextlib
import io
import json
import linecache
import os
import re
import resource
import signal
import sys
import time
import traceback
import types
from pathlib import Path

import numpy as np
from torch_books_surroundings import MadeUp, prepare, surround

# Where it is compared, and where it is timed:
STEPS = 4, 40  # of one cell
BATCH = 8, 32  # examples of one batch, at most
# What large models are made of, where only numbers are compared.
SMALLER = {r'(?<="n_layers": )\d+': "2", r'(?<="vocab_size": )\d{3}_?\d{3}': "50304"}
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d*(?:e[+-]?\d+)?(?![\w.])")
ROOM, WALL = 9 << 30, 900  # bytes and seconds that a program may take at most
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


def parts(path, small):
    """A program's cells: of a page, those of PyTorch; perhaps of smaller models."""
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
    for pattern, number in SMALLER.items() if small else ():
        found = [re.sub(pattern, number, code) for code in found]
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
            traceback.print_exc()
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


def run(task, say):
    """Run one program, and say what each cell came to.

    Args:
        task: the program's path, its arguments, where it runs, the mode, the seconds
            that may be spent on what trains.
        say: a function of a cell's outcome.
    """
    path, mode = Path(task["path"]), task["mode"]
    sys.argv = [str(path), *task["args"]]
    os.chdir(task["where"])
    sys.path.insert(0, str(path.parent))
    timed = mode.startswith("time")
    torch = surround(mode != "time", BATCH[timed], mode == "double")
    MadeUp.examples *= STEPS[timed] // STEPS[False]
    watch = Watch(torch, STEPS[timed], task["seconds"])
    if path.suffix == ".py":
        runs = [lambda: whole(path)]
    else:
        space = vars(types.ModuleType("__main__")) | {"tab": Tab()}
        runs = [
            lambda code=code, i=i: shown(code, space, f"cell {i}")
            for i, code in enumerate(parts(path, not timed))
        ]
    for cell in runs:
        say(outcome(cell, watch))
        if timed and len(watch.times()) > 2:
            break


def apart(task):
    """Run one program in a process of its own: what its cells come to."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        limit = task["limit"]
        if not task["mode"].startswith("time"):  # Linux's clock would count by ticks
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (ROOM, ROOM))
        signal.alarm(WALL)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1) if "TRACE" in os.environ else (0, 1, 2):
            os.dup2(quiet, stream)
        with os.fdopen(theirs, "w") as out, contextlib.suppress(BaseException):
            run(task, lambda cell: print(json.dumps(cell), file=out, flush=True))
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as lines:
        found = [json.loads(line) for line in lines]
    ended = os.WTERMSIG(os.waitpid(child, 0)[1])
    if ended:
        late = ended in (signal.SIGXCPU, signal.SIGALRM)
        error = f"more than {task['limit']} s" if late else signal.Signals(ended).name
        found.append({"error": error, "losses": [], "numbers": [], "times": []})
    return found


def main():
    """Run the programs that standard input names."""
    prepare()
    for line in sys.stdin:
        print(json.dumps(apart(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
