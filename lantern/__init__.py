"""Lantern: differentiable programming by delimited continuations.

Example:
    >>> import lantern
    >>> lantern.grad(lambda x: 2 * x + x**3)(3.0)
    29.0
"""

import importlib as _importlib
import sys as _sys
from inspect import ismodule as _ismodule
from typing import Any as _Any

from lantern import cps as cps
from lantern.control.hooks import *
from lantern.core.namespace import register_namespace as register_namespace
from lantern.core.namespace import register_tracking as _register_tracking
from lantern.core.numpy_protocols import OUR_NAMES as _OUR_NAMES
from lantern.core.tree import *
from lantern.debugging.tracebacks import full_tracebacks as full_tracebacks
from lantern.debugging.tracebacks import install as _install
from lantern.errors import *
from lantern.rules.arithmetic import *
from lantern.rules.exponential import *
from lantern.rules.multiple_results import *
from lantern.rules.noncommutative import *
from lantern.rules.number import *
from lantern.rules.selection import *
from lantern.rules.special import *
from lantern.rules.trigonometry import *
from lantern.tensor.backend.device import *
from lantern.tensor.backend.numpy_namespace import numpy_namespace as numpy_namespace
from lantern.tensor.buffer import *
from lantern.tensor.buffer_functions import *
from lantern.tensor.einops_backend import watch as _watch
from lantern.tensor.fast_operators import *
from lantern.tensor.ops.at import *
from lantern.tensor.ops.concat_stack import *
from lantern.tensor.ops.constants import *
from lantern.tensor.ops.convolution import *
from lantern.tensor.ops.creation import *
from lantern.tensor.ops.cumulative import *
from lantern.tensor.ops.diff import *
from lantern.tensor.ops.einsum import *
from lantern.tensor.ops.elementwise import *
from lantern.tensor.ops.floating import *
from lantern.tensor.ops.gamma import *
from lantern.tensor.ops.indexing import *
from lantern.tensor.ops.mean_variance import *
from lantern.tensor.ops.pad import *
from lantern.tensor.ops.polynomial import *
from lantern.tensor.ops.products import *
from lantern.tensor.ops.rearrange import *
from lantern.tensor.ops.reduction import *
from lantern.tensor.ops.shape import *
from lantern.tensor.ops.softmax import *
from lantern.tensor.ops.sorting import *
from lantern.tensor.ops.special import *
from lantern.tensor.ops.split_mesh import *
from lantern.tensor.ops.zero_derivative import *
from lantern.tensor.tensor import *
from lantern.transforms.forward import *
from lantern.transforms.linearize import *
from lantern.transforms.reverse import *

__version__ = "0.1.0"

_install()
_watch()
for _tracked in (Number, Tensor):
    _register_tracking(_tracked, _sys.modules[__name__])

# Names of modules that are imported when one of them is asked for.
_LATER = {
    "Program": "control.program",
    "ThreadPoolExecutor": "parallel.executor",
    "backward_steps": "debugging.backward_steps",
    "batch": "batching",
    "batched": "batching",
    "both_ways": "control.bracket",
    "bracket": "control.bracket",
    "checkpoint": "control.checkpoint",
    "compile": "staging",
    "custom_jvp": "transforms.custom_vjp",
    "custom_rule": "transforms.custom_rule",
    "custom_vjp": "transforms.custom_vjp",
    "debug": "debugging.debug",
    "diag_hessian": "vectorizing.jacobian",
    "early_exit": "control.bracket",
    "emit_python": "staging",
    "explain": "staging",
    "fixed_point": "transforms.implicit",
    "fork": "batching",
    "hessian": "vectorizing.jacobian",
    "jacfwd": "vectorizing.jacobian",
    "jacobian": "vectorizing.jacobian",
    "jacrev": "vectorizing.jacobian",
    "jet": "transforms.taylor",
    "jit": "staging",
    "no_grad": "control.no_grad",
    "parallel_map": "parallel.executor",
    "pause": "control.program",
    "progress": "control.progress",
    "remat": "control.checkpoint",
    "remat_loop": "control.checkpoint",
    "root": "transforms.implicit",
    "show_adjoint": "staging",
    "show_ir": "staging",
    "show_llvm": "staging",
    "taylor": "transforms.taylor",
    "vmap": "vectorizing.vmap",
    "with_answer": "control.bracket",
}
# Functions that are made of others.
_LATER |= {
    name: f"tensor.ops.{module}"
    for module, names in {
        "histogram": "bincount histogram histogram2d histogram_bin_edges histogramdd",
        "nan_reductions": (
            "nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar"
        ),
        "sets": (
            "intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts "
            "unique_inverse unique_values"
        ),
        "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    }.items()
    for name in names.split()
}
_MODULES = frozenset(
    (
        "array_api batching cps debugger distributed effects engines errors fft "
        "linalg models onnx op random scipy staging testing torch viz"
    ).split()
)
_CONSTANTS = frozenset(
    "bool_ complex64 complex128 e float16 float32 float64 inf int8 int16 int32 int64 "
    "nan newaxis pi uint8 uint16 uint32 uint64".split()
)

# What ``from lantern import *`` gives; modules, some of which need SciPy, are asked for
# by name, and so are NumPy's older names.
__all__: list[str] = []
__all__ += [n for n, x in globals().items() if n[0] != "_" and not _ismodule(x)]
__all__ += list(_LATER)
__all__ += list(_CONSTANTS)


def __dir__() -> list[str]:
    """The public names, for whoever completes one at a prompt."""
    here = {name for name, x in globals().items() if not isinstance(x, type(_sys))}
    names = here | _LATER.keys() | _MODULES | _CONSTANTS | _OUR_NAMES.keys()
    return sorted(name for name in names if not name.startswith("_"))


def __getattr__(name: str) -> _Any:
    """What few programs need, imported when it is asked for; NumPy's older names."""
    if name in _LATER:
        module = _importlib.import_module(f"lantern.{_LATER[name]}")
        return globals().setdefault(name, getattr(module, name))
    if name in _MODULES:
        return _importlib.import_module(f"lantern.{name}")
    if name in _CONSTANTS:
        return getattr(numpy_namespace.module, name)
    if name in _OUR_NAMES:
        return globals()[_OUR_NAMES[name]]
    raise AttributeError(f"module 'lantern' has no attribute {name!r}")
