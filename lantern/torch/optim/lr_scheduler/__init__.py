"""Step lengths that change from epoch to epoch."""

import difflib as _difflib
from typing import Any

from lantern.torch.optim.lr_scheduler.composed import *
from lantern.torch.optim.lr_scheduler.cycles import *
from lantern.torch.optim.lr_scheduler.schedules import *
from lantern.torch.optim.lr_scheduler.schedules import LRScheduler as _LRScheduler

_Scheduler = _LRScheduler


def __getattr__(name: str) -> Any:
    """Say which name there is that comes nearest."""
    known = [n for n in globals() if not n.startswith("_")]
    near = _difflib.get_close_matches(name, known, 1, 0.5)
    hint = f" Did you mean: {near[0]!r}?" if near else ""
    raise AttributeError(
        f"module 'torch.optim.lr_scheduler' has no attribute {name!r}.{hint}"
    )
