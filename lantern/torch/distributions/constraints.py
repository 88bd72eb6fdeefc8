"""Constraints: the values that a parameter or a draw can have."""

from collections.abc import Callable, Sequence
from typing import Any

from lantern.errors import MissingRuleError, OptionError
from lantern.torch.linalg import cholesky_ex, eigvalsh
from lantern.torch.methods.table import FUNCTIONS

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: whether the values can be counted.
        event_dim: how many of the last axes make one value.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.constraints.positive.check(torch.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        raise MissingRuleError(f"{type(self).__name__} does not say what is in it.")

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}()"


class _Dependent(Constraint):
    """What depends on other parameters.

    Example:
        >>> from lantern.torch.distributions import constraints
        >>> constraints.dependent(is_discrete=True, event_dim=0).is_discrete
        True
    """

    def __init__(self, *, is_discrete: Any = None, event_dim: Any = None) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> Any:
        """Whether the values can be counted, where that is known."""
        return self._known("is_discrete")

    @property
    def event_dim(self) -> Any:
        """How many axes make one value, where that is known."""
        return self._known("event_dim")

    def _known(self, what: str) -> Any:
        found = getattr(self, f"_{what}")
        if found is None:
            raise MissingRuleError(
                f".{what} cannot be determined statically: it depends on parameters."
            )
        return found

    def __call__(self, *, is_discrete: Any = None, event_dim: Any = None) -> Any:
        """The constraint, of which more is known."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is None else is_discrete,
            event_dim=self._event_dim if event_dim is None else event_dim,
        )

    def check(self, x: Any) -> Any:
        """An error: it takes the other parameters."""
        raise OptionError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other parameters.

    Example:
        >>> from lantern.torch.distributions import constraints
        >>> constraints.is_dependent(constraints.positive)
        False
    """
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """A property of an object, and of its class a constraint that depends on it.

    Example:
        >>> from lantern.torch.distributions import Uniform, constraints
        >>> Uniform(0.0, 2.0).support
        Interval(lower_bound=tensor(0.), upper_bound=tensor(2.))
        >>> constraints.is_dependent(Uniform.support)
        True
    """

    def __init__(
        self, fn: Any = None, *, is_discrete: Any = None, event_dim: Any = None
    ) -> None:
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> Any:  # type: ignore[override]
        """A decorator that knows the options."""
        known = {"is_discrete": self._is_discrete, "event_dim": self._event_dim}
        return dependent_property(fn, **known)


def _where(
    name: str, holds: Callable[[Any], Any], event_dim: int = 0, whole: bool = False
) -> Any:
    """A constraint of the values of which a function says so, of a class of its own."""

    def check(self: Any, value: Any) -> Any:
        """Where values are in the set."""
        return holds(value)

    own = {"check": check, "event_dim": event_dim, "is_discrete": whole}
    kind = type(f"_{name}", (Constraint,), own | {"__module__": __name__})
    return globals().setdefault(kind.__name__, kind)()  # where files find it


def _whole(x: Any) -> Any:
    return (x % 1) == 0 if x.is_floating_point() else x == x  # of inf it is nan


class _Bounded(Constraint):
    """Numbers beyond a bound, or between two."""

    bounds: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)}" for name in self.bounds)
        return f"{type(self).__name__.lstrip('_')}({', '.join(shown)})"


class _Below(_Bounded):
    bounds = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Above(_Bounded):
    bounds = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Between(_Bounded):
    bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    """Numbers above a bound.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import greater_than
        >>> greater_than(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Numbers that are no less than a bound.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import greater_than_eq
        >>> greater_than_eq(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([True, True])
    """

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        return self.lower_bound <= value


class _LessThan(_Below):
    """Numbers below a bound.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import less_than
        >>> less_than(1.0).check(torch.tensor([1.0, 0.0]))
        tensor([False,  True])
    """

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers between two bounds, or one of them.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import interval
        >>> interval(0.0, 1.0).check(torch.tensor([1.0, 2.0]))
        tensor([ True, False])
    """

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers between two bounds, or the lower one.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import half_open_interval
        >>> half_open_interval(0.0, 1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """Whole numbers between two bounds, or one of them.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import integer_interval
        >>> integer_interval(0, 3).check(torch.tensor([1.0, 1.5]))
        tensor([ True, False])
    """

    is_discrete = True

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        inside = (self.lower_bound <= value) & (value <= self.upper_bound)
        return _whole(value) & inside


class _IntegerGreaterThan(_Above):
    """Whole numbers that are no less than a bound."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        return _whole(value) & (value >= self.lower_bound)


class _Multinomial(Constraint):
    """How often each of several classes came.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import multinomial
        >>> multinomial(3).check(torch.tensor([[1.0, 2.0], [2.0, 2.0]]))
        tensor([ True, False])
    """

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Any) -> Any:
        """Where values are in the set."""
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _IndependentConstraint(Constraint):
    """Values whose parts along the last axes all are in a set.

    Args:
        base_constraint: of the parts.
        reinterpreted_batch_ndims: how many of the last axes.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import constraints
        >>> pairs = constraints.independent(constraints.positive, 1)
        >>> pairs.check(torch.tensor([[1.0, 2.0], [1.0, -2.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> Any:
        """Whether the values can be counted."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        """How many of the last axes make one value."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        found = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if found.dim() < n:
            least = self.base_constraint.event_dim + n
            raise OptionError(f"Expected value.dim() >= {least} but got {value.dim()}")
        return found.reshape((*found.shape[: found.dim() - n], -1)).all(-1)

    def __repr__(self) -> str:
        parts = f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__[1:]}({parts})"


class _Parts(Constraint):
    """Several sets along an axis."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> Any:
        """Whether some of the values can be counted."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> Any:
        """How many of the last axes make one value."""
        return max(c.event_dim for c in self.cseq)


class _Cat(_Parts):
    """Values that several sets make when they are joined along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import constraints
        >>> both = constraints.cat([constraints.positive, constraints.real], 0, [1, 1])
        >>> both.check(torch.tensor([-1.0, -1.0]))
        tensor([False,  True])
    """

    def __init__(
        self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.cseq)

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        parts = value.split(self.lengths, self.dim)
        found = [c.check(v) for c, v in zip(self.cseq, parts, strict=True)]
        return FUNCTIONS["cat"](found, self.dim)


class _Stack(_Parts):
    """Values that several sets make when they are stacked along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import constraints
        >>> both = constraints.stack([constraints.positive, constraints.real])
        >>> both.check(torch.tensor([-1.0, -1.0]))
        tensor([False,  True])
    """

    @property
    def event_dim(self) -> Any:
        """How many of the last axes make one value."""
        n = super().event_dim
        return n + 1 if self.dim + n < 0 else n

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        parts = value.unbind(self.dim)
        found = [c.check(v) for c, v in zip(self.cseq, parts, strict=True)]
        return FUNCTIONS["stack"](found, self.dim)


def _near(x: Any, y: Any) -> Any:
    return ((x - y).abs() <= 1e-6 + 1e-5 * y.abs()).flatten(-2).all(-1)


def _factor(x: Any) -> Any:
    lower = (x.tril() == x).flatten(-2).all(-1)
    return lower & (x.diagonal(0, -2, -1) > 0).all(-1)


def _unit_rows(x: Any) -> Any:
    off = (x.detach().norm(dim=-1) - 1).abs()
    small = 10 * x.size(-1) * (1.2e-7 if x.element_size() == 4 else 2.3e-16)
    return _factor(x) & (off <= small).all(-1)


greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval
multinomial = _Multinomial
independent = _IndependentConstraint
cat = _Cat
stack = _Stack

dependent = _Dependent()
real = _where("Real", lambda x: x == x)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = _where("Boolean", lambda x: (x == 0) | (x == 1), whole=True)
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
simplex = _where(
    "Simplex", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1
)
one_hot = _where(
    "OneHot",
    lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1),
    1,
    whole=True,
)
lower_triangular = _where(
    "LowerTriangular", lambda x: (x.tril() == x).flatten(-2).all(-1), 2
)
lower_cholesky = _where("LowerCholesky", _factor, 2)
corr_cholesky = _where("CorrCholesky", _unit_rows, 2)
square = _where(
    "Square",
    lambda x: x.new_full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=bool),
    2,
)
symmetric = _where("Symmetric", lambda x: _near(x, x.mT), 2)
positive_semidefinite = _where(
    "PositiveSemidefinite",
    lambda x: _near(x, x.mT) & (eigvalsh(x) >= 0).all(-1),
    2,
)
positive_definite = _where(
    "PositiveDefinite",
    lambda x: _near(x, x.mT) & (cholesky_ex(x).info == 0),
    2,
)
