"""Products of vectors and matrices, under PyTorch's names."""

from typing import Any

from lantern.core.namespace import common_namespace
from lantern.core.value import Rule
from lantern.core.value import base as value_of
from lantern.errors import EagerError, OptionError
from lantern.op import op
from lantern.tensor import linalg
from lantern.tensor.ops import products
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.dtypes import I64
from lantern.torch.tensor.named_results import into
from lantern.torch.tensor.operators import call, cast, promote, result_dtype
from lantern.torch.tensor.tensor import Tensor, numpy_face
from lantern.torch.tensor.views import view_if_shared


def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Any:
    """The matrix product, over all leading axes together; of vectors, the inner one.

    Shapes:
        input: (..., n, k); other: (..., k, m); result: (..., n, m)
        input: (k,) or other: (k,): result without n, or m

    Example:
        >>> import lantern.torch as torch
        >>> torch.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10]))
        tensor([21, 43])
    """
    return input @ other if out is None else into(input @ other, out)


def _check(name: str, input: Tensor, other: Tensor, n: int, m: int) -> None:
    """Raise unless two tensors have as many axes as a product takes."""
    a, b = base(input).ndim, base(other).ndim
    if a != n or b != m:
        word = {1: "vector", 2: "matrix", 3: "3D tensor"}
        raise EagerError(
            f"{name}: expected a {word[n]} and a {word[m]}, got {a}D and {b}D"
        )


def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Any:
    """The product of two matrices.

    Shapes:
        input: (n, k); mat2: (k, m); result: (n, m)

    Example:
        >>> import lantern.torch as torch
        >>> torch.mm(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[0, 1], [1, 0]]))
        tensor([[2, 1],
                [4, 3]])
    """
    _check("mm", input, mat2, 2, 2)
    return input @ mat2 if out is None else into(input @ mat2, out)


def mv(input: Tensor, vec: Tensor, *, out: Any = None) -> Any:
    """The product of a matrix and a vector.

    Shapes:
        input: (n, k); vec: (k,); result: (n,)

    Example:
        >>> import lantern.torch as torch
        >>> torch.mv(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10]))
        tensor([21, 43])
    """
    _check("mv", input, vec, 2, 1)
    return input @ vec if out is None else into(input @ vec, out)


def dot(input: Tensor, tensor: Tensor, *, out: Any = None) -> Any:
    """The inner product of two vectors, of which none is conjugated.

    Shapes:
        input, tensor: (n,); result: ()

    Example:
        >>> import lantern.torch as torch
        >>> torch.dot(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor(11)
    """
    _check("dot", input, tensor, 1, 1)
    return input @ tensor if out is None else into(input @ tensor, out)


def bmm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Any:
    """The products of two batches of matrices, one by one.

    Shapes:
        input: (b, n, k); mat2: (b, k, m); result: (b, n, m)

    Example:
        >>> import lantern.torch as torch
        >>> torch.bmm(torch.ones(10, 2, 3), torch.ones(10, 3, 4)).shape
        torch.Size([10, 2, 4])
    """
    _check("bmm", input, mat2, 3, 3)
    a, b = base(input).shape, base(mat2).shape
    if a[0] != b[0] or a[2] != b[1]:
        raise EagerError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"{[a[0], a[2]]} but got: {list(b[:2])}."
        )
    return input @ mat2 if out is None else into(input @ mat2, out)


def inner(input: Tensor, other: Tensor) -> Any:
    """The inner products over the last axes of both.

    Shapes:
        input: (..., k); other: (*, k); result: (..., *)

    Example:
        >>> import lantern.torch as torch
        >>> torch.inner(torch.tensor([[1, 2], [3, 4]]), torch.tensor([10, 1]))
        tensor([12, 34])
    """
    return call(products.inner, *promote(input, other))


def vdot(input: Tensor, other: Tensor) -> Any:
    """The inner product of two vectors; the first one is conjugated.

    Example:
        >>> import lantern.torch as torch
        >>> torch.vdot(torch.tensor([1j, 2]), torch.tensor([1j, 3]))
        tensor(7.+0.j)
    """
    return call(products.vdot, input, other)


def outer(input: Tensor, vec2: Tensor) -> Any:
    """The products of every two elements of two vectors.

    Shapes:
        input: (n,); vec2: (m,); result: (n, m)

    Example:
        >>> import lantern.torch as torch
        >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4, 5]))
        tensor([[ 3,  4,  5],
                [ 6,  8, 10]])
    """
    return input.unsqueeze(-1) * vec2


def kron(input: Tensor, other: Tensor) -> Any:
    """The Kronecker product: each element of the one times the whole other.

    Shapes:
        input: (n, m); other: (k, l); result: (n * k, m * l)

    Example:
        >>> import lantern.torch as torch
        >>> torch.kron(torch.tensor([1, 10]), torch.tensor([1, 2, 3]))
        tensor([ 1,  2,  3, 10, 20, 30])
    """
    return call(products.kron, *promote(input, other))


def cross(input: Tensor, other: Tensor, dim: Any = None) -> Any:
    """The vector product along an axis of length 3, by default the first such axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), dim=0)
        tensor([0, 0, 1])
    """
    if dim is None:
        shape = base(input).shape
        dim = next(i for i, n in enumerate(shape) if n == 3)
    return call(products.cross, input, other, axis=dim)


def trace(input: Tensor) -> Any:
    """The sum of the diagonal.

    Example:
        >>> import lantern.torch as torch
        >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    if base(input).ndim != 2:
        raise EagerError(
            f"trace: expected a matrix, but got tensor with dim {base(input).ndim}"
        )
    return input.diagonal().sum()


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Any:
    """The product over axes: the last ``dims`` of a and first of b, or those named.

    Shapes:
        a: (..., k); b: (k, *); result: (..., *), for dims 1

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(3, 4, 5), dims=2).shape
        torch.Size([2, 5])
    """
    dims = dims if isinstance(dims, int) else base(dims)
    if isinstance(dims, list | tuple):
        dims = tuple([d] if isinstance(d, int) else list(d) for d in dims)
        dims = tuple(
            [i % base(x).ndim for i in row] for row, x in zip(dims, (a, b), strict=True)
        )
        a, b = _unstretched(a, b, *dims)
    return call(products.tensordot, a, b, dims)


def _unstretched(a: Tensor, b: Tensor, left: Any, right: Any) -> Any:
    """Both operands, summed over axes that meet an axis of length 1."""
    n, m = base(a).shape, base(b).shape
    pairs = list(zip(left, right, strict=True))
    first = tuple(i for i, j in pairs if m[j] == 1 != n[i])
    second = tuple(j for i, j in pairs if n[i] == 1 != m[j])
    a = a.sum(first, keepdim=True, dtype=a.dtype) if first else a
    return a, b.sum(second, keepdim=True, dtype=b.dtype) if second else b


def einsum(equation: str, *operands: Any) -> Any:
    """The product that an equation of indices names: "ij,jk->ik" is ``matmul``.

    Args:
        equation: a letter for each axis of each operand, then those of the result; what
            does not occur there is summed. "..." stands for leading axes.
        operands: the tensors.

    Example:
        >>> import lantern.torch as torch
        >>> torch.einsum(
        ...     "ij,j->i", torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 10])
        ... )
        tensor([21, 43])
    """
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        return einsum(*_named_axes(equation, *operands))
    operand, arrow, result = equation.replace(" ", "").partition("->")
    if arrow and "..." in operand and "..." not in result:
        z = einsum(f"{operand}->...{result}", *operands)
        extra = base(z).ndim - len(result)
        return z.sum(tuple(range(extra))) if extra else z
    from lantern.tensor.ops import einsum as of_indices  # which few programs need

    z = call(of_indices.einsum, operand + arrow + result, *operands)
    if base(z).dtype.kind == "u" and base(z).itemsize > 1:  # sums count in 64 bits
        z = cast(z, I64)
    return view_if_shared(z, operands[0]) if len(operands) == 1 else z


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _named_axes(*row: Any) -> tuple[Any, ...]:
    """Tensors, each followed by the numbers of its axes, as an equation."""

    def word(numbers: Any) -> str:
        return "".join("..." if n is ... else _LETTERS[n] for n in numbers)

    pairs, result = list(row), ""
    if len(pairs) % 2:
        result = "->" + word(pairs.pop())
    return ",".join(map(word, pairs[1::2])) + result, *pairs[::2]


def _scaled(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if base(product).dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


def addmm(
    input: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    """``beta * input + alpha * mat1 @ mat2``.

    Shapes:
        mat1: (n, k); mat2: (k, m); input: broadcast to (n, m); result: (n, m)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(2, 2)
        >>> torch.addmm(x, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2))
        tensor([[3., 3.],
                [7., 7.]])
    """
    return _scaled(input, mm(mat1, mat2), beta, alpha)


def addmv(
    input: Any, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    """``beta * input + alpha * mat @ vec``.

    Shapes:
        mat: (n, k); vec: (k,); input: broadcast to (n,); result: (n,)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.addmv(x, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2))
        tensor([4., 9.])
    """
    return _scaled(input, mv(mat, vec), beta, alpha)


def addr(
    input: Any, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    """``beta * input + alpha * outer(vec1, vec2)``.

    Shapes:
        vec1: (n,); vec2: (m,); input: broadcast to (n, m); result: (n, m)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(2, 3)
        >>> torch.addr(x, torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0]))
        tensor([[ 3.,  4.,  5.],
                [ 6.,  8., 10.]])
    """
    return _scaled(input, outer(vec1, vec2), beta, alpha)


def baddbmm(
    input: Any, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    """``beta * input + alpha * batch1 @ batch2``, matrix by matrix.

    Shapes:
        batch1: (b, n, k); batch2: (b, k, m); result: (b, n, m)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(1, 1, 1)
        >>> torch.baddbmm(x, torch.ones(1, 1, 3), torch.ones(1, 3, 1), beta=10)
        tensor([[[13.]]])
    """
    return _scaled(input, bmm(batch1, batch2), beta, alpha)


def addbmm(
    input: Any, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    """``beta * input + alpha * sum(batch1 @ batch2)``, over the batch.

    Shapes:
        batch1: (b, n, k); batch2: (b, k, m); result: (n, m)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(2, 2)
        >>> torch.addbmm(x, torch.ones(3, 2, 4), torch.ones(3, 4, 2))
        tensor([[12., 12.],
                [12., 12.]])
    """
    return _scaled(input, bmm(batch1, batch2).sum(0, dtype=batch1.dtype), beta, alpha)


def chain_matmul(*matrices: Any) -> Any:
    """The product of matrices in a row.

    Example:
        >>> import lantern.torch as torch
        >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))
        tensor([[12.],
                [12.]])
    """
    if len(matrices) == 1:
        return matrices[0]
    return call(linalg.matrix_functions.multi_dot, [numpy_face(x) for x in matrices])


_USUAL = "use_mm_for_euclid_dist_if_necessary"
_ALWAYS, _NEVER = "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"


@op
def _euclidean(x: Any, y: Any, /) -> Rule:
    """The distances of each row of one to each row of the other, by their product.

    Shapes:
        x: (..., n, k); y: (..., m, k); result: (..., n, m)

    Rule:
        z**2 = sum(x * x) + sum(y * y) - 2 * x @ y.T
        x_bar = sum((x - y) * z_bar / z), nothing where z is 0; y_bar likewise
    """
    xp = common_namespace(x, y)
    squares = (x * x).sum(-1)[..., :, None] + (y * y).sum(-1)[..., None, :]
    squares = squares - 2 * (x @ y.mT)
    apart = ~(value_of(squares) <= 0)  # nan stays nan
    z = xp.where(apart, xp.sqrt(xp.where(apart, squares, 1)), 0)
    z_bar = yield z
    shares = xp.where(apart, z_bar / xp.where(apart, z, 1), 0)
    yield x * shares.sum(-1)[..., None] - shares @ y
    yield y * shares.sum(-2)[..., None] - shares.mT @ x


def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None
) -> Any:
    """The p-norm distances of each row of one to each row of the other.

    Args:
        x1: some rows.
        x2: others.
        p: which norm; Euclidean distances of more than 25 rows come from a product,
            which takes far less memory, and says less of rows that are nearly alike.
        compute_mode: PyTorch's names for whether they do.

    Shapes:
        x1: (..., n, k); x2: (..., m, k); result: (..., n, m)

    Example:
        >>> import lantern.torch as torch
        >>> torch.cdist(
        ...     torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])
        ... )
        tensor([[5., 1.]])
    """
    a, b = base(x1), base(x2)
    for x, array in (("X1", a), ("X2", b)):
        if array.ndim < 2:
            raise EagerError(
                f"cdist only supports at least 2D tensors, {x} got: {array.ndim}D"
            )
    if a.shape[-1] != b.shape[-1]:
        raise EagerError(
            f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: "
            f"{b.shape[-1]}"
        )
    if p < 0:
        raise EagerError("cdist only supports non-negative p values")
    if compute_mode not in (None, _USUAL, _ALWAYS, _NEVER):
        raise OptionError(f"{compute_mode} is not a valid value for compute_mode")
    by_product = compute_mode == _ALWAYS or (
        compute_mode != _NEVER and max(a.shape[-2], b.shape[-2]) > 25
    )
    if p == 2 and by_product:
        return call(_euclidean, x1, x2)
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)


def block_diag(*tensors: Any) -> Any:
    """Matrices along a diagonal, zeros elsewhere; vectors are rows.

    Shapes:
        each: (n_i, m_i); result: (sum of n_i, sum of m_i)

    Example:
        >>> import lantern.torch as torch
        >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor([[3], [4]]))
        tensor([[1, 2, 0],
                [0, 0, 3],
                [0, 0, 4]])
    """
    from lantern.torch.functions.join_repeat import atleast_2d, cat

    kind = result_dtype(*tensors)
    rows = [atleast_2d(cast(x, kind)) for x in tensors]
    width, before, parts = sum(base(x).shape[1] for x in rows), 0, []
    for x in rows:
        n, m = base(x).shape
        left = x.new_zeros(n, before)
        right = x.new_zeros(n, width - before - m)
        parts.append(cat([left, x, right], 1))
        before += m
    return cat(parts, 0)


functions = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
}
functions["ger"] = outer
