"""Averages of a model over the steps of its training, and a schedule for them."""

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from lantern.eager.grad_mode import no_grad
from lantern.errors import OptionError, SizeError
from lantern.torch.functions import creation
from lantern.torch.nn.module import Module
from lantern.torch.nn.normalisation import BatchNorm
from lantern.torch.optim.lr_scheduler.schedules import LRScheduler, for_each_group
from lantern.torch.optim.optimizer import Optimizer
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_swa_avg_fn() -> Callable[..., Any]:
    """The next mean of all values, from the last, the next value and their number."""

    @no_grad()
    def average(mean: Tensor, current: Tensor, num_averaged: Any) -> Any:
        return mean + (current - mean) / (num_averaged + 1)

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """The next mean of values that are forgotten, from the last and the next value."""
    if not 0.0 <= decay <= 1.0:
        raise OptionError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] "
            f"range."
        )

    @no_grad()
    def average(mean: Tensor, current: Tensor, num_averaged: Any) -> Any:
        return decay * mean + (1 - decay) * current

    return average


def _of_all(function: Callable[..., Any]) -> Callable[..., None]:
    """An average of one tensor as one of rows of them, in place."""

    def average(means: Any, currents: Any, num_averaged: Any) -> None:
        for mean, current in zip(means, currents, strict=True):
            if mean.is_floating_point() or mean.is_complex():
                mean.copy_(function(mean, current, num_averaged))
            else:
                mean.copy_(current)

    return average


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """As ``get_swa_avg_fn``, of rows of tensors, in place."""
    return _of_all(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """As ``get_ema_avg_fn``, of rows of tensors, in place."""
    return _of_all(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of a model whose parameters are means of the model's over its training.

    Args:
        model: what is trained.
        device: where the copy lies.
        avg_fn: the next mean of a tensor, from the last mean, the tensor and how many
            the mean is of; by default the mean of all.
        multi_avg_fn: the same for rows of tensors, which writes to the first row.
        use_buffers: whether buffers are averaged, too, not taken as they are.

    Attributes:
        module: the copy.
        n_averaged: how many steps it is the mean of.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Linear(1, 1, bias=False)
        >>> mean = AveragedModel(model)
        >>> for w in (1.0, 3.0):
        ...     model.weight.data.fill_(w)
        ...     mean.update_parameters(model)
        tensor([[1.]])
        tensor([[3.]])
        >>> mean.module.weight.item()
        2.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Any = None,
        multi_avg_fn: Any = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise SizeError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        number = creation.tensor(0, dtype=dtypes.int64, device=device)
        self.register_buffer("n_averaged", number)
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the copy."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list[Any]:
        row: Iterable[Any] = model.parameters()
        if self.use_buffers:
            row = chain(row, model.buffers())
        return [x.detach() for x in row]

    def update_parameters(self, model: Module) -> None:
        """Let the means take in what the model has now."""
        means, currents = self._averaged(self.module), self._averaged(model)
        if self.n_averaged == 0:
            for mean, current in zip(means, currents, strict=True):
                mean.copy_(current)
        else:
            average = self.multi_avg_fn
            if average is None:
                average = _of_all(self.avg_fn or get_swa_avg_fn())
            average(means, currents, self.n_averaged)
        if not self.use_buffers:
            pairs = zip(self.module.buffers(), model.buffers(), strict=True)
            for mean, current in pairs:
                mean.detach().copy_(current.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Give layers of batch normalisation the statistics of all data, for a new model.

    Args:
        loader: batches; of rows the first part is the model's input.
        model: is run on each of them.
        device: where inputs are brought to.
    """
    layers = [m for m in model.modules() if isinstance(m, BatchNorm)]
    if not layers:
        return
    momenta = {m: m.momentum for m in layers}
    was_training = model.training
    for m in layers:
        m.reset_running_stats()
        m.momentum = None
    model.train()
    for batch in loader:
        x = batch[0] if isinstance(batch, list | tuple) else batch
        model(x if device is None else x.to(device))
    for m, momentum in momenta.items():
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the step length that it finds to another one, which it then keeps.

    Args:
        optimizer: whose step lengths are changed.
        swa_lr: the step length at the end, of all groups or of each.
        anneal_epochs: how many epochs the way takes.
        anneal_strategy: "cos" or "linear".
        last_epoch: see ``LRScheduler``.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        rates = for_each_group("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise OptionError(
                f"anneal_strategy must by one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise OptionError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        for group, lr in zip(groups, rates, strict=True):
            group["swa_lr"] = lr
        self.anneal_epochs, self._strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        """How much of the way is done."""
        done = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return (
            done if self._strategy == "linear" else (1 - math.cos(math.pi * done)) / 2
        )

    def get_lr(self) -> list[Any]:
        """The step lengths of this epoch, from those of the last."""
        epoch = self._step_count - 1
        if self.anneal_epochs == 0:
            epoch = max(1, epoch)
        before, now = self._share(epoch - 1), self._share(epoch)
        rates = []
        for group in self.optimizer.param_groups:
            lr, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
