"""All that is known of an operation: one record, found by its name or by its rule."""

from collections.abc import Callable
from types import CodeType
from typing import Any

__all__ = [
    "Function",
    "Op",
    "RuleFunction",
    "by_code",
    "operation_of",
    "registry",
]

Function = Callable[..., Any]
RuleFunction = Callable[..., Any]


class Op:
    """One operation.

    Attributes:
        name: as in the registry and in ``lantern``.
        rule: the generator function.
        kind: how forward mode reads the rule. "elementwise": resumed with 1 it yields
            its partial derivatives. "linear": applied to the tangent. "bilinear": by
            the product rule. "constant": zero derivative, the result is not tracked.
            "general": the transpose of its backward step. "partials": as "elementwise",
            but contributions may have any shape and type. "stated": by a function of
            its own, the static ``tangent``.
        arity: how many differentiable operands it has; -1 for any number.
        function: the operation on plain and tracked values.
        own: whether the library wrote the rule, and not a user.
        additive: whether it is a sum of its operands, which it does not keep, perhaps
            times finite numbers: its backward step makes 0 of 0.
        adjoint: whether its backward step is written as an adjoint, and so sees complex
            cotangents as they are.
        lazy: whether the rule may yield thunks, or what has to be fitted. Its operands
            come as a tuple, whatever their number, so that a number does not take its
            short way back.
        others: the names of its positional arguments that are no operands.
        batching: how it is computed for all examples of a ``vmap`` at once; None for
            the way that its kind has (``lantern.vectorizing``).

    Example:
        >>> registry["sin"].name, registry["sin"].kind, registry["sin"].arity
        ('sin', 'elementwise', 1)
    """

    __slots__ = (
        *("additive", "adjoint", "arity", "batching", "function"),
        *("kind", "lazy", "name", "others", "own", "rule"),
    )

    def __init__(
        self,
        name: str,
        rule: RuleFunction,
        kind: str,
        arity: int,
        function: Function,
        own: bool,
        additive: bool,
        adjoint: bool,
        lazy: bool,
    ) -> None:
        self.name, self.rule, self.kind, self.arity = name, rule, kind, arity
        self.function, self.own = function, own
        self.additive, self.adjoint, self.lazy = additive, adjoint, lazy
        code = rule.__code__
        self.others = code.co_varnames[code.co_posonlyargcount : code.co_argcount]
        self.batching: Any = None

    @property
    def keeps(self) -> bool:
        """Whether its rule needs the operands on the way back: no linear one does."""
        return self.kind != "linear" and not self.additive


registry: dict[str, Op] = {}
"""The operations by name, those whose modules were imported; ``lantern`` imports some
of its modules when one of their functions is asked for."""

by_code: dict[CodeType, Op] = {}


def operation_of(rule: RuleFunction) -> Op:
    """The operation that a rule belongs to."""
    return by_code[rule.__code__]
