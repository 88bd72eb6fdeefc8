"""Statements in terms of others: ``try``, ``with``, ``match`` and ``:=``.

A staged program is left as soon as something would be raised. So what it has of a
``try`` is the way without an exception, and the plain function goes all the others; a
``with`` enters and leaves. A ``match`` is a chain of tests, and a ``:=`` an assignment
where it is evaluated whenever its statement is.
"""

import ast
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from lantern.staging.syntax import (
    JUMPS,
    assigned,
    call_of,
    name_of,
    own_nodes,
    placed,
    refuse,
    true,
)

__all__ = ["check_named", "desugared", "is_desugared"]

Asked = tuple[list[ast.expr], list[tuple[str, ast.expr]]]
"""What a pattern asks of a value, and the names that it gives to its parts."""

_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


_OTHERS = (
    ast.Try,
    ast.TryStar,
    ast.With,
    ast.Match,
    ast.NamedExpr,
    ast.Yield,
    ast.YieldFrom,
)


def is_desugared(nodes: Iterable[ast.AST]) -> bool:
    """Whether all nodes are such as the rewriting knows."""
    return all(x.__class__ not in _OTHERS for x in nodes)


def desugared(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function in those that the rewriting knows."""
    return _Desugaring().statements(body)


class _Desugaring:
    """One function's statements."""

    def __init__(self) -> None:
        self.count = 0

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A block of statements; those of functions inside are left for later."""
        out: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.Try | ast.TryStar):
                out += self.attempt(node)
            elif isinstance(node, ast.With):
                out += self.entered(node)
            elif isinstance(node, ast.Match):
                out += self.matched(node)
            else:
                out.append(self.inside(node))
        return out

    def inside(self, node: ast.stmt) -> ast.stmt:
        """A statement whose blocks are those that the rewriting knows."""
        if isinstance(node, _FUNCTIONS):
            return node
        for field in ("body", "orelse"):
            if getattr(node, field, None):
                setattr(node, field, self.statements(getattr(node, field)))
        if isinstance(node, ast.While) and _has_named(node.test):
            return self.tested_inside(node)
        return node

    def attempt(self, node: ast.Try | ast.TryStar) -> list[ast.stmt]:
        """``try``: the way on which nothing is raised."""
        body = [*node.body, *node.orelse]
        if not node.finalbody:
            return self.statements(body)
        return self.statements(self.ended(body, node.finalbody))

    def ended(
        self, body: Sequence[ast.stmt], end: Sequence[ast.stmt]
    ) -> list[ast.stmt]:
        """Statements with others at their end, and before each jump out of them."""
        return [*self.before_jumps(body, end, JUMPS), *end]

    def before_jumps(
        self,
        body: Sequence[ast.stmt],
        end: Sequence[ast.stmt],
        kinds: tuple[type[ast.stmt], ...],
    ) -> list[ast.stmt]:
        """Statements with others before each jump of some kinds."""
        out: list[ast.stmt] = []
        for node in body:
            if isinstance(node, kinds):
                if isinstance(node, ast.Return) and node.value is not None:
                    self.count += 1
                    kept = f"_lt_kept{self.count}"
                    target = name_of(kept, node, store=True)
                    out.append(placed(ast.Assign([target], node.value), node))
                    node.value = name_of(kept, node)
                out += deepcopy(end)
            elif not isinstance(node, _FUNCTIONS):
                inside = (ast.Return,) if isinstance(node, _LOOPS) else kinds
                blocks = [(node, name, inside) for name in ("body", "finalbody")]
                blocks.append((node, "orelse", kinds))
                blocks += [(x, "body", kinds) for x in getattr(node, "cases", ())]
                for owner, name, of in blocks:
                    block = getattr(owner, name, None)
                    if block:
                        setattr(owner, name, self.before_jumps(block, end, of))
            out.append(node)
        return out

    def entered(self, node: ast.With) -> list[ast.stmt]:
        """``with``: what is entered, the block, and what is left again."""
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        for item in node.items:
            self.count += 1
            name = f"_lt_context{self.count}"
            target = name_of(name, node, store=True)
            before.append(placed(ast.Assign([target], item.context_expr), node))
            value = call_of("entered", [name_of(name, node)], node)
            if item.optional_vars is None:
                before.append(placed(ast.Expr(value), node))
            else:
                before.append(placed(ast.Assign([item.optional_vars], value), node))
            left = call_of("left", [name_of(name, node)], node)
            target = name_of(name, node, store=True)
            after.insert(0, placed(ast.Assign([target], left), node))
        return [*before, *self.statements(self.ended(node.body, after))]

    def tested_inside(self, node: ast.While) -> ast.stmt:
        """``while``: its test as the first statement of a turn."""
        if node.orelse:
            raise refuse(node, ":= in a while with an else")
        test = placed(ast.UnaryOp(ast.Not(), node.test), node)
        leave = placed(ast.If(test, [placed(ast.Break(), node)], []), node)
        node.test, node.body = true(node), [leave, *node.body]
        return node

    # ``match``.

    def matched(self, node: ast.Match) -> list[ast.stmt]:
        """``match``: a chain of tests of a subject."""
        self.count += 1
        subject = f"_lt_subject{self.count}"
        target = name_of(subject, node, store=True)
        first = placed(ast.Assign([target], node.subject), node)
        return [first, *self.cases(subject, node.cases)]

    def cases(self, subject: str, cases: Sequence[ast.match_case]) -> list[ast.stmt]:
        """The first case that matches, and the others behind it."""
        if not cases:
            return []
        case, rest = cases[0], cases[1:]
        at = case.pattern
        tests, names = self.pattern(at, name_of(subject, at))
        binding: list[ast.stmt]
        binding = [
            placed(ast.Assign([name_of(x, at, store=True)], value), at)
            for x, value in names
        ]
        body = self.statements(case.body)
        if case.guard is None and not tests:
            return [*binding, *body]
        other = self.cases(subject, rest)
        if case.guard is None:
            return [placed(ast.If(_all(tests, at), [*binding, *body], other), at)]
        if binding and tests:  # names are bound before the guard is asked
            bound = placed(ast.If(_all(tests, at), binding, []), at)
            binding = [bound]
            tests, _ = self.pattern(at, name_of(subject, at))
        test = _all([*tests, case.guard], at)
        return [*binding, placed(ast.If(test, body, other), at)]

    def pattern(self, at: ast.pattern, x: ast.expr) -> Asked:
        """What a pattern asks of a value, and the names that it gives to its parts."""
        if isinstance(at, ast.MatchAs):
            tests, names = self.pattern(at.pattern, x) if at.pattern else ([], [])
            return tests, [*names, *([(at.name, deepcopy(x))] if at.name else [])]
        if isinstance(at, ast.MatchValue):
            return [placed(ast.Compare(deepcopy(x), [ast.Eq()], [at.value]), at)], []
        if isinstance(at, ast.MatchSingleton):
            value = placed(ast.Constant(at.value), at)
            return [placed(ast.Compare(deepcopy(x), [ast.Is()], [value]), at)], []
        if isinstance(at, ast.MatchOr):
            return self.one_of(at, x)
        if isinstance(at, ast.MatchSequence):
            return self.row(at, x)
        if isinstance(at, ast.MatchClass):
            return self.of_class(at, x)
        if isinstance(at, ast.MatchMapping):
            return self.of_keys(at, x)
        raise refuse(at, f"a pattern of the kind {type(at).__name__[5:].lower()}")

    def row(self, at: ast.MatchSequence, x: ast.expr) -> Asked:
        """``a, b``, ``a, *b, c``."""
        kinds = [type(p) for p in at.patterns]
        if ast.MatchStar in kinds:
            return self.long_row(at, x, kinds.index(ast.MatchStar))
        count = placed(ast.Constant(len(at.patterns)), at)
        parts = [(p, _item(x, i, at)) for i, p in enumerate(at.patterns)]
        return self.parts([call_of("is_row", [deepcopy(x), count], at)], parts)

    def long_row(self, at: ast.MatchSequence, x: ast.expr, star: int) -> Asked:
        """``a, *b, c``: with a star behind some patterns."""
        first, last = at.patterns[:star], at.patterns[star + 1 :]
        counts = [placed(ast.Constant(len(row)), at) for row in (first, last)]
        parts = [(p, _item(x, i, at)) for i, p in enumerate(first)]
        parts += [(p, _item(x, i - len(last), at)) for i, p in enumerate(last)]
        test = call_of("is_long_row", [deepcopy(x), *counts], at)
        tests, names = self.parts([test], parts)
        name: Any = at.patterns[star]
        if name.name is not None:
            names.append((name.name, call_of("middle", [deepcopy(x), *counts], at)))
        return tests, names

    def of_keys(self, at: ast.MatchMapping, x: ast.expr) -> Asked:
        """``{key: a, **rest}``."""
        keys = placed(ast.Tuple(at.keys, ast.Load()), at)
        parts = [
            (p, placed(ast.Subscript(deepcopy(x), deepcopy(key), ast.Load()), at))
            for key, p in zip(at.keys, at.patterns, strict=True)
        ]
        test = call_of("has_keys", [deepcopy(x), keys], at)
        tests, names = self.parts([test], parts)
        if at.rest is not None:
            args = [deepcopy(x), deepcopy(keys)]
            names.append((at.rest, call_of("without_keys", args, at)))
        return tests, names

    def of_class(self, at: ast.MatchClass, x: ast.expr) -> Asked:
        """``Class(a, b=c)``."""
        count = placed(ast.Constant(len(at.patterns)), at)
        parts = []
        for i, p in enumerate(at.patterns):
            args = [deepcopy(x), deepcopy(at.cls), placed(ast.Constant(i), at)]
            parts.append((p, call_of("matched", args, at)))
        for name, p in zip(at.kwd_attrs, at.kwd_patterns, strict=True):
            part = placed(ast.Attribute(deepcopy(x), name, ast.Load()), at)
            parts.append((p, part))
        args = [deepcopy(x), deepcopy(at.cls), count]
        return self.parts([call_of("is_of", args, at)], parts)

    def one_of(self, at: ast.MatchOr, x: ast.expr) -> Asked:
        """``a | b``."""
        found = [self.pattern(p, x) for p in at.patterns]
        if any(names for _, names in found):
            raise refuse(at, "names in a pattern with |")
        return [placed(ast.BoolOp(ast.Or(), [_all(t, at) for t, _ in found]), at)], []

    def parts(self, tests: list[ast.expr], parts: Any) -> Asked:
        """What patterns ask of the parts of a value, one after the other."""
        names: list[tuple[str, ast.expr]] = []
        for p, x in parts:
            more, found = self.pattern(p, x)
            tests, names = [*tests, *more], [*names, *found]
        return tests, names


def _item(x: ast.expr, place: int, at: ast.AST) -> ast.expr:
    index = placed(ast.Constant(place), at)
    found: ast.expr = placed(ast.Subscript(deepcopy(x), index, ast.Load()), at)
    return found


def _all(tests: list[ast.expr], at: ast.AST) -> ast.expr:
    if not tests:
        return true(at)
    if len(tests) == 1:
        return tests[0]
    found: ast.expr = placed(ast.BoolOp(ast.And(), tests), at)
    return found


def _has_named(node: ast.AST) -> bool:
    return any(isinstance(x, ast.NamedExpr) for x in own_nodes([node]))


def check_named(body: Sequence[ast.stmt], nodes: Sequence[ast.AST]) -> list[str]:
    """The variables of ``:=``; one that is not always evaluated is refused."""
    found = [x.target.id for x in nodes if isinstance(x, ast.NamedExpr)]
    if not found:
        return []
    for node in nodes:
        for x in own_nodes(_perhaps(node)):
            if isinstance(x, ast.NamedExpr):
                raise refuse(x, ":= where it may not be evaluated")
    return [x for x in assigned(body) if x in found]


def _perhaps(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that are evaluated on some ways alone."""
    if isinstance(node, ast.BoolOp):
        return list(node.values[1:])
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Compare):
        return list(node.comparators) if len(node.ops) > 1 else []
    if isinstance(node, ast.Assert):
        return [node.msg] if node.msg else []
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return [node]
    if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Name):
        return [node.value]
    if isinstance(node, ast.Lambda):
        return [node]
    return []
