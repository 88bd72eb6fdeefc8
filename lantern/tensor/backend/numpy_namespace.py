"""The functions that compute on arrays: the only file that names NumPy and CuPy.

An array library has most functions under the standard's names. What rules need beyond
them is written here once, for every array library.
"""

import math
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from lantern import engines
from lantern.blocks import Setting
from lantern.core import scalar_functions
from lantern.core.contribution import Masked
from lantern.core.namespace import (
    common_namespace,
    is_scalar,
    register_namespace,
    tables,
)
from lantern.core.residuals import register_mutable
from lantern.engines.arrays import broadcasts
from lantern.errors import (
    ArgumentError,
    MissingExtraError,
    MissingRuleError,
)

__all__ = [
    "ONES",
    "REAL",
    "SMALL",
    "ArrayNamespace",
    "array_namespace",
    "arrays",
    "as_scalar",
    "buffers",
    "devices",
    "find_device",
    "ignore_fp_warnings",
    "numpy_namespace",
]

# Types of arrays that can be added to in place; and with those that have no axes.
buffers: set[type] = {np.ndarray}
NUMPY = frozenset({np.ndarray, np.float32, np.float64})
arrays: set[type] = set(NUMPY)  # and CuPy's
# Types of elements whose contributions need no conjugate and, as a rule, no cast.
REAL = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
ONES: dict[type, Any] = {kind: kind(1) for kind in (np.float32, np.float64)}
# Elements. What is repeated to fewer is copied: that is read faster than a view.
SMALL = 5_000
LARGE = 1 << 17  # elements, from which on an engine's pass takes less time

# What one derivative frees, the next one takes again. In between the C library of Linux
# gives it back to the system, page by page, unless something larger has been freed
# before: as this, which is never touched.
np.empty(1 << 24, np.uint8)


def _same(x: Any, copy: Any) -> bool:
    """Whether two arrays of one type have the same bytes; False for wide types."""
    if x.dtype != copy.dtype or x.shape != copy.shape or x.dtype.kind not in "biuf":
        return False
    bits = _BITS.get(x.itemsize)
    return bits is not None and bool((x.view(bits) == copy.view(bits)).all())


# NumPy takes an array without axes as it is, and looks at a Python number for longer
# than it computes with either.
_ZEROS = {dtype: np.zeros((), dtype) for dtype in REAL}
_LARGE = 1 << 15
_SIGNED = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
register_mutable(np.ndarray, np.ndarray.__copy__, _same)  # as it lies in memory

# What comes from the module of special functions, and its name there.
_SPECIAL = {
    name: name
    for name in (
        "betaln erf erfc erfinv gamma gammainc gammaincc gammaincinv iv logit xlogy"
    ).split()
} | {"lgamma": "gammaln"}


_OF_TWO = {"betaln", "gammainc", "gammaincc", "gammaincinv", "xlogy"}


def _with_weak_numbers(function: Any) -> Any:
    """A function of SciPy's in the type of its array, as NumPy's next to a number."""

    def compute(x: Any, y: Any) -> Any:
        for a, b in ((x, y), (y, x)):
            kind = getattr(a, "dtype", None)
            if type(b) in (float, int) and kind is not None and kind.kind == "f":
                b = kind.type(b)
                return function(a, b) if a is x else function(b, a)
        return function(x, y)

    return compute


class ArrayNamespace:
    """An array library's functions, and those that rules need beyond them.

    Args:
        module: numpy or cupy.
        special: the name of the module with its special functions.
        extra: the package that provides that module, as pip calls it.
    """

    def __init__(self, module: ModuleType, special: str, extra: str) -> None:
        self.module, self.special, self.extra = module, special, extra

    select = Masked

    def device(self, x: Any) -> str:
        """The name of the device that an array lies on."""
        return "cpu"

    def to_device(self, x: Any, device: str) -> Any:
        """An array on a device; x itself, if it lies there."""
        target, number = find_device(device)
        return x if target is self else target.receive(x, number)

    def receive(self, x: Any, number: int | None) -> Any:
        """An array of any library as one of this one."""
        return x.get()

    def ignore_fp_warnings(self) -> Any:
        """A block without warnings of zero division: derivatives may be infinite."""
        return ignore_fp_warnings()

    def __getattr__(self, name: str) -> Any:
        if name in _SPECIAL:
            function = self.scipys(name)
            if name in _OF_TWO:
                function = _with_weak_numbers(function)
        elif name.startswith("_"):
            raise AttributeError(name)
        else:
            function = self._found(self.module, name)
        setattr(self, name, function)
        return function

    def scipys(self, name: str, part: str = "special") -> Any:
        """A function of SciPy, or of the module that stands for it."""
        package = self.special.replace("special", part)
        try:
            module = import_module(package)
        except ImportError:
            raise MissingExtraError(
                f"{name}: arrays need {package} for it. Install it with "
                f"pip install {self.extra}."
            ) from None
        return self._found(module, _SPECIAL.get(name, name))

    def _found(self, module: Any, name: str) -> Any:
        """A function of a module, which may not have all of NumPy's and SciPy's."""
        function = getattr(module, name, None)
        if function is None:
            raise MissingRuleError(
                f"{name}: {module.__name__} has no such function. Compute it on the "
                f'CPU: x.to("cpu") and back are differentiable.'
            )
        return function

    def pow(self, x: Any, y: Any) -> Any:
        """``x**y``.

        Small whole powers are products: NumPy's own take 100 times as long.
        """
        small = type(y) in (int, float) and 2 < y < 9 and y % 1 == 0
        if small and x.dtype.char in "fdg":
            power = x * x
            for _ in range(int(y) - 2):
                power = power * x
            return power
        return x**y

    def ieee_pow(self, x: Any, y: Any) -> Any:
        """``x**y``, without a warning where it is infinite."""
        with ignore_fp_warnings():
            return self.pow(x, y)

    def ieee_divide(self, x: Any, y: Any) -> Any:
        """``x / y``, without a warning where it is infinite."""
        with ignore_fp_warnings():
            return x / y

    def polygamma(self, n: int, x: Any) -> Any:
        """The n-th derivative of the digamma function, in x's type."""
        n = self.module.int64(n)  # cupyx takes no int of Python's
        z = self.scipys("polygamma")(n, x)
        return z.astype(x.dtype) if hasattr(x, "dtype") else float(z)

    def relu(self, x: Any) -> Any:
        """``max(x, 0)``."""
        return self.module.maximum(x, 0)

    def passed(self, z_bar: Any, z: Any) -> Any:
        """``z_bar`` where z, a positive part, is not 0; else 0."""
        if z.size >= LARGE:
            x_bar = engines.elementwise.back("leaky_relu", z, z_bar, 0.0)
            if x_bar is not None:
                return x_bar
        # NumPy takes longer to multiply by truths, and to fill another array.
        passes = (z != 0).astype(z_bar.dtype)
        passes *= z_bar
        return passes

    def softplus(self, x: Any) -> Any:
        """``log(1 + exp(x))`` without overflow."""
        xp = self.module
        return xp.log1p(xp.exp(-xp.abs(x))) + self.relu(x)

    def sigmoid(self, x: Any) -> Any:
        """``1 / (1 + exp(-x))``, accurate in both tails."""
        z, xp = engines.elementwise.forward("sigmoid", x), self.module
        if z is not None:
            return z
        try:
            with np.errstate(over="raise", under="ignore"):
                return 1 / (1 + xp.exp(-x))
        except FloatingPointError:  # exp(-x) is infinite, its inverse may not be zero
            return self._sigmoid_of_any(x)

    def _sigmoid_of_any(self, x: Any) -> Any:
        """``1 / (1 + exp(-x))``, in three times as long."""
        xp = self.module
        e = xp.exp(-xp.abs(x))
        return xp.where(x >= 0, 1, e) / (1 + e)

    def convolve_fully(self, x: Any, y: Any) -> Any:
        """The convolution of two arrays with as many axes, all of it."""
        return self.scipys("convolve", "signal")(x, y)

    def cummax(self, x: Any, axis: int) -> Any:
        """The largest element so far along an axis."""
        return self.module.maximum.accumulate(x, axis=axis)

    def cummin(self, x: Any, axis: int) -> Any:
        """The smallest element so far along an axis."""
        return self.module.minimum.accumulate(x, axis=axis)

    def logsumexp(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """``log(sum(exp(x)))`` without overflow; -inf where all are -inf, or none."""
        xp = self.module
        top = (xp.max if x.size else xp.sum)(x, axis=axis, keepdims=True)
        top = xp.where(xp.isfinite(top), top, 0)
        with ignore_fp_warnings():
            z = top + xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True))
        return z if keepdims else xp.squeeze(z, axis=axis)


class NumpyNamespace(ArrayNamespace):
    """NumPy's functions; on the ways that every program takes, in fewer steps."""

    def sum(
        self, x: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False
    ) -> Any:
        """The sum over axes."""
        return np.add.reduce(x, axis, dtype, keepdims=keepdims)

    def max(self, x: Any, axis: Any = None, **options: Any) -> Any:
        """The largest elements over axes."""
        return np.maximum.reduce(x, axis, **options)

    def relu(self, x: Any) -> Any:
        """``max(x, 0)``."""
        return np.maximum(x, _ZEROS.get(x.dtype, 0))

    def mean(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """The mean over axes."""
        if x.dtype.kind != "f" or x.dtype.itemsize == 2 or not x.size:
            return np.mean(x, axis=axis, keepdims=keepdims)
        z = self.sum(x, axis, keepdims=keepdims)
        return z / (x.size // z.size)

    def astype(self, x: Any, dtype: Any, copy: bool = True) -> Any:
        """The elements in another type."""
        return x.astype(dtype, copy=copy)

    def reshape(self, x: Any, shape: Any, **options: Any) -> Any:
        """The same elements under another shape."""
        if type(x) not in arrays:
            return np.reshape(x, shape, **options)
        return x.reshape(shape, **options)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        """The array, repeated along axes: a view, or a copy of few numbers."""
        if type(x) not in arrays or type(shape) is not tuple:
            return np.broadcast_to(x, shape)
        if x.dtype in REAL and math.prod(shape) < SMALL:
            copy = np.empty(shape, x.dtype)
            copy[...] = x
            return copy
        extra = len(shape) - len(x.shape)
        if extra < 0 or x.dtype.kind not in "fc" or not x.flags.c_contiguous:
            return np.broadcast_to(x, shape)
        strides = [0] * extra
        for n, m, stride in zip(x.shape, shape[extra:], x.strides, strict=True):
            if n != m and n != 1:
                return np.broadcast_to(x, shape)  # which says why not
            strides.append(stride if n == m else 0)
        z: Any = np.ndarray(shape, x.dtype, x, strides=strides)
        z.flags.writeable = False
        return z

    def squeeze(self, x: Any, axis: Any = None) -> Any:
        """The array without axes of length 1."""
        return x.squeeze(axis)

    def expand_dims(self, x: Any, axis: Any) -> Any:
        """The array with new axes of length 1."""
        if type(axis) is not int or not 0 <= axis <= x.ndim:
            return np.expand_dims(x, axis=axis)
        return x.reshape((*x.shape[:axis], 1, *x.shape[axis:]))

    def permute_dims(self, x: Any, axes: Any = None) -> Any:
        """The array with its axes in another order; reversed by default."""
        return x.transpose(axes)

    def matrix_transpose(self, x: Any) -> Any:
        """The array with its last two axes swapped."""
        return x.mT

    def where(self, condition: Any, *choices: Any) -> Any:
        """As NumPy's; if the second choice is 0, up to twenty times as fast."""
        if len(choices) != 2 or not (
            type(condition) is np.ndarray and condition.dtype.kind == "b"
        ):
            return np.where(condition, *choices)
        x, y = choices
        if type(y) is int and y == 0 and type(x) is np.ndarray:
            z = _kept(x, condition)
        elif type(y) is np.ndarray and condition.size < y.size >= _LARGE:
            z = _filled(y, condition, x)
        else:
            z = None
        return np.where(condition, x, y) if z is None else z


def _kept(x: Any, condition: Any) -> Any:
    """x where a condition holds, else 0; None for other types than real ones.

    NumPy's ``where`` branches on every element; -1 has all bits, and 0.0 none.
    """
    bits = _SIGNED.get(x.dtype)
    if bits is None:
        return None
    mask = np.negative(condition.view(np.int8), dtype=bits)
    if mask.shape == x.shape:
        mask &= x.view(bits)
        return mask.view(x.dtype)
    z = engines.copies.kept(x, mask) if x.size >= engines.copies.LEAST else None
    return (mask & x.view(bits)).view(x.dtype) if z is None else z


def _filled(x: Any, condition: Any, number: Any) -> Any:
    """x with a number where a smaller condition holds; None if it is not that simple.

    A copy that is written to takes 0.6 to 0.95 of the time of ``where``.
    """
    if getattr(number, "shape", None) != () or number.dtype != x.dtype:
        return None
    if not broadcasts(condition, x.shape):
        return None
    z = engines.copies.filled(x, condition, number)
    if z is None:
        z = x.copy("K")
        np.copyto(z, number, where=condition)
    return z


numpy_namespace = NumpyNamespace(np, "scipy.special", "scipy")


# The libraries whose arrays lie on the devices of a name.
devices: dict[str, Callable[[], ArrayNamespace]] = {
    "cpu": lambda: numpy_namespace
}  # and "cuda" (lantern/tensor/backend/device.py)


def find_device(name: Any) -> tuple[ArrayNamespace, int | None]:
    """The array library of a device, and the device's number if the name says it."""
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in devices or (number and not number.isdecimal()):
        raise ArgumentError(
            f"to_device: there is no device {name!r}. Choose one of "
            f"{', '.join(devices)}, with a number if there are several: cuda:1."
        )
    return devices[kind](), int(number) if number else None


# What np.errstate is made of; an interrupt may come between its own steps.
_parts: Any = import_module("numpy._core.umath")
_errors: Any = getattr(_parts, "_extobj_contextvar", None)
_IGNORED: Any = {"divide": "ignore", "invalid": "ignore", "over": "ignore"}


class _IgnoredWarnings(Setting):
    """As ``np.errstate``, which puts back what it set in one step."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_errors, None)

    def within(self, before: Any) -> Any:
        """NumPy's errors as they are, without these."""
        return _parts._make_extobj(**_IGNORED)


def ignore_fp_warnings() -> Any:
    """A block in which a division by zero is no warning: its result is not used."""
    if _errors is None or not hasattr(_parts, "_make_extobj"):  # another NumPy
        return np.errstate(**_IGNORED)
    return _IgnoredWarnings()


def as_scalar(primal: Any) -> Any:
    """A result that is no array as NumPy's scalar; ``1j * np.float64(2)`` is none."""
    if type(primal) is complex:
        return np.complex128(primal)
    raise ArgumentError(
        f"lantern: an operation with an array of objects gave {primal!r} of type "
        f"{type(primal).__name__}. Convert the array to numbers: x.astype(float)."
    )


def array_namespace(*operands: Any) -> Any:
    """The functions that make an array of these operands; NumPy's for plain numbers."""
    xp = common_namespace(*operands)
    return numpy_namespace if is_scalar(xp) or xp is tables else xp


register_namespace("numpy", lambda: numpy_namespace)
# NumPy's own base class for containers, which hold arrays and are none.
register_namespace(np.lib.mixins.NDArrayOperatorsMixin, scalar_functions)
