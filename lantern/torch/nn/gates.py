"""One step of a long short-term memory as one rule, its four gates in one array.

There they lie one after another, not side by side as in the weights: NumPy takes a
third of the time for what is contiguous.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from lantern.core.namespace import common_namespace, namespace
from lantern.core.value import Rule, base
from lantern.op import op
from lantern.torch.nn.products import (
    LayerProduct,
    in_parts,
    parts,
    product,
    times,
    turned,
)
from lantern.torch.nn.rules import added, over_rows, plain
from lantern.torch.nn.starting import fused

__all__ = ["cell"]


@op
def _cell(
    x: Any, h: Any, memory: Any, weight: Any, recurrent: Any, bias: Any, more: Any, /
) -> Rule:
    """One step of a long short-term memory: what it shows, and what it keeps.

    Shapes:
        x: (m, k), or without a weight (m, 4 n); h, memory: (m, n); weight: (4 n, k) or
        None; recurrent: (4 n, n); bias, more: (4 n,), both or more alone or None;
        result: (2, m, n)

    Rule:
        gates = x @ weight.T + h @ recurrent.T + bias + more
        enter, forget, shown are the sigmoids, new the tanh of its parts
        kept = forget * memory + enter * new; result = shown * tanh(kept), kept

    References:
        Hochreiter and Schmidhuber (1997); Gers et al. (2000).
    """
    both = bias if more is None else more if bias is None else bias + more
    gates = _gates(x, h, weight, recurrent, both)
    alike = plain(gates, memory) and gates.dtype is memory.dtype
    z, gates, new, bent = (_step if alike else _any_step)(gates, memory)
    del bias, more, both
    z_bar = yield (z, z := None)[0]
    back = _step_back if alike and plain(z_bar) else _any_step_back
    gates_bar, memory_bar = back(z_bar, gates, memory, new, bent)
    yield gates_bar if weight is None else lambda: times(gates_bar, weight)
    yield lambda: times(gates_bar, recurrent)
    yield memory_bar
    yield None if weight is None else LayerProduct(gates_bar, x)
    yield LayerProduct(gates_bar, h)
    bias_bar = over_rows(gates_bar)
    yield bias_bar
    yield bias_bar


def _gates(x: Any, h: Any, weight: Any, recurrent: Any, bias: Any) -> Any:
    """``x @ weight.T + h @ recurrent.T + bias``, its four parts one after another.

    Without a weight x stands for its product.
    """
    few = parts(h, recurrent)
    if 0 < few <= 4 and plain(x, weight):
        z = in_parts(h, recurrent, 4)
        z += _four(x) if weight is None else in_parts(x, weight, 4)
        return added(z, None if bias is None else bias.reshape(4, 1, -1))
    if not few and turned(h, recurrent) and plain(x, weight):
        z = recurrent.dot(h.T).T
        z += x if weight is None else weight.dot(x.T).T
    else:
        z = added(product(h, recurrent), x if weight is None else product(x, weight))
    return _in_turn(z, bias)


def _four(z: Any) -> Any:
    """Four matrices that lie side by side, one after another."""
    m, n = z.shape
    return z.reshape(m, 4, n // 4).swapaxes(0, 1)


def _in_turn(z: Any, bias: Any) -> Any:
    """Four matrices that lie side by side, and a bias, one after another."""
    n, z = z.shape[1], _four(z)
    bias = None if bias is None else bias.reshape(4, 1, n // 4)
    if not plain(z, bias):
        return added(z, bias)
    xp = namespace(z)
    if bias is None:
        return xp.ascontiguousarray(z)
    return xp.add(z, bias, out=xp.empty(z.shape, dtype=z.dtype))


def _side_by_side(x: Any, y: Any) -> Any:
    """The products of two times four matrices, side by side."""
    _, m, n = x.shape
    if not plain(x, y):
        return (x * y).swapaxes(0, 1).reshape(m, 4 * n)
    z = namespace(x).empty((m, 4 * n), dtype=x.dtype)
    namespace(x).multiply(x, y, out=z.reshape(m, 4, n).swapaxes(0, 1))
    return z


@lru_cache
def _half(dtype: Any) -> Any:
    """1/2 as an array: with a number NumPy takes twice as long."""
    return np.asarray(0.5, dtype=dtype)


def _step(gates: Any, memory: Any) -> tuple[Any, ...]:
    """The result of a step, the gates, what is new, and the bent memory, in place.

    ``sigmoid(x) = tanh(x / 2) / 2 + 1 / 2``. Among the gates, in place of what is new
    its sigmoid is kept, whose slope is a quarter of the tanh's.
    """
    xp = namespace(gates)
    half = _half(gates.dtype) if type(gates) is np.ndarray else 0.5
    gates *= half
    new = gates[2]
    new += new
    xp.tanh(gates, out=gates)
    new = new.copy()
    gates *= half
    gates += half
    z = xp.empty((2, *memory.shape), dtype=gates.dtype)
    kept = xp.multiply(gates[1], memory, out=z[1])
    bent = gates[0] * new
    kept += bent
    xp.tanh(kept, out=bent)
    xp.multiply(gates[3], bent, out=z[0])
    return z, gates, new, bent


def _any_step(gates: Any, memory: Any) -> tuple[Any, ...]:
    """As ``_step``, of what an outer derivative tracks."""
    plain_gates = base(gates)
    xp = namespace(plain_gates)
    scale = xp.asarray([0.5, 0.5, 1, 0.5], dtype=plain_gates.dtype).reshape(4, 1, 1)
    bends = namespace(gates).tanh(gates * scale)
    gates, new = bends * 0.5 + 0.5, bends[2]
    kept = gates[1] * memory + gates[0] * new
    bent = namespace(kept).tanh(kept)
    shown = gates[3] * bent
    return namespace(shown).stack([shown, kept]), gates, new, bent


def _step_back(
    z_bar: Any, gates: Any, memory: Any, new: Any, bent: Any
) -> tuple[Any, Any]:
    """What the gates receive, side by side, and what the memory does, in place."""
    xp = namespace(gates)
    parts = xp.empty_like(gates)
    shown_bar = xp.multiply(z_bar[0], bent, out=parts[3])
    memory_bar = z_bar[0] * gates[3]
    bend = shown_bar * gates[3]
    bend *= bent
    memory_bar -= bend
    memory_bar += z_bar[1]
    xp.multiply(memory_bar, gates[0], out=parts[2])
    parts[2] *= 4
    xp.multiply(memory_bar, memory, out=parts[1])
    xp.multiply(memory_bar, new, out=parts[0])
    memory_bar *= gates[1]
    gates -= gates * gates
    return _side_by_side(parts, gates), memory_bar


def _any_step_back(
    z_bar: Any, gates: Any, memory: Any, new: Any, bent: Any
) -> tuple[Any, Any]:
    """As ``_step_back``, of what an outer derivative tracks."""
    memory_bar = z_bar[1] + z_bar[0] * gates[3] * (1 - bent * bent)
    parts = [
        memory_bar * new, memory_bar * memory, 4 * memory_bar * gates[0],
        z_bar[0] * bent,
    ]  # fmt: skip
    parts_bar = common_namespace(*parts).stack(parts)
    slopes = gates - gates * gates
    return _side_by_side(parts_bar, slopes), memory_bar * gates[1]


cell = fused(_cell)
