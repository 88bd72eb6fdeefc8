"""A row: an array that stands for its place, and may not be computed yet."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from lantern.batching.rows import Store
from lantern.core.value import Level, Value
from lantern.errors import RuleError
from lantern.tensor.accumulate.accumulator import Accumulator
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.tensor import Tensor

__all__ = ["Kind", "Row", "row_at"]


class Kind(NamedTuple):
    """What is known of an own array before it is computed.

    Attributes:
        shape, dtype: its own.
        level: the derivative that tracks it.
        library: the functions of its library.
        parts: if it is a part of a row, the indices that lead to it.
        whole: the kind of that row, and its number.
    """

    shape: tuple[int, ...]
    dtype: Any
    level: Level
    library: Any
    parts: tuple[Any, ...] = ()
    whole: Any = None


class Row(Tensor):
    """One row of a store: an array that is read when someone looks at it.

    Attributes:
        call: the call that will compute it; None when it is there.
        store, position: where it is. To look for them is to wait for the call.
        value: the row, once it is read.
    """

    __slots__ = ("call", "position", "store", "value")

    call: Any
    store: Store
    position: int
    value: Any

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """An array as any other: what makes a value of x's class makes no row."""
        return Tensor(*args, **options)

    def __getattr__(self, name: str) -> Any:
        """What is not there yet: a place that was not computed, a value not read."""
        if name == "value":
            self.value = self.store.row(self.position)
            return self.value
        if name not in ("store", "position") or self.call is None:
            raise AttributeError(f"an array has no attribute {name!r}")
        try:
            self.call.wait()
        except AttributeError as error:  # hasattr would take it for an answer
            raise RuleError(f"batch: the call of this row failed: {error}") from error
        return getattr(self, name)

    @classmethod
    def emerge(cls, primal: Any, level: Any, *args: Any, **options: Any) -> Any:
        """What is computed from a row is a tensor, or a value for many examples."""
        if not level.is_derivative:
            return primal
        return Tensor.emerge(primal, level, *args, **options)

    def read(self) -> Any:
        """The row as an array; tracked by the derivative of its store."""
        return self.value

    def frozen(self) -> Any:
        """The row as an array, outside of the batch."""
        return self.value

    def read_together(self, values: Sequence[Any]) -> Any:
        """Rows, read together where they are of the same store."""
        if not all(type(x) is Row for x in values):
            return None
        parts = [
            store.gather([row.position for row in rows])
            for store, rows in groupby(values, attrgetter("store"))
        ]
        return parts[0] if len(parts) == 1 else concat(parts)

    @property
    def level(self) -> Level:  # type: ignore[override]  # a slot of Tensor
        """The derivative that tracks the row."""
        return self.store.level

    @property
    def primal(self) -> Any:
        """The row's primal."""
        value = self.read()
        return value.primal if isinstance(value, Value) else value

    @property
    def receiver(self) -> Any:  # type: ignore[override]  # a slot of Tensor
        """Who waits for the row's cotangent."""
        value = self.read()
        if isinstance(value, Value):
            return value.receiver
        return Accumulator().prepare(value.shape, value.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.store.shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.store.dtype


def row_at(store: Store, position: int) -> Row:
    """A row that is there."""
    row: Row = object.__new__(Row)
    row.call, row.store, row.position = None, store, position
    return row
