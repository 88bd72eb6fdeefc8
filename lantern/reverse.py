"""Reverse mode: a delimiter around the function, its rules resumed newest first."""

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from lantern.cps import delimit, reset, shift
from lantern.errors import ArgumentError, NotScalarError, ShapeError
from lantern.number import Number
from lantern.op import value_class
from lantern.tree import tree_leaves, tree_map
from lantern.value import Level, Receiver, Replayable, Value, base, is_complex

__all__ = ["grad", "value_and_grad", "vjp"]

Function = Callable[..., Any]
_NOT_NUMBERS = (bool, str, bytes, bytearray, list, tuple, type)
DRIVERS = ("in place", "switching")
_NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Reverse(Level):
    """One reverse-mode derivative: its delimiter and the rules that wait in it.

    Args:
        name: for messages.
        driver: "in place", where a rule waits in a list; or "switching", where every
            operation captures the rest of the program with ``shift``. Same results.
    """

    __slots__ = ("waiting",)

    def __init__(self, name: str, driver: str = "in place") -> None:
        super().__init__(name, driver)
        self.waiting: list[Receiver] = []
        self.suspend = self.waiting.append if driver == "in place" else self._capture

    def run(self, body: Callable[[], Any]) -> Any:
        """The body there and its rules back again; the body's answer."""
        try:
            if self.driver == "in place":
                return delimit(body, self.waiting, self)
            return reset(body, prompt=self)
        finally:
            self.close()

    def _capture(self, receiver: Receiver) -> None:
        """Suspend a rule by really capturing the rest of the program.

        Figure 8 of the Lantern paper: the continuation runs, and when it returns, the
        cotangents of the operands are updated.

        References:
            Wang et al. (2019), section 3.2.
        """

        def handler() -> Any:
            try:
                answer = yield
            except BaseException:
                receiver.close()
                raise
            return receiver.resume(answer)

        shift(handler, prompt=self)


def check_function(where: str, f: Any) -> None:
    """Refuse what cannot be differentiated, before anything runs."""
    if type(f) is FunctionType and not f.__code__.co_flags & _NOT_PLAIN:
        return
    if not callable(f):
        raise ArgumentError(
            f"{where}: expected a function, got {type(f).__name__}. "
            f"Write {where}(f)(x), with f not yet called."
        )
    for called in (f, type(f).__call__):
        if (
            inspect.isgeneratorfunction(called)
            or inspect.iscoroutinefunction(called)
            or inspect.isasyncgenfunction(called)
        ):
            raise ArgumentError(
                f"{where}: {getattr(f, '__name__', f)} is a generator or coroutine "
                f"function. Give a plain function that returns its result."
            )


def track(where: str, tree: Any, level: Level) -> Any:
    """A structure like ``tree`` whose leaves are inputs of a derivative."""
    if type(tree) is float:
        return Number(tree, level)
    return tree_map(lambda leaf: _track_leaf(where, leaf, level), tree)


def _track_leaf(where: str, leaf: Any, level: Level) -> Value:
    kind = getattr(getattr(leaf, "dtype", None), "kind", "f")
    if not is_number(leaf) or kind not in "fciu" or (kind in "iu" and leaf.shape):
        raise ArgumentError(
            f"{where}: cannot differentiate with respect to {describe(leaf)}. Convert "
            f"it to a floating-point type, choose other argnums, or pass it by closure."
        )
    if kind in "iu" or isinstance(leaf, int):
        leaf = float(leaf)
    cls: Any = value_class(leaf)
    value: Value = cls(leaf, level)
    return value


def is_number(x: Any) -> bool:
    """Whether a leaf is a number or an array, tracked or not."""
    return hasattr(type(x), "__mul__") and not isinstance(x, _NOT_NUMBERS)


def describe(leaf: Any) -> str:
    """What a leaf is, for messages."""
    if getattr(leaf, "shape", ()):
        return f"an array of {leaf.dtype} of shape {tuple(leaf.shape)}"
    return f"{base(leaf)!r} of type {type(base(leaf)).__name__}"


def strip(tree: Any, level: Level) -> Any:
    """A structure like ``tree`` with the values of a derivative made plain."""

    def plain(leaf: Any) -> Any:
        own = isinstance(leaf, Value) and leaf.prompt is level
        return leaf.primal if own else leaf

    return tree_map(plain, tree)


def seed(where: str, y: Any, level: Level, holomorphic: bool) -> Any:
    """Check that a result is one number; start its cotangent; make it plain."""
    plain = base(y)
    if type(plain) is not float or holomorphic:
        _check_scalar(where, plain, holomorphic)
    if not isinstance(y, Value) or y.prompt is not level:
        return y
    y.receiver.cotangent = y.one()
    return y.primal


def _check_scalar(where: str, y: Any, holomorphic: bool) -> None:
    shape = tuple(getattr(y, "shape", ()))
    if shape or not is_number(y) or str(getattr(y, "dtype", "")) == "bool":
        got = f"shape {shape}" if shape else describe(y)
        raise NotScalarError(
            f"{where}: f must return a scalar, got {got}. Use vjp with a seed, or "
            f"jacobian; for a second result use has_aux=True."
        )
    if is_complex(y) is not holomorphic:
        got, other = ("complex", "real") if is_complex(y) else ("real", "complex")
        raise NotScalarError(
            f"{where}: f must return a {other} number, got a {got} one. Take "
            f"abs or the real part; for a complex derivative use holomorphic=True."
        )


def _choose(where: str, argnums: Any, args: Sequence[Any]) -> Sequence[int]:
    """The positions to differentiate, checked."""
    if type(argnums) is int and 0 <= argnums < len(args):
        return (argnums,)
    chosen = argnums if isinstance(argnums, tuple | list) else (argnums,)
    for i in chosen:
        if type(i) is not int:
            raise ArgumentError(
                f"{where}: argnums must be an int or a tuple of ints, got {argnums!r}. "
                f"Count positional arguments from 0."
            )
        if not -len(args) <= i < len(args):
            raise ArgumentError(
                f"{where}: argnums={argnums!r}, but f was called with {len(args)} "
                f"positional arguments. Pass the differentiated arguments by position."
            )
    if len({i % len(args) for i in chosen}) < len(chosen):
        raise ArgumentError(
            f"{where}: argnums={argnums!r} names an argument twice. Name each once."
        )
    return chosen


def value_and_grad(
    f: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    driver: str = "in place",
) -> Function:
    """The function that returns f's value together with its gradient.

    Args:
        f: returns one real number; with ``has_aux`` a pair of it and anything else.
        argnums: which positional arguments to differentiate: one, or several.
        has_aux: whether f returns ``(value, aux)``.
        holomorphic: promise that f is a holomorphic function of complex arguments;
            the result is then its complex derivative.
        driver: how the rest of the program is captured (``lantern.cps``): "in place",
            or "switching" for reference and teaching. The results are identical.

    Returns:
        A function of f's arguments that returns ``(value, gradient)``, or
        ``((value, aux), gradient)``. The gradient has the structure, shapes and types
        of the argument; for several argnums it is a tuple.

    Raises:
        ArgumentError: if f is no plain function or an argument is not differentiable.
        NotScalarError: if f's result is not one number.

    Example:
        >>> value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
        (6.0, (3.0, 2.0))

    References:
        Wang et al. (2019), section 3.2.
    """
    return _differentiate(
        "value_and_grad", f, argnums, has_aux, holomorphic, driver, with_value=True
    )


def grad(
    f: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    driver: str = "in place",
) -> Function:
    """The function that returns the gradient of f.

    Args:
        f: returns one real number; with ``has_aux`` a pair of it and anything else.
        argnums: which positional arguments to differentiate: one, or several.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        holomorphic: see ``value_and_grad``.
        driver: see ``value_and_grad``.

    Returns:
        A function of f's arguments. For complex arguments x + iy of a real f the
        gradient is df/dx + i df/dy.

    Raises:
        ArgumentError: if f is no plain function or an argument is not differentiable.
        NotScalarError: if f's result is not one number.

    Example:
        >>> grad(lambda x: 2 * x + x**3)(3.0)
        29.0
        >>> grad(grad(lambda x: 2 * x + x**3))(3.0)
        18.0

    References:
        Wang et al. (2019), section 3.2.
    """
    return _differentiate("grad", f, argnums, has_aux, holomorphic, driver)


def _differentiate(
    where: str,
    f: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    driver: str,
    with_value: bool = False,
) -> Function:
    check_function(where, f)
    if driver not in DRIVERS:
        raise ArgumentError(
            f"{where}: there is no driver {driver!r}. Choose one of {DRIVERS}."
        )
    several = isinstance(argnums, tuple | list)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        level = Reverse(where, driver)
        tracked = list(args)
        inputs = []
        for i in _choose(where, argnums, args):
            tracked[i] = track(where, args[i], level)
            inputs.append(tracked[i])

        def body() -> tuple[Any, Any]:
            y, aux = f(*tracked, **kwargs), None
            if has_aux:
                y, aux = pair(where, y)
            return seed(where, y, level, holomorphic), aux

        value, aux = level.run(body)
        gradients = [gradient(x, holomorphic) for x in inputs]
        result = tuple(gradients) if several else gradients[0]
        if has_aux:
            aux = strip(aux, level)
            return ((value, aux), result) if with_value else (result, aux)
        return (value, result) if with_value else result

    differentiated.__name__ = f"{where}_of_{getattr(f, '__name__', 'f')}"
    differentiated.__doc__ = f.__doc__
    differentiated.__wrapped__ = f  # type: ignore[attr-defined]  # as functools.wraps
    return differentiated


def gradient(inputs: Any, holomorphic: bool = False) -> Any:
    """What each leaf of an input structure has received."""
    if type(inputs) is Number and not holomorphic:
        return inputs.gradient()

    def leaf(x: Value) -> Any:
        return x.gradient().conjugate() if holomorphic else x.gradient()

    return tree_map(leaf, inputs)


def pair(where: str, y: Any) -> tuple[Any, Any]:
    """Check that a function with ``has_aux`` returned two things."""
    if isinstance(y, tuple) and len(y) == 2:
        return y
    raise ArgumentError(
        f"{where}: with has_aux=True f must return (value, aux), got "
        f"{type(base(y)).__name__}. Return a pair."
    )


def vjp(f: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of f and its pullback.

    Args:
        f: takes and returns any structures of numbers and arrays.
        primals: the arguments at which to differentiate.
        has_aux: whether f returns ``(value, aux)``.

    Returns:
        ``(value, pullback)``, or ``(value, pullback, aux)``. The pullback takes a
        cotangent of the value's structure and returns a tuple with one gradient for
        each argument. It can be called many times; f itself runs only once.

    Raises:
        ArgumentError: if f is no plain function or an argument is not differentiable.
        ShapeError: by the pullback, if the seed does not have the value's structure.

    Example:
        >>> value, pullback = vjp(lambda x, y: (x * y, x + y), 2.0, 3.0)
        >>> value, pullback((1.0, 0.0)), pullback((0.0, 1.0))
        ((6.0, 5.0), (3.0, 2.0), (1.0, 1.0))

    References:
        Griewank and Walther (2008), section 3.2.
    """
    check_function("vjp", f)
    level = Reverse("vjp")
    rules: list[Receiver] = []
    level.suspend, level.begin = rules.append, Replayable
    inputs = tuple(track("vjp", x, level) for x in primals)
    y = level.run(lambda: f(*inputs))
    y, *aux = pair("vjp", y) if has_aux else (y,)
    check_result("vjp", y)
    value = strip(y, level)

    def pullback(y_bar: Any) -> tuple[Any, ...]:
        check_like("pullback", value, y_bar)
        try:
            for leaf, seed in zip(tree_leaves(y), tree_leaves(y_bar), strict=True):
                if isinstance(leaf, Value) and leaf.prompt is level:
                    leaf.receiver.accumulate(seed)
            for z in reversed(rules):
                _replay(z)
            return tuple(gradient(x) for x in inputs)
        finally:
            for z in (*rules, *(x.receiver for x in tree_leaves(inputs))):
                z.cotangent = None

    return value, pullback, *strip(aux, level)


def _replay(z: Receiver) -> None:
    """Resume a rule that may be needed again: a fresh one, from its saved operands."""
    z_bar = z.cotangent
    if z_bar is not None:
        z.cotangent = None
        rule = z.rule.again()
        next(rule)
        z.settle(rule, z_bar)


def check_like(where: str, tree: Any, other: Any) -> None:
    """Refuse a structure that does not match in containers, shapes and numbers."""
    expected, got = (tree_map(_form, t) for t in (tree, other))
    if expected != got:
        raise ShapeError(
            f"{where}: expected the structure and shapes {expected}, got {got}. "
            f"Give one leaf of the same shape for each."
        )
    for leaf, like in zip(tree_leaves(other), tree_leaves(tree), strict=True):
        if not is_number(leaf) or (is_complex(leaf) and not is_complex(like)):
            raise ArgumentError(
                f"{where}: expected a number like {describe(like)}, got "
                f"{describe(leaf)}. Give a real number for a real one."
            )


def check_result(where: str, y: Any) -> None:
    """Refuse a result with leaves that are no numbers."""
    for leaf in tree_leaves(y):
        if not is_number(leaf):
            raise ArgumentError(
                f"{where}: f must return numbers, arrays or structures of them, got "
                f"{describe(leaf)}. Return other things with has_aux=True."
            )


def _form(leaf: Any) -> str:
    return f"shape {tuple(getattr(leaf, 'shape', ()))}"
