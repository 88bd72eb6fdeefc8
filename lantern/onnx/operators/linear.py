"""Products of matrices."""

from typing import Any

import numpy as np

import lantern
from lantern.onnx.operators.faces import on_arrays
from lantern.onnx.operators.table import operator
from lantern.torch.nn import functional

__all__: list[str] = []


@operator("Det", since=11, reals_only=True)
def det(x: Any) -> Any:
    """The determinants of matrices."""
    return np.linalg.det(x)


@operator("MatMul", reals_only=True)
def matmul(x: Any, y: Any) -> Any:
    """The product of matrices, as NumPy has it."""
    return np.matmul(x, y)


@operator("Gemm", since=7)
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """``alpha A' B' + beta C``, where A' and B' may be transposed."""
    if transA:
        a = a.T
    plain = alpha == beta == 1 and transB and a.dtype.kind == "f"
    fits = c is None or (c.ndim == 1 and c.shape[0] == b.shape[0])
    if plain and fits and a.dtype.isbuiltin == 1:
        return on_arrays(functional.linear, a, b, c)
    z = np.matmul(a, b.T if transB else b)
    if alpha != 1:
        z = _scaled(alpha, z)
    return z if c is None or not beta else z + (c if beta == 1 else _scaled(beta, c))


def _scaled(factor: float, x: Any) -> Any:
    """A product in the type of the array, also of integers."""
    return x * x.dtype.type(factor)


@operator("Einsum", since=12, reals_only=True)
def einsum(*operands: Any, equation: str) -> Any:
    """Einstein's sum."""
    return lantern.einsum(equation.replace(" ", ""), *operands)
