"""Sequences of unequal lengths: padded, packed, and back."""

from collections import namedtuple
from collections.abc import Iterable
from typing import Any

import numpy as np

from lantern.errors import EagerError, OptionError
from lantern.torch.functions.creation import full
from lantern.torch.methods import table
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside, on_host
from lantern.torch.tensor.dtypes import type_name
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_F = table.FUNCTIONS
cat, stack = _F["cat"], _F["stack"]


class PackedSequence(
    namedtuple("PackedSequence", "data batch_sizes sorted_indices unsorted_indices")
):
    """Sequences of unequal lengths, longest first: all their first rows, all second.

    Attributes:
        data: the rows.
        batch_sizes: how many sequences have a row at each time.
        sorted_indices: which sequence comes where, or None.
        unsorted_indices: the way back.

    Example:
        >>> import lantern.torch as torch
        >>> rows = [torch.tensor([1, 2]), torch.tensor([3])]
        >>> packed = torch.nn.utils.rnn.pack_sequence(rows)
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> Any:
        """Rows with the sizes of their batches."""
        if unsorted_indices is None and sorted_indices is not None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **options: Any) -> Any:
        """The same with data in another type, or on another device; itself, if so."""
        data = self.data.to(*args, **options)
        if data is self.data:
            return self
        return self._with(data)

    def _with(self, data: Tensor) -> Any:
        """The same with other data; the order lies where they do."""
        order, back = (
            x if x is None else x.to(data.device)
            for x in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, order, back)

    def pin_memory(self) -> Any:
        """Itself: there is no other memory."""
        return self

    @property
    def is_cuda(self) -> bool:
        """Whether the data lie on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Never: there is no other memory."""
        return False


def _converted(name: str) -> Any:
    """A method of the data that gives them in another type or in another place."""

    def method(self: PackedSequence, *args: Any, **options: Any) -> Any:
        data = getattr(self.data, name)(*args, **options)
        return self if data is self.data else self._with(data)

    method.__name__ = name
    method.__qualname__ = f"PackedSequence.{name}"
    method.__doc__ = f"The same with ``{name}()`` of the data."
    return method


for _name in "cpu cuda double float half long int short char byte".split():
    setattr(PackedSequence, _name, _converted(_name))


def invert_permutation(permutation: Any) -> Any:
    """The order that undoes an order.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    return None if permutation is None else fresh(np.argsort(base(permutation)))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Padded sequences without their padding.

    Args:
        input: (t, n, ...), or (n, t, ...) if batch_first.
        lengths: of the sequences.
        batch_first: whether the first axis is the batch, not time.
        enforce_sorted: whether to insist on the longest first.

    Example:
        >>> import lantern.torch as torch
        >>> padded = torch.tensor([[1, 2], [3, 0]])  # an example a row, padded with 0
        >>> packed = torch.nn.utils.rnn.pack_padded_sequence(
        ...     padded, [2, 1], batch_first=True
        ... )
        >>> packed.data
        tensor([1, 3, 2])
    """
    if isinstance(lengths, Tensor) and lengths.is_cuda:
        raise EagerError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.ndim}D {lengths.device} {type_name(base(lengths).dtype)} tensor"
        )
    sizes = np.asarray(base(lengths)).astype(np.int64)
    batch, longest = base(input).shape[:2] if batch_first else base(input).shape[1::-1]
    if not batch or not longest:
        raise EagerError("Cannot pack empty tensors.")
    if len(sizes) != batch:
        raise EagerError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} "
            f"(batch_size={batch})"
        )
    if (sizes <= 0).any():
        raise EagerError(
            "Length of all samples has to be greater than 0, but found an element in "
            "'lengths' that is <= 0"
        )
    order = None
    if enforce_sorted:
        if (np.diff(sizes) > 0).any():
            raise EagerError(
                "`lengths` array must be sorted in decreasing order when "
                "`enforce_sorted` is True. You can pass `enforce_sorted=False` to "
                "pack_padded_sequence and/or pack_sequence to sidestep this "
                "requirement if you do not need ONNX exportability."
            )
    else:
        places = np.argsort(-sizes, kind="stable")
        order, sizes = fresh(beside(places, base(input))), sizes[places]
        input = input.index_select(0 if batch_first else 1, order)
    x = input.transpose(0, 1) if batch_first else input
    counts = (sizes[None] > np.arange(sizes[0])[:, None]).sum(1)
    data = cat([x[t, :n] for t, n in enumerate(counts.tolist())])
    return PackedSequence(data, fresh(counts.astype(np.int64)), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Packed sequences with padding, and their lengths.

    Example:
        >>> import lantern.torch as torch
        >>> rows = [torch.tensor([1, 2]), torch.tensor([3])]
        >>> packed = torch.nn.utils.rnn.pack_sequence(rows)
        >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    counts = base(sequence.batch_sizes)
    times, n = len(counts), int(counts[0])
    if total_length is not None:
        if total_length < times:
            raise OptionError(
                f"Expected total_length to be at least the length of the longest "
                f"sequence in input, but got total_length={total_length} and max "
                f"sequence length being {times}"
            )
        times = total_length
    rows, start = [], 0
    rest = tuple(base(sequence.data).shape[1:])

    def padding(count: int) -> Tensor:
        options = {"dtype": sequence.data.dtype, "device": sequence.data.device}
        return full((count, *rest), padding_value, **options)

    for count in counts.tolist():
        row = sequence.data[start : start + count]
        rows.append(row if count == n else cat([row, padding(n - count)]))
        start += count
    rows += [padding(n)] * (times - len(rows))
    x = stack(rows, 1 if batch_first else 0)
    lengths = (counts[:, None] > np.arange(n)[None]).sum(0).astype(np.int64)
    if sequence.unsorted_indices is not None:
        x = x.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[on_host(base(sequence.unsorted_indices))]
    return x, fresh(lengths)


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of unequal lengths in one tensor.

    Example:
        >>> import lantern.torch as torch
        >>> rows = [torch.tensor([1, 2]), torch.tensor([3])]
        >>> torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise EagerError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise EagerError("received an empty list of sequences")
    longest = max(len(x) for x in sequences)
    rows = []
    for x in sequences:
        if len(x) < longest:
            shape = (longest - len(x), *base(x).shape[1:])
            more = full(shape, padding_value, dtype=x.dtype, device=x.device)
            x = cat([x, more] if padding_side == "right" else [more, x])
        rows.append(x)
    return stack(rows, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Tensor]:
    """The sequences without their padding.

    Example:
        >>> import lantern.torch as torch
        >>> padded = torch.tensor([[1, 2], [3, 0]])
        >>> lengths = torch.tensor([2, 1])
        >>> torch.nn.utils.rnn.unpad_sequence(padded, lengths, batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [x[i, : int(n)] for i, n in enumerate(on_host(base(lengths)))]


def pack_sequence(
    sequences: Iterable[Tensor], enforce_sorted: bool = True
) -> PackedSequence:
    """Sequences of unequal lengths, packed.

    Example:
        >>> import lantern.torch as torch
        >>> rows = [torch.tensor([1, 2]), torch.tensor([3])]
        >>> torch.nn.utils.rnn.pack_sequence(rows).data
        tensor([1, 3, 2])
    """
    sequences = list(sequences)
    lengths = fresh(np.array([len(x) for x in sequences]))
    return pack_padded_sequence(
        pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences in a packed one.

    Example:
        >>> import lantern.torch as torch
        >>> rows = [torch.tensor([1, 2]), torch.tensor([3])]
        >>> packed = torch.nn.utils.rnn.pack_sequence(rows)
        >>> torch.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
