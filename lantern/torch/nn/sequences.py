"""A recurrent layer over all times as one rule, whose weight has one product back.

Rows of all times lie one after another, as in a packed sequence, each with its gates
side by side: what does not depend on the time before is computed for all at once.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lantern.core.namespace import common_namespace, namespace
from lantern.core.value import Rule
from lantern.engines import recurrent as engine
from lantern.op import op
from lantern.torch.nn.products import LayerProduct, multiplier, product, times
from lantern.torch.nn.rules import added, over_rows, plain
from lantern.torch.nn.starting import fused

__all__ = ["course", "memories", "over_time"]


class Step(NamedTuple):
    """One time of a sequence.

    Attributes:
        here: its rows.
        going: how many of its examples the time before has had; the others start here.
    """

    here: slice
    going: int


@lru_cache(64)
def course(sizes: tuple[int, ...], backwards: bool) -> tuple[Step, ...]:
    """The times of a sequence as they are passed through.

    Args:
        sizes: how many examples still run at a time.
        backwards: whether the last time comes first.
    """
    steps, last, stop = [], 0, sum(sizes) if backwards else 0
    for n in reversed(sizes) if backwards else sizes:
        start = stop - n if backwards else stop
        steps.append(Step(slice(start, start + n), min(n, last)))
        last, stop = n, start if backwards else start + n
    return tuple(steps)


def _is_even(steps: Any, n: int) -> bool:
    """Whether all of n examples run at each time."""
    return all(here.stop - here.start == n for here, _ in steps)


def _most(steps: Any) -> int:
    """How many examples run at once, at most."""
    return max(here.stop - here.start for here, _ in steps)


@op
def _memories(
    x: Any, h: Any, memory: Any, recurrent: Any, bias: Any, /, steps: Any
) -> Rule:
    """A long short-term memory over all times: what it shows, and what it keeps.

    Args:
        steps: the times, by ``course``.

    Shapes:
        x: (rows, 4 n), the products of the inputs; h, memory: (m, n), where examples
        start; recurrent: (4 n, n); bias: (4 n,) or None; result: (2, rows, n)

    Rule:
        at each time as the rule of ``gates.cell``, with h and kept of the time before

    References:
        Hochreiter and Schmidhuber (1997); Gers et al. (2000).
    """
    alike = _alike(x, h, memory, recurrent, bias)
    forth = _memorised if alike else _any_memorised
    z, gates, bent = forth(x, h, memory, recurrent, bias, steps)
    del x, bias
    z_bar = yield z
    there = z, gates, bent
    gates_bar, h_bar, memory_bar, met_h = _sent_back(
        z_bar, there, h, memory, recurrent, steps
    )
    yield gates_bar
    yield h_bar
    yield memory_bar
    yield LayerProduct(gates_bar, met_h)
    yield over_rows(gates_bar)


def _sent_back(
    z_bar: Any, there: Any, h: Any, memory: Any, recurrent: Any, steps: Any
) -> tuple[Any, ...]:
    """What gates and first states receive, and the states that products have met."""
    z, gates, bent = there
    met_h, met = _met(z[0], h, steps), _met(z[1], memory, steps)
    alike = _alike(z_bar, z, gates, memory, h, recurrent)
    back = _memorised_back if alike else _any_memorised_back
    return *back(z_bar, gates, met, bent, recurrent, steps), met_h


def _alike(x: Any, *others: Any) -> bool:
    """Whether no array is tracked by an outer derivative, and all are of one type."""
    given = [y for y in others if y is not None]
    return plain(x) and all(plain(y) and y.dtype == x.dtype for y in given)


def _joined(parts: list[Any], axis: int = 0) -> Any:
    """Arrays behind each other."""
    if len(parts) == 1:
        return parts[0]
    return common_namespace(*parts).concatenate(parts, axis=axis)


def _started(going: Any, first: Any, n: int) -> Any:
    """The states of n examples: of those that go on, and of those that start."""
    m = going.shape[0]
    if m >= n:
        return going if m == n else going[:n]
    return _joined([going, first[m:n]]) if m else first[:n]


def _met(states: Any, first: Any, steps: Any) -> Any:
    """The states that each row meets: those of the time before."""
    n = first.shape[0]
    if _is_even(steps, n):
        return _joined(
            [states[n:], first] if steps[0].here.start else [first, states[:-n]]
        )
    parts, before = {}, slice(0, 0)
    for here, going in steps:
        m = here.stop - here.start
        going_on = states[before.start : before.start + going]
        parts[here.start] = _started(going_on, first, m)
        before = here
    return _joined([parts[start] for start in sorted(parts)])


def _sigmoids(xp: Any, n: int, dtype: Any) -> tuple[Any, Any]:
    """What makes sigmoids of the tanh of three of four gates: factors, and summands.

    ``sigmoid(x) = tanh(x / 2) / 2 + 1 / 2``.
    """
    factors, summands = xp.full(4 * n, 0.5, dtype), xp.full(4 * n, 0.5, dtype)
    factors[2 * n : 3 * n], summands[2 * n : 3 * n] = 1, 0
    return factors, summands


def _parts(gates: Any) -> tuple[Any, ...]:
    """Four gates that lie side by side."""
    n = gates.shape[1] // 4
    return tuple(gates[:, i * n : (i + 1) * n] for i in range(4))


def _memorised(
    x: Any, h: Any, memory: Any, recurrent: Any, bias: Any, steps: Any
) -> tuple[Any, ...]:
    """The result, the gates, and the bent memory of all times."""
    xp = namespace(x)
    gates = x.copy() if bias is None else x + bias
    n = recurrent.shape[1]
    factors, summands = _sigmoids(xp, n, gates.dtype)
    z, bent = xp.empty((2, len(x), n), gates.dtype), xp.empty((len(x), n), gates.dtype)
    shown, kept = z[0], z[1]
    enter, forget, new, out = _parts(gates)
    multiply, before = multiplier(recurrent.T, _most(steps), len(steps)), slice(0, 0)
    for here, going in steps:
        last = slice(before.start, before.start + going)
        row, c, m = gates[here], kept[here], here.stop - here.start
        row += multiply(_started(shown[last], h, m))
        row *= factors
        xp.tanh(row, out=row)
        row *= factors
        row += summands
        xp.multiply(forget[here], _started(kept[last], memory, m), out=c)
        c += enter[here] * new[here]
        xp.multiply(out[here], xp.tanh(c, out=bent[here]), out=shown[here])
        before = here
    return z, gates, bent


def _first(parts: list[Any]) -> tuple[Any, Any]:
    """Of both states, where examples start; those that start last come first here."""
    shown, kept = (_joined(list(rows)) for rows in zip(*parts[::-1], strict=True))
    return shown, kept


def _memorised_back(
    z_bar: Any, gates: Any, met: Any, bent: Any, recurrent: Any, steps: Any
) -> tuple[Any, Any, Any]:
    """What gates and first states receive; bent is written to."""
    xp = namespace(gates)
    shown_bar, kept_bar = z_bar.copy()
    enter, forget, new, out = _parts(gates)
    slopes = gates - gates * gates
    by_enter, by_forget, by_new, by_out = _parts(slopes)
    by_enter *= new
    by_forget *= met
    by_new[...] = enter - enter * new * new
    by_out *= bent
    bent *= bent
    xp.subtract(1, bent, out=bent)
    bent *= out
    n = bent.shape[1]
    by_kept = slopes.reshape(-1, 4, n)[:, :3]
    firsts: list[Any] = []
    end = len(steps) - 1
    multiply = multiplier(recurrent, _most(steps), len(steps))
    for i in range(end, -1, -1):
        here, going = steps[i]
        s, c = shown_bar[here], kept_bar[here]
        c += s * bent[here]
        part = by_kept[here]
        part *= c[:, None]
        part = by_out[here]
        part *= s
        c *= forget[here]
        back = multiply(slopes[here])
        if going:
            start = steps[i - 1].here.start
            last = slice(start, start + going)
            part = shown_bar[last]
            part += back[:going]
            part = kept_bar[last]
            part += c[:going]
        if going < len(c) or not going:
            firsts.append((back[going:], c[going:]))
    return slopes, *_first(firsts)


def _any_memorised(
    x: Any, h: Any, memory: Any, recurrent: Any, bias: Any, steps: Any
) -> tuple[Any, ...]:
    """As ``_memorised``, of what an outer derivative tracks."""
    rows: dict[int, list[Any]] = {}
    shown, kept = h[:0], memory[:0]
    for here, going in steps:
        m = here.stop - here.start
        shown, kept = (
            _started(a[:going], b, m) for a, b in ((shown, h), (kept, memory))
        )
        parts = _parts(added(added(product(shown, recurrent), x[here]), bias))
        xp = namespace(parts[0])
        enter, forget, out = (xp.tanh(parts[i] * 0.5) * 0.5 + 0.5 for i in (0, 1, 3))
        new = xp.tanh(parts[2])
        kept = forget * kept + enter * new
        bent = namespace(kept).tanh(kept)
        shown = out * bent
        gates = _joined([enter, forget, new, out], 1)
        rows[here.start] = [shown, kept, gates, bent]
    shown, kept, gates, bent = (
        _joined(list(parts))
        for parts in zip(*[rows[i] for i in sorted(rows)], strict=True)
    )
    return common_namespace(shown, kept).stack([shown, kept]), gates, bent


def _any_memorised_back(
    z_bar: Any, gates: Any, met: Any, bent: Any, recurrent: Any, steps: Any
) -> tuple[Any, Any, Any]:
    """As ``_memorised_back``, of what an outer derivative tracks."""
    rows: dict[int, Any] = {}
    firsts: list[Any] = []
    more: Any = None
    for here, going in reversed(steps):
        s, c = z_bar[0][here], z_bar[1][here]
        if more is not None:
            s, c = (_started_more(a, b) for a, b in zip((s, c), more, strict=True))
        enter, forget, new, out = _parts(gates[here])
        b = bent[here]
        c = c + s * out * (1 - b * b)
        parts = [
            c * new * enter * (1 - enter), c * met[here] * forget * (1 - forget),
            c * enter * (1 - new * new), s * b * out * (1 - out),
        ]  # fmt: skip
        rows[here.start] = _joined(parts, 1)
        more = times(rows[here.start], recurrent), c * forget
        if going < here.stop - here.start or not going:
            firsts.append([part[going:] for part in more])
        more = [part[:going] for part in more]
    gates_bar = _joined([rows[i] for i in sorted(rows)])
    return gates_bar, *_first(firsts)


def _started_more(x: Any, more: Any) -> Any:
    """The sum of an array and another, which has perhaps fewer rows."""
    n = more.shape[0]
    if n == x.shape[0]:
        return x + more
    return _joined([x[:n] + more, x[n:]]) if n else x


@op
def _over_time(
    x: Any, h: Any, memory: Any, weight: Any, recurrent: Any, bias: Any, more: Any, /,
    steps: Any,
) -> Rule:  # fmt: skip
    """A long short-term memory over all times, of inputs, by an engine if one takes it.

    Args:
        steps: the times, by ``course``, which all examples have.

    Shapes:
        x: (rows, k); h, memory: (m, n); weight: (4 n, k); recurrent: (4 n, n);
        bias, more: (4 n,) or None; result: (rows + m, n), what is shown at all times,
        and what is kept at the end

    Rule:
        as ``memories`` of ``x @ weight.T + bias``
    """
    both = bias if more is None else more if bias is None else bias + more
    operands = x, h, memory, weight, recurrent, both
    alike, last = _alike(*operands), steps[-1].here
    past, there = _by_engine(operands, steps) if alike else None, None
    if past is not None:
        z = past.z
    else:
        there = _by_parts(operands, steps, alike)
        z = _joined([there[0][0], there[0][1][last]])
    del bias, more, both
    z_bar = yield z
    bars = past.back(z_bar) if past is not None and plain(z_bar) else None
    if bars is not None:
        x_bar, h_bar, memory_bar, weight_bar, recurrent_bar, bias_bar = bars
        yield x_bar.reshape(x.shape)
    else:
        if there is None:
            there = _by_parts(operands, steps, alike)
        z_bar = _at_all_times(z_bar, len(h), last)
        gates_bar, h_bar, memory_bar, met_h = _sent_back(
            z_bar, there, h, memory, recurrent, steps
        )
        yield lambda: times(gates_bar, weight)
        weight_bar, recurrent_bar = (LayerProduct(gates_bar, a) for a in (x, met_h))
        bias_bar = over_rows(gates_bar)
    yield h_bar
    yield memory_bar
    yield weight_bar
    yield recurrent_bar
    yield bias_bar
    yield bias_bar


def _by_engine(operands: Any, steps: Any) -> Any:
    """The way of plain arrays through a sequence; None if that is not for an engine."""
    x, *others = operands
    if type(x) is not np.ndarray:
        return None
    inputs = x.reshape(len(steps), -1, x.shape[1])
    return engine.course((inputs, *others), steps[0].here.start > 0)


def _by_parts(operands: Any, steps: Any, alike: bool) -> tuple[Any, ...]:
    """As ``_memorised``, of inputs."""
    x, h, memory, weight, recurrent, bias = operands
    forth = _memorised if alike else _any_memorised
    return forth(product(x, weight), h, memory, recurrent, bias, steps)


def _at_all_times(z_bar: Any, m: int, last: slice) -> Any:
    """The cotangents of what is shown, and of what is kept, 0 but at the end."""
    xp = namespace(z_bar)
    shown_bar, kept_bar = z_bar[:-m], z_bar[-m:]
    none = xp.zeros(shown_bar[m:].shape, dtype=shown_bar.dtype)
    kept = [none, kept_bar] if last.start else [kept_bar, none]
    return xp.stack([shown_bar, _joined(kept)])


memories = fused(_memories)
over_time = fused(_over_time)
