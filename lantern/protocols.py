"""How NumPy's own functions find the rules: ``np.sin(x)`` of a tracked x.

A universal function or array function of NumPy is looked up by name among Lantern's
functions. What compares or rounds works on the plain values; what has no rule raises.
"""

import inspect
import sys
from typing import Any, NoReturn

from lantern.errors import DetachError, MissingRuleError
from lantern.tree import tree_map
from lantern.value import Value, base

__all__ = ["ArrayProtocols"]

_STANDARD_NAMES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "power": "pow",
    "transpose": "permute_dims",
}
_ON_PLAIN_VALUES = frozenset(
    (
        "equal greater greater_equal isfinite isinf isnan less less_equal logical_and "
        "logical_not logical_or logical_xor not_equal rint signbit trunc "
        "argmax argmin array_equal allclose isclose shape ndim size zeros_like "
        "ones_like full_like empty_like result_type array_repr array_str "
        "count_nonzero nonzero"
    ).split()
)


def _lookup(name: str) -> Any:
    functions = sys.modules["lantern"]
    return getattr(functions, _STANDARD_NAMES.get(name, name), None)


def _accepts(function: Any, args: Any, kwargs: Any) -> bool:
    """Whether one of our functions has the parameters of this call."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


class ArrayProtocols:
    """The methods by which NumPy hands over an operation on a tracked value."""

    __slots__ = ()

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        """Run a universal function of NumPy by the rule of its name."""
        name = ufunc.__name__
        if method == "__call__" and not kwargs:
            if name in _ON_PLAIN_VALUES:
                return ufunc(*map(base, inputs))
            function = _lookup(name)
            if function is not None:
                return function(*inputs)
        if isinstance(kwargs.get("out", (None,))[0], Value):
            raise DetachError(
                f"numpy.{name}: a tracked array cannot be written into with out=. "
                f"Use the function's result."
            )
        call = name if method == "__call__" else f"{name}.{method}"
        options = ", ".join(kwargs)
        raise MissingRuleError(
            f"numpy.{call}: no rule for a tracked value"
            f"{' with ' + options if options else ''}. Write it with the functions of "
            f"lantern, or register a rule (lantern.op)."
        )

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Run an array function of NumPy by the rule of its name."""
        name = func.__name__
        if name in _ON_PLAIN_VALUES:
            return func(*tree_map(base, args), **tree_map(base, kwargs))
        function = _lookup(name)
        if function is not None and _accepts(function, args, kwargs):
            return function(*args, **kwargs)
        options = f" with these arguments ({', '.join(kwargs)})" if function else ""
        raise MissingRuleError(
            f"{func.__module__}.{name}: no rule for a tracked value{options}. Write it "
            f"with the functions of lantern, or register a rule (lantern.op)."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to become a plain array, which would lose the derivative."""
        raise DetachError(
            "numpy.array: a tracked value would become a constant. Use lantern.stack "
            "to build an array of tracked numbers, lantern.stop_gradient to detach."
        )
