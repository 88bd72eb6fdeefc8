"""Optimisers and their schedules, under PyTorch's names."""

from importlib import import_module as _import_module
from typing import Any as _Any

from lantern.torch.optim import lr_scheduler as lr_scheduler
from lantern.torch.optim.adam import *
from lantern.torch.optim.adaptive import *
from lantern.torch.optim.descent import *
from lantern.torch.optim.lbfgs import *
from lantern.torch.optim.matrices import *
from lantern.torch.optim.optimizer import Optimizer as Optimizer
from lantern.torch.run.aliases import lead as _lead
from lantern.torch.run.aliases import missing as _missing

_lead(
    __name__,
    "adadelta adagrad adamax adamw asgd nadam radam rmsprop rprop sgd sparse_adam",
)


def __getattr__(name: str) -> _Any:
    """What is imported when it is asked for; else the nearest name there is."""
    if name == "swa_utils":
        return _import_module("lantern.torch.optim.swa_utils")
    raise _missing("module 'torch.optim'", name, globals())
