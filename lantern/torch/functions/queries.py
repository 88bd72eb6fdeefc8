"""Functions that PyTorch has for older programs, or beside others like them."""

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from lantern.errors import EagerError
from lantern.torch.functions import creation, ranges
from lantern.torch.functions.join_repeat import stack
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.dtypes import as_numpy_dtype, category
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "batch_norm", "can_cast", "detach_", "dropout", "embedding", "frobenius_norm",
    "frombuffer", "get_device", "instance_norm", "is_conj", "is_inference", "is_neg",
    "is_same_size", "is_signed", "is_storage", "norm_except_dim", "nuclear_norm",
    "typename", "unsafe_split_with_sizes", "vander",
]  # fmt: skip


def can_cast(from_: Any, to: Any) -> bool:
    """Whether values of a type may be written to a tensor of another.

    Example:
        >>> import lantern.torch as torch
        >>> torch.can_cast(torch.float64, torch.float32)
        True
        >>> torch.can_cast(torch.float32, torch.int64)
        False
    """
    a, b = map(as_numpy_dtype, (from_, to))
    return category(a) <= category(b)


def detach_(input: Tensor) -> Any:
    """Cut a tensor off what made it.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(1, requires_grad=True) * 2
        >>> torch.detach_(x).requires_grad
        False
    """
    return input.detach_()


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Any:
    """The root of the sum of squares over axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0]]), 1)
        tensor([5.])
    """
    return input.norm(2, tuple(dim) if isinstance(dim, list | tuple) else dim, keepdim)


def nuclear_norm(input: Tensor, keepdim: bool = False) -> Any:
    """The sum of a matrix's singular values.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nuclear_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(7.)
    """
    return input.norm("nuc", keepdim=keepdim)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Any:
    """The norms of the parts along an axis; of all for -1.

    Example:
        >>> import lantern.torch as torch
        >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [6.0, 8.0]]))
        tensor([[ 5.],
                [10.]])
    """
    if dim == -1:
        return v.norm(pow)
    dims = tuple(i for i in np.arange(v.ndim).tolist() if i != dim % v.ndim)
    return v.norm(pow, dims, True) if dims else v.abs()


def frombuffer(
    buffer: Any,
    *,
    dtype: Any,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """The memory of a buffer as a tensor of one axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
        tensor([1, 2], dtype=torch.int16)
    """
    array = np.frombuffer(buffer, as_numpy_dtype(dtype), count, offset)
    return creation.finished(array, None, requires_grad)


def get_device(input: Tensor) -> int:
    """The number of a tensor's device; -1 for the CPU.

    Example:
        >>> import lantern.torch as torch
        >>> torch.get_device(torch.ones(1))
        -1
    """
    return input.get_device()


def is_conj(input: Tensor) -> bool:
    """False: conjugates are computed at once.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_conj(torch.complex(torch.ones(1), torch.ones(1)).conj())
        False
    """
    return False


def is_neg(input: Tensor) -> bool:
    """False: negatives are computed at once.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_neg(-torch.ones(1))
        False
    """
    return False


def is_inference(input: Tensor) -> bool:
    """False: tensors do not know the mode that they were made in.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_inference(torch.ones(1))
        False
    """
    return False


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two shapes are one.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_same_size(torch.ones(2), torch.zeros(2))
        True
    """
    return base(input).shape == base(other).shape


def is_signed(input: Tensor) -> bool:
    """Whether a tensor's type has negative numbers.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_signed(torch.tensor([1], dtype=torch.uint8))
        False
    """
    return base(input).dtype.kind not in "ub"


def is_storage(obj: Any) -> bool:
    """False: memory is shown as a tensor.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_storage(torch.ones(1).storage())
        False
    """
    return False


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """As ``nn.functional.embedding``, with its arguments in another order.

    Example:
        >>> import lantern.torch as torch
        >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.embedding(table, torch.tensor([1, 1]))
        tensor([[3., 4.],
                [3., 4.]])
    """
    padding = None if padding_idx < 0 else padding_idx
    return _layers().embedding(
        indices,
        weight,
        padding,
        scale_grad_by_freq=scale_grad_by_freq,
        sparse=sparse,
    )


def batch_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """As ``nn.functional.batch_norm``, with its arguments in another order.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-9, False)
        tensor([[-1.],
                [ 1.]])
    """
    return _layers().batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


def instance_norm(
    input: Tensor,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """As ``nn.functional.instance_norm``, with its arguments in another order.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[[1.0, 3.0]]])
        >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-9, False)
        tensor([[[-1.,  1.]]])
    """
    return _layers().instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def dropout(input: Tensor, p: float, train: bool) -> Any:
    """As ``nn.functional.dropout``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.dropout(torch.ones(3), 0.5, False)
        tensor([1., 1., 1.])
    """
    return _layers().dropout(input, p, train)


def _layers() -> Any:
    return import_module("lantern.torch.nn.functional")


def range(start: Any, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """As ``arange``, with the end itself, of the default type, and a warning.

    Example:
        >>> import warnings
        >>> import lantern.torch as torch
        >>> with warnings.catch_warnings(action="ignore"):
        ...     torch.range(1, 2, 0.5)
        tensor([1.0000, 1.5000, 2.0000])
    """
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its "
        "behavior is inconsistent with Python's range builtin. Instead, use "
        "torch.arange, which produces values in [start, end).",
        stacklevel=2,
    )
    start, end = (0, start) if end is None else (start, end)
    if (end - start) * step < 0:
        raise EagerError("upper bound and lower bound inconsistent with step sign")
    count = int((end - start) / step + 1)
    options.setdefault("dtype", dtypes.get_default_dtype())
    return ranges.arange(count, **options) * step + start


def typename(obj: Any) -> str:
    """The name of an object's type; of a tensor with its type of elements.

    Example:
        >>> import lantern.torch as torch
        >>> torch.typename(torch.ones(1))
        'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = kind.__module__.removeprefix("lantern.")
    return (
        kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
    )


def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> Any:
    """Parts along an axis, of some lengths.

    Example:
        >>> import lantern.torch as torch
        >>> torch.unsafe_split_with_sizes(torch.arange(3), [1, 2])
        (tensor([0]), tensor([1, 2]))
    """
    return input.split(list(split_sizes), dim)


def vander(x: Tensor, N: Any = None, increasing: bool = False) -> Any:
    """The powers of numbers, in rows; the highest first, or last.

    Example:
        >>> import lantern.torch as torch
        >>> torch.vander(torch.tensor([1, 2, 3]))
        tensor([[1, 1, 1],
                [4, 2, 1],
                [9, 3, 1]])
    """
    count = len(x) if N is None else N
    if not count:
        return creation.zeros(len(x), 0, dtype=x.dtype)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return stack([x**n for n in powers.tolist()], -1)
