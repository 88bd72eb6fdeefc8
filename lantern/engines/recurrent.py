"""Layers of long short-term memories over all times, by oneDNN.

The rule: sequences of one length, of 20 times and 2 examples or more, 2 ** 20 products
of elements by the recurrent weight at all times, and a processor with AVX-512. There
(Intel Xeon, one thread, 32 to 650 units, 2 to 128 examples) it takes 0.36 to 0.98 of
the time of a step at a time, 0.67 in the middle; of 8 times 1.26, of one example 1.05.
oneDNN calls its implementation a reference, which multiplies as fast as any other.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from lantern.engines.arrays import empty_rows, filled, in_rows, room, single, steps
from lantern.engines.onednn import (
    Layout,
    Primitive,
    described,
    has_avx512,
    is_on,
    reorder,
    threads,
    workroom,
)

__all__ = ["Course", "course"]

_TRAINING, _BACKWARD, _ONWARDS, _BACKWARDS = 64, 128, 1, 2
_OPERANDS = _X, _H, _C, _W, _R, _B = 1, 2, 3, 33, 34, 41
_ROOM, _Z, _H_END, _C_END = _MADE = 64, 17, 18, 19
_BACK = 128  # from the number of an argument to that of its cotangent
_LEAST, _OFTEN = 1 << 20, 20
_FEW = 16  # examples, by which weights are read as they are on the way back


class _Way(NamedTuple):
    """A primitive, and what brings both weights into its order, or out of it.

    Attributes:
        primitive: with its arguments in the order of ``_numbers``.
        weights: for each weight what brings it into order, and how many bytes it has;
            None where it may stay as it is.
        size: bytes that the way there leaves for the way back.
    """

    primitive: Primitive
    weights: tuple[tuple[Primitive, int] | None, ...]
    size: int


class Course:
    """A layer's way through a sequence.

    Attributes:
        z: what it shows at all times, and what it keeps at the end.

    Args:
        operands: the inputs, the first states, both weights, and the bias.
        backwards: whether the last time comes first.

    Shapes:
        operands: (t, m, k), (m, n), (m, n), (4 n, k), (4 n, n), (4 n,);
        z: (t m + m, n)
    """

    def __init__(self, operands: tuple[Any, ...], backwards: bool) -> None:
        self.operands, states = tuple(map(in_rows, operands)), operands[1].shape
        self.form = *operands[0].shape, states[1], backwards, threads()
        way = _forward(*self.form)
        times, m = self.form[:2]
        z = self.z = empty_rows((times * m + m, states[1]))
        self.made = room(way.size), z[:-m], empty_rows(states), z[-m:]
        way.primitive.run(*self._placed(way), *self.made)

    def _placed(self, way: _Way) -> list[Any]:
        """The operands, both weights in the order of a primitive."""
        placed = list(self.operands)
        for i, move in zip((3, 4), way.weights, strict=True):
            if move is not None:
                placed[i] = workroom(_OPERANDS[i], move[1])
                move[0].run(self.operands[i], placed[i])
        return placed

    def back(self, z_bar: Any) -> tuple[Any, ...] | None:
        """What each operand receives; None if that is not for the engine.

        Shapes:
            z_bar: (t m + m, n)
        """
        if not (single(z_bar) and z_bar.shape == self.z.shape and is_on()):
            return None
        way, out = _backward(*self.form)
        z_bar, m = in_rows(z_bar), self.form[1]
        shown_bar = empty_rows(self.made[2].shape)
        bars = [empty_rows(a.shape) for a in self.operands]
        sums = [
            # Where a weight on the way there was, if it is not read on the way back.
            workroom(number if move is None else number + _BACK, size)
            for number, move, (_, size) in zip((_W, _R), way.weights, out, strict=True)
        ]
        for total in (shown_bar, *sums, bars[5]):  # to which is added
            total[...] = 0
        given = *self._placed(way), *self.made, z_bar[:-m], shown_bar, z_bar[-m:]
        way.primitive.run(*given, *bars[:3], *sums, bars[5])
        for (move, _), total, bar in zip(out, sums, bars[3:5], strict=True):
            move.run(total, bar)
        return tuple(bars)


def course(operands: tuple[Any, ...], backwards: bool) -> Course | None:
    """A layer's way through a sequence; None if that is not for the engine.

    Args:
        operands: as ``Course`` has them, the bias perhaps None.
        backwards: whether the last time comes first.
    """
    x, h, memory, weight, recurrent, bias = operands
    if bias is None:
        bias = filled(len(weight), 0)
    operands = x, h, memory, weight, recurrent, bias
    if not (is_on() and all(map(single, operands)) and x.ndim == 3 and h.ndim == 2):
        return None
    (times, m, k), n = x.shape, h.shape[1]
    shapes = x.shape, (m, n), (m, n), (4 * n, k), (4 * n, n), (4 * n,)
    fit = tuple(a.shape for a in operands) == shapes and m > 1 and times >= _OFTEN
    if not fit or times * m * recurrent.size < _LEAST or not has_avx512():
        return None
    if _described(*x.shape, n, backwards, threads())[0] is None:
        return None
    return Course(operands, backwards)


@lru_cache(512)
def _described(t: int, m: int, k: int, n: int, backwards: bool, _: int) -> Any:
    """The description of the way there, the layouts of its arguments, its direction."""
    x, z, states, bias = map(_plain, ((t, m, k), (t, m, n), (1, 1, m, n), (1, 1, 4, n)))
    weights = Layout((1, 1, k, 4, n)), Layout((1, 1, n, 4, n))
    first, last = (x, states, states), (None, None, bias, z, states, states)
    direction = _BACKWARDS if backwards else _ONWARDS
    forward = described(
        "lstm_forward", _TRAINING, direction, *first, *weights, *last, 0
    )
    return forward, (first, weights, last), direction


def _plain(shape: Any) -> Layout:
    return Layout(shape, steps(shape))


def _weights(k: int, n: int) -> tuple[Layout, Layout]:
    """Both weights, (4 n, k) and (4 n, n), with axes for layers, ways, and gates."""
    sizes = ((w, 4 * n * w) for w in (k, n))
    one, other = (
        Layout((1, 1, w, 4, n), (size, size, 1, n * w, w)) for w, size in sizes
    )
    return one, other


@lru_cache(512)
def _forward(*form: Any) -> _Way:
    return _way(_described(*form)[0], form, (*_OPERANDS, *_MADE))


@lru_cache(512)
def _backward(*form: Any) -> tuple[_Way, Any]:
    """The way back, and what brings the weights' cotangents out of its order."""
    forward, (first, weights, last), direction = _described(*form)
    lie = _weights(*form[2:4])
    given = lie if form[1] <= _FEW else weights
    layouts = *first, *given, *last, *first, *weights, *last
    description = described("lstm_backward", _BACKWARD, direction, *layouts, 0, forward)
    bars = [number + _BACK for number in (_Z, _H_END, _C_END, *_OPERANDS)]
    way = _way(description, form, (*_OPERANDS, *_MADE, *bars))
    numbers = _W + _BACK, _R + _BACK
    out = [
        (reorder(description.layout(number), layout), description.size(number))
        for number, layout in zip(numbers, lie, strict=True)
    ]
    return way, out


def _way(description: Any, form: Any, numbers: Any) -> _Way:
    weights = tuple(
        None
        if description.takes(number, lies)
        else (reorder(lies, description.layout(number)), description.size(number))
        for number, lies in zip((_W, _R), _weights(*form[2:4]), strict=True)
    )
    return _Way(Primitive(description, *numbers), weights, description.size(_ROOM))
