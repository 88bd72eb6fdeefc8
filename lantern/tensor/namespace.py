"""The functions that compute on arrays: the only file that names NumPy and CuPy.

An array library has most functions under the standard's names. What rules need beyond
them is written here once, for every array library.
"""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from lantern import scalar
from lantern.contribution import Masked
from lantern.errors import MissingExtraError, MissingRuleError
from lantern.namespace import namespace, register_namespace

__all__ = ["ArrayNamespace", "array_namespace", "buffers", "numpy_namespace", "quiet"]

# Types of arrays that can be added to in place.
buffers: set[type] = {np.ndarray}

# What comes from the module of special functions, and its name there.
_SPECIAL = {
    name: name
    for name in "betaln erf erfc erfinv gamma gammainc gammaincc iv logit xlogy".split()
} | {"lgamma": "gammaln"}


class ArrayNamespace:
    """An array library's functions, and those that rules need beyond them.

    Args:
        module: numpy or cupy.
        special: the name of the module with its special functions.
        extra: the optional dependency that provides that module.
    """

    def __init__(self, module: ModuleType, special: str, extra: str) -> None:
        self.module, self.special, self.extra = module, special, extra

    select = Masked

    def quiet(self) -> Any:
        """A block without warnings of zero division: derivatives may be infinite."""
        return quiet()

    def __getattr__(self, name: str) -> Any:
        if name in _SPECIAL:
            function = self._special_function(name)
        else:
            function = getattr(self.module, name)
        setattr(self, name, function)
        return function

    def _special_function(self, name: str) -> Any:
        try:
            module = import_module(self.special)
        except ImportError:
            raise MissingExtraError(
                f"{name}: arrays need {self.special} for it. Install it with "
                f'pip install "lantern-ad[{self.extra}]".'
            ) from None
        function = getattr(module, _SPECIAL.get(name, name), None)
        if function is None:
            raise MissingRuleError(
                f"{name}: {self.special} has no such function. Compute it on the CPU: "
                f'x.to("cpu") and back are differentiable.'
            )
        return function

    def ieee_pow(self, x: Any, y: Any) -> Any:
        """``x**y``, without a warning where it is infinite."""
        with quiet():
            return x**y

    def ieee_divide(self, x: Any, y: Any) -> Any:
        """``x / y``, without a warning where it is infinite."""
        with quiet():
            return x / y

    def polygamma(self, n: int, x: Any) -> Any:
        """The n-th derivative of the digamma function, in x's type."""
        n = self.module.int64(n)  # cupyx takes no int of Python's
        return self._special_function("polygamma")(n, x).astype(x.dtype)

    def relu(self, x: Any) -> Any:
        """``max(x, 0)``."""
        return self.module.maximum(x, 0)

    def softplus(self, x: Any) -> Any:
        """``log(1 + exp(x))`` without overflow."""
        return self.module.logaddexp(x, 0)

    def sigmoid(self, x: Any) -> Any:
        """``1 / (1 + exp(-x))``, accurate in both tails."""
        xp = self.module
        e = xp.exp(-xp.abs(x))
        return xp.where(x >= 0, 1, e) / (1 + e)

    def cummax(self, x: Any, axis: int) -> Any:
        """The largest element so far along an axis."""
        return self.module.maximum.accumulate(x, axis=axis)

    def cummin(self, x: Any, axis: int) -> Any:
        """The smallest element so far along an axis."""
        return self.module.minimum.accumulate(x, axis=axis)

    def logsumexp(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """``log(sum(exp(x)))`` without overflow; -inf where all are -inf."""
        xp = self.module
        top = xp.max(x, axis=axis, keepdims=True)
        top = xp.where(xp.isfinite(top), top, 0)
        with quiet():
            z = top + xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True))
        return z if keepdims else xp.squeeze(z, axis=axis)


numpy_namespace = ArrayNamespace(np, "scipy.special", "scipy")


@cache
def _cupy_namespace() -> ArrayNamespace:
    cupy = import_module("cupy")
    buffers.add(cupy.ndarray)
    return ArrayNamespace(cupy, "cupyx.scipy.special", "cuda12")


def quiet() -> Any:
    """A block in which a division by zero is no warning: its result is not used."""
    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


def array_namespace(*operands: Any) -> Any:
    """The functions that make an array of these operands; NumPy's for plain numbers."""
    xp = namespace(*operands)
    return numpy_namespace if xp is scalar else xp


register_namespace("numpy", lambda: numpy_namespace)
register_namespace("cupy", _cupy_namespace)
