"""Layers, losses and what they are made of, under PyTorch's names."""

from lantern.torch.nn import functional as functional
from lantern.torch.nn import init as init
from lantern.torch.nn import simple as _simple
from lantern.torch.nn.containers import *
from lantern.torch.nn.linear import *
from lantern.torch.nn.module import *
from lantern.torch.nn.parameter import *
from lantern.torch.run.on_demand import on_demand as _on_demand

_PATHS = "common_types functional grad init modules parallel utils"
_on_demand(__name__, _PATHS.split(), _simple.made, _simple.NAMES)
