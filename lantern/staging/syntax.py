"""Pieces of syntax trees for rewritten code, each with the place that it stands for."""

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from lantern.errors import StagingError

__all__ = [
    "JUMPS",
    "LT",
    "NAMES",
    "RETURNED",
    "assigned",
    "call_of",
    "check_name",
    "check_target",
    "children",
    "declared",
    "ends",
    "false",
    "has_places",
    "holding",
    "is_lt",
    "jumps_in",
    "lt",
    "name_of",
    "none",
    "own_nodes",
    "parameter_list",
    "placed",
    "rebound",
    "refuse",
    "setter",
    "thunk",
    "true",
    "undefined",
]

LT = "_lt_"
RETURNED = "_lt_value"
"""The variable for what a loop returns; only read where it has been assigned to."""


def refuse(node: ast.AST, what: str) -> StagingError:
    """The error for a construct that is not staged."""
    return StagingError(
        f"{what} in line {getattr(node, 'lineno', '?')}: it is not staged, and runs as "
        f"it is. Move it out of the function."
    )


def parameter_list(names: Iterable[str], at: ast.AST) -> ast.arguments:
    """Parameters without defaults."""
    args = [placed(ast.arg(name), at) for name in names]
    return ast.arguments([], args, None, [], [], None, [])


NAMES = ast.Name, ast.arg, ast.Attribute


def check_name(node: ast.Name | ast.arg | ast.Attribute) -> None:
    """Refuse names that mean something else in a class."""
    name = (
        node.id
        if isinstance(node, ast.Name)
        else node.arg
        if isinstance(node, ast.arg)
        else node.attr
    )
    if name.startswith("__") and not name.endswith("__"):
        raise refuse(node, f"the private name {name}")
    if name == "__class__":
        raise refuse(node, name)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes that a node has, but for operators and for how a name is used."""
    return _with_children([], (node,))


_AST = ast.AST
_PLAIN = frozenset(
    "ctx op ops id attr arg kind type_comment conversion kwd_attrs".split()
)
_GAPS = frozenset({"keys", "kw_defaults", "names"})
"""Rows that may have something besides nodes: None, or names."""


class _Holding(dict[type[ast.AST], tuple[str, ...]]):
    """By kind of nodes, which of their fields may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = tuple(x for x in kind._fields if x not in _PLAIN)
        return self[kind]


_HOLDING = _Holding()


def holding(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of nodes that may hold nodes."""
    return _HOLDING[kind]


def own_nodes(body: Sequence[ast.AST]) -> list[ast.AST]:
    """All nodes of statements, nearest first."""
    found = list(body)
    return _with_children(found, found)


def _with_children(found: list[ast.AST], nodes: Sequence[ast.AST]) -> list[ast.AST]:
    """A list, with the children of nodes behind it; it may be the list of the nodes."""
    for node in nodes:
        fields = node.__dict__
        for name in _HOLDING[node.__class__]:
            x = fields.get(name)
            if x.__class__ is list:
                found += [y for y in x if isinstance(y, _AST)] if name in _GAPS else x
            elif x is not None and isinstance(x, _AST):
                found.append(x)
    return found


def undefined(names: Iterable[str], at: ast.AST) -> list[ast.stmt]:
    """Assignments of nothing to variables."""
    return [
        placed(
            ast.Assign([placed(ast.Name(x, ast.Store()), at)], lt("UNDEFINED", at)), at
        )
        for x in dict.fromkeys(names)
    ]


_OTHERS_NAMES = ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
_NAMING = ast.ExceptHandler, ast.MatchAs, ast.MatchStar
_ROWS = ast.Tuple, ast.List, ast.Starred


def assigned(body: Sequence[ast.stmt], has_named: bool = True) -> list[str]:
    """The variables that statements assign to, without those of inner functions.

    Args:
        body: the statements.
        has_named: whether an expression in them may assign, by ``:=``.
    """
    found: dict[str, None] = {}
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node: Any = waiting.pop()
        kind = node.__class__
        if kind is ast.Name:
            if node.ctx.__class__ is not ast.Load:
                found[node.id] = None
        elif kind is ast.Constant:
            pass
        elif kind is ast.FunctionDef:
            if not node.name.startswith("_lt_"):
                found[node.name] = None
            else:  # a body: it shares the variables
                found.update(dict.fromkeys(getattr(node, "shared", ())))
        elif kind not in _OTHERS_NAMES:
            if not has_named and kind not in _ROWS and isinstance(node, ast.expr):
                continue
            if kind is ast.Call:
                found.update(dict.fromkeys(node.__dict__.get("shared", ())))
            elif kind is ast.alias:
                found[(node.asname or node.name).partition(".")[0]] = None
            elif kind in _NAMING and node.name:
                found[node.name] = None
            waiting += _with_children([], (node,))[::-1]
    return list(found)


def declared(body: Sequence[ast.stmt]) -> list[str]:
    """The variables that a function with this body says to be another one's."""
    found: dict[str, None] = {}
    for node in _own_statements(body):
        if isinstance(node, ast.Nonlocal):
            found.update(dict.fromkeys(node.names))
    return list(found)


def rebound(body: Sequence[ast.stmt]) -> list[str]:
    """The variables outside of them that functions in statements assign to."""
    found: dict[str, None] = {}
    for f in _own_statements(body):
        if isinstance(f, ast.FunctionDef):
            others = declared(f.body)
            own = {x.arg for x in own_nodes([f.args]) if isinstance(x, ast.arg)}
            own = own.union(assigned(f.body)) - set(others)
            inside = [x for x in rebound(f.body) if x not in own]
            found.update(dict.fromkeys([*others, *inside]))
    return list(found)


def _own_statements(body: Sequence[ast.stmt]) -> list[ast.AST]:
    """Statements and those in them, without those of functions inside."""
    found: list[ast.AST] = list(body)
    for node in found:
        if not isinstance(node, _FUNCTIONS):
            found += [x for x in children(node) if not isinstance(x, ast.expr)]
    return found


def placed(node: Any, like: ast.AST) -> Any:
    """A node at the place of another one."""
    place: Any = like
    if hasattr(place, "lineno"):
        node.lineno, node.end_lineno = place.lineno, place.end_lineno
        node.col_offset, node.end_col_offset = place.col_offset, place.end_col_offset
    return node


def lt(name: str, at: ast.AST) -> ast.expr:
    """A function of the combinators."""
    owner = placed(ast.Name(LT, ast.Load()), at)
    found: ast.expr = placed(ast.Attribute(owner, name, ast.Load()), at)
    return found


def is_lt(node: ast.expr) -> bool:
    """Whether an expression is a function of the combinators."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id == LT


def call_of(name: str, args: list[ast.expr], at: ast.AST) -> ast.expr:
    """A call of such a function."""
    found: ast.expr = placed(ast.Call(lt(name, at), args, []), at)
    return found


def thunk(body: ast.expr) -> ast.expr:
    """An expression as a function without arguments."""
    found: ast.expr = placed(ast.Lambda(parameter_list((), body), body), body)
    return found


def name_of(name: str, at: ast.AST, store: bool = False) -> ast.expr:
    """A variable."""
    found: ast.expr = placed(ast.Name(name, ast.Store() if store else ast.Load()), at)
    return found


_FUNCTIONS = ast.FunctionDef, ast.Lambda
_LOOPS = ast.While, ast.For


def jumps_in(statements: Sequence[ast.stmt], kinds: tuple[type, ...]) -> bool:
    """Whether statements have a jump of some kinds that is theirs."""
    waiting: list[ast.AST] = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, kinds):
            return True
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, _LOOPS):
            inner = tuple(k for k in kinds if k is ast.Return)
            if inner and jumps_in(node.body, inner):
                return True
            waiting += node.orelse
            continue
        waiting += [x for x in children(node) if not isinstance(x, ast.expr)]
    return False


JUMPS = (ast.Return, ast.Break, ast.Continue)


def ends(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing that stands behind statements is ever reached from them."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (*JUMPS, ast.Raise)):
        return True
    return isinstance(last, ast.If) and ends(last.body) and ends(last.orelse)


def has_places(target: ast.expr) -> bool:
    """Whether an assignment is, in part, one to elements or attributes."""
    nodes = own_nodes([target])
    return any(isinstance(x, ast.Subscript | ast.Attribute) for x in nodes)


def check_target(target: ast.expr) -> None:
    """Refuse elements and attributes as what a loop assigns to."""
    if has_places(target):
        raise refuse(target, "a loop over an element or an attribute")


def setter(name: str, at: ast.AST) -> ast.stmt:
    """A function that assigns to a variable of the function around it."""
    body = [
        ast.Nonlocal([name]),
        ast.Assign([name_of(name, at, store=True)], name_of("_lt_new", at)),
    ]
    made = ast.FunctionDef(
        f"_lt_to_{name}",
        parameter_list(("_lt_new",), at),
        [placed(x, at) for x in body],
        [],
    )
    made.shared = [name]  # type: ignore[attr-defined]  # read by assigned
    found: ast.stmt = placed(made, at)
    return found


def false(at: ast.AST) -> ast.expr:
    """The constant False."""
    found: ast.expr = placed(ast.Constant(False), at)
    return found


def true(at: ast.AST) -> ast.expr:
    """The constant True."""
    found: ast.expr = placed(ast.Constant(True), at)
    return found


def none(at: ast.AST) -> ast.expr:
    """The constant None."""
    found: ast.expr = placed(ast.Constant(None), at)
    return found
