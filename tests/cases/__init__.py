"""Sample arguments of every operation: the one table that the generic tests read.

An operation's arguments are drawn from intervals in its domain, away from its kinks.
"""

import operator
from typing import Any

import numpy as np

import lantern
import lantern.batching
import lantern.distributed
import lantern.fft  # registers its rules, as do those below
import lantern.linalg
import lantern.scipy.linalg
import lantern.scipy.signal
import lantern.scipy.special
from tests.cases import distributed, elementwise, indexing, linalg, reduction, signal
from tests.cases.case import (
    ABOVE_ONE,
    POSITIVE,
    SIGNED,
    UNIT,
    Case,
)

for _name in lantern.__all__:  # some of them import the modules of their rules
    getattr(lantern, _name)

# Elementwise operations: the interval of each operand.
ELEMENTWISE: dict[str, tuple[tuple[float, float], ...]] = {
    "add": (SIGNED, SIGNED),
    "subtract": (SIGNED, SIGNED),
    "multiply": (SIGNED, SIGNED),
    "divide": (SIGNED, POSITIVE),
    "ieee_divide": (SIGNED, POSITIVE),
    "ieee_pow": (POSITIVE, SIGNED),
    "remainder": ((2.1, 2.9), (0.9, 1.02)),
    "pow": (POSITIVE, SIGNED),
    "negative": (SIGNED,),
    "positive": (SIGNED,),
    "square": (SIGNED,),
    "exp": (SIGNED,),
    "expm1": (SIGNED,),
    "log": (POSITIVE,),
    "log1p": (POSITIVE,),
    "log2": (POSITIVE,),
    "log10": (POSITIVE,),
    "sqrt": (POSITIVE,),
    "cbrt": (POSITIVE,),
    "sin": (SIGNED,),
    "cos": (SIGNED,),
    "tan": (UNIT,),
    "asin": (UNIT,),
    "acos": (UNIT,),
    "atan": (SIGNED,),
    "sinh": (SIGNED,),
    "cosh": (SIGNED,),
    "tanh": (SIGNED,),
    "asinh": (SIGNED,),
    "acosh": (ABOVE_ONE,),
    "atanh": (UNIT,),
    "erf": (SIGNED,),
    "erfc": (SIGNED,),
    "gamma": (POSITIVE,),
    "lgamma": (POSITIVE,),
    "sigmoid": (SIGNED,),
    "softplus": (SIGNED,),
    "relu": (POSITIVE,),
    "abs": (POSITIVE,),
    "maximum": (POSITIVE, (-2.0, -0.3)),
    "minimum": (POSITIVE, (-2.0, -0.3)),
    "hypot": (POSITIVE, SIGNED),
    "atan2": (SIGNED, POSITIVE),
}
CONSTANT: dict[str, tuple[tuple[float, float], ...]] = {
    "sign": (POSITIVE,),
    "floor": ((0.1, 0.9),),
    "ceil": ((0.1, 0.9),),
    "floor_divide": ((2.1, 2.9), (0.9, 1.02)),
}
_SHAPE = (2, 3)


def _array(name: str, *shapes: tuple[int, ...], **statics: Any) -> Case:
    intervals = ELEMENTWISE.get(name, (SIGNED,) * len(shapes))
    return Case(name, intervals, statics, shapes)


# Operations on arrays alone, and further forms of those above.
ARRAYS: list[Case] = [
    _array("polygamma", _SHAPE, n=1)._replace(operands=(POSITIVE,)),
    _array("conj", _SHAPE),
    _array("real", _SHAPE),
    _array("where", _SHAPE, _SHAPE, condition=np.arange(6).reshape(_SHAPE) % 2 == 0),
    _array("where", (3,), (2, 1), condition=np.array([True, False, True])),
    *(_array(name, _SHAPE) for name in ("sum", "mean", "max", "min", "var", "prod")),
    *(
        _array(name, (2, 3, 2), axis=axis, keepdims=keepdims)
        for name in ("sum", "mean", "max", "min", "var", "prod", "logsumexp")
        for axis in (1, -1, (0, 2))
        for keepdims in (False, True)
    ),
    _array("var", (5,), correction=1),
    _array("root", _SHAPE)._replace(operands=(POSITIVE,)),
    _array("logsumexp", _SHAPE),
    _array("softmax", _SHAPE),
    _array("softmax", _SHAPE, axis=0),
    _array("log_softmax", _SHAPE),
    _array("log_softmax", _SHAPE, axis=0),
    _array("reshape", _SHAPE, shape=(3, -1)),
    _array("permute_dims", (2, 3, 4)),
    _array("permute_dims", (2, 3, 4), axes=(2, 0, -2)),
    _array("matrix_transpose", (2, 3, 4)),
    _array("squeeze", (1, 3, 1)),
    _array("squeeze", (1, 3, 1), axis=0),
    _array("expand_dims", _SHAPE, axis=(0, -1)),
    _array("broadcast_to", (3, 1), shape=(2, 3, 4)),
    _array("astype", _SHAPE, dtype=np.float64),
    _array("concat", (2, 3), (2, 1), (2, 2), axis=1),
    _array("concat", (2, 3), (1, 3), axis=-2),
    _array("stack", (2, 3), (2, 3), axis=-1),
    _array("getitem", (4, 3), index=1),
    _array("getitem", (4, 3), index=(slice(None, None, -2), None, 1)),
    _array("getitem", (4, 3), index=(..., np.array([0, 0, 2]))),
    _array("getitem", (4, 3), index=(np.array([[1], [1]]), np.array([0, 2]))),
    _array("getitem", (4, 3), index=np.arange(12).reshape(4, 3) % 5 == 0),
    _array("hook", _SHAPE, fn=operator.pos),
    _array("hook_all", _SHAPE, (3,), fn=tuple),
    _array("scatter", (2,), index=np.array([1, 1]), shape=(3,)),
    *(
        _array("matmul", *shapes)
        for shapes in (
            ((2, 3), (3, 4)),
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 4)),
            ((5, 2, 3), (3,)),
            ((3,), (5, 3, 4)),
            ((5, 2, 3), (3, 4)),
            ((5, 1, 2, 3), (4, 3, 2)),
        )
    ),
]

for _chapter in (distributed, elementwise, indexing, linalg, reduction, signal):
    ARRAYS += _chapter.CASES


def draw(interval: tuple[float, float], rng: np.random.Generator, shape: Any) -> Any:
    """Random numbers of an interval; a plain float for no shape."""
    numbers = rng.uniform(*interval, shape)
    return float(numbers) if shape is None else numbers


def call(case: Case, settled: Any = lambda name, result: result) -> Any:
    """The function of a case's operands; several results come as one array."""
    function = lantern.op.registry[case.name].function

    def f(*operands: Any) -> Any:
        result = settled(case.name, function(*operands, **case.statics))
        if isinstance(result, tuple):
            return lantern.concat([lantern.reshape(part, (-1,)) for part in result])
        return result

    return f
