"""Step lengths as functions of the epoch.

A schedule changes the step length that it finds, so that several can share an
optimiser. Each is told with the factor from one epoch to the next.
"""

import warnings
from collections import Counter
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from lantern.errors import ArgumentError, OptionError, TakenNameError
from lantern.torch.optim.optimizer import Optimizer
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "ConstantLR", "ExponentialLR", "LRScheduler", "LinearLR", "MultiStepLR",
    "PolynomialLR", "StepLR",
]  # fmt: skip


_ORDER = (
    "Call `optimizer.step()` first and `lr_scheduler.step()` after it: "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


def set_rate(group: dict[str, Any], lr: Any) -> None:
    """Give a group a step length; one that is a tensor stays the tensor that it is."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(lr))
    else:
        group["lr"] = lr


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group, copied, from one for all or from a list."""
    n = len(optimizer.param_groups)
    values = list(value) if isinstance(value, list | tuple) else [value] * n
    if len(values) != n:
        raise OptionError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(values)} values, param_groups has {n}."
        )
    return [copied(x) for x in values]


def state_of(function: Any) -> dict[str, Any] | None:
    """What an object that can be called remembers; None of a plain function."""
    if function is None or isinstance(function, FunctionType):
        return None
    return dict(vars(function))


def copied(lr: Any) -> Any:
    """A step length as it is now."""
    return lr.clone() if isinstance(lr, Tensor) else lr


class LRScheduler:
    """What schedules share.

    Args:
        optimizer: whose step lengths are changed.
        last_epoch: the last epoch before; -1 for a new start.

    Attributes:
        base_lrs: the step lengths of the beginning, for each group.
        last_epoch: the epoch.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import LRScheduler
        >>> class Halving(LRScheduler):
        ...     def get_lr(self):
        ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = Halving(optimizer)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.125]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise TakenNameError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when "
                    f"resuming an optimizer"
                )
        groups = optimizer.param_groups
        self.base_lrs = [copied(group["initial_lr"]) for group in groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        optimizer._step_of_its_own = vars(optimizer).get("step")
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self.step()

    def step(self, epoch: Any = None) -> None:
        """Go on to the next epoch, or to one."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            rates = self.at(epoch)
        self._set(rates)

    def _check_order(self) -> None:
        """Warn if the first step length would be left out."""
        known = getattr(self.optimizer, "_step_of_its_own", None)
        if vars(self.optimizer).get("step") is not known:
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate "
                f"scheduler initialization. {_ORDER}",
                stacklevel=3,
            )
        elif known is None and not getattr(self.optimizer, "_opt_called", True):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`, "
                f"which leaves out the first step length. {_ORDER}",
                stacklevel=3,
            )

    def _set(self, rates: Any) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, lr)
        self._last_lr = self._now()

    def _now(self) -> list[Any]:
        """The step lengths that it finds."""
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[Any]:
        """The step lengths of this epoch, from those of the last."""
        raise NotImplementedError

    def at(self, epoch: Any) -> list[Any]:
        """The step lengths of any epoch."""
        return self.get_lr()

    def get_last_lr(self) -> list[Any]:
        """The step lengths of this epoch."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where another schedule was."""
        self.__dict__.update(state_dict)


class _Factors(LRScheduler):
    """A schedule that is told by a factor from each epoch to the next."""

    def factor(self, epoch: int) -> float:
        """From the epoch before to this one."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        """The step lengths of this epoch, from those of the last."""
        f = self.factor(self.last_epoch) if self.last_epoch else self.first()
        return [lr * f for lr in self._now()]

    def first(self) -> float:
        """Of the first epoch."""
        return 1.0

    def at(self, epoch: Any) -> list[Any]:
        """The step lengths of any epoch."""
        whole = self.first()
        for i in range(1, epoch + 1):
            whole *= self.factor(i)
        return [lr * whole for lr in self.base_lrs]


class StepLR(_Factors):
    """Times gamma after every so many epochs.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import StepLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """From the epoch before to this one."""
        return 1.0 if epoch % self.step_size else self.gamma


class MultiStepLR(_Factors):
    """Times gamma at some epochs.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import MultiStepLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """From the epoch before to this one."""
        return self.gamma ** self.milestones[epoch]


class ConstantLR(_Factors):
    """Times a factor, until some epoch.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import ConstantLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = ConstantLR(optimizer, factor=0.5, total_iters=3)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise OptionError(
                "Constant multiplicative factor expected to be between 0 and 1."
            )
        self.share, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def first(self) -> float:
        """Of the first epoch."""
        return self.share

    def factor(self, epoch: int) -> float:
        """From the epoch before to this one."""
        return 1 / self.share if epoch == self.total_iters else 1.0


class LinearLR(_Factors):
    """Times a factor that changes evenly from one to another: a warm-up.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import LinearLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = LinearLR(optimizer, start_factor=0.5, total_iters=4)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise OptionError(
                "Starting multiplicative factor expected to be greater than 0 and less "
                "or equal to 1."
            )
        if not 0 <= end_factor <= 1:
            raise OptionError(
                "Ending multiplicative factor expected to be between 0 and 1."
            )
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def first(self) -> float:
        """Of the first epoch."""
        return self.start_factor

    def _whole(self, epoch: int) -> float:
        part = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part

    def factor(self, epoch: int) -> float:
        """From the epoch before to this one."""
        if epoch > self.total_iters:
            return 1.0
        return self._whole(epoch) / self._whole(epoch - 1)


class PolynomialLR(_Factors):
    """Down to 0 along a power.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import PolynomialLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = PolynomialLR(optimizer, total_iters=4)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """From the epoch before to this one."""
        n = self.total_iters
        return 1.0 if epoch > n else ((n - epoch) / (n - epoch + 1)) ** self.power


class ExponentialLR(_Factors):
    """Times gamma after every epoch.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import ExponentialLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = ExponentialLR(optimizer, gamma=0.5)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.125]
    """

    def __init__(
        self, optimizer: Optimizer, gamma: float, last_epoch: int = -1
    ) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """From the epoch before to this one."""
        return self.gamma
