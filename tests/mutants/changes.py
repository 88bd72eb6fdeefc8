"""What a mutant is: one change of one file, small enough to look right."""

import ast
import copy
import functools
import itertools
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).parents[2]
# What is mutated.
ROOMS = (
    "lantern/cps",
    "lantern/core",
    "lantern/transforms/reverse.py",
    "lantern/transforms/forward.py",
    "lantern/transforms/recorded.py",
    "lantern/tensor/accumulate",
)
FILES = [
    str(file.relative_to(HOME))
    for room in ROOMS
    for file in (
        [HOME / room] if room.endswith(".py") else sorted(HOME.glob(f"{room}/*.py"))
    )
]
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


class Mutant(NamedTuple):
    """A change of a file.

    Attributes:
        path: the file.
        index: which of the file's changes it is.
        line: where it is.
        statement: the first line of the statement around it.
        function: whether it is in a function, and so no part of what an import runs.
        words: what it says.
    """

    path: str
    index: int
    line: int
    statement: int
    function: bool
    words: str

    @property
    def text(self):
        """The line as it stands in the file."""
        return (HOME / self.path).read_text().splitlines()[self.line - 1].strip()

    @property
    def number(self):
        """How many changes on its line come before it and read like it."""
        before = mutants(self.path)[: self.index]
        return sum(m[2:] == self[2:] for m in before)


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
        case ast.Return(value=value) if value is not None and not _is_nothing(value):
            yield "returns None", _set("value", ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign():
            yield "left out", None
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield "left out", None


def _is_nothing(node):
    """Whether an expression is None, or False, which is as much to who asks."""
    return isinstance(node, ast.Constant) and node.value in (None, False)


def _set(name, value):
    return lambda node: setattr(node, name, copy.deepcopy(value))


def _walk(node, inside_raise=False, statement=0, function=False):
    """Nodes that may be mutated, in the order of the text, and what is around them."""
    if isinstance(node, ast.FunctionDef) and _is_left_alone(node):
        return
    if isinstance(node, ast.stmt):
        statement = node.lineno
    yield node, inside_raise, statement, function
    inside_raise = inside_raise or isinstance(node, ast.Raise)
    defines = isinstance(node, ast.FunctionDef | ast.Lambda)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                within = function or (defines and name == "body")
                yield from _walk(child, inside_raise, statement, within)


def _is_left_alone(function):
    """Whether a function is for people's eyes, or abstract and never called."""
    match function.body:
        case [*_, ast.Expr(value=ast.Constant(value=value))] if value is ...:
            return True
        case [ast.Expr(), ast.Raise(exc=ast.Name(id="NotImplementedError"))]:
            return True
    return function.name == "__repr__"


@functools.cache
def parsed(path):
    """The syntax tree of a file."""
    return ast.parse((HOME / path).read_text())


@functools.cache
def mutants(path):
    """Every mutant of a file."""
    cases = (
        (node.lineno, statement, function, words)
        for node, inside_raise, statement, function in _walk(parsed(path))
        for words, _ in _changes(node, inside_raise)
    )
    return [Mutant(path, i, *case) for i, case in enumerate(cases)]


def mutated(path, index):
    """The syntax tree of a file with one change."""
    tree = copy.deepcopy(parsed(path))
    cases = (
        (node, change)
        for node, inside_raise, *_ in _walk(tree)
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
