"""Staged values: they are used like numbers and arrays, and leave nodes behind.

The class of a value says what it can do: ``Staged`` for Python's numbers, whose every
operator is a node, and ``StagedArray`` for arrays, which knows its shape. Neither can
tell what is true or how long a loop is, for that is known when the program runs.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

from lantern.errors import StagingError
from lantern.staging.ir import Node, constant, emit
from lantern.staging.operations import Hole, Options, apply
from lantern.staging.types import BOOL, FLOAT, INT, TREE, type_of

__all__ = [
    "CLASSES",
    "NeedsPlainError",
    "Staged",
    "StagedArray",
    "is_staged",
    "node_of",
    "operate",
    "perform",
    "staged",
]


class NeedsPlainError(StagingError):
    """A staged number is asked for as a plain one: what asks has to be unrolled."""


class Staged:
    """A number that is known when the program runs.

    Attributes:
        node: what computes it.
    """

    __slots__ = ("node",)
    __array_ufunc__ = None
    __array_priority__ = 1000

    def __init__(self, node: Node) -> None:
        self.node = node

    def __hash__(self) -> int:
        raise NeedsPlainError(
            "hash: a staged number is asked for as a key, which is not known yet. "
            "Compare it with each."
        )

    def __bool__(self) -> bool:
        if self.node.op == "constant":
            return bool(self.node.static.value)
        raise NeedsPlainError(
            "bool: what a staged value is, is known only when the program runs, but "
            "this code asks now. Use lantern.staging.IF, WHILE or LOOP here, or "
            "lantern.where."
        )

    def __index__(self) -> int:
        if self.node.op == "constant" and self.node.type in (INT, BOOL):
            return int(self.node.static.value)
        raise NeedsPlainError(
            "index: a staged number is asked for as a plain one. Loop with "
            "lantern.staging.LOOP, or make it a constant of the program."
        )

    def _refuse(self, *others: Any) -> NoReturn:
        raise NeedsPlainError(
            "float: a staged number would become a plain one, which is not known yet. "
            "Use lantern's functions."
        )

    __float__ = __int__ = __complex__ = __round__ = _refuse
    __trunc__ = __floor__ = __ceil__ = __iter__ = __len__ = _refuse
    __format__ = __str__ = __repr__ = _refuse

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def conjugate(self) -> Any:
        """The number itself: it is real."""
        return operate("positive", self)

    @property
    def real(self) -> Any:
        """The number itself."""
        return operate("positive", self)

    @property
    def imag(self) -> Any:
        """Zero."""
        return operate("multiply", self, 0)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Any:
        return operate("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return operate("matmul", other, self)


class StagedArray(Staged):
    """An array that is known when the program runs, and whose shape is known now."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as for arrays

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.node.example, name)
        if callable(found):
            return lambda *args, **kwargs: perform("." + name, (self, *args), kwargs)
        return found if type_of(found) is None else perform("@" + name, (self,), {})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.node.type.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.node.type.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.node.example.size)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return int(self.node.example.itemsize)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return int(self.node.example.nbytes)

    def __len__(self) -> int:  # type: ignore[override]  # a number has no length
        return len(self.node.example)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # nor elements
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return perform("item", (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        """Stand for an array with other elements there, as a rule's own array does."""
        self.node = perform("put", (self, value, index), {}).node

    @property
    def real(self) -> Any:
        """The real part."""
        return perform("@real", (self,), {})

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return perform("@imag", (self,), {})

    def conjugate(self) -> Any:
        """The complex conjugate."""
        return perform(".conjugate", (self,), {})

    conj = conjugate


def is_staged(x: Any) -> bool:
    """Whether a value is known only when the program runs."""
    return isinstance(x, Staged)


CLASSES: dict[str, type[Staged]] = {"array": StagedArray}
"""The classes of staged values that are no numbers, by the kind of their type."""


def staged(node: Any) -> Any:
    """A node as a value; a tuple of nodes as a tuple; anything else as it is."""
    if type(node) is Node:
        if node.type is FLOAT:
            return Staged(node)
        return CLASSES.get(node.type.kind, Staged)(node)
    return tuple(map(staged, node)) if isinstance(node, tuple) else node


def node_of(x: Any) -> Node:
    """The node of a staged value, or of a plain number."""
    if type(x) is float:
        return constant(x, FLOAT)
    if type(x) is Staged:
        return x.node
    if isinstance(x, Staged):
        return emit("unbox", (x.node,), FLOAT) if x.node.type is TREE else x.node
    known = type_of(x)
    if known is None:
        raise StagingError(
            f"constant: {x!r} of type {type(x).__name__} cannot be a value of a staged "
            f"program. Use numbers and arrays."
        )
    node = constant(x, known)
    if known.kind == "array":
        node.example = x
    return node


def operate(op: str, *operands: Any) -> Any:
    """An operation whose operands are staged or plain numbers."""
    return staged(apply(op, tuple(map(node_of, operands))))


def perform(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An operation of any arguments, staged ones among them."""
    if not kwargs and all(type(x) in (Staged, float, int, bool) for x in args):
        return operate(op, *args)
    nodes: list[Node] = []
    holes = tuple(_with_holes(x, nodes) for x in args)
    options = tuple((name, _with_holes(x, nodes)) for name, x in kwargs.items())
    return staged(apply(op, tuple(nodes), Options(holes, options)))


def _with_holes(x: Any, nodes: list[Node]) -> Any:
    """An argument with holes in place of what is staged."""
    if isinstance(x, Staged):
        nodes.append(x.node)
        return Hole(len(nodes) - 1)
    kind = type(x)
    if kind is list or kind is tuple:
        return kind([_with_holes(y, nodes) for y in x])
    if kind is slice:
        return slice(*(_with_holes(y, nodes) for y in (x.start, x.stop, x.step)))
    return x


_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
_COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "invert"}


def _is_operand(x: Any) -> bool:
    kind = type(x)
    if kind is Staged or kind is float or kind is int:
        return True
    return isinstance(x, Staged) or type_of(x) is not None


def _install() -> None:
    """Give staged values the operators of Python."""

    def forward(op: str) -> Any:
        def operator(x: Any, y: Any) -> Any:
            if type(y) is Staged is type(x):
                return staged(apply(op, (x.node, y.node)))
            if not _is_operand(y):
                return NotImplemented
            return staged(apply(op, (node_of(x), node_of(y))))

        return operator

    def reflected(op: str) -> Any:
        def operator(x: Any, y: Any) -> Any:
            if not _is_operand(y):
                return NotImplemented
            return staged(apply(op, (node_of(y), node_of(x))))

        return operator

    def unary(op: str) -> Any:
        return lambda x: operate(op, x)

    for name, op in _BINARY.items():
        setattr(Staged, f"__{name}__", forward(op))
        setattr(Staged, f"__r{name}__", reflected(op))
    for name, op in _COMPARISONS.items():
        setattr(Staged, f"__{name}__", forward(op))
    for name, op in _UNARY.items():
        setattr(Staged, f"__{name}__", unary(op))


_install()
