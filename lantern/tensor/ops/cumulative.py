"""Running sums, products and extremes, differences and integrals along an axis."""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base
from lantern.errors import ShapeError
from lantern.op import linear, op
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.axes import line, of_type, part
from lantern.tensor.ops.concat_stack import concat
from lantern.tensor.ops.shape import as_array

__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
]


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The running sum along an axis; of all elements in order, if none is given.

    Shapes:
        a: (...); result: (...), flat if no axis is given

    Example:
        >>> import numpy as np
        >>> cumsum(np.array([1.0, 2.0, 3.0]))
        array([1., 3., 6.])
    """
    return of_type(_cumsum(*line("cumsum", a, axis, dtype, out)), dtype)


@linear
def _cumsum(x: Any, /, axis: int) -> Rule:
    """The running sum along an axis.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = the running sum of z_bar, from the end
    """
    z_bar = yield (namespace(x).cumsum(x, axis=axis), x := None)[0]
    back = namespace(z_bar).cumsum(part(z_bar, axis, None, None, -1), axis=axis)
    yield part(back, axis, None, None, -1)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The running product along an axis; its derivative is exact where factors are 0.

    Shapes:
        a: (...); result: (...), flat if no axis is given

    Example:
        >>> import numpy as np
        >>> cumprod(np.array([1.0, 2.0, 3.0]))
        array([1., 2., 6.])
    """
    return of_type(_cumprod(*line("cumprod", a, axis, dtype, out)), dtype)


@op
def _cumprod(x: Any, /, axis: int) -> Rule:
    """The running product along an axis.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar[i] = the product before i, times s[i], where
        s[i] = z_bar[i] + x[i + 1] * s[i + 1]
    """
    z = namespace(x).cumprod(x, axis=axis)
    z_bar = yield z
    xp = namespace(z)
    before = xp.concat([xp.ones_like(part(z, axis, 0, 1)), part(z, axis, 0, -1)], axis)
    factors = xp.concat([part(x, axis, 1), xp.zeros_like(part(z, axis, 0, 1))], axis)
    yield before * _sweep(z_bar, factors, axis)


def _sweep(terms: Any, factors: Any, axis: int) -> Any:
    """The recurrence ``s[i] = terms[i] + factors[i] * s[i + 1]`` along an axis.

    Its reach doubles in each step, so that n elements take log2(n) steps and nothing
    is divided. The last factor must be 0.
    """
    xp, n, reach = namespace(terms, factors), terms.shape[axis], 1
    while reach < n:
        edge = xp.zeros_like(part(factors, axis, 0, reach))
        later = xp.concat([part(terms, axis, reach), edge], axis=axis)
        terms = terms + factors * later
        later = xp.concat([part(factors, axis, reach), edge], axis=axis)
        factors = factors * later
        reach *= 2
    return terms


def cummax(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The largest element so far along an axis; ties share the derivative equally.

    Shapes:
        a: (...); result: (...), flat if no axis is given

    Example:
        >>> import numpy as np
        >>> cummax(np.array([1.0, 3.0, 2.0]))
        array([1., 3., 3.])
    """
    return _cummax(*line("cummax", a, axis, dtype, out))


def cummin(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The smallest element so far along an axis; ties share the derivative equally.

    Shapes:
        a: (...); result: (...), flat if no axis is given

    Example:
        >>> import numpy as np
        >>> cummin(np.array([2.0, 3.0, 1.0]))
        array([2., 2., 1.])
    """
    return _cummin(*line("cummin", a, axis, dtype, out))


@op
def _cummax(x: Any, /, axis: int) -> Rule:
    """The largest element so far along an axis.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar[i] = the sum of z_bar[j] / count[j] over the j >= i with z[j] == x[i],
        where count[j] elements are as large up to j
    """
    yield from _running("cummax", x, axis)


@op
def _cummin(x: Any, /, axis: int) -> Rule:
    """The smallest element so far along an axis.

    Shapes:
        x: (...); result: (...)

    Rule:
        as that of cummax
    """
    yield from _running("cummin", x, axis)


def _running(name: str, x: Any, axis: int) -> Rule:
    """The rule of cummax and cummin."""
    z = getattr(namespace(x), name)(x, axis=axis)
    z_bar = yield z
    x, z = base(x), base(z)
    xp = namespace(x)
    reached = (x == z) | ((x != x) & (z != z))
    before, after = part(z, axis, 0, -1), part(z, axis, 1)
    edge = xp.zeros_like(part(reached, axis, 0, 1))
    changes = (before != after) & ((before == before) | (after == after))
    begins = xp.concat([~edge, changes], axis=axis)
    total = xp.cumsum(reached, axis=axis)
    earlier = xp.cummax(xp.where(begins, total - 1, 0), axis=axis)
    goes_on = xp.astype(xp.concat([~changes, edge], axis=axis), x.dtype)
    count = xp.astype(total - earlier, x.dtype)
    yield xp.select(reached, _sweep(z_bar / count, goes_on, axis))


def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """The running sum along an axis, with a 0 in front of it (include_initial).

    Shapes:
        x: (..., n, ...); result: (..., n, ...), or n + 1

    Example:
        >>> import numpy as np
        >>> cumulative_sum(np.array([1.0, 2.0]), include_initial=True)
        array([0., 1., 3.])
    """
    x = as_array(x)
    x, axis = line("cumulative_sum", x, _only_axis("sum", x, axis), dtype, out)
    z = of_type(_cumsum(x, axis), dtype)
    return _with_initial(z, axis, 0) if include_initial else z


def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    out: Any = None,
    include_initial: bool = False,
) -> Any:
    """The running product along an axis, with a 1 in front of it (include_initial).

    Shapes:
        x: (..., n, ...); result: (..., n, ...), or n + 1

    Example:
        >>> import numpy as np
        >>> cumulative_prod(np.array([2.0, 3.0]), include_initial=True)
        array([1., 2., 6.])
    """
    x = as_array(x)
    x, axis = line("cumulative_prod", x, _only_axis("prod", x, axis), dtype, out)
    z = of_type(_cumprod(x, axis), dtype)
    return _with_initial(z, axis, 1) if include_initial else z


def _only_axis(name: str, x: Any, axis: int | None) -> int:
    """The axis of an array that has only one, if none is given."""
    if axis is None and len(x.shape) != 1:
        raise ShapeError(
            f"cumulative_{name}: axis is missing for an array of shape {x.shape}. Say "
            f"along which axis to go."
        )
    return axis or 0


def _with_initial(z: Any, axis: int, value: int) -> Any:
    """A running result with its value before the first element."""
    form = [1 if i == axis else n for i, n in enumerate(z.shape)]
    xp = array_namespace(base(z))
    return concat([xp.full(form, value, dtype=z.dtype), z], axis=axis)
