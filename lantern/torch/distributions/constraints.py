"""Constraints: the values that a parameter or a draw can have."""

from collections.abc import Callable
from typing import Any

from lantern.torch.linalg import eigvalsh

__all__ = ["Constraint"]


class Constraint:
    """A set of values.

    Args:
        text: how it prints.
        holds: for a tensor, where its elements are in the set.
        event_dim: how many of the last axes make one value.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.constraints.positive.check(torch.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    def __init__(self, text: str, holds: Callable[[Any], Any], event_dim: int = 0):
        self.text, self.holds, self.event_dim = text, holds, event_dim

    def check(self, value: Any) -> Any:
        """Where values are in the set."""
        return self.holds(value)

    def __repr__(self) -> str:
        return self.text


def _whole(x: Any) -> Any:
    return (x % 1) == 0 if x.is_floating_point() else x == x  # of inf it is nan


def greater_than(lower_bound: Any) -> Constraint:
    """Numbers above a bound.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import greater_than
        >>> greater_than(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([False,  True])
    """
    return Constraint(
        f"GreaterThan(lower_bound={lower_bound})", lambda x: x > lower_bound
    )


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Numbers that are no less than a bound.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import greater_than_eq
        >>> greater_than_eq(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([True, True])
    """
    return Constraint(
        f"GreaterThanEq(lower_bound={lower_bound})", lambda x: x >= lower_bound
    )


def less_than(upper_bound: Any) -> Constraint:
    """Numbers below a bound.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import less_than
        >>> less_than(1.0).check(torch.tensor([1.0, 0.0]))
        tensor([False,  True])
    """
    return Constraint(f"LessThan(upper_bound={upper_bound})", lambda x: x < upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers between two bounds, or one of them.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import interval
        >>> interval(0.0, 1.0).check(torch.tensor([1.0, 2.0]))
        tensor([ True, False])
    """
    return Constraint(
        f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x >= lower_bound) & (x <= upper_bound),
    )


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Whole numbers between two bounds, or one of them.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import integer_interval
        >>> integer_interval(0, 3).check(torch.tensor([1.0, 1.5]))
        tensor([ True, False])
    """
    return Constraint(
        f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: _whole(x) & (x >= lower_bound) & (x <= upper_bound),
    )


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers between two bounds, or the lower one.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions.constraints import half_open_interval
        >>> half_open_interval(0.0, 1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """
    return Constraint(
        f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x >= lower_bound) & (x < upper_bound),
    )


real = Constraint("Real()", lambda x: x == x)
dependent = Constraint("Dependent()", lambda x: x == x)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1))
nonnegative_integer = Constraint(
    "IntegerGreaterThan(lower_bound=0)", lambda x: _whole(x) & (x >= 0)
)
positive_integer = Constraint(
    "IntegerGreaterThan(lower_bound=1)", lambda x: _whole(x) & (x >= 1)
)
simplex = Constraint(
    "Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1
)
one_hot = Constraint(
    "OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1
)
real_vector = Constraint(
    "IndependentConstraint(Real(), 1)", lambda x: (x == x).all(-1), 1
)
lower_cholesky = Constraint(
    "LowerCholesky()",
    lambda x: (x.tril() == x).flatten(-2).all(-1) & (x.diagonal(0, -2, -1) > 0).all(-1),
    2,
)
positive_definite = Constraint(
    "PositiveDefinite()",
    lambda x: ((x - x.mT).abs() < 1e-6).flatten(-2).all(-1) & (eigvalsh(x) > 0).all(-1),
    2,
)
