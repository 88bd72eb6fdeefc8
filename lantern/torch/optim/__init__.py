"""Optimisers and their schedules, under PyTorch's names."""

from typing import Any as _Any

from lantern.torch.optim import lr_scheduler as lr_scheduler
from lantern.torch.optim.adam import *
from lantern.torch.optim.adaptive import *
from lantern.torch.optim.descent import *
from lantern.torch.optim.lbfgs import *
from lantern.torch.optim.optimizer import Optimizer as Optimizer
from lantern.torch.paths import lead as _lead
from lantern.torch.paths import missing as _missing

_lead(__name__, "adadelta adagrad adamw nadam radam rmsprop rprop sgd sparse_adam")


def __getattr__(name: str) -> _Any:
    """Say which name there is that comes nearest."""
    raise _missing("module 'torch.optim'", name, globals())
