"""Linear algebra, under the names of ``numpy.linalg`` and the array API standard."""

from typing import Any

from lantern.tensor.backend.numpy_namespace import numpy_namespace
from lantern.tensor.linalg.eigen_svd import (
    EighResult,
    EigResult,
    SVDResult,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    svd,
    svdvals,
)
from lantern.tensor.linalg.factorisations import QRResult, cholesky, qr
from lantern.tensor.linalg.matrix_functions import (
    SlogdetResult,
    det,
    expm,
    matrix_power,
    multi_dot,
    slogdet,
)
from lantern.tensor.linalg.norms import (
    cond,
    matrix_norm,
    matrix_rank,
    norm,
    vector_norm,
)
from lantern.tensor.linalg.solve import (
    inv,
    lstsq,
    pinv,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from lantern.tensor.ops import products
from lantern.tensor.ops.products import matmul, tensordot, vecdot
from lantern.tensor.ops.shape import as_array, matrix_transpose

__all__ = [
    "EigResult",
    "EighResult",
    "LinAlgError",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

LinAlgError = numpy_namespace.linalg.LinAlgError


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The vector product of vectors of length 3.

    Shapes:
        x1, x2: (..., 3), broadcast, their vectors along axis; result: the same

    Example:
        >>> import numpy as np
        >>> cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
        array([0., 0., 1.])
    """
    return products.cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices.

    Shapes:
        x: (..., n, m); result: (..., k)

    Example:
        >>> import numpy as np
        >>> diagonal(np.array([[1.0, 2.0], [3.0, 4.0]]))
        array([1., 4.])
    """
    return products.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices.

    Shapes:
        x: (..., n, m); result: (...)

    Example:
        >>> import numpy as np
        >>> trace(np.array([[1.0, 2.0], [3.0, 4.0]]))
        np.float64(5.0)
    """
    return products.trace(x, offset, -2, -1, dtype)


def outer(x1: Any, x2: Any, /) -> Any:
    """The products of every element of one vector with every element of the other.

    Shapes:
        x1: (n,); x2: (m,); result: (n, m)

    Example:
        >>> import numpy as np
        >>> outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        array([[3., 4.],
               [6., 8.]])
    """
    shapes = [as_array(x).shape for x in (x1, x2)]
    if {len(shape) for shape in shapes} != {1}:  # NumPy's words
        numpy_namespace.linalg.outer(*map(numpy_namespace.ones, shapes))
    return products.outer(x1, x2)
