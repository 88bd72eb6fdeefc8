"""Functions of the array API standard, version 2024.12: how each is found and called.

A table of the standard's signatures. What computes is Lantern's function of the name,
if there is one; else the array library's, for arguments that are not tracked. All
arrays that come out are tensors.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from lantern.array_api.examples import described
from lantern.core.numpy_protocols import find_function, works_on_plain_values
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import Value, base, is_tracked
from lantern.errors import MissingRuleError
from lantern.tensor.array_api_methods import is_array
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops import creation
from lantern.tensor.tensor import Tensor

__all__ = ["CONSTANTS", "SIGNATURES", "FloatInfo", "conforming"]

Function = Callable[..., Any]

CONSTANTS = (
    "e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float32 float64 complex64 complex128"
).split()
_UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 "
    "floor imag isfinite isinf isnan log log10 log1p log2 logical_not negative "
    "nonzero positive real reciprocal round sign signbit sin sinh sqrt square tan "
    "tanh trunc unique_all unique_counts unique_inverse unique_values "
    "matrix_transpose linalg.matrix_transpose linalg.det linalg.eigh linalg.eigvalsh "
    "linalg.inv linalg.slogdet linalg.svdvals"
)
_BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift "
    "bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less "
    "less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply "
    "nextafter not_equal pow remainder subtract matmul linalg.matmul linalg.outer "
    "linalg.solve"
)
_SHAPED = "empty ones zeros"
_LIKE = "empty_like ones_like zeros_like"
_REDUCED = "all any argmax argmin count_nonzero max mean min"
_FFT = "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft"
_FFTN = "fft.fftn fft.ifftn fft.rfftn fft.irfftn"


def _each(names: str, signature: Function) -> dict[str, Function]:
    return dict.fromkeys(names.split(), signature)


# The standard's signatures. These functions are read, never called.
SIGNATURES: dict[str, Function] = {
    **_each(_UNARY, lambda x, /: 0),
    **_each(_BINARY, lambda x1, x2, /: 0),
    **_each(_SHAPED, lambda shape, *, dtype=None, device=None: 0),
    **_each(_LIKE, lambda x, /, *, dtype=None, device=None: 0),
    **_each(_REDUCED, lambda x, /, *, axis=None, keepdims=False: 0),
    **_each("sum prod", lambda x, /, *, axis=None, dtype=None, keepdims=False: 0),
    **_each("std var", lambda x, /, *, axis=None, correction=0.0, keepdims=False: 0),
    **_each(
        "cumulative_sum cumulative_prod",
        lambda x, /, *, axis=None, dtype=None, include_initial=False: 0,
    ),
    **_each("sort argsort", lambda x, /, *, axis=-1, descending=False, stable=True: 0),
    **_each("tril triu", lambda x, /, *, k=0: 0),
    **_each("tensordot linalg.tensordot", lambda x1, x2, /, *, axes=2: 0),
    **_each("vecdot linalg.vecdot linalg.cross", lambda x1, x2, /, *, axis=-1: 0),
    **_each(_FFT, lambda x, /, *, n=None, axis=-1, norm="backward": 0),
    **_each(_FFTN, lambda x, /, *, s=None, axes=None, norm="backward": 0),
    **_each(
        "fft.fftfreq fft.rfftfreq", lambda n, /, *, d=1.0, dtype=None, device=None: 0
    ),
    **_each("fft.fftshift fft.ifftshift", lambda x, /, *, axes=None: 0),
    "arange": lambda start, /, stop=None, step=1, *, dtype=None, device=None: 0,
    "asarray": lambda obj, /, *, dtype=None, device=None, copy=None: 0,
    "astype": lambda x, dtype, /, *, copy=True, device=None: 0,
    "broadcast_arrays": lambda *arrays: 0,
    "broadcast_to": lambda x, /, shape: 0,
    "can_cast": lambda from_, to, /: 0,
    "clip": lambda x, /, min=None, max=None: 0,
    "concat": lambda arrays, /, *, axis=0: 0,
    "diff": lambda x, /, *, axis=-1, n=1, prepend=None, append=None: 0,
    "expand_dims": lambda x, /, axis: 0,
    "eye": lambda n_rows, n_cols=None, /, *, k=0, dtype=None, device=None: 0,
    "finfo": lambda type, /: 0,
    "flip": lambda x, /, *, axis=None: 0,
    "from_dlpack": lambda x, /, *, device=None, copy=None: 0,
    "full": lambda shape, fill_value, *, dtype=None, device=None: 0,
    "full_like": lambda x, /, fill_value, *, dtype=None, device=None: 0,
    "iinfo": lambda type, /: 0,
    "isdtype": lambda dtype, kind: 0,
    "linspace": lambda start, stop, /, num, *, dtype=None, device=None, endpoint=True: (
        0
    ),
    "meshgrid": lambda *arrays, indexing="xy": 0,
    "moveaxis": lambda x, source, destination, /: 0,
    "permute_dims": lambda x, /, axes: 0,
    "repeat": lambda x, repeats, /, *, axis=None: 0,
    "reshape": lambda x, /, shape, *, copy=None: 0,
    "result_type": lambda *arrays_and_dtypes: 0,
    "roll": lambda x, /, shift, *, axis=None: 0,
    "searchsorted": lambda x1, x2, /, *, side="left", sorter=None: 0,
    "squeeze": lambda x, /, axis: 0,
    "stack": lambda arrays, /, *, axis=0: 0,
    "take": lambda x, indices, /, *, axis=None: 0,
    "take_along_axis": lambda x, indices, /, *, axis=-1: 0,
    "tile": lambda x, repetitions, /: 0,
    "unstack": lambda x, /, *, axis=0: 0,
    "where": lambda condition, x1, x2, /: 0,
    "linalg.cholesky": lambda x, /, *, upper=False: 0,
    "linalg.diagonal": lambda x, /, *, offset=0: 0,
    "linalg.matrix_norm": lambda x, /, *, keepdims=False, ord="fro": 0,
    "linalg.matrix_power": lambda x, n, /: 0,
    "linalg.matrix_rank": lambda x, /, *, rtol=None: 0,
    "linalg.pinv": lambda x, /, *, rtol=None: 0,
    "linalg.qr": lambda x, /, *, mode="reduced": 0,
    "linalg.svd": lambda x, /, *, full_matrices=True: 0,
    "linalg.trace": lambda x, /, *, offset=0, dtype=None: 0,
    "linalg.vector_norm": lambda x, /, *, axis=None, keepdims=False, ord=2: 0,
}


class FloatInfo(NamedTuple):
    """What ``finfo`` says of a floating-point type, in Python's own numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


def _finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point type, or of an array's."""
    info = numpy_namespace.finfo(_dtype_of(type))
    eps, largest = float(info.eps), float(info.max)
    normal = float(info.smallest_normal)
    return FloatInfo(info.bits, eps, largest, -largest, normal, info.dtype)


def _iinfo(type: Any, /) -> Any:
    """The limits of an integer type, or of an array's."""
    return numpy_namespace.iinfo(_dtype_of(type))


def _dtype_of(x: Any) -> Any:
    return x if isinstance(x, type) else getattr(x, "dtype", x)


def _asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Any:
    """Numbers, nested lists of them or an array as a tensor."""
    z = creation.asarray(obj, dtype=dtype, device=device, copy=copy)
    return z.copy() if copy and z is obj else z


def _astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The elements as numbers of another type."""
    return _asarray(x, dtype=dtype, device=device, copy=copy or None)


def _from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """The array of another library as a tensor, in the same memory if that can be."""
    if isinstance(x, Value) or is_array(x):
        return _asarray(x, device=device, copy=copy)
    return numpy_namespace.from_dlpack(x, device=device, copy=copy)


def _frequencies(name: str) -> Function:
    def function(
        n: Any, /, *, d: Any = 1.0, dtype: Any = None, device: Any = None
    ) -> Any:
        z = find_function(name, "fft")(n, d, device=device)
        return z if dtype is None else creation.asarray(z, dtype=dtype)

    function.__doc__ = find_function(name, "fft").__doc__
    return function


def _pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverses of matrices."""
    return find_function("pinv", "linalg")(x, rtol=rtol)


# What the standard defines otherwise than both NumPy and Lantern's own functions.
_OWN: dict[str, Function] = {
    "asarray": _asarray,
    "astype": _astype,
    "fft.fftfreq": _frequencies("fftfreq"),
    "fft.rfftfreq": _frequencies("rfftfreq"),
    "finfo": _finfo,
    "from_dlpack": _from_dlpack,
    "iinfo": _iinfo,
    "linalg.pinv": _pinv,
}
_RETURN_LISTS = ("broadcast_arrays", "meshgrid")
# What is said of the array library's own functions.
_TEXTS = {
    "can_cast": "Whether one type can be converted to another without loss.",
    "isdtype": "Whether a type is of a kind: a type, its name, or several of both.",
    "result_type": "The type of what an operation makes of arrays and types.",
}


def _array_function(name: str) -> Function:
    """The array library's function of a name, for arguments that are not tracked."""
    module, _, short = name.rpartition(".")

    def function(*args: Any, **options: Any) -> Any:
        leaves = [*tree_leaves(args), *tree_leaves(options)]
        if any(map(is_tracked, leaves)) and not works_on_plain_values(short):
            raise MissingRuleError(
                f"{name}: no rule for a tracked value. Write it with the functions of "
                f"lantern, or register a rule (lantern.op)."
            )
        xp = array_namespace(*map(base, leaves))
        xp = getattr(xp, module) if module else xp
        return getattr(xp, short)(*tree_map(base, args), **tree_map(base, options))

    return function


def _found(name: str) -> Function:
    """The function that computes what a name of the standard stands for."""
    module, _, short = name.rpartition(".")
    if short in SIGNATURES and module:
        return _found(short)  # linalg.matmul is matmul
    found: Function = (
        _OWN.get(name) or find_function(short, module) or _array_function(name)
    )
    return found


def conforming(name: str) -> Function:
    """A function with the standard's signature; arrays that it returns are tensors."""
    compute, as_list = _found(name), name in _RETURN_LISTS

    def function(*args: Any, **options: Any) -> Any:
        if options:
            options = {k: _unwrapped(x) for k, x in options.items()}
        z = compute(*map(_unwrapped, args), **options)
        return _wrapped(list(z) if as_list else z)

    signature = inspect.signature(SIGNATURES[name])
    function.__signature__ = signature  # type: ignore[attr-defined]  # for help()
    function.__module__ = "lantern.array_api"
    function.__name__, function.__qualname__ = name.rpartition(".")[2], name
    text = compute.__doc__ or _TEXTS.get(name, "")
    function.__doc__ = described(name, text.partition("Example:")[0].rstrip())
    return function


def _unwrapped(x: Any) -> Any:
    """An argument, its untracked tensors as plain arrays: for them no rule waits."""
    if isinstance(x, Value):
        return x if is_tracked(x) else base(x)
    return tree_map(_unwrapped, x) if isinstance(x, list | tuple) else x


def _wrapped(z: Any) -> Any:
    """A result with its plain arrays as tensors."""
    if is_array(z):
        return Tensor(z)
    return tree_map(_wrapped, z) if isinstance(z, list | tuple) else z
