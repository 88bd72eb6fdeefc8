"""Matrices: inverses, determinants, decompositions, norms."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule
from lantern.core.value import base as value_of
from lantern.errors import EagerError
from lantern.op import op
from lantern.tensor import linalg
from lantern.tensor.ops import products
from lantern.torch.functions.join_repeat import cat
from lantern.torch.functions.reduction import vector_norm
from lantern.torch.tables import documented, takes
from lantern.torch.tensor.batches import beside, mappings
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.looped import each_example
from lantern.torch.tensor.named_results import into, named
from lantern.torch.tensor.operators import call, cast
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face, torch_face

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "vecdot",
    "vector_norm",
]


class LinAlgError(EagerError):
    """A matrix is singular, or a decomposition does not converge.

    Example:
        >>> import lantern.torch as torch
        >>> try:
        ...     torch.linalg.inv(torch.zeros(2, 2))
        ... except torch.linalg.LinAlgError:
        ...     print("singular")
        singular
    """


def _square(name: str, x: Tensor) -> None:
    shape = base(x).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        what = list(shape[-2:]) if len(shape) > 1 else list(shape)
        raise EagerError(
            f"linalg.{name}: A must be batches of square matrices, but they are "
            f"{' by '.join(map(str, what))} matrices"
        )


def _one(
    name: str,
    function: Any,
    square: bool = False,
    results: str = "",
    shown: str = ", *",
) -> Any:
    """A function of one matrix; with several results, in a named tuple.

    Args:
        name: its name here.
        function: gives what computes it, from a part that is imported only then.
        square: whether the matrix has to be.
        results: their names, if it has several.
        shown: its further parameters.
    """
    row = named(f"linalg_{name}", results) if results else None

    def operate(A: Tensor, *args: Any, **options: Any) -> Any:
        if square:
            _square(name, A)
        out = options.pop("out", None)
        try:
            if row is None:
                return into(call(function(), A, *args, **options), out)
            found = function()(numpy_face(A), *args, **options)
            z = row(*map(torch_face, found))
            return z if out is None else row(*map(into, z, out))
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"linalg.{name}: {error}") from None

    operate.__name__ = operate.__qualname__ = name
    return takes(operate, f"A{shown}, out=None")


inv = documented(
    _one("inv", lambda: linalg.solve.inv, square=True),
    """The inverses of square matrices.

    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [1.0, 4.0]]))
    tensor([[ 0.5000,  0.0000],
            [-0.1250,  0.2500]])
    """,
)
det = documented(
    _one("det", lambda: linalg.matrix_functions.det, square=True),
    """The determinants of square matrices.

    >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(6.)
    """,
)
slogdet = documented(
    _one(
        "slogdet",
        lambda: linalg.matrix_functions.slogdet,
        square=True,
        results="sign logabsdet",
    ),
    """The sign of the determinant, and the logarithm of its absolute value.

    >>> torch.linalg.slogdet(torch.tensor([[-2.0, 0.0], [0.0, 3.0]])).sign
    tensor(-1.)
    """,
)
_cholesky = _one("cholesky", lambda: linalg.factorisations.cholesky, square=True)
_eigh = _one(
    "eigh",
    lambda: linalg.eigen_svd.eigh,
    square=True,
    results="eigenvalues eigenvectors",
)
_eig = _one(
    "eig", lambda: linalg.eigen_svd.eig, square=True, results="eigenvalues eigenvectors"
)
_eigvalsh = _one("eigvalsh", lambda: linalg.eigen_svd.eigvalsh, square=True)
_eigvals = _one("eigvals", lambda: linalg.eigen_svd.eigvals, square=True)
svdvals = documented(
    _one("svdvals", lambda: linalg.eigen_svd.svdvals, shown=", *, driver=None"),
    """The singular values of matrices, the greatest first.

    >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
    tensor([3., 2.])
    """,
)
_pinv = _one("pinv", lambda: linalg.solve.pinv)
matrix_exp = documented(
    _one("matrix_exp", lambda: linalg.matrix_functions.expm, square=True),
    """The exponentials of square matrices: ``1 + A + A @ A / 2 + ...``.

    >>> torch.linalg.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """,
)
matrix_power = documented(
    _one(
        "matrix_power",
        lambda: linalg.matrix_functions.matrix_power,
        square=True,
        shown=", n, *",
    ),
    """The products of square matrices with themselves; inverses for n < 0.

    >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """,
)
cond = documented(
    _one("cond", lambda: linalg.norms.cond, shown=", p=None, *"),
    """The condition numbers of matrices: the norm times the inverse's norm.

    >>> torch.linalg.cond(torch.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """,
)
_svd = _one("svd", lambda: linalg.eigen_svd.svd, results="U S Vh")
_qr = _one("qr", lambda: linalg.factorisations.qr, results="Q R")


def _complex(z: Tensor) -> Any:
    kind = base(z).dtype
    return z if kind.kind == "c" else cast(z, np.result_type(kind, np.complex64))


def _triangle(A: Tensor, UPLO: str) -> Any:
    """The Hermitian matrices that a triangle stands for; both share the gradient."""
    if UPLO.upper() not in ("L", "U"):
        raise EagerError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    if base(A).ndim < 2:
        return A
    plain = A.detach()
    lower = UPLO.upper() == "L"
    part = plain.tril() if lower else plain.triu()
    whole = part + (plain.tril(-1) if lower else plain.triu(1)).mH
    if not A.requires_grad:
        return whole
    mean = (A + A.mH) / 2
    return mean + (whole - mean.detach())


def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues and vectors of Hermitian matrices, of which one triangle is read.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
        >>> values, vectors = torch.linalg.eigh(A)
        >>> values
        tensor([1., 3.])
        >>> torch.allclose(A @ vectors, vectors * values)
        True
    """
    return _eigh(_triangle(A, UPLO))


def eigvalsh(A: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices, of which one triangle is read.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        tensor([1., 3.])
    """
    return _eigvalsh(_triangle(A, UPLO))


def eig(A: Tensor) -> Any:
    """Eigenvalues and vectors, complex ones.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.eig(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
        tensor([2.+0.j, 3.+0.j])
    """
    return type(found := _eig(A))(*map(_complex, found))


def eigvals(A: Tensor) -> Any:
    """Eigenvalues, complex ones.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.eigvals(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor([2.+0.j, 3.+0.j])
    """
    return _complex(_eigvals(A))


def _bounds(A: Tensor, sizes: Any, atol: Any, rtol: Any) -> Any:
    """Below which singular values count as 0, for each matrix."""
    n = max(base(A).shape[-2:])
    eps = np.finfo(base(A).dtype).eps
    xp = namespace(base(A))
    atol = 0.0 if atol is None else xp.asarray(base(atol))[..., None]
    if rtol is None:
        rtol = xp.where(xp.asarray(atol) > 0, 0.0, n * eps)
    else:
        rtol = xp.asarray(base(rtol))[..., None]
    top = sizes.max(-1, keepdims=True) if sizes.shape[-1] else 0.0
    return np.maximum(atol, rtol * top)


def _sizes(A: Tensor, hermitian: bool) -> Any:
    plain = base(A)
    if hermitian:
        return np.abs(np.linalg.eigvalsh(plain))
    return np.linalg.svd(plain, compute_uv=False)


def matrix_rank(
    A: Tensor,
    tol: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
) -> Any:
    """How many singular values are not 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    A = _among(A, atol, rtol)
    sizes = _sizes(A, hermitian)
    return fresh(as_array((sizes > _bounds(A, sizes, atol, rtol)).sum(-1)))


def _among(A: Tensor, *tolerances: Any) -> Tensor:
    """A matrix among its tolerances' examples: operations are found by it alone."""
    if not mappings():
        return A
    return torch_face(beside(numpy_face(A), [base(x) for x in tolerances]))


def pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Any:
    """The pseudo-inverse.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.0000]])
    """
    rtol = rcond if rtol is None else rtol
    A = _among(A, atol, rtol)
    if hermitian:
        plain = A.detach()
        whole = _triangle(plain, "L")
        A = whole + (A - plain) if A.requires_grad else whole
    if atol is not None and base(A).size:
        sizes = _sizes(A, hermitian)
        bound = _bounds(A, sizes, atol, rtol)
        rtol = fresh(np.squeeze(bound / sizes.max(-1, keepdims=True), -1))
    return _pinv(A) if rtol is None else _pinv(A, rcond=base(rtol))


def cholesky(A: Tensor, *, upper: bool = False) -> Any:
    """The triangle L with ``L @ L.mH == A``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    _square("cholesky", A)
    return _cholesky(_triangle(A, "U" if upper else "L"), upper=upper)


@each_example
def svd(A: Tensor, full_matrices: bool = True, *, driver: Any = None) -> Any:
    """Singular values and vectors, with ``A == U @ diag(S) @ Vh``.

    The columns of U, or rows of Vh, that ``full_matrices`` adds are any that complete
    the others; they have no derivative, and one that is asked for is refused.

    Example:
        >>> import lantern.torch as torch
        >>> U, S, Vh = torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
        >>> S
        tensor([3., 2.])
    """
    n, m = base(A).shape[-2:]
    if not full_matrices or n == m or not A.requires_grad:
        return _svd(A, full_matrices=full_matrices)
    row = _svd(A, full_matrices=False)
    U, S, Vh = row
    if n > m:
        U = _completed(U)
    else:
        Vh = _completed(Vh.mH).mH
    return type(row)(U, S, Vh)


def _completed(Q: Tensor) -> Any:
    """Orthonormal columns, with any more that make them a basis."""
    rest = np.linalg.qr(base(Q), "complete")[0][..., base(Q).shape[-1] :]
    more = call(_completion, Q, value=rest) if Q.requires_grad else fresh(rest)
    return cat([Q, more], -1)


@op
def _completion(Q: Any, /, value: Any) -> Rule:
    """What completes orthonormal columns to a basis; it has no derivative.

    Shapes:
        Q: (..., n, m); result: (..., n, n - m)

    Rule:
        refuses a cotangent, unless it is 0
    """
    del Q
    z_bar = yield value
    if value_of(z_bar).any():
        raise EagerError(
            "linalg.svd: the columns that full_matrices=True adds have no derivative. "
            "Use full_matrices=False."
        )
    yield None


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Orthonormal columns and an upper triangle.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.tensor([[3.0, 1.0], [4.0, 2.0]])
        >>> Q, R = torch.linalg.qr(A)
        >>> torch.allclose(Q @ R, A)
        True
    """
    return _qr(A, mode=mode)


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Any:
    """The X with ``A @ X == B``; with ``X @ A == B`` if not left.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
        >>> torch.linalg.solve(A, torch.tensor([2.0, 8.0]))
        tensor([1., 2.])
    """
    _square("solve", A)
    try:
        if not left:
            return call(linalg.solve.solve, A.mT, B.mT).mT
        vector = base(B).ndim == 1 or base(B).shape == base(A).shape[:-1]
        if vector:
            return call(linalg.solve.solve, A, B.unsqueeze(-1)).squeeze(-1)
        return call(linalg.solve.solve, A, B)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.solve: {error}") from None


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """The X with ``A @ X == B``, of a triangular A.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.tensor([[2.0, 0.0], [1.0, 4.0]])
        >>> torch.linalg.solve_triangular(A, torch.tensor([[2.0], [9.0]]), upper=False)
        tensor([[1.],
                [2.]])
    """
    A = A.triu() if upper else A.tril()
    if unitriangular:
        A = (
            A
            - A.diagonal(0, -2, -1).diag_embed()
            + fresh(namespace(base(A)).eye(base(A).shape[-1], dtype=base(A).dtype))
        )
    return solve(A, B, left=left)


_LSTSQ = named("linalg_lstsq", "solution residuals rank singular_values")


@each_example
def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: Any = None) -> Any:
    """The X for which ``A @ X - B`` is least; residuals, rank and singular values.

    Example:
        >>> import lantern.torch as torch
        >>> A = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> torch.linalg.lstsq(A, torch.tensor([[1.0], [3.0], [5.0]])).solution.round()
        tensor([[1.],
                [2.]])
    """
    if base(A).ndim < 2:
        raise EagerError("linalg.lstsq: input must have at least 2 dimensions.")
    n, m = base(A).shape[-2:]
    vector = base(B).ndim == 1 or base(B).shape == base(A).shape[:-1]
    right = B.unsqueeze(-1) if vector else B
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise EagerError(
            f"linalg.lstsq: parameter `driver` should be one of gels, gelsy, gelsd, "
            f"gelss, but got {driver}"
        )
    x = pinv(A, rcond) @ right
    xp = namespace(base(A))
    nothing = fresh(xp.zeros((0,), base(A).dtype))
    rank = fresh(xp.zeros((0,), np.int64)) if driver == "gels" else matrix_rank(A)
    values = svdvals(A.detach()) if driver in ("gelsd", "gelss") else nothing.abs()
    residuals = nothing.abs()
    if n > m and driver != "gelsy" and (driver == "gels" or (base(rank) == m).all()):
        residuals = ((A @ x - right).abs() ** 2).sum(-2)
    return _LSTSQ(x.squeeze(-1) if vector else x, residuals, rank, values)


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The norm of matrices along two axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)
        >>> torch.linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), ord="nuc")
        tensor(7.)
    """
    A = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return vector_norm(A, 2, dim, keepdim)
    A = A.movedim(tuple(dim), (-2, -1))
    if ord in (2, -2, "nuc"):
        sizes = svdvals(A)
        z = (
            sizes.sum(-1)
            if ord == "nuc"
            else (sizes.amax(-1) if ord == 2 else sizes.amin(-1))
        )
    else:
        z = call(linalg.norms.matrix_norm, A, ord=ord, keepdims=False)
    if keepdim:
        for d in sorted(d % base(A).ndim for d in dim):
            z = z.unsqueeze(d)
    return z


def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The norm of vectors or of matrices, as their axes say.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
        tensor(5.)
        >>> torch.linalg.norm(torch.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
        tensor([ 5., 10.])
    """
    if ord is None or (dim is None and base(A).ndim == 1) or isinstance(dim, int):
        flat = (
            A if dim is not None or ord is None or base(A).ndim == 1 else A.reshape(-1)
        )
        return vector_norm(flat, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    return matrix_norm(A, ord, dim or (-2, -1), keepdim, dtype=dtype)


def multi_dot(tensors: Any) -> Any:
    """The product of matrices in a row.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.multi_dot(
        ...     [torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1)]
        ... )
        tensor([[12.],
                [12.]])
    """
    return call(linalg.matrix_functions.multi_dot, [numpy_face(x) for x in tensors])


def matmul(input: Tensor, other: Tensor) -> Any:
    """The matrix product.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10]))
        tensor([21, 43])
    """
    return input @ other


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Any:
    """The inner products of vectors along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2))
        tensor([3., 7.])
    """
    return call(products.vecdot, x, y, axis=dim)


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """The vector product along an axis of length 3.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    a, b = base(input).shape, base(other).shape
    if len(a) != len(b):
        raise EagerError(
            f"linalg.cross: inputs must have the same number of dimensions, but got "
            f"{len(a)} and {len(b)}"
        )
    if a[dim] != 3 or b[dim] != 3:
        raise EagerError(
            f"linalg.cross: dimension {dim} must have length 3, but got {a[dim]} "
            f"and {b[dim]}"
        )
    return call(products.cross, input, other, axis=dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of the matrices along two axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return A.diagonal(offset, dim1, dim2)
