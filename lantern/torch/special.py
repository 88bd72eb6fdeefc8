"""Special functions: ``torch.special``; the rarer ones are SciPy's."""

import math
from typing import Any, NoReturn

import numpy as np

from lantern.core.value import Rule
from lantern.errors import ArgumentError, EagerError, MissingRuleError
from lantern.op import elementwise
from lantern.scipy import special as ours
from lantern.scipy.evaluate import evaluate
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.torch.functions.table import FUNCTIONS
from lantern.torch.tables import documented, place
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as _base
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.dtypes import F64
from lantern.torch.tensor.halves import single
from lantern.torch.tensor.named_results import with_out
from lantern.torch.tensor.operators import (
    as_kind,
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


entr = documented(
    _one("entr"),
    """``-input * log(input)``: 0 at 0, minus infinity below.

    >>> torch.special.entr(torch.tensor([-1.0, 0.0, 0.5]))
    tensor([  -inf, 0.0000, 0.3466])
    """,
)
i0 = documented(
    _one("i0"),
    """The modified Bessel function of the first kind, of order 0.

    >>> torch.special.i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
)
i0e = documented(
    _one("i0e"),
    """``exp(-|input|) * i0(input)``, which does not overflow.

    >>> torch.special.i0e(torch.tensor([0.0, 100.0]))
    tensor([1.0000, 0.0399])
    """,
)
i1 = documented(
    _one("i1"),
    """The modified Bessel function of the first kind, of order 1.

    >>> torch.special.i1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
)
i1e = documented(
    _one("i1e"),
    """``exp(-|input|) * i1(input)``, which does not overflow.

    >>> torch.special.i1e(torch.tensor([0.0, 100.0]))
    tensor([0.0000, 0.0397])
    """,
)
log_ndtr = documented(
    _one("log_ndtr"),
    """The logarithm of ``ndtr``, exact far below 0 too.

    >>> torch.special.log_ndtr(torch.tensor([0.0, -100.0]))
    tensor([-6.9315e-01, -5.0055e+03])
    """,
)
ndtr = documented(
    _one("ndtr"),
    """The standard normal distribution function.

    >>> torch.special.ndtr(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """,
)
ndtri = documented(
    _one("ndtri"),
    """The inverse of ``ndtr``.

    >>> torch.special.ndtri(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 1.2816])
    """,
)
bessel_j0 = documented(
    _one("bessel_j0", ours.j0),
    """The Bessel function of the first kind, of order 0.

    >>> torch.special.bessel_j0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.7652])
    """,
)
bessel_j1 = documented(
    _one("bessel_j1", ours.j1),
    """The Bessel function of the first kind, of order 1.

    >>> torch.special.bessel_j1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.4401])
    """,
)
bessel_y0 = documented(
    _one("bessel_y0", ours.y0),
    """The Bessel function of the second kind, of order 0.

    >>> torch.special.bessel_y0(torch.tensor([1.0, 2.0]))
    tensor([0.0883, 0.5104])
    """,
)
bessel_y1 = documented(
    _one("bessel_y1", ours.y1),
    """The Bessel function of the second kind, of order 1.

    >>> torch.special.bessel_y1(torch.tensor([1.0, 2.0]))
    tensor([-0.7812, -0.1070])
    """,
)
modified_bessel_i0 = documented(
    _one("modified_bessel_i0", ours.i0),
    """The modified Bessel function of the first kind, of order 0.

    >>> torch.special.modified_bessel_i0(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """,
)
modified_bessel_i1 = documented(
    _one("modified_bessel_i1", ours.i1),
    """The modified Bessel function of the first kind, of order 1.

    >>> torch.special.modified_bessel_i1(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5652])
    """,
)
modified_bessel_k0 = documented(
    _one("modified_bessel_k0", ours.k0),
    """The modified Bessel function of the second kind, of order 0.

    >>> torch.special.modified_bessel_k0(torch.tensor([1.0, 2.0]))
    tensor([0.4210, 0.1139])
    """,
)
modified_bessel_k1 = documented(
    _one("modified_bessel_k1", ours.k1),
    """The modified Bessel function of the second kind, of order 1.

    >>> torch.special.modified_bessel_k1(torch.tensor([1.0, 2.0]))
    tensor([0.6019, 0.1399])
    """,
)
scaled_modified_bessel_k0 = documented(
    _one("scaled_modified_bessel_k0", ours.k0e),
    """``exp(input) * modified_bessel_k0(input)``.

    >>> torch.special.scaled_modified_bessel_k0(torch.tensor([1.0, 2.0]))
    tensor([1.1445, 0.8416])
    """,
)
scaled_modified_bessel_k1 = documented(
    _one("scaled_modified_bessel_k1", ours.k1e),
    """``exp(input) * modified_bessel_k1(input)``.

    >>> torch.special.scaled_modified_bessel_k1(torch.tensor([1.0, 2.0]))
    tensor([1.6362, 1.0335])
    """,
)


def erfcx(input: Tensor) -> Any:
    """``exp(x**2) * erfc(x)``, without overflow where x is large.

    Example:
        >>> import lantern.torch as torch
        >>> torch.special.erfcx(torch.tensor([0.0, 10.0]))
        tensor([1.0000, 0.0561])
    """
    (x,) = promote(input, floating=True)
    return call(_erfcx, x)


@elementwise
def _erfcx(x: Any, /) -> Rule:
    """``exp(x**2) * erfc(x)``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (2 * x * z - 2 / sqrt(pi))
    """
    z = evaluate(_erfcx, x, name="erfcx")
    z_bar = yield z
    yield z_bar * (2 * x * z - 2 / math.sqrt(math.pi))


def spherical_bessel_j0(input: Tensor) -> Any:
    """``sin(x) / x``, 1 at 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.special.spherical_bessel_j0(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.8415])
    """
    (x,) = promote(input, floating=True)
    return FUNCTIONS["sinc"](x / math.pi)


def xlog1py(input: Any, other: Any) -> Any:
    """``input * log1p(other)``, 0 where input is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1.0]))
        tensor([0.0000, 1.3863])
    """
    refuse_numbers("special_xlog1py", input, other, "either")
    x, y = promote(as_tensor(input), as_tensor(other), floating=True)
    kind = _base(x if isinstance(x, Tensor) else y).dtype
    return call(ours.xlog1py, *(as_kind(z, kind) for z in (x, y)))


def zeta(input: Any, other: Any) -> Any:
    """The Hurwitz zeta function; its derivative by input is not known.

    Example:
        >>> import lantern.torch as torch
        >>> torch.special.zeta(torch.tensor([2.0, 4.0]), torch.tensor([1.0, 1.0]))
        tensor([1.6449, 1.0823])
    """
    refuse_numbers("special_zeta", input, other, "either")
    x, y = promote(as_tensor(input), as_tensor(other), floating=True)
    if isinstance(x, Tensor) and x.requires_grad:
        x = call(_first_of_zeta, x)
    return call(_zeta, x, y)


@elementwise
def _first_of_zeta(x: Any, /) -> Rule:
    """Itself; whoever asks for its derivative is refused.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar is not known
    """
    z_bar = yield (x, x := None)[0]
    yield _refused(z_bar)


def _refused(z_bar: Any) -> NoReturn:
    raise MissingRuleError(
        "special.zeta: its derivative by input is not known, only that by other. Give "
        "input.detach()."
    )


@elementwise
def _zeta(x: Any, q: Any, /) -> Rule:
    """The sum of ``(k + q)**-x`` over all k from 0 on.

    Shapes:
        x, q: (...); result: (...)

    Rule:
        q_bar = -z_bar * x * zeta(x + 1, q); of x ``_first_of_zeta`` refuses it

    References:
        DLMF (2024), 25.11.17.
    """
    z_bar = yield evaluate(_zeta, x, q, name="zeta")
    yield z_bar * math.nan
    yield -z_bar * x * _zeta(x + 1, q)


def gammainc(input: Tensor, other: Tensor) -> Any:
    """The regularised lower incomplete gamma function.

    Example:
        >>> import lantern.torch as torch
        >>> torch.special.gammainc(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        tensor([0.6321, 0.2642])
    """
    refuse_numbers("igamma", input, other)
    return call(ours.gammainc, *promote(input, other, floating=True))


def gammaincc(input: Tensor, other: Tensor) -> Any:
    """The regularised upper incomplete gamma function.

    Example:
        >>> import lantern.torch as torch
        >>> torch.special.gammaincc(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        tensor([0.3679, 0.7358])
    """
    refuse_numbers("igammac", input, other)
    return call(ours.gammaincc, *promote(input, other, floating=True))


def polygamma(n: int, input: Tensor) -> Any:
    """The n-th derivative of ``digamma``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.special.polygamma(1, torch.tensor([1.0, 2.0]))
        tensor([1.6449, 0.6449])
    """
    if not isinstance(n, int):
        raise ArgumentError("polygamma(): argument 'n' must be int")
    if n < 0:
        raise EagerError("polygamma(n, x) does not support negative n.")
    (x,) = promote(input, floating=True)
    if n == 0:
        return FUNCTIONS["digamma"](x)
    return call(lambda a: ours.polygamma(n, a), x)


def multigammaln(input: Tensor, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p.

    Example:
        >>> import lantern.torch as torch
        >>> torch.special.multigammaln(torch.tensor([2.0, 3.0]), 2)
        tensor([0.4516, 1.5502])
    """
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
        highest = of_all_examples(degrees)
        for i in range(1, int(highest.max()) if highest.size else 0):
            before, value = value, following(i, x, value, before)
            z = np.where(degrees == i + 1, value, z)
        return fresh(as_array(z, kind))

    operate.__name__ = operate.__qualname__ = name
    return operate


chebyshev_polynomial_t = documented(
    _polynomial("chebyshev_polynomial_t"),
    """Chebyshev's polynomial of the first kind, of degree n.

    >>> torch.special.chebyshev_polynomial_t(torch.tensor([2.0, 3.0]), 2)
    tensor([ 7., 17.])
    """,
)
chebyshev_polynomial_u = documented(
    _polynomial("chebyshev_polynomial_u"),
    """Chebyshev's polynomial of the second kind, of degree n.

    >>> torch.special.chebyshev_polynomial_u(torch.tensor([2.0, 3.0]), 2)
    tensor([15., 35.])
    """,
)
chebyshev_polynomial_v = documented(
    _polynomial("chebyshev_polynomial_v"),
    """Chebyshev's polynomial of the third kind, of degree n.

    >>> torch.special.chebyshev_polynomial_v(torch.tensor([2.0, 3.0]), 2)
    tensor([11., 29.])
    """,
)
chebyshev_polynomial_w = documented(
    _polynomial("chebyshev_polynomial_w"),
    """Chebyshev's polynomial of the fourth kind, of degree n.

    >>> torch.special.chebyshev_polynomial_w(torch.tensor([2.0, 3.0]), 2)
    tensor([19., 41.])
    """,
)
hermite_polynomial_h = documented(
    _polynomial("hermite_polynomial_h"),
    """Hermite's polynomial, the physicists', of degree n.

    >>> torch.special.hermite_polynomial_h(torch.tensor([2.0, 3.0]), 2)
    tensor([14., 34.])
    """,
)
hermite_polynomial_he = documented(
    _polynomial("hermite_polynomial_he"),
    """Hermite's polynomial, the probabilists', of degree n.

    >>> torch.special.hermite_polynomial_he(torch.tensor([2.0, 3.0]), 2)
    tensor([3., 8.])
    """,
)
laguerre_polynomial_l = documented(
    _polynomial("laguerre_polynomial_l"),
    """Laguerre's polynomial of degree n.

    >>> torch.special.laguerre_polynomial_l(torch.tensor([2.0, 4.0]), 2)
    tensor([-1.,  1.])
    """,
)
legendre_polynomial_p = documented(
    _polynomial("legendre_polynomial_p"),
    """Legendre's polynomial of degree n.

    >>> torch.special.legendre_polynomial_p(torch.tensor([2.0, 3.0]), 2)
    tensor([ 5.5000, 13.0000])
    """,
)
shifted_chebyshev_polynomial_t = documented(
    _polynomial("chebyshev_polynomial_t", shifted=True),
    """``chebyshev_polynomial_t`` of ``2 * input - 1``.

    >>> torch.special.shifted_chebyshev_polynomial_t(torch.tensor([1.5, 2.0]), 2)
    tensor([ 7., 17.])
    """,
)
shifted_chebyshev_polynomial_u = documented(
    _polynomial("chebyshev_polynomial_u", shifted=True),
    """``chebyshev_polynomial_u`` of ``2 * input - 1``.

    >>> torch.special.shifted_chebyshev_polynomial_u(torch.tensor([1.5, 2.0]), 2)
    tensor([15., 35.])
    """,
)
shifted_chebyshev_polynomial_v = documented(
    _polynomial("chebyshev_polynomial_v", shifted=True),
    """``chebyshev_polynomial_v`` of ``2 * input - 1``.

    >>> torch.special.shifted_chebyshev_polynomial_v(torch.tensor([1.5, 2.0]), 2)
    tensor([11., 29.])
    """,
)
shifted_chebyshev_polynomial_w = documented(
    _polynomial("chebyshev_polynomial_w", shifted=True),
    """``chebyshev_polynomial_w`` of ``2 * input - 1``.

    >>> torch.special.shifted_chebyshev_polynomial_w(torch.tensor([1.5, 2.0]), 2)
    tensor([19., 41.])
    """,
)
# SciPy computes float16 in another type, and some of these are sums.
globals().update(
    {
        name: with_out(single(value))
        for name, value in list(globals().items())
        if not name.startswith("_") and getattr(value, "__module__", "") == __name__
    }
)
place(__name__, globals())
