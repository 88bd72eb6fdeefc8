"""Arrays made from nothing, from numbers, or from values that are tracked already."""

from typing import Any

from lantern import arithmetic
from lantern.elementary import exp, log
from lantern.errors import MissingRuleError
from lantern.namespace import namespace
from lantern.op import Function, linear
from lantern.tensor.manipulation import astype, broadcast_to, expand_dims, stack
from lantern.tensor.namespace import array_namespace, numpy_namespace
from lantern.tree import tree_leaves, tree_map
from lantern.value import Rule, Value, base, is_complex

__all__ = [
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "stop_gradient",
    "tri",
    "zeros",
    "zeros_like",
]


def _creator(name: str) -> Function:
    """NumPy's function of a name."""

    def function(*args: Any, **options: Any) -> Any:
        return getattr(numpy_namespace, name)(*args, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""``numpy.{name}``: an array of constants."""
    return function


def _like(name: str) -> Function:
    """The function of a name, for constants in the form of a value."""

    def function(x: Any, /, *args: Any, **options: Any) -> Any:
        x = base(x)
        alone = not args and not options and not isinstance(x, list | tuple)
        xp = namespace(x) if alone else array_namespace(x)
        return getattr(xp, name)(x, *args, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""``numpy.{name}``: plain constants in the form of x."""
    return function


empty = _creator("empty")
eye = _creator("eye")
identity = _creator("identity")
ones = _creator("ones")
tri = _creator("tri")
zeros = _creator("zeros")

empty_like = _like("empty_like")
ones_like = _like("ones_like")
zeros_like = _like("zeros_like")


def asarray(
    x: Any,
    /,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
) -> Any:
    """Numbers, arrays or nested lists of both as one array; what is tracked stays so.

    Shapes:
        x: (...); result: (...)

    Example:
        >>> import lantern
        >>> lantern.grad(lambda x: asarray([[x, 1.0], [2.0, x * x]]).sum())(3.0)
        7.0
    """
    leaves = tree_leaves(x) if isinstance(x, list | tuple) else (x,)
    if not any(isinstance(leaf, Value) for leaf in leaves):
        xp = array_namespace(x)
        return xp.asarray(x, dtype=dtype, order=order, device=device, copy=copy)
    if not isinstance(x, Value):
        parts = list(x)
        if any(isinstance(part, list | tuple) or _shape(part) for part in parts):
            parts = [asarray(part) for part in parts]
        x = stack(parts)
    elif not hasattr(x, "shape"):
        x = stack([x])[0]
    return x if dtype is None or x.dtype == dtype else astype(x, dtype)


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
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **options: Any
) -> Any:
    """An array that has one value everywhere.

    Shapes:
        fill_value: broadcast to shape; result: shape

    Example:
        >>> full((2,), 3.0)
        array([3., 3.])
    """
    if not isinstance(fill_value, Value):
        xp = array_namespace(fill_value)
        return xp.full(shape, fill_value, dtype=dtype, order=order, **options)
    return broadcast_to(asarray(fill_value, dtype), shape)


def full_like(
    x: Any, /, fill_value: Any, dtype: Any = None, *args: Any, **options: Any
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
    plain = array_namespace(x).full_like(x, base(fill_value), dtype, *args, **options)
    if not isinstance(fill_value, Value):
        return plain
    return broadcast_to(asarray(fill_value, plain.dtype), plain.shape)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, **options: Any
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
    z = numpy_namespace.arange(base(start), base(stop), base(step), dtype, **options)
    if not isinstance(start, Value) and not isinstance(step, Value):
        return z
    return start + step * numpy_namespace.arange(z.size, dtype=z.dtype)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
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

    Shapes:
        start, stop: (...), broadcast; result: (num, ...)

    Example:
        >>> linspace(0.0, 1.0, 3)
        array([0. , 0.5, 1. ])
    """
    if not isinstance(start, Value) and not isinstance(stop, Value):
        xp = array_namespace(start, stop)
        return xp.linspace(start, stop, num, endpoint, retstep, dtype, axis)
    z = _linspace(start, stop, num, endpoint, axis)
    z = z if dtype is None else astype(z, dtype)
    steps = num - 1 if endpoint else num
    return (z, (stop - start) / steps) if retstep else z


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
    /,
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
    base = expand_dims(base, axis) if _shape(base) else base
    z = arithmetic.pow(base, linspace(start, stop, num, endpoint, axis=axis))
    return z if dtype is None else astype(z, dtype)


def geomspace(
    start: Any,
    stop: Any,
    /,
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
    if is_complex(start) or is_complex(stop):
        raise MissingRuleError(
            "geomspace: no rule for complex numbers. Take exp of a linspace of logs."
        )
    sign = array_namespace(base(start)).sign(base(start))
    z = sign * exp(
        linspace(log(start * sign), log(stop * sign), num, endpoint, axis=axis)
    )
    return z if dtype is None else astype(z, dtype)


def stop_gradient(tree: Any) -> Any:
    """The same values as constants: nothing is differentiated through them.

    Example:
        >>> import lantern
        >>> lantern.grad(lambda x: x * stop_gradient(x))(3.0)
        3.0
    """
    return tree_map(base, tree)
