"""Functions of tensors that layers are made of, under PyTorch's names."""

from lantern.torch.nn.functional.usual import *
from lantern.torch.run.on_demand import on_demand as _on_demand

_on_demand(__name__, ["grad"])
