"""Random draws with an explicit generator, differentiable in their parameters.

Each draw is a function of the parameters and of what the generator draws, which is a
constant. What the generator draws does not depend on whether the parameters are
tracked. The public functions are those of ``lantern.random``.

References:
    Kingma and Welling (2014), section 2.4; Figurnov, Mohamed and Mnih (2018).
"""

from types import ModuleType
from typing import Any

from lantern.core.value import base
from lantern.errors import ArgumentError, ShapeError
from lantern.rules.exponential import exp, log, sqrt
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops import reduction
from lantern.tensor.ops.concat_stack import stack
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.gamma import _gammaincinv
from lantern.tensor.ops.shape import broadcast_to
from lantern.tensor.ops.softmax import softmax

__all__: list[str] = []  # `lantern.gamma` is the gamma function


def _drawn(rng: Any, name: str, size: Any, parameters: Any, arguments: Any = ()) -> Any:
    """What the generator's method of a name draws, for parameters of any shapes.

    It is in the parameters' floating-point type, and a plain number for numbers.
    """
    if not hasattr(rng, "bit_generator") or isinstance(rng, ModuleType):
        raise ArgumentError(
            f"random: expected a generator as the first argument, got "
            f"{type(rng).__name__}. Make one: numpy.random.default_rng(seed)."
        )
    plain = [base(p) for p in parameters]
    xp = array_namespace(*plain)
    shape = xp.broadcast_shapes(*(getattr(p, "shape", ()) for p in plain))
    if size is None:
        size = shape or None
    else:
        size = (size,) if isinstance(size, int) else tuple(size)
        if xp.broadcast_shapes(size, shape) != size:
            raise ShapeError(
                f"random: parameters of shape {shape} do not fit size={size}. Leave "
                f"size away for one draw each."
            )
    there = [array_namespace(a).to_device(a, "cpu") for a in arguments]
    draws = getattr(rng, name)(*there, size=size)  # in the host's memory
    if xp is not numpy_namespace and hasattr(draws, "dtype"):
        draws = xp.asarray(draws)
    dtypes = [p.dtype for p in plain if hasattr(p, "dtype") and p.dtype.kind == "f"]
    if not dtypes or not hasattr(draws, "dtype"):
        return draws
    return xp.astype(draws, xp.result_type(*dtypes), copy=False)


def normal(rng: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Draws from normal distributions.

    Args:
        rng: a ``numpy.random.Generator``.
        loc: the means.
        scale: the standard deviations.
        size: the shape of the result; by default that of the parameters.

    Shapes:
        loc, scale: (...), broadcast; result: (...), or size

    Example:
        >>> import lantern
        >>> from numpy.random import default_rng
        >>> normal(default_rng(0), 1.0, 2.0) == default_rng(0).normal(1.0, 2.0)
        True
        >>> slope = lantern.grad(lambda s: normal(default_rng(0), 1.0, s))(2.0)
        >>> slope == default_rng(0).standard_normal()
        True
    """
    return loc + scale * _drawn(rng, "standard_normal", size, (loc, scale))


def lognormal(rng: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    """Exponentials of draws from normal distributions.

    Shapes:
        mean, sigma: (...), broadcast; result: (...), or size

    Example:
        >>> import numpy as np
        >>> x = lognormal(np.random.default_rng(0), 1.0, 0.0, size=2)
        >>> x
        array([2.71828183, 2.71828183])
    """
    return exp(normal(rng, mean, sigma, size))


def uniform(rng: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Draws from uniform distributions between two bounds.

    Shapes:
        low, high: (...), broadcast; result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> uniform(default_rng(0), 1.0, 3.0) == default_rng(0).uniform(1.0, 3.0)
        True
    """
    return low + (high - low) * _drawn(rng, "random", size, (low, high))


def exponential(rng: Any, scale: Any = 1.0, size: Any = None) -> Any:
    """Draws from exponential distributions; the scale is the mean.

    Shapes:
        scale: (...); result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> exponential(default_rng(0), 3.0) == default_rng(0).exponential(3.0)
        True
    """
    return scale * _drawn(rng, "standard_exponential", size, (scale,))


def laplace(rng: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Draws from Laplace distributions.

    Shapes:
        loc, scale: (...), broadcast; result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> laplace(default_rng(0), 1.0, 3.0) == default_rng(0).laplace(1.0, 3.0)
        True
    """
    return loc + scale * _drawn(rng, "laplace", size, (loc, scale))


def logistic(rng: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Draws from logistic distributions.

    Shapes:
        loc, scale: (...), broadcast; result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> logistic(default_rng(0), 1.0, 3.0) == default_rng(0).logistic(1.0, 3.0)
        True
    """
    return loc + scale * _drawn(rng, "logistic", size, (loc, scale))


def gumbel(rng: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Draws from Gumbel distributions, those of maxima.

    Shapes:
        loc, scale: (...), broadcast; result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> gumbel(default_rng(0), 1.0, 3.0) == default_rng(0).gumbel(1.0, 3.0)
        True
    """
    return loc + scale * _drawn(rng, "gumbel", size, (loc, scale))


def weibull(rng: Any, a: Any, size: Any = None) -> Any:
    """Draws from Weibull distributions of shape a and scale 1.

    Shapes:
        a: (...); result: (...), or size

    Example:
        >>> import numpy as np
        >>> bool((weibull(np.random.default_rng(0), 2.0, size=4) > 0.0).all())
        True
    """
    return _drawn(rng, "standard_exponential", size, (a,)) ** (1.0 / a)


def rayleigh(rng: Any, scale: Any = 1.0, size: Any = None) -> Any:
    """Draws from Rayleigh distributions: lengths of pairs of normal numbers.

    Shapes:
        scale: (...); result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> rayleigh(default_rng(0), 3.0) == default_rng(0).rayleigh(3.0)
        True
    """
    return scale * sqrt(2.0 * _drawn(rng, "standard_exponential", size, (scale,)))


def standard_gamma(rng: Any, shape: Any, size: Any = None) -> Any:
    """Draws from gamma distributions of a shape and of scale 1.

    The derivative is implicit: as the shape changes, a draw moves so that a part of
    the distribution stays below it that is always the same.

    Shapes:
        shape: (...); result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> standard_gamma(default_rng(0), 3.0) == default_rng(0).standard_gamma(3.0)
        True
    """
    draws = _drawn(rng, "standard_gamma", size, (shape,), (base(shape),))
    return _gammaincinv(shape, None, draws)


def gamma(rng: Any, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
    """Draws from gamma distributions; see ``standard_gamma``.

    Shapes:
        shape, scale: (...), broadcast; result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> gamma(default_rng(0), 3.0, 2.0) == default_rng(0).gamma(3.0, 2.0)
        True
    """
    form = array_namespace(base(shape), base(scale)).broadcast_shapes(
        getattr(shape, "shape", ()), getattr(scale, "shape", ())
    )
    return scale * standard_gamma(rng, shape, form or None if size is None else size)


def chisquare(rng: Any, df: Any, size: Any = None) -> Any:
    """Draws from chi-square distributions of df degrees of freedom.

    Shapes:
        df: (...); result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> chisquare(default_rng(0), 3.0) == default_rng(0).chisquare(3.0)
        True
    """
    return 2.0 * standard_gamma(rng, df / 2.0, size)


def beta(rng: Any, a: Any, b: Any, size: Any = None) -> Any:
    """Draws from beta distributions: the first part of draws from Dirichlet's.

    They are the generator's own unless a and b are both 1 or less.

    Shapes:
        a, b: (...), broadcast; result: (...), or size

    Example:
        >>> import numpy as np
        >>> x = beta(np.random.default_rng(0), 2.0, 3.0, size=4)
        >>> bool(((0.0 < x) & (x < 1.0)).all())
        True
    """
    a, b = asarray(a), asarray(b)
    form = array_namespace(base(a), base(b)).broadcast_shapes(a.shape, b.shape)
    alpha = stack([broadcast_to(a, form), broadcast_to(b, form)], axis=-1)
    return dirichlet(rng, alpha, size)[..., 0]


def dirichlet(rng: Any, alpha: Any, size: Any = None) -> Any:
    """Draws from Dirichlet distributions: gamma draws divided by their sum.

    They are the generator's own if some alpha is 0.1 or more. Else gamma draws could
    all underflow; they are made from those of alpha + 1, by their logarithms.

    Shapes:
        alpha: (..., k); result: (..., k), or size and k

    Example:
        >>> from numpy.random import default_rng
        >>> dirichlet(default_rng(0), [1.0, 2.0, 3.0]).sum()
        np.float64(1.0)
    """
    alpha = asarray(alpha)
    k = alpha.shape[-1]
    if size is not None:
        size = ((size,) if isinstance(size, int) else tuple(size)) + (k,)
    if (base(alpha).max(axis=-1) >= 0.1).all():
        draws = standard_gamma(rng, alpha, size)
        return draws / reduction.sum(draws, axis=-1, keepdims=True)
    logs = log(standard_gamma(rng, alpha + 1.0, size))
    return softmax(logs - exponential(rng, 1.0 / alpha, size), axis=-1)


def categorical(rng: Any, logits: Any, size: Any = None) -> Any:
    """Draws of a class each, with probabilities ``softmax(logits)``; constants.

    See ``gumbel_softmax`` for what can be differentiated.

    Shapes:
        logits: (..., k); result: (...), or size

    Example:
        >>> from numpy.random import default_rng
        >>> int(categorical(default_rng(0), [-1000.0, 1000.0]))
        1

    References:
        Maddison, Tarlow and Minka (2014), section 2.
    """
    logits = base(asarray(logits))
    if size is not None:
        size = ((size,) if isinstance(size, int) else tuple(size)) + logits.shape[-1:]
    noise = _drawn(rng, "gumbel", size, (logits,))
    return array_namespace(logits).argmax(logits + noise, axis=-1)


def gumbel_softmax(
    rng: Any, logits: Any, temperature: Any = 1.0, axis: int = -1
) -> Any:
    """Draws of classes, relaxed: probabilities that come near 0 and 1.

    The lower the temperature, the nearer; the largest is at the class that
    ``categorical`` draws from the same generator.

    Shapes:
        logits: (..., k); result: (..., k)

    Example:
        >>> from numpy.random import default_rng
        >>> gumbel_softmax(default_rng(0), [0.0, 0.0], 0.001)
        array([0., 1.])

    References:
        Jang, Gu and Poole (2017), equation 2; Maddison, Mnih and Teh (2017).
    """
    logits = asarray(logits)
    noise = _drawn(rng, "gumbel", None, (logits,))
    return softmax((logits + noise) / temperature, axis=axis)
