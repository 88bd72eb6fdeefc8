"""The rewriting of a function's statements and expressions.

``if``, ``while``, ``for`` and their like become calls of functions of ``lt`` with the
bodies as local functions, which share the variables of the function around them. A
``return`` in a branch takes the rest of the function into the other branch; ``break``
and ``return`` in a loop set a variable that its next test reads.
"""

import ast
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from lantern.staging.desugar import check_named, desugared, is_desugared
from lantern.staging.generators import (
    Generators,
    check_yields,
    is_suspending,
    never_yields,
    yields,
)
from lantern.staging.lifetimes import note_lifetimes
from lantern.staging.syntax import (
    JUMPS,
    NAMES,
    RETURNED,
    assigned,
    call_of,
    check_name,
    check_target,
    declared,
    ends,
    false,
    has_places,
    jumps_in,
    name_of,
    none,
    own_nodes,
    parameter_list,
    placed,
    rebound,
    refuse,
    setter,
    thunk,
    undefined,
)

__all__ = ["new_function"]

_REFUSED: dict[type[ast.AST], str] = {
    ast.AsyncWith: "async",
    ast.AsyncFor: "async",
    ast.AsyncFunctionDef: "async",
    ast.Await: "await",
    ast.ClassDef: "class",
    ast.Global: "global",
}


def new_function(
    name: str,
    arguments: ast.arguments,
    body: list[ast.stmt],
    at: ast.AST,
    is_careful: bool,
) -> ast.FunctionDef:
    """A function with a rewritten body; its defaults are given elsewhere."""
    parameters = [x for x in own_nodes([arguments]) if isinstance(x, ast.arg)]
    for parameter in parameters:
        parameter.annotation = None
    named: list[str] = []
    nodes = own_nodes(body)
    is_plain = is_desugared(nodes)
    own = assigned(body, not is_plain)
    suspends = not is_plain and yields(body)
    if suspends:
        check_yields(nodes, own)
    if not is_plain:
        named = check_named(body, nodes)
        body = desugared(body)
        nodes = own_nodes(body)
    for node in nodes:
        if node.__class__ in _REFUSED:
            raise refuse(node, _REFUSED[type(node)])
        if node.__class__ in NAMES:
            check_name(node)
    note_lifetimes(nodes)
    others: list[str] = []
    shared: list[str] = []
    if any(x.__class__ is ast.Nonlocal for x in nodes):
        others, shared = declared(body), rebound(body)
        own = [x for x in own if x not in others]
    taken = {x.arg for x in parameters}
    rewriter = _Rewriter(is_careful, not is_plain, [*others, *shared])
    rewriter.suspends = suspends
    rewriter.first = next((x.arg for x in parameters), None)
    lines = [setter(x, at) for x in named] + rewriter.block(body)
    mine = [x for x in shared if x in own or x in taken]
    lines = _said("rebinds", others, at) + _said("shares", mine, at) + lines
    lines = undefined([x for x in own if x not in taken], at) + lines
    if rewriter.count or not is_plain:  # there are names that were not there
        known = {*own, *taken, *others, *shared}
        extra = [x for x in assigned(lines, not is_plain) if x not in known]
        lines = undefined(extra, at) + lines
    if suspends:
        lines.insert(0, never_yields(at))
    if others:
        lines.insert(0, placed(ast.Nonlocal(others), at))
    made: ast.FunctionDef = placed(
        ast.FunctionDef(name=name, args=arguments, body=lines, decorator_list=[]), at
    )
    return made


def _said(what: str, names: list[str], at: ast.AST) -> list[ast.stmt]:
    """A call that says something of variables: by a function that has captured them."""
    if not names:
        return []
    row = placed(ast.Tuple([name_of(x, at) for x in names], ast.Load()), at)
    return [placed(ast.Expr(call_of(what, [thunk(row)], at)), at)]


def _never_ends(loop: ast.stmt) -> bool:
    """Whether nothing but a return leaves a loop."""
    if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Constant):
        return False
    return bool(loop.test.value) and not jumps_in(loop.body, (ast.Break,))


class _Loop:
    """What a loop's body does when it jumps: the variables that it sets."""

    def __init__(self, number: int) -> None:
        self.broken = f"_lt_broken{number}"
        self.returned = f"_lt_returned{number}"


class _Rewriter(Generators):
    """The rewriting of one function.

    Args:
        is_careful: whether operators go through ``lt``, too.
        has_named: whether it has a ``:=``.
        shared: variables that other functions assign to, too: so may each call.

    Attributes:
        suspends: whether the function has a ``yield``.
    """

    def __init__(self, is_careful: bool, has_named: bool, shared: list[str]) -> None:
        self.is_careful, self.has_named, self.shared = is_careful, has_named, shared
        self.count = 0
        self.suspends = False
        self.loops: list[_Loop] = []

    def fresh(self, name: str) -> str:
        """A name that nobody has."""
        self.count += 1
        return f"_lt_{name}{self.count}"

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements; what stands behind a jump in a branch moves into the other."""
        out: list[ast.stmt] = []
        for i, statement in enumerate(body):
            rest = list(body[i + 1 :])
            if self.suspends and not self.loops and self.is_kept(statement):
                out.append(self.kept(statement))
                continue
            if isinstance(statement, ast.If) and jumps_in([statement], JUMPS):
                return out + self.jumping_if(statement, rest)
            if isinstance(statement, ast.While | ast.For):
                out += self.loop(statement)
                rest = self.behind(statement) + rest
                if jumps_in(statement.body, (ast.Return,)) and not self.loops:
                    out += self.after_return(statement, rest)
                    return out
                if jumps_in(statement.body, (ast.Return,)):
                    return out + self.leave_outer(statement, rest)
                if statement.orelse:
                    return out + self.block(rest)
                continue
            out += self.statement(statement)
            if isinstance(statement, (*JUMPS, ast.Raise)):
                return out
        return out

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """One statement that is no loop, and no branch with a jump."""
        if self.suspends and is_suspending(node):
            return [self.suspending(node)]
        if isinstance(node, ast.If):
            return self.plain_if(node)
        if isinstance(node, ast.Return) and self.loops:
            return self.return_in_loop(node)
        if isinstance(node, ast.Break):
            return [self.assign(self.loops[-1].broken, ast.Constant(True), node)]
        if isinstance(node, ast.Continue | ast.Nonlocal):
            return [placed(ast.Pass(), node)]
        found = self.visit(node)
        return found if isinstance(found, list) else [found]

    def assign(self, name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
        """An assignment to a variable."""
        value = placed(value, at)
        found: ast.stmt = placed(ast.Assign([name_of(name, at, store=True)], value), at)
        return found

    def return_in_loop(self, node: ast.Return) -> list[ast.stmt]:
        """Note what is returned, and leave the loop."""
        value = self.visit(node.value) if node.value else ast.Constant(None)
        loop = self.loops[-1]
        return [
            self.assign(RETURNED, value, node),
            self.assign(loop.returned, ast.Constant(True), node),
            self.assign(loop.broken, ast.Constant(True), node),
        ]

    def after_return(self, loop: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        """Behind a loop that may return: the rest, if it has not."""
        if _never_ends(loop):
            return [placed(ast.Return(name_of(RETURNED, loop)), loop)]
        returned = name_of(loop.returned, loop)  # type: ignore[attr-defined]  # set in loop
        value = placed(ast.Return(name_of(RETURNED, loop)), loop)
        branch = placed(ast.If(returned, [value], []), loop)
        branch.is_ours = True
        return self.jumping_if(branch, rest)

    def leave_outer(self, loop: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt]:
        """Behind a loop in a loop that may return: leave the outer one, too."""
        returned = name_of(loop.returned, loop)  # type: ignore[attr-defined]  # set in loop
        outer = self.loops[-1]
        leave = [
            self.assign(outer.returned, ast.Constant(True), loop),
            placed(ast.Break(), loop),
        ]
        if _never_ends(loop):
            return self.block(leave)
        return self.jumping_if(placed(ast.If(returned, leave, []), loop), rest)

    def local(
        self,
        name: str,
        body: list[ast.stmt],
        at: ast.AST,
        parameters: Sequence[str] = (),
    ) -> ast.FunctionDef:
        """A local function that shares the variables that it assigns to."""
        shared = [*assigned(body, self.has_named), *self.shared]
        shared = [x for x in dict.fromkeys(shared) if x not in parameters]
        head: list[ast.stmt] = []
        if shared:
            head = [placed(ast.Nonlocal(shared), at)]
        body = head + (body or [placed(ast.Pass(), at)])
        made: ast.FunctionDef = placed(
            ast.FunctionDef(
                name=name,
                args=parameter_list(parameters, at),
                body=body,
                decorator_list=[],
            ),
            at,
        )
        made.shared = shared  # type: ignore[attr-defined]  # read by assigned
        return made

    def state(
        self, functions: Sequence[ast.FunctionDef], at: ast.AST
    ) -> tuple[list[ast.stmt], list[ast.expr]]:
        """Functions that read and set the variables that others share."""
        names: dict[str, None] = {}
        for f in functions:
            names.update(dict.fromkeys(f.shared))  # type: ignore[attr-defined]
        get, put = self.fresh("get"), self.fresh("set")
        read = ast.Tuple([name_of(x, at) for x in names], ast.Load())
        body: list[ast.stmt] = [placed(ast.Return(placed(read, at)), at)]
        lines: list[ast.stmt] = [
            placed(ast.FunctionDef(get, parameter_list((), at), body, []), at)
        ]
        target = ast.Tuple([name_of(x, at, store=True) for x in names], ast.Store())
        if names:
            value = name_of("_lt_new", at)
            store: list[ast.stmt] = [
                placed(ast.Assign([placed(target, at)], value), at)
            ]
            function = self.local(put, store, at, ("_lt_new",))
        else:
            function = self.local(put, [], at, ("_lt_new",))
        lines.append(function)
        texts = ast.Tuple([placed(ast.Constant(x), at) for x in names], ast.Load())
        return lines, [name_of(get, at), name_of(put, at), placed(texts, at)]

    def plain_if(self, node: ast.If) -> list[ast.stmt]:
        """A branch without jumps."""
        return self.branch(
            "branch", node, self.block(node.body), self.block(node.orelse)
        )

    def branch(
        self, kind: str, node: ast.If, then: list[ast.stmt], other: list[ast.stmt]
    ) -> list[ast.stmt]:
        names = self.fresh("then"), self.fresh("else")
        functions = [
            self.local(names[0], then, node),
            self.local(names[1], other, node),
        ]
        lines, state = self.state(functions, node)
        test = node.test if getattr(node, "is_ours", False) else self.visit(node.test)
        call = call_of(kind, [test, *(name_of(x, node) for x in names), *state], node)
        if kind == "branch":
            end: ast.stmt = placed(ast.Expr(call), node)
        else:
            end = placed(ast.Return(call), node)
        return [*functions, *lines, end]

    def jumping_if(self, node: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        """A branch with a jump: the rest goes into each way that does not jump."""
        then, other = list(node.body), list(node.orelse)
        if not self.loops and not rest:
            rest = [placed(ast.Return(placed(ast.Constant(None), node)), node)]
        if not ends(then):
            then += deepcopy(rest) if not ends(other) else rest
        if not ends(other):
            other += rest
        kind = "branch" if self.loops else "returning"
        return self.branch(kind, node, self.block(then), self.block(other))

    def loop(self, node: ast.While | ast.For) -> list[ast.stmt]:
        """A loop: its test, its body, and the variables that they share."""
        self.count += 1
        mine = _Loop(self.count)
        node.broken = mine.broken  # type: ignore[union-attr]  # read behind the loop
        node.returned = mine.returned  # type: ignore[union-attr]  # and so is this
        jumps = jumps_in(node.body, (ast.Break, ast.Return))
        returns = jumps_in(node.body, (ast.Return,))
        lines: list[ast.stmt] = []
        if jumps:
            lines.append(self.assign(mine.broken, ast.Constant(False), node))
        if returns:
            lines.append(self.assign(mine.returned, ast.Constant(False), node))
        self.loops.append(mine)
        body = self.block(node.body)
        self.loops.pop()
        name = self.fresh("body")
        broken = thunk(name_of(mine.broken, node)) if jumps else thunk(false(node))
        if isinstance(node, ast.While):
            functions = [self.local(name, body, node)]
            first = thunk(self.visit(node.test))
            kind, more = "while_", [name_of(name, node)]
        else:
            item = self.fresh("item")
            head = placed(ast.Assign([node.target], name_of(item, node)), node)
            check_target(node.target)
            functions = [self.local(name, [head, *body], node, (item,))]
            first = self.visit(node.iter)
            kind, more = "for_", [name_of(name, node)]
        state_lines, state = self.state(functions, node)
        if isinstance(node, ast.For):
            brief = [x for x in node.brief if x not in self.shared]  # type: ignore[attr-defined]
            brief = [placed(ast.Constant(x), node) for x in brief]
            state.append(placed(ast.Tuple(brief, ast.Load()), node))
        call = call_of(kind, [first, *more, broken, *state], node)
        lines += [*functions, *state_lines, placed(ast.Expr(call), node)]
        return lines

    def behind(self, loop: ast.While | ast.For) -> list[ast.stmt]:
        """The ``else`` of a loop that has not returned, as a branch behind it."""
        if not jumps_in(loop.body, (ast.Break,)):
            return list(loop.orelse)
        test = call_of("not_", [name_of(loop.broken, loop)], loop)  # type: ignore[union-attr]  # set in loop
        branch = placed(ast.If(test, loop.orelse, []), loop)
        branch.is_ours = True
        return [branch] if loop.orelse else []

    # Statements.

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        if node.decorator_list:
            raise refuse(node, "a decorated function")
        defaults = node.args.defaults, node.args.kw_defaults
        made = new_function(node.name, node.args, node.body, node, self.is_careful)
        made.args.defaults = [self.visit(x) for x in defaults[0]]
        made.args.kw_defaults = [x and self.visit(x) for x in defaults[1]]
        return made

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if self.is_careful and any(
            isinstance(x, ast.Tuple | ast.List) for x in node.targets
        ):
            value = call_of("items_of", [value], node)
        if len(node.targets) == 1 and isinstance(
            node.targets[0], ast.Subscript | ast.Attribute
        ):
            return self._store(node.targets[0], value, node)
        node.value = value
        if not any(map(has_places, node.targets)):
            return node
        return self._store_all(node)

    def _store_all(self, node: ast.Assign) -> list[ast.stmt]:
        """An assignment of parts of a value, some to elements or attributes.

        All get names first, which are forgotten again.
        """
        names: list[str] = []
        stores: list[ast.stmt] = []

        def named(target: ast.expr) -> ast.expr:
            if isinstance(target, ast.Subscript | ast.Attribute):
                name = self.fresh("part")
                names.append(name)
                stores.append(self._store(target, name_of(name, node), node))
                return name_of(name, node, store=True)
            if isinstance(target, ast.Starred):
                target.value = named(target.value)
            elif isinstance(target, ast.Tuple | ast.List):
                target.elts = [named(x) for x in target.elts]
            elif isinstance(target, ast.Name) and stores:
                name = self.fresh("part")
                names.append(name)
                stores.append(self.assign(target.id, name_of(name, node), node))
                return name_of(name, node, store=True)
            return target

        node.targets = [named(x) for x in node.targets]
        return [node, *stores, *undefined(names, node)]

    def _store(self, target: ast.expr, value: ast.expr, at: ast.AST) -> ast.stmt:
        if isinstance(target, ast.Subscript):
            args = [value, self.visit(target.value), self.visit(target.slice)]
            line: ast.stmt = placed(ast.Expr(call_of("set_item", args, at)), at)
            return line
        assert isinstance(target, ast.Attribute)
        name = placed(ast.Constant(target.attr), at)
        args = [value, self.visit(target.value), name]
        line = placed(ast.Expr(call_of("set_attribute", args, at)), at)
        return line

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return placed(ast.Pass(), node)
        return self.visit(placed(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        op = placed(ast.Constant(type(node.op).__name__), node)
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            old = name_of(node.target.id, node)
            return self.assign(
                node.target.id, call_of("augment", [op, old, value], node), node
            )
        value = thunk(value)  # what is there is read before
        if isinstance(node.target, ast.Subscript):
            args = [self.visit(node.target.value), self.visit(node.target.slice)]
            return placed(
                ast.Expr(call_of("augment_item", [op, *args, value], node)), node
            )
        name = placed(ast.Constant(node.target.attr), node)
        args = [op, self.visit(node.target.value), name, value]
        return placed(ast.Expr(call_of("augment_attribute", args, node)), node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        lines: list[ast.stmt] = []
        for x in node.targets:
            if isinstance(x, ast.Name):
                value = call_of("forgotten", [name_of(x.id, node)], node)
                lines.append(self.assign(x.id, value, node))
            elif isinstance(x, ast.Subscript):
                args = [self.visit(x.value), self.visit(x.slice)]
                lines.append(placed(ast.Expr(call_of("del_item", args, node)), node))
            else:
                raise refuse(node, "del of an attribute or of several")
        return lines

    def visit_Raise(self, node: ast.Raise) -> Any:
        if node.exc is not None:
            node.exc = call_of("raised", [thunk(self.visit(node.exc))], node)
        node.cause = None
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        message = thunk(self.visit(node.msg) if node.msg else none(node))
        args = [self.visit(node.test), message]
        return placed(ast.Expr(call_of("claim", args, node)), node)
