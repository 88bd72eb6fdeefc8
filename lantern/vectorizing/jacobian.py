"""Whole matrices of derivatives, in the structure of results and arguments."""

from collections.abc import Callable
from typing import Any, ParamSpec

from lantern.core.residuals import is_array
from lantern.core.tree import tree_map
from lantern.core.unwrap import like_original
from lantern.core.value import Value, unwrapped
from lantern.transforms.arguments import FIRST, check_function, chosen_by, isolate, pair
from lantern.transforms.reverse import Argnums
from lantern.vectorizing.basis import (
    Blocks,
    count,
    diagonal,
    either,
    forward,
    reverse,
)

__all__ = ["diag_hessian", "hessian", "jacfwd", "jacobian", "jacrev"]

Function = Callable[..., Any]
P = ParamSpec("P")


def jacfwd(
    f: Callable[P, Any],
    argnums: Argnums = FIRST,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnum: Argnums | None = None,
) -> Callable[P, Any]:
    """The function that returns the Jacobian of f, by forward mode.

    All directions are pushed through f in one pass. It is the better choice where f has
    fewer inputs than outputs.

    Args:
        f: takes and returns any structures of numbers and arrays.
        argnums, argnum: which arguments to differentiate, as in ``grad``.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        holomorphic: promise that f is holomorphic in complex arguments.

    Returns:
        A function of f's arguments. In the place of each leaf of f's result it returns
        a structure like the argument (for several argnums a tuple of them), and in the
        place of each of its leaves an array.

    Shapes:
        leaf of the argument: (*n); of the result: (*m); of the Jacobian: (*m, *n)

    Raises:
        ArgumentError: for a complex argument, unless holomorphic.

    Example:
        >>> import numpy as np
        >>> jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])

    References:
        Griewank and Walther (2008), section 3.1: vector mode.
    """
    chosen = chosen_by("jacfwd", argnums, argnum)
    return _transform("jacfwd", forward, f, chosen, has_aux, holomorphic)


def jacrev(
    f: Callable[P, Any],
    argnums: Argnums = FIRST,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnum: Argnums | None = None,
) -> Callable[P, Any]:
    """The function that returns the Jacobian of f, by reverse mode.

    The cotangents of all outputs are pulled back in one pass. It is the better choice
    where f has fewer outputs than inputs.

    Args:
        f: takes and returns any structures of numbers and arrays.
        argnums, argnum: which arguments to differentiate, as in ``grad``.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        holomorphic: promise that f is holomorphic in complex arguments. For a real f of
            complex arguments x + iy the entries are df/dx + i df/dy, as ``grad``'s are.

    Returns:
        A function of f's arguments; what it returns has the structure of ``jacfwd``.

    Shapes:
        leaf of the argument: (*n); of the result: (*m); of the Jacobian: (*m, *n)

    Raises:
        ArgumentError: for a complex result, unless holomorphic.

    Example:
        >>> import numpy as np
        >>> jacrev(lambda x: {"sum": x.sum(), "twice": 2 * x})(np.ones(2))
        {'sum': array([1., 1.]), 'twice': array([[2., 0.],
               [0., 2.]])}

    References:
        Griewank and Walther (2008), section 3.2: vector mode.
    """
    chosen = chosen_by("jacrev", argnums, argnum)
    return _transform("jacrev", reverse, f, chosen, has_aux, holomorphic)


def jacobian(
    f: Callable[P, Any],
    argnums: Argnums = FIRST,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnum: Argnums | None = None,
) -> Callable[P, Any]:
    """The function that returns the Jacobian of f, by the mode that needs less.

    Reverse mode, if f has at most as many outputs as inputs, counted in numbers.
    Otherwise forward mode; f has then run once to count, and runs once more.

    Args:
        f: takes and returns any structures of numbers and arrays.
        argnums, argnum: which arguments to differentiate, as in ``grad``.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        holomorphic: promise that f is holomorphic in complex arguments.

    Returns:
        A function of f's arguments; what it returns has the structure of ``jacfwd``.
        Its attribute ``mode``, a function of the same arguments, says which mode is
        used for them, "forward" or "reverse".

    Shapes:
        leaf of the argument: (*n); of the result: (*m); of the Jacobian: (*m, *n)

    Example:
        >>> import numpy as np
        >>> f = lambda x: np.outer(x, x)[0]
        >>> jacobian(f)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [2., 1.]])
        >>> jacobian(f).mode(np.ones(2)), jacobian(np.cos).mode(1.0)
        ('reverse', 'reverse')
        >>> jacobian(lambda x: np.outer(x, x)).mode(np.ones(2))
        'forward'
    """
    argnums = chosen_by("jacobian", argnums, argnum)
    differentiated = _transform("jacobian", either, f, argnums, has_aux, holomorphic)

    def mode(*args: Any, **kwargs: Any) -> str:
        y = f(*args, **kwargs)
        y = pair("jacobian", y)[0] if has_aux else y
        inputs, *_ = isolate("jacobian", f, argnums, args, kwargs)
        return "reverse" if count(y) <= count(inputs) else "forward"

    differentiated.mode = mode  # type: ignore[attr-defined]  # functions take attributes
    return differentiated


def hessian(
    f: Callable[P, Any],
    argnums: Argnums = FIRST,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnum: Argnums | None = None,
) -> Callable[P, Any]:
    """The function that returns the Hessian of f: forward mode over reverse mode.

    Args:
        f: takes any structures of numbers and arrays; it returns a number, or a
            structure, whose second derivatives then take the place of each leaf.
        argnums, argnum: which arguments to differentiate, as in ``grad``.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        holomorphic: promise that f is holomorphic in complex arguments.

    Returns:
        A function of f's arguments: the Jacobian of the Jacobian, as of ``jacfwd``.

    Shapes:
        leaves of the argument: (*n), (*k); result of f: (); of the Hessian: (*n, *k)

    Example:
        >>> import numpy as np
        >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
        array([[4., 2.],
               [2., 0.]])
    """
    argnums = chosen_by("hessian", argnums, argnum)
    inner = jacrev(f, argnums, has_aux, holomorphic)
    return _transform("hessian", forward, inner, argnums, has_aux, holomorphic)


def diag_hessian(
    f: Callable[P, Any], argnums: Argnums = FIRST, *, argnum: Argnums | None = None
) -> Callable[P, Any]:
    """The function that returns the diagonal of the Hessian of f.

    Args:
        f: returns one real number.
        argnums, argnum: which arguments to differentiate, as in ``grad``.

    Returns:
        A function of f's arguments. The result has the structure and shapes of the
        argument: second derivatives with respect to each number by itself.

    Example:
        >>> import numpy as np
        >>> diag_hessian(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
        array([ 6., 12.])
    """
    chosen = chosen_by("diag_hessian", argnums, argnum)
    return _transform("diag_hessian", diagonal, f, chosen, False, False)


def _transform(
    where: str,
    mode: Function,
    f: Function,
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
) -> Function:
    """The function that differentiates f in a mode, with respect to some arguments."""
    check_function(where, f)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        chosen, call, keys = isolate(where, f, argnums, args, kwargs)

        def g(*inputs: Any) -> tuple[Any, Any]:
            y = call(*map(_named, originals, inputs))
            y, aux = pair(where, y) if has_aux else (y, None)
            return tree_map(unwrapped, y), aux

        originals = tuple(chosen)
        inputs = tree_map(unwrapped, originals)

        def structured(blocks: Blocks) -> Any:
            arrays = iter(blocks.arrays)
            parts = tree_map(lambda x: _like(x, next(arrays)), originals)
            return parts[0] if keys is None else parts

        entries, aux = mode(where, g, inputs, holomorphic)
        result = tree_map(structured, entries)
        return (result, aux) if has_aux else result

    name = f"{where}_of_{getattr(f, '__name__', 'f')}"
    differentiated.__name__ = differentiated.__qualname__ = name
    differentiated.__doc__ = f.__doc__
    differentiated.__wrapped__ = f  # type: ignore[attr-defined]  # as functools.wraps
    return differentiated


def _named(original: Any, x: Any) -> Any:
    """An argument under the names that the original has."""
    if is_array(original):  # no structure to go through
        return x
    return tree_map(like_original, original, x)


def _like(original: Any, array: Any) -> Any:
    """An array of derivatives, untracked if the argument was an untracked tensor."""
    if not isinstance(original, Value) or unwrapped(original) is original:
        return array
    if original.is_face:
        return original.like_this(array)
    cls: Any = type(original)
    return cls(array)
