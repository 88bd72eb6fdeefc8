"""Functions of tensors that layers are made of, under PyTorch's names."""

from lantern.torch.nn.functional.activation import *
from lantern.torch.nn.functional.adapted import adapt as _adapt
from lantern.torch.nn.functional.classes import *
from lantern.torch.nn.functional.linear import *
from lantern.torch.nn.functional.loss import *
from lantern.torch.nn.functional.shares import *
from lantern.torch.run.on_demand import on_demand as _on_demand

_adapt(globals())

__getattr__, __dir__ = _on_demand(__name__, ["grad"])
