"""In which order, and in which batches, examples come."""

from collections.abc import Iterator, Sequence
from typing import Any

from lantern.errors import ArgumentError, MissingRuleError, OptionError
from lantern.torch.functions.creation import as_tensor
from lantern.torch.methods.sampling import Generator, multinomial, randint, randperm

__all__ = [
    "BatchSampler", "DistributedSampler", "RandomSampler", "Sampler",
    "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip


class Sampler:
    """Numbers of examples in some order: a subclass defines ``__iter__``.

    Example:
        >>> import lantern.torch as torch
        >>> class Backwards(torch.utils.data.Sampler):
        ...     def __init__(self, data):
        ...         self.data = data
        ...
        ...     def __iter__(self):
        ...         return iter(range(len(self.data) - 1, -1, -1))
        >>> data = ["a", "b", "c"]
        >>> next(iter(torch.utils.data.DataLoader(data, 3, sampler=Backwards(data))))
        ['c', 'b', 'a']
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(self) -> Iterator[Any]:
        raise MissingRuleError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler):
    """All examples, in their order.

    Example:
        >>> import lantern.torch as torch
        >>> list(torch.utils.data.SequentialSampler(["a", "b", "c"]))
        [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _generator(generator: Any) -> Any:
    """A generator; one seeded by the program's random numbers by default."""
    if generator is not None:
        return generator
    made = Generator()
    made.manual_seed(int(randint(0, 2**62, ())))
    return made


class RandomSampler(Sampler):
    """All examples, in a random order.

    Args:
        data_source: the data set.
        replacement: whether each is drawn from all.
        num_samples: how many are drawn.
        generator: whose random numbers are used.

    Example:
        >>> import lantern.torch as torch
        >>> sorted(torch.utils.data.RandomSampler(["a", "b", "c"]))
        [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise ArgumentError(
                f"replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if self.num_samples <= 0:
            raise OptionError(
                f"num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator, n = _generator(self.generator), len(self.data_source)
        left = self.num_samples
        while left > 0:
            if self.replacement:  # few at a time: there may be many
                drawn = randint(0, n, (min(left, 32),), generator=generator)
            else:
                drawn = randperm(n, generator=generator)[:left]
            yield from drawn.tolist()
            left -= len(drawn)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Some examples, in a random order.

    Example:
        >>> import lantern.torch as torch
        >>> sorted(torch.utils.data.SubsetRandomSampler([7, 3, 5]))
        [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class DistributedSampler(Sampler):
    """Every nth example, for one of n processes; as many for each of them.

    Args:
        dataset: the data set.
        num_replicas: how many processes there are; by default those of the job.
        rank: the number of this one.
        shuffle: whether examples come in a random order.
        seed: of that order, which must be the same for all.
        drop_last: whether to leave examples out, rather than to repeat some.

    Example:
        >>> from lantern.torch.utils.data import DistributedSampler
        >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from lantern.torch import distributed

            if num_replicas is None:
                num_replicas = distributed.get_world_size()
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise OptionError(
                f"Invalid rank {rank}, rank should be in the interval "
                f"[0, {num_replicas - 1}]"
            )
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.num_replicas, self.rank, self.epoch = num_replicas, rank, 0
        whole, rest = divmod(len(dataset), num_replicas)
        self.num_samples = whole if drop_last or not rest else whole + 1
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(len(order), generator=generator).tolist()
        repeated = order * -(-self.total_size // max(len(order), 1))
        return iter(repeated[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose another order."""
        self.epoch = epoch


class WeightedRandomSampler(Sampler):
    """Examples drawn by weights.

    Example:
        >>> import lantern.torch as torch
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 0.0], num_samples=3))
        [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        if not isinstance(num_samples, int) or num_samples <= 0:
            raise OptionError(
                f"num_samples should be a positive integer value, but got "
                f"num_samples={num_samples}"
            )
        self.weights = as_tensor(weights).double()
        self.num_samples, self.replacement = num_samples, replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of numbers of examples.

    Args:
        sampler: the numbers.
        batch_size: how many make a batch.
        drop_last: whether a last batch with fewer is left out.

    Example:
        >>> import lantern.torch as torch
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or batch_size <= 0:
            raise OptionError(
                f"batch_size should be a positive integer value, but got "
                f"batch_size={batch_size}"
            )
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
