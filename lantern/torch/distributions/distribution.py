"""The base of distributions: shapes, checks of parameters and values, draws."""

from typing import Any, ClassVar

from lantern.eager.grad_mode import no_grad
from lantern.errors import MissingRuleError, OptionError
from lantern.torch.autograd import grad
from lantern.torch.distributions import constraints
from lantern.torch.distributions.derived import lazy_property
from lantern.torch.functions.creation import tensor
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.tensor.dtypes import Size, get_default_dtype
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Distribution", "ExponentialFamily", "Independent", "broadcast_all"]


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape.

    Example:
        >>> import lantern.torch as torch
        >>> x, y = torch.distributions.broadcast_all(torch.zeros(2), 1.0)
        >>> y
        tensor([1., 1.])
    """
    given = [v for v in values if isinstance(v, Tensor)]
    like: dict[str, Any] = {"dtype": get_default_dtype()}
    if given:
        like = {"dtype": given[0].dtype, "device": given[0].device}
    tensors = [v if isinstance(v, Tensor) else tensor(v, **like) for v in values]
    return tuple(FUNCTIONS["broadcast_tensors"](*tensors))


class Distribution:
    """A distribution, or a batch of them: one for each element of its parameters.

    Args:
        batch_shape: the shape of the batch.
        event_shape: the shape of one draw.
        validate_args: whether parameters and values are checked.

    Raises:
        ValueError: for parameters or values that cannot be.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> x.batch_shape, x.event_shape, x.sample((5,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([5, 3]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: ClassVar[dict[str, Any]] = {}
    support: Any = constraints.dependent
    _validate_args = True

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: Any = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()  # of a class beside this one: a module's

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            follows = isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or (
                follows and name not in self.__dict__
            ):
                continue
            value = getattr(self, name, None)
            if isinstance(value, Tensor) and not constraint.check(value.detach()).all():
                raise OptionError(
                    f"Expected parameter {name} (Tensor of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the "
                    f"constraint {constraint}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether parameters and values are checked from now on."""
        if value not in (True, False):
            raise OptionError("set_default_validate_args: True or False, please.")
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw of one of them."""
        return self._event_shape

    @property
    def mean(self) -> Any:
        """The expected value."""
        raise self._absent("mean")

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise self._absent("mode")

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        raise self._absent("variance")

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws without derivative, in a shape before the distribution's own."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        raise self._absent("rsample")

    def sample_n(self, n: int) -> Any:
        """As ``sample((n,))``."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at a value."""
        raise self._absent("log_prob")

    def cdf(self, value: Any) -> Any:
        """The probability of no more than a value."""
        raise self._absent("cdf")

    def icdf(self, value: Any) -> Any:
        """The value up to which there is a probability."""
        raise self._absent("icdf")

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        raise self._absent("entropy")

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values that can be drawn, along a new first axis."""
        raise self._absent("enumerate_support")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with its parameters broadcast to a batch.

        Args:
            batch_shape: the shape of the batch.
            _instance: for subclasses with a constructor of their own, what becomes it.
        """
        new = self._get_checked_instance(_ours(type(self)), _instance)
        options = {
            name: self.__dict__[name].expand(
                *batch_shape, *self.__dict__[name].shape[len(self.batch_shape) :]
            )
            for name in self._parameters()
        }
        made = self._expanded(batch_shape, options)
        # What a subclass has besides stays as it is.
        known = {} if _instance is not None else self.__dict__
        new.__dict__.update(known | made.__dict__)
        new._validate_args = self._validate_args
        return new

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        """The distribution of parameters that are broadcast already."""
        return _ours(type(self))(**options, validate_args=False)

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:
            raise MissingRuleError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a "
                f"custom __init__ method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _parameters(self) -> list[str]:
        """The parameters that were given, of those that stand for one another."""
        return [name for name in self.arg_constraints if name in self.__dict__]

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _checked(self, value: Any) -> Any:
        """A value that can be, as a tensor."""
        if not isinstance(value, Tensor):
            raise OptionError("The value argument to log_prob must be a Tensor")
        if not self._validate_args:
            return value
        self._check_shape(value)
        try:
            support = self.support
        except MissingRuleError:
            return value
        if constraints.is_dependent(support):
            return value
        if not support.check(value.detach()).all():
            raise OptionError(
                f"Expected value argument (Tensor of shape {tuple(value.shape)}) to be "
                f"within the support ({support}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )
        return value

    _validate_sample = _checked

    def _check_shape(self, value: Any) -> None:
        """A value must have the shape of a draw, and of the batch in front of it."""
        shape, n = tuple(value.shape), len(self.event_shape)
        if shape[len(shape) - n :] != tuple(self.event_shape):
            raise OptionError(
                f"The right-most size of value must match event_shape: {shape} vs "
                f"{tuple(self.event_shape)}."
            )
        ours = (*self.batch_shape, *self.event_shape)
        for i, j in zip(shape[::-1], ours[::-1], strict=False):
            if i != 1 and j != 1 and i != j:
                raise OptionError(
                    f"Value is not broadcastable with batch_shape+event_shape: "
                    f"{shape} vs {ours}."
                )

    def _absent(self, what: str) -> MissingRuleError:
        return MissingRuleError(f"{type(self).__name__}.{what} is not implemented.")

    def __repr__(self) -> str:
        shown = (
            f"{n}: {x if x.numel() == 1 else x.size()}"
            for n, x in ((n, self.__dict__[n]) for n in self._parameters())
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def _ours(kind: type) -> Any:
    """Of a class, the one of this package that it is made from."""
    package = __name__.rpartition(".")[0]
    return next(c for c in kind.__mro__ if c.__module__.startswith(package))


class ExponentialFamily(Distribution):
    """Distributions whose densities are exponentials of linear functions.

    A subclass says what its natural parameters are and the logarithm of its normaliser;
    its entropy follows, by a derivative.

    Example:
        >>> import lantern.torch as torch
        >>> class Rate(torch.distributions.ExponentialFamily):
        ...     def __init__(self, rate):
        ...         self.rate = rate
        ...         super().__init__(rate.shape)
        ...
        ...     @property
        ...     def _natural_params(self):
        ...         return (-self.rate,)
        ...
        ...     def _log_normalizer(self, x):
        ...         return -torch.log(-x)
        >>> Rate(torch.tensor([2.0])).entropy()
        tensor([0.3069])
    """

    _mean_carrier_measure: Any = 0.0

    @property
    def _natural_params(self) -> Any:
        raise self._absent("_natural_params")

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise self._absent("_log_normalizer")

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normaliser = self._log_normalizer(*natural)
        slopes = grad(normaliser.sum(), natural, create_graph=True)
        found = normaliser - self._mean_carrier_measure
        for parameter, slope in zip(natural, slopes, strict=True):
            terms = (parameter * slope).reshape((*self.batch_shape, -1))
            found = found - terms.sum(-1)
        return found.detach()


class Independent(Distribution):
    """A distribution whose last batch axes are axes of one draw.

    Args:
        base_distribution: a distribution with a batch.
        reinterpreted_batch_ndims: how many of the last axes.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributions import Independent
        >>> x = Independent(torch.distributions.Normal(torch.zeros(2), 1.0), 1)
        >>> x.event_shape, x.log_prob(torch.zeros(2))
        (torch.Size([2]), tensor(-1.8379))
    """

    def __init__(
        self,
        base_distribution: Any,
        reinterpreted_batch_ndims: int,
        validate_args: Any = None,
    ) -> None:
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = n = reinterpreted_batch_ndims
        shape = base_distribution.batch_shape
        if n > len(shape):
            raise OptionError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution."
                f"batch_shape), actual {n} vs {len(shape)}"
            )
        cut = len(shape) - n
        event = (*shape[cut:], *base_distribution.event_shape)
        super().__init__(shape[:cut], event, validate_args)

    @property
    def has_rsample(self) -> bool:
        """Whether draws have a derivative."""
        return bool(self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:
        """Whether all draws can be listed."""
        n = self.reinterpreted_batch_ndims
        return n == 0 and bool(self.base_dist.has_enumerate_support)

    @constraints.dependent_property
    def support(self) -> Any:
        """As the distribution's inside, for all axes of a draw."""
        n = self.reinterpreted_batch_ndims
        inner = self.base_dist.support
        return constraints.independent(inner, n) if n else inner

    @property
    def mean(self) -> Any:
        """The expected value."""
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        """The most likely value."""
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        """The expected square of the distance from the mean."""
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws without derivative."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        return self.base_dist.rsample(sample_shape)

    def _summed(self, x: Any) -> Any:
        n = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-n, 0))) if n else x

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density of a whole draw."""
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        return self._summed(self.base_dist.entropy())

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with its parameters broadcast to a batch."""
        new = self._get_checked_instance(Independent, _instance)
        n = self.reinterpreted_batch_ndims
        new.base_dist = self.base_dist.expand((*batch_shape, *self.event_shape[:n]))
        new.reinterpreted_batch_ndims = n
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values that can be drawn, along a new first axis."""
        if self.reinterpreted_batch_ndims > 0:
            raise MissingRuleError(
                "Enumeration over cartesian product is not implemented"
            )
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
