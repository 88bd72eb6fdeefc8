"""Derivatives in staged programs: ``lantern.grad(f)(x)`` as a call of an adjoint."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import lantern
from lantern.errors import StagingError
from lantern.staging.adjoint import adjoint
from lantern.staging.closures import close, functions_of, substitute, used_in, walk_all
from lantern.staging.ir import Function, building, current, emit, results_of
from lantern.staging.regions import prune
from lantern.staging.staged import Staged, is_staged, node_of, operate, staged
from lantern.staging.structure import leaves_of, unflatten
from lantern.staging.types import FLOAT, INT, NOTHING

__all__ = ["Derivative", "derivative_of", "staged_derivative"]

_CODE = lantern.grad(abs).__code__


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
    session: Any, derivative: Derivative, args: tuple[Any, ...], call: Any
) -> Any:
    """The call of a derivative in a staged program."""
    argnums = derivative.argnums
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(type(i) is int and -len(args) <= i < len(args) for i in chosen):
        raise StagingError("grad: argnums that are no positions of arguments.")
    chosen = tuple(i % len(args) for i in chosen)
    args = tuple(_tracked(x) if i in chosen else x for i, x in enumerate(args))
    function = _staged(session, derivative.f, args, chosen, call)
    by = [k for k, i in enumerate(function.origins) if i in chosen]
    found = adjoint(function.function, by, derivative.with_value)
    inputs = [x.node for x in leaves_of(args) if is_staged(x)] + function.captured
    node = emit("call", inputs, NOTHING, found)
    values = [staged(z) for z in results_of(node, found.types or ())]
    value = values.pop(0) if derivative.with_value else None
    gradients = []
    for i in chosen:
        n = len(leaves_of(args[i]))
        gradients.append(unflatten(args[i], values[:n]))
        del values[:n]
    result = gradients[0] if isinstance(argnums, int) else tuple(gradients)
    return (value, result) if derivative.with_value else result


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
    function: Function
    origins: list[int]
    captured: list[Any]


def _staged(
    session: Any, f: Any, args: tuple[Any, ...], chosen: tuple[int, ...], call: Any
) -> _Staged:
    """A function for the arguments of one call, without free variables."""
    function = Function(getattr(f, "__name__", "f"))
    functions, current.functions = current.functions, {}
    unfinished, current.unfinished = current.unfinished, []
    session.derivatives += 1
    origins: list[int] = []
    try:
        with building(function.body) as body:
            new = []
            for i, x in enumerate(args):
                leaves = leaves_of(x)
                for k, leaf in enumerate(leaves):
                    if is_staged(leaf):
                        node = leaf.node
                        leaves[k] = staged(body.parameter(node.type, node.example))
                        origins.append(i)
                x = unflatten(x, leaves)
                session.give(x)
                new.append(x)
            y = call(session, f, tuple(new), {})
            if not is_staged(y) or y.node.type is not FLOAT:
                raise StagingError("grad: the function does not return one float.")
            body.results = [y.node]
    finally:
        session.derivatives -= 1
        current.functions, current.unfinished = functions, unfinished
    function.types = [FLOAT]
    close(function)
    inside = walk_all(function)
    free = list(dict.fromkeys(x for x in used_in(function.body) if x not in inside))
    parameters = {x: function.body.parameter(x.type, x.example) for x in free}
    substitute(function.body, parameters)
    for each in functions_of(function):
        prune(each.body)
    return _Staged(function, origins, free)
