"""The library's own rules for nodes: no derivative of an operation is written here.

The rule of a node is the generator that is registered under its name, started on staged
values. What it yields first is the node's value; what it yields when it is resumed with
a staged cotangent are nodes, too.
"""

from collections.abc import Generator
from functools import cache
from typing import Any

from lantern.core.contribution import Contribution
from lantern.core.numpy_protocols import OUR_NAMES, find_operation
from lantern.errors import MissingRuleError
from lantern.op import Op
from lantern.staging.ir import Node
from lantern.staging.operations import Options, filled
from lantern.staging.staged import Staged, node_of, operate, staged
from lantern.staging.types import FLOAT

__all__ = ["OWN", "PASSED_ON", "dense", "has_derivative", "operands_of", "start"]

PASSED_ON = frozenset({"loosened", "sure", "whole"})
"""Operations that hand their operand on as it is."""

OWN = frozenset({"several", "pack", "unpack"})
"""Operations of the representation that a derivative goes through."""

_NO_RULE = frozenset(
    "constant parameter if loop back call stop nothing get get_at size field unbox "
    "is_none is_exactly is_method is_nothing stopped".split()
)

_TOLD = frozenset({"math.isfinite", "math.isinf", "math.isnan"})
"""Tests that take a tracked number for a plain one: they have no rule, either."""


@cache
def rule_name(op: str) -> str:
    """The name under which an operation's rule is registered."""
    if op.startswith("math."):
        return op  # what makes a tracked number a plain one has no rule
    name = op.rpartition(".")[2]
    return OUR_NAMES.get(name, name)


def has_derivative(node: Node) -> bool:
    """Whether a derivative goes through a node if it comes to it."""
    if node.op in PASSED_ON or node.op == "part":
        return node.type.has_cotangent
    if node.op in _TOLD:
        return True
    if node.op in OWN:
        return node.op == "several" or node.type.has_cotangent
    if node.op in _NO_RULE or not node.type.has_cotangent:
        return False
    known = find_operation(rule_name(node.op))
    return known is None or known.kind != "constant"


def operation(node: Node) -> Op:
    """The registered operation of a node."""
    known = find_operation(rule_name(node.op))
    if known is None:
        raise MissingRuleError(
            f"{node.op}: there is no rule, so that the derivative would be lost. Use "
            f"lantern's functions: lantern.sin(x) for math.sin(x)."
        )
    return known


def arguments(node: Node, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """What a node's rule is called with: its operands first, then its options."""
    if type(node.static) is Options:
        args = [filled(x, values) for x in node.static.args]
        kwargs = {name: filled(x, values) for name, x in node.static.kwargs}
    else:
        args, kwargs = values, {}
    if node.op == "where":  # the rule's operands come first
        args = [*args[1:], args[0]]
    return args, kwargs


def operands_of(node: Node) -> list[Node | None]:
    """The inputs that receive what the rule yields, in its order."""
    if node.op in PASSED_ON:
        return list(node.inputs)
    arity = operation(node).arity
    if node.static == () and node.op != "where":
        return list(node.inputs if arity < 0 else node.inputs[:arity])
    args, _ = arguments(node, list(node.inputs))
    operands = args if arity < 0 else args[:arity]
    return [x if isinstance(x, Node) else None for x in operands]


def start(node: Node, inputs: list[Node]) -> tuple[Any, Generator[Any, Any, None]]:
    """The value of a node and its suspended rule."""
    args, kwargs = arguments(node, [staged(x) for x in inputs])
    rule = operation(node).rule(*args, **kwargs)
    return next(rule), rule


def dense(x_bar: Any, x: Node) -> Any:
    """A contribution in the type and shape of what receives it."""
    if type(x_bar) is Staged and x.type is x_bar.node.type is FLOAT:
        return x_bar
    if callable(x_bar) and not isinstance(x_bar, Staged):
        x_bar = x_bar()
    if isinstance(x_bar, Contribution):
        x_bar = x_bar.dense(x.type.shape)
    if x_bar is None:
        return None
    if x.type.is_saved:
        return x_bar
    x_bar = staged(node_of(x_bar))
    if not x.type.shape and x.type.is_number:
        if x_bar.node.type.is_number:
            return x_bar
        return operate("to_float", x_bar.sum())
    return _summed(x_bar, x.type.shape)


def _summed(x_bar: Any, shape: tuple[int, ...]) -> Any:
    """The transpose of broadcasting from a shape."""
    own = getattr(x_bar, "shape", ())
    if own == shape or len(own) < len(shape):
        return x_bar
    extra = len(own) - len(shape)
    axes = [i + extra for i, n in enumerate(shape) if n == 1 != own[i + extra]]
    axes = [*range(extra), *axes]
    return x_bar.sum(axis=tuple(axes)).reshape(shape) if axes else x_bar
