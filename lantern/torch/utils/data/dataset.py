"""Data sets, and those made of others."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from lantern.errors import MissingRuleError, OptionError, SizeError
from lantern.torch.methods.sampling import randperm
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset",
    "Subset", "TensorDataset", "random_split",
]  # fmt: skip


class Dataset:
    """Examples by number: a subclass defines ``__getitem__`` and ``__len__``.

    Example:
        >>> import lantern.torch as torch
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...
        ...     def __getitem__(self, index):
        ...         return index * index
        >>> list(torch.utils.data.DataLoader(Squares(), batch_size=2))
        [tensor([0, 1]), tensor([4, 9])]
    """

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __getitem__(self, index: Any) -> Any:
        raise MissingRuleError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: "Dataset") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Examples in a row: a subclass defines ``__iter__``.

    Example:
        >>> import lantern.torch as torch
        >>> class Countdown(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> list(torch.utils.data.DataLoader(Countdown(), batch_size=2))
        [tensor([3, 2]), tensor([1])]
    """

    def __iter__(self) -> Iterator[Any]:
        raise MissingRuleError(
            "Subclasses of IterableDataset should implement __iter__."
        )

    def __add__(self, other: Dataset) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """The rows of tensors that have equally many.

    Args:
        tensors: whose first axes have one length.

    Example:
        >>> import lantern.torch as torch
        >>> torch.utils.data.TensorDataset(torch.arange(3), torch.ones(3))[1]
        (tensor(1), tensor(1.))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(x) != len(tensors[0]) for x in tensors):
            raise SizeError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(x[index] for x in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset):
    """The examples of several data sets side by side: in a tuple or a dictionary.

    Example:
        >>> import lantern.torch as torch
        >>> pairs = torch.utils.data.StackDataset([1, 2], ["a", "b"])
        >>> pairs[1]
        (2, 'b')
        >>> torch.utils.data.StackDataset(image=[1, 2], label=["a", "b"])[0]
        {'image': 1, 'label': 'a'}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise OptionError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via "
                "``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise OptionError("At least one dataset should be passed")
        self.datasets: Any = kwargs or args
        sets = list(kwargs.values()) if kwargs else list(args)
        if any(len(d) != len(sets[0]) for d in sets):
            raise OptionError("Size mismatch between datasets")
        self._length = len(sets[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: d[index] for k, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Several examples, which a part that can gives at once."""
        if isinstance(self.datasets, dict):
            columns = [_examples(d, indices) for d in self.datasets.values()]
            rows = zip(*columns, strict=True)
            return [dict(zip(self.datasets, row, strict=True)) for row in rows]
        columns = [_examples(d, indices) for d in self.datasets]
        return list(zip(*columns, strict=True))

    def __len__(self) -> int:
        return self._length


def _examples(dataset: Any, indices: Sequence[int]) -> Any:
    """Several examples of a data set."""
    several = getattr(dataset, "__getitems__", None)
    if several is None:
        return [dataset[i] for i in indices]
    found = several(indices)
    if len(found) != len(indices):
        raise OptionError(
            "Nested dataset's output size mismatch. Expected "
            f"{len(indices)}, got {len(found)}"
        )
    return found


class ConcatDataset(Dataset):
    """The examples of several data sets, one after the other.

    Attributes:
        cumulative_sizes: where each ends.

    Example:
        >>> import lantern.torch as torch
        >>> both = torch.utils.data.ConcatDataset([["a", "b"], ["c"]])
        >>> len(both), both[2]
        (3, 'c')
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise SizeError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise SizeError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise OptionError(
                    "absolute value of index should not exceed dataset length"
                )
            index += len(self)
        i = bisect_right(self.cumulative_sizes, index)
        return self.datasets[i][index - (self.cumulative_sizes[i - 1] if i else 0)]


class ChainDataset(IterableDataset):
    """The examples of several rows, one after the other.

    Example:
        >>> import lantern.torch as torch
        >>> class Count(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([1, 2])
        >>> list(torch.utils.data.ChainDataset([Count(), Count()]))
        [1, 2, 1, 2]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise SizeError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        return sum(map(len, self.datasets))


class Subset(Dataset):
    """Some of the examples of a data set.

    Args:
        dataset: the whole.
        indices: which ones.

    Example:
        >>> import lantern.torch as torch
        >>> part = torch.utils.data.Subset(["a", "b", "c"], [2, 0])
        >>> list(part)
        ['c', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[Any], generator: Any = None
) -> list[Subset]:
    """A data set divided at random.

    Args:
        dataset: the whole.
        lengths: of the parts: numbers, or shares that add up to 1.
        generator: whose random numbers are used.

    Example:
        >>> import lantern.torch as torch
        >>> parts = torch.utils.data.random_split(range(10), [0.8, 0.2])
        >>> [len(part) for part in parts]
        [8, 2]
        >>> sorted([*parts[0], *parts[1]]) == list(range(10))
        True
    """
    n = len(dataset)
    lengths = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        if any(not 0 <= share <= 1 for share in lengths):
            raise OptionError("Fraction is not between 0 and 1")
        lengths = [math.floor(n * share) for share in lengths]
        for i in range(n - sum(lengths)):
            lengths[i % len(lengths)] += 1
    if sum(lengths) != n:
        raise OptionError(
            "Sum of input lengths does not equal the length of the input dataset!"
        )
    order = randperm(n, generator=generator).tolist()
    ends = list(accumulate(lengths))
    return [
        Subset(dataset, order[end - length : end])
        for end, length in zip(ends, lengths, strict=True)
    ]
