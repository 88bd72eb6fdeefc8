"""Convolution by oneDNN: arrays lie with the channels last, weights as it likes best.

Measured over 17 layers of ResNet-50 and SqueezeNet on AVX2 (one thread, batch 32): with
the channels last it took 0.55 of PyTorch's time, in blocks of channels, which every
other operation would have to undo, 0.50, in PyTorch's order 0.61.

With AVX-512 oneDNN's kernels for blocks of channels take less time where results are
small and weights are many, and are used then: 0.54 to 0.95 with what brings arrays into
blocks and back (3 by 3, 256 to 1,024 channels, results of at most 7 by 7).

A window of one element on arrays in PyTorch's order is a product of matrices, which
BLAS computes as they lie: by themselves such layers took 1.0 of PyTorch's time, turned
round for oneDNN 1.6. So the engine leaves them.
"""

import math
from functools import lru_cache
from typing import Any

from lantern.engines import fourier, gpu, pointwise
from lantern.engines.arrays import FIRST, LAST, fit, in_rows, laid, single, steps
from lantern.engines.onednn import (
    Description,
    Layout,
    described,
    dims,
    has_avx512,
    is_on,
    threads,
)
from lantern.engines.phases import gathered, phased
from lantern.engines.plan import Plan, turned

__all__ = ["channels_last", "correlate", "match", "spread"]

_TRAINING, _DIRECT = 64, 1
_X, _W, _B, _Z = 1, 33, 41, 17
_X_BAR, _W_BAR, _Z_BAR = 129, 161, 145
_FEW = 4  # channels, of the 16 that oneDNN computes at a time
_MANY = 1 << 16  # weights, for each element of a window


def channels_last(x: Any, form: Any) -> Any:
    """An array as a convolution reads it that is to read it twice: turned round once.

    What is not for the engine stays as it is.
    """
    if len(form.size) > 3 or not single(x) or not is_on():
        return x
    x, order = laid(x)
    stays = order == LAST or pointwise.is_pointwise(form)
    return x if stays else turned(x)


def _likes_blocks(c: int, k: int, form: Any) -> bool:
    """Whether oneDNN is faster with channels in blocks, by the rule above."""
    if len(form.size) != 2 or form.groups != 1 or c * k < _MANY:
        return False
    return form.steps[1] < 8 and math.prod(form.size) > 1 and has_avx512()


def takes(form: Any, x: Any, w: Any, z: Any, bias: Any = None) -> bool:
    """Whether the engine computes with arrays, all but one of which are given."""
    given = [a for a in (x, w, z, bias) if a is not None]
    return all(map(single, given)) and is_on() and fit(form, x, w, z, bias)


def correlate(x: Any, w: Any, form: Any, bias: Any = None) -> Any:
    """The products of weights with each window; None where that is not for the engine.

    Args:
        x: an array.
        w: the weights.
        form: how windows lie on it, with ``size``, ``stride``, ``padding``,
            ``dilation``, ``groups`` and ``steps``.
        bias: is added to each channel; None for nothing.

    Shapes:
        x: (n, c, ...); w: (k, c / groups, ...); bias: (k,); result: (n, k, ...)
    """
    if not takes(form, x, w, None, bias):
        return gpu.convolution.correlate(x, w, form, bias)
    z = fourier.correlate(x, w, form)
    if z is not None:
        if bias is not None:
            z += bias.reshape(-1, 1, 1)
        return z
    x, order = laid(x)
    z = pointwise.correlate(x, w, form, bias)
    if z is not None or (order == FIRST and pointwise.is_pointwise(form)):
        return z
    plan = _forward(x.shape, order, w.shape, form, bias is not None, threads())
    if plan is None:
        return None
    w = in_rows(w)
    if bias is None:
        return plan.run(x, w)
    return plan.run(x, w, in_rows(bias))


def spread(z: Any, w: Any, form: Any) -> Any:
    """The transpose of ``correlate`` in its array; None as there.

    Shapes:
        z: (n, k, ...); w: (k, c / groups, ...); result: (n, c, ...)
    """
    if not takes(form, None, w, z):
        return gpu.convolution.spread(z, w, form)
    x = fourier.spread(z, w, form)
    if x is not None:
        return x
    if math.prod(form.size) > 1 and w.shape[1] <= _FEW and form.groups == 1:
        return _spread_to_few(z, w, form)
    z, order = laid(z)
    x = pointwise.spread(z, w, form)
    if x is not None or (order == FIRST and pointwise.is_pointwise(form)):
        return x
    plan = _backward(z.shape, order, w.shape, form, threads())
    return None if plan is None else plan.run(z, in_rows(w))


def _spread_to_few(z: Any, w: Any, form: Any) -> Any:
    """``spread`` where the array has few channels; perhaps None."""
    found = phased(w, form) if max(form.stride) > 1 else None
    if found is None:
        return None
    phases = correlate(z, *found)
    return None if phases is None else gathered(phases, form)


def match(x: Any, z: Any, form: Any) -> Any:
    """The transpose of ``correlate`` in its weights; None as there.

    Shapes:
        x: (n, c, ...); z: (n, k, ...); result: (k, c / groups, ...)
    """
    if not takes(form, x, None, z):
        return gpu.convolution.match(x, z, form)
    w = fourier.match(x, z, form)
    if w is not None:
        return w
    (x, one), (z, other) = laid(x), laid(z)
    w = pointwise.match(x, z, form)
    if w is not None or (one == other == FIRST and pointwise.is_pointwise(form)):
        return w
    plan = _weights(x.shape, one, z.shape, other, form, threads())
    return None if plan is None else plan.run(x, z)


class _Problem:
    """A convolution as oneDNN has it: layouts that it may choose, and numbers."""

    def __init__(self, n: int, c: int, k: int, form: Any, bias: bool = False) -> None:
        groups = form.groups
        self.x, self.z = (n, c, *form.lengths), (n, k, *form.steps)
        lead = (k, c) if groups == 1 else (groups, k // groups, c // groups)
        self.w = Layout((*lead, *form.size))
        self.weights = (*lead, *form.size)
        self.layouts = tuple(Layout(s, steps(s, LAST)) for s in (self.x, self.z))
        blocks = _likes_blocks(c, k, form)
        self.wanted = tuple(map(Layout, (self.x, self.z))) if blocks else self.layouts
        self.numbers = (
            dims(form.stride),
            dims([d - 1 for d in form.dilation]),
            dims([a for a, _ in form.padding]),
            dims([b for _, b in form.padding]),
        )
        self.bias = Layout((k,), (1,)) if bias else None
        x, z = self.wanted
        self.forward: Description | None = described(
            "convolution_forward",
            _TRAINING, _DIRECT, x, self.w, self.bias, z, *self.numbers,
        )  # fmt: skip

    def plain_weights(self) -> Layout:
        """The layout of weights as a program has them."""
        return Layout(self.weights, steps(self.weights))


@lru_cache(512)
def _forward(x: Any, order: int, w: Any, form: Any, bias: bool, _: int) -> Plan | None:
    problem = _Problem(x[0], x[1], w[0], form, bias)
    if problem.forward is None:
        return None
    given = [(_X, Layout(x, steps(x, order))), (_W, problem.plain_weights())]
    if problem.bias is not None:
        given.append((_B, problem.bias))
    return Plan(problem.forward, given, (_Z, problem.layouts[1]), problem.z, LAST)


@lru_cache(512)
def _backward(z: Any, order: int, w: Any, form: Any, _: int) -> Plan | None:
    problem = _Problem(z[0], w[1] * form.groups, w[0], form)
    if problem.forward is None:
        return None
    x_bar, z_bar = problem.wanted
    description = described(
        "convolution_backward_data",
        _DIRECT, x_bar, problem.w, z_bar, *problem.numbers, problem.forward,
    )  # fmt: skip
    if description is None:
        return None
    given = [(_Z_BAR, Layout(z, steps(z, order))), (_W, problem.plain_weights())]
    made = _X_BAR, problem.layouts[0]
    return Plan(description, given, made, problem.x, LAST)


@lru_cache(512)
def _weights(x: Any, one: int, z: Any, other: int, form: Any, _: int) -> Plan | None:
    problem = _Problem(x[0], x[1], z[1], form)
    if problem.forward is None:
        return None
    description = described(
        "convolution_backward_weights",
        _DIRECT, problem.layouts[0], problem.w, None, problem.layouts[1],
        *problem.numbers, problem.forward,
    )  # fmt: skip
    if description is None:
        return None
    given = [(_X, Layout(x, steps(x, one))), (_Z_BAR, Layout(z, steps(z, other)))]
    w = (z[1], x[1] // form.groups, *form.size)
    return Plan(description, given, (_W_BAR, problem.plain_weights()), w)
