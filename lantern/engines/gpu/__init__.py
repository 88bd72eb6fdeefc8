"""What the engines are on a GPU: cuDNN, and kernels of our own, on CuPy's arrays.

A part is imported when it is asked for, which it is for arrays on a GPU only.
"""

from importlib import import_module
from typing import Any

_PARTS = frozenset(
    (
        "arrays convolution cublas cudnn elementwise entropy kernels normalisation "
        "products softmax steps"
    ).split()
)


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
