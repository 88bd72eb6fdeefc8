"""Functions that can be undone, and by how much they stretch volumes."""

import math
from collections.abc import Sequence
from typing import Any

from lantern.errors import MissingRuleError, OptionError
from lantern.torch.distributions import constraints
from lantern.torch.distributions.distribution import broadcast_all
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.nn.functional import pad, softplus
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform",
    "CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform",
    "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
    "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform",
    "Transform", "identity_transform",
]  # fmt: skip


def _summed(x: Any, n: int) -> Any:
    """The sums along the last n axes."""
    return x.flatten(-n).sum(-1) if n > 0 else x


class Transform:
    """A function that can be undone.

    Args:
        cache_size: 1 to keep the last argument with its value, so that undoing gives it
            back as it was; 0 to compute.

    Example:
        >>> import lantern.torch as torch
        >>> class Cube(torch.distributions.Transform):
        ...     domain = codomain = torch.distributions.constraints.real
        ...
        ...     def _call(self, x):
        ...         return x**3
        ...
        ...     def _inverse(self, y):
        ...         return y.sign() * y.abs() ** (1 / 3)
        >>> Cube().inv(torch.tensor([8.0]))
        tensor([2.])
    """

    bijective: Any = False
    domain: Any = constraints.real
    codomain: Any = constraints.real
    _inv: Any = None  # where classes of libraries' own keep their inverse

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise OptionError("cache_size must be 0 or 1")
        super().__init__()  # of a class beside this one: a module's
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """How many of the last axes make one value."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise OptionError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse function."""
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """1 if the function grows, -1 if it falls."""
        raise self._missing()

    def with_cache(self, cache_size: int = 1) -> Any:
        """The function, with a cache of that size."""
        if getattr(self, "_cache_size", 0) == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        made = type(self).__new__(type(self))
        made.__dict__.update(
            self.__dict__, _cache_size=cache_size, _cached_x_y=(None, None)
        )
        return made

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        """The function's value."""
        if not getattr(self, "_cache_size", 0):
            return self._call(x)
        before, after = self._cached_x_y
        if x is before:
            return after
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        """What the function makes y of."""
        if not getattr(self, "_cache_size", 0):
            return self._inverse(y)
        before, after = self._cached_x_y
        if y is after:
            return before
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise self._missing()

    def _inverse(self, y: Any) -> Any:
        raise self._missing()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """By how much volumes grow, as a logarithm."""
        raise self._missing()

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the value of an argument of a shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the argument of a value of a shape."""
        return shape

    def _missing(self) -> MissingRuleError:
        return MissingRuleError(f"{type(self).__name__} does not define it.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """A transform backwards."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(getattr(transform, "_cache_size", 0))
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The function's values."""
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The function's arguments."""
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        """Whether each value has one argument."""
        return bool(self._inv.bijective)

    @property
    def sign(self) -> Any:
        """As the function's."""
        return self._inv.sign

    @property
    def inv(self) -> Any:
        """The function itself."""
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        """The inverse of the function with a cache."""
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x: Any) -> Any:
        """What the function makes x of."""
        return self._inv._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._inv(y)

    _call = __call__
    _inverse = _inv_call

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """By how much volumes grow, as a logarithm."""
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the value of an argument of a shape."""
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the argument of a value of a shape."""
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class _Same(Transform):
    """A function without options of its own: all of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = object.__hash__


class _Growing(_Same):
    """A function of elements that grows."""

    bijective = True
    sign = 1


class ComposeTransform(Transform):
    """Several functions, one after another.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import AffineTransform, ExpTransform
        >>> both = [AffineTransform(1.0, 2.0), ExpTransform()]
        >>> torch.distributions.ComposeTransform(both)(torch.tensor([0.0]))
        tensor([2.7183])
    """

    def __init__(self, parts: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [
            part.with_cache(cache_size) if cache_size else part for part in parts
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The first one's arguments, and as many axes as any of them takes."""
        if not self.parts:
            return constraints.real
        found = self.parts[0].domain
        n = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            n = max(n + part.domain.event_dim - part.codomain.event_dim,
                    part.domain.event_dim)  # fmt: skip
        more = n - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The last one's values, and as many axes as any of them makes."""
        if not self.parts:
            return constraints.real
        found = self.parts[-1].codomain
        n = self.parts[0].domain.event_dim
        for part in self.parts:
            n = max(n + part.codomain.event_dim - part.domain.event_dim,
                    part.codomain.event_dim)  # fmt: skip
        more = n - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    @property
    def bijective(self) -> bool:
        """Whether each value has one argument."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        """The product of the parts'."""
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Any:
        """The inverses, in the other order."""
        return ComposeTransform([part.inv for part in reversed(self.parts)])

    def with_cache(self, cache_size: int = 1) -> Any:
        """The functions, with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Any) -> Any:
        """The last function's value."""
        for part in self.parts:
            x = part(x)
        return x

    _call = __call__

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    _inv_call = _inverse

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum of the parts'."""
        if not self.parts:
            return x * 0
        n, total = self.domain.event_dim, 0
        for i, part in enumerate(self.parts):
            after = part(x) if i + 1 < len(self.parts) else y
            grown = part.log_abs_det_jacobian(x, after)
            total = total + _summed(grown, n - part.domain.event_dim)
            n += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the value of an argument of a shape."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the argument of a value of a shape."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A function whose values are one value along further axes.

    Args:
        base_transform: the function.
        reinterpreted_batch_ndims: how many further axes.
        cache_size: see ``Transform``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import ExpTransform
        >>> both = torch.distributions.IndependentTransform(ExpTransform(), 1)
        >>> x = torch.tensor([1.0, 2.0])
        >>> both.log_abs_det_jacobian(x, x.exp())
        tensor(3.)
    """

    def __init__(
        self, base_transform: Any, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The function's arguments."""
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_transform.domain, n)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The function's values."""
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_transform.codomain, n)

    @property
    def bijective(self) -> bool:
        """Whether each value has one argument."""
        return bool(self.base_transform.bijective)

    @property
    def sign(self) -> Any:
        """As the function's."""
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        if x.dim() < self.domain.event_dim:
            raise OptionError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.dim() < self.codomain.event_dim:
            raise OptionError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The sum along the further axes."""
        grown = self.base_transform.log_abs_det_jacobian(x, y)
        return _summed(grown, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the value of an argument of a shape."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the argument of a value of a shape."""
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        parts = f"{self.base_transform!r}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__}({parts})"


class ReshapeTransform(Transform):
    """Another shape of the same elements.

    Example:
        >>> import lantern.torch as torch
        >>> square = torch.distributions.ReshapeTransform((4,), (2, 2))
        >>> square(torch.tensor([1, 2, 3, 4]))
        tensor([[1, 2],
                [3, 4]])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise OptionError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Any numbers in the first shape."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """Any numbers in the second shape."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Zero: volumes stay."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def _reshaped(self, shape: Any, before: Any, after: Any) -> Any:
        if len(shape) < len(before):
            raise OptionError("Too few dimensions on input")
        cut = len(shape) - len(before)
        if tuple(shape[cut:]) != before:
            raise OptionError(
                f"Shape mismatch: expected {tuple(shape[cut:])} but got {before}"
            )
        return shape[:cut] + after

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the value of an argument of a shape."""
        return self._reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the argument of a value of a shape."""
        return self._reshaped(shape, self.out_shape, self.in_shape)


class AffineTransform(Transform):
    """``loc + scale * x``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.AffineTransform(1.0, 2.0)(torch.tensor([3.0]))
        tensor([7.])
    """

    bijective = True

    def __init__(
        self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        """How many of the last axes make one value."""
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """Any numbers."""
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    codomain = domain

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = (self.loc, other.loc), (self.scale, other.scale)
        return all(
            bool((a == b).all()) if hasattr(a == b, "all") else a == b for a, b in pairs
        )

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        """That of the scale."""
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the scale."""
        scale, _ = broadcast_all(self.scale, x)
        return _summed(scale.abs().log(), self._event_dim)

    def _shape(self, shape: Any) -> Any:
        parts = [getattr(p, "shape", ()) for p in (self.loc, self.scale)]
        return FUNCTIONS["broadcast_shapes"](shape, *parts)

    forward_shape = inverse_shape = _shape


class ExpTransform(_Growing):
    """``exp(x)``.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([0.0, 1.0])
        >>> torch.distributions.ExpTransform().log_abs_det_jacobian(x, x.exp())
        tensor([0., 1.])
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """x itself."""
        return x


class PowerTransform(Transform):
    """``x ** exponent`` of positive numbers.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.PowerTransform(2.0).inv(torch.tensor([9.0]))
        tensor([3.])
    """

    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PowerTransform):
            return False
        return bool((self.exponent == other.exponent).all())

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        """That of the exponent."""
        return self.exponent.sign()

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative."""
        return (self.exponent * y / x).abs().log()

    def _shape(self, shape: Any) -> Any:
        return FUNCTIONS["broadcast_shapes"](shape, self.exponent.shape)

    forward_shape = inverse_shape = _shape


class SigmoidTransform(_Growing):
    """``1 / (1 + exp(-x))``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.SigmoidTransform()(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return _inside(x.sigmoid())

    def _inverse(self, y: Any) -> Any:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative."""
        return -softplus(-x) - softplus(x)


def _clipped_sigmoid(x: Any) -> Any:
    """Chances that are neither 0 nor 1, as libraries ask for them."""
    return _inside(x.sigmoid())


def _inside(y: Any) -> Any:
    """Chances that are neither 0 nor 1."""
    double = y.element_size() == 8
    tiny, eps = (
        (2.2250738585072014e-308, 2.3e-16) if double else (1.1754944e-38, 1.2e-7)
    )
    return y.clamp(tiny, 1 - eps)


class SoftplusTransform(_Growing):
    """``log(1 + exp(x))``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.SoftplusTransform()(torch.tensor([0.0]))
        tensor([0.6931])
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative."""
        return -softplus(-x)


class TanhTransform(_Growing):
    """``tanh(x)``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.TanhTransform().inv(torch.tensor([0.5]))
        tensor([0.5493])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the derivative."""
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_Same):
    """``abs(x)``, which forgets the sign: undone, it is positive.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.AbsTransform()(torch.tensor([-2.0]))
        tensor([2.])
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class SoftmaxTransform(_Same):
    """Weights that sum to 1, along the last axis: the exponentials' shares.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.SoftmaxTransform()(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        """The same shape."""
        if len(shape) < 1:
            raise OptionError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Same):
    """Weights that sum to 1: what is broken off a stick, one piece after another.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.StickBreakingTransform()(torch.tensor([0.0, 0.0]))
        tensor([0.3333, 0.3333, 0.3333])
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _left(self, x: Any) -> Any:
        """How many pieces are to come, for each one."""
        ones = x.new_ones((x.shape[-1],))
        return x.shape[-1] + 1 - ones.cumsum(-1)

    def _call(self, x: Any) -> Any:
        z = _inside((x - self._left(x).log()).sigmoid())
        rest = (1 - z).cumprod(-1)
        return pad(z, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        most = y[..., :-1]
        rest = (1 - most.cumsum(-1)).clamp(min=_inside(y.new_zeros(())).item())
        return most.log() - rest.log() + self._left(most).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the determinant."""
        x = x - self._left(x).log()
        return (-x - softplus(-x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """One more."""
        if len(shape) < 1:
            raise OptionError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        """One less."""
        if len(shape) < 1:
            raise OptionError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(_Same):
    """Any square matrix as a Cholesky factor: the diagonal's exponential.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.LowerCholeskyTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(_Same):
    """Any square matrix as a positive definite one.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(FUNCTIONS["cholesky"](y))


def _strictly_lower(n: int) -> Any:
    """The positions below the diagonal, row by row."""
    from lantern.torch.functions.creation import tril_indices

    return tuple(tril_indices(n, n, -1))


class CorrCholeskyTransform(_Same):
    """Numbers between -∞ and ∞ as the Cholesky factor of a correlation matrix.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.CorrCholeskyTransform()(torch.tensor([0.0]))
        tensor([[1., 0.],
                [0., 1.]])
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x: Any) -> Any:
        eps = 1.2e-7 if x.element_size() == 4 else 2.3e-16
        x = x.tanh().clamp(-1 + eps, 1 - eps)
        n = self.forward_shape(x.shape)[-1]
        r = x.new_zeros((*x.shape[:-1], n, n))
        where = _strictly_lower(n)
        r[(..., *where)] = x
        rest = (1 - r**2).sqrt().cumprod(-1)
        r = r + FUNCTIONS["diag_embed"](r.new_ones((n,)))
        return r * pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        rest = 1 - (y * y).cumsum(-1)
        rest = pad(rest[..., :-1], [1, 0], value=1)
        where = _strictly_lower(y.shape[-1])
        t = y[(..., *where)] / rest[(..., *where)].sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the determinant."""
        # Of each row, what is left before each of its entries but the first.
        rest = 1 - (y * y).cumsum(-1)
        where = _strictly_lower(y.shape[-1] - 1)
        terms = 0.5 * rest[..., 1:, :-1][(..., *where)].log().sum(-1)
        tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return terms + tanh

    def forward_shape(self, shape: Any) -> Any:
        """A square matrix."""
        if len(shape) < 1:
            raise OptionError("Too few dimensions on input")
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise OptionError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        """The entries below the diagonal."""
        if len(shape) < 2:
            raise OptionError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise OptionError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class _Split(Transform):
    """Several functions, each of a part along an axis."""

    transforms: list[Any]
    dim: int

    @property
    def bijective(self) -> bool:
        """Whether each value has one argument."""
        return all(t.bijective for t in self.transforms)


class CatTransform(_Split):
    """Several functions, each of a piece along an axis.

    Args:
        tseq: the functions.
        dim: the axis.
        lengths: of the pieces; 1 by default.
        cache_size: see ``Transform``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import ExpTransform, TanhTransform
        >>> both = torch.distributions.CatTransform([ExpTransform(), TanhTransform()])
        >>> both(torch.tensor([0.0, 0.0]))
        tensor([1., 0.])
    """

    def __init__(
        self, tseq: Any, dim: int = 0, lengths: Any = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq]
        self.lengths = list(lengths) if lengths is not None else [1] * len(tseq)
        self.dim = dim

    @property
    def event_dim(self) -> int:
        """As many as the function that takes most."""
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The length of all pieces."""
        return sum(self.lengths)

    def _pieces(self, x: Any) -> Any:
        if x.size(self.dim) != self.length:
            raise OptionError(f"CatTransform: {self.length} along axis {self.dim}.")
        return x.split(self.lengths, self.dim)

    def _call(self, x: Any) -> Any:
        pairs = zip(self.transforms, self._pieces(x), strict=True)
        return FUNCTIONS["cat"]([t(p) for t, p in pairs], self.dim)

    def _inverse(self, y: Any) -> Any:
        pairs = zip(self.transforms, self._pieces(y), strict=True)
        return FUNCTIONS["cat"]([t.inv(p) for t, p in pairs], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Those of the pieces, joined or added."""
        found = []
        rows = zip(self.transforms, self._pieces(x), self._pieces(y), strict=True)
        for t, before, after in rows:
            grown = t.log_abs_det_jacobian(before, after)
            found.append(_summed(grown, self.event_dim - t.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return FUNCTIONS["cat"](found, dim) if dim < 0 else sum(found)

    @constraints.dependent_property
    def domain(self) -> Any:
        """The functions' arguments."""
        parts = [t.domain for t in self.transforms]
        return constraints.cat(parts, self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The functions' values."""
        parts = [t.codomain for t in self.transforms]
        return constraints.cat(parts, self.dim, self.lengths)


class StackTransform(_Split):
    """Several functions, each of one position along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import ExpTransform, TanhTransform
        >>> both = torch.distributions.StackTransform([ExpTransform(), TanhTransform()])
        >>> both(torch.tensor([0.0, 0.0]))
        tensor([1., 0.])
    """

    def __init__(
        self, transforms: Sequence[Any], dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in transforms]
        self.dim = dim

    def _pairs(self, x: Any) -> Any:
        if x.size(self.dim) != len(self.transforms):
            raise OptionError(f"StackTransform: {len(self.transforms)} along the axis.")
        return zip(self.transforms, x.unbind(self.dim), strict=True)

    def _call(self, x: Any) -> Any:
        return FUNCTIONS["stack"]([t(p) for t, p in self._pairs(x)], self.dim)

    def _inverse(self, y: Any) -> Any:
        return FUNCTIONS["stack"]([t.inv(p) for t, p in self._pairs(y)], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Those of the parts, stacked."""
        rows = zip(self._pairs(x), y.unbind(self.dim), strict=True)
        found = [t.log_abs_det_jacobian(a, b) for (t, a), b in rows]
        return FUNCTIONS["stack"](found, self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        """The functions' arguments."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The functions' values."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """The probability of no more than x, of a distribution.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Normal
        >>> f = torch.distributions.CumulativeDistributionTransform(Normal(0.0, 1.0))
        >>> f(torch.tensor([0.0]))
        tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """What can be drawn."""
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """The logarithm of the density."""
        return self.distribution.log_prob(x)
