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
from lantern.tensor.einops_backend import watch as _watch
from lantern.tensor.ops.at import *
from lantern.tensor.ops.concat_stack import *
from lantern.tensor.ops.constants import *
from lantern.tensor.ops.creation import *
from lantern.tensor.ops.cumulative import *
from lantern.tensor.ops.elementwise import *
from lantern.tensor.ops.indexing import *
from lantern.tensor.ops.mean_variance import *
from lantern.tensor.ops.products import *
from lantern.tensor.ops.rearrange import *
from lantern.tensor.ops.reduction import *
from lantern.tensor.ops.shape import *
from lantern.tensor.ops.softmax import *
from lantern.tensor.ops.sorting import *
from lantern.tensor.ops.zero_derivative import *
from lantern.tensor.tensor import *
from lantern.transforms.forward import *
from lantern.transforms.reverse import *

__version__ = "0.1.0"

_install()
_watch()
for _tracked in (Number, Tensor):
    _register_tracking(_tracked, _sys.modules[__name__])

# Names that many programs do without: their modules are imported when one is asked for.
_LATER = {
    name: module
    for module, names in {
        "batching": "batch batched fork",
        "control.bracket": "both_ways bracket early_exit with_answer",
        "control.checkpoint": "checkpoint remat remat_loop",
        "control.hooks": "hook nestlevel",
        "control.no_grad": "no_grad",
        "control.program": "Program pause",
        "control.progress": "progress",
        "debugging.backward_steps": "backward_steps",
        "debugging.debug": "debug",
        "parallel.executor": "ThreadPoolExecutor parallel_map",
        "staging": "compile emit_python explain jit show_adjoint show_ir show_llvm",
        "tensor.buffer": "Buffer",
        "tensor.buffer_functions": "copyto fill_diagonal place put putmask",
        "tensor.ops.convolution": "convolve correlate interp unwrap",
        "tensor.ops.diff": "diff ediff1d gradient trapezoid",
        "tensor.ops.einsum": "einsum",
        "tensor.ops.floating": "divmod float_power fmod ldexp modf nextafter",
        "tensor.ops.gamma": "betaln gamma_slope gammainc gammaincc gammaincinv",
        "tensor.ops.histogram": (
            "bincount histogram histogram2d histogram_bin_edges histogramdd"
        ),
        "tensor.ops.nan_reductions": (
            "nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar"
        ),
        "tensor.ops.pad": "pad trim_zeros",
        "tensor.ops.polynomial": (
            "poly polyadd polyder polydiv polyint polymul polysub polyval roots vander"
        ),
        "tensor.ops.quantiles": (
            "median nanmedian nanpercentile nanquantile percentile quantile"
        ),
        "tensor.ops.sets": (
            "intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts "
            "unique_inverse unique_values"
        ),
        "tensor.ops.special": (
            "erfinv expit gammaln i0 i1 iv log_expit log_sigmoid logaddexp logaddexp2 "
            "logit ndtr sinc xlogy"
        ),
        "tensor.ops.split_mesh": (
            "append array_split block broadcast_arrays c_ delete dsplit hsplit insert "
            "meshgrid r_ split unstack vsplit"
        ),
        "transforms.custom_rule": "custom_rule",
        "transforms.custom_vjp": "custom_jvp custom_vjp",
        "transforms.implicit": "fixed_point root",
        "transforms.linearize": "elementwise_grad hvp linearize vhp wirtinger",
        "transforms.taylor": "jet taylor",
        "vectorizing.jacobian": "diag_hessian hessian jacfwd jacobian jacrev",
        "vectorizing.vmap": "vmap",
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
