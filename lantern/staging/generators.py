"""Functions with ``yield``: Python goes through them while the program is staged.

What stands around a ``yield``, branches, loops and jumps, stays as it is, and asks for
what is known by then. All else is rewritten as in any function.
"""

import ast
from collections.abc import Sequence
from typing import TypeGuard

from lantern.staging.expressions import Expressions
from lantern.staging.syntax import (
    JUMPS,
    call_of,
    check_target,
    children,
    jumps_in,
    own_nodes,
    placed,
    refuse,
)

__all__ = ["Generators", "check_yields", "is_suspending", "never_yields", "yields"]

_YIELDS = (ast.Yield, ast.YieldFrom)
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
_ENDING = (ast.Try, ast.TryStar, ast.With)


def yields(body: Sequence[ast.AST]) -> bool:
    """Whether a ``yield`` stands in statements, and in no function inside them."""
    waiting = list(body)
    for node in waiting:
        if isinstance(node, _YIELDS):
            return True
        if not isinstance(node, _FUNCTIONS):
            waiting += children(node)
    return False


def check_yields(nodes: Sequence[ast.AST], own: Sequence[str]) -> None:
    """Refuse generators that Python would go through otherwise.

    Items may be taken ahead of the program: so nobody else may see the variables. And
    what stands behind a ``yield`` that nobody comes back to may still be run.

    Args:
        nodes: all of a function's.
        own: the variables that it assigns to.
    """
    for node in nodes:
        if isinstance(node, _ENDING) and yields([node]):
            raise refuse(node, "yield in a try or a with")
        if isinstance(node, ast.Nonlocal):
            raise refuse(node, "nonlocal in a function with yield")
        if isinstance(node, _FUNCTIONS):
            inside = own_nodes([node])
            mine = {x.arg for x in inside if isinstance(x, ast.arg)}
            names = {x.id for x in inside if isinstance(x, ast.Name)}
            if not (names - mine).isdisjoint(own):
                raise refuse(node, "a function that reads variables of a generator")


def never_yields(at: ast.AST) -> ast.stmt:
    """A ``yield`` that nobody comes to: what has one is a generator."""
    line = placed(ast.Expr(placed(ast.Yield(None), at)), at)
    found: ast.stmt = placed(ast.If(placed(ast.Constant(False), at), [line], []), at)
    return found


def is_suspending(node: ast.stmt) -> TypeGuard[ast.Expr | ast.Assign]:
    """Whether a statement is a ``yield``, or assigns what one gives."""
    return isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, _YIELDS)


class Generators(Expressions):
    """The rewriting of what stands around a ``yield``."""

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements in their rewritten form."""
        raise NotImplementedError

    def is_kept(self, node: ast.stmt) -> bool:
        """Whether a statement stays as it is, for it yields or jumps."""
        if isinstance(node, ast.Break | ast.Continue):
            return True
        if not isinstance(node, ast.If | ast.While | ast.For):
            return False
        return jumps_in([node], JUMPS) or yields([node])

    def kept(self, node: ast.stmt) -> ast.stmt:
        """A branch or a loop that stays as it is."""
        if isinstance(node, ast.If | ast.While):
            node.test = call_of("known", [self.visit(node.test)], node)
        if isinstance(node, ast.For):
            check_target(node.target)
            node.iter = call_of("turns", [self.visit(node.iter)], node)
        if isinstance(node, ast.If | ast.While | ast.For):
            node.body = self.block(node.body)
            node.orelse = self.block(node.orelse)
        return node

    def suspending(self, node: ast.Expr | ast.Assign) -> ast.stmt:
        """``yield x``, ``y = yield x``, ``yield from xs``."""
        inside = node.value
        assert isinstance(inside, _YIELDS)  # as has been asked
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if not isinstance(target, ast.Name):
                    raise refuse(node, "an assignment of parts of a yield")
        if inside.value is not None:
            inside.value = self.visit(inside.value)
        if isinstance(inside, ast.YieldFrom) and self.is_careful:
            inside.value = call_of("items_of", [inside.value], node)
        return node
