"""Processes that run out of data at different times, and stay with the others."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.torch.distributed.work import Work

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does for the others, once it has no more data.

    Example:
        >>> from lantern.torch.distributed.algorithms import JoinHook
        >>> class Say(JoinHook):
        ...     def post_hook(self, is_last_joiner):
        ...         print("the last" if is_last_joiner else "not the last")
        >>> Say().post_hook(True)
        the last
    """

    def main_hook(self) -> None:
        """Take part in one step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """After the last step of all."""


class _Config(NamedTuple):
    enable: bool = False
    throws: bool = False
    is_first: bool = False


class Joinable:
    """What can be used inside ``Join``: a model, an optimiser.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributed.algorithms import Joinable
        >>> issubclass(torch.nn.parallel.DistributedDataParallel, Joinable)
        True
    """

    def __init__(self) -> None:
        self._join_config = _Config()

    def join_hook(self, **options: Any) -> JoinHook:
        """What this process does for the others, once it has no more data."""
        raise NotImplementedError

    @property
    def join_device(self) -> Any:
        """Where the numbers lie that say who still has data."""
        raise NotImplementedError

    @property
    def join_process_group(self) -> Any:
        """Whose processes those are."""
        raise NotImplementedError


class Join:
    """A block in which processes may have different numbers of batches.

    Args:
        joinables: the models and optimisers that are used in it.
        enable: whether inputs may be uneven at all.
        throw_on_early_termination: whether all raise as soon as one has no more data.
        options: for the joinables' hooks.

    Example:
        >>> import lantern.torch as torch
        >>> import lantern.torch.distributed as dist
        >>> from lantern.torch.distributed.algorithms.join import Join
        >>> dist.init_process_group("gloo")
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
        >>> with Join([model]):
        ...     for _ in range(3):
        ...         model(torch.ones(1, 1)).sum().backward()
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        joinables: list[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **options: Any,
    ) -> None:
        if not joinables:
            raise OptionError("The join context manager requires at least one joinable")
        if not all(isinstance(joinable, Joinable) for joinable in joinables):
            raise ArgumentError(
                "Using the join context manager requires Joinable objects"
            )
        groups = {id(joinable.join_process_group) for joinable in joinables}
        if len(groups) > 1:
            raise OptionError("Using join context manager with multiple process groups")
        self.joinables, self.enabled = joinables, enable
        self.throws = throw_on_early_termination
        self.hooks = [joinable.join_hook(**options) for joinable in joinables]
        for i, joinable in enumerate(joinables):
            joinable._join_config = _Config(enable, self.throws, i == 0)
        self.engine = joinables[0].join_process_group.engine

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            if self.enabled and kind is None:
                self._accompany()
        finally:
            for joinable in self.joinables:
                joinable._join_config = _Config()

    def _accompany(self) -> None:
        """Take part in the others' steps until nobody has data any more."""
        alone = 0
        while _sum(self.engine, 0):
            if self.throws:
                _sum(self.engine, 1)
                raise EagerError(f"Rank {self.engine.rank} exhausted all inputs.")
            alone += 1
            if alone == 1000:
                warnings.warn(
                    "Detected uneven input skew of greater than 1000. This means that "
                    "this rank has at least 1000 fewer inputs than other currently-"
                    "active ranks.",
                    stacklevel=3,
                )
            for hook in self.hooks:
                hook.main_hook()
        for hook in self.hooks:
            hook.post_hook(not alone)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Say that this process still has data; the first joinable says it."""
        config = getattr(joinable, "_join_config", None)
        if config is None or not config.enable or not config.is_first:
            return None
        engine = joinable.join_process_group.engine
        active = _sum(engine, 1)
        if config.throws and _sum(engine, 0):
            raise EagerError(
                "Detected at least one rank that exhausted inputs. Throwing across "
                "all ranks."
            )
        work = Work(engine, active)
        work.future.set_result(active)
        return work


def _sum(engine: Any, number: int) -> int:
    """How many processes say 1."""
    total = np.array(number, np.int64)
    engine.all_reduce(total, total, "sum")
    return int(total)
