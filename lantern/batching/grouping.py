"""Groups of calls that are alike: arguments stacked, and results cut in rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from lantern.batching.row import Row, row_at
from lantern.batching.rows import Alone, Given, Key, Store, new_store
from lantern.core.tree import is_leaf, tree_leaves, tree_map, tree_structure
from lantern.core.value import UNTRACKED, Value, base
from lantern.errors import ShapeError
from lantern.tensor.backend.numpy_namespace import numpy_namespace as numpy
from lantern.tensor.ops.concat_stack import stack as stack_values

__all__ = [
    "NUMBERS",
    "Common",
    "Stores",
    "check_rows",
    "check_same",
    "describe",
    "is_own",
    "row_alone",
    "shared_key",
    "stack_alone",
    "stack_columns",
    "stack_leaves",
]

NUMBERS = frozenset({bool, int, float, complex})


class Stores:
    """The stores of one batch, by the kind of their rows.

    A kind is a shape, a type and a derivative; it has a number, as its hash takes long.

    Args:
        make: makes a store of a key and the first array of rows.
    """

    def __init__(self, make: Callable[[Key, Any], Store] = new_store) -> None:
        self.make = make
        self.kinds: dict[Key, int] = {}
        self.stores: dict[int, Store] = {}
        self.batch = object()  # whose rows these are

    def kind(self, key: Key) -> int:
        """The number of a kind."""
        return self.kinds.setdefault(key, len(self.kinds))

    def add(self, stack: Any) -> tuple[Store, int]:
        """Take an array of rows: where it lies, and the number of the first row."""
        key = (stack.shape[1:], stack.dtype, getattr(stack, "level", UNTRACKED))
        kind = self.kind(key)
        store = self.stores.get(kind)
        if store is None:
            store = self.stores[kind] = self.make(key, stack)
            store.kind, store.batch = kind, self.batch
        return store, store.add(stack)

    def untracked(self) -> bool:
        """Whether there are rows that no derivative tracks."""
        return any(store.level is UNTRACKED for store in self.stores.values())


def check_rows(name: str, stack: Any, n: int) -> tuple[int, ...]:
    """The shape of an array of a function's result, if it has n rows.

    Raises:
        ShapeError: if it does not.
    """
    shape = getattr(stack, "shape", None)
    if not shape or shape[0] != n:
        what = type(stack).__name__ if shape is None else f"shape {tuple(shape)}"
        raise ShapeError(
            f"{name}: called for {n} rows at once, it returned {what}. A batched "
            f"function returns arrays whose first axis counts the rows: keep that axis "
            f"in every sum, mean and reshape (axis=-1, axis=(1, 2))."
        )
    return shape


def describe(x: Any, leaves: list[Any], stores: Stores) -> Any:
    """What must be equal in the arguments of two calls, for them to be stacked.

    Shapes, types and derivatives of arrays; types of numbers; anything else by value.
    Rows of this batch may not yet have a shape: they are told apart when they have.

    Args:
        x: an argument, of any structure.
        leaves: gets the arrays and numbers in it.
        stores: where the rows of this batch are.
    """
    kind = type(x)
    if kind is Row and is_own(x, stores.batch):
        leaves.append(x)
        return Row
    if kind is tuple:
        return tuple, *[describe(y, leaves, stores) for y in x]
    if kind in NUMBERS:
        leaves.append(x)
        return kind
    if hasattr(x, "dtype"):
        leaves.append(x)
        return stores.kind((x.shape, x.dtype, getattr(x, "level", UNTRACKED)))
    if isinstance(x, Value):
        leaves.append(x)
        return kind, type(base(x)), x.level
    if is_leaf(x):
        return kind, shared_key(x)
    parts: list[Any] = []
    tree_map(lambda leaf: parts.append(describe(leaf, leaves, stores)), x)
    return str(tree_structure(x)), *parts


def is_own(x: Any, batch: object) -> bool:
    """Whether a leaf of an argument is a row of a batch."""
    if type(x) is not Row:
        return False
    call = x.call
    return (x.store.batch if call is None else call.form.batch) is batch


def shared_key(x: Any) -> Any:
    """An argument that a group of calls has in common: by value, or by identity."""
    if type(x).__hash__ is None:  # the usual case: an array, a dictionary of weights
        return id(x)
    try:
        hash(x)
    except TypeError:  # something in it is not hashable
        return id(x)
    return type(x), x


def stack_leaves(x: Any, stacked: Iterator[Any]) -> Any:
    """An argument of a call, its arrays and numbers replaced by those of all calls."""
    if type(x) is tuple:
        return tuple([stack_leaves(y, stacked) for y in x])
    if type(x) in NUMBERS or hasattr(x, "dtype") or isinstance(x, Value):
        return next(stacked)
    return x if is_leaf(x) else tree_map(lambda leaf: stack_leaves(leaf, stacked), x)


def stack(column: Sequence[Any], dtype: Any) -> Any:
    """The same leaf of several calls, as one array with an axis for the calls.

    Args:
        column: a leaf for each call.
        dtype: the type for Python's numbers with a fraction.
    """
    first = column[0]
    kind = type(first)
    if kind is Row:
        store = first.store
        if all(type(x) is Row and x.store is store for x in column):
            return store.gather([x.position for x in column])
    if kind in NUMBERS:
        return numpy.array(column, dtype=dtype if kind is float else None)
    column = [x.read() if type(x) is Row else x for x in column]
    if not any(isinstance(x, Value) for x in column) and hasattr(first, "__array__"):
        return numpy.stack(column)
    return stack_values(column)


def gather(rows: Sequence[Row], stores: Stores | None) -> Any:
    """Rows of one kind, stacked; those that were given go to where the others are."""
    if stores is not None:
        given = [row for row in rows if type(row.store) is Given]
        if given:
            arrays = stack([row.read() for row in given], None)
            if len(given) == len(rows):
                return arrays
            store, start = stores.add(arrays)
            for position, row in enumerate(given, start):
                row.store, row.position = store, position
    return rows[0].store.gather([row.position for row in rows])


class Common(NamedTuple):
    """What is the same in all calls, in place of a stack."""

    value: Any


def stack_columns(
    rows: Sequence[Sequence[Any]],
    own: Sequence[int] = (),
    steady: Sequence[int] = (),
    stores: Stores | None = None,
) -> list[Any]:
    """Each leaf, stacked over the calls.

    Args:
        rows: the leaves of each call.
        own: which leaves are known to be rows of one kind.
        stores: where arrays go that were given, if there are such among the rows.
        steady: which need not be stacked where they are the same object in all calls.
    """
    kinds = [x.dtype for x in rows[0] if hasattr(x, "dtype") and x.dtype.kind in "fc"]
    dtype = numpy.result_type(*kinds) if kinds else None
    if dtype is not None and dtype.kind == "c":
        dtype = numpy.empty(0, dtype).real.dtype
    return [
        gather(column, stores)
        if i in own
        else Common(column[0])
        if i in steady and all(x is column[0] for x in column)
        else stack(column, dtype)
        for i, column in enumerate(zip(*rows, strict=True))
    ]


def check_same(name: str, i: int, alone: Any, together: Any) -> None:
    """Refuse results that depend on which calls are run together.

    Args:
        name: of the function.
        i: the number of a row.
        alone: the result for this row alone.
        together: the result for all of them.
    """
    for x, y in zip(tree_leaves(alone), tree_leaves(together), strict=True):
        x, y = base(x), base(y)
        rtol = float(numpy.finfo(x.dtype).eps) ** 0.5 if x.dtype.kind in "fc" else 0.0
        if not numpy.allclose(x[0], y[i], rtol=rtol, atol=rtol, equal_nan=True):
            raise ShapeError(
                f"{name}: row {i} of {len(y)} has another result when it is run alone. "
                f"A batched function must treat each entry of the first axis by "
                f"itself: no mean, softmax or normalization over axis 0, no state."
            )


def stack_alone(x: Any) -> Any:
    """An argument of a call outside of a batch, with an axis for that one call."""
    kind = type(x)
    if kind is Row and type(x.store) is Alone:
        return x.store.stack
    if kind is int:
        return numpy.array([x])
    leaves: list[Any] = []
    describe(x, leaves, Stores())
    return stack_leaves(x, iter(stack_columns([leaves])))


def row_alone(name: str, result: Any) -> Any:
    """The result of a call outside of a batch, without the axis for that one call."""
    if not is_leaf(result):
        return tree_map(lambda x: row_alone(name, x), result)
    check_rows(name, result, 1)
    if getattr(result, "level", UNTRACKED) is UNTRACKED:
        return base(result)[0]
    if not result.level.is_derivative:  # of a vmap: no array with rows in a store
        return result[0]
    return row_at(Alone(result), 0)
