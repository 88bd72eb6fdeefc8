"""Optimisers and their schedules, under PyTorch's names."""

import difflib as _difflib
from typing import Any as _Any

from lantern.torch.optim import lr_scheduler as lr_scheduler
from lantern.torch.optim.adam import *
from lantern.torch.optim.adaptive import *
from lantern.torch.optim.descent import *
from lantern.torch.optim.lbfgs import *
from lantern.torch.optim.optimizer import Optimizer as Optimizer


def __getattr__(name: str) -> _Any:
    """Say which name there is that comes nearest."""
    known = [n for n in globals() if not n.startswith("_")]
    near = _difflib.get_close_matches(name, known, 1, 0.5)
    hint = f" Did you mean: {near[0]!r}?" if near else ""
    raise AttributeError(f"module 'torch.optim' has no attribute {name!r}.{hint}")
