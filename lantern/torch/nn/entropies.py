"""Losses of classes as rules."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base
from lantern.engines import gpu
from lantern.op import op
from lantern.tensor.backend.rows import greatest, summed
from lantern.tensor.ops import softmax
from lantern.tensor.ops.at import plain_put
from lantern.tensor.ops.indexing import joined, read_at
from lantern.torch.nn.rules import plain
from lantern.torch.nn.starting import fused
from lantern.vectorizing.batched import without_derivative

__all__ = ["entropy", "entropy_of_one"]


def _greatest(x: Any) -> Any:
    """As ``greatest``, without a derivative."""
    return greatest(x if type(x) is np.ndarray else without_derivative(base(x)))


def _at(x: Any, places: Any) -> Any:
    """The elements of a row at some places."""
    return x[places] if type(x) is np.ndarray else read_at(x, places)


@op
def _entropy(x: Any, /, places: Any, scales: Any) -> Rule:
    """The weighted sum over rows of ``logsumexp(x) - x[target]``.

    Args:
        places: for each row, where in all of x that is one row the target lies.
        scales: what the losses are multiplied by: for each row, or one for all.

    Shapes:
        x: (n, classes); places: (n,); scales: (n,) or a number; result: ()

    Rule:
        x_bar = z_bar * scales * (softmax(x) - one_hot(targets))
    """
    xp, powers = namespace(x), None
    found = None if type(x) is np.ndarray else gpu.entropy.entropy(x, places)
    if found is None:
        shifted = x - _greatest(x)
        powers = xp.exp(shifted)
        total = summed(powers)
        losses = xp.log(total) - _at(shifted.reshape(-1), places)
        del shifted
    else:
        losses, logarithms = found
    z = summed(losses * scales) if hasattr(scales, "shape") else summed(losses) * scales
    z_bar = yield (z, losses := None)[0]
    x_bar = None
    if powers is None and plain(z_bar):
        x_bar = gpu.entropy.entropy_back(x, places, logarithms, z_bar * scales)
    if x_bar is not None:
        yield x_bar
    elif powers is not None and plain(x, z_bar):
        powers *= (scales * z_bar / total)[:, None]
        powers = xp.ascontiguousarray(powers)
        powers.reshape(-1)[places] -= scales * z_bar
        yield powers
    else:
        shares = softmax.softmax(x, 1)
        plain_x = base(x)
        chosen = namespace(plain_x).zeros(math.prod(x.shape), dtype=plain_x.dtype)
        chosen = plain_put(joined(chosen, places), 1, index=places).reshape(x.shape)
        factors = z_bar * scales
        yield (shares - chosen) * (factors[:, None] if factors.ndim else factors)


@op
def _entropy_of_one(x: Any, /, target: int) -> Rule:
    """As ``_entropy``, of one row with the number of its class.

    Shapes:
        x: (classes,) or (1, classes); result: ()

    Rule:
        x_bar = z_bar * (softmax(x) - one_hot(target))
    """
    row, xp, lengths = x.reshape(-1), namespace(x), x.shape
    shifted = row - _greatest(row)
    powers = xp.exp(shifted)
    total = summed(powers)
    z_bar = yield (xp.log(total) - shifted[target], shifted := None)[0]
    if plain(x, z_bar):
        powers *= z_bar / total
        powers[target] -= z_bar
        yield powers.reshape(lengths)
    else:
        chosen = namespace(base(x)).zeros(row.shape, dtype=base(x).dtype)
        chosen[target] = 1
        yield ((softmax.softmax(row, 0) - chosen) * z_bar).reshape(lengths)


entropy, entropy_of_one = fused(_entropy), fused(_entropy_of_one)
