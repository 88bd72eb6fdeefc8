"""Sparse matrices as constants: an adjacency times what is trained.

A derivative goes to the dense factor. There are no gradients of the entries.
"""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import base
from lantern.eager.grad_mode import is_enabled
from lantern.errors import ArgumentError, EagerError, ShapeError
from lantern.torch.functions import creation
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.devices import beside
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.layouts import LAYOUTS
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["SparseTensor", "mm", "sparse_coo_tensor", "spmm"]


class SparseTensor:
    """A tensor of which only some entries are kept, by their coordinates.

    Args:
        indices: an axis of the tensor in each row.
        values: the entries; those at the same place are added.
        size: the lengths of the axes.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
        >>> x.to_dense()
        tensor([[0., 2.],
                [3., 0.]])
    """

    is_sparse, requires_grad, layout = True, False, LAYOUTS["sparse_coo"]
    is_cuda = is_sparse_csr = False

    def __init__(self, indices: Tensor, values: Tensor, size: Any) -> None:
        self._at, self._entries, self.shape = indices, values, Size(size)
        self.dtype, self.device, self.ndim = values.dtype, values.device, len(size)

    def size(self, dim: Any = None) -> Any:
        """The lengths of the axes, or of one."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of all entries, those that are not kept too."""
        return self.shape.numel()

    @property
    def T(self) -> "SparseTensor":
        """The transpose."""
        return self.t()

    def detach(self) -> "SparseTensor":
        """The tensor as it is: its entries are constants."""
        return self

    def clone(self) -> "SparseTensor":
        """A copy."""
        return SparseTensor(self._at.clone(), self._entries.clone(), self.shape)

    def indices(self) -> Tensor:
        """Where the entries are."""
        return self._at

    def values(self) -> Tensor:
        """The entries."""
        return self._entries

    _indices, _values = indices, values

    def _nnz(self) -> int:
        return int(self._entries.shape[0])

    def is_coalesced(self) -> bool:
        """Whether no place comes twice, and all come in order."""
        flat = np.ravel_multi_index(tuple(base(self._at)), self.shape)
        return bool((np.diff(flat) > 0).all())

    def coalesce(self) -> "SparseTensor":
        """The tensor with the entries of each place added, in order."""
        flat = np.ravel_multi_index(tuple(base(self._at)), self.shape)
        places, inverse = np.unique(flat, return_inverse=True)
        sums = namespace(places).zeros(len(places), base(self._entries).dtype)
        np.add.at(sums, inverse, base(self._entries))
        at = np.stack(np.unravel_index(places, self.shape))
        return SparseTensor(fresh(at), fresh(sums), self.shape)

    def to_dense(self) -> Tensor:
        """All entries, those that are not kept too."""
        z = self._entries.new_zeros(self.shape)
        at = tuple(self._at)
        return z.index_put_(at, self._entries, accumulate=True)

    def t(self) -> "SparseTensor":
        """The transpose."""
        return SparseTensor(self._at.flip(0), self._entries, self.shape[::-1])

    def transpose(self, dim0: int, dim1: int) -> "SparseTensor":
        """The transpose."""
        return self.t()

    def to(self, *args: Any, **options: Any) -> "SparseTensor":
        """The tensor in another type, or on another device."""
        return SparseTensor(self._at, self._entries.to(*args, **options), self.shape)

    def float(self) -> "SparseTensor":
        """In single precision."""
        return self.to(dtypes.float32)

    def double(self) -> "SparseTensor":
        """In double precision."""
        return self.to(dtypes.float64)

    def cpu(self) -> "SparseTensor":
        """The tensor as it is."""
        return self

    def cuda(self, device: Any = None) -> "SparseTensor":
        """Raises: the entries stay in the host's memory."""
        raise EagerError(
            "a sparse tensor stays on the CPU. Use its to_dense() on a GPU."
        )

    def __matmul__(self, other: Tensor) -> Any:
        return mm(self, other)

    def matmul(self, other: Tensor) -> Any:
        """The product with a matrix or a vector."""
        return mm(self, other)

    def __mul__(self, factor: Any) -> "SparseTensor":
        return SparseTensor(self._at, self._entries * factor, self.shape)

    def __repr__(self) -> str:
        return (
            f"tensor(indices={self._at!r},\n       values={self._entries!r},\n"
            f"       size={tuple(self.shape)}, nnz={self._nnz()}, "
            "layout=torch.sparse_coo)"
        )


def sparse_coo_tensor(
    indices: Any, values: Any, size: Any = None, *, dtype: Any = None, **options: Any
) -> SparseTensor:
    """A sparse tensor from the coordinates of its entries.

    Args:
        indices: an axis of the tensor in each row.
        values: the entries.
        size: the lengths of the axes; just enough by default.
        dtype: the type of the entries.
        options: the device, and what has no effect.

    Raises:
        RuntimeError: for entries whose derivative is wanted.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0]).to_dense()
        tensor([[0., 2.],
                [3., 0.]])
    """
    at = creation.as_tensor(indices, dtype=dtypes.int64)
    entries = creation.as_tensor(values, dtype=dtype)
    if not is_enabled():
        entries = entries.detach()
    if entries.requires_grad or options.get("requires_grad"):
        raise EagerError(
            "sparse_coo_tensor: entries are constants here. Use a dense tensor where "
            "their gradient is wanted."
        )
    if at.ndim != 2 or entries.ndim != 1 or at.shape[1] != entries.shape[0]:
        raise ShapeError(
            f"sparse_coo_tensor: indices of shape {tuple(at.shape)} do not fit values "
            f"of shape {tuple(entries.shape)}. Give a column for each value."
        )
    if size is None:
        size = [int(n) + 1 for n in base(at).max(1)]
    ends = beside(np.array(size)[:, None], base(at))
    if (base(at) < 0).any() or (base(at) >= ends).any():
        raise EagerError("size is inconsistent with indices")
    return SparseTensor(at, entries, size)


def mm(mat1: Any, mat2: Tensor) -> Any:
    """The product of a sparse and a dense matrix.

    Shapes:
        mat1: (n, k), sparse; mat2: (k, m) or (k,); result: (n, m) or (n,)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
        >>> torch.sparse.mm(x, torch.eye(2))
        tensor([[0., 2.],
                [3., 0.]])
    """
    if not isinstance(mat1, SparseTensor):
        return FUNCTIONS["matmul"](mat1, mat2)
    if not isinstance(mat2, Tensor):
        raise ArgumentError("sparse.mm: the second factor must be a dense tensor.")
    if mat1.ndim != 2 or mat1.shape[1] != mat2.shape[0]:
        raise EagerError(
            f"mat1 and mat2 shapes cannot be multiplied "
            f"({'x'.join(map(str, mat1.shape))} and "
            f"{'x'.join(map(str, mat2.shape))})"
        )
    rows, columns = mat1.indices()
    entries = mat1.values()
    if mat2.ndim == 2:
        entries = entries.unsqueeze(1)
    read = mat2.index_select(0, columns) * entries
    z = creation.zeros((mat1.shape[0], *read.shape[1:]), dtype=read.dtype)
    return z.index_add(0, rows, read)


spmm = dsmm = mm


def _typed(name: str, dtype: Any) -> Any:
    def make(indices: Any, values: Any, size: Any = None) -> SparseTensor:
        return sparse_coo_tensor(indices, values, size, dtype=dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"As ``sparse_coo_tensor``, of {dtype}."
    return make


FloatTensor = _typed("FloatTensor", dtypes.float32)
DoubleTensor = _typed("DoubleTensor", dtypes.float64)
HalfTensor = _typed("HalfTensor", dtypes.float16)
LongTensor = _typed("LongTensor", dtypes.int64)
IntTensor = _typed("IntTensor", dtypes.int32)
