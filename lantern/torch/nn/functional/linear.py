"""Products with weights, rows of tables, and distances."""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import UNTRACKED
from lantern.eager.grad_mode import is_enabled
from lantern.eager.recorder import AMBIENT
from lantern.eager.versions import written
from lantern.errors import (
    ArgumentError,
    EagerError,
    MissingRuleError,
    OptionError,
    PositionError,
    SizeError,
)
from lantern.torch.methods import table as methods
from lantern.torch.nn import rules
from lantern.torch.nn.starting import inside, same_types
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.dtypes import type_name
from lantern.torch.tensor.error_messages import check_together
from lantern.torch.tensor.named_results import into
from lantern.torch.tensor.operators import promote
from lantern.torch.tensor.tensor import Tensor, fresh, start, untracked

__all__ = [
    "bilinear", "cosine_similarity", "embedding", "embedding_bag", "linear",
    "normalize", "one_hot", "pairwise_distance", "pdist",
]  # fmt: skip

_F = methods.FUNCTIONS
_EAGER = frozenset({AMBIENT, UNTRACKED})
_rule = rules.plain_affine.rule


def linear(input: Tensor, weight: Tensor, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias``.

    Shapes:
        input: (..., n); weight: (m, n) or (n,); bias: (m,); result: (..., m)

    Example:
        >>> import lantern.torch as torch
        >>> x, weight, bias = (
        ...     torch.ones(2),
        ...     torch.tensor([[3.0, 4.0]]),
        ...     torch.tensor([0.5]),
        ... )
        >>> torch.nn.functional.linear(x, weight, bias)
        tensor([7.5000])
    """
    x, w, level = input.primal, weight.primal, input.level
    if (
        bias is not None
        and weight.level is AMBIENT is bias.level
        and level in _EAGER
        and x.dtype is w.dtype
        and x.dtype.itemsize != 2
        and w.ndim == 2
        and bias.primal.ndim < 2
    ):
        # Of a layer's own weight and bias in fewer steps.
        arrays = [x, w, bias.primal]
        try:
            if not is_enabled():
                return untracked(next(_rule(*arrays)))
            left = input.receiver if level is AMBIENT else None
            receivers = left, weight.receiver, bias.receiver
            return start(_rule(*arrays), _rule, arrays, receivers)
        except (TypeError, ValueError, IndexError):
            pass  # below it is said what is wrong
    if x.dtype is not w.dtype:
        same_types(input, weight)
    lengths, sizes = x.shape, w.shape
    if not lengths or not sizes:
        raise EagerError(
            f"both arguments to linear need to be at least 1D, but they are "
            f"{len(lengths)}D and {len(sizes)}D"
        )
    if len(sizes) == 1:
        z = input @ weight
        return z if bias is None else z + bias
    if lengths[-1] != sizes[-1]:
        rows = x.size // lengths[-1] if lengths[-1] else 1
        raise EagerError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{lengths[-1]} and "
            f"{sizes[1]}x{sizes[0]})"
        )
    if bias is not None and bias.primal.ndim > 1:  # a bias of its own for each row
        return rules.affine(input, weight, None) + bias
    return rules.affine(input, weight, bias)


def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Any = None
) -> Tensor:
    """``input1 @ weight[k] @ input2 + bias[k]`` for each k.

    Shapes:
        input1: (..., n); input2: (..., m); weight: (k, n, m); result: (..., k)

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import bilinear
        >>> bilinear(torch.tensor([1.0, 2.0]), torch.tensor([3.0]), torch.ones(1, 2, 1))
        tensor([9.])
    """
    z = _F["einsum"]("...i,kij,...j->...k", input1, weight, input2)
    return z if bias is None else z + bias


def _positions(index: Any, n: int) -> Any:
    """An array of positions in a table, checked."""
    index = base(index)
    if index.dtype.kind not in "iu":
        raise EagerError(
            "Expected tensor for argument #1 'indices' to have one of the following "
            "scalar types: Long, Int; but got a floating-point type instead"
        )
    if not inside(index, n):
        raise PositionError("index out of range in self")
    return index


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table at some positions; their cotangents share one buffer.

    Args:
        input: the positions.
        weight: the table.
        padding_idx: a position whose row receives nothing.
        max_norm: rows that are longer are shortened, in the table itself.
        norm_type: which norm that means.
        scale_grad_by_freq: not supported.
        sparse: has no effect: gradients are dense.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import embedding
        >>> embedding(torch.tensor([2, 0]), torch.arange(6.0).reshape(3, 2))
        tensor([[4., 5.],
                [0., 1.]])
    """
    if scale_grad_by_freq:
        raise ArgumentError("embedding: scale_grad_by_freq is not supported.")
    table, index = base(weight), base(input)
    if table.ndim != 2:
        raise EagerError("'weight' must be 2-D")
    if type(index) is not type(table):
        check_together(input, weight)
    index = _positions(index, table.shape[0])
    if max_norm is not None:
        _shorten(table, index, max_norm, norm_type)
    keep = None
    if padding_idx is not None:
        if not -table.shape[0] <= padding_idx < table.shape[0]:
            raise SizeError("Padding_idx must be within num_embeddings")
        keep = index != padding_idx % table.shape[0]
        # On a GPU to look would take longer than to keep it.
        keep = None if type(keep) is np.ndarray and keep.all() else keep
    return rules.rows(weight, index=index.copy(), keep=keep)


def _shorten(table: Any, index: Any, max_norm: float, norm_type: float) -> None:
    used = np.unique(index)
    lengths = np.linalg.norm(table[used], norm_type, axis=1)
    long = lengths > max_norm
    factors = (max_norm / (lengths[long] + 1e-7)).astype(table.dtype)
    table[used[long]] *= factors[:, None]
    written(table)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of rows of a table, for each bag of positions.

    Example:
        >>> import lantern.torch as torch
        >>> table = torch.arange(6.0).reshape(3, 2)
        >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 2]]), table)
        tensor([[2., 3.]])
    """
    if mode not in ("sum", "mean", "max"):
        raise OptionError("mode has to be one of sum, mean or max")
    check_bags(input, weight, offsets, per_sample_weights, mode, include_last_offset)
    n = len(base(weight))
    if padding_idx is not None:
        if not -n <= padding_idx < n:
            raise EagerError(
                "padding_idx must be within the number of embeddings: "
                f"{-n} to {n - 1}, not {padding_idx}"
            )
        padding_idx %= n
    bag, count = _bags(input, offsets, include_last_offset)
    where = input.reshape(-1)
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if not inside(base(where), n):
        raise EagerError(f"Expected idx >= 0 && idx < num_embeddings: {n} of them")
    if padding_idx is not None:
        kept = where != padding_idx
        where, bag = where[kept], bag[base(kept)]
        factors = None if factors is None else factors[kept]
    rows = embedding(where, weight, None, max_norm, norm_type)
    kind = rows.dtype
    if base(rows).dtype.itemsize == 2:  # sums of halves are taken in float32
        rows, factors = rows.float(), None if factors is None else factors.float()
    rows = rows if factors is None else rows * factors.unsqueeze(-1)
    return _joined(rows, bag, count, mode).to(kind)


def _joined(rows: Tensor, bag: Any, count: int, mode: str) -> Any:
    """The sum, mean or maximum of the rows of each bag; 0 for an empty one."""
    if mode == "max":
        parts = [rows[fresh(bag == i)] for i in range(count)]
        tops = [z.max(0).values if len(z) else z.sum(0) for z in parts]
        return _F["stack"](tops) if tops else rows[:0]
    sums = rows.new_zeros(count, rows.shape[1]).index_add(0, fresh(bag), rows)
    if mode == "sum":
        return sums
    sizes = np.bincount(bag, minlength=count).clip(1).astype(base(rows).dtype)
    return sums / fresh(sizes[:, None])


def _bags(input: Tensor, offsets: Any, last: bool) -> Any:
    """Of each position, which bag it is in; and how many bags there are."""
    if offsets is None:
        count, length = base(input).shape
        return np.repeat(np.arange(count), length), count
    # The last offset says where the input ends; PyTorch looks at it in some modes only.
    starts = base(offsets)[: len(base(offsets)) - last]
    ends = [*starts[1:], base(input).size]
    return np.repeat(np.arange(len(starts)), ends - starts), len(starts)


def check_bags(
    input: Tensor, weight: Tensor, offsets: Any, factors: Any, mode: str, last: bool
) -> None:
    """Raise unless positions, where their bags begin, and their factors fit."""
    x = base(input)
    if x.ndim not in (1, 2):
        raise OptionError(f"input has to be 1D or 2D Tensor, but got {x.ndim}D")
    if x.ndim == 2 and offsets is not None:
        raise OptionError(
            "if input is 2D, then offsets has to be None, as input is treated is a "
            f"mini-batch of fixed length sequences. However, found {offsets!r}"
        )
    if base(weight).ndim != 2:
        raise EagerError(f"weight has to be a 2D Tensor, but got {base(weight).ndim}D")
    if x.ndim == 1:
        if not isinstance(offsets, Tensor):
            raise OptionError("offsets has to be a 1D Tensor but got None")
        starts = base(offsets)
        if starts.ndim != 1:
            raise OptionError("offsets has to be a 1D Tensor")
        if last and not starts.size:
            raise EagerError(
                "include_last_offset: number of offset should be at least 1"
            )
        if starts.size and starts[0] != 0:
            raise EagerError(
                f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch "
                f"has to start from position 0. However, got {starts[0]}"
            )
        if starts.size and starts[-1] > x.size:
            raise EagerError(
                f"offsets[-1] can not be greater than input's length, but got "
                f"offsets[-1] of {starts[-1]} and {x.size}"
            )
        if (np.diff(starts) < 0).any():
            raise EagerError("embedding_bag: offsets must not become smaller")
    if factors is None:
        return
    if mode != "sum":
        raise MissingRuleError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is "
            f"only supported for mode='sum' (got mode='{mode}')."
        )
    if base(factors).shape != x.shape:
        raise OptionError(
            f"embedding_bag: If per_sample_weights ({factors.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    if factors.dtype != weight.dtype:
        raise EagerError(
            f"Expected per_sample_weights to have the same type as weight, "
            f"{weight.dtype}, but got {factors.dtype}"
        )


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each number a row with 1 at its place, else 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.one_hot(torch.tensor([2, 0]))
        tensor([[0, 0, 1],
                [1, 0, 0]])
    """
    x = base(tensor)
    if x.dtype.kind not in "iu":
        raise EagerError("one_hot is only applicable to index tensor.")
    every = of_all_examples(x)
    if every.size and int(every.min()) < 0:
        raise EagerError("Class values must be non-negative.")
    if num_classes <= 0 and every is not x:
        raise EagerError(
            "vmap: one_hot of another number of classes for each example would have a "
            "dynamic shape. Give num_classes."
        )
    if num_classes <= 0 and not every.size:
        raise EagerError("Can not infer total number of classes from empty tensor.")
    n = int(x.max()) + 1 if num_classes == -1 else num_classes
    if every.size and int(every.max()) >= n:
        raise EagerError("Class values must be smaller than num_classes.")
    return fresh((x[..., None] == namespace(x).arange(n)).astype(np.int64))


def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> Tensor:
    """The tensor over its norm along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    return into(input / input.norm(p, dim, keepdim=True).clamp(min=eps), out)


def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8
) -> Tensor:
    """The cosine of the angle between vectors along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import cosine_similarity
        >>> cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
        tensor(0.7071)
    """
    if base(x1).dtype != base(x2).dtype:
        x1, x2 = promote(x1, x2)
    if base(x1).dtype.kind in "iub":
        raise EagerError(
            f"expected common dtype to be floating point, yet common dtype is "
            f"{type_name(base(x1).dtype)}"
        )
    if base(x1).shape != base(x2).shape:
        x1, x2 = _F["broadcast_tensors"](x1, x2)
    lengths = [x.norm(2, dim, keepdim=True).clamp(min=eps) for x in (x1, x2)]
    return (x1 / lengths[0] * (x2 / lengths[1])).sum(dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The norm of the differences of rows.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import pairwise_distance
        >>> pairwise_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of every two different rows.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import pdist
        >>> pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
        tensor([5.0000, 1.0000, 4.2426])
    """
    i, j = namespace(base(input)).triu_indices(len(input), 1)
    return (input[fresh(i)] - input[fresh(j)]).norm(p, -1)
