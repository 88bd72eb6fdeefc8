"""Layers, losses and what they are made of, under PyTorch's names."""

import importlib as _importlib
from typing import Any as _Any

from lantern.torch.nn import functional as functional
from lantern.torch.nn import grad as grad
from lantern.torch.nn import init as init
from lantern.torch.nn import utils as utils
from lantern.torch.nn.adaptive import *
from lantern.torch.nn.attention import *
from lantern.torch.nn.cells import *
from lantern.torch.nn.containers import *
from lantern.torch.nn.convolution import *
from lantern.torch.nn.embedding import *
from lantern.torch.nn.lazy import LAYERS as _LAYERS
from lantern.torch.nn.linear import *
from lantern.torch.nn.module import *
from lantern.torch.nn.normalisation import *
from lantern.torch.nn.padding import MODULES as _PADS
from lantern.torch.nn.parallel import DataParallel as DataParallel
from lantern.torch.nn.parallel import SyncBatchNorm as SyncBatchNorm
from lantern.torch.nn.parameter import *
from lantern.torch.nn.parameter_containers import *
from lantern.torch.nn.recurrent import *
from lantern.torch.nn.simple import MODULES as _MODULES
from lantern.torch.nn.transformer import *
from lantern.torch.run.aliases import missing as _missing

globals().update(_MODULES | _PADS | _LAYERS)


def __getattr__(name: str) -> _Any:
    """The paths below ``modules``; else the nearest name there is."""
    if name in ("modules", "parallel", "common_types", "_reduction"):
        return _importlib.import_module(f"lantern.torch.nn.{name}")
    raise _missing("module 'torch.nn'", name, globals())
