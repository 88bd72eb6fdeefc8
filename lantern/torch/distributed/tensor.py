"""Names of tensors in parts on several devices: there are none, so nothing is one."""

from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.run.aliases import lead as _lead
from lantern.torch.run.aliases import refusing

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "init_device_mesh",
]

__path__: list[str] = []


class _Refused:
    def __init__(self, *args: Any, **options: Any) -> None:
        raise MissingRuleError(
            f"{type(self).__name__}: tensors are whole here. Train copies of the "
            f"model, with DistributedDataParallel."
        )


def compute_local_shape_and_global_offset(*args: Any, **options: Any) -> Any:
    """An error: tensors are whole here."""
    return _Refused(*args, **options)


all_to_all_single_autograd = compute_local_shape_and_global_offset
context_parallel = implicit_replication = local_map = all_to_all_single_autograd


class DTensor(_Refused):
    """A tensor in parts: no tensor is one."""


class DeviceMesh(_Refused):
    """Devices in rows: there is one."""


class Placement:
    """How a tensor would be divided."""


class Shard(Placement):
    """In parts along an axis.

    Args:
        dim: the axis.
    """

    def __init__(self, dim: int = 0, **options: Any) -> None:
        self.dim = dim


class _StridedShard(Shard):
    """In parts along an axis, in several turns."""


class Replicate(Placement):
    """The same everywhere."""


class Partial(Placement):
    """Terms of a sum, or of another reduction.

    Args:
        reduce_op: its name.
    """

    def __init__(self, reduce_op: str = "sum") -> None:
        self.reduce_op = reduce_op


def distribute_tensor(tensor: Any, *args: Any, **options: Any) -> Any:
    """Refused: tensors are whole here."""
    return DTensor(tensor)


def distribute_module(module: Any, *args: Any, **options: Any) -> Any:
    """Refused: tensors are whole here."""
    return DTensor(module)


def init_device_mesh(*args: Any, **options: Any) -> Any:
    """Refused: there is one device."""
    return DeviceMesh()


def wait_tensor(tensor: Any) -> Any:
    """A tensor as it is: what is asked for is there."""
    return tensor


def __getattr__(name: str) -> Any:
    """Whatever else is imported is refused when it is called."""
    if name.startswith(("__", "pytest")):  # who reads modules asks for these
        raise AttributeError(name)
    return refusing(f"torch.distributed.tensor.{name}", "tensors are whole here.")


_lead(__name__, "_utils device_mesh placement_types")
