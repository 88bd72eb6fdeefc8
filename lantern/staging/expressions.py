"""The rewriting of expressions: what asks, calls or reads goes through ``lt``."""

import ast
from typing import Any, ClassVar

from lantern.staging.syntax import (
    call_of,
    holding,
    is_lt,
    lt,
    name_of,
    none,
    parameter_list,
    placed,
    refuse,
    thunk,
)

__all__ = ["Expressions"]


class Expressions(ast.NodeTransformer):
    """The rewriting of one function's expressions.

    Attributes:
        is_careful: whether all operators go through ``lt``, and what loops go through.
        first: the function's first parameter, if it has one.
    """

    is_careful = False
    first: str | None = None
    _ways: ClassVar[dict[type[ast.AST], Any]] = {}

    def visit(self, node: ast.AST) -> Any:
        """A node in its rewritten form."""
        kind = node.__class__
        if kind is ast.Name or kind is ast.Constant:
            return node
        way: Any = self._ways.get(kind)
        if way is None:  # found once: it is by its name
            plain = Expressions.generic_visit
            way = getattr(type(self), f"visit_{kind.__name__}", plain)
            self._ways[kind] = way
        return way(self, node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A node whose parts are in their rewritten form."""
        fields = node.__dict__
        for name in holding(node.__class__):
            x = fields.get(name)
            if x.__class__ is list:
                fields[name] = parts = []
                for y in x:
                    new = self.visit(y) if isinstance(y, ast.AST) else y
                    if new.__class__ is list:
                        parts += new
                    else:
                        parts.append(new)
            elif isinstance(x, ast.AST):
                fields[name] = self.visit(x)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """A lambda: its defaults and its body."""
        node.args.defaults = [self.visit(x) for x in node.args.defaults]
        node.args.kw_defaults = [x and self.visit(x) for x in node.args.kw_defaults]
        node.body = self.visit(node.body)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """``x if test else y``."""
        ways = [thunk(self.visit(node.body)), thunk(self.visit(node.orelse))]
        return call_of("choose", [self.visit(node.test), *ways], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """``and``, ``or``."""
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        *first, last = [self.visit(x) for x in node.values]
        found = last
        for value in reversed(first):
            found = call_of(name, [value, thunk(found)], node)
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """``not``, and with care all others."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return call_of("not_", [node.operand], node)
        if not self.is_careful:
            return node
        return call_of("unary", [_named(node.op, node), node.operand], node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Operators of two operands; ``[0.0] * n`` makes a list."""
        way = "joined" if _makes_list(node) else "binary"
        self.generic_visit(node)
        if not self.is_careful and way == "binary":
            return node
        return call_of(way, [_named(node.op, node), node.left, node.right], node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        """What stands in braces in a string."""
        self.generic_visit(node)
        if self.is_careful:
            node.value = call_of("text", [node.value], node.value)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        """A ``for`` of a comprehension."""
        self.generic_visit(node)
        if self.is_careful:
            node.iter = call_of("items_of", [node.iter], node.iter)
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        """A generator, which is used up once."""
        self.generic_visit(node)
        return call_of("once", [node], node)

    def visit_Starred(self, node: ast.Starred) -> Any:
        """What a star takes apart."""
        self.generic_visit(node)
        if self.is_careful and isinstance(node.ctx, ast.Load):
            node.value = call_of("items_of", [node.value], node.value)
        return node

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> Any:
        """A ``yield`` that is no statement: what is around it may not be evaluated."""
        raise refuse(node, "yield in an expression")

    visit_YieldFrom = visit_Yield  # noqa: N815  # as ast names them

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Comparisons, chains of them among them."""
        left = self.visit(node.left)
        rest = [self.visit(x) for x in node.comparators]
        plain = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
        if len(rest) == 1 and isinstance(node.ops[0], plain) and not self.is_careful:
            node.left, node.comparators = left, rest
            return node
        ops = [_named(op, node) for op in node.ops]
        names = placed(ast.Tuple(ops, ast.Load()), node)
        return call_of("compare", [names, left, *map(thunk, rest)], node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """A read of an element."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            raise refuse(node, "an assignment to an element here")
        return call_of("item", [node.value, node.slice], node)

    def visit_Slice(self, node: ast.Slice) -> Any:
        """A slice, which is made by a function of ours."""
        self.generic_visit(node)
        parts = [x or none(node) for x in (node.lower, node.upper, node.step)]
        return call_of("slice_", parts, node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """A read of an attribute."""
        if _is_super(node.value):
            return self.of_parent(node, node.value)
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            raise refuse(node, "an assignment to an attribute here")
        return call_of(
            "attribute", [node.value, placed(ast.Constant(node.attr), node)], node
        )

    def of_parent(self, node: ast.Attribute, call: Any) -> Any:
        """``super().name``."""
        args = [self.visit(x) for x in call.args]
        if not args and self.first is not None:
            args = [name_of("__class__", node), name_of(self.first, node)]
        if len(args) != 2 or call.keywords:
            raise refuse(node, "super without an object")
        name = placed(ast.Constant(node.attr), node)
        return call_of("of_parent", [call.func, *args, name], node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        """``name := value``, by a function that sets the variable."""
        setter = name_of(f"_lt_to_{node.target.id}", node)
        found = call_of("named", [setter, self.visit(node.value)], node)
        found.shared = [node.target.id]  # type: ignore[attr-defined]  # read by assigned
        return found

    def visit_Call(self, node: ast.Call) -> Any:
        """A call."""
        if _is_super(node):
            raise refuse(node, "super without a name behind it")
        if _reduces(node):
            if _has_condition(node):
                return self.filtered(node, node.args[0])
            if _has_items(node):
                return self.reduced(node, node.args[0])
        if is_lt(node.func):
            node.args = [self.visit(x) for x in node.args]
            return node
        self.generic_visit(node)
        node.args.insert(0, node.func)
        node.func = lt("call", node)
        return node

    def filtered(self, node: ast.Call, items: Any) -> Any:
        """``sum(x for ... if test)``: items as tests, and what makes them."""
        tests, items.generators[-1].ifs = items.generators[-1].ifs, []
        test = tests[0]
        if tests[1:]:
            test = placed(ast.BoolOp(ast.And(), tests), node)
        parts = [self.visit(test), thunk(self.visit(items.elt))]
        pair = placed(ast.Tuple(parts, ast.Load()), node)
        if _is_simple(items):
            return self.passed("filtered_of", node, items.generators[0], pair)
        generators = [self.visit(x) for x in items.generators]
        pairs = placed(ast.GeneratorExp(pair, generators), node)
        return call_of("filtered", [node.func, pairs], node)

    def reduced(self, node: ast.Call, items: Any) -> Any:
        """``sum(x for ...)``: what it goes through, and what makes an item."""
        return self.passed("reduced", node, items.generators[0], self.visit(items.elt))

    def passed(self, name: str, node: ast.Call, loop: Any, item: ast.expr) -> Any:
        """A call of what goes through a loop's items by itself."""
        make = ast.Lambda(parameter_list([loop.target.id], node), item)
        args = [node.func, self.visit(loop).iter, placed(make, item)]
        return call_of(name, args, node)

    def _made(self, node: ast.expr) -> Any:
        self.generic_visit(node)
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return node
        return call_of("made", [node], node)

    visit_List = visit_Dict = visit_Set = _made  # noqa: N815  # as ast names them
    visit_ListComp = visit_DictComp = visit_SetComp = _made  # noqa: N815


def _is_super(node: ast.AST) -> bool:
    """Whether an expression is a call of ``super``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    return node.func.id == "super"


def _reduces(node: ast.Call) -> bool:
    """Whether a function adds up, compares or asks what it goes through."""
    if not isinstance(node.func, ast.Name) or node.func.id not in _REDUCING:
        return False
    return len(node.args) == 1 and not node.keywords


_REDUCING = frozenset({"sum", "any", "all", "max", "min"})


def _has_condition(node: ast.Call) -> bool:
    """Whether a function adds up, or asks, what a condition holds for."""
    items: Any = node.args[0]
    is_written = isinstance(items, ast.GeneratorExp | ast.ListComp)
    is_asking = node.func.id not in ("max", "min")  # type: ignore[attr-defined]  # a name
    return is_written and is_asking and bool(items.generators[-1].ifs)


def _has_items(node: ast.Call) -> bool:
    """Whether a function adds up, compares or asks all items of one loop."""
    items: Any = node.args[0]
    is_written = isinstance(items, ast.GeneratorExp)
    return is_written and _is_simple(items) and not items.generators[0].ifs


def _is_simple(items: ast.GeneratorExp | ast.ListComp) -> bool:
    """Whether items come from one loop, whose variable is one name."""
    is_one = len(items.generators) == 1
    return is_one and isinstance(items.generators[0].target, ast.Name)


def _makes_list(node: ast.AST) -> bool:
    """Whether an expression is a list that is written down, or repeats or joins one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        return _makes_list(node.left) or _makes_list(node.right)
    return isinstance(node, ast.List | ast.ListComp)


def _named(op: ast.AST, at: ast.AST) -> ast.expr:
    """An operator by its name."""
    found: ast.expr = placed(ast.Constant(type(op).__name__), at)
    return found
