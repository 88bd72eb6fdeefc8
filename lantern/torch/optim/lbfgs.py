"""A quasi-Newton method with a short memory, and its line search."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.core.residuals import copied
from lantern.eager.versions import written
from lantern.errors import OptionError
from lantern.torch.optim.optimizer import Optimizer, checked, parts, tracked
from lantern.torch.tensor.operators import in_memory

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Steps by an inverse Hessian estimated from the last few steps.

    Args:
        params: the parameters, in one group.
        lr: the step length, or the first one that the line search tries.
        max_iter: how many steps one call of ``step`` takes.
        max_eval: how often it may call the closure; by default 1.25 times as often.
        tolerance_grad: it ends where no gradient is larger.
        tolerance_change: it ends where no parameter changes by more.
        history_size: how many steps it remembers.
        line_search_fn: None, or "strong_wolfe".
        maximize: whether the loss is to become larger.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([p], lr=0.5)
        >>> def loss():
        ...     optimizer.zero_grad()
        ...     value = (p - 3.0).square().sum()
        ...     value.backward()
        ...     return value
        >>> _ = optimizer.step(loss)
        >>> p.data
        tensor([3.0000])

    References:
        Nocedal and Wright (2006), algorithms 7.4, 7.5, 3.5 and 3.6.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        checked(lr=lr)
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise OptionError(
                "LBFGS doesn't support per-parameter options (parameter groups)"
            )
        if line_search_fn not in (None, "strong_wolfe"):
            raise OptionError("only 'strong_wolfe' is supported")
        self._params = self.param_groups[0]["params"]

    def _gradient(self) -> Any:
        """The gradients of all parameters in a row."""
        found = [
            np.zeros_like(p.primal) if p.grad is None else p.grad.primal
            for p in self._params
        ]
        return np.concatenate([parts(g).reshape(-1) for g in found])

    def _place(self, start: list[Any], t: float, direction: Any) -> None:
        """Put the parameters where a step from a start leads."""
        i = 0
        for p, x in zip(self._params, start, strict=True):
            array = in_memory(p)
            row = parts(array)
            part = direction[i : i + row.size].reshape(row.shape)
            np.add(parts(x), part * t, out=row)
            written(array)
            i += row.size

    def step(self, closure: Any = None) -> Any:
        """Take up to ``max_iter`` steps; the loss before the first one."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        sign = -1.0 if group.get("maximize") else 1.0

        def seen(loss: Any) -> tuple[float, Any]:
            """What is made small, and its gradient."""
            state["func_evals"] += 1
            return sign * float(loss), sign * self._gradient()

        start, before = [copied(p.primal) for p in self._params], _snapshot(state)
        try:
            first = tracked(closure)
            point = seen(first)
            if abs(point[1]).max() > group["tolerance_grad"]:
                self._steps(group, state, point, lambda: seen(tracked(closure)))
        except BaseException:  # as if it had not begun
            for p, x in zip(self._params, start, strict=True):
                array = in_memory(p)
                array[...] = x
                written(array)
            state.clear()
            state.update(before)
            raise
        return first

    def _steps(
        self, group: Any, state: Any, point: Any, evaluated: Callable[[], Any]
    ) -> None:
        loss, g = point
        memory = state.setdefault("memory", {"s": [], "y": [], "scale": 1.0})
        calls, small = 1, group["tolerance_change"]
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = -g
            else:
                s, y = state["d"] * state["t"], g - state["prev_flat_grad"]
                _remember(memory, s, y, group["history_size"])
                d = _direction(memory, g)
            state["prev_flat_grad"], before = g, loss
            t = float(group["lr"])
            if state["n_iter"] == 1:
                t /= max(1.0, float(abs(g).sum()))
            slope = float(g @ d)
            state["d"], state["t"] = d, t
            if slope > -small:
                break
            start = [copied(p.primal) for p in self._params]
            if group["line_search_fn"] is not None:

                def along(t: float, start: Any = start, d: Any = d) -> Any:
                    self._place(start, t, d)
                    loss, g = evaluated()
                    return loss, g, float(g @ d)

                most = float(abs(d).max())
                loss, g, t, used = strong_wolfe(along, t, most, loss, g, slope)
                self._place(start, t, d)
                state["t"] = t
                calls += used
            else:
                self._place(start, t, d)
                if n != group["max_iter"]:
                    loss, g = evaluated()
                    calls += 1
            if (
                calls >= group["max_eval"]
                or abs(g).max() <= group["tolerance_grad"]
                or abs(d * t).max() <= small
                or abs(loss - before) < small
            ):
                break


def _snapshot(state: Any) -> dict[str, Any]:
    """What a step may change, as it is now."""
    memory = state.get("memory")
    if memory is None:
        return dict(state)
    lists = {"s": list(memory["s"]), "y": list(memory["y"])}
    return {**state, "memory": memory | lists}


def _remember(memory: Any, s: Any, y: Any, size: int) -> None:
    """Keep a step and the change of the gradient, if the curvature is positive."""
    curvature = float(y @ s)
    if curvature > 1e-10:
        if len(memory["s"]) == size:
            memory["s"].pop(0)
            memory["y"].pop(0)
        memory["s"].append(s)
        memory["y"].append(y)
        memory["scale"] = curvature / float(y @ y)


def _direction(memory: Any, g: Any) -> Any:
    """Minus the estimated inverse Hessian times the gradient, in two loops."""
    pairs = list(zip(memory["s"], memory["y"], strict=True))
    q, shares = -g, []
    for s, y in reversed(pairs):
        share = _dot(s, q) / _dot(y, s)
        shares.append(share)
        q = q - share * y
    d = q * memory["scale"]
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        d = d + s * (share - _dot(y, d) / _dot(y, s))
    return d


def _dot(x: Any, y: Any) -> Any:
    """A product of vectors as a number, but on a GPU, where nothing waits for it."""
    z = x @ y
    return float(z) if type(x) is np.ndarray else z


def _between(a: Any, b: Any, bounds: Any = None) -> float:
    """The minimum of the cubic through two points (t, value, slope), in bounds."""
    low, high = bounds or sorted((a[0], b[0]))
    d1 = a[2] + b[2] - 3 * (a[1] - b[1]) / (a[0] - b[0])
    square = d1 * d1 - a[2] * b[2]
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    if a[0] <= b[0]:
        t = b[0] - (b[0] - a[0]) * ((b[2] + d2 - d1) / (b[2] - a[2] + 2 * d2))
    else:
        t = a[0] - (a[0] - b[0]) * ((a[2] + d2 - d1) / (a[2] - b[2] + 2 * d2))
    return min(max(t, low), high)


def strong_wolfe(
    along: Callable[[float], Any],
    t: float,
    largest: float,
    loss: float,
    g: Any,
    slope: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance: float = 1e-9,
    tries: int = 25,
) -> tuple[float, Any, float, int]:
    """A step with enough decrease, to where the slope is small.

    Args:
        along: gives loss, gradient and slope for a step length.
        t: the first step length.
        largest: the largest element of the direction.
        loss: at the start.
        g: the gradient at the start.
        slope: at the start.
        c1: the share of the slope that the decrease must have.
        c2: the share of the slope that may be left.
        tolerance: an interval that is shorter is not divided.
        tries: how often to compute the loss at most.

    Returns:
        Loss, gradient, step length and the number of evaluations.

    References:
        Nocedal and Wright (2006), algorithms 3.5 and 3.6.
    """
    start = (0.0, loss, slope, g)

    def at(t: float) -> Any:
        loss, g, slope = along(t)
        return t, loss, slope, copied(g)

    def falls(point: Any) -> bool:
        return point[1] <= loss + c1 * point[0] * slope

    ends, used, done = _bracketed(start, at, falls, t, c2 * abs(slope), tries)
    if done:
        return ends[1], ends[3], ends[0], used
    best, more = _zoomed(
        ends, at, falls, c2 * abs(slope), largest, tolerance, tries + 1 - used
    )
    return best[1], best[3], best[0], used + more


def _bracketed(
    start: Any, at: Any, falls: Any, t: float, flat: float, tries: int
) -> tuple[Any, int, bool]:
    """An interval with a good point in it; or such a point itself."""
    before, point = start, at(t)
    for i in range(tries):
        if not falls(point) or (i and point[1] >= before[1]):
            return [before, point], i + 1, False
        if abs(point[2]) <= flat:
            return point, i + 1, True
        if point[2] >= 0:
            return [before, point], i + 1, False
        low, high = point[0] + 0.01 * (point[0] - before[0]), point[0] * 10
        t = _between(before, point, (low, high))
        before, point = point, at(t)
    return [start, point], tries + 1, False


def _zoomed(
    ends: list[Any],
    at: Any,
    falls: Any,
    flat: float,
    largest: float,
    tolerance: float,
    tries: int,
) -> tuple[Any, int]:
    """The best point in an interval, and how many were tried."""
    low = 0 if ends[0][1] <= ends[1][1] else 1
    used, stuck = 0, False
    while used < tries:
        a, b = sorted((ends[0][0], ends[1][0]))
        if (b - a) * largest < tolerance:
            break
        t, margin = _between(ends[0], ends[1]), 0.1 * (b - a)
        if min(b - t, t - a) < margin:
            if stuck or t >= b or t <= a:
                t = b - margin if abs(t - b) < abs(t - a) else a + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(t)
        used += 1
        if not falls(point) or point[1] >= ends[low][1]:
            ends[1 - low] = point
            low = 0 if ends[0][1] <= ends[1][1] else 1
            continue
        if abs(point[2]) <= flat:
            return point, used
        if point[2] * (ends[1 - low][0] - ends[low][0]) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = point
    return ends[low], used
