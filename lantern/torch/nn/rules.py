"""Rules that join what layers do in several steps: fewer arrays, fewer suspended rules.

Each has a short way for plain arrays, and one of operators and functions of the
library, which is taken inside another derivative.
"""

import math
from typing import Any

from lantern.namespace import namespace
from lantern.op import elementwise, op
from lantern.tensor import exponential
from lantern.tensor.indexing import Scatter
from lantern.torch.nn.starting import fused
from lantern.value import Rule, Value, base

__all__ = [
    "affine",
    "cell_memory",
    "cell_output",
    "entropy",
    "gelu",
    "logsigmoid",
    "normalised",
    "rows",
]


def plain(*values: Any) -> bool:
    """Whether nothing among some values is tracked by an outer derivative."""
    return not any(isinstance(x, Value) for x in values)


class Columns(Scatter):
    """The cotangent of a slice, which names no element twice."""

    __slots__ = ()

    def add_to(self, buffer: Any) -> None:
        """Add the cotangent in place."""
        buffer[self.index] += self.z_bar


@op
def _affine(x: Any, weight: Any, bias: Any, more: Any, /) -> Rule:
    """``x @ weight.T + bias + more``, as one matrix product over all leading axes.

    Shapes:
        x: (..., n); weight: (m, n); bias: (m,) or None; more: (..., m) or None;
        result: (..., m)

    Rule:
        x_bar = z_bar @ weight; weight_bar = z_bar.T @ x; bias_bar = more_bar = z_bar
    """
    flat = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
    shape = (*x.shape[:-1], weight.shape[0])
    z = flat @ weight.T
    if bias is not None:
        if plain(z, bias):
            z += bias
        else:
            z = z + bias
    if x.ndim != 2:
        z = z.reshape(shape)
    if more is not None:
        if plain(z, more):
            z += more
        else:
            z = z + more
    lengths = x.shape
    del bias, more, x
    z_bar = yield (z, z := None)[0]
    back = z_bar if len(shape) == 2 else z_bar.reshape(-1, shape[-1])
    yield lambda: (back @ weight).reshape(lengths)
    # Of one row, the product of two vectors: NumPy's own is faster than BLAS here.
    yield lambda: back.T * flat if back.shape[0] == 1 else back.T @ flat
    yield lambda: back.sum(axis=0)
    yield z_bar


@op
def _normalised(
    x: Any, weight: Any, bias: Any, /, axes: Any, eps: float, shape: Any, found: Any
) -> Rule:
    """x less its mean, over its standard deviation; scaled and shifted.

    Args:
        axes: those that mean and variance are taken over.
        eps: is added to the variance.
        shape: the form in which weight and bias broadcast.
        found: a list that gets the mean and the variance, or None.

    Shapes:
        x: (...); weight, bias: any, or None; result: (...)

    Rule:
        with the normalised n and n_bar = z_bar * weight:
        x_bar = (n_bar - mean(n_bar) - n * mean(n_bar * n)) / deviation
    """
    centre = x.mean(axis=axes, keepdims=True)
    n = x - centre
    variance = (n * n).mean(axis=axes, keepdims=True)
    scale = 1 / namespace(variance).sqrt(variance + eps)
    if found is not None:
        found[:] = base(centre), base(variance)
    del x, centre, variance
    n = n * scale
    z = n
    if weight is not None:
        z = z * weight.reshape(shape)
    if bias is not None:
        z = z + bias.reshape(shape)
    z_bar = yield (z, z := None)[0]
    n_bar = z_bar if weight is None else z_bar * weight.reshape(shape)
    both = n_bar * n
    x_bar = n_bar - n_bar.mean(axis=axes, keepdims=True)
    x_bar = x_bar - n * both.mean(axis=axes, keepdims=True)
    yield x_bar * scale
    if weight is not None:
        yield lambda: _summed(z_bar * n, shape).reshape(weight.shape)
    else:
        yield None
    yield lambda: _summed(z_bar, shape).reshape(bias.shape)


def _summed(x: Any, shape: Any) -> Any:
    """An array summed over the axes where a broadcast shape has length 1."""
    lead = x.ndim - len(shape)
    axes = tuple(i for i in range(x.ndim) if i < lead or shape[i - lead] == 1)
    return x.sum(axis=axes) if axes else x


@op
def _entropy(x: Any, /, targets: Any, scales: Any) -> Rule:
    """The weighted sum over rows of ``logsumexp(x) - x[target]``.

    Args:
        targets: for each row, the number of a class.
        scales: what the losses are multiplied by: for each row, or one for all.

    Shapes:
        x: (n, classes); targets: (n,); scales: (n,) or a number; result: ()

    Rule:
        x_bar = z_bar * scales * (softmax(x) - one_hot(targets))
    """
    xp = namespace(base(x))
    numbers = xp.arange(len(targets))
    shifted = x - base(x).max(axis=1, keepdims=True)
    powers = namespace(x).exp(shifted)
    total = powers.sum(axis=1)
    losses = namespace(x).log(total) - shifted[numbers, targets]
    del shifted
    z_bar = yield ((losses * scales).sum(), losses := None)[0]
    if plain(x, z_bar):
        powers *= (scales * z_bar / total)[:, None]
        powers[numbers, targets] -= scales * z_bar
        yield powers
    else:
        shares = exponential.softmax(x, 1)
        chosen = xp.zeros(x.shape, dtype=base(x).dtype)
        chosen[numbers, targets] = 1
        factors = z_bar * scales
        yield (shares - chosen) * (factors[:, None] if factors.ndim else factors)


@op
def _rows(weight: Any, /, index: Any, keep: Any) -> Rule:
    """The rows of a matrix that an array of positions names.

    Args:
        index: the positions.
        keep: where a derivative goes to the row; None for everywhere.

    Shapes:
        weight: (n, ...); index, keep: (...); result: (..., ...)

    Rule:
        weight_bar[index] += z_bar, where keep
    """
    z_bar = yield (weight[index], weight := None)[0]
    if keep is not None:
        index, z_bar = index[keep], z_bar[keep]
    yield Scatter(index, z_bar)


@elementwise
def _logsigmoid(x: Any, /) -> Rule:
    """The logarithm of the sigmoid, without overflow.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * sigmoid(-x)
    """
    z_bar = yield -namespace(x).softplus(-x)
    yield z_bar * namespace(x).sigmoid(-x)


@elementwise
def _gelu(x: Any, /) -> Rule:
    """``x`` times the chance that a standard normal draw is below it.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (cdf(x) + x * exp(-x * x / 2) / sqrt(2 * pi))
    """
    xp = namespace(x)
    chance = 0.5 * (1 + xp.erf(x * math.sqrt(0.5)))
    z_bar = yield x * chance
    yield z_bar * (chance + x * (xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))))


@op
def _cell_memory(gates: Any, memory: Any, /) -> Rule:
    """What a long short-term memory keeps: ``forget * memory + enter * new``.

    Shapes:
        gates: (..., 4 n), of enter, forget, new and output; memory: (..., n);
        result: (..., n)

    Rule:
        the product rule, through the sigmoids of enter and forget and the tanh of new

    References:
        Hochreiter and Schmidhuber (1997); Gers et al. (2000).
    """
    xp = namespace(gates)
    n = memory.shape[-1]
    both = xp.sigmoid(gates[..., : 2 * n])
    enter, forget = both[..., :n], both[..., n:]
    new = xp.tanh(gates[..., 2 * n : 3 * n])
    del gates, both
    z_bar = yield forget * memory + enter * new
    xp = namespace(z_bar, memory, enter)
    parts = [
        z_bar * new * enter * (1 - enter),
        z_bar * memory * forget * (1 - forget),
        z_bar * enter * (1 - new * new),
    ]
    together = xp.concatenate(parts, axis=-1)
    yield Columns((..., slice(0, 3 * n)), together)
    yield z_bar * forget


@op
def _cell_output(gates: Any, memory: Any, /) -> Rule:
    """What a long short-term memory shows: ``sigmoid(output) * tanh(memory)``.

    Shapes:
        gates: (..., 4 n), of enter, forget, new and output; memory: (..., n);
        result: (..., n)

    Rule:
        the product rule
    """
    xp = namespace(gates)
    n = memory.shape[-1]
    shown = xp.sigmoid(gates[..., 3 * n :])
    bent = namespace(memory).tanh(memory)
    del gates, memory
    z_bar = yield shown * bent
    yield Columns((..., slice(3 * n, 4 * n)), z_bar * bent * shown * (1 - shown))
    yield z_bar * shown * (1 - bent * bent)


affine, normalised, entropy = fused(_affine), fused(_normalised), fused(_entropy)
rows, gelu, logsigmoid = fused(_rows), fused(_gelu), fused(_logsigmoid)
cell_memory, cell_output = fused(_cell_memory), fused(_cell_output)
