"""Lantern: differentiable programming by delimited continuations.

Example:
    >>> import lantern
    >>> lantern.grad(lambda x: 2 * x + x**3)(3.0)
    29.0
"""

import importlib as _importlib
import sys as _sys
from typing import Any as _Any

from lantern import cps as cps
from lantern.arithmetic import *
from lantern.choice import *
from lantern.elementary import *
from lantern.errors import *
from lantern.forward import *
from lantern.namespace import register_namespace as register_namespace
from lantern.number import *
from lantern.reverse import *
from lantern.several import *
from lantern.special import *
from lantern.tensor.arranging import *
from lantern.tensor.constant import *
from lantern.tensor.creation import *
from lantern.tensor.cumulative import *
from lantern.tensor.device import *
from lantern.tensor.difference import *
from lantern.tensor.einsum import *
from lantern.tensor.elementwise import *
from lantern.tensor.exponential import *
from lantern.tensor.floating import *
from lantern.tensor.gamma import *
from lantern.tensor.histogram import *
from lantern.tensor.indexing import *
from lantern.tensor.joining import *
from lantern.tensor.linalg import *
from lantern.tensor.manipulation import *
from lantern.tensor.missing import *
from lantern.tensor.moments import *
from lantern.tensor.padding import *
from lantern.tensor.polynomial import *
from lantern.tensor.reduction import *
from lantern.tensor.signal import *
from lantern.tensor.sorting import *
from lantern.tensor.special import *
from lantern.tensor.statistics import *
from lantern.tensor.tensor import *
from lantern.tensor.updating import *
from lantern.tree import *
from lantern.trigonometry import *

__version__ = "0.1.0"

for _tracked in (Number, Tensor):
    register_namespace(_tracked, _sys.modules[__name__])


# What is imported when it is asked for, and where it is.
_LATER = {"vmap": "batched_map"} | dict.fromkeys(
    ("diag_hessian", "hessian", "jacfwd", "jacobian", "jacrev"), "jacobians"
)


def __getattr__(name: str) -> _Any:
    """The namespaces beside this one, imported when they are asked for."""
    if name in ("array_api", "fft", "linalg", "random", "torch"):
        return _importlib.import_module(f"lantern.{name}")
    if name in _LATER:
        return getattr(_importlib.import_module(f"lantern.{_LATER[name]}"), name)
    raise AttributeError(f"module 'lantern' has no attribute {name!r}")
