"""Reverse mode: a delimiter around the function, its rules resumed newest first.

What a usual call answers is asked here, as whether f is a plain function; any other is
handed to ``arguments``, which has the words of all refusals.
"""

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, ClassVar, Literal, ParamSpec, TypeVar, overload

from lantern.core.dispatch import value_class
from lantern.core.residuals import copied, is_array
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.unwrap import frozen, strip
from lantern.core.value import (
    Level,
    Receiver,
    Replayable,
    Value,
    base,
    escaped,
    levels,
    unwrapped,
)
from lantern.cps import delimit, reset, shift
from lantern.replaced import restore
from lantern.rules.number import Number, in_kind_of
from lantern.transforms.arguments import (
    FIRST,
    NOT_PLAIN,
    by_names,
    check_driver,
    check_function,
    check_level,
    check_like,
    check_result,
    check_scalar,
    checked_leaf,
    choose,
    chosen_by,
    isolate,
    opened,
    pair,
)
from lantern.transforms.recorded import Recorded, twin

__all__ = ["grad", "value_and_grad", "vjp"]

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
Pullback = Callable[[Any], tuple[Any, ...]]
Argnums = int | str | Sequence[int] | Sequence[str]


class Reverse(Level):
    """One reverse-mode derivative: its delimiter and the rules that wait in it.

    Args:
        name: for messages.
        driver: "in place", where a rule waits in a list; or "switching", where every
            operation captures the rest of the program with ``shift``. Same results.

    Attributes:
        goes_back: False if its rules are kept for their forward steps alone.
        drops: True, once there is a value that it keeps nothing of; not set before.
    """

    __slots__ = ("drops", "waiting")
    goes_back: ClassVar[bool] = True

    def __init__(self, name: str, driver: str = "in place") -> None:
        self.name, self.driver = name, driver
        self.depth, self.begin = next(levels), None
        waiting: list[Receiver] = []
        self.waiting = waiting
        self.suspend = waiting.append if driver == "in place" else self._capture

    def run(self, body: Callable[[], Any]) -> Any:
        """The body there and its rules back again; the body's answer."""
        try:
            if self.driver == "in place":
                return delimit(body, self.waiting, self)
            return reset(body, prompt=self)
        finally:
            self.suspend, self.latest = escaped, None  # as ``close``, in no call

    def drop(self, receiver: Receiver) -> None:
        """In place of ``suspend``: keep nothing, so that the derivative is zero."""
        super().drop(receiver)
        self.drops = True

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


def track(where: str, tree: Any, level: Level) -> Any:
    """A structure like ``tree`` whose leaves are inputs of a derivative."""
    if type(tree) is float:
        return Number(tree, level)
    if is_array(tree):  # no structure to go through
        return _track_leaf(where, level, tree, tree)
    return tree_map(partial(_track_leaf, where, level, tree), tree)


def _track_leaf(where: str, level: Level, tree: Any, given: Any) -> Any:
    leaf = unwrapped(given)
    dtype = getattr(leaf, "dtype", None)
    if getattr(dtype, "kind", "") != "f":
        leaf = checked_leaf(where, leaf, dtype, tree, given)
    cls: Any = value_class(leaf)
    value = cls(copied(leaf), level)
    return given.like_this(value) if isinstance(given, Value) else value


def seed(where: str, y: Any, level: Level, holomorphic: bool) -> Any:
    """Check that a result is one number; start its cotangent; make it plain."""
    if type(y) is Number and y.level is level and not holomorphic:
        plain = y.primal
        if type(plain) is float:  # the commonest case, in fewer steps
            y.cotangent = 1.0
            return plain
    if not isinstance(y, Value):
        y = opened(where, y, level)
    plain = y.primal if isinstance(y, Value) else y
    if isinstance(plain, Value):  # an outer derivative tracks it
        plain = base(plain)
    dtype, shape = getattr(plain, "dtype", None), getattr(plain, "shape", ())
    is_real = type(plain) is float or getattr(dtype, "kind", "") == "f"
    if shape or holomorphic or not is_real:
        check_scalar(where, plain, holomorphic)
    if not isinstance(y, Value):
        return y
    if y.level is not level:
        check_level(where, y, level)
        return y
    y.receiver.cotangent = y.one()
    return y.like_this(y.primal)


def value_and_grad(
    f: Callable[P, R],
    argnums: Argnums = FIRST,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    driver: str = "in place",
    argnum: Argnums | None = None,
) -> Callable[P, tuple[R, Any]]:
    """The function that returns f's value together with its gradient.

    Args:
        f: returns one real number; with ``has_aux`` a pair of it and anything else.
        argnums: which arguments to differentiate: a position or a tuple of positions;
            a parameter's name or a tuple of names, however these are passed; or "*" for
            all positional arguments of the call, in a tuple.
        has_aux: whether f returns ``(value, aux)``.
        holomorphic: promise that f is a holomorphic function of complex arguments;
            the result is then its complex derivative.
        driver: how the rest of the program is captured (``lantern.cps``): "in place",
            or "switching" for reference and teaching. The results are identical.
        argnum: another name of argnums, HIPS autograd's.

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
        >>> value_and_grad(lambda x, y: x * y, argnums="y")(2.0, y=3.0)
        (6.0, 2.0)

    References:
        Wang et al. (2019), section 3.2.
    """
    if argnum is not None:
        argnums = chosen_by("value_and_grad", argnums, argnum)
    elif argnums is FIRST:
        argnums = 0
    return _differentiate(
        "value_and_grad", f, argnums, has_aux, holomorphic, driver, with_value=True
    )


def grad(
    f: Callable[P, Any],
    argnums: Argnums = FIRST,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    driver: str = "in place",
    argnum: Argnums | None = None,
) -> Callable[P, Any]:
    """The function that returns the gradient of f.

    Args:
        f: returns one real number; with ``has_aux`` a pair of it and anything else.
        argnums: which arguments to differentiate: a position or a tuple of positions;
            a parameter's name or a tuple of names, however these are passed; or "*" for
            all positional arguments of the call, in a tuple. The first by default.
        has_aux: whether f returns ``(value, aux)``; the result is then a pair too.
        holomorphic: promise that f is a holomorphic function of complex arguments;
            the result is then its complex derivative.
        driver: how the rest of the program is captured, as in ``value_and_grad``.
        argnum: another name of argnums, HIPS autograd's.

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
    if argnum is not None:
        argnums = chosen_by("grad", argnums, argnum)
    elif argnums is FIRST:
        argnums = 0
    return _differentiate("grad", f, argnums, has_aux, holomorphic, driver)


def _differentiate(
    where: str,
    f: Function,
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
    driver: str,
    with_value: bool = False,
) -> Function:
    if type(f) is not FunctionType or f.__code__.co_flags & NOT_PLAIN:
        check_function(where, f)
    if driver != "in place":
        check_driver(where, driver)
    if type(argnums) is not int and by_names(argnums):
        options = (has_aux, holomorphic, driver, with_value)
        return _differentiate_by_name(where, f, argnums, *options)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        level, aux = Reverse(where, driver), None
        tracked = list(args)
        chosen: Sequence[Any] = (argnums,)
        if type(argnums) is not int or not 0 <= argnums < len(args):
            chosen = choose(where, argnums, args)
        for i in chosen:
            tracked[i] = track(where, args[i], level)

        def body() -> Any:
            nonlocal aux
            y = f(*tracked, **kwargs)
            if has_aux:
                y, aux = pair(where, y)
                aux = frozen(aux)
            return seed(where, y, level, holomorphic)

        value = level.run(body)
        if type(argnums) is int:
            result = gradient(tracked[argnums], args[argnums], holomorphic)
        else:
            result = tuple([gradient(tracked[i], args[i], holomorphic) for i in chosen])
        if has_aux:
            aux = strip(aux, level)
            return ((value, aux), result) if with_value else (result, aux)
        return (value, result) if with_value else result

    return _presented(where, f, differentiated)


def _differentiate_by_name(
    where: str, f: Function, argnums: Any, *options: Any
) -> Function:
    """As ``_differentiate``, for arguments that are named or all chosen."""

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        chosen, call, keys = isolate(where, f, argnums, args, kwargs)
        positions = 0 if keys is None else tuple(range(len(chosen)))
        return _differentiate(where, call, positions, *options)(*chosen)

    return _presented(where, f, differentiated)


def _presented(where: str, f: Function, derivative: Function) -> Function:
    """A derivative under a telling name, with f's documentation and signature."""
    name = f"{where}_of_{getattr(f, '__name__', 'f')}"
    derivative.__name__ = derivative.__qualname__ = name
    if f.__doc__ is not None:
        derivative.__doc__ = f.__doc__
    derivative.__wrapped__ = f  # type: ignore[attr-defined]  # as functools.wraps
    return derivative


@overload
def vjp(
    f: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Pullback]: ...
@overload
def vjp(
    f: Function, *primals: Any, has_aux: Literal[True]
) -> tuple[Any, Pullback, Any]: ...
@overload
def vjp(f: Function, *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
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
    level = Reverse("vjp")
    rules, inputs, y, *aux = record(level, f, primals, has_aux)
    value = strip(y, level, fresh=True)
    free: Recorded | None
    free = recorded = rules, inputs, y

    def pullback(y_bar: Any) -> Any:
        nonlocal free
        check_like("pullback", value, y_bar)
        own, free = free, None  # without a call: no thread, no interrupt comes between
        try:
            own = own or twin("pullback", level, recorded)
            return _pull(level, own, y_bar, primals)
        finally:
            free = own or free

    return value, pullback, *strip(aux, level, fresh=True)


def record(
    level: Reverse, f: Function, primals: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]:
    """Run f once and keep its rules, to be started again as often as needed.

    Returns:
        The receivers in the order of the program, the tracked arguments, the tracked
        result and, with ``has_aux``, what came beside it.
    """
    where = str(level.name)
    check_function(where, f)
    rules: list[Receiver] = []
    level.suspend, level.begin = rules.append, Replayable
    inputs = tuple(track(where, x, level) for x in primals)
    y = level.run(lambda: frozen(f(*inputs)))
    y, *aux = pair(where, y) if has_aux else (y,)
    check_result(where, y, level)
    return rules, inputs, y, *aux


def _receive(level: Level, y: Any, y_bar: Any) -> None:
    """Let a result's leaves receive their parts of a seed."""
    for leaf, seed in zip(tree_leaves(y), tree_leaves(y_bar), strict=True):
        if isinstance(leaf, Value) and leaf.level is level:
            seed = unwrapped(seed)
            if not getattr(seed, "shape", ()):
                seed = in_kind_of(leaf, seed)
            leaf.receiver.accumulate(seed)


def _empty(rules: list[Receiver], y: Any) -> None:
    """Forget what has come to values made in ``no_grad``, which hand nothing on."""
    last = [leaf.receiver for leaf in tree_leaves(y) if isinstance(leaf, Value)]
    for x in (*last, *(x for z in rules for x in z.operands())):
        if x is not None and x.suspended is None:
            x.cotangent = None


def gradient(inputs: Any, originals: Any, holomorphic: bool = False) -> Any:
    """What each leaf of an input structure has received, in the original's type."""
    if type(inputs) is Number and not holomorphic:
        g = inputs.gradient()
        return g if type(g) is float or not isinstance(g, Value) else g.shown()

    if isinstance(inputs, Value):
        return _received(inputs, originals, holomorphic)
    leaves = iter(tree_leaves(originals))
    return tree_map(lambda x: _received(x, next(leaves, None), holomorphic), inputs)


def _received(x: Value, original: Any, holomorphic: bool) -> Any:
    """What an input has received, in the original's type."""
    g = x.gradient().conjugate() if holomorphic else x.gradient()
    if isinstance(g, Value):
        g = g.shown()
    if not isinstance(original, Value) or x.is_face or unwrapped(original) is original:
        return g
    cls: Any = value_class(original)
    return cls(g)


def _pull(level: Level, recorded: Recorded, y_bar: Any, primals: Any) -> Any:
    """The gradients of a recorded program's inputs."""
    rules, inputs, y = recorded
    try:
        _receive(level, y, y_bar)
        for z in reversed(rules):
            z.replay()
        return tuple(map(gradient, inputs, primals))
    except BaseException as error:
        for z in rules:
            z.forget()
        restore(error)
        raise
    finally:
        for x in tree_leaves(inputs):
            x.receiver.cotangent = None
        if getattr(level, "drops", False):
            _empty(rules, y)
