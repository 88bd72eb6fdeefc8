"""Step lengths that go down along a wave, up and down, or start again."""

import math
from typing import Any

from lantern.errors import OptionError
from lantern.torch.optim.lr_scheduler.schedules import (
    LRScheduler,
    copied,
    for_each_group,
    set_rate,
    state_of,
)
from lantern.torch.optim.optimizer import Optimizer

__all__ = [
    "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR",
]  # fmt: skip


class CosineAnnealingLR(LRScheduler):
    """Down to a least step length along half a wave, and up again.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import CosineAnnealingLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = CosineAnnealingLR(optimizer, T_max=4)
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.0]

    References:
        Loshchilov and Hutter (2017), equation 5, without restarts.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The step lengths of this epoch, from those of the last."""
        epoch, n, low = self.last_epoch, self.T_max, self.eta_min
        if epoch == 0:
            return self._now()
        if self._step_count == 1 and epoch > 0:
            return self.at(epoch)
        if (epoch - 1 - n) % (2 * n) == 0:
            rise = (1 - math.cos(math.pi / n)) / 2
            return [
                lr + (top - low) * rise
                for lr, top in zip(self._now(), self.base_lrs, strict=True)
            ]
        f = (1 + math.cos(math.pi * epoch / n)) / (
            1 + math.cos(math.pi * (epoch - 1) / n)
        )
        return [low + (lr - low) * f for lr in self._now()]

    def at(self, epoch: Any) -> list[Any]:
        """The step lengths of any epoch."""
        share = (1 + math.cos(math.pi * epoch / self.T_max)) / 2
        return [self.eta_min + (lr - self.eta_min) * share for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down along half a wave, again and again.

    Args:
        optimizer: whose step lengths are changed.
        T_0: how long the first wave is.
        T_mult: how much longer each next one is.
        eta_min: the least step length.
        last_epoch: the last epoch before; -1 for a new start.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = CosineAnnealingWarmRestarts(optimizer, T_0=4)
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [1.0]

    References:
        Loshchilov and Hutter (2017), equation 5.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise OptionError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise OptionError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult = T_0, T_0, T_mult
        self.eta_min, self.T_cur = eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The step lengths of this epoch."""
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * share for lr in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Go on to the next epoch, or to one, which may be broken."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise OptionError(f"Expected non-negative epoch, but got {epoch}")
            self.T_cur, self.T_i = epoch, self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())


class OneCycleLR(LRScheduler):
    """Up to a largest step length, and down to almost nothing.

    Args:
        optimizer: whose step lengths are changed.
        max_lr: the largest step length, one or one for each group.
        total_steps: how many steps there will be; or
        epochs: how many epochs, of
        steps_per_epoch: so many steps.
        pct_start: the share of the steps in which it goes up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether momentum goes down and up meanwhile.
        base_momentum: its least value.
        max_momentum: its largest value.
        div_factor: the largest step length over the first.
        final_div_factor: the first step length over the last.
        three_phase: whether it goes down as it went up before it ends.
        last_epoch: the last step before; -1 for a new start.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import OneCycleLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0, momentum=0.9)
        >>> schedule = OneCycleLR(optimizer, max_lr=2.0, total_steps=10, pct_start=0.4)
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [2.0]

    References:
        Smith and Topin (2018).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise OptionError(
                    "You must define either total_steps OR (epochs AND steps_per_epoch)"
                )
            total_steps = epochs * steps_per_epoch
        if not 0 <= pct_start <= 1 or not isinstance(pct_start, float):
            raise OptionError(
                f"Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise OptionError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        self.total_steps = total_steps
        self._anneal_func_type = anneal_strategy
        up = float(pct_start * total_steps) - 1
        end = total_steps - 1
        self._phases = [(up, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            turn = float(2 * pct_start * total_steps) - 2
            self._phases += [
                (turn, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                (end, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            last = (end, "max_lr", "min_lr", "base_momentum", "max_momentum")
            self._phases.append(last)
        groups = optimizer.param_groups
        tops = for_each_group("max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, top in zip(groups, tops, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    _set_momentum(group, max_momentum)
                    group["max_momentum"] = copied(max_momentum)
                    group["base_momentum"] = copied(base_momentum)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _annealing_cos(start: float, end: float, pct: float) -> float:
        """From start to end along half a wave."""
        return end + (start - end) / 2 * (1 + math.cos(math.pi * pct))

    @staticmethod
    def _annealing_linear(start: float, end: float, pct: float) -> float:
        """From start to end evenly."""
        return (end - start) * pct + start

    @property
    def _anneal_func(self) -> Any:
        if "_anneal_func_type" not in vars(self):  # a state of PyTorch's before 2.0
            return self.anneal_func  # type: ignore[attr-defined]
        cosine = self._anneal_func_type == "cos"
        return self._annealing_cos if cosine else self._annealing_linear

    def get_lr(self) -> list[Any]:
        """The step lengths of this step; momentum is set by the way."""
        step = self.last_epoch
        if step > self.total_steps:
            raise OptionError(
                f"Tried to step {step} times. The total number of steps is "
                f"{self.total_steps}"
            )
        anneal = self._anneal_func
        rates, start, last = [], 0.0, self._phases[-1]
        for phase in self._phases:
            if step <= phase[0] or phase is last:
                break
            start = phase[0]
        end, *names = phase
        share = (step - start) / (end - start)
        for group in self.optimizer.param_groups:
            rates.append(anneal(group[names[0]], group[names[1]], share))
            if self.cycle_momentum:
                value = anneal(group[names[2]], group[names[3]], share)
                _set_momentum(group, value)
        return rates


def _set_momentum(group: Any, value: float) -> None:
    """Set a group's momentum, or its first beta."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    elif "momentum" in group:
        group["momentum"] = value
    else:
        raise OptionError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option "
            "enabled"
        )


_SCALES: dict[str, Any] = {
    "triangular": lambda x, gamma: 1.0,
    "triangular2": lambda x, gamma: 2.0 ** (1 - x),
    "exp_range": lambda x, gamma: gamma**x,
}


class CyclicLR(LRScheduler):
    """Up and down between two step lengths.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.optim.lr_scheduler import CyclicLR
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = CyclicLR(optimizer, 0.5, 1.5, 2, cycle_momentum=False)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [1.5]

    References:
        Smith (2017).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Any = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise OptionError("mode is invalid and scale_fn is None")
        groups = optimizer.param_groups
        lows = for_each_group("base_lr", optimizer, base_lr)
        tops = for_each_group("max_lr", optimizer, max_lr)
        for group, low in zip(groups, lows, strict=True):
            set_rate(group, low)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = for_each_group(
                "base_momentum", optimizer, base_momentum
            )
            self.max_momentums = for_each_group("max_momentum", optimizer, max_momentum)
            for group, least, most in zip(
                groups, self.base_momentums, self.max_momentums, strict=True
            ):
                _set_momentum(group, copied(most))
                group["base_momentum"], group["max_momentum"] = least, most
        self.max_lrs, self.mode, self.gamma = tops, mode, gamma
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self._scale_fn_custom, self.scale_mode = scale_fn, scale_mode
        self._choose_scale()
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def _choose_scale(self) -> None:
        if self._scale_fn_custom is None:
            self._scale_fn_ref = _SCALES[self.mode]
            self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    def scale_fn(self, x: float) -> float:
        """How high the peak of a cycle, or of an iteration, is."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(x, self.gamma)

    def state_dict(self) -> dict[str, Any]:
        """All but the optimiser and the function."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        return state | {"_scale_fn_custom": state_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where another schedule was."""
        state = dict(state_dict)
        kept = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if kept is not None:
            vars(self._scale_fn_custom).update(kept)
        self._choose_scale()

    def get_lr(self) -> list[Any]:
        """The step lengths of this step; momentum is set by the way."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        if x <= self.step_ratio:
            height = x / self.step_ratio
        else:
            height = (x - 1) / (self.step_ratio - 1)
        by_cycle = self.scale_mode == "cycle"
        height *= self.scale_fn(cycle if by_cycle else self.last_epoch)
        if self.cycle_momentum:
            for group, least, most in zip(
                self.optimizer.param_groups,
                self.base_momentums,
                self.max_momentums,
                strict=True,
            ):
                _set_momentum(group, most - (most - least) * height)
        return [
            low + (top - low) * height
            for low, top in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
