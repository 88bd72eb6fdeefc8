"""Ordinary differential equations, under the name of ``scipy.integrate``.

The derivative goes through the steps that were taken: f may hold tracked values by
closure, and every mode and order of derivative works. How long the steps are is a
constant, chosen by the error of the plain values.
"""

from collections.abc import Callable
from typing import Any

from lantern.core.value import base
from lantern.errors import ArgumentError, LanternError
from lantern.tensor.ops.concat_stack import stack
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.matrix_forms import plain_namespace

__all__ = ["IntegrationError", "odeint"]

# Where the stages of a step lie, and what each takes of those before it.
_NODES = (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
_STAGES: tuple[tuple[float, ...], ...] = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The difference between the methods of orders 5 and 4.
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class IntegrationError(LanternError, ArithmeticError):
    """A differential equation could not be followed to the end.

    Example:
        >>> import numpy as np
        >>> odeint(lambda y, t: -y, 1.0, np.array([0.0, 1.0]), mxstep=2)
        Traceback (most recent call last):
            ...
        lantern.scipy.integrate.IntegrationError: odeint: 2 steps were not ...
    """


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...] = (),
    *,
    rtol: float = 1.49012e-8,
    atol: float = 1.49012e-8,
    mxstep: int = 10_000,
) -> Any:
    """The solution of ``dy/dt = func(y, t, *args)`` at given times.

    By an explicit method of order 5, with steps as long as the error allows; a stiff
    equation needs many. Differentiable in y0, t, args, and what func closes over.

    Args:
        func: gives the slope of y at a time, in y's shape.
        y0: y at the first time.
        t: the times, in order, forward or backward.
        args: further arguments of func.
        rtol: the error that a step may have, relative to y.
        atol: the error that it may have where y is near 0.
        mxstep: the largest number of steps from one time to the next.

    Shapes:
        y0: (...); t: (n,); result: (n, ...)

    Raises:
        ArgumentError: if t has not one axis.
        IntegrationError: if mxstep steps are not enough.

    Example:
        >>> import numpy as np
        >>> odeint(lambda y, t: -y, 1.0, np.array([0.0, 1.0])).round(6)
        array([1.      , 0.367879])

    References:
        Dormand and Prince (1980), table 2; Hairer, Norsett and Wanner (1993), II.4.
    """
    y, t = asarray(y0), asarray(t)
    if len(t.shape) != 1 or t.shape[0] == 0:
        raise ArgumentError(
            f"odeint: t must be an array of times with one axis, got shape {t.shape}. "
            f"Give the time of y0, and those at which y is wanted."
        )
    found, step = [y + 0.0], None

    def slope(y: Any, time: Any) -> Any:
        return asarray(func(y, time, *args))

    for i in range(1, t.shape[0]):
        whole = Interval(slope, t[i - 1], t[i], rtol, atol)
        y, step = whole.cross(y, step, mxstep)
        found.append(y)
    return stack(found)


class Interval:
    """The way from one time to the next.

    Args:
        slope: gives the slope of y at a time.
        start: the first time, tracked or not.
        stop: the second one.
        rtol, atol: the tolerances.
    """

    def __init__(
        self,
        slope: Callable[[Any, Any], Any],
        start: Any,
        stop: Any,
        rtol: float,
        atol: float,
    ) -> None:
        self.slope, self.start, self.length = slope, start, stop - start
        self.rtol, self.atol = rtol, atol

    def cross(self, y: Any, step: float | None, mxstep: int) -> tuple[Any, float]:
        """y at the end, and how long the steps were, in time."""
        length = abs(float(base(self.length)))
        first = self.slope(y, self.start)
        if step and length:
            share = min(1.0, step / length)
        else:
            share = self._first_share(y, first) if length else 1.0
        done = 0.0
        for _ in range(mxstep):
            share = min(share, 1 - done)
            new, last, error = self._step(y, first, done, share)
            if error <= 1:
                y, first, done = new, last, done + share
            if error <= 1 and 1 - done < 1e-14:
                return y, share * length
            share *= min(5.0, max(0.2, 0.9 * max(error, 1e-10) ** -0.2))
        raise IntegrationError(
            f"odeint: {mxstep} steps were not enough from {base(self.start)} on; the "
            f"last was {share * length:.3g}. Raise mxstep, rtol or atol; if the "
            f"equation is stiff, take another method."
        )

    def _step(self, y: Any, first: Any, done: float, share: float) -> Any:
        """y after one step, the slope there, and the error divided by what is allowed.

        The length of the step is a constant part of the interval's, so that the
        derivative with respect to both times is right.
        """
        length, slopes = self.length * share, [first]
        new = y
        for node, weights in zip(_NODES[1:], _STAGES[1:], strict=True):
            new = y + length * _mixed(weights, slopes)
            slopes.append(
                self.slope(new, self.start + self.length * (done + share * node))
            )
        xp = plain_namespace(new)
        off = xp.abs(base(length) * _mixed(_ERROR, [base(k) for k in slopes]))
        size = xp.maximum(xp.abs(base(y)), xp.abs(base(new)))
        allowed = self.atol + self.rtol * size
        return new, slopes[-1], float(xp.sqrt(xp.mean((off / allowed) ** 2)))

    def _first_share(self, y: Any, first: Any) -> float:
        """A step on which y hardly changes, as a part of the interval."""
        xp, y, first = plain_namespace(y), base(y), base(first)
        size = self.atol + self.rtol * xp.abs(y)
        near = float(xp.sqrt(xp.mean((y / size) ** 2)))
        fast = float(xp.sqrt(xp.mean((first / size) ** 2)))
        step = 0.01 * near / fast if min(near, fast) > 1e-5 else 1e-6
        return min(1.0, step / abs(float(base(self.length))))


def _mixed(weights: Any, slopes: Any) -> Any:
    """A weighted sum of slopes."""
    pairs = zip(weights, slopes, strict=True)
    terms = [weight * slope for weight, slope in pairs if weight]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
