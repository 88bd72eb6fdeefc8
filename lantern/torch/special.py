"""Special functions: ``torch.special``; the rarer ones are SciPy's."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.errors import ArgumentError, EagerError
from lantern.scipy import special as ours
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.torch.docs.attach import document
from lantern.torch.docs.places import place
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.tensor.detaching import array_of_tensor as _base
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.dtypes import F64
from lantern.torch.tensor.halves import single
from lantern.torch.tensor.operators import (
    as_tensor,
    call,
    cast,
    promote,
    refuse_numbers,
)
from lantern.torch.tensor.tensor import Tensor, fresh

_SAME = (
    "digamma erf erfc erfinv exp2 expm1 log1p log_softmax logit logsumexp "
    "round sinc softmax xlogy"
).split()
globals().update({name: FUNCTIONS[name] for name in _SAME})
expit, psi = FUNCTIONS["sigmoid"], FUNCTIONS["digamma"]
gammaln = FUNCTIONS["lgamma"]


def _one(name: str, function: Any = None) -> Any:
    function = function or getattr(ours, name)

    def operate(input: Tensor) -> Any:
        (x,) = promote(input, floating=True)
        z = call(function, x)
        return z if _base(z).dtype == _base(x).dtype else cast(z, _base(x).dtype)

    operate.__name__ = operate.__qualname__ = name
    return operate


entr, i0, i0e, i1, i1e, log_ndtr, ndtr, ndtri = map(
    _one, ("entr", "i0", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri")
)
bessel_j0, bessel_j1 = _one("bessel_j0", ours.j0), _one("bessel_j1", ours.j1)
bessel_y0, bessel_y1 = _one("bessel_y0", ours.y0), _one("bessel_y1", ours.y1)
modified_bessel_i0 = _one("modified_bessel_i0", ours.i0)
modified_bessel_i1 = _one("modified_bessel_i1", ours.i1)
modified_bessel_k0 = _one("modified_bessel_k0", ours.k0)
modified_bessel_k1 = _one("modified_bessel_k1", ours.k1)
scaled_modified_bessel_k0 = _one("scaled_modified_bessel_k0", ours.k0e)
scaled_modified_bessel_k1 = _one("scaled_modified_bessel_k1", ours.k1e)


def erfcx(input: Tensor) -> Any:
    """``exp(x**2) * erfc(x)``, without overflow where x is large."""
    (x,) = promote(input, floating=True)
    return _erfcx(x)


def _erfcx(x: Tensor) -> Any:
    z = fresh(as_array(namespace(_base(x)).scipys("erfcx")(_base(x))))
    if not x.requires_grad:
        return z
    slope = 2 * _base(x) * _base(z) - 2 / math.sqrt(math.pi)
    return _tangent_line(z, x, fresh(slope))


def _tangent_line(z: Tensor, x: Tensor, slope: Tensor) -> Any:
    """A value with a slope, where no more than one derivative is known."""
    from lantern.torch.autograd.function import Function

    class Line(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return z.clone()

        @staticmethod
        def backward(ctx: Any, z_bar: Any) -> Any:
            if z_bar.requires_grad:
                raise EagerError("this function has no second derivative here")
            return z_bar * slope

    return Line.apply(x)


def spherical_bessel_j0(input: Tensor) -> Any:
    """``sin(x) / x``, 1 at 0."""
    (x,) = promote(input, floating=True)
    return FUNCTIONS["sinc"](x / math.pi)


def xlog1py(input: Any, other: Any) -> Any:
    """``input * log1p(other)``, 0 where input is."""
    refuse_numbers("special_xlog1py", input, other, "either")
    x, y = promote(as_tensor(input), as_tensor(other), floating=True)
    return call(ours.xlog1py, x, y)


def zeta(input: Any, other: Any) -> Any:
    """The Hurwitz zeta function."""
    refuse_numbers("special_zeta", input, other, "either")
    x, y = promote(as_tensor(input), as_tensor(other), floating=True)
    a, b = _base(x), _base(y)
    return fresh(as_array(namespace(a, b).scipys("zeta")(a, b)))


def gammainc(input: Tensor, other: Tensor) -> Any:
    """The regularised lower incomplete gamma function."""
    refuse_numbers("igamma", input, other)
    return call(ours.gammainc, *promote(input, other, floating=True))


def gammaincc(input: Tensor, other: Tensor) -> Any:
    """The regularised upper incomplete gamma function."""
    refuse_numbers("igammac", input, other)
    return call(ours.gammaincc, *promote(input, other, floating=True))


def polygamma(n: int, input: Tensor) -> Any:
    """The n-th derivative of ``digamma``."""
    if not isinstance(n, int):
        raise ArgumentError("polygamma(): argument 'n' must be int")
    if n < 0:
        raise EagerError("polygamma(n, x) does not support negative n.")
    (x,) = promote(input, floating=True)
    if n == 0:
        return FUNCTIONS["digamma"](x)
    return call(lambda a: ours.polygamma(n, a), x)


def multigammaln(input: Tensor, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise EagerError("p has to be greater than or equal to 1")
    (x,) = promote(input, floating=True)
    z = x * 0 + p * (p - 1) / 4 * math.log(math.pi)
    for j in range(p):
        z = z + FUNCTIONS["lgamma"](x - j / 2)
    return z


# Orthogonal polynomials: p0, p1 and p[n + 1] from n, x, p[n] and p[n - 1].
_POLYNOMIALS: dict[str, Any] = {
    "chebyshev_polynomial_t": (lambda x: x, lambda n, x, p, q: 2 * x * p - q),
    "chebyshev_polynomial_u": (lambda x: 2 * x, lambda n, x, p, q: 2 * x * p - q),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, lambda n, x, p, q: 2 * x * p - q),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, lambda n, x, p, q: 2 * x * p - q),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda n, x, p, q: 2 * (x * p - n * q)),
    "hermite_polynomial_he": (lambda x: x, lambda n, x, p, q: x * p - n * q),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda n, x, p, q: ((2 * n + 1 - x) * p - n * q) / (n + 1),
    ),
    "legendre_polynomial_p": (
        lambda x: x,
        lambda n, x, p, q: ((2 * n + 1) * x * p - n * q) / (n + 1),
    ),
}


def _polynomial(name: str, shifted: bool = False) -> Any:
    first, following = _POLYNOMIALS[name]
    name = f"shifted_{name}" if shifted else name

    def operate(input: Any, n: Any) -> Any:
        refuse_numbers(name, input, n, "either")
        kind = _base(promote(as_tensor(input), as_tensor(n), floating=True)[0])
        kind = getattr(kind, "dtype", F64)
        xp = array_namespace(_base(input), _base(n))
        x, degrees = xp.asarray(_base(input), kind), xp.asarray(_base(n)).astype(int)
        x, degrees = np.broadcast_arrays(x, degrees)
        x = 2 * x - 1 if shifted else x
        before, value = np.ones_like(x), as_array(first(x))
        z = np.where(degrees == 0, before, np.where(degrees < 0, 0, value))
        for i in range(1, int(degrees.max()) if degrees.size else 0):
            before, value = value, following(i, x, value, before)
            z = np.where(degrees == i + 1, value, z)
        return fresh(as_array(z, kind))

    operate.__name__ = operate.__qualname__ = name
    return operate


for _name in list(_POLYNOMIALS):
    globals()[_name] = _polynomial(_name)
    if _name.startswith("chebyshev"):
        globals()[f"shifted_{_name}"] = _polynomial(_name, shifted=True)
document("special", globals())
# SciPy computes float16 in another type, and some of these are sums.
globals().update(
    {
        name: single(value)
        for name, value in list(globals().items())
        if not name.startswith("_") and getattr(value, "__module__", "") == __name__
    }
)
place(__name__, globals())
