"""The tests are tested: one small fault at a time in the inner rooms, and who notices.

A mutant is one change of one file: a comparison turned round, a condition negated, a
statement left out, a number one more, an answer withheld. It lives in the memory of a
child that runs the tests of its room; the file stays as it is.

    python -m tests.mutants [--sample N] [--seed N] [--only WORDS] [--list]

prints the mutants that survive, and how many were killed. Those that are known to
change nothing that a program can see stand in ``HARMLESS``, with the reason.
"""

import argparse
import ast
import copy
import functools
import itertools
import os
import random
import subprocess
import sys
import time
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path

HOME = Path(__file__).parents[1]
CONTROL = "tests/cps tests/transforms/test_paper_values.py tests/control"
DERIVATIVES = (
    "tests/transforms tests/core/test_escape.py tests/core/test_exceptions.py "
    "tests/core/test_error_propagation.py tests/core/test_structures.py "
    "tests/core/test_held_results.py tests/every_op/test_short_ways.py "
    "tests/core/test_aliasing.py tests/core/test_mutation.py "
    "tests/core/test_detachment.py tests/core/test_residuals.py "
    "tests/contract/test_memory.py tests/rules/test_numbers.py "
    "tests/core/test_mutation_after_use.py tests/core/test_numpy_arguments.py "
    "tests/core/test_keys.py tests/core/test_foreign_arrays.py tests/control"
)
ARRAYS = (
    "tests/every_op/test_short_ways.py tests/tensor/test_deferred_products.py "
    "tests/transforms tests/tensor/test_dtypes.py tests/tensor/test_indexing.py "
    "tests/core/test_aliasing.py tests/core/test_error_propagation.py "
    "tests/every_op/test_every_op.py tests/rules/test_where.py tests/tensor"
)
# Files of a room whose tests stand elsewhere.
ELSEWHERE = {
    "lantern/core/scalar_functions.py": (
        "tests/rules tests/tensor/test_elementwise.py tests/scipy "
        "tests/every_op/test_every_op.py"
    ),
    "lantern/core/numpy_protocols.py": (
        "tests/core/test_foreign_arrays.py tests/tensor/test_creation.py "
        "tests/tensor/test_reductions.py tests/core/test_numpy_walk.py "
        "tests/core/test_operands.py"
    ),
}
# What is mutated, and the tests that are asked, the quickest first.
ROOMS = {
    "lantern/cps": CONTROL,
    "lantern/core": DERIVATIVES,
    "lantern/transforms/reverse.py": DERIVATIVES,
    "lantern/transforms/forward.py": DERIVATIVES,
    "lantern/transforms/recorded.py": DERIVATIVES,
    "lantern/tensor/accumulate": ARRAYS,
}
COMPARISONS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
# (file, source of the mutated line) -> why nobody can notice.
HARMLESS: dict[tuple[str, str], str] = {}


def _changes(node, inside_raise):
    """The mutants of one node: (what it says, a function that changes a copy of it)."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            new = COMPARISONS[type(op)]
            yield f"{type(op).__name__} -> {new.__name__}", _set("ops", [new()])
        case ast.BoolOp(op=op):
            new = ast.Or if isinstance(op, ast.And) else ast.And
            yield f"-> {new.__name__}", _set("op", new())
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not inside_raise:
            new = ARITHMETIC[type(op)]
            yield f"{type(op).__name__} -> {new.__name__}", _set("op", new())
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not isinstance(test, ast.Name) or test.id != "TYPE_CHECKING":
                negated = ast.UnaryOp(ast.Not(), test)
                yield "condition negated", _set("test", negated)
        case ast.Constant(value=bool(value)):
            yield f"-> {not value}", _set("value", not value)
        case ast.Constant(value=0 | 1 | 2 as value) if not inside_raise:
            yield f"-> {value + 1}", _set("value", value + 1)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield "returns None", _set("value", ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign():
            yield "left out", None
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield "left out", None


def _is_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def _set(name, value):
    return lambda node: setattr(node, name, copy.deepcopy(value))


def _walk(node, inside_raise=False):
    """Nodes that may be mutated, in the order of the text."""
    if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
        return
    yield node, inside_raise
    inside_raise = inside_raise or isinstance(node, ast.Raise)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, inside_raise)


def mutants(path):
    """(line, words) of every mutant of a file."""
    tree = ast.parse((HOME / path).read_text())
    return [
        (node.lineno, words)
        for node, inside_raise in _walk(tree)
        for words, _ in _changes(node, inside_raise)
    ]


def mutated(path, index):
    """The syntax tree of a file with one change."""
    tree = ast.parse((HOME / path).read_text())
    cases = (
        (node, change)
        for node, inside_raise in _walk(tree)
        for _, change in _changes(node, inside_raise)
    )
    node, change = next(itertools.islice(cases, index, None))
    if change is not None:
        change(node)
        return ast.fix_missing_locations(tree)

    class Leave(ast.NodeTransformer):
        def visit(self, other):
            if other is node:
                return ast.copy_location(ast.Pass(), node)
            return self.generic_visit(other)

    return ast.fix_missing_locations(Leave().visit(tree))


class Loader(SourceFileLoader):
    """Loads a file with a change in it."""

    def get_code(self, fullname):
        return compile(mutated(*_chosen()), self.path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Finds the module that is mutated."""

    def find_spec(self, name, path, target=None):
        file = _chosen()[0]
        if name != file.removesuffix(".py").removesuffix("/__init__").replace("/", "."):
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        spec.loader = Loader(name, spec.origin)
        return spec


@functools.cache
def _chosen():
    path, index = os.environ["MUTANT"].rsplit(":", 1)
    return path, int(index)


if "MUTANT" in os.environ:  # the child: pytest has been given this file as a plugin
    sys.meta_path.insert(0, Finder())


def survives(path, index, tests):
    """Whether the tests pass, although there is a fault."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0"]
    command += ["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "tests.mutants"]
    command += ["--timeout", "60", *tests.split()]
    environment = os.environ | {"MUTANT": f"{path}:{index}", "PYTHONPATH": str(HOME)}
    try:
        done = subprocess.run(
            command, env=environment, cwd=HOME, capture_output=True, timeout=600
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def all_mutants(only=""):
    """(path, index, line, words, tests) of all mutants of the rooms."""
    for room, tests in ROOMS.items():
        files = (
            [room] if room.endswith(".py") else sorted(Path(HOME, room).glob("*.py"))
        )
        for file in files:
            path = str(Path(HOME, file).relative_to(HOME))
            if only in path:
                for i, (line, words) in enumerate(mutants(path)):
                    yield path, i, line, words, ELSEWHERE.get(path, tests)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=None, help="how many, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the paths")
    parser.add_argument("--list", action="store_true", help="count them, run nothing")
    options = parser.parse_args()
    chosen = list(all_mutants(options.only))
    count = len(chosen)
    if options.sample is not None:
        random.Random(options.seed).shuffle(chosen)
        chosen = chosen[: options.sample]
    if options.list:
        print(count)
        return
    killed = harmless = 0
    for n, (path, index, line, words, tests) in enumerate(chosen, 1):
        text = (HOME / path).read_text().splitlines()[line - 1].strip()
        began = time.perf_counter()
        if (path, text) in HARMLESS:
            harmless += 1
        elif survives(path, index, tests):
            seconds = time.perf_counter() - began
            print(
                f"survives: {path}:{line} [{index}] {words}: {text} ({seconds:.0f} s)"
            )
        else:
            killed += 1
        print(f"{killed} of {n - harmless} killed", end="\r", flush=True)
    tried = len(chosen) - harmless
    print(f"{killed} of {tried} killed; {harmless} harmless; {count} mutants in all")


if __name__ == "__main__":
    main()
