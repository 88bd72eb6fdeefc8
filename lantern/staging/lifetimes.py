"""Which variables of a loop live for one turn alone: each turn has its own.

A loop whose other variables are all defined before it needs no first turn to find out
what they are.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from lantern.staging.syntax import assigned, own_nodes

__all__ = ["note_lifetimes"]


def note_lifetimes(nodes: Iterable[ast.AST]) -> None:
    """Note in each ``for`` of a function, as ``brief``, the variables that live so.

    Args:
        nodes: all of the function's.
    """
    loops = [x for x in nodes if x.__class__ is ast.For]
    everywhere = Counter(_names(nodes)) if loops else Counter()
    for loop in loops:
        assert isinstance(loop, ast.For)  # as has been asked
        here = Counter(_names(own_nodes([loop])))
        own = {x for x in assigned([loop]) if here[x] == everywhere[x]}
        targets = _targets(loop.target)
        inside = own - targets
        brief = targets & own
        if _are_set_first(loop.body, inside):
            brief |= inside
        loop.brief = sorted(brief)  # type: ignore[attr-defined]  # read by the rewriter


def _names(nodes: Iterable[Any]) -> list[str]:
    """The names in some nodes, as often as they stand there."""
    found = [x.id for x in nodes if x.__class__ is ast.Name]
    return found + [x.name for x in nodes if x.__class__ is ast.FunctionDef]


def _named(body: Sequence[ast.AST]) -> set[str]:
    """The names that stand somewhere in statements or expressions."""
    return set(_names(own_nodes(body)))


def _targets(target: ast.expr) -> set[str]:
    return {x.id for x in own_nodes([target]) if isinstance(x, ast.Name)}


def _are_set_first(body: Sequence[ast.stmt], names: set[str]) -> bool:
    """Whether statements set some variables, and read none of them before that."""
    missing = set(names)
    for statement in body:
        if not missing:
            break
        if isinstance(statement, ast.Assign):
            here = missing & _named(statement.targets)
            if missing & _named([statement.value]):
                return False
            if here and not all(_is_simple(x) for x in statement.targets):
                return False
            missing -= here
            continue
        here = missing & _named([statement])
        if not here:
            continue
        if not _sets_first(statement, here):
            return False
        if here & _named(body[body.index(statement) + 1 :]):
            return False  # what one way alone has set is read behind it
        missing -= here
    return not missing


def _sets_first(statement: ast.stmt, names: set[str]) -> bool:
    """Whether a statement that has some variables reads none before it sets it."""
    if isinstance(statement, ast.If | ast.While):
        head: list[ast.AST] = [statement.test]
    elif isinstance(statement, ast.For):
        head = [statement.iter]
        names = names - _targets(statement.target)
    else:
        return False
    if names & _named(head):
        return False
    return all(
        _are_set_first(part, names & _named(part))
        for part in (statement.body, statement.orelse)
    )


def _is_simple(target: ast.expr) -> bool:
    """Whether a target is a variable, or a row of them."""
    return all(
        isinstance(x, ast.Name | ast.Tuple | ast.List) for x in own_nodes([target])
    )
