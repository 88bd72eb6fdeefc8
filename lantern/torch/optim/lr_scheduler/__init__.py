"""Step lengths that change from epoch to epoch."""

from typing import Any

from lantern.torch.optim.lr_scheduler.composed import *
from lantern.torch.optim.lr_scheduler.cycles import *
from lantern.torch.optim.lr_scheduler.schedules import *
from lantern.torch.optim.lr_scheduler.schedules import LRScheduler as _LRScheduler
from lantern.torch.run.aliases import missing as _missing

_Scheduler = _LRScheduler


def __getattr__(name: str) -> Any:
    """Say which name there is that comes nearest."""
    raise _missing("module 'torch.optim.lr_scheduler'", name, globals())
