"""Schedules in turn or together; by functions of one's own; one that follows a loss."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.torch.optim.lr_scheduler.schedules import (
    LRScheduler,
    for_each_group,
    set_rate,
    state_of,
)
from lantern.torch.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler", "LambdaLR", "MultiplicativeLR", "ReduceLROnPlateau",
    "SequentialLR",
]  # fmt: skip


class _Lambdas(LRScheduler):
    """A schedule that is told by functions of the epoch."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1
    ) -> None:
        n = len(optimizer.param_groups)
        several = isinstance(lr_lambda, list | tuple)
        self.lr_lambdas = list(lr_lambda) if several else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise OptionError(f"Expected {n} lr_lambdas, but got {len(lr_lambda)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser and the functions."""
        kept = [state_of(function) for function in self.lr_lambdas]
        return super().state_dict() | {"lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where another schedule was."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for function, kept in zip(
            self.lr_lambdas, state_dict["lr_lambdas"], strict=True
        ):
            if kept is not None:
                vars(function).update(kept)


class LambdaLR(_Lambdas):
    """The first step length times a function of the epoch.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import LambdaLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def get_lr(self) -> list[Any]:
        """The step lengths of this epoch."""
        return [
            lr * f(self.last_epoch)
            for lr, f in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class MultiplicativeLR(_Lambdas):
    """The last step length times a function of the epoch.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import MultiplicativeLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.125]
    """

    def get_lr(self) -> list[Any]:
        """The step lengths of this epoch."""
        if self.last_epoch == 0:
            return self._now()
        return [
            lr * f(self.last_epoch)
            for lr, f in zip(self._now(), self.lr_lambdas, strict=True)
        ]


def _undo(schedulers: list[Any]) -> None:
    """Take back the epoch that each schedule began, and those in it."""
    for scheduler in schedulers:
        _undo(getattr(scheduler, "_schedulers", []))
        scheduler.last_epoch -= 1


class SequentialLR(LRScheduler):
    """Schedules in turn: each from a milestone on.

    Args:
        optimizer: whose step lengths are changed.
        schedulers: the schedules.
        milestones: the epochs at which the second, the third, ... begins.
        last_epoch: the last epoch before; -1 for a new start.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import SequentialLR
        >>> from lantern.torch.optim.lr_scheduler import ConstantLR, ExponentialLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> parts = [ConstantLR(optimizer, 0.5, 9), ExponentialLR(optimizer, 0.25)]
        >>> schedule = SequentialLR(optimizer, parts, milestones=[2])
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[Any],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise OptionError(
                f"Sequential Schedulers expects number of schedulers provided to be "
                f"one more than the number of milestone points, but got number of "
                f"schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        _undo(schedulers)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self, epoch: Any = None) -> None:
        """Go on to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            for group in self.optimizer.param_groups:
                set_rate(group, group["initial_lr"])
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser, and the states of the schedules."""
        state = {
            k: v
            for k, v in self.__dict__.items()
            if k not in ("optimizer", "_schedulers")
        }
        return state | {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where other schedules were."""
        rest = {k: v for k, v in state_dict.items() if k != "_schedulers"}
        self.__dict__.update(rest)
        for mine, other in zip(
            self._schedulers, state_dict["_schedulers"], strict=True
        ):
            mine.load_state_dict(other)


class ChainedScheduler(SequentialLR):
    """Schedules together: each changes what the one before it left.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import ChainedScheduler
        >>> from lantern.torch.optim.lr_scheduler import ConstantLR, ExponentialLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = ChainedScheduler(
        ...     [ConstantLR(optimizer, 0.5, 9), ExponentialLR(optimizer, 0.5)]
        ... )
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.125]
    """

    def __init__(self, schedulers: Iterable[Any], optimizer: Any = None) -> None:
        self._schedulers, self.last_epoch = list(schedulers), 0
        self.optimizer = self._schedulers[0].optimizer
        self._last_lr = self._now()

    def step(self, epoch: Any = None) -> None:
        """Go on to the next epoch."""
        self.last_epoch += 1
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._now()


class ReduceLROnPlateau(LRScheduler):
    """Times a factor, when a measure has not improved for some epochs.

    Args:
        optimizer: whose step lengths are changed.
        mode: "min" or "max": what is better.
        factor: for the step lengths.
        patience: how many epochs without improvement are allowed.
        threshold: what counts as an improvement.
        threshold_mode: "rel" to the best so far, or "abs".
        cooldown: how many epochs to wait behind a reduction.
        min_lr: the least step length, one or one for each group.
        eps: smaller changes are left out.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import ReduceLROnPlateau
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     optimizer.step()
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise OptionError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise OptionError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise OptionError(f"threshold mode {threshold_mode} is unknown!")
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer, self.factor, self.mode = optimizer, factor, mode
        self._one_for_all = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = for_each_group("min_lr", optimizer, min_lr)
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self._last_lr = self._now()

    def is_better(self, a: float, best: float) -> bool:
        """Whether a measure is an improvement."""
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            bound = best * (1 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a > bound if self.mode == "max" else a < bound

    def step(self, metrics: Any, epoch: Any = None) -> None:  # type: ignore[override]
        """Take note of a measure."""
        current = float(metrics)
        self.last_epoch += 1
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, low in zip(
                self.optimizer.param_groups, self._least(), strict=True
            ):
                lr = max(float(group["lr"]) * self.factor, low)
                if float(group["lr"]) - lr > self.eps:
                    set_rate(group, lr)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._now()

    def _least(self) -> list[Any]:
        """The least step length of each group, of those that came later, too."""
        n = len(self.optimizer.param_groups)
        if len(self.min_lrs) != n:
            if self._one_for_all is None:
                raise EagerError(
                    f"The number of param groups in the optimizer, {n}, differs from "
                    f"that of min_lrs, {len(self.min_lrs)}. Add to `min_lrs`, too."
                )
            self.min_lrs = [self._one_for_all] * n
        return self.min_lrs
