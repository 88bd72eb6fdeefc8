"""Values with an axis of examples that the program does not see.

``vmap`` is a level, as each derivative is: an operation belongs to the innermost level
among its operands. If that is one of examples, the operation is computed for all of
them at once, on arrays whose first axis counts the examples; those arrays may in turn
be values of the levels outside. To all levels inside, a batched value is an array of a
library of its own (``lantern.vectorizing.namespace``), with the shape of one example.
"""

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from lantern.core import residuals
from lantern.core.dispatch import register_class
from lantern.core.namespace import common_namespace, namespace, register_tracking
from lantern.core.numpy_protocols import scipys_words, works_on_plain_values
from lantern.core.operation import Function, RuleFunction, operation_of
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import Level, Value, base, levels, zeros_like
from lantern.errors import (
    ArgumentError,
    BatchedValueError,
    EscapedError,
    MutationError,
)
from lantern.rules.operators import BINARY, install
from lantern.tensor.backend.numpy_namespace import array_namespace, arrays
from lantern.tensor.immutable import refuse_out
from lantern.tensor.ndarray_methods import NdarrayMethods
from lantern.tensor.ops.creation import stop_gradient
from lantern.tensor.ops.indexing import getitem
from lantern.tensor.ops.products import matmul
from lantern.tensor.ops.shape import matrix_transpose
from lantern.tensor.tensor import Tensor
from lantern.vectorizing import batching_rules
from lantern.vectorizing import namespace as batched_functions
from lantern.vectorizing.batching_rules import (
    BatchedCall,
    BatchingRule,
    aligned,
    beside,
)
from lantern.vectorizing.dispatch import (
    TAKE_BATCHED_STATICS,
    batching_rule_of,
    by_rule,
    function_of,
)

__all__ = ["Batched", "Examples", "without_derivative"]


class Examples(Level):
    """The level of one ``vmap``.

    Args:
        name: for messages.
        size: how many examples there are.
    """

    __slots__ = ("is_open", "size")
    is_derivative: ClassVar[bool] = False
    keep = residuals.keep_as_it_is

    def __init__(self, name: str, size: int) -> None:
        self.name, self.driver = name, "in place"
        self.depth = next(levels)
        self.size, self.is_open = size, True

    @property
    def is_over(self) -> bool:
        """Whether its values can only be read any more."""
        return not self.is_open

    def close(self) -> None:
        """End this level: its values can be read, but not computed with."""
        self.is_open = False

    def begin(  # type: ignore[override]
        self, rule: RuleFunction, arguments: Sequence[Any], statics: Mapping[str, Any]
    ) -> Iterator[Any]:
        """An operation on batched operands, in the form of a started rule."""
        operation = operation_of(rule)
        if operation.batching is by_rule:
            return iter((next(rule(*arguments, **statics)),))
        count = operation.arity
        if 0 <= count < len(arguments):
            named = dict(zip(operation.others, arguments[count:], strict=False))
            arguments, statics = arguments[:count], named | dict(statics)
        batching, function = batching_rule_of(operation), function_of(rule, operation)
        return iter((self.compute(batching, function, arguments, statics),))

    def owns(self, x: Any) -> bool:
        """Whether a value has this level's axis of examples."""
        return type(x) is Batched and x.level is self

    def by_values(self, name: str, args: Any, kwargs: Any) -> Any:
        """A function whose result has a size that depends on values."""
        raise BatchedValueError(
            f"{name}: inside vmap the result would have another size for each example. "
            f"Use lantern.where(condition, x, y), which keeps the size."
        )

    def compute(
        self,
        batching: BatchingRule,
        function: Function,
        operands: Sequence[Any],
        statics: Mapping[str, Any],
    ) -> Any:
        """The result of an operation for all examples.

        Args:
            batching: how the operation is computed for all of them at once.
            function: the operation, on values of the levels outside.
            operands: some of them batched.
            statics: its other arguments by name.
        """
        if not self.is_open:
            raise EscapedError(
                "vmap: a batched value was used after the vmap that it belongs to was "
                "over. Return what you need from the mapped function."
            )
        mapped, stacked = [], []
        for x in operands:
            own = type(x) is Batched and x.level is self
            mapped.append(own and x.mapped)
            stacked.append(x.stacked if own else x)
        if statics:
            stacked[:1] = [beside(x, statics, self) for x in stacked[:1]]
            leaves = [x for x in tree_leaves(tuple(statics.values())) if self.owns(x)]
            if any(x.mapped for x in leaves):
                if batching not in TAKE_BATCHED_STATICS:
                    batching = batching_rules.one_by_one
                mapped.append(True)
            elif leaves:
                common = lambda x: x.stacked if self.owns(x) else x  # noqa: E731
                statics = tree_map(common, dict(statics))
        if not any(mapped):
            z = function(*stacked, **statics)
            return tree_map(lambda x: Batched(x, self, mapped=False), z)
        z = batching(
            BatchedCall(self, function, stacked, mapped[: len(stacked)], statics)
        )
        if isinstance(z, list | tuple):
            return tree_map(lambda x: Batched(x, self), z)
        return Batched(z, self)


def _no_single_value(where: str, instead: str) -> BatchedValueError:
    return BatchedValueError(
        scipys_words()
        or f"{where}: inside vmap this value stands for many examples at once, each "
        f"with a value of its own. {instead}"
    )


class Batched(NdarrayMethods):
    """An array of one example, for all examples of a ``vmap`` at once.

    Args:
        stacked: the arrays of all examples along a first axis; a value of the levels
            outside.
        level: the level.
        mapped: False if all examples have the same array, which then has no such axis.

    Attributes:
        shape: the length of each axis of one example.
    """

    __slots__ = ("level", "mapped", "shape", "stacked")
    rank: ClassVar[int] = 2
    library: ClassVar[Any] = None  # it is that of the arrays inside

    level: Examples
    shape: tuple[int, ...]

    def __init__(self, stacked: Any, level: Examples, mapped: bool = True) -> None:
        self.stacked, self.level, self.mapped = stacked, level, mapped
        self.shape = stacked.shape[1:] if mapped else getattr(stacked, "shape", ())

    @property
    def primal(self) -> Any:
        """The value itself: the operations of its level get it as it is."""
        return self

    @property
    def inside(self) -> Any:
        """The arrays of all examples."""
        return self.stacked

    def detached(self) -> Any:
        """The same as a constant to all derivatives outside."""
        return Batched(stop_gradient(self.stacked), self.level, self.mapped)

    @property
    def receiver(self) -> Any:
        """The value itself, in place of a receiver: no derivative is taken here."""
        return self

    @classmethod
    def emerge(cls, primal: Any, *_: Any) -> Any:
        """What an operation on batched values has computed, as it is."""
        return primal

    def common(self, x: Any) -> Any:
        """A value of this one's level that all examples have in common."""
        return Batched(x, self.level, mapped=False)

    def join(self, x: Any) -> Any:
        """A value among those of this one's level, to be computed with this one.

        An operation is found by its differentiable operands. One that depends on the
        examples through a static argument alone, as an index, needs an operand that
        says so.
        """
        if not isinstance(x, Value) or x.level.depth < self.level.depth:
            return self.common(x)
        if x.level is self.level:
            return x
        tracked: Any = x
        return tracked + self.common(zeros_like(x))

    def copy(self) -> Any:
        """An array of its own."""
        x: Any = self
        return x | False if self.dtype.kind == "b" else +x

    @property
    def mT(self) -> Any:
        """The array with its last two axes swapped."""
        if self.mapped and self.level.is_open and len(self.shape) >= 2:
            return Batched(self.stacked.mT, self.level)
        return matrix_transpose(self)

    def __getitem__(self, index: Any) -> Any:
        parts = index if type(index) is tuple else (index,)
        simple = self.mapped and self.level.is_open
        if simple and all(type(part) in _BASIC for part in parts):
            return Batched(self.stacked[(slice(None), *parts)], self.level)
        return getitem(self, index)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        plain = base(self.stacked)
        if hasattr(plain, "dtype"):
            return plain.dtype
        return array_namespace(plain).asarray(plain).dtype

    @property
    def ndim(self) -> int:
        """The number of axes of one example."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of one example."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes that one element takes."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """The bytes that the elements of one example take."""
        return self.size * self.itemsize

    def plain(self, where: str = "float") -> NoReturn:
        """Never the array itself: there is one for each example."""
        raise _no_single_value(
            where,
            "Use lantern's or NumPy's functions; lantern.stack to build arrays, and "
            "lantern.getitem(table, i) to read one.",
        )

    def __bool__(self) -> NoReturn:
        raise _no_single_value(
            "if", "Write lantern.where(condition, x, y) in place of if, and, or, while."
        )

    def __int__(self) -> NoReturn:
        self.plain("int")

    def __float__(self) -> NoReturn:
        self.plain("float")

    def __complex__(self) -> NoReturn:
        self.plain("complex")

    def __round__(self, ndigits: int | None = None) -> NoReturn:
        self.plain("round")

    def __index__(self) -> int:
        return int(self.plain("index"))

    def item(self) -> NoReturn:
        """Never one number: there is one for each example."""
        self.plain("item")

    def tolist(self) -> NoReturn:
        """Never numbers: there are others for each example."""
        self.plain("tolist")

    def nonzero(self) -> Any:
        """Never positions: there are others for each example, and more or fewer."""
        return namespace(self).nonzero(self)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self.plain("numpy.array")

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        """Run a universal function of NumPy for all examples."""
        name = ufunc.__name__
        if name in _REFLECTED and type(inputs[0]) in arrays and not kwargs:
            return getattr(self, _REFLECTED[name])(inputs[0])
        plain = works_on_plain_values(name) or name in _BITWISE
        if method != "__call__" or not plain:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        refuse_out(name, inputs, kwargs)
        return getattr(namespace(self), name)(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Run an array function of NumPy for all examples."""
        name = func.__name__
        if not works_on_plain_values(name) and name not in namespace(self).REFUSED:
            return super().__array_function__(func, types, args, kwargs)
        kwargs = dict(kwargs)
        refuse_out(name, args, kwargs)
        return getattr(namespace(self), name)(*args, **kwargs)

    def __invert__(self) -> Any:
        return namespace(self).invert(self)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise MutationError(
            "x[i] = v: a batched array cannot be written to. Use x.at[i].set(v)."
        )

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError(
                "len: inside vmap this value is one number for each example. For how "
                "many examples there are, ask the arrays before they are mapped."
            )
        return self.shape[0]

    def __repr__(self) -> str:
        examples = f"{self.level.size} examples of shape {self.shape}"
        return f"Batched({examples}, {self.level.name})"


def without_derivative(x: Any) -> Any:
    """A batched value as a constant to all levels outside; anything else as it is."""
    if type(x) is not Batched:
        return x
    inside = without_derivative(base(x.stacked))
    return x if inside is x.stacked else Batched(inside, x.level, x.mapped)


def _together(x: Batched, y: Any) -> tuple[Any, Any] | None:
    """The arrays of all examples of x and y, aligned; None where that takes more."""
    if not x.mapped or not x.level.is_open:
        return None
    kind = type(y)
    if kind is float or kind is int:
        return x.stacked, y
    if kind in arrays:
        return aligned(x.stacked, True, len(y.shape)), y
    if kind is Batched and y.level is x.level and y.mapped:
        n, m = len(x.shape), len(y.shape)
        return aligned(x.stacked, True, m), aligned(y.stacked, True, n)
    return None


def _operator(function: Function) -> tuple[Function, Function]:
    """The methods ``x op y`` and ``y op x``; of each element with no step too many."""
    symbol: Any = _SYMBOLS.get(function)

    def operate(x: Any, y: Any) -> Any:
        pair = _together(x, y) if symbol else None
        if pair:
            return Batched(symbol(*pair), x.level)
        return function(x, y) if x.takes(y) else NotImplemented

    def operate_reflected(x: Any, y: Any) -> Any:
        pair = _together(x, y) if symbol else None
        if pair:
            return Batched(symbol(*reversed(pair)), x.level)
        return function(y, x) if x.takes(y) else NotImplemented

    return operate, operate_reflected


def _constant(name: str) -> Function:
    """An operation with derivative zero, by its name in NumPy."""
    return lambda *operands: getattr(common_namespace(*operands), name)(*operands)


# What the rules of elementwise operators compute.
_SYMBOLS = {function: getattr(operator, name) for name, function in BINARY.items()}
# The methods for an array of NumPy on the left, by the name of its function.
_REFLECTED = {
    function.__name__: f"__r{name}__" for name, function in BINARY.items()
} | {"power": "__rpow__"}
_BITWISE = frozenset(
    "bitwise_and bitwise_or bitwise_xor gcd invert lcm left_shift right_shift".split()
)
_BASIC = (int, slice, type(None), type(...))
_CONSTANT = {
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "floordiv": "floor_divide",
}
_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}

install(
    Batched,
    _operator,
    {"matmul": matmul} | {name: _constant(ours) for name, ours in _CONSTANT.items()},
)
for _name, _ours in _COMPARISONS.items():
    setattr(Batched, f"__{_name}__", _operator(_constant(_ours))[0])
register_class(Batched, Tensor)
register_tracking(Batched, batched_functions)
