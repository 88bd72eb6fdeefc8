"""An example's own arrays, and their level: each operation on one is deferred.

The level of a batch lies between the derivatives around it and those that its examples
take, as that of a ``vmap`` does. What operations on own arrays give are own arrays too.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lantern.batching.constants import (
    IMMUTABLE,
    Constants,
    Same,
    is_array,
    plain_index,
)
from lantern.batching.grouping import shared_key
from lantern.batching.row import Kind, Row, row_at
from lantern.batching.rows import Given
from lantern.control.no_grad import quiet_levels
from lantern.core.dispatch import register_class
from lantern.core.namespace import common_namespace, register_tracking
from lantern.core.operation import Function, operation_of
from lantern.core.tree import tree_leaves, tree_map, tree_replace
from lantern.core.value import UNTRACKED, Value, base
from lantern.cps.context import thread_id
from lantern.op import registry
from lantern.rules.operators import install
from lantern.tensor.array_api_methods import StandardArray
from lantern.tensor.backend.numpy_namespace import buffers, numpy_namespace
from lantern.tensor.ops.creation import stop_gradient
from lantern.tensor.ops.indexing import getitem
from lantern.tensor.ops.products import matmul
from lantern.tensor.ops.shape import matrix_transpose
from lantern.tensor.tensor import Tensor
from lantern.vectorizing import namespace
from lantern.vectorizing.batched import Batched, Examples
from lantern.vectorizing.batching_rules import direct, elementwise
from lantern.vectorizing.dispatch import TAKE_BATCHED_STATICS, batching_rule_of
from lantern.vectorizing.namespace import library

__all__ = ["MARK", "Operations", "Own"]


class Own(Batched):
    """An array of one example of a batch: operations on it wait for other examples.

    Attributes:
        row: where it is, or will be.
        kind: what is known of it.
        number: of the kind; in keys, as a kind takes long to hash.
    """

    __slots__ = ("kind", "number", "row")

    level: "Operations"
    row: Any

    def __init__(
        self,
        row: Row,
        level: "Operations",
        kind: Kind,
        number: int,
        mapped: bool = True,
    ) -> None:
        self.row, self.level, self.mapped = row, level, mapped
        self.kind, self.number, self.shape = kind, number, kind.shape

    def look(self) -> Any:
        """The array itself, as soon as it is there; tracked by derivatives around."""
        x = self.row.read()
        for index in self.kind.parts:
            x = x[index]
        return x

    def whole(self) -> "Own":
        """The same array as a row of its own, and no part of one."""
        if not self.kind.parts:
            return self
        x: Any = Own(self.row, self.level, *self.kind.whole)
        for index in self.kind.parts:
            x = self.level.compute(_READ, _READ_FUNCTION, (x,), {"index": index})
        return x

    def given(self) -> Any:
        """The array that has come with the example; None if it was computed."""
        row = self.row
        there = row.call is None and type(row.store) is Given
        return row.store.array if there else None

    stacked = inside = property(look)

    def plain(self, where: str = "float") -> Any:
        """The array itself, unless that would lose a derivative."""
        x = self.look()
        return x.plain(where) if isinstance(x, StandardArray) else x

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.kind.dtype

    @property
    def library(self) -> Any:
        """The functions of the array's library."""
        return self.kind.library

    def detached(self) -> Any:
        """The same as a constant to all derivatives outside."""
        return self.level.compute(direct, stop_gradient, (self,), {})

    def common(self, x: Any) -> Any:
        """A value of this one's level that all examples have in common."""
        return self.level.own(x, mapped=False)

    @property
    def mT(self) -> Any:
        """The array with its last two axes swapped."""
        return matrix_transpose(self)

    def __getitem__(self, index: Any) -> Any:
        parts, level = index if type(index) is tuple else (index,), self.level
        if not all(type(part) in _BASIC for part in parts):
            return getitem(self, index)
        given = self.given()
        if type(given) in buffers:
            return level.own(given[index])  # a view: sooner done than put down
        return level.part(self, tuple(map(plain_index, parts)))

    def __len__(self) -> int:
        return self.shape[0] if self.shape else len(self.look())

    def __array__(self, *args: Any, **options: Any) -> Any:
        return self.look().__array__(*args, **options)

    def __repr__(self) -> str:
        return f"Own(shape {self.shape}, {self.dtype}, of an example of a batch)"


def _looking(name: str) -> Function:
    """A method for which the array itself is needed."""

    def method(self: Own, *args: Any) -> Any:
        return getattr(self.look(), name)(*args)

    method.__name__ = name
    method.__doc__ = f"As ``{name}`` of the array itself."
    return method


for _name in (
    "__bool__ __int__ __float__ __complex__ __index__ __format__ item tolist nonzero"
).split():
    setattr(Own, _name, _looking(_name))


class Operations(Examples):
    """The level of the examples of one batch.

    Args:
        scheduler: of the batch.
    """

    __slots__ = ("batch", "constants", "kinds", "scheduler")

    def __init__(self, scheduler: Any) -> None:
        super().__init__("batch", 1)
        self.depth = scheduler.depth
        self.scheduler, self.batch = scheduler, scheduler.stores.batch
        self.kinds: dict[Any, tuple[Kind, int]] = {}
        self.constants = Constants()

    def close(self) -> None:
        """End this level: its values are computed with as the arrays that they are."""
        self.scheduler = None
        self.constants = Constants()

    def kind(self, x: Any, shape: Any) -> tuple[Kind, int]:
        """What is known of arrays of a shape that are otherwise like x; its number."""
        level = getattr(x, "level", UNTRACKED)
        key = (shape, x.dtype, level)
        known = self.kinds.get(key)
        if known is None:
            kind = Kind(shape, x.dtype, level, library(x))
            known = self.kinds[key] = (kind, len(self.kinds))
        return known

    def own(self, x: Any, mapped: bool = True) -> Own:
        """An array that is there, as one of an example, or common to all."""
        like = x if hasattr(x, "dtype") else numpy_namespace.asarray(base(x))
        row = row_at(Given(x, like, self.batch), 0)
        return Own(row, self, *self.kind(like, like.shape), mapped)

    def part(self, x: Own, index: tuple[Any, ...]) -> Own:
        """A part of an own array; it is read when someone needs it."""
        key = x.number, *map(repr, index)
        known = self.kinds.get(key)
        if known is None:
            nothing = numpy_namespace.broadcast_to(numpy_namespace.zeros(()), x.shape)
            kind = x.kind._replace(
                shape=nothing[index].shape,
                parts=(*x.kind.parts, index),
                whole=x.kind.whole or (x.kind, x.number),
            )
            known = self.kinds[key] = (kind, len(self.kinds))
        return Own(x.row, self, *known)

    def enter(self, example: Any) -> Any:
        """An example, the arrays in it its own."""
        return tree_replace(
            lambda x: self.own(self.constants.now(x)) if is_array(x) else x,
            example,
        )

    def leave(self, tree: Any) -> Any:
        """A structure with the arrays, or the rows, in place of own arrays."""

        def leaf(x: Any) -> Any:
            if not self.owns(x):
                return x
            given = x.given()
            return x.whole().row if given is None else given

        return tree_replace(leaf, tree)

    def owns(self, x: Any) -> bool:
        """Whether a value belongs to this level."""
        return type(x) is Own and x.level is self

    def comes_first(self, y: Any) -> bool:
        """Whether an operation of an own array and y is surely one of this level."""
        kind = type(y)
        if kind is Own or kind is Tensor:
            return bool(y.level.depth <= self.depth)
        return kind is float or kind is int or kind in buffers

    def compute(
        self,
        form: Any,
        function: Any,
        operands: Sequence[Any],
        statics: Mapping[str, Any],
    ) -> Any:
        """Put down an operation: its results, which are not yet computed."""
        scheduler = self.scheduler
        if (
            scheduler is None
            or scheduler.current is None
            or quiet_levels() is not scheduler.quiet
            or thread_id() != scheduler.thread
        ):
            return self._at_once(function, operands, statics)
        many = form is elementwise
        leaves: list[Any] = []
        key: list[Any] = [function]
        if type(function) is partial:
            key = [function.func, *function.args]
        for x in operands:
            if type(x) is Own and x.level is self and x.mapped:
                leaves.append(x.row)
                key.append(x.number)
            elif type(x) is Tensor and not many:
                key.append(id(x))
            else:
                key.append(self._describe(x, many, leaves))
        if statics:
            statics = {name: self._settled(form, x) for name, x in statics.items()}
            for name, x in statics.items():
                key += name, self._describe(x, False, leaves)
        call = form, function, operands, statics
        return scheduler.put_down_operation(tuple(key), call, leaves)

    def _at_once(
        self, function: Function, operands: Sequence[Any], statics: Any
    ) -> Any:
        """An operation on the arrays themselves, where nobody can wait for others.

        So it is when the batch is over, and where a derivative keeps nothing.
        """
        operands, statics = tree_map(self._looked, (tuple(operands), dict(statics)))
        return function(*operands, **statics)

    def _looked(self, x: Any) -> Any:
        return x.look() if self.owns(x) else x

    def by_values(self, name: str, args: Any, kwargs: Any) -> Any:
        """A function whose result has a size that depends on values."""
        args, kwargs = tree_map(self._looked, (args, kwargs))
        return getattr(common_namespace(*tree_leaves(args)), name)(*args, **kwargs)

    def _settled(self, form: Any, x: Any) -> Any:
        """A static argument; read, where it decides what form the result has."""

        def settle(leaf: Any) -> Any:
            if not self.owns(leaf) or not leaf.mapped:
                return leaf
            mask = leaf.dtype.kind == "b" and form is not elementwise
            takes = form in TAKE_BATCHED_STATICS and not mask
            return leaf if takes else leaf.look()

        kind = type(x)
        if kind in IMMUTABLE:
            return x
        if kind is slice:
            parts = x.start, x.stop, x.step
            if all(type(y) in IMMUTABLE for y in parts):
                return x
            return slice(*[self._settled(direct, y) for y in parts])
        return settle(x) if isinstance(x, Value) else tree_replace(settle, x)

    def _describe(self, x: Any, many: bool, leaves: list[Any]) -> Any:
        """What must be equal in an argument of two calls, for them to be run as one.

        Args:
            x: the argument.
            many: whether arrays and numbers may be others in each call.
            leaves: gets what may be.
        """
        kind = type(x)
        if kind is float:
            if not many:
                return x.hex()  # 0.0 is not -0.0
            leaves.append(x)
            return float
        if kind in IMMUTABLE:
            return kind, repr(x) if kind is complex else x
        if kind is slice:
            return slice, x.start, x.stop, x.step
        if kind is tuple or kind is list:
            return kind, *[self._describe(y, False, leaves) for y in x]
        if kind is dict:
            return kind, *x, *[self._describe(y, False, leaves) for y in x.values()]
        if kind is Own and x.level is self:
            if x.mapped:
                leaves.append(x.row)
                return x.number
            return "common", self._describe(x.given(), many, leaves)
        if is_array(x):
            x = self.constants.now(x)
            if not many:
                return Same(x)
            leaves.append(x)
            return -1 - self.kind(x, x.shape)[1]  # not own
        return shared_key(x)

    def template(self, x: Any, many: bool, leaves: list[Any]) -> Any:
        """An argument with a mark wherever ``_describe`` finds a leaf.

        Args:
            x, many: as there.
            leaves: gets the leaves: own arrays, and others.
        """
        kind = type(x)
        if kind is Own and x.level is self and not x.mapped:
            return self.template(x.given(), many, leaves)
        if kind is tuple or kind is list:
            return kind([self.template(y, False, leaves) for y in x])
        if kind is dict:
            return {key: self.template(y, False, leaves) for key, y in x.items()}
        if self.owns(x) or (many and (kind is float or is_array(x))):
            leaves.append(x)
            return MARK
        return self.constants.now(x) if is_array(x) else x


MARK = object()
_BASIC = (int, slice, type(None), type(...))


def _operator(function: Function) -> tuple[Function, Function]:
    """The methods ``x op y`` and ``y op x`` of own arrays, in few steps."""
    form = batching_rule_of(operation_of(function.rule))  # type: ignore[attr-defined]

    def operate(x: Own, y: Any) -> Any:
        level = x.level
        if level.comes_first(y):
            return level.compute(form, function, (x, y), {})
        return function(x, y) if x.takes(y) else NotImplemented

    def operate_reflected(x: Own, y: Any) -> Any:
        level = x.level
        if level.comes_first(y):
            return level.compute(form, function, (y, x), {})
        return function(y, x) if x.takes(y) else NotImplemented

    return operate, operate_reflected


_READ_FUNCTION = registry["getitem"].function
_READ = batching_rule_of(registry["getitem"])
install(Own, _operator, {"matmul": matmul})
register_class(Own, Tensor)
register_tracking(Own, namespace)
