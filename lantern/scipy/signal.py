"""Signals with any number of axes, under the names of ``scipy.signal``."""

from typing import Any

from lantern.core.value import Rule
from lantern.errors import ArgumentError, ShapeError
from lantern.op import op
from lantern.rules.arithmetic import conj
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.matrix_forms import any_value
from lantern.tensor.ops.rearrange import flip

__all__ = ["convolve", "correlate"]


def convolve(in1: Any, in2: Any, mode: str = "full") -> Any:
    """The convolution of two arrays, along all their axes.

    Args:
        in1: an array.
        in2: another one, with as many axes.
        mode: "full" for all places where they overlap, "same" for as many as in1 has,
            around the middle, "valid" for those where one lies inside the other.

    Shapes:
        in1: (n, ...); in2: (m, ...); result: (n + m - 1, ...), (n, ...) or
        (abs(n - m) + 1, ...)

    Raises:
        ShapeError: if the numbers of axes differ, or neither fits into the other.
        ArgumentError: if there is no such mode.

    Example:
        >>> import numpy as np
        >>> convolve(np.ones((2, 2)), np.ones((1, 2)))
        array([[1., 2., 1.],
               [1., 2., 1.]])
    """
    x, y = asarray(in1), asarray(in2)
    if len(x.shape) != len(y.shape):
        raise ShapeError(
            f"convolve: expected arrays with as many axes, got shapes {x.shape} and "
            f"{y.shape}. Insert axes of length 1 (lantern.expand_dims)."
        )
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f"convolve: there is no mode {mode!r}. Use full, same or valid."
        )
    sizes = list(zip(x.shape, y.shape, strict=True))
    if mode == "valid" and any(n < m for n, m in sizes):
        if any(n > m for n, m in sizes):
            raise ShapeError(
                f"convolve: of shapes {x.shape} and {y.shape} neither fits into the "
                f"other, so no place is valid. Use mode='full' or 'same'."
            )
        x, y = y, x
    full = _convolve_fully(x, y)
    if mode == "full":
        return full
    pairs = list(zip(x.shape, y.shape, strict=True))
    if mode == "same":
        return full[tuple(slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in pairs)]
    return full[tuple(slice(m - 1, n) for n, m in pairs)]


@op
def _convolve_fully(x: Any, y: Any, /) -> Rule:
    """The convolution of two arrays, all of it.

    Shapes:
        x: (n, ...); y: (m, ...); result: (n + m - 1, ...)

    Rule:
        x_bar = the valid part of the convolution of z_bar with y reversed, y_bar
        likewise with x
    """
    if any_value(x, y):
        z = _convolve_fully(x, y)
    else:
        z = array_namespace(x, y).convolve_fully(x, y)
    z_bar = yield z
    yield lambda: convolve(z_bar, flip(y), "valid")
    yield lambda: convolve(z_bar, flip(x), "valid")


def correlate(in1: Any, in2: Any, mode: str = "full") -> Any:
    """The correlation of two arrays: sums of products, in2 moved along in1.

    Args:
        in1: an array.
        in2: another one; of a complex one, the conjugate is taken.
        mode: as for ``convolve``.

    Shapes:
        in1: (n, ...); in2: (m, ...); result: as ``convolve``

    Example:
        >>> import numpy as np
        >>> correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0]), "valid")
        array([2., 3.])
    """
    return convolve(in1, conj(flip(asarray(in2))), mode)
