"""Products of two matrices of bfloat16 by oneDNN: sums in float32, rounded once.

The rule: more than 2 ** 16 products of elements, and a processor that multiplies
bfloat16 (AVX-512 with BF16, or AMX). Measured there (Intel Xeon, one thread), a layer
of 768 by 3072 takes 0.29 ms for one row and 4 ms for 1024; with the matrices brought
into float32 and back it was 1.1 and 33 ms.
"""

from functools import cache, lru_cache
from typing import Any

from lantern.engines.arrays import brain, empty_like, whole
from lantern.engines.onednn import (
    BRAIN,
    Layout,
    Primitive,
    described,
    is_on,
    library,
    threads,
)

__all__ = ["LEAST", "product", "takes"]

LEAST = 1 << 16
_X, _Y, _BIAS, _Z = 1, 33, 41, 17
_BF16 = 0x80  # a bit of what ``dnnl_get_effective_cpu_isa`` says


def product(x: Any, y: Any, bias: Any = None) -> Any:
    """``x @ y + bias`` of two matrices and a row; None if not for the engine.

    Shapes:
        x: (n, k); y: (k, m); bias: (m,) or None; result: (n, m)
    """
    if not takes(x, y.T) or x.ndim != 2 or y.ndim != 2 or x.shape[1] != len(y):
        return None
    given: tuple[Any, ...] = (x, y)
    if bias is not None:
        if not brain(bias) or not whole(bias) or bias.shape != y.shape[1:]:
            return None
        given = (x, y, bias)
    x_steps, y_steps = _steps(x), _steps(y)
    if x_steps is None or y_steps is None:
        return None
    shape = x.shape + y.shape[1:]
    primitive = _multiplication(shape, x_steps, y_steps, bias is not None, threads())
    if primitive is None:
        return None
    z = empty_like(x, (shape[0], shape[2]))
    primitive.run(*given, z)
    return z


def takes(x: Any, weight: Any) -> bool:
    """Whether ``x @ weight.T`` of (..., k) and (m, k) is for the engine."""
    if not brain(x) or not brain(weight):
        return False
    return x.size * len(weight) > LEAST and is_on() and _multiplies()


def _steps(x: Any) -> Any:
    """From one element to the next, of a matrix that lies row by row or the other way.

    Along an axis of one element any step will do, and oneDNN wants one that fits.
    """
    (n, m), (down, right) = x.shape, (step // 2 for step in x.strides)
    if (right == 1 or m == 1) and (down >= m or n == 1):
        return max(down, m) if n > 1 else m, 1
    if (down == 1 or n == 1) and (right >= n or m == 1):
        return 1, max(right, n) if m > 1 else n
    return None


@lru_cache(512)
def _multiplication(
    shape: Any, x_steps: Any, y_steps: Any, with_bias: bool, _: int
) -> Primitive | None:
    """What multiplies matrices (n, k) and (k, m)."""
    n, k, m = shape
    x, y = Layout((n, k), x_steps, BRAIN), Layout((k, m), y_steps, BRAIN)
    bias = Layout((1, m), (m, 1), BRAIN) if with_bias else None
    description = described("matmul", x, y, bias, Layout((n, m), (m, 1), BRAIN))
    if description is None:
        return None
    return Primitive(description, _X, _Y, *([_BIAS] if with_bias else []), _Z)


@cache
def _multiplies() -> bool:
    return bool(library().functions.dnnl_get_effective_cpu_isa() & _BF16)
