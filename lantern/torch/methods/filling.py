"""Random numbers that are written to a tensor: the methods with an underscore."""

from typing import Any

from lantern.errors import EagerError
from lantern.torch.methods.sampling import bernoulli, between, bounds, multinomial, rng
from lantern.torch.tables import documented, parameters, takes
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import plain_number
from lantern.torch.tensor.devices import as_array, on_host
from lantern.torch.tensor.error_messages import refuse_type
from lantern.torch.tensor.tensor import Tensor, torch_face


def _writer(name: str, draw: Any, doc: str, kinds: str = dtypes.FLOATING) -> Any:
    """A method that fills a tensor, of some kinds of types, with draws."""

    def method(
        self: Tensor, *args: Any, generator: Any = None, **options: Any
    ) -> Tensor:
        from lantern.torch.methods.inplace import copy_

        array = base(self)
        if array.dtype.kind not in kinds:
            raise refuse_type(name, self)
        return copy_(self, torch_face(draw(rng(generator), array, *args, **options)))

    method.__name__, method.__doc__ = name, doc
    shown = parameters(draw).removeprefix("random, array, ").removesuffix(", **names")
    return takes(method, f"self, {shown}, *, generator=None")


_ALL: Any = object()


def _integers(
    random: Any, array: Any, low: Any = None, high: Any = _ALL, **names: Any
) -> Any:
    """Whole numbers up to one; from one up to another; or all that a type has."""
    kind = array.dtype
    low, high = names.get("from", low), names.get("to", high)
    if high is _ALL:
        low, high = 0, low
    low = 0 if low is None else low
    if high is not None:
        return random.integers(*between(low, high, kind), array.shape)
    most = 2 ** dtypes.digits(kind) if kind.kind in dtypes.FLOATING else bounds(kind)[1]
    return random.integers(low, most, array.shape, endpoint=True)


def _chances(random: Any, array: Any, p: Any = 0.5) -> Any:
    chance = as_array(base(plain_number("bernoulli_: p", p)))
    if isinstance(p, Tensor) and chance.dtype.kind not in dtypes.FLOATING:
        raise refuse_type("bernoulli_", p)
    every = of_all_examples(chance)
    if not ((every >= 0) & (every <= 1)).all():
        raise EagerError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")
    return random.random(array.shape) < on_host(base(p))


def _uniform(
    random: Any, array: Any, low: Any = 0.0, high: Any = 1.0, **names: Any
) -> Any:
    a, b = names.get("from", low), names.get("to", high)
    if a > b:
        raise EagerError(
            "uniform_ expects to return a [from, to) range, but found "
            f"from={a} > to={b}"
        )
    return (
        random.random(array.shape, array.dtype if array.dtype == dtypes.F32 else float)
        * (b - a)
        + a
    )


def _normal(random: Any, array: Any, mean: Any = 0.0, std: Any = 1.0) -> Any:
    if std < 0:
        raise EagerError(f"normal_ expects std >= 0.0, but found std {std}")
    if array.dtype.kind == "c":  # of variance std² in both parts together
        drawn = (random.standard_normal(array.shape) for _ in range(2))
        real, imaginary = (x * (std * 0.5**0.5) + mean for x in drawn)
        return real + 1j * imaginary
    kind = array.dtype if array.dtype == dtypes.F32 else float
    return random.standard_normal(array.shape, kind) * std + mean


def _positive(name: str, what: str, value: float) -> None:
    if not value > 0:
        raise EagerError(f"{name} expects {what} > 0.0, but found {what}={value}")


def _exponential(random: Any, array: Any, lambd: Any = 1.0) -> Any:
    _positive("exponential_", "lambda", lambd)
    return (1 / lambd) * random.standard_exponential(array.shape)


def _cauchy(random: Any, array: Any, median: Any = 0.0, sigma: Any = 1.0) -> Any:
    _positive("cauchy_", "sigma", sigma)
    return median + sigma * random.standard_cauchy(array.shape)


def _log_normal(random: Any, array: Any, mean: Any = 1.0, std: Any = 2.0) -> Any:
    _positive("log_normal_", "std", std)
    return random.lognormal(mean, std, array.shape)


def _geometric(random: Any, array: Any, p: Any) -> Any:
    if not 0 < p < 1:
        raise EagerError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return random.geometric(p, array.shape)


METHODS = {
    "bernoulli": bernoulli,
    "multinomial": multinomial,
    "cauchy_": documented(
        _writer("cauchy_", _cauchy, "Fill with Cauchy draws."),
        """
        >>> torch.zeros(2, 3).cauchy_().shape
        torch.Size([2, 3])
        """,
    ),
    "geometric_": documented(
        _writer("geometric_", _geometric, "Fill with geometric draws.", "fViu"),
        """
        >>> (torch.zeros(3).geometric_(0.5) >= 1).all()
        tensor(True)
        """,
    ),
    "log_normal_": documented(
        _writer("log_normal_", _log_normal, "Fill with log-normal draws."),
        """
        >>> (torch.zeros(3).log_normal_() > 0).all()
        tensor(True)
        """,
    ),
    "bernoulli_": documented(
        _writer("bernoulli_", _chances, "Fill with 1 or 0, by chance.", "fcViub"),
        """
        >>> torch.zeros(3).bernoulli_(1.0)
        tensor([1., 1., 1.])
        """,
    ),
    "exponential_": documented(
        _writer("exponential_", _exponential, "Fill with exponential draws."),
        """
        >>> (torch.zeros(3).exponential_() > 0).all()
        tensor(True)
        """,
    ),
    "normal_": documented(
        _writer("normal_", _normal, "Fill with normal draws.", dtypes.INEXACT),
        """
        >>> torch.zeros(3).normal_(mean=5.0, std=0.0)
        tensor([5., 5., 5.])
        """,
    ),
    "random_": documented(
        takes(
            _writer("random_", _integers, "Fill with random integers.", "fViub"),
            "self, low=None, high=None, *, generator=None",
        ),
        """
        >>> (torch.zeros(3).random_(5, 8) >= 5).all()
        tensor(True)
        """,
    ),
    "uniform_": documented(
        _writer("uniform_", _uniform, "Fill with uniform draws."),
        """
        >>> (torch.zeros(3).uniform_(5.0, 6.0) >= 5.0).all()
        tensor(True)
        """,
    ),
}
