"""Whole matrices of derivatives: all directions at once, in one pass.

The directions are the examples of a ``vmap`` (``lantern.batched``): forward mode pushes
a batch of tangents, reverse mode pulls back a batch of cotangents. f itself runs once,
on plain values.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from lantern.batched import Batched, Examples
from lantern.checks import check_function, check_result, choose, describe, pair
from lantern.errors import ArgumentError
from lantern.forward import jvp
from lantern.namespace import namespace
from lantern.reverse import Reverse, grad, strip, track
from lantern.tensor.linalg import diagonal
from lantern.tensor.manipulation import as_array, broadcast_to, moveaxis, reshape
from lantern.tensor.namespace import array_namespace
from lantern.tree import tree_leaves, tree_map
from lantern.value import Value, base, is_complex, unwrapped

__all__ = ["diag_hessian", "hessian", "jacfwd", "jacobian", "jacrev"]

Function = Callable[..., Any]


def jacfwd(
    f: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """The function that returns the Jacobian of f, by forward mode.

    All directions are pushed through f in one pass. It is the better choice where f has
    fewer inputs than outputs.

    Args:
        f: takes and returns any structures of numbers and arrays.
        argnums: which positional arguments to differentiate: one, or several.
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
    return _transform("jacfwd", _forward, f, argnums, has_aux, holomorphic)


def jacrev(
    f: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """The function that returns the Jacobian of f, by reverse mode.

    The cotangents of all outputs are pulled back in one pass. It is the better choice
    where f has fewer outputs than inputs.

    Args:
        f: takes and returns any structures of numbers and arrays.
        argnums: which positional arguments to differentiate: one, or several.
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
    return _transform("jacrev", _reverse, f, argnums, has_aux, holomorphic)


def jacobian(
    f: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """The function that returns the Jacobian of f, by the mode that needs less.

    Reverse mode, if f has at most as many outputs as inputs, counted in numbers.
    Otherwise forward mode; f has then run once to count, and runs once more.

    Args:
        f: takes and returns any structures of numbers and arrays.
        argnums: which positional arguments to differentiate: one, or several.
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
    differentiated = _transform("jacobian", _either, f, argnums, has_aux, holomorphic)

    def mode(*args: Any, **kwargs: Any) -> str:
        y = f(*args, **kwargs)
        y = pair("jacobian", y)[0] if has_aux else y
        inputs = [args[i] for i in choose("jacobian", argnums, args)]
        return "reverse" if _count(y) <= _count(inputs) else "forward"

    differentiated.mode = mode  # type: ignore[attr-defined]  # functions take attributes
    return differentiated


def hessian(
    f: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Function:
    """The function that returns the Hessian of f: forward mode over reverse mode.

    Args:
        f: takes any structures of numbers and arrays; it returns a number, or a
            structure, whose second derivatives then take the place of each leaf.
        argnums: which positional arguments to differentiate: one, or several.
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
    inner = jacrev(f, argnums, has_aux, holomorphic)
    return _transform("hessian", _forward, inner, argnums, has_aux, holomorphic)


def diag_hessian(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The function that returns the diagonal of the Hessian of f.

    Args:
        f: returns one real number.
        argnums: which positional arguments to differentiate: one, or several.

    Returns:
        A function of f's arguments. The result has the structure and shapes of the
        argument: second derivatives with respect to each number by itself.

    Example:
        >>> import numpy as np
        >>> diag_hessian(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
        array([ 6., 12.])
    """
    return _transform("diag_hessian", _diagonal, f, argnums, False, False)


class Blocks:
    """What takes the place of one leaf of f's result: an array for each input leaf."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays


def _transform(
    where: str,
    mode: Function,
    f: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
) -> Function:
    """The function that differentiates f in a mode, with respect to some arguments."""
    check_function(where, f)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        chosen = choose(where, argnums, args)

        def g(*inputs: Any) -> tuple[Any, Any]:
            every = list(args)
            for i, x in zip(chosen, inputs, strict=True):
                every[i] = x
            y = f(*every, **kwargs)
            return pair(where, y) if has_aux else (y, None)

        originals = tuple(args[i] for i in chosen)
        inputs = tree_map(unwrapped, originals)

        def structured(blocks: Blocks) -> Any:
            arrays = iter(blocks.arrays)
            parts = tree_map(lambda x: _like(x, next(arrays)), originals)
            return parts if isinstance(argnums, tuple | list) else parts[0]

        entries, aux = mode(where, g, inputs, holomorphic)
        result = tree_map(structured, entries)
        return (result, aux) if has_aux else result

    differentiated.__name__ = f"{where}_of_{getattr(f, '__name__', 'f')}"
    differentiated.__doc__ = f.__doc__
    differentiated.__wrapped__ = f  # type: ignore[attr-defined]  # as functools.wraps
    return differentiated


def _like(original: Any, array: Any) -> Any:
    """An array of derivatives, untracked if the argument was an untracked tensor."""
    return array if unwrapped(original) is original else type(original)(array)


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))


def _sizes(tree: Any) -> list[tuple[int, int]]:
    """Where the numbers of each leaf start and stop, counted through all leaves."""
    counts = (math.prod(_shape(leaf)) for leaf in tree_leaves(tree))
    return list(pairwise(accumulate(counts, initial=0)))


def _count(tree: Any) -> int:
    """How many numbers a structure has."""
    return sum(math.prod(_shape(leaf)) for leaf in tree_leaves(tree))


def _directions(leaf: Any, start: int, stop: int, examples: Examples) -> Any:
    """The parts in one leaf of all unit vectors: 1 in one number, 0 in the others."""
    plain = base(leaf)
    dtype = getattr(plain, "dtype", complex if is_complex(plain) else float)
    xp = array_namespace(plain)
    rows = xp.eye(examples.size, stop - start, k=-start, dtype=dtype)
    return Batched(rows.reshape((examples.size, *_shape(leaf))), examples)


def _rows(z: Any, examples: Examples) -> Any:
    """What came of all directions, along a first axis."""
    if examples.owns(z) and z.mapped:
        return z.stacked
    z = as_array(z.stacked if examples.owns(z) else z)
    return broadcast_to(z, (examples.size, *z.shape))


def _refuse_complex(where: str, what: str, tree: Any, instead: str) -> None:
    for leaf in tree_leaves(tree):
        if is_complex(leaf):
            raise ArgumentError(
                f"{where}: {what} is {describe(leaf)}. Use {instead}, or promise "
                f"holomorphic=True."
            )


def _pushed(where: str, g: Function, inputs: Any) -> tuple[Any, Any, Any]:
    """The derivative of g along each unit vector, the examples they are, and aux.

    A single direction needs no batch.
    """
    examples = Examples(where, _count(inputs))
    if examples.size == 1:
        tangents = tree_map(lambda x: _ones(x) if _count(x) else x, inputs)
    else:
        places = iter(_sizes(inputs))
        tangents = tree_map(lambda x: _directions(x, *next(places), examples), inputs)
    try:
        _, y_dot, aux = jvp(g, inputs, tangents, has_aux=True)
    finally:
        examples.close()
    return y_dot, examples, aux


def _ones(x: Any) -> Any:
    plain = base(x)
    return namespace(plain).ones_like(plain)


def _forward(where: str, g: Function, inputs: Any, holomorphic: bool) -> Any:
    """The Jacobian by one push of all unit vectors, and aux."""
    if not holomorphic:
        _refuse_complex(where, "an argument", inputs, "jacrev")
    y_dot, examples, aux = _pushed(where, g, inputs)
    leaves = list(zip(tree_leaves(inputs), _sizes(inputs), strict=True))

    def blocks(z: Any) -> Blocks:
        shape = _shape(z)
        if examples.size == 1:
            return Blocks([_reshaped(z, (*shape, *_shape(x))) for x, _ in leaves])
        columns = moveaxis(_rows(z, examples), 0, -1)
        return Blocks(
            [
                _reshaped(columns[..., start:stop], (*shape, *_shape(x)))
                for x, (start, stop) in leaves
            ]
        )

    return tree_map(blocks, y_dot), aux


def _reshaped(z: Any, shape: tuple[int, ...]) -> Any:
    return z if _shape(z) == shape else reshape(z, shape)


def _reverse(where: str, g: Function, inputs: Any, holomorphic: bool) -> Any:
    """The Jacobian by one pull of all unit vectors, and aux."""
    return _pulled(where, g, inputs, holomorphic, math.inf)


def _either(where: str, g: Function, inputs: Any, holomorphic: bool) -> Any:
    """The Jacobian by the mode that needs fewer directions, and aux."""
    found = _pulled(where, g, inputs, holomorphic, _count(inputs))
    return _forward(where, g, inputs, holomorphic) if found is None else found


def _pulled(
    where: str, g: Function, inputs: Any, holomorphic: bool, most: float
) -> Any:
    """As ``_reverse``; None, if g has more outputs than ``most``."""
    level = Reverse(where)
    tracked = track(where, inputs, level)

    def body() -> Any:
        y, aux = g(*tracked)
        check_result(where, y)
        if _count(y) > most:
            return None
        if not holomorphic:
            _refuse_complex(where, "a result", y, "jacfwd")
        examples = Examples(where, _count(y))
        for leaf, place in zip(tree_leaves(y), _sizes(y), strict=True):
            if isinstance(leaf, Value) and leaf.prompt is level:
                one = examples.size == 1
                seed = leaf.one() if one else _directions(leaf, *place, examples)
                leaf.receiver.accumulate(seed)
        return strip(y, level), examples, strip(aux, level)

    answer = level.run(body)
    if answer is None:
        return None
    y, examples, aux = answer
    gradients = [x.gradient() for x in tree_leaves(tracked)]
    if holomorphic:
        gradients = [x_bar.conjugate() for x_bar in gradients]
    return _by_rows(y, tree_leaves(inputs), gradients, examples), aux


def _by_rows(y: Any, inputs: Any, gradients: list[Any], examples: Examples) -> Any:
    """The Jacobian of gradients for the numbers of y, one after the other."""
    places = iter(_sizes(y))
    pairs = list(zip(map(_shape, inputs), gradients, strict=True))

    def blocks(leaf: Any) -> Blocks:
        start, stop = next(places)
        shape = _shape(leaf)
        if examples.size == stop - start == 1:
            return Blocks([_reshaped(g, shape + n) for n, g in pairs])
        rows = [_rows(g, examples)[start:stop] for _, g in pairs]
        return Blocks(
            [_reshaped(r, shape + n) for r, (n, _) in zip(rows, pairs, strict=True)]
        )

    return tree_map(blocks, y)


def _diagonal(where: str, g: Function, inputs: Any, holomorphic: bool) -> Any:
    """The diagonal of the Hessian, by one push of all unit vectors through grad."""
    several = tuple(range(len(inputs)))
    inner = grad(g, several, has_aux=True)
    rows, examples, aux = _pushed(where, inner, inputs)
    arrays = []
    for z, (start, stop) in zip(tree_leaves(rows), _sizes(inputs), strict=True):
        if examples.size > 1:
            block = _rows(z, examples)[start:stop]
            z = reshape(diagonal(reshape(block, (stop - start, -1))), _shape(z))
        arrays.append(z)
    return Blocks(arrays), aux
