"""Operations of nodes: an operator, a method, or a function of a namespace.

The only file that gives an operation's name its meaning. The meaning is Python's own:
constants are folded, types are found and programs are interpreted (``interpret.py``)
by calling the same operator or function on plain values.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from lantern.core.namespace import common_namespace
from lantern.errors import StagingError
from lantern.staging.ir import BailOutError, Node, constant, current, emit
from lantern.staging.types import BOOL, FLOAT, INT, Type, type_of

__all__ = ["OPERATORS", "Hole", "Options", "apply", "compute", "evaluate", "filled"]


def _put(x: Any, value: Any, index: Any) -> Any:
    """A copy of an array with other elements at an index."""
    x = x.copy()
    x[index] = value
    return x


def _add_at(x: Any, value: Any, index: Any) -> Any:
    """A copy of an array with something added at an index, as often as it is named."""
    x = x.copy()
    common_namespace(x).add.at(x, index, value)
    return x


def _exactly(x: Any) -> float:
    """An int as a float, if it is one."""
    if not -_EXACT_TO <= x <= _EXACT_TO:
        raise BailOutError
    return float(x)


_EXACT_TO = 2**53
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
    "negative": operator.neg,
    "positive": operator.pos,
    "abs": abs,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "invert": operator.invert,
    "not": operator.not_,
    "put": _put,
    "add_at": _add_at,
    "item": operator.getitem,
    "is_none": lambda x: x is None,
    "is_nothing": lambda record: record is None,
    "is_exactly": lambda x, cls: type(x) is cls,
    "loosened": _exactly,
    "whole": lambda x, is_int: _exactly(x + 0.0) if is_int else x,
    "plain_float": float,
    "stopped": operator.pos,
    "to_float": float,
    "to_int": int,
    "round_to_int": round,
    "round_to": round,
    "fsum": lambda *xs: math.fsum(xs),
}
_PREDICATES = frozenset(
    "less less_equal greater greater_equal equal not_equal not is_none".split()
)
# What gives numbers of one type for all numbers of some types.
_BY_TYPES = _PREDICATES | frozenset(
    "add subtract multiply divide negative positive sin cos tan exp tanh".split()
)
# What gives an int for ints.
_EXACT = frozenset(
    "add subtract multiply negative positive abs floor_divide remainder pow".split()
)
# What is something else for an int than for the float that it is.
_OTHER_FOR_INTS = frozenset("pow select sign relu".split())
# Numbers inside most domains, to see of what type a function's result is.
_SAMPLES = {FLOAT: (0.7, 1.7), INT: (2, 1), BOOL: (True, True)}


class Hole(NamedTuple):
    """Where an input stands among the arguments of an operation."""

    place: int


class Options(NamedTuple):
    """The arguments of an operation, with holes for what is staged."""

    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...] = ()


def compute(op: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Any:
    """What an operation gives for plain values."""
    args = tuple(args)
    if op in OPERATORS:
        return OPERATORS[op](*args)
    if op[0] == ".":
        return getattr(args[0], op[1:])(*args[1:], **kwargs)
    if op[0] == "@":
        return getattr(args[0], op[1:])
    if op.startswith("math."):
        return getattr(math, op[5:])(*args)
    op = op.removeprefix("numpy.")
    if op == "apply":
        return args[0](*args[1:], **kwargs)
    space = common_namespace(*_numbers(args), *_numbers(kwargs.values()))
    return attrgetter(op)(space)(*args, **kwargs)


def _numbers(args: Iterable[Any]) -> list[Any]:
    found = []
    for x in args:
        if isinstance(x, list | tuple):
            found += _numbers(x)
        elif type_of(x) is not None:
            found.append(x)
    return found


def evaluate(op: str, static: Any, values: Iterable[Any]) -> Any:
    """What a node gives for the values of its inputs."""
    if type(static) is not Options:
        return compute(op, values, {})
    values = list(values)
    args = tuple(filled(x, values) for x in static.args)
    return compute(op, args, {name: filled(x, values) for name, x in static.kwargs})


def filled(x: Any, values: list[Any]) -> Any:
    """An argument with values in its holes."""
    kind = type(x)
    if kind is Hole:
        return values[x.place]
    if kind is list or kind is tuple:
        return kind([filled(y, values) for y in x])
    if kind is slice:
        return slice(*(filled(y, values) for y in (x.start, x.stop, x.step)))
    return x


def apply(op: str, inputs: tuple[Node, ...], static: Any = ()) -> Any:
    """The node, or the nodes, of an operation; a plain value if that is known now."""
    if op in _PLAINEST and _are_plain(op, *inputs):
        return emit(op, inputs, FLOAT)
    constants, numbers, loose = True, True, False
    for node in inputs:
        constants = constants and node.op == "constant"
        numbers = numbers and (node.type is FLOAT or node.type.is_number)
        loose = loose or node.loose
    off = current.off
    if not off or "fold" not in off:
        if constants:
            folded = _folded(op, inputs, static)
            if folded is not None:
                return folded
        simpler = _simpler(op, inputs)
        if simpler is not None:
            return simpler
    if op in _CHOOSING and numbers:
        chosen = inputs[op == "where" :]
        if loose or len({node.type for node in chosen}) > 1:
            return _one_of(op, inputs[: -len(chosen)], chosen)
    example = None
    if numbers:
        if op in _BY_TYPES and static == ():
            type_ = _type_by_types(op, *[node.type for node in inputs])
        else:
            type_ = _type_on_numbers(op, inputs, static)
    else:
        example = evaluate(op, static, [_example(node) for node in inputs])
        if isinstance(example, tuple) and example and all(map(type_of, example)):
            return _several(op, inputs, static, example)
        known = type_of(example)
        if known is None:
            return example  # something about types or shapes
        type_ = known
    node = emit(op, inputs, type_, static, example=example)
    return _perhaps_whole(op, inputs, node) if loose else node


_CHOOSING = frozenset({"where", "maximum", "minimum", "clip"})


def _one_of(op: str, test: tuple[Node, ...], nodes: tuple[Node, ...]) -> Node:
    """One of numbers of several types: a float that may be an int of Python's."""
    types = [node.type for node in nodes]
    is_seen = current.blocks[-1].keeps  # on the way back nobody asks for its type
    if BOOL in types and is_seen:
        raise StagingError(f"{op}: of a bool and another number. Give them one type.")
    floats = [x if x.type is FLOAT else apply("loosened", (x,)) for x in nodes]
    node = emit(op, (*test, *floats), FLOAT)
    if is_seen:
        node.loose = True
        flags = [x for x in map(_whether_int, nodes) if x is not None]
        if test and len(flags) == len(nodes):
            is_true = apply("not_equal", (*test, constant(0, INT)))
            node.flag = apply("where", (is_true, *flags))
    return node


def _whether_int(x: Node) -> Node | None:
    """What says whether a number is an int of Python's, if anything does."""
    return x.flag if x.loose else constant(x.type is INT, BOOL)


_PLAINEST = frozenset({"add", "subtract", "multiply"})


def _are_plain(op: str, x: Node, y: Node) -> bool:
    """Whether two operands are floats of which nothing is known that simplifies."""
    if x.type is not FLOAT or y.type is not FLOAT or x.loose or y.loose:
        return False
    if x.op == "constant":
        return y.op != "constant" and (op != "multiply" or not _is_one(x))
    return y.op != "constant" or op != "multiply" or not _is_one(y)


def _perhaps_whole(op: str, inputs: tuple[Node, ...], node: Node) -> Node:
    """What an operation gives for numbers some of which may be ints."""
    if op in _OTHER_FOR_INTS and current.blocks[-1].keeps:  # not on the way back
        raise StagingError(
            f"{op}: of a number that is an int on one way and a float on another it is "
            f"not staged. Write 0.0 for 0."
        )
    if op not in _EXACT or not all(x.loose or x.type is INT for x in inputs):
        return node
    loose = [x for x in inputs if x.loose]
    if any(x.flag is None for x in loose):
        node.loose = True
        return node
    flag = loose[0].flag
    assert flag is not None  # as has just been asked
    for x in loose[1:]:
        assert x.flag is not None
        flag = apply("and", (flag, x.flag))
    found = emit("whole", (node, flag), FLOAT)
    found.loose, found.flag = True, flag
    return found


def _several(op: str, inputs: tuple[Node, ...], static: Any, examples: Any) -> Any:
    types = [type_of(x) or FLOAT for x in examples]
    whole = emit(op, inputs, Type("several"), static, example=examples)
    parts = zip(types, examples, strict=True)
    return tuple(
        emit("part", (whole,), t, i, example=x) for i, (t, x) in enumerate(parts)
    )


def _example(node: Node) -> Any:
    if node.example is not None:
        return node.example
    if node.op == "constant":
        return node.static.value
    return _SAMPLES[node.type][0]


def _folded(op: str, inputs: tuple[Node, ...], static: Any) -> Node | None:
    """The constant that an operation on constants gives; None if it raises."""
    try:
        z = evaluate(op, static, [node.static.value for node in inputs])
    except Exception:  # whatever it is, it is raised when the program runs
        return None
    known = type_of(z)
    return constant(z, known) if known is not None and known.is_number else None


@cache
def _type_by_types(op: str, *types: Type) -> Type:
    """The type of what an operation gives for numbers of some types, whichever."""
    if op not in _PREDICATES and {*types} == {FLOAT}:
        return FLOAT
    return _type_on_numbers(op, tuple([Node("parameter", (), (), t) for t in types]))


def _type_on_numbers(op: str, inputs: tuple[Node, ...], static: Any = ()) -> Type:
    types = [node.type for node in inputs]
    if op in _PREDICATES:
        return BOOL
    if op == "pow" and FLOAT not in types and inputs[1].op != "constant":
        raise StagingError(
            f"{op}: an int to the power of an int that is known only when the program "
            f"runs may be an int or a float. Use a float."
        )
    for k in (0, 1):
        sample = [
            x.static.value if x.op == "constant" else _SAMPLES[x.type][k]
            for x in inputs
        ]
        try:
            known = type_of(evaluate(op, static, sample))
        except (ArithmeticError, ValueError):
            continue
        if known is not None:
            return known
    if op in ("divide", "remainder", "floor_divide"):
        return FLOAT if op == "divide" or FLOAT in types else INT
    raise StagingError(
        f"{op}: no type can be found for its result on {', '.join(map(str, types))}. "
        f"Compute it outside of the staged program."
    )


def _is_one(node: Node) -> bool:
    if node.op != "constant":
        return False
    x = node.static.value
    return type(x) in (float, int) and x == 1


def _simpler(op: str, inputs: tuple[Node, ...]) -> Node | None:
    """The operand that an operation gives back as it is, exactly.

    Where cotangents keep their order, it is another value, with a cotangent of its own.
    """
    if current.is_ordered and op != "to_float":
        return None
    if len(inputs) == 1:
        x = inputs[0]
        if op == "negative" and x.op == "negative" and x.type is FLOAT:
            return x.inputs[0]
        if op == "positive" and x.type in (FLOAT, INT):
            return x
        return x if op == "to_float" and x.type is FLOAT else None
    if len(inputs) != 2:
        return None
    x, y = inputs
    if x.loose or y.loose:  # the result is a float in any case
        return None
    if op in ("multiply", "divide") and x.type is FLOAT and _is_one(y):
        return x
    return y if op == "multiply" and y.type is FLOAT and _is_one(x) else None
