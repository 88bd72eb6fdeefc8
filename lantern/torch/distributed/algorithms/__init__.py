"""Training with uneven inputs; ways to reduce gradients."""

import importlib as _importlib
from typing import Any as _Any

from lantern.torch.distributed.algorithms.join import Join as Join
from lantern.torch.distributed.algorithms.join import Joinable as Joinable
from lantern.torch.distributed.algorithms.join import JoinHook as JoinHook
from lantern.torch.run.aliases import absent as _absent

globals().update(
    _absent(
        __name__,
        {
            "_checkpoint": "modules are computed again by torch.utils.checkpoint.",
            "_checkpoint.checkpoint_wrapper": "use torch.utils.checkpoint.",
            "model_averaging": "gradients are averaged here, not models.",
        },
    )
)


def __getattr__(name: str) -> _Any:
    """Parts that are imported when they are asked for."""
    if name in ("join", "ddp_comm_hooks"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
