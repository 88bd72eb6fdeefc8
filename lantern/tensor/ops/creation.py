"""Arrays made from numbers, or from values that are tracked already."""

from typing import Any

from lantern.core.dispatch import from_lists
from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.unwrap import detached
from lantern.core.value import Rule, Value, base, is_complex
from lantern.errors import ArgumentError, MissingRuleError
from lantern.op import linear
from lantern.rules import arithmetic
from lantern.rules.exponential import exp, log
from lantern.tensor.backend.device import to_device
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops.concat_stack import stack
from lantern.tensor.ops.constants import on_device
from lantern.tensor.ops.shape import as_array, astype, broadcast_to, expand_dims

__all__ = [
    "arange",
    "array",
    "arrays",
    "asarray",
    "full",
    "full_like",
    "geomspace",
    "linspace",
    "logspace",
    "stop_gradient",
]


def asarray(
    x: Any,
    /,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """Numbers, arrays or nested lists of both as one array; what is tracked stays so.

    Args:
        x: the numbers.
        dtype: their type; by default as they are.
        order: of the elements in memory.
        device: where the result is.
        copy: whether to copy an array always, never, or if that is needed (None).
        like: an array whose library makes the result of plain numbers.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import lantern
        >>> lantern.grad(lambda x: asarray([[x, 1.0], [2.0, x * x]]).sum())(3.0)
        7.0
    """
    leaves = tree_leaves(x) if isinstance(x, list | tuple) else (x,)
    if not any(isinstance(leaf, Value) for leaf in leaves):
        z = _plain_array(x, like, {"dtype": dtype, "order": order, "copy": copy})
        return z if device is None else to_device(z, device)
    if not isinstance(x, Value):
        parts = list(x)
        if any(isinstance(part, list | tuple) or _shape(part) for part in parts):
            parts = arrays(*parts)
        x = stack(parts)
    x = as_array(x).frozen()
    if dtype is not None and x.dtype != dtype:
        x = astype(x, dtype)
    return x if device is None else to_device(x, device)


def arrays(*operands: Any) -> list[Any]:
    """Each operand as an array; numbers and lists in the library of the others.

    Example:
        >>> arrays(1.0, [2.0, 3.0])
        [array(1.), array([2., 3.])]
    """
    like = next((x for x in operands if hasattr(type(x), "shape")), None)
    found = [
        x if hasattr(type(x), "shape") else asarray(x, like=like) for x in operands
    ]
    for x in found:
        if x.dtype == object:
            raise ArgumentError(
                f"array: there are no arrays of what {base(x)!r} holds. Give numbers."
            )
    return found


def _plain_array(x: Any, like: Any, options: dict[str, Any]) -> Any:
    """Plain numbers as an array of their library, of NumPy if they are none yet."""
    given = {k: v for k, v in options.items() if v is not None}
    copy = given.pop("copy", None)
    xp = array_namespace(x if like is None or hasattr(x, "shape") else base(like))
    if xp is numpy_namespace:
        return xp.asarray(x, copy=copy, **given)
    return xp.array(x, **given) if copy else xp.asarray(x, **given)


def _shape(x: Any) -> Any:
    return getattr(x, "shape", ())


def array(
    x: Any,
    /,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    ndmin: int = 0,
) -> Any:
    """Nested lists of numbers and arrays as one array; what is tracked stays so.

    Shapes:
        x: (...); result: (...), with axes of length 1 in front up to ndmin

    Example:
        >>> import lantern
        >>> lantern.grad(lambda x: array([[x, 1.0], [2.0, x * x]]).sum())(3.0)
        7.0
    """
    z = asarray(x, dtype, order, copy=copy)
    return z[(None,) * (ndmin - len(z.shape))] if len(z.shape) < ndmin else z


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
) -> Any:
    """An array that has one value everywhere.

    Shapes:
        fill_value: broadcast to shape; result: shape

    Example:
        >>> full((2,), 3.0)
        array([3., 3.])
    """
    if not isinstance(fill_value, Value):
        options = {"dtype": dtype, "order": order}
        return on_device(device, "full", (shape, fill_value), options)
    return broadcast_to(asarray(fill_value, dtype, device=device), shape)


def full_like(
    x: Any,
    /,
    fill_value: Any,
    dtype: Any = None,
    *args: Any,
    device: Any = None,
    **options: Any,
) -> Any:
    """An array of the shape and type of x that has one value everywhere.

    Shapes:
        x: (...); fill_value: broadcast to it; result: (...)

    Example:
        >>> import numpy as np
        >>> full_like(np.zeros(2), 3.0)
        array([3., 3.])
    """
    x = base(x)
    value = base(fill_value)
    value = 0 if isinstance(value, Value) else value  # one for each example of a vmap
    plain = array_namespace(x).full_like(x, value, dtype, *args, **options)
    if isinstance(fill_value, Value):
        plain = broadcast_to(asarray(fill_value, plain.dtype), plain.shape)
    return plain if device is None else to_device(plain, device)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Numbers from start to stop, without it, step apart; how many is a constant.

    Shapes:
        start, stop, step: numbers; result: (n,)

    Example:
        >>> arange(1.0, 2.0, 0.5)
        array([1. , 1.5])
    """
    if stop is None:
        start, stop = 0, start
    bounds = (base(start), base(stop), base(step))
    z = on_device(device, "arange", bounds, {"dtype": dtype})
    if not isinstance(start, Value) and not isinstance(step, Value):
        return z
    return start + step * on_device(device, "arange", (z.size,), {"dtype": z.dtype})


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Numbers from start to stop at equal distances, differentiable in both.

    Args:
        start: the first.
        stop: the last; without the endpoint, the one after the last.
        num: how many.
        endpoint: whether stop is among them.
        retstep: whether to return the distance as well.
        dtype: of the result.
        axis: of the result, along which they stand.
        device: where the result is.

    Shapes:
        start, stop: (...), broadcast; result: (num, ...)

    Example:
        >>> linspace(0.0, 1.0, 3)
        array([0. , 0.5, 1. ])
    """
    if not isinstance(start, Value) and not isinstance(stop, Value):
        xp = array_namespace(start, stop)
        z = xp.linspace(start, stop, num, endpoint, dtype=dtype, axis=axis)
    else:
        z = _linspace(start, stop, num, endpoint, axis)
        z = z if dtype is None else astype(z, dtype)
    z = z if device is None else to_device(z, device)
    return (z, (stop - start) / (num - 1 if endpoint else num)) if retstep else z


@linear
def _linspace(x: Any, y: Any, /, num: int, endpoint: bool, axis: int) -> Rule:
    """Numbers from x to y at equal distances.

    Shapes:
        x, y: (...), broadcast; result: (num, ...)

    Rule:
        with t from 0 to 1, x_bar = the sum of z_bar * (1 - t), y_bar of z_bar * t
    """
    xp = array_namespace(x, y)
    z_bar = yield (xp.linspace(x, y, num, endpoint, axis=axis), x := None, y := None)[0]
    form = [1] * len(z_bar.shape)
    form[axis] = num
    t = array_namespace(base(z_bar)).linspace(0, 1, num, endpoint).reshape(form)
    yield namespace(z_bar).sum(z_bar * (1 - t), axis=axis)
    yield namespace(z_bar).sum(z_bar * t, axis=axis)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Powers of a base with exponents from start to stop at equal distances.

    Shapes:
        start, stop, base: (...), broadcast; result: (num, ...)

    Example:
        >>> logspace(0.0, 2.0, 3)
        array([  1.,  10., 100.])
    """
    if _shape(base):
        ndim = len(base.shape)
        start, stop = array(start, ndmin=ndim), array(stop, ndmin=ndim)
        base = expand_dims(base, axis)
    z = arithmetic.pow(base, linspace(start, stop, num, endpoint, axis=axis))
    return z if dtype is None else astype(z, dtype)


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Numbers of one sign from start to stop, each the same multiple of the one before.

    Shapes:
        start, stop: (...), broadcast; result: (num, ...)

    Example:
        >>> geomspace(1.0, 4.0, 3)
        array([1., 2., 4.])
    """
    if not isinstance(start, Value) and not isinstance(stop, Value):
        xp = array_namespace(start, stop)
        return xp.geomspace(start, stop, num, endpoint, dtype, axis)
    start, stop = from_lists(start), from_lists(stop)
    if is_complex(start) or is_complex(stop):
        raise MissingRuleError(
            "geomspace: no rule for complex numbers. Take exp of a linspace of logs."
        )
    sign = array_namespace(base(start), base(stop)).sign(base(start) * 1.0)
    z = exp(linspace(log(start * sign), log(stop * sign), num, endpoint, axis=axis))
    if axis and _shape(sign):
        form = (1,) * (len(z.shape) - 1 - len(sign.shape)) + tuple(sign.shape)
        sign = expand_dims(sign.reshape(form), axis)
    z = sign * z
    return z if dtype is None else astype(z, dtype)


def stop_gradient(tree: Any) -> Any:
    """The same values as constants: nothing is differentiated through them.

    Example:
        >>> import lantern
        >>> lantern.grad(lambda x: x * stop_gradient(x))(3.0)
        3.0
    """
    return tree_map(detached, tree)
