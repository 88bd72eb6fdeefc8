"""Derivatives in staged programs: ``lantern.grad(f)(x)`` as a call of an adjoint."""

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import lantern
from lantern.blocks import between_turns
from lantern.errors import StagingError
from lantern.staging.adjoint import adjoint
from lantern.staging.closures import close, functions_of, substitute, used_in, walk_all
from lantern.staging.hoist import hoist
from lantern.staging.ir import Function, Node, building, current, emit, results_of
from lantern.staging.optional import settled
from lantern.staging.regions import prune
from lantern.staging.staged import Staged, is_staged, node_of, operate, staged
from lantern.staging.structure import describe, leaves_of, unflatten
from lantern.staging.tangent import pushforward
from lantern.staging.types import FLOAT, INT, NOTHING

__all__ = [
    "DERIVATIVES",
    "Call",
    "Derivative",
    "Part",
    "derivative_of",
    "floats_of",
    "staged_derivative",
    "staged_forward",
    "staged_pullback",
    "staged_pushforward",
]

_CODE = lantern.grad(abs).__code__
Call = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]
Part = tuple[int, int]
"""A leaf among arguments: which argument, and which of its leaves."""


class Derivative(NamedTuple):
    """What ``lantern.grad`` and ``lantern.value_and_grad`` were asked for."""

    f: Callable[..., Any]
    argnums: Any
    with_value: bool


def derivative_of(f: FunctionType) -> Derivative | None:
    """What a function is the derivative of; None if it is none."""
    if f.__code__ is not _CODE:
        return None
    cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
    found = {name: cell.cell_contents for name, cell in cells}
    if found["has_aux"] or found["holomorphic"] or found["driver"] != "in place":
        raise StagingError(
            f"{found['where']}: with has_aux, holomorphic or driver it is not staged."
        )
    return Derivative(found["f"], found["argnums"], found["with_value"])


def staged_derivative(
    session: Any, derivative: Derivative, args: tuple[Any, ...], call: Call
) -> Any:
    """The call of a derivative in a staged program."""
    argnums = derivative.argnums
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(type(i) is int and -len(args) <= i < len(args) for i in chosen):
        raise StagingError("grad: argnums that are no positions of arguments.")
    chosen = tuple(i % len(args) for i in chosen)
    if len(set(chosen)) < len(chosen):
        raise StagingError("grad: argnums that name an argument twice.")
    given = args
    args = tuple(_tracked(x) if i in chosen else x for i, x in enumerate(args))
    function = _staged(session, derivative.f, args, call)
    y = function.result
    if not is_staged(y) or y.node.type is not FLOAT:
        raise StagingError("grad: the function does not return one float.")
    if session.look is not None and not session.active and not session.derivatives:
        session.look(derivative, function, given)
    by = [k for k, (i, _) in enumerate(function.origins) if i in chosen]
    found = adjoint(function.function, by, derivative.with_value)
    values = _called(found, args, function)
    value = values.pop(0) if derivative.with_value else None
    parts = {}
    for i in sorted(chosen):  # as the parameters stand
        n = len(leaves_of(args[i]))
        parts[i] = unflatten(args[i], values[:n])
        del values[:n]
    gradients = tuple([parts[i] for i in chosen])
    result = gradients[0] if isinstance(argnums, int) else gradients
    return (value, result) if derivative.with_value else result


def floats_of(y: Any) -> list[Any]:
    """The leaves of a result, staged or plain, that have derivatives."""
    return [
        x
        for x in leaves_of(y)
        if type(x) is float or (is_staged(x) and x.node.type is FLOAT)
    ]


def staged_forward(session: Any, f: Any, args: tuple[Any, ...], call: Call) -> Any:
    """What f gives for arguments that a derivative tracks."""
    session.derivatives += 1
    try:
        return settled(call(session, f, args, {}))
    finally:
        session.derivatives -= 1


def staged_pullback(
    session: Any,
    f: Any,
    args: tuple[Any, ...],
    by: Sequence[Part],
    seeds: Sequence[Any],
    call: Call,
) -> tuple[Any, ...]:
    """What some leaves of the arguments receive from the results' cotangents."""
    function = _staged(session, f, args, call)
    places = [function.origins.index(part) for part in by]
    count = len(floats_of(function.result))
    if count != len(seeds):
        raise StagingError(f"vjp: {len(seeds)} cotangents for {count} results.")
    found = adjoint(function.function, places, with_value=False, seeded=True)
    return tuple(_called(found, args, function, seeds))


def staged_pushforward(
    session: Any,
    f: Any,
    args: tuple[Any, ...],
    by: Sequence[Part],
    tangents: Sequence[Any],
    call: Call,
) -> tuple[Any, tuple[Any, ...]]:
    """f's result, and the tangents of those of its leaves that are floats."""
    function = _staged(session, f, args, call)
    places = [function.origins.index(part) for part in by]
    found = pushforward(function.function, places)
    values = iter(_called(found, args, function, tangents))
    leaves = [next(values) if is_staged(x) else x for x in leaves_of(function.result)]
    return unflatten(function.result, leaves), tuple(values)


def _jvp(session: Any, call: Call, f: Any, primals: Any, tangents: Any) -> Any:
    """``lantern.jvp``."""
    if not isinstance(primals, tuple | list) or describe(primals) != describe(tangents):
        raise StagingError("jvp: tangents that are not like the primals.")
    args = tuple(_tracked(x) for x in primals)
    by = [(i, k) for i, x in enumerate(args) for k in range(len(leaves_of(x)))]
    moves = [x for t in tangents for x in leaves_of(_tracked(t))]
    y, found = staged_pushforward(session, f, args, by, moves, call)
    if len(found) != len(leaves_of(y)):
        raise StagingError("jvp: the function returns something besides floats.")
    return y, unflatten(y, list(found))


def _vjp(session: Any, call: Call, f: Any, *primals: Any) -> Any:
    """``lantern.vjp``: f's result, and a function that stages f again, and back."""
    args = tuple(map(_tracked, primals))
    by = [(i, k) for i, x in enumerate(args) for k in range(len(leaves_of(x)))]
    y = staged_forward(session, f, args, call)
    if len(floats_of(y)) != len(leaves_of(y)):
        raise StagingError("vjp: the function returns something besides floats.")

    def pullback(seed: Any) -> tuple[Any, ...]:
        if describe(seed) != describe(y):
            raise StagingError("vjp: a cotangent that is not like the result.")
        seeds = leaves_of(_tracked(seed))
        values = list(staged_pullback(session, f, args, by, seeds, call))
        return tuple(_taken(values, x) for x in args)

    pullback.__wrapped__ = f  # type: ignore[attr-defined]  # it may be called here
    return y, pullback


def _taken(values: list[Any], like: Any) -> Any:
    n = len(leaves_of(like))
    found = unflatten(like, values[:n])
    del values[:n]
    return found


def _hvp(session: Any, call: Call, f: Any, primals: Any, tangents: Any) -> Any:
    """``lantern.hvp``: forward over reverse."""
    several = isinstance(primals, tuple | list)
    points = tuple(primals) if several else (primals,)
    vectors = tuple(tangents) if several else (tangents,)
    argnums = 0 if len(points) == 1 else tuple(range(len(points)))
    gradient = lantern.grad(f, argnums=argnums)
    return _jvp(session, call, gradient, points, vectors)[1]


DERIVATIVES: dict[Any, Callable[..., Any]] = {
    lantern.jvp: _jvp,
    lantern.vjp: _vjp,
    lantern.hvp: _hvp,
}
"""The library's functions of a function and a point that are staged, by themselves."""


def _called(
    found: Function, args: Any, function: "_Staged", more: Sequence[Any] = ()
) -> list[Any]:
    """The results of a derivative of a staged function for some arguments."""
    inputs = [x.node for x in leaves_of(args) if is_staged(x)] + function.captured
    inputs += [node_of(x) for x in more]
    node = emit("call", inputs, NOTHING, found)
    return [staged(z) for z in results_of(node, found.types or ())]


def _tracked(x: Any) -> Any:
    """An argument whose every leaf is a staged float."""
    leaves = leaves_of(x)
    for i, leaf in enumerate(leaves):
        if is_staged(leaf) and leaf.node.type is INT:
            leaf = operate("to_float", leaf)
        elif type(leaf) in (float, int):
            leaf = Staged(node_of(float(leaf)))
        if not is_staged(leaf) or leaf.node.type is not FLOAT:
            raise StagingError("grad: it is staged with respect to floats alone.")
        leaves[i] = leaf
    return unflatten(x, leaves)


class _Staged(NamedTuple):
    """A function of the representation, staged for a derivative.

    Attributes:
        function: its results are the leaves of f's that are staged, and those that are
            plain floats.
        origins: for each parameter which leaf of the arguments it is.
        captured: nodes outside that are its further arguments.
        result: the structure that f returns.
    """

    function: Function
    origins: list[Part]
    captured: list[Node]
    result: Any


@between_turns
def _staged(session: Any, f: Any, args: tuple[Any, ...], call: Call) -> _Staged:
    """A function for the arguments of one call, without free variables."""
    function = Function(getattr(f, "__name__", "f"))
    functions, current.functions = current.functions, {}
    unfinished, current.unfinished = current.unfinished, []
    origins: list[Part] = []
    try:
        with building(function.body) as body:
            new = []
            for i, x in enumerate(args):
                leaves = leaves_of(x)
                for k, leaf in enumerate(leaves):
                    if is_staged(leaf):
                        node = leaf.node
                        leaves[k] = staged(body.parameter(node.type, node.example))
                        origins.append((i, k))
                x = unflatten(x, leaves)
                session.give(x)
                new.append(x)
            y = staged_forward(session, f, tuple(new), call)
            out = leaves_of(y)
            body.results = [node_of(x) for x in out if is_staged(x) or type(x) is float]
    finally:
        current.functions, current.unfinished = functions, unfinished
    if not all(x.type.is_number for x in body.results):
        raise StagingError("grad: the function returns an object of the caller's.")
    y = unflatten(y, [Staged(node_of(x)) if type(x) is float else x for x in out])
    function.types = [x.type for x in body.results]
    close(function)
    inside = walk_all(function)
    free = list(dict.fromkeys(x for x in used_in(function.body) if x not in inside))
    parameters = {x: function.body.parameter(x.type, x.example) for x in free}
    substitute(function.body, parameters)
    for each in functions_of(function):
        prune(each.body)
        hoist(each.body)
    return _Staged(function, origins, free, y)
