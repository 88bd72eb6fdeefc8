"""Recurrent layers, in either direction or both, with lengths and peepholes."""

from typing import Any

import numpy as np

from lantern.errors import OptionError
from lantern.onnx.operators.faces import on_arrays
from lantern.onnx.operators.table import operator
from lantern.torch.nn import functional

__all__: list[str] = []


def _sigmoid(x: Any) -> Any:
    return on_arrays(functional.sigmoid, x)


# Functions of gates: of the array, alpha and beta; and what those are if not given.
_GATES: dict[str, tuple[Any, float, float]] = {
    "relu": (lambda x, a, b: on_arrays(functional.relu, x), 0, 0),
    "tanh": (lambda x, a, b: np.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: _sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: a * x + b, 1, 0),
    "leakyrelu": (lambda x, a, b: np.where(x >= 0, x, a * x), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, 0 * x), 1, 0),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1, 1),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), 1, 0),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), 0, 0),
    "softplus": (lambda x, a, b: np.logaddexp(x, x.dtype.type(0)), 0, 0),
}


def _functions(names: Any, alphas: Any, betas: Any, default: Any, count: int) -> Any:
    """The functions of the gates, those of each direction in turn."""
    names = list(names or default * count)
    alphas, betas = list(alphas or []), list(betas or [])
    found = []
    for name in names:
        if name.lower() not in _GATES:
            raise OptionError(
                f"onnx: a gate has the function {name!r}. Known are {sorted(_GATES)}."
            )
        function, alpha, beta = _GATES[name.lower()]
        takes_alpha = alpha or beta
        takes_beta = name.lower() in ("affine", "scaledtanh", "hardsigmoid")
        alpha = alphas.pop(0) if alphas and takes_alpha else alpha
        beta = betas.pop(0) if betas and takes_beta else beta
        found.append(lambda x, function=function, a=alpha, b=beta: function(x, a, b))
    each = len(found) // count
    return [found[i * each : (i + 1) * each] for i in range(count)]


def _swept(
    step: Any, x: Any, states: list[Any], lengths: Any, backward: bool
) -> tuple[Any, list[Any]]:
    """All states in the order of time, and the last ones of each example.

    Args:
        step: the new states from an element in time and the old states.
        x: the elements, the axis of time first.
        states: those before the first.
        lengths: of each example, how many elements it has; None for all.
        backward: whether time runs from each example's end.
    """
    times = range(x.shape[0])
    outputs: list[Any] = [None] * x.shape[0]
    for t in reversed(times) if backward else times:
        new = step(x[t], *states)
        if lengths is None:
            states = new
            outputs[t] = new[0]
        else:
            there = (t < lengths)[:, None]
            states = [
                np.where(there, z, old) for z, old in zip(new, states, strict=True)
            ]
            outputs[t] = np.where(there, new[0], 0 * new[0])
    return np.stack(outputs), states


def _layer(
    x: Any, count: int, hidden: int, initial: list[Any], lengths: Any, direction: str,
    layout: int, cell: Any,
) -> Any:  # fmt: skip
    """A layer in one direction or both.

    Args:
        cell: of a direction's number, its step.
        initial: states before the first element, one more axis for the direction; None
            for zeros.
    """
    if layout:
        x = np.swapaxes(x, 0, 1)
        initial = [s if s is None else np.swapaxes(s, 0, 1) for s in initial]
    batch = x.shape[1]
    if lengths is not None and (np.asarray(lengths) == x.shape[0]).all():
        lengths = None
    found, last = [], []
    for d in range(count):
        zeros = np.zeros((batch, hidden), x.dtype)
        states = [zeros if s is None else s[d] for s in initial]
        backward = direction == "reverse" or d == 1
        z, states = _swept(cell(d), x, states, lengths, backward)
        found.append(z)
        last.append(states)
    y = np.stack(found, axis=1)
    ends = [np.stack(parts) for parts in zip(*last, strict=True)]
    if layout:
        y = np.transpose(y, (2, 0, 1, 3))
        ends = [np.swapaxes(e, 0, 1) for e in ends]
    return (y, *ends)


def _count(direction: str) -> int:
    if direction not in ("forward", "reverse", "bidirectional"):
        raise OptionError(f"onnx: a layer has the direction {direction!r}.")
    return 2 if direction == "bidirectional" else 1


def _clipped(clip: float | None) -> Any:
    return (lambda x: x) if not clip else (lambda x: np.clip(x, -clip, clip))


@operator("RNN", since=7, reals_only=True)
def rnn(
    X: Any, W: Any, R: Any, B: Any = None, sequence_lens: Any = None,
    initial_h: Any = None, activation_alpha: Any = None, activation_beta: Any = None,
    activations: Any = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int = 0, layout: int = 0,
) -> Any:  # fmt: skip
    """``h = f(x W' + h R' + b)``."""
    count, n = _count(direction), R.shape[-1]
    gates = _functions(activations, activation_alpha, activation_beta, ["Tanh"], count)
    cut = _clipped(clip)

    def cell(d: int) -> Any:
        (f,) = gates[d]
        b = 0 if B is None else B[d][:n] + B[d][n:]
        return lambda x, h: [f(cut(x @ W[d].T + h @ R[d].T + b))]

    return _layer(X, count, n, [initial_h], sequence_lens, direction, layout, cell)


@operator("GRU", since=7, reals_only=True)
def gru(
    X: Any, W: Any, R: Any, B: Any = None, sequence_lens: Any = None,
    initial_h: Any = None, activation_alpha: Any = None, activation_beta: Any = None,
    activations: Any = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int = 0, layout: int = 0, linear_before_reset: int = 0,
) -> Any:  # fmt: skip
    """Gates z and r, and a new state; the reset before or behind its product."""
    count, n = _count(direction), R.shape[-1]
    default = ["Sigmoid", "Tanh"]
    gates = _functions(activations, activation_alpha, activation_beta, default, count)
    cut = _clipped(clip)

    def cell(d: int) -> Any:
        f, g = gates[d]
        bias = np.zeros(6 * n, X.dtype) if B is None else B[d]
        wb, rb = bias[: 3 * n], bias[3 * n :]
        w, r = W[d].T, R[d].T

        def step(x: Any, h: Any) -> list[Any]:
            a = x @ w + wb
            b = h @ r[:, : 2 * n] + rb[: 2 * n]
            z = f(cut(a[:, :n] + b[:, :n]))
            s = f(cut(a[:, n : 2 * n] + b[:, n : 2 * n]))
            if linear_before_reset:
                c = s * (h @ r[:, 2 * n :] + rb[2 * n :])
            else:
                c = (s * h) @ r[:, 2 * n :] + rb[2 * n :]
            new = g(cut(a[:, 2 * n :] + c))
            return [(1 - z) * new + z * h]

        return step

    return _layer(X, count, n, [initial_h], sequence_lens, direction, layout, cell)


@operator("LSTM", since=7, reals_only=True)
def lstm(
    X: Any, W: Any, R: Any, B: Any = None, sequence_lens: Any = None,
    initial_h: Any = None, initial_c: Any = None, P: Any = None,
    activation_alpha: Any = None, activation_beta: Any = None, activations: Any = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int = 0,
    input_forget: int = 0, layout: int = 0,
) -> Any:  # fmt: skip
    """Gates i, o, f and c, with peepholes."""
    count, n = _count(direction), R.shape[-1]
    default = ["Sigmoid", "Tanh", "Tanh"]
    gates = _functions(activations, activation_alpha, activation_beta, default, count)
    cut = _clipped(clip)

    def cell(d: int) -> Any:
        f, g, h_of = gates[d]
        bias = 0 if B is None else B[d][: 4 * n] + B[d][4 * n :]
        p = None if P is None else [P[d][i * n : (i + 1) * n] for i in range(3)]
        w, r = W[d].T, R[d].T

        def step(x: Any, h: Any, c: Any) -> list[Any]:
            a = x @ w + h @ r + bias
            i, o, forget, new = (a[:, k * n : (k + 1) * n] for k in range(4))
            if p is not None:
                i, forget = i + p[0] * c, forget + p[2] * c
            i = f(cut(i))
            forget = 1 - i if input_forget else f(cut(forget))
            c = forget * c + i * g(cut(new))
            o = f(cut(o if p is None else o + p[1] * c))
            return [o * h_of(c), c]

        return step

    states = [initial_h, initial_c]
    return _layer(X, count, n, states, sequence_lens, direction, layout, cell)
