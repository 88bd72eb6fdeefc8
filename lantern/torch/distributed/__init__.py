"""Several processes that train together, under PyTorch's names; MPI carries the data.

Example:
    >>> import lantern.torch as torch
    >>> import lantern.torch.distributed as dist
    >>> dist.init_process_group("gloo")
    >>> x = torch.ones(2)
    >>> dist.all_reduce(x)
    >>> x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
"""

import enum as _enum
import importlib as _importlib
import os as _os
from typing import Any as _Any

from lantern.torch.distributed import tensor as tensor
from lantern.torch.distributed.collectives import *
from lantern.torch.distributed.groups import *
from lantern.torch.distributed.groups import default_pg_timeout as default_pg_timeout
from lantern.torch.distributed.letters import *
from lantern.torch.distributed.objects import *
from lantern.torch.distributed.stores import *
from lantern.torch.distributed.work import Work as Work
from lantern.torch.run.aliases import absent as _absent
from lantern.torch.run.aliases import lead as _lead

_LAZY = {
    "nn": "nn",
    "optim": "optim",
    "algorithms": "algorithms",
    "checkpoint": "checkpoint",
}


class DebugLevel(_enum.Enum):
    """How much is checked: always the same here.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.DebugLevel["DETAIL"]
        <DebugLevel.DETAIL: 2>
    """

    OFF, INFO, DETAIL = 0, 1, 2


_level: list[DebugLevel] = []


def get_debug_level() -> DebugLevel:
    """What was said last; at first what ``TORCH_DISTRIBUTED_DEBUG`` says.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.set_debug_level(dist.DebugLevel.INFO)
        >>> dist.get_debug_level()
        <DebugLevel.INFO: 1>
        >>> dist.set_debug_level_from_env()
    """
    if not _level:
        set_debug_level_from_env()
    return _level[-1]


def set_debug_level(level: DebugLevel) -> None:
    """Say how much is to be checked.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.set_debug_level(dist.DebugLevel.DETAIL)
        >>> dist.get_debug_level() is dist.DebugLevel.DETAIL
        True
        >>> dist.set_debug_level_from_env()
    """
    _level[:] = [level]


def set_debug_level_from_env() -> None:
    """Say again what ``TORCH_DISTRIBUTED_DEBUG`` says.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> dist.set_debug_level(dist.DebugLevel.DETAIL)
        >>> dist.set_debug_level_from_env()
        >>> dist.get_debug_level()  # where the variable is not set
        <DebugLevel.OFF: 0>
    """
    name = _os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    set_debug_level(DebugLevel[name])


def __getattr__(name: str) -> _Any:
    """Parts that are imported when they are asked for."""
    if name in _LAZY:
        return _importlib.import_module(f"lantern.torch.distributed.{_LAZY[name]}")
    from lantern.torch.run.aliases import missing

    raise missing("module 'torch.distributed'", name, globals())


globals().update(_lead(__name__, "constants distributed_c10d utils"))
_NO_CALLS = "processes call no functions of one another."
rpc = _absent(__name__, {"rpc": _NO_CALLS}, optional=True)["rpc"]
_LAUNCHER = "processes are started by python -m lantern.torch.distributed.run."
globals().update(
    _absent(
        __name__,
        {
            "elastic": _LAUNCHER,
            "launcher": _LAUNCHER,
            "pipelining": "models are not cut into stages here.",
        },
    )
)
globals().update(
    _lead(
        __name__,
        "_tensor _composable _functional_collectives device_mesh",
        tensor.__name__,
    )
)
_WHOLE = (
    "models are whole on each process here. Train copies of one, with "
    "DistributedDataParallel, and its states in parts, with ZeroRedundancyOptimizer."
)
_FSDP = (
    "BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FlatParameter "
    "FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel "
    "LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision "
    "MixedPrecisionPolicy OffloadPolicy OptimStateDictConfig OptimStateKeyType "
    "ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy "
    "StateDictConfig StateDictSettings StateDictType UnshardHandle fully_shard "
    "register_fsdp_forward_method"
)
_parts = _absent(
    __name__,
    dict.fromkeys(
        [
            *("fsdp", "fsdp.api", "fsdp.fully_sharded_data_parallel", "fsdp.wrap"),
            *("fsdp.sharded_grad_scaler", "_composable.fsdp", "tensor.parallel"),
        ],
        _WHOLE,
    ),
    {
        **dict.fromkeys(
            [
                "fsdp",
                "fsdp.api",
                "fsdp.fully_sharded_data_parallel",
                "_composable.fsdp",
            ],
            _FSDP,
        ),
        "fsdp.wrap": (
            "CustomPolicy ModuleWrapPolicy always_wrap_policy enable_wrap "
            "lambda_auto_wrap_policy size_based_auto_wrap_policy "
            "transformer_auto_wrap_policy wrap"
        ),
        "fsdp.sharded_grad_scaler": "ShardedGradScaler",
        "tensor.parallel": (
            "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput "
            "PrepareModuleOutput RowwiseParallel SequenceParallel loss_parallel "
            "parallelize_module"
        ),
    },
)
fsdp = _parts["fsdp"]
_lead(f"{__name__}.tensor", "_utils experimental placement_types")
_lead(f"{__name__}._tensor", "experimental placement_types", tensor.__name__)
