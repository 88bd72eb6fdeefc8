"""Rows stay in the arrays that they were computed in, until someone looks at one.

A result row goes from one group of calls into the next. So it is a place in a store,
and the rows that a group needs are read with one index. The way back is a scatter into
one buffer for each store.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from lantern.core.contribution import Call, Contribution
from lantern.core.namespace import namespace
from lantern.core.value import UNTRACKED, Rule, Value, base
from lantern.op import linear
from lantern.tensor.accumulate.accumulator import Accumulator
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.tensor.backend.numpy_namespace import numpy_namespace as numpy
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.ops.indexing import Scatter, adding_once
from lantern.tensor.tensor import Tensor
from lantern.transforms.reverse import Reverse

__all__ = ["Alone", "Given", "Key", "Store", "new_store", "take_rows"]

Key = tuple[Any, ...]


class Store:
    """The result rows of one shape, type and derivative, in the order of their making.

    Args:
        key: that shape, type and derivative.
        stack: the first array of rows.

    Attributes:
        kind, batch: the number of the key, and the batch in which it has that.
        level: the derivative.
        stacks: the arrays of rows, one for each group of calls.
        starts: the number of the first row of each.
        count: how many rows there are.
    """

    kind: int
    batch: object

    def __init__(self, key: Key, stack: Any) -> None:
        self.shape, self.dtype, self.level = key
        self.stacks: list[Any] = []
        self.starts: list[int] = []
        self.count = 0

    def add(self, stack: Any) -> int:
        """Take the results of a group of calls; return the number of the first row."""
        start = self.count
        self.stacks.append(stack)
        self.starts.append(start)
        self.count += len(stack)
        return start

    def row(self, position: int) -> Any:
        """One row."""
        number = bisect_right(self.starts, position) - 1
        return self.stacks[number][position - self.starts[number]]

    def whole(self, positions: Sequence[int]) -> Any:
        """The stack that consists of just these rows; None if there is none."""
        start, n = positions[0], len(positions)
        number = bisect_right(self.starts, start) - 1
        stack = self.stacks[number]
        if (
            self.starts[number] == start
            and len(stack) == n == positions[-1] - start + 1
        ):
            return stack if n < 3 or as_slice(positions) else None
        return None

    def gather(self, positions: Sequence[int]) -> Any:
        """Some rows, stacked."""
        whole = self.whole(positions)
        if whole is not None:
            return whole
        numbers = [bisect_right(self.starts, p) - 1 for p in positions]
        needed = sorted(set(numbers))
        offsets, total = {}, 0
        for number in needed:
            offsets[number] = total - self.starts[number]
            total += len(self.stacks[number])
        stacks = [self.stacks[number] for number in needed]
        places = [p + offsets[n] for p, n in zip(positions, numbers, strict=True)]
        whole = stacks[0] if len(stacks) == 1 else concat(stacks)
        consecutive = as_slice(places)
        return whole[numpy.array(places) if consecutive is None else consecutive]


class Alone(Store):
    """The store of a call outside of a batch: one stack of one row."""

    def __init__(self, stack: Any) -> None:
        self.stack = stack
        self.level = stack.level
        self.batch = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the row."""
        return self.stack.shape[1:]

    @property
    def dtype(self) -> Any:
        """The type of the row's elements."""
        return self.stack.dtype

    def row(self, position: int) -> Any:
        """The row."""
        return self.stack[0]

    def gather(self, positions: Sequence[int]) -> Any:
        """The row, stacked; several times, if need be."""
        if len(positions) == 1:
            return self.stack
        return self.stack[numpy.array(positions)]


class Given(Store):
    """The store of an array that came with its example.

    Args:
        array: the array, or a number.
        like: an array of its shape and type.
        batch: whose it is.
    """

    def __init__(self, array: Any, like: Any, batch: object) -> None:
        self.array, self.batch = array, batch
        self.shape, self.dtype = like.shape, like.dtype
        self.level = getattr(array, "level", UNTRACKED)

    def row(self, position: int) -> Any:
        """The array."""
        return self.array


class PlainStore(Store):
    """A store of plain arrays, or of arrays that plain reverse mode tracks.

    All rows are copied into one buffer, from which any of them are read at once.
    """

    def __init__(self, key: Key, stack: Any) -> None:
        super().__init__(key, stack)
        self.buffer: Any = None
        self.receiver: StoreReceiver | None = None
        if self.level is not UNTRACKED:
            self.receiver = StoreReceiver(self.shape, self.dtype)

    def add(self, stack: Any) -> int:
        """Take the results of a group of calls; return the number of the first row."""
        start = self.count
        end = self.count = start + len(stack)
        plain = base(stack)
        if self.buffer is None or end > len(self.buffer):
            self._grow(plain, end)
        rows = self.buffer[start:end]
        rows[...] = plain
        self.starts.append(start)
        self.stacks.append(rows)
        if self.receiver is not None:
            self.stacks[-1] = Tensor(rows, self.level, stack.receiver)
            self.receiver.add_stack(start, end, stack.receiver)
        return start

    def _grow(self, plain: Any, end: int) -> None:
        """Room for twice as many rows; whoever reads the old ones keeps them."""
        xp, old = namespace(plain), self.buffer
        self.buffer = xp.empty((max(2 * end, 64), *self.shape), dtype=self.dtype)
        if old is not None:
            self.buffer[: len(old)] = old

    def row(self, position: int) -> Any:
        """One row."""
        if self.receiver is None:
            return self.buffer[position].copy()
        return self._read(position, True)

    def gather(self, positions: Sequence[int]) -> Any:
        """Some rows, stacked; consecutive ones without a copy."""
        stack = self.whole(positions)
        if stack is not None:
            return stack
        index: Any = as_slice(positions)
        distinct = index is not None
        if index is None:
            distinct = len(set(positions)) == len(positions)
            index = namespace(self.buffer).asarray(positions)
        if self.receiver is None:
            return self.buffer[index]
        return self._read(index, distinct)

    def _read(self, index: Any, distinct: bool) -> Any:
        whole = Tensor(self.buffer, self.level, self.receiver)
        return take_rows(whole, index=index, distinct=distinct)


def as_slice(positions: Sequence[int]) -> slice | None:
    """Positions that follow each other, as a slice; None for others."""
    start, end = positions[0], positions[-1] + 1
    if end - start != len(positions) or list(positions) != list(range(start, end)):
        return None
    return slice(start, end)


def new_store(key: Key, stack: Any) -> Store:
    """A store for arrays like one."""
    level = key[2]
    plain = type(stack.primal if isinstance(stack, Value) else stack) in buffers
    direct = type(level) is Reverse and level.begin is None
    if plain and (level is UNTRACKED or direct):
        return PlainStore(key, stack)
    return Store(key, stack)


@linear
def take_rows(x: Any, /, index: Any, distinct: bool = False) -> Rule:
    """Rows of an array.

    Shapes:
        x: (n, ...); result: (count, ...), or (...) for one row

    Rule:
        x_bar[index] += z_bar, once for each time that a row is read
    """
    # NumPy's ``take`` needs half the time of its ``x[index]``.
    rows = x.take(index, 0) if hasattr(index, "dtype") else x[index]
    z_bar = yield (rows, x := None, rows := None)[0]
    yield RowsRead(index, distinct, z_bar)


class RowsRead(Scatter):
    """The cotangent of rows, added where they were read from.

    Attributes:
        distinct: whether it is known that no row was read twice.
    """

    __slots__ = ("distinct",)

    def __init__(self, index: Any, distinct: bool, z_bar: Any) -> None:
        self.index, self.distinct, self.z_bar = index, distinct, z_bar

    def additions(self, buffer: Any, factor: float = 1.0) -> list[Call]:
        """As ``Scatter.additions``, in fewer steps where no row was read twice."""
        if not self.distinct:
            return super().additions(buffer, factor)
        z_bar = self.z_bar if factor == 1 else self.z_bar * factor
        return [adding_once(buffer, self.index, z_bar)]


class StoreReceiver(Accumulator):
    """What a store's rows receive: in one buffer, of which each stack has a part.

    A stack that nobody has read from receives nothing. Where some of its rows were
    read, a mask keeps the others from receiving more than nothing: a zero cotangent
    times an infinite derivative.

    Attributes:
        starts, ends, receivers: of each stack, its first row, where the next one
            begins, and its receiver.
        numbers: of each row, the number of its stack.
        parts: of each stack, its part of the buffer, once it has been given that.
        seen: which rows have been read, once there is a buffer.
        partly: the stacks that have rows that nobody has read.
    """

    __slots__ = (
        "ends",
        "numbers",
        "partly",
        "parts",
        "receivers",
        "seen",
        "starts",
    )

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.prepare(shape, dtype)
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.receivers: list[Accumulator] = []
        self.numbers: Any = ()
        self.parts: dict[int, Any] = {}
        self.partly: set[int] = set()
        self.seen: Any = None

    def twin(self) -> None:
        """As ``Receiver.twin``: the stacks' receivers share one buffer."""

    def add_stack(self, start: int, end: int, receiver: Accumulator) -> None:
        """Take one more stack of rows."""
        self.starts.append(start)
        self.ends.append(end)
        self.receivers.append(receiver)

    def accumulate(self, contribution: Any) -> None:
        """Add the cotangent of a read to the stacks that it has read from."""
        read = contribution
        while type(read) is not RowsRead:  # WithMask
            read = read.z_bar
        numbers = self._stacks(read.index)
        if read is contribution and not isinstance(read.z_bar, Value):
            of, parts = self.receivers, self.parts
            apart = [n for n in numbers if of[n].cotangent is not parts.get(n, parts)]
            if all(self._give_part(n, read.z_bar) for n in apart):
                read.add_to(self.cotangent)
                if not self.partly.isdisjoint(numbers):
                    self._see(read.index, numbers)
                return
        for n in numbers:
            self._hand_on(n, contribution, read)

    def _stacks(self, index: Any) -> list[int]:
        """The numbers of the stacks that an index reads from."""
        starts = self.starts
        if type(index) is int:
            return [bisect_right(starts, index) - 1]
        if type(index) is slice:
            first = bisect_right(starts, index.start)
            return list(range(first - 1, bisect_right(starts, index.stop - 1)))
        if len(self.numbers) != self.ends[-1]:
            lengths = numpy.subtract(self.ends, starts)
            self.numbers = numpy.repeat(numpy.arange(len(starts)), lengths)
        index = namespace(index).to_device(index, "cpu")
        return numpy.bincount(self.numbers[index]).nonzero()[0].tolist()

    def _give_part(self, n: int, z_bar: Any) -> bool:
        """Let a stack add up what it receives in its part of the buffer, if it can."""
        receiver = self.receivers[n]
        total = receiver.cotangent
        if n in self.parts or isinstance(total, Value):
            return False
        if self.cotangent is None:
            xp, n_rows = namespace(z_bar), self.ends[-1]
            self.cotangent = xp.zeros((n_rows, *self.shape), dtype=self.dtype)
            self.seen = xp.zeros(n_rows, dtype=bool)
        part = self.parts[n] = self.cotangent[self.starts[n] : self.ends[n]]
        receiver.cotangent, receiver.owned, receiver.mask = part, True, None
        if total is None:
            self.partly.add(n)
            receiver.mask = self._mask(n)
        else:
            part += total
        return True

    def _see(self, index: Any, numbers: Sequence[int]) -> None:
        """Take note of the rows that were read; they mask those that were not."""
        self.seen[index] = True
        for n in self.partly.intersection(numbers):
            rows = self.seen[self.starts[n] : self.ends[n]]
            # Without a mask is one that has received something as a whole, since.
            if self.receivers[n].mask is None or rows.all():
                self.receivers[n].mask = None
                self.partly.remove(n)

    def _mask(self, n: int) -> Any:
        """Which rows of a stack have been read; it will know of later ones as well."""
        seen = self.seen[self.starts[n] : self.ends[n]]
        seen = seen.reshape(len(seen), *[1] * len(self.shape))
        return namespace(seen).broadcast_to(seen, (len(seen), *self.shape))

    def _hand_on(self, n: int, contribution: Contribution, read: RowsRead) -> None:
        """Give one stack its share of a read, as a contribution of its own."""
        start, end = self.starts[n], self.ends[n]
        positions = numpy.arange(self.ends[-1])[read.index].reshape(-1)
        chosen = numpy.flatnonzero((positions >= start) & (positions < end))
        z_bar = read.z_bar
        z_bar = z_bar.reshape((len(positions), *self.shape))[chosen]
        share: Contribution = RowsRead(positions[chosen] - start, False, z_bar)
        if contribution is not read:
            share = type(contribution)(share)  # type: ignore[call-arg]
        self.receivers[n].accumulate(share)
