"""Rules that join what layers do in several steps: fewer arrays, fewer suspended rules.

Each has a short way for plain arrays, and one of operators and functions of the
library, which is taken inside another derivative.
"""

import math
from operator import setitem
from typing import Any

import numpy as np

from lantern import engines
from lantern.core.contribution import Call
from lantern.core.namespace import common_namespace, namespace
from lantern.core.value import Rule, Value, base
from lantern.engines import gpu
from lantern.op import elementwise, linear, op
from lantern.tensor.accumulate.accumulator import LARGE
from lantern.tensor.backend.numpy_namespace import REAL
from lantern.tensor.backend.rows import over_rows as over_plain_rows
from lantern.tensor.backend.rows import starts
from lantern.tensor.ops.indexing import LONG, Scatter, adding_often, read_at
from lantern.torch.nn import moments as blocks
from lantern.torch.nn.halves import with_halves
from lantern.torch.nn.products import LayerProduct, product, times
from lantern.torch.nn.products import affine as in_one_call
from lantern.torch.nn.starting import fused
from lantern.torch.tensor.dtypes import F32, is_half
from lantern.torch.tensor.operators import unary

__all__ = [
    "affine",
    "gelu",
    "hardswish",
    "huber",
    "leaky_relu",
    "logsigmoid",
    "mixed",
    "normalised",
    "rearranged",
    "rows",
    "silu",
]


def plain(x: Any, y: Any = None) -> bool:
    """Whether neither of two values is tracked by an outer derivative."""
    return not (isinstance(x, Value) or isinstance(y, Value))


class Rows(Scatter):
    """The cotangent of rows of a matrix, which positions from 0 on name."""

    __slots__ = ()

    @staticmethod
    def joined(rows: list[Any], shape: tuple[int, ...]) -> "Rows":
        """Several contributions to one table, as one."""
        z_bars = [part.z_bar.reshape(-1, *shape[1:]) for part in rows]
        index = np.concatenate([part.index.reshape(-1) for part in rows])
        return Rows(index, np.concatenate(z_bars))

    def wait_at(self, receiver: Any) -> bool:
        """Wait, if that takes no more memory than the table, or little."""
        z_bar, size = self.z_bar, math.prod(receiver.shape)
        if (
            type(z_bar) is not np.ndarray
            or z_bar.dtype is not receiver.dtype
            or z_bar.size > size
        ):
            return False
        receiver.collect(self, z_bar.nbytes, max(size * z_bar.itemsize, 1 << 20))
        return True

    def dense(self, shape: tuple[int, ...]) -> Any:
        """A table of zeros with the cotangent added at its rows."""
        z_bar = self.z_bar
        if type(z_bar) is not np.ndarray or type(self.index) is not np.ndarray:
            return super().dense(shape)
        buffer = np.zeros(shape, z_bar.dtype)
        self.add_to(buffer)
        return buffer

    def additions(self, buffer: Any, factor: float = 1.0) -> list[Call]:
        """As ``Scatter.additions``, in fewer steps."""
        if not (type(buffer) is np.ndarray and buffer.flags.c_contiguous):
            return super().additions(buffer, factor)
        z_bar = self.z_bar if factor == 1 else self.z_bar * factor
        index, numbers = self.index.reshape(-1), starts(self.index.size, 1)
        z_bar = z_bar.reshape(-1, *buffer.shape[1:])
        width = math.prod(buffer.shape[1:])
        if width > LONG:
            return [adding_often(buffer, index, z_bar)]
        rows = np.empty(z_bar.shape, buffer.dtype)
        calls: list[Call] = [
            # By any other mode than "clip" it would take them into a copy first.
            (buffer.take, index, 0, rows, "clip"),
            (np.add, rows, z_bar, rows),
            (setitem, buffer, index, rows),  # of a row that is named twice, the last
        ]
        last = np.empty(len(buffer), np.intp)
        last[index] = numbers
        rest = (last.take(index) != numbers).nonzero()[0]
        if len(rest):
            cells = index.take(rest)[:, None] * width + starts(width, 1)
            rows = z_bar.take(rest, axis=0).reshape(-1)
            calls.append((np.add.at, buffer.reshape(-1), cells.reshape(-1), rows))
        return calls


def added(x: Any, y: Any) -> Any:
    """``x + y``, in the memory of x if both are plain; y may be None."""
    if y is None:
        return x
    if isinstance(x, Value) or isinstance(y, Value):
        return x + y
    if y.ndim == 1 and x.ndim == 2 and x.shape[0] == 1:
        row = x[0]
        row += y  # which takes half as long as to broadcast it
    else:
        x += y
    return x


def multiplied(x: Any, y: Any) -> Any:
    """``x * y``, in the memory of x if both are plain."""
    if isinstance(x, Value) or isinstance(y, Value):
        return x * y
    x *= y
    return x


def over_rows(x: Any) -> Any:
    """The sum of the rows of a matrix."""
    if (z := over_plain_rows(x)) is None:
        z = gpu.products.over_rows(x)
    return x.sum(axis=0) if z is None else z


@op
def _affine(x: Any, weight: Any, bias: Any, more: Any = None, /) -> Rule:
    """``x @ weight.T + bias + more``, as one matrix product over all leading axes.

    Shapes:
        x: (..., n); weight: (m, n); bias: (m,) or None; more: (..., m) or None;
        result: (..., m)

    Rule:
        x_bar = z_bar @ weight; weight_bar = z_bar.T @ x; bias_bar = more_bar = z_bar
    """
    lengths = x.shape
    flat = x
    if len(lengths) != 2:  # of no features -1 would say nothing
        flat = x.reshape(math.prod(lengths[:-1]), lengths[-1])
    z = in_one_call(flat, weight, bias)
    if z is None:
        z = added(product(flat, weight), bias)
    if flat is not x:
        z = z.reshape(*lengths[:-1], weight.shape[0])
    if more is not None:
        z = added(z, more)
    del bias, more, x
    z_bar = yield (z, z := None)[0]
    if len(lengths) == 2:
        back = z_bar
        yield lambda: times(back, weight)
    else:
        back = z_bar.reshape(flat.shape[0], weight.shape[0])
        yield lambda: times(back, weight).reshape(lengths)
    # So has its cotangent then, for the matrix that it is a view of.
    if weight.size > LARGE and _has_columns(weight):
        yield lambda: times(flat.T, back).T
    else:
        yield LayerProduct(back, flat)
    # Of one row a copy: what shows the row would be looked at, and copied, by a leaf.
    yield back[0].copy() if back.shape[0] == 1 else lambda: over_rows(back)
    yield z_bar


def _has_columns(weight: Any) -> bool:
    """Whether a matrix lies column after column."""
    return type(weight) is np.ndarray and weight.flags.fnc and weight.dtype in REAL


@op
def _normalised(
    x: Any, weight: Any, bias: Any, /, axes: Any, eps: float, shape: Any, found: Any
) -> Rule:
    """x less its mean, over its standard deviation; scaled and shifted.

    Args:
        axes: those that mean and variance are taken over.
        eps: is added to the variance.
        shape: the form in which weight and bias broadcast.
        found: a function that is told the mean and the variance, or None.

    Shapes:
        x: (...); weight, bias: any, or None; result: (...)

    Rule:
        with the normalised n and n_bar = z_bar * weight:
        x_bar = (n_bar - mean(n_bar) - n * mean(n_bar * n)) / deviation
    """
    how: Any = engines.normalisation
    done = engines.normalisation.normalised(x, weight, bias, axes, eps, shape)
    if done is None:
        how, done = blocks, blocks.normalised(x, weight, bias, axes, eps, shape)
    if done is None:
        centre = x.mean(axis=axes, keepdims=True)
        n = x - centre
        variance = (n * n).mean(axis=axes, keepdims=True)
        scale = 1 / namespace(variance).sqrt(variance + eps)
        if found is not None:
            found(base(centre), base(variance))
        x = centre = variance = None
        n = multiplied(n, scale)
        z = n if weight is None else n * weight.reshape(shape)
        if bias is not None:
            z = added(z, bias.reshape(shape)) if z is not n else n + bias.reshape(shape)
    else:
        z, *moments = done
        if found is not None:
            found(*(_kept(m, x, axes) for m in moments[:2]))
    del done
    z_bar = yield (z, z := None)[0]
    if x is not None:
        back = how.pulled_back(z_bar, x, moments, weight, axes, eps, shape)
        if back is not None:
            x_bar, weight_bar, bias_bar = back
            yield x_bar
            yield None if weight is None else _in_shape(weight_bar, weight)
            yield _in_shape(bias_bar, bias)
            return
        centre, variance = (_kept(m, x, axes) for m in moments[:2])
        scale = (variance + eps) ** -0.5
        n = (x - centre) * scale
    n_bar = z_bar if weight is None else z_bar * weight.reshape(shape)
    mean = (n_bar * n).mean(axis=axes, keepdims=True)
    x_bar = n_bar - n_bar.mean(axis=axes, keepdims=True)
    yield multiplied(x_bar - n * mean, scale)
    if weight is None:
        yield None
    else:
        yield lambda: _summed(z_bar * n, shape).reshape(weight.shape)
    yield lambda: _summed(z_bar, shape).reshape(bias.shape)


def _in_shape(p_bar: Any, p: Any) -> Any:
    """The cotangent of a parameter in its shape: itself, and no view, if it has it."""
    return p_bar if p_bar.shape == p.shape else p_bar.reshape(p.shape)


def _kept(means: Any, x: Any, axes: Any) -> Any:
    """A row of means as numbers that broadcast with the array."""
    axes = {axis % x.ndim for axis in axes}
    return means.reshape([1 if i in axes else n for i, n in enumerate(x.shape)])


def _summed(x: Any, shape: Any) -> Any:
    """An array summed over the axes where a broadcast shape has length 1."""
    lead = x.ndim - len(shape)
    axes = tuple(i for i in range(x.ndim) if i < lead or shape[i - lead] == 1)
    return x.sum(axis=axes) if axes else x


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
    z = weight.take(index, axis=0) if plain(weight, index) else read_at(weight, index)
    shape = weight.shape
    z_bar = yield (z, weight := None, z := None)[0]
    if type(keep) is np.ndarray:
        index, z_bar = index[keep], z_bar[keep]
    elif keep is not None:  # a GPU would have to wait for how many there are
        z_bar = namespace(z_bar).where(keep[..., None], z_bar, 0)
    yield (
        _half_rows(index, z_bar, shape) if is_half(z_bar.dtype) else Rows(index, z_bar)
    )


def _half_rows(index: Any, z_bar: Any, shape: Any) -> Any:
    """As ``Rows``, of halves: what falls into one row is added up in float32."""
    wide = z_bar.astype(F32)
    if not (type(index) is type(z_bar) is np.ndarray):
        return Rows(index, wide).dense(shape).astype(z_bar.dtype)
    places, inverse = np.unique(index, return_inverse=True)
    wide = wide.reshape(-1, *shape[1:])
    sums = Rows(inverse.reshape(-1), wide).dense((len(places), *shape[1:]))
    return Rows(places, sums.astype(z_bar.dtype))


@linear
def _rearranged(x: Any, /, shape: Any, order: Any, result: Any) -> Rule:
    """The elements in one shape, its axes in an order, and that in another shape.

    Shapes:
        x: (...); result: ``result``

    Rule:
        x_bar = z_bar, rearranged the other way
    """
    lengths, turned = x.shape, namespace(x).permute_dims(x.reshape(shape), order)
    between, back = turned.shape, sorted(range(len(order)), key=order.__getitem__)
    z_bar = yield (turned.reshape(result), x := None, turned := None)[0]
    z_bar = z_bar.reshape(between)
    yield namespace(z_bar).permute_dims(z_bar, back).reshape(lengths)


@linear
def _mixed(x: Any, /, weights: Any, axis: int) -> Rule:
    """Along an axis, sums of the elements with constant weights.

    Args:
        weights: a plain matrix, (n, m).
        axis: of n elements, from the end.

    Shapes:
        x: (..., n, ...); result: (..., m, ...)

    Rule:
        x_bar = z_bar mixed by weights.T
    """
    z_bar = yield (_products_along(x, weights, axis), x := None)[0]
    yield _products_along(z_bar, weights.T, axis)


def _products_along(x: Any, weights: Any, axis: int) -> Any:
    if axis == -1:
        return x @ weights
    order = list(range(x.ndim))
    order[axis], order[-1] = order[-1], order[axis]
    return (x.transpose(order) @ weights).transpose(order)


@elementwise
def _logsigmoid(x: Any, /) -> Rule:
    """The logarithm of the sigmoid, without overflow.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * sigmoid(-x), which is z_bar * (1 - exp(z))
    """
    z = -namespace(x).softplus(-x)
    del x
    z_bar = yield z
    yield -z_bar * namespace(z).expm1(z)


@elementwise
def _elu(x: Any, /, alpha: float) -> Rule:
    """``x``, and ``alpha * (exp(x) - 1)`` where it is not positive.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar, and z_bar * alpha * exp(x) where x is not positive
    """
    positive, xp = base(x) > 0, namespace(x)
    below = xp.expm1(xp.minimum(x, 0)) * alpha
    z_bar = yield (xp.where(positive, x, below), x := None)[0]
    xp = common_namespace(below, z_bar)
    yield xp.where(positive, z_bar, z_bar * (below + alpha))


@elementwise
def _leaky_relu(x: Any, /, slope: float) -> Rule:
    """``x``, and ``slope * x`` where it is not positive.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar, and slope * z_bar where x is not positive
    """
    z = engines.elementwise.forward("leaky_relu", x, slope)
    if z is None:
        z = namespace(x).where(base(x) > 0, x, x * slope)
    z_bar = yield (z, z := None)[0]
    x_bar = engines.elementwise.back("leaky_relu", x, z_bar, slope)
    if x_bar is None:
        x_bar = common_namespace(x, z_bar).where(base(x) > 0, z_bar, z_bar * slope)
    yield x_bar


@elementwise
def _silu(x: Any, /) -> Rule:
    """``x * sigmoid(x)``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * share * (1 + x * (1 - share)), where share = sigmoid(x)
    """
    z, share = engines.elementwise.forward("silu", x), None
    if z is None:
        share = namespace(x).sigmoid(x)
        z = x * share
    z_bar = yield (z, z := None)[0]
    x_bar = engines.elementwise.back("silu", x, z_bar) if share is None else None
    if x_bar is None:
        share = namespace(x).sigmoid(x) if share is None else share
        x_bar = z_bar * (share * (1 + x * (1 - share)))
    yield x_bar


@elementwise
def _hardswish(x: Any, /) -> Rule:
    """``x * relu6(x + 3) / 6``.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (x / 3 + 1 / 2) between -3 and 3, nothing below, z_bar above
    """
    xp, low, high = namespace(x), base(x) <= -3, base(x) >= 3
    z = engines.elementwise.forward("hardswish", x)
    if z is None:
        z = x * xp.where(low, 0, xp.where(high, 1, x / 6 + 0.5))
    z_bar = yield (z, z := None)[0]
    x_bar = engines.elementwise.back("hardswish", x, z_bar)
    if x_bar is None:
        x_bar = z_bar * xp.where(low, 0, xp.where(high, 1, x / 3 + 0.5))
    yield x_bar


@elementwise
def _huber(x: Any, /, delta: float) -> Rule:
    """``x * x / 2`` up to delta from 0, and straight beyond.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (x, at most delta from 0)
    """
    xp = namespace(x)
    near = xp.minimum(xp.maximum(x, -delta), delta)
    z_bar = yield (near * (x - 0.5 * near), x := None)[0]
    yield z_bar * near


@elementwise
def _gelu(x: Any, /) -> Rule:
    """``x`` times the chance that a standard normal draw is below it.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * (cdf(x) + x * exp(-x * x / 2) / sqrt(2 * pi))
    """
    z, chance = engines.elementwise.forward("gelu", x), None
    if z is None:
        chance = _chance(x)
        z = x * chance
    z_bar = yield (z, z := None)[0]
    x_bar = engines.elementwise.back("gelu", x, z_bar) if chance is None else None
    if x_bar is None:
        chance = _chance(x) if chance is None else chance
        density = namespace(x).exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
        x_bar = z_bar * (chance + x * density)
    yield x_bar


def _chance(x: Any) -> Any:
    """The chance that a standard normal draw is below x."""
    return 0.5 * (1 + namespace(x).erf(x * math.sqrt(0.5)))


plain_affine: Any = _affine  # without a look at its operands
affine = fused(_affine, with_halves)
normalised, rows = fused(_normalised), fused(_rows, None)
mixed, rearranged = fused(_mixed), fused(_rearranged, None)
elu, gelu, logsigmoid = unary(_elu, floating=True), unary(_gelu), unary(_logsigmoid)
huber = unary(_huber, floating=True)
leaky_relu, silu = unary(_leaky_relu), unary(_silu, floating=True)
hardswish = unary(_hardswish, floating=True)
