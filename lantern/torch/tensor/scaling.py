"""Large tensors times a number, or over one: what is nothing stays nothing.

``multiply`` and ``divide`` would do; these may ask an engine, and as their factor is
finite, a cotangent that came through a branch needs no mask once more.
"""

from typing import Any

import numpy as np

from lantern import engines
from lantern.core.value import Rule
from lantern.op import additive

__all__ = ["LEAST", "divided", "is_scale", "multiplied"]

LEAST = 1 << 14
_LEAST_FACTOR, _MOST_FACTOR = 1e-37, 1e38  # in single precision neither 0 nor infinite


def is_scale(number: Any) -> bool:
    """Whether a tensor may be scaled by a number here."""
    return type(number) is float and _LEAST_FACTOR < abs(number) < _MOST_FACTOR


@additive
def multiplied(x: Any, /, number: float) -> Rule:
    """A tensor times a number.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar * number
    """
    z_bar = yield (_times(x, number), x := None)[0]
    yield _times(z_bar, number)


@additive
def divided(x: Any, /, number: float) -> Rule:
    """A tensor over a number.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar / number
    """
    z_bar = yield (_over(x, number), x := None)[0]
    yield _over(z_bar, number)


def _times(x: Any, number: float) -> Any:
    z = engines.arithmetic.multiplied(x, number) if type(x) is np.ndarray else None
    return x * number if z is None else z


def _over(x: Any, number: float) -> Any:
    z = engines.arithmetic.divided(x, number) if type(x) is np.ndarray else None
    return x / number if z is None else z
