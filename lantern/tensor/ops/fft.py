"""Fourier transforms: four along one axis, and all others by these."""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.operation import Function
from lantern.core.value import Rule, base
from lantern.errors import ShapeError, counted
from lantern.op import adjoint, linear
from lantern.rules.arithmetic import conj
from lantern.tensor.backend.device import to_device
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.axes import part, refuse
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.rearrange import roll
from lantern.tensor.ops.shape import axis_of

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

# Which norm scales the transform back as a norm scales it there.
_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho"}
_SWAPPED["forward"] = "backward"


def _length(x: Any, n: int, axis: int) -> Any:
    """An array cut, or filled up with zeros, to a length along an axis."""
    m = x.shape[axis]
    if n <= m:
        return x if n == m else part(x, axis, 0, n)
    xp = array_namespace(base(x))
    zeros = xp.zeros(
        [n - m if i == axis else k for i, k in enumerate(x.shape)], x.dtype
    )
    return namespace(x).concat([x, zeros], axis=axis)


def _half_weights(z: Any, n: int, axis: int, weight: float) -> Any:
    """A weight for the frequencies that stand for two; 1 for 0 and for the middle."""
    m = n // 2 + 1
    xp = array_namespace(base(z))
    weights = xp.full(m, weight, dtype=xp.real(base(z)[:0]).dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return weights.reshape([-1 if i == axis else 1 for i in range(len(z.shape))])


def fft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """The discrete Fourier transform along an axis.

    Args:
        a: the signal.
        n: its length: a is cut, or filled up with zeros.
        axis: along which.
        norm: which direction divides by n: "backward", "forward", or "ortho" for a
            root of it in each.
        out: not supported.

    Shapes:
        a: (..., m, ...); result: (..., n, ...)

    Example:
        >>> import numpy as np
        >>> fft(np.array([1.0, 2.0]))
        array([ 3.+0.j, -1.+0.j])
    """
    refuse("fft", out=out)
    a = asarray(a)
    return _fft(a, n, axis_of(axis, len(a.shape)), norm)


@linear
def _fft(x: Any, /, n: int | None, axis: int, norm: str | None) -> Rule:
    """The discrete Fourier transform along an axis.

    Shapes:
        x: (..., m, ...); result: (..., n, ...)

    Rule:
        x_bar = fft(z_bar): the matrix of the transform is symmetric
    """
    m = x.shape[axis]
    z_bar = yield (namespace(x).fft.fft(x, n, axis, norm), x := None)[0]
    yield _length(namespace(z_bar).fft.fft(z_bar, None, axis, norm), m, axis)


def ifft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """The inverse of ``fft``, with the same arguments.

    Shapes:
        a: (..., m, ...); result: (..., n, ...)

    Example:
        >>> import numpy as np
        >>> ifft(np.array([3.0, -1.0]))
        array([1.+0.j, 2.+0.j])
    """
    refuse("ifft", out=out)
    a = asarray(a)
    return _ifft(a, n, axis_of(axis, len(a.shape)), norm)


@linear
def _ifft(x: Any, /, n: int | None, axis: int, norm: str | None) -> Rule:
    """The inverse Fourier transform along an axis.

    Shapes:
        x: (..., m, ...); result: (..., n, ...)

    Rule:
        x_bar = ifft(z_bar): the matrix of the transform is symmetric
    """
    m = x.shape[axis]
    z_bar = yield (namespace(x).fft.ifft(x, n, axis, norm), x := None)[0]
    yield _length(namespace(z_bar).fft.ifft(z_bar, None, axis, norm), m, axis)


def rfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """The Fourier transform of a real signal, without the negative frequencies.

    Its arguments are those of ``fft``.

    Shapes:
        a: (..., m, ...); result: (..., n // 2 + 1, ...)

    Example:
        >>> import numpy as np
        >>> rfft(np.array([1.0, 2.0, 3.0])).shape
        (2,)
    """
    refuse("rfft", out=out)
    a = asarray(a)
    axis = axis_of(axis, len(a.shape))
    return _rfft(a, a.shape[axis] if n is None else n, axis, norm)


@linear
def _rfft(x: Any, /, n: int, axis: int, norm: str | None) -> Rule:
    """The Fourier transform of a real signal, without the negative frequencies.

    Shapes:
        x: (..., m, ...); result: (..., n // 2 + 1, ...)

    Rule:
        x_bar = the real part of fft(z_bar, n), which is the not normalised
        irfft(conj(z_bar) * w, n), with w half for the frequencies that stand for two
    """
    m = x.shape[axis]
    z_bar = yield (namespace(x).fft.rfft(x, n, axis, norm), x := None)[0]
    xp = namespace(z_bar)
    z_bar = xp.conj(z_bar) * _half_weights(z_bar, n, axis, 0.5)
    yield _length(xp.fft.irfft(z_bar, n, axis, _SWAPPED[norm]), m, axis)


def irfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """The inverse of ``rfft``: a real signal of length n, by default an even one.

    Its arguments are those of ``fft``.

    Shapes:
        a: (..., m, ...); result: (..., n, ...), or 2 * (m - 1)

    Example:
        >>> import numpy as np
        >>> irfft(np.array([3.0, -1.0]))
        array([1., 2.])
    """
    refuse("irfft", out=out)
    a = asarray(a)
    axis = axis_of(axis, len(a.shape))
    return _irfft(a, 2 * (a.shape[axis] - 1) if n is None else n, axis, norm)


@adjoint
def _irfft(x: Any, /, n: int, axis: int, norm: str | None) -> Rule:
    """The inverse of ``rfft``, of length n.

    Shapes:
        x: (..., m, ...); result: (..., n, ...)

    Rule:
        x_bar = the not normalised rfft(z_bar) * w, with w = 2 for the frequencies that
        stand for two
    """
    m = x.shape[axis]
    z_bar = yield (namespace(x).fft.irfft(x, n, axis, norm), x := None)[0]
    x_bar = namespace(z_bar).fft.rfft(z_bar, n, axis, _SWAPPED[norm])
    yield _length(x_bar * _half_weights(x_bar, n, axis, 2.0), m, axis)


def hfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """The Fourier transform, which is real, of half of a Hermitian signal.

    Its arguments are those of ``fft``.

    Shapes:
        a: (..., m, ...); result: (..., n, ...), or 2 * (m - 1)

    Example:
        >>> import numpy as np
        >>> hfft(np.array([1.5, -0.5]))
        array([1., 2.])
    """
    refuse("hfft", out=out)
    return irfft(conj(asarray(a)), n, axis, _SWAPPED[norm])


def ihfft(
    a: Any,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """The inverse of ``hfft``.

    Its arguments are those of ``fft``.

    Shapes:
        a: (..., m, ...); result: (..., n // 2 + 1, ...)

    Example:
        >>> import numpy as np
        >>> ihfft(np.array([1.0, 2.0]))
        array([ 1.5-0.j, -0.5-0.j])
    """
    refuse("ihfft", out=out)
    return conj(rfft(a, n, axis, _SWAPPED[norm]))


def _lengths(x: Any, s: Any, axes: Any, half: bool) -> list[tuple[int, int]]:
    """The length and the axis of each transform of several."""
    if axes is None:
        axes = range(len(x.shape)) if s is None else range(-len(s), 0)
    if s is None:
        s = [x.shape[a] for a in axes]
        if half:
            s[-1] = 2 * (s[-1] - 1)
    if len(s) != len(axes):
        raise ShapeError(
            f"fft: got {counted(len(s), 'length')} for "
            f"{counted(len(axes), 'axis', 'axes')}. Give one for each axis."
        )
    return [(x.shape[a] if n == -1 else n, a) for n, a in zip(s, axes, strict=True)]


def _several(
    name: str, last: Function, others: Function, axes: Any, shown: str
) -> Function:
    """A transform along several axes: the last one's, and the others'; an example."""
    half = last is irfft

    def transform(
        a: Any, s: Any = None, axes: Any = axes, norm: Any = None, out: Any = None
    ) -> Any:
        refuse(name, out=out)
        z = asarray(a)
        steps = [(last, *final) for final in _lengths(z, s, axes, half)[-1:]]
        steps += [(others, *step) for step in _lengths(z, s, axes, half)[-2::-1]]
        for function, n, axis in reversed(steps) if half else steps:
            z = function(z, n, axis, norm)
        return z

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""``{last.__name__}`` along several axes.

    Example:
        >>> import numpy as np
        >>> {name}(np.eye(2)).real.ravel()
        array([{shown}])
    """
    return transform


fft2 = _several("fft2", fft, fft, (-2, -1), "2., 0., 0., 2.")
fftn = _several("fftn", fft, fft, None, "2., 0., 0., 2.")
ifft2 = _several("ifft2", ifft, ifft, (-2, -1), "0.5, 0. , 0. , 0.5")
ifftn = _several("ifftn", ifft, ifft, None, "0.5, 0. , 0. , 0.5")
irfft2 = _several("irfft2", irfft, ifft, (-2, -1), "0.5, 0. , 0. , 0.5")
irfftn = _several("irfftn", irfft, ifft, None, "0.5, 0. , 0. , 0.5")
rfft2 = _several("rfft2", rfft, fft, (-2, -1), "2., 0., 0., 2.")
rfftn = _several("rfftn", rfft, fft, None, "2., 0., 0., 2.")


def fftshift(x: Any, axes: Any = None) -> Any:
    """A spectrum with frequency 0 moved to the middle.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> fftshift(np.array([0.0, 1.0, -2.0, -1.0]))
        array([-2., -1.,  0.,  1.])
    """
    return _shifted(x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of ``fftshift``.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> ifftshift(np.array([-2.0, -1.0, 0.0, 1.0]))
        array([ 0.,  1., -2., -1.])
    """
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    x = asarray(x)
    if axes is None:
        axes = tuple(range(len(x.shape)))
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    return roll(x, tuple(sign * (x.shape[a] // 2) for a in axes), axes)


def fftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """The frequencies of ``fft``, for n samples at distances d.

    Shapes:
        d: (); result: (n,)

    Example:
        >>> fftfreq(4)
        array([ 0.  ,  0.25, -0.5 , -0.25])
    """
    return _frequencies("fftfreq", n, d, device, dtype)


def rfftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """The frequencies of ``rfft``, for n samples at distances d.

    Shapes:
        d: (); result: (n // 2 + 1,)

    Example:
        >>> rfftfreq(4)
        array([0.  , 0.25, 0.5 ])
    """
    return _frequencies("rfftfreq", n, d, device, dtype)


def _frequencies(name: str, n: int, d: Any, device: Any, dtype: Any) -> Any:
    z = getattr(numpy_namespace.fft, name)(n)
    z = z if dtype is None else z.astype(dtype)
    return (z if device is None else to_device(z, device)) / d
