"""Bessel functions: one rule, for their derivatives are neighbours of their order."""

from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.value import Rule, Value, base, is_tracked
from lantern.errors import MissingRuleError
from lantern.op import elementwise
from lantern.rules import selection
from lantern.tensor.backend.numpy_namespace import array_namespace

__all__ = [
    "i0e",
    "i1e",
    "ive",
    "j0",
    "j1",
    "jn",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kv",
    "kve",
    "y0",
    "y1",
    "yn",
    "yv",
]

# The derivative's shares of the functions of orders n - 1 and n + 1, and of the
# function itself; that of "ive" times the sign of x.
_SHARES = {
    "jv": (0.5, -0.5, 0),
    "yv": (0.5, -0.5, 0),
    "kv": (-0.5, -0.5, 0),
    "kve": (-0.5, -0.5, 1),
    "ive": (0.5, 0.5, -1),
}
# What SciPy computes faster by a function of its own.
_OWN = {(kind, n): f"{kind[0]}{n}{kind[2:]}" for kind in _SHARES for n in (0, 1)}


def bessel(kind: str, n: Any, x: Any) -> Any:
    """The Bessel function of a kind and order: by its rule, or by SciPy if x is plain.

    Args:
        kind: SciPy's name of it.
        n: the order, a constant.
        x: where.
    """
    if is_tracked(n):
        raise MissingRuleError(
            f"{kind}: no rule for a tracked order. Hold it constant "
            f"(lantern.stop_gradient)."
        )
    n, x = base(from_lists(n)), from_lists(x)
    if isinstance(x, Value):
        return _bessel(x, kind, n)
    xp = array_namespace(x)
    function = xp.scipys(kind)
    if not getattr(n, "shape", ()) and (kind, n) in _OWN:
        z = xp.scipys(_OWN[kind, n])(x)
    else:
        z = function(n, x)
    if not hasattr(x, "dtype"):
        return float(z)
    return z if z.dtype == x.dtype else z.astype(x.dtype)


@elementwise
def _bessel(x: Any, /, kind: str, n: Any) -> Rule:
    """The Bessel function of a kind and order.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (a * f(n - 1, x) + b * f(n + 1, x) + c * f(n, x)), with a, b
        and c of the kind

    References:
        Abramowitz and Stegun (1964), 9.1.27 and 9.6.26.
    """
    z = bessel(kind, n, x)
    z_bar = yield z
    below, above, own = _SHARES[kind]
    slope = below * bessel(kind, n - 1, x) + above * bessel(kind, n + 1, x)
    if own:
        slope = slope + own * (selection.sign(x) if kind == "ive" else 1) * z
    yield z_bar * slope


def jv(v: Any, x: Any, /) -> Any:
    """The Bessel function of the first kind of order v.

    Shapes:
        v: a number; x: (...); result: (...)

    Example:
        >>> jv(0, 0.0)
        1.0
    """
    return bessel("jv", v, x)


def yv(v: Any, x: Any, /) -> Any:
    """The Bessel function of the second kind of order v.

    Shapes:
        v: a number; x: (...), positive; result: (...)

    Example:
        >>> round(yv(0, 1.0), 6)
        0.088257
    """
    return bessel("yv", v, x)


def kv(v: Any, x: Any, /) -> Any:
    """The modified Bessel function of the second kind of order v.

    Shapes:
        v: a number; x: (...), positive; result: (...)

    Example:
        >>> round(kv(0, 1.0), 6)
        0.421024
    """
    return bessel("kv", v, x)


def kve(v: Any, x: Any, /) -> Any:
    """``exp(x) * kv(v, x)``, without underflow.

    Shapes:
        v: a number; x: (...), positive; result: (...)

    Example:
        >>> round(kve(0, 1000.0), 6)
        0.039628
    """
    return bessel("kve", v, x)


def ive(v: Any, x: Any, /) -> Any:
    """``exp(-abs(x)) * iv(v, x)``, without overflow.

    Shapes:
        v: a number; x: (...); result: (...)

    Example:
        >>> round(ive(0, 1000.0), 6)
        0.012617
    """
    return bessel("ive", v, x)


jn, yn = jv, yv


def j0(x: Any, /) -> Any:
    """The Bessel function of the first kind of order 0.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> j0(np.array([0.0, 2.0])).round(6)
        array([1.      , 0.223891])
    """
    return bessel("jv", 0, x)


def j1(x: Any, /) -> Any:
    """The Bessel function of the first kind of order 1.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> j1(np.array([0.0, 2.0])).round(6)
        array([0.      , 0.576725])
    """
    return bessel("jv", 1, x)


def y0(x: Any, /) -> Any:
    """The Bessel function of the second kind of order 0.

    Shapes:
        x: (...), positive; result: (...)

    Example:
        >>> import numpy as np
        >>> y0(np.array([1.0, 2.0])).round(6)
        array([0.088257, 0.510376])
    """
    return bessel("yv", 0, x)


def y1(x: Any, /) -> Any:
    """The Bessel function of the second kind of order 1.

    Shapes:
        x: (...), positive; result: (...)

    Example:
        >>> import numpy as np
        >>> y1(np.array([1.0, 2.0])).round(6)
        array([-0.781213, -0.107032])
    """
    return bessel("yv", 1, x)


def k0(x: Any, /) -> Any:
    """The modified Bessel function of the second kind of order 0.

    Shapes:
        x: (...), positive; result: (...)

    Example:
        >>> import numpy as np
        >>> k0(np.array([1.0, 2.0])).round(6)
        array([0.421024, 0.113894])
    """
    return bessel("kv", 0, x)


def k1(x: Any, /) -> Any:
    """The modified Bessel function of the second kind of order 1.

    Shapes:
        x: (...), positive; result: (...)

    Example:
        >>> import numpy as np
        >>> k1(np.array([1.0, 2.0])).round(6)
        array([0.601907, 0.139866])
    """
    return bessel("kv", 1, x)


def k0e(x: Any, /) -> Any:
    """``exp(x) * k0(x)``.

    Shapes:
        x: (...), positive; result: (...)

    Example:
        >>> import numpy as np
        >>> k0e(np.array([1.0, 2.0])).round(6)
        array([1.144463, 0.841568])
    """
    return bessel("kve", 0, x)


def k1e(x: Any, /) -> Any:
    """``exp(x) * k1(x)``.

    Shapes:
        x: (...), positive; result: (...)

    Example:
        >>> import numpy as np
        >>> k1e(np.array([1.0, 2.0])).round(6)
        array([1.636153, 1.033477])
    """
    return bessel("kve", 1, x)


def i0e(x: Any, /) -> Any:
    """``exp(-abs(x)) * i0(x)``.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> i0e(np.array([0.0, 2.0])).round(6)
        array([1.      , 0.308508])
    """
    return bessel("ive", 0, x)


def i1e(x: Any, /) -> Any:
    """``exp(-abs(x)) * i1(x)``.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> i1e(np.array([0.0, 2.0])).round(6)
        array([0.      , 0.215269])
    """
    return bessel("ive", 1, x)
