"""Operations that move elements: their derivative moves the cotangent back."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves
from lantern.core.value import Rule, Value, base
from lantern.errors import ArgumentError, BatchedValueError
from lantern.op import linear, registry
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace

__all__ = [
    "as_array",
    "astype",
    "broadcast_to",
    "expand_dims",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "squeeze",
    "swapaxes",
    "transpose",
]


def as_array(x: Any, like: Any = None) -> Any:
    """A number or a list of plain numbers as an array; arrays are what they are.

    Args:
        like: an array of the library to use; by default NumPy's.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> as_array(2.0)
        array(2.)
    """
    if hasattr(type(x), "shape"):
        return x
    if type(x) in (list, tuple) and any(isinstance(y, Value) for y in tree_leaves(x)):
        return from_lists(x)
    if not isinstance(x, Value):
        return array_namespace(x if like is None else base(like)).asarray(x)
    array = from_lists([x])
    if array.dtype == object:
        raise ArgumentError(
            f"as_array: there are no arrays of {type(base(x)).__name__} numbers. "
            f"Convert them to float first."
        )
    return _reshape(array, ())


def alike(operands: Sequence[Any]) -> list[Any]:
    """Operands as arrays; numbers and lists as arrays of the others' library."""
    like = next((x for x in operands if hasattr(x, "shape")), None)
    return [as_array(x, like) for x in operands]


def on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of one array that takes a number for an array without axes."""

    @functools.wraps(function)
    def convert(x: Any, /, *args: Any, **statics: Any) -> Any:
        return function(as_array(x), *args, **statics)

    registry[function.__name__].function = convert
    return convert


def axis_of(axis: int, ndim: int) -> int:
    """An axis counted from 0, checked."""
    index: int = numpy_namespace.lib.array_utils.normalize_axis_index(axis, ndim)
    return index


def reshape(
    x: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None
) -> Any:
    """The elements of x, in order, in another shape; one -1 is filled in.

    Args:
        order: "C": the last index changes fastest, "F": the first one, "A": as x lies
            in memory.
        copy: False raises ValueError where x lies so that it has to be copied.

    Shapes:
        x: (...); result: shape

    Example:
        >>> import numpy as np
        >>> reshape(np.arange(4.0), (2, 2))
        array([[0., 1.],
               [2., 3.]])
    """
    if order == "C" and copy is None:
        return _reshape(as_array(x), shape)
    x = as_array(x)
    plain = base(x)
    if copy is False:
        _check_memory("reshape", plain, "copy=False")
        array_namespace(plain).reshape(plain, shape, order=order, copy=False)
    if order in "Aa":
        _check_memory("reshape", plain, f"order={order!r}")
        order = "F" if plain.flags.fnc else "C"
    if order in "Cc":
        return _reshape(x, shape)
    if order not in "Ff":
        numpy_namespace.reshape(1, 1, order=order)  # raises
    shape = shape if isinstance(shape, Sequence) else (shape,)
    return permute_dims(_reshape(permute_dims(x), tuple(reversed(shape))))


@linear
def _reshape(x: Any, /, shape: Any) -> Rule:
    """The elements of x, in order, in another shape; one -1 is filled in.

    Shapes:
        x: (...); result: shape

    Rule:
        x_bar = reshape(z_bar, x.shape)
    """
    old = x.shape
    z_bar = yield (namespace(x).reshape(x, shape), x := None)[0]
    yield namespace(z_bar).reshape(z_bar, old)


plain_reshape = _reshape  # of a shape that is known


def _check_memory(where: str, plain: Any, asked: str) -> None:
    """Refuse to look at how the arrays of a ``vmap`` lie in memory."""
    if isinstance(plain, Value):
        raise BatchedValueError(
            f"{where}: {asked} depends on how an array lies in memory, which inside "
            "vmap is not what it is for one example. Leave it out, or use order='F'."
        )


def ravel(a: Any, order: str = "C") -> Any:
    """The elements of an array along one axis.

    Args:
        order: as for ``reshape``, or "K": in the order of memory.

    Shapes:
        a: (...); result: (size,)

    Example:
        >>> import numpy as np
        >>> ravel(np.array([[1.0, 2.0], [3.0, 4.0]]), order="F")
        array([1., 3., 2., 4.])
    """
    if order not in "Kk":
        return reshape(a, -1, order)
    a = as_array(a)
    _check_memory("ravel", base(a), f"order={order!r}")
    strides = base(a).strides
    axes = sorted(range(len(strides)), key=lambda i: -abs(strides[i]))
    return _reshape(permute_dims(a, axes), -1)


@on_arrays
@linear
def permute_dims(x: Any, /, axes: Any = None) -> Rule:
    """x with its axes in another order; reversed, if no order is given.

    Shapes:
        x: (n0, n1, ...); result: (n[axes[0]], n[axes[1]], ...)

    Rule:
        x_bar = z_bar with its axes put back

    Example:
        >>> import numpy as np
        >>> permute_dims(np.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    axes = (axes,) if isinstance(axes, int) else axes
    z_bar = yield (namespace(x).permute_dims(x, axes), x := None)[0]
    if axes is None:
        back = None
    else:
        back = sorted(range(len(axes)), key=[a % len(axes) for a in axes].__getitem__)
    yield namespace(z_bar).permute_dims(z_bar, back)


transpose = permute_dims


@linear
def matrix_transpose(x: Any, /) -> Rule:
    """x with its last two axes swapped.

    Shapes:
        x: (..., n, m); result: (..., m, n)

    Rule:
        x_bar = matrix_transpose(z_bar)

    Example:
        >>> import numpy as np
        >>> matrix_transpose(np.ones((2, 3, 4))).shape
        (2, 4, 3)
    """
    z_bar = yield (namespace(x).matrix_transpose(x), x := None)[0]
    yield namespace(z_bar).matrix_transpose(z_bar)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """An array with two of its axes swapped.

    Shapes:
        a: (..., n, ..., m, ...); result: (..., m, ..., n, ...)

    Example:
        >>> import numpy as np
        >>> swapaxes(np.ones((2, 3, 4)), 0, -1).shape
        (4, 3, 2)
    """
    order = list(range(len(a.shape)))
    i, j = (axis_of(axis, len(order)) for axis in (axis1, axis2))
    order[i], order[j] = j, i
    return permute_dims(a, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """An array with some axes at other positions, the rest in their order.

    Shapes:
        a: (n0, n1, ...); result: the same lengths in another order

    Example:
        >>> import numpy as np
        >>> moveaxis(np.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    normalize = numpy_namespace.lib.array_utils.normalize_axis_tuple
    source = normalize(source, len(a.shape), "source")
    destination = normalize(destination, len(a.shape), "destination")
    order = [axis for axis in range(len(a.shape)) if axis not in source]
    for to, axis in sorted(zip(destination, source, strict=True)):
        order.insert(to, axis)
    return permute_dims(a, order)


@on_arrays
@linear
def squeeze(x: Any, /, axis: Any = None) -> Rule:
    """x without the given axes of length 1; without all of them by default.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = reshape(z_bar, x.shape)

    Example:
        >>> import numpy as np
        >>> squeeze(np.ones((1, 3, 1))).shape
        (3,)
    """
    old = x.shape
    z_bar = yield (namespace(x).squeeze(x, axis=axis), x := None)[0]
    yield namespace(z_bar).reshape(z_bar, old)


@on_arrays
@linear
def expand_dims(x: Any, /, axis: Any) -> Rule:
    """x with new axes of length 1 at the given positions of the result.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = reshape(z_bar, x.shape)

    Example:
        >>> import numpy as np
        >>> expand_dims(np.ones(3), 0).shape
        (1, 3)
    """
    old = x.shape
    z_bar = yield (namespace(x).expand_dims(x, axis=axis), x := None)[0]
    yield namespace(z_bar).reshape(z_bar, old)


@on_arrays
@linear
def broadcast_to(x: Any, /, shape: Any) -> Rule:
    """x repeated along axes of length 1 and along new ones in front.

    Shapes:
        x: (...); result: shape

    Rule:
        x_bar = z_bar, summed over what was repeated

    Example:
        >>> import numpy as np
        >>> broadcast_to(np.ones(3), (2, 3))
        array([[1., 1., 1.],
               [1., 1., 1.]])
    """
    z_bar = yield (namespace(x).broadcast_to(x, shape), x := None)[0]
    yield z_bar


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    """x with elements of another type; the derivative of whole numbers is zero.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import numpy as np
        >>> astype(np.ones(2), np.float32)
        array([1., 1.], dtype=float32)
    """
    x = as_array(x)
    if isinstance(dtype, Value):
        raise ArgumentError("astype: the type is an array. Give its dtype: y.dtype.")
    if numpy_namespace.dtype(dtype).kind in "iub":
        x = base(x)
        return namespace(x).astype(x, dtype, copy=copy)
    return _astype(x, dtype)


@linear
def _astype(x: Any, /, dtype: Any) -> Rule:
    """x with elements of another floating-point type.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = z_bar, in x's type
    """
    z_bar = yield (namespace(x).astype(x, dtype), x := None)[0]
    yield z_bar
