"""Random numbers: from a generator of the program's, or of one's own.

Seeds give the same numbers run after run, and not PyTorch's.
"""

from functools import cache
from typing import Any

import numpy as np

from lantern.core.value import base as value_of
from lantern.errors import ArgumentError, EagerError, MissingRuleError
from lantern.torch.functions.comparison import tracked_like
from lantern.torch.functions.creation import OPTIONS, complete, finished, shape_of
from lantern.torch.methods.draws import Draws
from lantern.torch.tables import documented, takes
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.batches import mappings, of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import in_transform
from lantern.torch.tensor.devices import as_array, beside, on_host
from lantern.torch.tensor.dtypes import as_numpy_dtype
from lantern.torch.tensor.layouts import in_order_of
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.named_results import into
from lantern.torch.tensor.operators import mismatch
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "Generator", "bernoulli", "get_rng_state", "initial_seed", "manual_seed",
    "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "randperm", "seed", "set_rng_state",
]  # fmt: skip


class Generator:
    """A source of random numbers.

    Args:
        device: has no effect: numbers are drawn on the CPU.

    Example:
        >>> import lantern.torch as torch
        >>> generator = torch.Generator().manual_seed(0)
        >>> first = torch.rand(2, generator=generator)
        >>> _ = generator.manual_seed(0)
        >>> torch.equal(first, torch.rand(2, generator=generator))
        True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = dtypes.device(device)
        self.seed()

    def manual_seed(self, seed: int) -> "Generator":
        """Start the sequence of a seed."""
        self._seed = int(seed)
        self.random = np.random.default_rng(self._seed % 2**64)
        return self

    def seed(self) -> int:
        """Start a sequence that nobody knows; its seed."""
        self.manual_seed(int(np.random.SeedSequence().generate_state(1)[0]))
        return self._seed

    def initial_seed(self) -> int:
        """The seed of the sequence."""
        return self._seed

    def get_state(self) -> Tensor:
        """Where the sequence stands, as bytes."""
        state = self.random.bit_generator.state
        inner = state["state"]
        words = [inner["state"], inner["inc"], state["has_uint32"], state["uinteger"]]
        packed = b"".join(int(word).to_bytes(16, "little") for word in words)
        return fresh(np.frombuffer(packed, np.uint8).copy())

    def set_state(self, new_state: Tensor) -> "Generator":
        """Go to where a sequence stood."""
        packed = base(new_state).tobytes()
        words = [
            int.from_bytes(packed[i : i + 16], "little")
            for i in range(0, len(packed), 16)
        ]
        state: Any = self.random.bit_generator.state
        state["state"] = {"state": words[0], "inc": words[1]}
        state["has_uint32"], state["uinteger"] = words[2], words[3]
        self.random.bit_generator.state = state
        return self


default_generator = Generator()


def rng(generator: Generator | None = None) -> Any:
    """NumPy's generator behind one of ours; the program's by default."""
    random: Any = (default_generator if generator is None else generator).random
    for mapped in mappings():
        random = Draws(random, mapped)
    return random


def manual_seed(seed: int) -> Generator:
    """Start the program's random numbers at a seed.

    Example:
        >>> import lantern.torch as torch
        >>> _ = torch.manual_seed(0)
        >>> first = torch.rand(2)
        >>> _ = torch.manual_seed(0)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the program's random numbers anywhere; the seed.

    Example:
        >>> import lantern.torch as torch
        >>> seed = torch.seed()
        >>> torch.initial_seed() == seed
        True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the program's random numbers.

    Example:
        >>> import lantern.torch as torch
        >>> _ = torch.manual_seed(7)
        >>> torch.initial_seed()
        7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Where the program's random numbers stand.

    Example:
        >>> import lantern.torch as torch
        >>> state = torch.get_rng_state()
        >>> first = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Go to where the program's random numbers stood.

    Example:
        >>> import lantern.torch as torch
        >>> state = torch.get_rng_state()
        >>> first = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(first, torch.rand(2))
        True
    """
    default_generator.set_state(new_state)


def _drawn(name: str, shape: Any, kind: Any, generator: Any) -> Any:
    kind = dtypes.default() if kind is None else as_numpy_dtype(kind)
    if kind.kind in "iub":
        raise MissingRuleError(
            f"\"{name}\" not implemented for '{dtypes.type_name(kind)}'"
        )
    draw = getattr(rng(generator), name)
    if kind.kind == "c":  # normal draws have variance 1 in both parts together
        scale = 0.5**0.5 if name == "standard_normal" else 1.0
        return np.asarray((draw(shape) + 1j * draw(shape)) * scale).astype(kind)
    if kind in (dtypes.F32, dtypes.F64):
        return as_array(draw(shape, kind))
    return as_array(draw(shape)).astype(kind)


def _drawer(name: str, method: str, doc: str) -> tuple[Any, Any]:
    def function(
        *size: Any,
        generator: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **named: Any,
    ) -> Tensor:
        shape = shape_of(size or named.pop("size", ()))
        if named:
            raise ArgumentError(
                f"{name}() got an unexpected keyword argument '{next(iter(named))}'"
            )
        array = _drawn(method, shape, dtype, generator)
        return finished(array, device, requires_grad)

    def like(
        input: Tensor,
        *,
        dtype: Any = None,
        requires_grad: bool = False,
        device: Any = None,
        generator: Any = None,
    ) -> Tensor:
        array = base(input)
        kind = array.dtype if dtype is None else dtype
        drawn = in_order_of(array, _drawn(method, array.shape, kind, generator))
        place = input.device if device is None else device
        return finished(drawn, place, requires_grad)

    function.__name__, like.__name__ = name, f"{name}_like"
    rest = "generator=None, dtype=None, device=None, requires_grad=False"
    takes(function, f"*sizes, size=None, {rest}")
    function.__doc__ = f"{doc}; the lengths of the axes in a row."
    like.__doc__ = f"{doc}, in the shape and type of another tensor."
    return complete(function), complete(like)


rand, rand_like = _drawer("rand", "random", "Uniform draws between 0 and 1")
documented(
    rand,
    """
    >>> x = torch.rand(2, 3)
    >>> ((0 <= x) & (x < 1)).all()
    tensor(True)
    """,
)
documented(
    rand_like,
    """
    >>> torch.rand_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """,
)
randn, randn_like = _drawer("randn", "standard_normal", "Standard normal draws")
documented(
    randn,
    """
    >>> torch.randn(2, 3).shape
    torch.Size([2, 3])
    """,
)
documented(
    randn_like,
    """
    >>> torch.randn_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """,
)


def randint(*numbers: Any, out: Any = None, **options: Any) -> Tensor:
    """Integers from low up to before high: ``randint(high, size)`` starts from 0.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.randint(5, 8, (100,))
        >>> x.min(), x.max()
        (tensor(5), tensor(7))
    """
    named = {n: options.pop(n) for n in ("low", "high", "size") if n in options}
    given = [*numbers]
    if "size" not in named and given:
        named["size"] = given.pop()
    if "high" not in named and given:
        named["high"] = given.pop()
    if "low" not in named and given:
        named["low"] = given.pop()
    if given or "high" not in named or "size" not in named:
        raise ArgumentError(
            f"randint() takes high and size, or low, high and size; got "
            f"{len(numbers)} numbers and the names {sorted(named)}"
        )
    kind = as_numpy_dtype(options.get("dtype")) or dtypes.I64
    low, high = between(named.get("low", 0), named["high"], kind)
    random = rng(options.get("generator"))
    drawn = random.integers(low, high, shape_of((named["size"],)))
    z = finished(
        as_array(drawn).astype(kind),
        options.get("device"),
        options.get("requires_grad", False),
    )
    return into(z, out)


takes(randint, f"low=0, high=None, size=None, *, generator=None, {OPTIONS}")


def between(low: Any, high: Any, kind: Any) -> tuple[int, int]:
    """The bounds of whole numbers, checked: they fit to a type."""
    low, high = (x.item() if isinstance(x, Tensor) else x for x in (low, high))
    for name, x in (("low", low), ("high", high)):
        if isinstance(x, float):
            raise ArgumentError(f"randint(): argument '{name}' must be int, not float")
    if low >= high:
        raise EagerError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= "
            f"to={high}"
        )
    least, most = bounds(kind)
    for name, x in (("from", low), ("to - 1", high - 1)):
        if not least <= x <= most:
            raise EagerError(f"{name} is out of bounds for {dtypes.type_name(kind)}")
    return low, high


@cache
def bounds(kind: Any) -> tuple[float, float]:
    """The least and the greatest number of a type."""
    if kind.kind == "b":
        return 0, 1
    limits: Any = dtypes.finfo(kind) if kind.kind in dtypes.FLOATING else np.iinfo(kind)
    return limits.min, limits.max


def randint_like(input: Tensor, *numbers: Any, **options: Any) -> Tensor:
    """As ``randint``, in the shape and type of another tensor.

    Example:
        >>> import lantern.torch as torch
        >>> torch.randint_like(torch.zeros(2), 7, 8)
        tensor([7., 7.])
    """
    return randint(*numbers, size=input.shape, **{"dtype": input.dtype, **options})


takes(randint_like, f"input, low=0, high=None, *, generator=None, {OPTIONS}")


def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, **options: Any
) -> Tensor:
    """The numbers from 0 to n - 1 in a random order.

    Example:
        >>> import lantern.torch as torch
        >>> torch.randperm(4).sort().values
        tensor([0, 1, 2, 3])
    """
    kind = as_numpy_dtype(dtype) or dtypes.I64
    if n < 0:
        raise EagerError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if n - 1 > bounds(kind)[1]:
        raise EagerError(
            f"n is too large for result tensor type: '{dtypes.type_name(kind)}'"
        )
    order, out = rng(generator).permutation(n).astype(kind), options.get("out")
    z = finished(order, options.get("device"), options.get("requires_grad", False))
    return into(z, out)


takes(randperm, f"n, *, generator=None, {OPTIONS}")


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    **options: Any,
) -> Tensor:
    """Normal draws of means and standard deviations.

    By tensors the derivative is 0, as in PyTorch: ``Normal(mean, std).rsample()`` has
    one. By a number that ``lantern.grad`` tracks it is that of ``mean + std * draw``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.normal(torch.tensor([1.0, 2.0]), torch.zeros(2))
        tensor([1., 2.])
    """
    shape, out = size, options.pop("out", None)
    if size is not None and std < 0:
        raise EagerError(f"normal expects std >= 0.0, but found std {std}")
    if size is None:
        try:
            shape = np.broadcast_shapes(
                np.shape(value_of(mean)), np.shape(value_of(std))
            )
        except ValueError as error:
            raise mismatch(None, mean, std, error) from None
        kinds = [base(v).dtype for v in (mean, std) if isinstance(v, Tensor)]
        if any(kind.kind == "c" for kind in kinds[-1:]):
            raise EagerError("normal expects standard deviation to be non-complex")
        if (of_all_examples(as_array(value_of(std))) < 0).any():
            raise EagerError("normal expects all elements of std >= 0.0")
        options.setdefault("dtype", np.result_type(*kinds) if kinds else None)
        placed = [v.device for v in (mean, std) if isinstance(v, Tensor)]
        options.setdefault("device", placed[0] if placed else None)
    z = randn(shape, generator=generator, **options)
    if size is not None and z.dtype.is_complex and not isinstance(mean, complex):
        mean = complex(mean, mean)  # as PyTorch has it
    tensors = [v for v in (mean, std) if size is None and isinstance(v, Tensor)]
    if in_transform(*(v for v in (mean, std) if not any(v is x for x in tensors))):
        return into(z * std + mean, out)
    z.primal = as_array(z.primal * base(std) + base(mean), z.primal.dtype)
    return into(tracked_like(z, *tensors), out)


takes(normal, f"mean=0.0, std=1.0, size=None, *, generator=None, {OPTIONS}")


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Any = None, out: Any = None
) -> Tensor:
    """1 with the probabilities that a tensor holds, else 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.bernoulli(torch.tensor([0.0, 1.0, 1.0]))
        tensor([0., 1., 1.])
    """
    array = base(input)
    chance = array if p is None else p
    every = of_all_examples(as_array(chance))
    if not ((every >= 0) & (every <= 1)).all():
        raise EagerError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    draws = beside(as_array(rng(generator).random(array.shape)), array) < chance
    return (
        fresh(as_array(draws, array.dtype))
        if out is None
        else out.copy_(fresh(as_array(draws)))
    )


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Numbers of events at the rates that a tensor holds.

    Example:
        >>> import lantern.torch as torch
        >>> torch.poisson(torch.tensor([0.0, 0.0]))
        tensor([0., 0.])
    """
    array = base(input)
    if not (of_all_examples(array) >= 0).all():
        raise EagerError("invalid Poisson rate, expected rate to be non-negative")
    drawn = as_array(rng(generator).poisson(on_host(array)))
    return fresh(beside(drawn.astype(array.dtype), array))


@each_example
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Any = None,
    out: Any = None,
) -> Tensor:
    """Positions along the last axis, drawn by the weights there.

    Example:
        >>> import lantern.torch as torch
        >>> torch.multinomial(torch.tensor([0.0, 1.0]), 3, replacement=True)
        tensor([1, 1, 1])
    """
    if base(input).dtype.kind not in dtypes.FLOATING:
        raise EagerError("multinomial only supports floating-point dtypes for input")
    if out is not None:
        if base(out).dtype != dtypes.I64:
            raise EagerError(
                f"multinomial expects Long tensor out, got: {type(out).__name__}"
            )
        return out.copy_(
            multinomial(input, num_samples, replacement, generator=generator)
        )
    weights = np.asarray(on_host(base(input)), np.float64)
    if (weights < 0).any() or not np.isfinite(weights).all():
        raise EagerError(
            "probability tensor contains either `inf`, `nan` or element < 0"
        )
    if num_samples <= 0:
        raise EagerError("cannot sample n_sample <= 0 samples")
    if weights.ndim not in (1, 2):
        raise EagerError("prob_dist must be 1 or 2 dim")
    if (weights.sum(-1) <= 0).any():
        raise EagerError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > weights.shape[-1]:
        raise EagerError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    random = rng(generator)
    rows = weights.reshape(-1, weights.shape[-1])
    if replacement:
        edges = np.cumsum(rows, axis=-1)
        points = random.random((len(rows), num_samples)) * edges[:, -1:]
        found = [e.searchsorted(p, "right") for e, p in zip(edges, points, strict=True)]
        drawn = np.minimum(np.array(found).reshape(points.shape), rows.shape[-1] - 1)
    else:  # the largest of w_i-th roots of uniform draws: Efraimidis and Spirakis
        with np.errstate(divide="ignore"):
            keys = np.log(random.random(rows.shape)) / rows
        drawn = np.argsort(-keys, axis=-1, kind="stable")[:, :num_samples]
    drawn = drawn.astype(np.int64).reshape(*weights.shape[:-1], num_samples)
    return fresh(beside(drawn, base(input)))
