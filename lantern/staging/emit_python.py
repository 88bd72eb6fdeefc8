"""Programs as Python: what was staged, or its adjoint, as source that runs.

Every value has a name and every node a line, so that what a derivative does can be
read, changed, stepped through and copied. A tape is a list with a tuple for each turn.

References:
    van Merriënboer, Moldovan and Wiltschko (2018), "Tangent".
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from keyword import iskeyword
from typing import Any

from lantern.core.tree import is_leaf
from lantern.errors import StagingError
from lantern.staging.closures import functions_of
from lantern.staging.interpret import zero_of
from lantern.staging.ir import Block, Function, Node
from lantern.staging.operations import Hole, Options
from lantern.staging.program import PLAIN, Program
from lantern.staging.staged import is_staged

__all__ = ["plain_name", "python_of"]

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "pow": "**",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "and": "&",
    "or": "|",
    "xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
}
_FORMS: dict[str, str] = {
    "negative": "-{0}",
    "positive": "+{0}",
    "abs": "abs({0})",
    "not": "not {0}",
    "invert": "~{0}",
    "is_none": "{0} is None",
    "is_nothing": "{0} is None",
    "nothing": "None",
    "size": "len({0})",
    "get_at": "{0}[{1}]",
    "loosened": "float({0})",
    "plain_float": "float({0})",
    "to_float": "float({0})",
    "to_int": "int({0})",
    "round_to_int": "round({0})",
    "round_to": "round({0}, {1})",
    "whole": "{0} + 0.0 if {1} else {0}",
}


def python_of(program: Program) -> str:
    """The source of a program, as a module with a function of its name."""
    writer = Writer(program.function)
    body = [
        line for f in writer.functions[1:] for line in (*writer.function(f), "", "")
    ]
    body += writer.main(program)
    head = ["import math", ""] if writer.uses_math else []
    if writer.uses_numbers:
        head += ["from lantern.core import scalar_functions as numbers", ""]
    return "\n".join([*head, *([""] if head else []), *body])


def plain_name(name: str) -> str:
    """The name of a function as one that may stand in a program."""
    name = "_".join(re.findall(r"\w+", name)).strip("_")
    name = re.sub("__+", "_", name)
    return f"{name}_" if not name or iskeyword(name) else name


class Writer:
    """The names and lines of one module."""

    same = frozenset({"sure", "stopped", "unbox"})
    """Operations whose value is that of their operand."""

    def __init__(self, function: Function) -> None:
        self.functions = functions_of(function)
        self.names: dict[Function, str] = {}
        for f in self.functions:
            name, n = plain_name(f.name), 1
            while name in self.names.values():
                n += 1
                name = f"{plain_name(f.name)}_{n}"
            self.names[f] = name
        self.values: dict[Node, str] = {}
        self.uses_math = self.uses_numbers = False

    def new(self, node: Node, letter: str = "v") -> str:
        """Name a node."""
        self.count += 1
        self.values[node] = f"{letter}{self.count}"
        return self.values[node]

    def value(self, node: Node) -> str:
        """A node's name; of a constant, the number."""
        if node.op == "constant":
            return self.number(node.static.value)
        return self.values[node]

    def number(self, x: Any) -> str:
        """A number as Python writes it."""
        if isinstance(x, float) and not math.isfinite(x):
            return f'float("{x}")'
        return f"({x!r})" if isinstance(x, float | int) and x < 0 else repr(x)

    def function(self, f: Function) -> Iterator[str]:
        """A function of numbers, and what it returns in a tuple."""
        self.count = 0
        names = [self.new(p, "x") for p in f.body.parameters]
        yield f"def {self.names[f]}({', '.join(names)}):"
        yield from self.block(f.body, "    ")
        results = [self.value(x) for x in f.body.results]
        yield f"    return {', '.join(results) or '()'}{',' * (len(results) == 1)}"

    def main(self, program: Program) -> Iterator[str]:
        """The function of the caller's structures."""
        self.count = 0
        f = program.function
        names = [f"a{i}" for i in range(len(program.like))]
        yield f"def {self.names[f]}({', '.join(names)}):"
        parameters = iter(f.body.parameters)
        for i, (name, like) in enumerate(zip(names, program.like, strict=True)):
            if i in program.trees:
                self.values[next(parameters)] = name
                continue
            for path, leaf in _paths(name, like):
                if type(leaf) not in PLAIN:
                    p = next(parameters)
                    if path == name:
                        self.values[p] = name
                    else:
                        yield f"    {self.new(p, 'x')} = {path}"
        yield from self.block(f.body, "    ")
        like, kept = program.result
        results = [self.value(x) for x in f.body.results]
        for i, flag in program.flags.items():
            results[i] = f"int({results[i]}) if {results[flag]} else {results[i]}"
        rest, leaves = iter(results), iter(kept)

        def written() -> str:
            x = next(leaves)
            return next(rest) if is_staged(x) else repr(x)

        yield f"    return {_structure(like, written)}"

    def block(self, block: Block, indent: str) -> Iterator[str]:
        """The lines of a block."""
        results: dict[Node, list[Node]] = {}
        for node in block.nodes:
            if node.op == "result":
                results.setdefault(node.inputs[0], []).append(node)
        start = True
        for node in block.nodes:
            if node.op in ("constant", "result"):
                continue
            start = False
            out = results.get(node, [])
            special = getattr(self, f"write_{node.op}", None)
            if node.op in self.same:
                self.values[node] = self.value(node.inputs[0])
            elif special is not None:
                yield from special(node, out, indent)
            else:
                yield f"{indent}{self.new(node)} = {self.expression(node)}"
        if start and indent != "    ":
            yield f"{indent}pass"

    def expression(self, node: Node) -> str:
        """What computes a node."""
        inputs = [self.value(x) for x in node.inputs]
        op, static = node.op, node.static
        if type(static) is Options:
            inputs = [_argument(x, inputs) for x in static.args]
            inputs += [f"{name}={_argument(x, inputs)}" for name, x in static.kwargs]
        if op in _INFIX:
            return f" {_INFIX[op]} ".join(inputs)
        if op in _FORMS:
            return _FORMS[op].format(*inputs)
        if op == "get":
            return f"{inputs[0]}[{static[0]!r}]"
        if op == "field":
            return f"{inputs[0]}.{static[0]}"
        if op == "is_exactly":
            name = "type(None)" if static is type(None) else static.__name__
            return f"type({inputs[0]}) is {name}"
        if op == "is_method":
            name, function = static
            return f"{inputs[0]}.{name}.__func__ is {function.__qualname__}"
        if op == "fsum":
            self.uses_math = True
            return f"math.fsum([{', '.join(inputs)}])"
        if op == "pack":
            return f"({', '.join(inputs)}{',' * (len(inputs) == 1)})"
        if op == "unpack":
            zero = self.number(zero_of(node))
            return f"{zero} if {inputs[0]} is None else {inputs[0]}[{static.place}]"
        name = op.removeprefix("math.").removeprefix("numpy.")
        if hasattr(math, name):
            self.uses_math = True
            return f"math.{name}({', '.join(inputs)})"
        self.uses_numbers = True
        return f"numbers.{name}({', '.join(inputs)})"

    def targets(self, out: Sequence[Node], indices: Sequence[int]) -> list[str]:
        """Names for results: what nobody needs is called _."""
        by_place = {z.static: self.new(z) for z in out}
        return [by_place.get(i, "_") for i in indices]

    def write_stop(self, node: Node, out: list[Node], indent: str) -> Iterator[str]:
        """Leave the program."""
        yield f"{indent}raise ArithmeticError({node.static!r})"

    def write_call(self, node: Node, out: list[Node], indent: str) -> Iterator[str]:
        """A call."""
        f = node.static
        names = self.targets(out, range(len(f.body.results)))
        inputs = ", ".join(self.value(x) for x in node.inputs)
        left = f"{', '.join(names)}{',' * (len(names) == 1)} = " if names else ""
        yield f"{indent}{left}{self.names[f]}({inputs})"

    def write_if(self, node: Node, out: list[Node], indent: str) -> Iterator[str]:
        """A branch: what it gives is assigned on both ways."""
        names = [(self.new(z), z.static) for z in out]
        words = (f"if {self.value(node.inputs[0])}:", "else:")
        for word, block in zip(words, node.blocks, strict=True):
            yield indent + word
            yield from self.block(block, indent + "    ")
            for name, i in names:
                yield f"{indent}    {name} = {self.value(block.results[i])}"

    def write_loop(self, node: Node, out: list[Node], indent: str) -> Iterator[str]:
        """A loop, and the tapes that its turns write."""
        header, body = node.blocks
        inner = indent + "    "
        state = [self.new(p) for p in header.parameters]
        for p, x in zip(state, node.inputs, strict=True):
            yield f"{indent}{p} = {self.value(x)}"
        tapes = self.tapes(node, len(state), out)
        yield from (f"{indent}{tape} = []" for tape in tapes)
        yield f"{indent}while True:"
        yield from self.block(header, inner)
        yield f"{inner}if not {self.value(header.results[0])}:"
        yield f"{inner}    break"
        yield from self.block(body, inner)
        yield from self.after_turn(node, state, tapes, body, inner)
        self.name_results(out, state, tapes)

    def write_back(self, node: Node, out: list[Node], indent: str) -> Iterator[str]:
        """A walk along tapes, newest turn first."""
        (block,) = node.blocks
        inner = indent + "    "
        read = node.static.read
        tapes = [self.value(x) for x in node.inputs[: len(read)]]
        slots = sum(read)
        state = [self.new(p) for p in block.parameters[slots:]]
        for p, x in zip(state, node.inputs[len(read) :], strict=True):
            yield f"{indent}{p} = {self.value(x)}"
        written = self.tapes(node, len(state), out)
        yield from (f"{indent}{tape} = []" for tape in written)
        self.count += 1
        k, start = f"k{self.count}", 0
        yield f"{indent}for {k} in reversed(range(len({tapes[0]}))):"
        for tape, n in zip(tapes, read, strict=True):
            parameters = block.parameters[start : start + n]
            names, start = [self.new(p) for p in parameters], start + n
            if not names:
                continue
            left = ", ".join(names) + "," * (n == 1)
            zeros = ", ".join(self.number(zero_of(p)) for p in parameters)
            zeros = f"({zeros}{',' * (n == 1)})"
            turn = f"{tape}[{k}]"
            if tape is not tapes[0]:
                turn = f"{zeros} if {tape} is None else {turn}"
            yield f"{inner}{left} = {turn}"
        yield from self.block(block, inner)
        yield from self.after_turn(node, state, written, block, inner)
        self.name_results(out, state, written)

    def tapes(self, node: Node, states: int, out: list[Node]) -> list[str]:
        """Names of the tapes that a node writes."""
        self.count += 1
        return [f"tape{self.count}_{j}" for j in range(len(node.static.written))]

    def after_turn(
        self, node: Node, state: list[str], tapes: list[str], body: Block, inner: str
    ) -> Iterator[str]:
        """What a turn hands on, and what it writes down."""
        values = [self.value(x) for x in body.results]
        new, saved = values[: len(state)], values[len(state) :]
        for tape, n in zip(tapes, node.static.written, strict=True):
            row, saved = saved[:n], saved[n:]
            yield f"{inner}{tape}.append(({', '.join(row)}{',' * (n == 1)}))"
        if state:
            yield f"{inner}{', '.join(state)} = {', '.join(new)}"

    def name_results(self, out: list[Node], state: list[str], tapes: list[str]) -> None:
        """The results of a loop are its variables and its tapes."""
        every = [*state, *tapes]
        for z in out:
            self.values[z] = every[z.static]


def _argument(x: Any, inputs: list[str]) -> str:
    if type(x) is Hole:
        return inputs[x.place]
    if isinstance(x, list | tuple):
        return f"[{', '.join(_argument(y, inputs) for y in x)}]"
    return repr(x)


def _paths(name: str, like: Any) -> Iterator[tuple[str, Any]]:
    """How each leaf of an argument is reached."""
    if isinstance(like, dict):
        for key, x in like.items():
            yield from _paths(f"{name}[{key!r}]", x)
    elif isinstance(like, list | tuple):
        for i, x in enumerate(like):
            yield from _paths(f"{name}[{i}]", x)
    elif is_leaf(like):
        yield name, like
    elif like is not None:
        raise StagingError(
            f"emit_python: an argument is a {type(like).__name__}. Give tuples, lists "
            f"and dicts."
        )


def _structure(like: Any, leaf: Callable[[], str]) -> str:
    """What puts a result together."""
    if isinstance(like, dict):
        pairs = [f"{key!r}: {_structure(x, leaf)}" for key, x in like.items()]
        return f"{{{', '.join(pairs)}}}"
    if type(like) is list:
        return f"[{', '.join(_structure(x, leaf) for x in like)}]"
    if isinstance(like, tuple):
        parts = [_structure(x, leaf) for x in like]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if like is None:
        return "None"
    if is_leaf(like):
        return leaf()
    raise StagingError(
        f"emit_python: the result is a {type(like).__name__}. Return tuples, lists and "
        f"dicts."
    )
