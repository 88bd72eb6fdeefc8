"""Fourier transforms: ``torch.fft``."""

from typing import Any

import numpy as np

from lantern import fft as ours
from lantern.errors import EagerError, PositionError
from lantern.torch.functions.creation import finished
from lantern.torch.functions.reduction import axis_of
from lantern.torch.tables import documented, place
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.dtypes import as_numpy_dtype
from lantern.torch.tensor.named_results import with_out
from lantern.torch.tensor.operators import call, promote
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

# Where the inverse of a transform has its factor: the other way round.
_OTHER = {None: "forward", "backward": "forward", "forward": "backward"}


def _operand(name: str, input: Tensor) -> Any:
    (x,) = promote(input, floating=True)
    kind = base(x).dtype
    if kind.kind == "c" and name in ("rfft", "ihfft", "rfftn", "ihfftn"):
        raise EagerError(
            f"{name} expects a real input tensor, but got Complex{kind.itemsize * 4}"
        )
    return x


def _checked(name: str, x: Tensor, n: Any, dim: Any, norm: Any) -> None:
    shape = base(x).shape
    if norm not in (None, "backward", "forward", "ortho"):
        raise EagerError(f'Invalid normalization mode: "{norm}"')
    for length in n if isinstance(n, list | tuple) else (n,):
        if length is not None and length < 1 and length != -1:
            raise EagerError(f"Invalid number of data points ({length}) specified")
    dims = dim if isinstance(dim, list | tuple) else () if dim is None else (dim,)
    if not shape and dim is not None:
        raise PositionError(f"{name} of a tensor without axes")
    found = [axis_of(d, len(shape)) for d in dims]
    if len(set(found)) < len(found):
        raise EagerError("FFT dims must be unique")
    if isinstance(n, list | tuple) and dim is not None and len(n) != len(dims):
        raise EagerError(
            "When given, dim and shape arguments must have the same length"
        )
    if isinstance(n, list | tuple) and len(n) > len(shape):
        raise EagerError(
            f"Got shape with {len(n)} values but input tensor only has {len(shape)} "
            f"dimensions."
        )


def _one(name: str) -> Any:
    function = getattr(ours, name)

    def transform(input: Tensor, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        x = _operand(name, input)
        _checked(name, x, n, dim, norm)
        if not base(x).shape[dim] and n is None:
            raise EagerError("Invalid number of data points (0) specified")
        return call(function, x, n, dim, norm)

    transform.__name__ = transform.__qualname__ = name
    return transform


def _chosen(x: Tensor, s: Any, dim: Any) -> tuple[Any, Any]:
    """The axes of a transform along several, and the lengths there."""
    ndim = base(x).ndim
    if dim is None:
        dim = range(ndim) if s is None else range(ndim - len(s), ndim)
    dim = tuple(axis_of(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim))
    if s is not None:
        s = (s,) if isinstance(s, int) else s
        s = tuple(
            base(x).shape[d] if n == -1 else n for n, d in zip(s, dim, strict=True)
        )
    return s, dim


def _several(name: str, default: Any = None) -> Any:
    function = getattr(ours, f"{name}n") if name not in ("hfft", "ihfft") else None

    def transform(
        input: Tensor, s: Any = None, dim: Any = default, norm: Any = None
    ) -> Any:
        x = _operand(f"{name}n", input)
        _checked(f"{name}n", x, s, dim, norm)
        s, dim = _chosen(x, s, dim)
        if not dim:
            if name in ("rfft", "irfft", "hfft", "ihfft"):
                raise EagerError(f"{name}n must transform at least one axis")
            return call(function, x, s, dim, norm)
        if function is not None:
            return call(function, x, s, dim, norm)
        return _hermitian(name, x, s, dim, norm)

    transform.__name__ = transform.__qualname__ = f"{name}{2 if default else 'n'}"
    return transform


def _hermitian(name: str, x: Tensor, s: Any, dim: Any, norm: Any) -> Any:
    """``hfft`` and ``ihfft`` along several axes: the last one is half there."""
    inverse = norm if norm == "ortho" else _OTHER[norm]
    if name == "hfft":
        return irfftn(x.conj(), s, dim, inverse)
    return rfftn(x, s, dim, inverse).conj()


fft = documented(
    _one("fft"),
    """The Fourier transform along an axis.

    >>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """,
)
ifft = documented(
    _one("ifft"),
    """The inverse of ``fft``.

    >>> torch.fft.ifft(torch.tensor([10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j]))
    tensor([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j])
    """,
)
rfft = documented(
    _one("rfft"),
    """The Fourier transform of real numbers along an axis: the half that says all.

    >>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """,
)
irfft = documented(
    _one("irfft"),
    """The inverse of ``rfft``; ``n`` says how long the signal was, if it was odd.

    >>> torch.fft.irfft(torch.tensor([10 + 0j, -2 + 2j, -2 + 0j]))
    tensor([1., 2., 3., 4.])
    """,
)
hfft = documented(
    _one("hfft"),
    """The real transform of a Hermitian signal, of which one half is given.

    >>> torch.fft.hfft(torch.tensor([10 + 0j, -2 + 2j, -2 + 0j]))
    tensor([ 4., 16., 12.,  8.])
    """,
)
ihfft = documented(
    _one("ihfft"),
    """The inverse of ``hfft``: half of a Hermitian transform.

    >>> torch.fft.ihfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 2.5000-0.0000j, -0.5000-0.5000j, -0.5000-0.0000j])
    """,
)
fftn = documented(
    _several("fft"),
    """The Fourier transform along several axes, all by default.

    >>> torch.fft.fftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """,
)
ifftn = documented(
    _several("ifft"),
    """The inverse of ``fftn``.

    >>> torch.fft.ifftn(torch.tensor([[10.0, -2.0], [-4.0, 0.0]]))
    tensor([[1.+0.j, 2.+0.j],
            [3.+0.j, 4.+0.j]])
    """,
)
rfftn = documented(
    _several("rfft"),
    """``rfft`` along several axes, all by default.

    >>> torch.fft.rfftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """,
)
irfftn = documented(
    _several("irfft"),
    """The inverse of ``rfftn``.

    >>> torch.fft.irfftn(torch.tensor([[10.0, -2.0], [-4.0, 0.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """,
)
hfftn = documented(
    _several("hfft"),
    """``hfft`` along several axes, all by default.

    >>> torch.fft.hfftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10., -2.],
            [-4.,  0.]])
    """,
)
ihfftn = documented(
    _several("ihfft"),
    """The inverse of ``hfftn``.

    >>> torch.fft.ihfftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).real
    tensor([[ 2.5000, -0.5000],
            [-1.0000,  0.0000]])
    """,
)
fft2 = documented(
    _several("fft", (-2, -1)),
    """The Fourier transform along two axes, the last ones by default.

    >>> torch.fft.fft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """,
)
ifft2 = documented(
    _several("ifft", (-2, -1)),
    """The inverse of ``fft2``.

    >>> torch.fft.ifft2(torch.tensor([[10.0, -2.0], [-4.0, 0.0]]))
    tensor([[1.+0.j, 2.+0.j],
            [3.+0.j, 4.+0.j]])
    """,
)
rfft2 = documented(
    _several("rfft", (-2, -1)),
    """``rfft`` along two axes, the last ones by default.

    >>> torch.fft.rfft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """,
)
irfft2 = documented(
    _several("irfft", (-2, -1)),
    """The inverse of ``rfft2``.

    >>> torch.fft.irfft2(torch.tensor([[10.0, -2.0], [-4.0, 0.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """,
)
hfft2 = documented(
    _several("hfft", (-2, -1)),
    """``hfft`` along two axes, the last ones by default.

    >>> torch.fft.hfft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10., -2.],
            [-4.,  0.]])
    """,
)
ihfft2 = documented(
    _several("ihfft", (-2, -1)),
    """The inverse of ``hfft2``.

    >>> torch.fft.ihfft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).real
    tensor([[ 2.5000, -0.5000],
            [-1.0000,  0.0000]])
    """,
)


def fftshift(input: Tensor, dim: Any = None) -> Any:
    """The elements moved so that frequency 0 stands in the middle.

    Example:
        >>> import lantern.torch as torch
        >>> torch.fft.fftshift(torch.fft.fftfreq(4))
        tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return call(ours.fftshift, input, dim if dim is None else tuple(np.atleast_1d(dim)))


def ifftshift(input: Tensor, dim: Any = None) -> Any:
    """The inverse of ``fftshift``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return call(
        ours.ifftshift, input, dim if dim is None else tuple(np.atleast_1d(dim))
    )


def _frequencies(name: str) -> Any:
    function = getattr(np.fft, name)

    def frequencies(
        n: int,
        d: float = 1.0,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Any:
        kind = dtypes.default() if dtype is None else as_numpy_dtype(dtype)
        return finished(function(n, d).astype(kind), device, requires_grad)

    frequencies.__name__ = frequencies.__qualname__ = name
    return frequencies


fftfreq = documented(
    _frequencies("fftfreq"),
    """The frequencies of ``fft`` of n samples at distances d, in its order.

    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """,
)
rfftfreq = documented(
    _frequencies("rfftfreq"),
    """The frequencies of ``rfft`` of n samples at distances d, in its order.

    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """,
)

globals().update({name: with_out(globals()[name]) for name in __all__})
place(__name__, globals())
