"""Which function makes any numbers values that a constraint allows."""

from collections.abc import Callable
from typing import Any

from lantern.errors import ArgumentError, MissingRuleError
from lantern.torch.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table: of a kind of constraint, what makes its function.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import constraints, transform_to
        >>> transform_to(constraints.positive)(torch.tensor([0.0]))
        tensor([1.])
    """

    def __init__(self) -> None:
        self._registry: dict[Any, Any] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Say what makes the function of a constraint, or of a class of them.

        Args:
            constraint: a constraint or a class.
            factory: called with a constraint; without it, a decorator.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        key = constraint
        if isinstance(constraint, constraints.Constraint):
            key = type(constraint)
        if not (isinstance(key, type) and issubclass(key, constraints.Constraint)):
            raise ArgumentError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[key] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The function whose values a constraint allows."""
        kind = type(constraint)
        if kind in self._registry:
            return self._registry[kind](constraint)
        raise MissingRuleError(
            f"Cannot transform {type(constraint).__name__} constraints"
        )


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _number(x: Any) -> bool:
    return isinstance(x, int | float)


def _above(constraint: Any) -> Any:
    parts = [transforms.ExpTransform(), transforms.AffineTransform(
        constraint.lower_bound, 1)]  # fmt: skip
    return transforms.ComposeTransform(parts)


def _below(constraint: Any) -> Any:
    parts = [transforms.ExpTransform(), transforms.AffineTransform(
        constraint.upper_bound, -1)]  # fmt: skip
    return transforms.ComposeTransform(parts)


def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if _number(low) and _number(high) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    stretch = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), stretch])


def _both(constraint: Any, factory: Callable[[Any], Any]) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _positive(constraint: Any) -> Any:
    low = constraint.lower_bound
    return (
        transforms.ExpTransform() if _number(low) and low == 0 else _above(constraint)
    )


_both(constraints.real, lambda c: transforms.identity_transform)
_both(constraints.positive, _positive)
_both(constraints.greater_than_eq, _positive)
_both(constraints.less_than, _below)
_both(constraints.interval, _between)
_both(constraints.half_open_interval, _between)
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(
    constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform()
)
transform_to.register(
    constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform()
)
transform_to.register(
    constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform()
)
_both(constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform())


def _of_parts(registry: ConstraintRegistry) -> None:
    """What is made of the functions of parts."""
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
    )
    registry.register(
        constraints.cat,
        lambda c: transforms.CatTransform(
            [registry(part) for part in c.cseq], c.dim, c.lengths
        ),
    )
    registry.register(
        constraints.stack,
        lambda c: transforms.StackTransform([registry(p) for p in c.cseq], c.dim),
    )


_of_parts(biject_to)
_of_parts(transform_to)
