"""NumPy's functions that write into their first argument: it has to be a buffer."""

import math
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import base
from lantern.errors import ArgumentError
from lantern.rules.selection import where as choose
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.at import at, check_buffer
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.indexing import getitem
from lantern.tensor.ops.shape import ravel, reshape

__all__ = ["copyto", "fill_diagonal", "place", "put", "putmask"]


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write an array into a buffer, where a condition holds.

    Shapes:
        dst: (...); src, where: broadcast to it

    Example:
        >>> import lantern
        >>> b = lantern.Buffer([1.0, 2.0])
        >>> copyto(b, 5.0, where=[True, False])
        >>> b
        Buffer(array([5., 2.]))
    """
    check_buffer("copyto", dst)
    if casting != "same_kind":
        raise ArgumentError(
            f"copyto: casting is {casting!r}, and buffers know 'same_kind' only. "
            f"Convert src first, with astype."
        )
    if where is not True:
        src = choose(asarray(base(where)), src, dst.freeze())
    dst[...] = src


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at positions in a flattened buffer; too few are repeated.

    Shapes:
        a: (...); ind: any shape; v: (n,)

    Example:
        >>> import lantern
        >>> b = lantern.Buffer([[1.0, 2.0], [3.0, 4.0]])
        >>> put(b, [0, -1], 5.0)
        >>> b
        Buffer(array([[5., 2.],
               [3., 5.]]))
    """
    check_buffer("put", a)
    flat = ravel(a.freeze())
    xp = array_namespace(base(flat))
    ind = xp.asarray(base(ind)).reshape(-1)
    if mode == "wrap":
        ind = ind % a.size
    elif mode == "clip":
        ind = xp.clip(ind, 0, a.size - 1)
    elif mode != "raise":
        raise ArgumentError(f"put: mode is {mode!r}. Choose 'raise', 'wrap' or 'clip'.")
    if ind.size:
        z = at(flat)[ind].set(_repeated(v, xp.arange(ind.size)))
        a[...] = reshape(z, a.shape)


def _repeated(v: Any, positions: Any) -> Any:
    """The values at some positions of an endless repetition of v."""
    v = ravel(asarray(v, like=positions))
    return getitem(v, positions % v.shape[0])


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values, one after the other, where a mask holds; too few are repeated.

    Shapes:
        arr, mask: (...); vals: (n,)

    Example:
        >>> import lantern
        >>> b = lantern.Buffer([1.0, 2.0, 3.0])
        >>> place(b, [True, False, True], [7.0, 8.0])
        >>> b
        Buffer(array([7., 2., 8.]))
    """
    check_buffer("place", arr)
    cells = _cells(arr, mask)
    put(arr, cells, _repeated(vals, namespace(cells).arange(cells.size)))


def _cells(a: Any, mask: Any) -> Any:
    """Where a mask holds, in the flattened array."""
    plain = base(a)
    mask = array_namespace(plain).asarray(base(mask)).astype(bool)
    return namespace(plain).broadcast_to(mask, plain.shape).reshape(-1).nonzero()[0]


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the values of the same positions where a mask holds.

    Shapes:
        a, mask: (...); values: (...), or repeated

    Example:
        >>> import lantern
        >>> b = lantern.Buffer([1.0, 2.0, 3.0])
        >>> putmask(b, [True, False, True], [7.0, 8.0, 9.0])
        >>> b
        Buffer(array([7., 2., 9.]))
    """
    check_buffer("putmask", a)
    cells = _cells(a, mask)
    put(a, cells, _repeated(values, cells))


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write values on the main diagonal of a buffer; too few are repeated.

    Args:
        a: the buffer, with at least two axes; with more, all of one length.
        val: the values.
        wrap: whether the diagonal starts again below a tall matrix.

    Shapes:
        a: (n, m) or (n, n, ...); val: (...)

    Example:
        >>> import lantern
        >>> b = lantern.Buffer([[1.0, 2.0], [3.0, 4.0]])
        >>> fill_diagonal(b, 0.0)
        >>> b
        Buffer(array([[0., 2.],
               [3., 0.]]))
    """
    check_buffer("fill_diagonal", a)
    n, xp = a.shape, namespace(base(a))
    if len(n) < 2 or (len(n) > 2 and len(set(n)) > 1):
        raise ArgumentError(
            f"fill_diagonal: shape {n} has no main diagonal. Give a matrix, or an "
            f"array with all axes of one length."
        )
    step = 1 + sum(math.prod(n[i + 1 :]) for i in range(len(n) - 1))
    end = n[1] * n[1] if len(n) == 2 and not wrap else None
    cells = xp.arange(a.size)[:end:step]
    put(a, cells, val)
