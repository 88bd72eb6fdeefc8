"""Batches of a data set, made when they are needed, or ahead by workers.

Workers are threads: they see the data set itself, need no copies, and cannot deadlock
with what the program holds. Batches come in their order. Where examples have numbers
they are the same with any number of workers, as long as the data set draws no random
numbers of its own; of a data set in a row each worker goes through a copy, as PyTorch's
does, so that the workers must share it out by ``get_worker_info``.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_all_start_methods
from multiprocessing.context import BaseContext
from types import GenericAlias, SimpleNamespace
from typing import Any

import numpy as np

from lantern.blocks import mutex
from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.torch.utils._pytree import tree_map
from lantern.torch.utils.data.collating import default_collate, default_convert
from lantern.torch.utils.data.dataset import IterableDataset
from lantern.torch.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
)

__all__ = ["DataLoader", "get_worker_info"]

_worker: ContextVar[Any] = ContextVar("lantern.worker", default=None)


def get_worker_info() -> Any:
    """In a worker: its ``id``, ``num_workers``, ``seed`` and ``dataset``; else None.

    Example:
        >>> import lantern.torch as torch
        >>> torch.utils.data.get_worker_info() is None
        True
    """
    return _worker.get()


class _BaseDataLoaderIter:
    """The batches of a loader, one by one; an error in one is not their end.

    Args:
        loader: the loader.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.jobs: Any = None

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        return len(self.loader)


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch whose parts have been asked to be where a GPU can copy them from."""

    def can(x: Any) -> bool:
        return hasattr(x, "pin_memory")

    return tree_map(lambda x: x.pin_memory() if can(x) else x, data, is_leaf=can)


class _DatasetKind:
    """Whether examples come by number or in a row."""

    Map, Iterable = 0, 1


_collate_fn_t = _worker_init_fn_t = Any  # for annotations


def _generate_state(base_seed: int, worker_id: int) -> Any:
    """Four numbers that a worker's own generators begin with."""
    return np.random.SeedSequence((worker_id, base_seed)).generate_state(4)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches that are made when they are asked for."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        own = isinstance(loader, DataLoader)
        self.jobs = (DataLoader._jobs if own else _rows)(loader, loader.dataset)

    def __next__(self) -> Any:
        return next(self.jobs)()


def _rows(loader: Any, dataset: Any) -> Iterator[Any]:
    """What makes each part of a loader that is a library's own."""
    return (partial(loader.collate_fn, x) for x in dataset)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches that threads make ahead, in turn, in their order.

    A library's own loader may tell its workers apart by what it is in their processes:
    its batches are made when they are asked for.
    """

    def __new__(cls, loader: Any) -> Any:
        """Threads for a loader of PyTorch's."""
        own = isinstance(loader, DataLoader)
        return super().__new__(cls) if own else _SingleProcessDataLoaderIter(loader)

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        numbers = range(loader.num_workers)
        self._workers = [ThreadPoolExecutor(1, f"DataLoader_{i}") for i in numbers]
        first = mutex()
        started = [
            w.submit(loader._start, i, first) for i, w in enumerate(self._workers)
        ]
        self.turns = cycle(zip(numbers, self._workers, started, strict=True))
        self.waiting: deque[Any] = deque()
        self.over: set[int] = set()  # workers that have come to the end of a row
        if not loader.in_a_row:
            self.jobs = loader._jobs(loader.dataset)
        try:
            self._ask(loader.num_workers * loader.prefetch_factor)
        except BaseException:
            self._end()
            raise

    def _ask(self, number: int) -> None:
        for _ in range(number):
            job = _advance if self.jobs is None else next(self.jobs, None)
            if job is None or len(self.over) == len(self._workers):
                return
            i, worker, started = next(self.turns)
            while i in self.over:
                i, worker, started = next(self.turns)
            self.waiting.append((i, started, worker.submit(job, started)))

    def __next__(self) -> Any:
        while self.waiting:
            i, *parts = self.waiting.popleft()
            if self.jobs is not None:
                self._ask(1)
            batch = self._received(parts)
            if batch is _END:
                self.over.add(i)
            if self.jobs is None:
                self._ask(1)
            if batch is not _END:
                return batch
        self._end()
        raise StopIteration

    def _received(self, parts: Any) -> Any:
        """What a worker has made, or its error."""
        timeout = self.loader.timeout or None
        try:
            for part in parts:
                batch = part.result(timeout)
        except TimeoutError:
            if part.done():
                raise
            raise EagerError(f"DataLoader timed out after {timeout} seconds") from None
        finally:
            del self, parts, part  # an error that is kept would keep them, and threads
        return batch

    def _end(self) -> None:
        """Let the threads go."""
        for worker in self._workers:
            worker.shutdown(wait=False, cancel_futures=True)

    def __del__(self) -> None:
        self._end()


# What comes from a worker whose row has come to its end.
_END: Any = object()


def _advance(started: Any) -> Any:
    """The next batch of a worker's own row."""
    job = next(started.result(), _END)
    return _END if job is _END else job(started)


# What is settled when a loader is made.
_SETTLED = frozenset(
    "batch_size batch_sampler dataset drop_last persistent_workers sampler".split()
)


class DataLoader:
    """Batches of a data set: what a ``for`` loop runs over.

    Args:
        dataset: examples by number, or in a row.
        batch_size: how many make a batch; None for single examples.
        shuffle: whether they come in a random order, another one every time.
        sampler: in which order they come instead.
        batch_sampler: in which batches they come instead.
        num_workers: how many threads make batches ahead; 0 for none.
        collate_fn: what makes a batch of a list of examples.
        pin_memory: has no effect.
        drop_last: whether a last batch with fewer examples is left out.
        timeout: how many seconds to wait for a batch at most; 0 for any number.
        worker_init_fn: is called with the number of each worker.
        multiprocessing_context: has no effect.
        generator: whose random numbers order the examples.
        prefetch_factor: how many batches each worker is ahead; 2 by default.
        persistent_workers: has no effect.
        pin_memory_device: has no effect.
        in_order: has no effect: batches come in their order.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.utils.data import DataLoader
        >>> from lantern.torch.utils.data import TensorDataset
        >>> [x for (x,) in DataLoader(TensorDataset(torch.arange(5)), batch_size=2)]
        [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise OptionError(
                "num_workers option should be non-negative; use num_workers=0 to "
                "disable multiprocessing."
            )
        if timeout < 0:
            raise OptionError("timeout option should be non-negative")
        self._check(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.generator, self.worker_init_fn = generator, worker_init_fn
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self.pin_memory, self.persistent_workers = pin_memory, persistent_workers
        self.in_a_row = isinstance(dataset, IterableDataset)
        _check_context(multiprocessing_context, num_workers)
        self.multiprocessing_context, self.in_order = multiprocessing_context, in_order
        self.pin_memory_device = pin_memory_device
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None and not self.in_a_row:
            if shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None and not self.in_a_row:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        batched = batch_sampler is not None or (self.in_a_row and batch_size)
        default = default_collate if batched else default_convert
        self.collate_fn = default if collate_fn is None else collate_fn
        self._settled = True

    __class_getitem__: Any = classmethod(GenericAlias)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SETTLED and "_settled" in self.__dict__:
            raise OptionError(
                f"{name} attribute should not be set after {type(self).__name__} is "
                "initialized"
            )
        object.__setattr__(self, name, value)

    @property
    def _auto_collation(self) -> bool:
        """Whether examples are joined to batches here."""
        return self.batch_sampler is not None or bool(self.in_a_row and self.batch_size)

    @staticmethod
    def _check(
        dataset: Any,
        batch_size: Any,
        shuffle: Any,
        sampler: Any,
        batch_sampler: Any,
        drop_last: bool,
    ) -> None:
        """Raise for options that exclude each other."""
        if isinstance(dataset, IterableDataset):
            for name, value in (
                ("shuffle", shuffle or None),
                ("sampler", sampler),
                ("batch_sampler", batch_sampler),
            ):
                if value is not None:
                    raise OptionError(
                        f"DataLoader with IterableDataset: expected unspecified {name} "
                        f"option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise OptionError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise OptionError(
                    "batch_sampler option is mutually exclusive with batch_size, "
                    "shuffle, sampler, and drop_last"
                )
        elif batch_size is None and drop_last:
            raise OptionError(
                "batch_size=None option disables auto-batching and is mutually "
                "exclusive with drop_last"
            )

    def __len__(self) -> int:
        if not self.in_a_row:
            return len(
                self.sampler if self.batch_sampler is None else self.batch_sampler
            )
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        whole, rest = divmod(n, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def _jobs(self, dataset: Any) -> Iterator[Any]:
        """For each batch, what makes it; the order is drawn here and nowhere else.

        A job may be given the start of the worker that does it, which has found out
        what data set to take.
        """
        if not self.in_a_row:
            numbers = self.sampler if self.batch_sampler is None else self.batch_sampler
            for chosen in numbers:
                yield lambda started=None, chosen=chosen: self.collate_fn(
                    self._examples(started.result() if started else dataset, chosen)
                )
            return
        examples = iter(dataset)
        if self.batch_size is None:
            for x in examples:
                yield lambda started=None, x=x: self.collate_fn(x)
            return
        while batch := list(islice(examples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield lambda started=None, batch=batch: self.collate_fn(batch)

    def _examples(self, dataset: Any, chosen: Any) -> Any:
        if self.batch_sampler is None:
            return dataset[chosen]
        several = getattr(dataset, "__getitems__", None)
        if several is not None:
            return several(chosen)
        return [dataset[i] for i in chosen]

    def __iter__(self) -> Any:
        if not self.num_workers:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    def _start(self, number: int, first: Any) -> Any:
        """What a worker does first; the data set that it takes, or its jobs in a row.

        What ``worker_init_fn`` does to the data set is done to this worker's alone, as
        if it were a process: workers start one after another, and each leaves the data
        set as it was.
        """
        dataset = self.dataset
        info = SimpleNamespace(
            id=number, num_workers=self.num_workers, seed=number, dataset=dataset
        )
        _worker.set(info)
        if self.worker_init_fn is None:
            info.dataset = copy.copy(dataset) if self.in_a_row else dataset
        elif not hasattr(dataset, "__dict__"):
            self.worker_init_fn(number)
        else:
            with first:
                before = dict(vars(dataset))
                try:
                    self.worker_init_fn(number)
                    info.dataset = copy.copy(dataset)
                finally:
                    for name in vars(dataset).keys() - before:
                        delattr(dataset, name)
                    vars(dataset).update(before)
        return self._jobs(info.dataset) if self.in_a_row else info.dataset


def _check_context(context: Any, workers: int) -> None:
    """Raise for what is no way to start processes; threads need none."""
    if context is None:
        return
    if not workers:
        raise OptionError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={workers}"
        )
    if isinstance(context, str):
        known = get_all_start_methods()
        if context not in known:
            raise OptionError(
                "multiprocessing_context option should specify a valid start method in "
                f"{known!r}, but got multiprocessing_context={context!r}"
            )
    elif not isinstance(context, BaseContext):
        raise ArgumentError(
            "multiprocessing_context option should be a valid context object or a "
            f"string specifying the start method, but got "
            f"multiprocessing_context={context}"
        )
