"""Derivatives made from the two modes: the linear map of a program, products, pairs."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, ParamSpec, TypeVar, overload

from lantern.core.namespace import namespace
from lantern.core.residuals import owned
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.unwrap import like_original, strip
from lantern.core.value import (
    Level,
    Receiver,
    Replayable,
    Value,
    base,
    is_complex,
    zeros_like,
)
from lantern.errors import ArgumentError, NotScalarError, ShapeError
from lantern.transforms.arguments import (
    FIRST,
    check_function,
    check_like,
    chosen_by,
    describe,
    is_number,
    isolate,
)
from lantern.transforms.forward import (
    by_partials,
    combined,
    give_tangent,
    jvp,
    partials,
    stand_still,
    way,
)
from lantern.transforms.recorded import Recorded, twin
from lantern.transforms.reverse import Argnums, Reverse, grad, record, vjp

__all__ = ["elementwise_grad", "hvp", "linearize", "vhp", "wirtinger"]

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


class Linear(Reverse):
    """The level of a program that is kept as a linear map, to be gone through forward.

    What belongs to a way back (a checkpoint, a bracket) has no place in it.
    """

    __slots__ = ()
    goes_back: ClassVar[bool] = False

    def drop(self, receiver: Receiver) -> None:
        """In place of ``suspend``: the value does not move."""
        stand_still(receiver)


@overload
def linearize(
    f: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    f: Function, *primals: Any, has_aux: Literal[True]
) -> tuple[Any, Function, Any]: ...
@overload
def linearize(f: Function, *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
def linearize(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of f and its pushforward: the derivative at a point, as a linear map.

    Args:
        f: takes and returns any structures of numbers and arrays.
        primals: the arguments at which to differentiate.
        has_aux: whether f returns ``(value, aux)``.

    Returns:
        ``(value, pushforward)``, or ``(value, pushforward, aux)``. The pushforward
        takes one tangent for each argument and returns the tangent of the value. It can
        be called many times; f itself runs only once, and so do partial derivatives.

    Raises:
        ArgumentError: if f is no plain function or an argument is not differentiable.
        ShapeError: by the pushforward, if the tangents do not have the primals'
            structure and shapes.

    Example:
        >>> value, pushforward = linearize(lambda x, y: x * y, 2.0, 3.0)
        >>> value, pushforward(1.0, 0.0), pushforward(0.0, 1.0)
        (6.0, 3.0, 2.0)

    References:
        Griewank and Walther (2008), section 3.1.
    """
    level = Linear("linearize")
    rules, inputs, y, *aux = record(level, f, primals, has_aux)
    known: dict[int, list[Any]] = {}
    free: Recorded | None
    free = recorded = rules, inputs, y

    def pushforward(*tangents: Any) -> Any:
        nonlocal free
        check_like("pushforward", tuple(primals), tangents)
        own, free = free, None  # without a call: no thread, no interrupt comes between
        try:
            own = own or twin("pushforward", level, recorded)
            return _push(level, own, tangents, known)
        finally:
            free = own or free

    return strip(y, level, fresh=True), pushforward, *strip(aux, level, fresh=True)


def _push(level: Level, recorded: Recorded, tangents: Any, known: Any) -> Any:
    """The tangent of a recorded program's result."""
    rules, inputs, y = recorded

    def tangent(leaf: Any) -> Any:
        own = isinstance(leaf, Value) and leaf.level is level
        return leaf.receiver.tangent if own else zeros_like(leaf)

    try:
        tree_map(give_tangent, inputs, tangents)
        for i, z in enumerate(rules):
            xp = namespace(base(z.suspended.value))
            with xp.ignore_fp_warnings():  # may be infinite
                z.tangent = z.fit(_moved(z, known, i))
        taken = set(map(id, tree_leaves(tangents)))
        return tree_map(
            lambda leaf: like_original(leaf, owned(tangent(leaf), taken)), y
        )
    finally:
        for z in (*rules, *(x.receiver for x in tree_leaves(inputs))):
            z.tangent = None


def _moved(z: Receiver, known: dict[int, list[Any]], i: int) -> Any:
    """The tangent of a recorded result; partial derivatives are computed once."""
    move, recorded = way(z.suspended), z.suspended
    if i in known:
        return combined(z, known[i])
    fresh = Replayable(recorded.rule, recorded.operands, recorded.statics)
    next(fresh)
    try:
        z.suspended = fresh
        if move is by_partials:
            known[i] = partials(z)
            return combined(z, known[i])
        return move(z)
    finally:
        z.suspended = recorded


def hvp(
    f: Function,
    primals: Any,
    tangents: Any,
    has_aux: bool = False,
    *,
    argnums: Argnums | None = None,
    argnum: Argnums | None = None,
) -> Any:
    """The product of f's Hessian and a vector, forward over reverse.

    It costs a small multiple of f, whatever the number of variables.

    Args:
        f: returns one real number; with ``has_aux`` a pair of it and anything else.
        primals: the point, a tuple with one entry for each argument of f, as in
            ``jvp``; a single argument that is no tuple or list may come without one.
        tangents: the vector, in the same form.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        argnums, argnum: which of the primals to differentiate, as in ``grad``; the
            vector and the result are then in the form of these. By default all.

    Returns:
        ``H v``, without f's value: for one argument like that argument, for several a
        tuple. (``torch.autograd.functional.hvp`` returns a pair with f's value; for
        that use ``jvp(value_and_grad(f), primals, tangents)``.)

    Raises:
        NotScalarError: if f's result is not one number.
        ShapeError: if the tangents do not have the primals' structure and shapes.

    Example:
        >>> hvp(lambda x, y: x**2 * y, (2.0, 3.0), (1.0, 0.0))
        (6.0, 4.0)
        >>> hvp(lambda x: x**3, 2.0, 1.0)
        12.0
        >>> hvp(lambda x, y: x**2 * y, (2.0, 3.0), 1.0, argnums=0)
        6.0

    References:
        Pearlmutter (1994), "Fast exact multiplication by the Hessian".
    """
    chosen = chosen_by("hvp", argnums, argnum)
    f, primals = _of_chosen("hvp", f, chosen, primals)
    gradient, points, vectors = _products("hvp", f, primals, tangents, has_aux)
    _, product, *aux = jvp(gradient, points, vectors, has_aux)
    return (product, *aux) if has_aux else product


def vhp(
    f: Function,
    primals: Any,
    cotangents: Any,
    has_aux: bool = False,
    *,
    argnums: Argnums | None = None,
    argnum: Argnums | None = None,
) -> Any:
    """The product of a vector and f's Hessian, reverse over reverse.

    It equals ``hvp`` where the Hessian is symmetric; it needs no forward mode.

    Args:
        f: returns one real number; with ``has_aux`` a pair of it and anything else.
        primals: the point, as in ``hvp``.
        cotangents: the vector, in the same form.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        argnums, argnum: as in ``hvp``.

    Returns:
        ``v H``, as in ``hvp``.

    Raises:
        NotScalarError: if f's result is not one number.
        ShapeError: if the vector does not have the primals' structure and shapes.

    Example:
        >>> vhp(lambda x, y: x**2 * y, (2.0, 3.0), (1.0, 0.0))
        (6.0, 4.0)
    """
    chosen = chosen_by("vhp", argnums, argnum)
    f, primals = _of_chosen("vhp", f, chosen, primals)
    gradient, points, vectors = _products("vhp", f, primals, cotangents, has_aux)
    check_like("vhp", points, vectors)
    _, pullback, *aux = vjp(gradient, *points, has_aux=has_aux)
    single = len(points) == 1
    product = pullback(vectors[0] if single else vectors)
    product = product[0] if single else product
    return (product, *aux) if has_aux else product


def _of_chosen(
    where: str, f: Function, argnums: Any, primals: Any
) -> tuple[Function, Any]:
    """f as a function of some of its arguments, and the point of these."""
    check_function(where, f)
    if argnums is None:
        return f, primals
    points = primals if isinstance(primals, tuple | list) else (primals,)
    chosen, call, keys = isolate(where, f, argnums, points, {})
    return call, chosen[0] if keys is None else tuple(chosen)


def _products(
    where: str, f: Function, primals: Any, vectors: Any, has_aux: bool
) -> tuple[Function, tuple[Any, ...], tuple[Any, ...]]:
    """The gradient by all arguments, the point and the vector as tuples."""
    several = isinstance(primals, tuple | list)
    if several is not isinstance(vectors, tuple | list):
        raise ArgumentError(
            f"{where}: the point is a {type(base(primals)).__name__}, the vector a "
            f"{type(base(vectors)).__name__}. Give both as tuples with one entry for "
            f"each argument of f, or both as single arguments."
        )
    points = tuple(primals) if several else (primals,)
    argnums = 0 if len(points) == 1 else tuple(range(len(points)))
    vectors = tuple(vectors) if several else (vectors,)
    return grad(f, argnums, has_aux), points, vectors


def elementwise_grad(
    f: Callable[P, Any],
    argnums: Argnums = FIRST,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnum: Argnums | None = None,
) -> Callable[P, Any]:
    """The function that returns the derivative of each element of f's result.

    Args:
        f: works elementwise: each element of its result depends on the elements in the
            same place alone. That is a promise; of a function that mixes elements, each
            column of the Jacobian would be summed. Use ``jacobian`` for such a one.
        argnums, argnum: as in ``grad``.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        holomorphic: promise that f is holomorphic; the result is its complex
            derivative.

    Returns:
        A function of f's arguments; what it returns has the shape of f's result.

    Raises:
        ShapeError: if f's result does not have the argument's shape.
        NotScalarError: if the result is a structure, or complex and not promised to be
            holomorphic.

    Example:
        >>> import lantern
        >>> import numpy as np
        >>> elementwise_grad(elementwise_grad(lambda x: x**3))(np.array([1.0, 2.0]))
        array([ 6., 12.])
    """
    check_function("elementwise_grad", f)
    argnums = chosen_by("elementwise_grad", argnums, argnum)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        where = "elementwise_grad"
        chosen, call, keys = isolate(where, f, argnums, args, kwargs)
        value, pullback, *aux = vjp(call, *chosen, has_aux=has_aux)
        _check_elementwise(where, value, chosen, holomorphic)
        gradients = pullback(zeros_like(value) + 1)
        if holomorphic:
            gradients = tree_map(_conj, gradients)
        result = gradients[0] if keys is None else gradients
        return (result, *aux) if has_aux else result

    differentiated.__name__ = f"elementwise_grad_of_{getattr(f, '__name__', 'f')}"
    differentiated.__qualname__ = differentiated.__name__
    differentiated.__wrapped__ = f  # type: ignore[attr-defined]  # as functools.wraps
    return differentiated


def _check_elementwise(where: str, value: Any, args: Any, holomorphic: bool) -> None:
    if not is_number(value):
        raise NotScalarError(
            f"{where}: f must return one number or array, got "
            f"{type(value).__name__}. Use vjp or jacobian for structures."
        )
    shape = getattr(value, "shape", ())
    for leaf in tree_leaves(args):
        if getattr(leaf, "shape", ()) != shape:
            raise ShapeError(
                f"{where}: f's result has shape {tuple(shape)}, an argument has shape "
                f"{tuple(leaf.shape)}. Give arguments of one shape, or use jacobian."
            )
    if is_complex(value) is not holomorphic:
        raise NotScalarError(
            f"{where}: the result is {describe(value)}. A complex derivative needs "
            f"complex values and holomorphic=True; for real ones leave it out."
        )


def wirtinger(
    f: Function, argnums: Argnums = FIRST, *, argnum: Argnums | None = None
) -> Function:
    """The function that returns the pair of Wirtinger derivatives of f.

    With z = x + iy they are ``df/dz = (df/dx - i df/dy) / 2`` and
    ``df/dconj(z) = (df/dx + i df/dy) / 2``. The second one is zero exactly where f is
    holomorphic; of a real f it is half of what ``grad`` returns.

    Args:
        f: a function of complex numbers or arrays that returns one number, real or
            complex.
        argnums, argnum: as in ``grad``.

    Returns:
        A function of f's arguments that returns ``(df/dz, df/dconj(z))``, each in the
        form of ``grad``'s result.

    Raises:
        ArgumentError: if an argument is not complex.
        NotScalarError: if f's result is not one number.

    Example:
        >>> wirtinger(lambda z: z * z.conjugate())(1 + 2j)
        ((1-2j), (1+2j))

    References:
        Wirtinger (1927); Kreutz-Delgado (2009), "The complex gradient operator".
    """
    check_function("wirtinger", f)
    argnums = chosen_by("wirtinger", argnums, argnum)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        chosen, call, keys = isolate("wirtinger", f, argnums, args, kwargs)
        for leaf in tree_leaves(chosen):
            if not is_complex(leaf):
                raise ArgumentError(
                    f"wirtinger: expected complex arguments, got {describe(leaf)}. "
                    f"Convert it: x + 0j."
                )
        value, pullback = vjp(call, *chosen)
        if getattr(value, "shape", ()) or isinstance(value, tuple | list | dict):
            raise NotScalarError(
                f"wirtinger: f must return one number, got {describe(value)}. Take "
                f"one element at a time."
            )
        of_real = pullback(zeros_like(value) + 1)  # du/dx + i du/dy, with f = u + iv
        of_imag = tree_map(zeros_like, of_real)
        if is_complex(value):
            of_imag = pullback(zeros_like(value) + 1j)
        by_z = tree_map(lambda u, v: (_conj(u) + 1j * _conj(v)) / 2, of_real, of_imag)
        by_conj = tree_map(lambda u, v: (u + 1j * v) / 2, of_real, of_imag)
        return (by_z[0], by_conj[0]) if keys is None else (by_z, by_conj)

    differentiated.__name__ = f"wirtinger_of_{getattr(f, '__name__', 'f')}"
    differentiated.__qualname__ = differentiated.__name__
    differentiated.__wrapped__ = f  # type: ignore[attr-defined]  # as functools.wraps
    return differentiated


def _conj(x: Any) -> Any:
    return namespace(x).conj(x)
