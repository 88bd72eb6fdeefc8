"""Optimisers and their schedules, under PyTorch's names."""

from lantern.torch.optim.adam import *
from lantern.torch.optim.adaptive import *
from lantern.torch.optim.descent import *
from lantern.torch.optim.lbfgs import *
from lantern.torch.optim.matrices import *
from lantern.torch.optim.optimizer import Optimizer as Optimizer
from lantern.torch.run.aliases import lead as _lead
from lantern.torch.run.on_demand import on_demand as _on_demand

_lead(
    __name__,
    "adadelta adagrad adamax adamw asgd nadam radam rmsprop rprop sgd sparse_adam",
)
_on_demand(__name__, ["lr_scheduler", "swa_utils"])
