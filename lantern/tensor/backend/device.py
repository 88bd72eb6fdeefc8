"""Devices: where arrays lie, and how they move from one to another.

A transfer is a linear operation: its derivative moves the cotangent back.
"""

from functools import cache
from importlib import import_module
from typing import Any

from lantern.core.namespace import namespace, register_namespace
from lantern.core.tree import tree_map
from lantern.core.value import Rule, base
from lantern.errors import DeviceError
from lantern.op import linear
from lantern.tensor.backend.gpu_fusion import Fuser, fusers
from lantern.tensor.backend.numpy_namespace import (
    REAL,
    ArrayNamespace,
    array_namespace,
    devices,
    find_device,
)

__all__ = ["device", "to_device"]


def device(x: Any, /) -> str:
    """The device that an array lies on: "cpu", or "cuda:0".

    Args:
        x: an array, tracked or not; or the name of a device, which is looked up.

    Raises:
        ArgumentError: if there is no device of that name.
        MissingExtraError: if the device needs a package that is not installed.

    Example:
        >>> import numpy as np
        >>> device(np.ones(3)), device("cpu")
        ('cpu', 'cpu')
    """
    if isinstance(x, str):
        find_device(x)
        return x
    x = base(x)
    return str(array_namespace(x).device(x))


def to_device(x: Any, device: str, /) -> Any:
    """An array, or a structure of them, on a device.

    An array that lies there already is returned as it is, and so is a number, which
    lies nowhere.

    Args:
        x: arrays, tracked or not.
        device: "cpu", "cuda" for the current GPU, or "cuda:1" for the one of a number.

    Shapes:
        x: (...); result: (...)

    Raises:
        ArgumentError: if there is no device of that name.
        MissingExtraError: if the device needs a package that is not installed.

    Example:
        >>> import numpy as np
        >>> to_device({"w": np.ones(2), "rate": 0.1}, "cpu")
        {'w': array([1., 1.]), 'rate': 0.1}
    """
    find_device(device)
    return tree_map(lambda leaf: _moved(leaf, device), x)


def _moved(x: Any, name: str) -> Any:
    if not hasattr(base(x), "dtype"):
        return x
    here = device(x)
    if name in (here, here.partition(":")[0]):
        return x
    return _to_device(x, device=name, back=here)


@linear
def _to_device(x: Any, /, device: str, back: str) -> Rule:
    """An array on another device.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar, on x's device, which is called ``back``
    """
    z_bar = yield (namespace(x).to_device(x, device), x := None)[0]
    yield namespace(z_bar).to_device(z_bar, back)


@cache
def _cupy_namespace() -> ArrayNamespace:
    try:
        cupy = import_module("cupy")
    except ImportError:
        raise DeviceError(
            "cuda: CuPy is not installed. Install it with pip install cupy-cuda12x or "
            "cupy-cuda13x, whichever fits the driver."
        ) from None
    from lantern.tensor.backend.cupy_namespace import DeviceNamespace

    if hasattr(cupy, "fuse"):
        fusers[cupy.ndarray] = Fuser(cupy.fuse, REAL)
    return DeviceNamespace(cupy, "cupyx.scipy.special", "cupy-cuda12x", "cuda")


devices["cuda"] = _cupy_namespace
register_namespace("cupy", _cupy_namespace)
