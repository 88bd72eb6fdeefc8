"""Layers, losses and what they are made of, under PyTorch's names."""

import difflib as _difflib
from typing import Any as _Any

from lantern.torch.nn import functional as functional
from lantern.torch.nn import init as init
from lantern.torch.nn import utils as utils
from lantern.torch.nn.attention import *
from lantern.torch.nn.cells import *
from lantern.torch.nn.containers import *
from lantern.torch.nn.convolution import *
from lantern.torch.nn.linear import *
from lantern.torch.nn.module import *
from lantern.torch.nn.normalisation import *
from lantern.torch.nn.padding import MODULES as _PADS
from lantern.torch.nn.parameter import *
from lantern.torch.nn.recurrent import *
from lantern.torch.nn.simple import MODULES as _MODULES
from lantern.torch.nn.transformer import *

globals().update(_MODULES | _PADS)


def __getattr__(name: str) -> _Any:
    """Say which name there is that comes nearest."""
    known = [n for n in globals() if not n.startswith("_")]
    near = _difflib.get_close_matches(name, known, 1, 0.5)
    hint = f" Did you mean: {near[0]!r}?" if near else ""
    raise AttributeError(f"module 'torch.nn' has no attribute {name!r}.{hint}")
