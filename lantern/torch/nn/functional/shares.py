"""Shares along an axis, and what chance leaves out: softmax and dropout."""

import warnings
from typing import Any

import numpy as np

from lantern.errors import EagerError, OptionError
from lantern.torch.methods.sampling import rng
from lantern.torch.nn.functional.activation import _SELU, may_write, sigmoid
from lantern.torch.nn.masks import drawn
from lantern.torch.tables import documented
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import plain_number
from lantern.torch.tensor.devices import beside
from lantern.torch.tensor.dtypes import as_numpy_dtype, type_name
from lantern.torch.tensor.operators import cast, promote
from lantern.torch.tensor.tensor import Tensor, fresh
from lantern.vectorizing.batched import Batched

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "feature_alpha_dropout", "glu", "gumbel_softmax", "log_softmax", "softmax",
    "softmin",
]  # fmt: skip


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """One half along an axis, times the sigmoid of the other.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.glu(torch.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """
    if input.shape[dim] % 2:
        raise EagerError(
            f"Halving dimension must be even, but dimension {dim} is size "
            f"{input.shape[dim]}"
        )
    a, b = input.chunk(2, dim)
    return a * sigmoid(b)


def _implicit(ndim: int) -> int:
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Each exponential's share of their sum along an axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.softmax(torch.tensor([0.0, 0.0, 1.0]), dim=0)
        tensor([0.2119, 0.2119, 0.5761])
    """
    x = input if dtype is None else cast(input, as_numpy_dtype(dtype))
    return x.softmax(_implicit(x.dim()) if dim is None else dim)


def log_softmax(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """The logarithm of ``softmax``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.log_softmax(torch.tensor([0.0, 0.0]), dim=0)
        tensor([-0.6931, -0.6931])
    """
    x = input if dtype is None else cast(input, as_numpy_dtype(dtype))
    return x.log_softmax(_implicit(x.dim()) if dim is None else dim)


def softmin(
    input: Tensor, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """``softmax`` of the negative.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.functional.softmin(torch.tensor([0.0, 0.0, 1.0]), dim=0)
        tensor([0.4223, 0.4223, 0.1554])
    """
    if dtype is None:
        (input,) = promote(input, floating=True)
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
) -> Tensor:
    """``softmax`` of noisy logits; if hard, 1 at its largest element.

    Example:
        >>> import lantern.torch as torch
        >>> draws = torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True)
        >>> draws.round().sum(dim=1)
        tensor([1., 1.])
    """
    x = base(logits)
    noise = -np.log(rng().standard_exponential(x.shape)).astype(x.dtype)
    soft = ((logits + fresh(beside(noise, x))) / tau).softmax(dim)
    if not hard:
        return soft
    plain = soft.detach()
    one = (plain * 0).scatter(dim, plain.argmax(dim, keepdim=True), 1)
    return one - plain + soft


def _kept(input: Tensor, shape: Any, p: float, training: bool) -> Tensor:
    """The tensor, with parts of a shape 0 by chance."""
    p = plain_number("dropout: p", p)
    if p < 0 or p > 1:
        raise OptionError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    x = base(input)
    if x.dtype.kind in "iub":
        raise EagerError(
            f"result type Float can't be cast to the desired output type "
            f"{type_name(x.dtype)}"
        )
    scale = x.dtype.type(0 if p == 1 else 1 / (1 - p))
    kept = _drawn_as(x, p) if shape == x.shape else drawn(shape, p, x)
    kept = kept * scale
    return input * fresh(kept.astype(x.dtype, copy=False))


def _drawn_as(x: Any, p: float) -> Any:
    """What is kept of each element, with its axes in memory as those of an array."""
    if type(x) is Batched or x.flags.c_contiguous:
        return drawn(x.shape, p, x)
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    kept = drawn(tuple(x.shape[axis] for axis in order), p, x)
    return kept.transpose(np.argsort(order))


@may_write
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Each element 0 with chance p while training, the others scaled up.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.functional.dropout(torch.ones(1000), 0.5)
        >>> sorted(set(x.tolist()))
        [0.0, 2.0]
        >>> torch.nn.functional.dropout(torch.ones(3), training=False)
        tensor([1., 1., 1.])
    """
    return _kept(input, base(input).shape, p, training)


def _leading(axes: int, ndim: int) -> int:
    """How many axes before those of a channel there are: one without a batch.

    Of one axis, a batch may be missing; of two, three axes are a batch of channels.
    """
    name, wanted = f"dropout{axes}d", (axes + 1, axes + 2)
    if axes == 1 and ndim not in wanted:
        raise EagerError(
            f"{name}: Expected 2D or 3D input, but received a {ndim}D input. It drops "
            f"channels of one axis, with or without a batch."
        )
    if ndim < 2 and axes == 2:
        raise EagerError("Feature dropout requires at least 2 dimensions in the input")
    if ndim not in wanted:
        warnings.warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated; "
            f"dropout{max(ndim - 2, 1)}d is for it, and dropout for each element.",
            stacklevel=5,
        )
    elif axes == 2 and ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that "
            "channel-wise 1D dropout behavior is desired - input is interpreted as "
            "shape (N, C, L).",
            stacklevel=5,
        )
    return 2 if axes == 2 or ndim == axes + 2 else 1


def _of_channels(axes: int) -> Any:
    @may_write
    def function(
        input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        shape = base(input).shape
        whole = _leading(axes, len(shape))
        ones = (1,) * (len(shape) - whole)
        return _kept(input, shape[:whole] + ones, p, training)

    name = f"dropout{axes}d"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Each channel 0 with chance p while training."
    return function


dropout1d = documented(
    _of_channels(1),
    """
    >>> torch.nn.functional.dropout1d(torch.ones(2, 3), training=False)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """,
)
dropout2d = documented(
    _of_channels(2),
    """
    >>> torch.nn.functional.dropout2d(torch.ones(1, 2, 1, 1), training=False).shape
    torch.Size([1, 2, 1, 1])
    """,
)
dropout3d = documented(
    _of_channels(3),
    """
    >>> torch.nn.functional.dropout3d(torch.ones(1, 2, 1, 1, 1), training=False).shape
    torch.Size([1, 2, 1, 1, 1])
    """,
)


@may_write
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """As ``dropout``, keeping mean and variance behind ``selu``.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.nn.functional.alpha_dropout(torch.zeros(1000), 0.5, training=True)
        >>> len(set(x.tolist()))
        2
        >>> torch.nn.functional.alpha_dropout(torch.ones(2))
        tensor([1., 1.])
    """
    return _alpha(input, base(input).shape, p, training)


@may_write
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """As ``alpha_dropout``, of whole channels.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.functional import feature_alpha_dropout
        >>> x = feature_alpha_dropout(torch.zeros(1, 99, 4), 0.5, training=True)
        >>> (x == x[:, :, :1]).all().item()
        True
    """
    shape = base(input).shape
    ones = (1,) * (len(shape) - 2)
    return _alpha(input, shape[:2] + ones, p, training)


def _alpha(input: Tensor, shape: Any, p: float, training: bool) -> Any:
    p = plain_number("dropout: p", p)
    if p < 0 or p > 1:
        raise OptionError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    low = -_SELU[0] * _SELU[1]
    a = 0.0 if p == 1 else ((1 - p) * (1 + p * low * low)) ** -0.5
    x = base(input)
    kept = drawn(shape, p, x, np.float64).astype(x.dtype)
    z = (input * fresh(kept) + fresh((1 - kept) * kept.dtype.type(low))) * a
    return z - a * low * p
