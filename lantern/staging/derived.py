"""What is compiled of a function for derivatives that others take of it.

``Forward``, ``Pullback`` and ``Pushforward`` are functions like any others: called,
they do by the plain function and the library's transforms what they say; compiled, they
are programs. One rule is made of them: there natively, and back. As they may be called
with tracked numbers themselves, derivatives of any order and mode are compiled, each
when it is first taken.

What a compiled function reads besides its arguments belongs to the moment in which it
is called: the way back runs a program that has the same constants.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lantern.core.dispatch import register_rule, start
from lantern.core.unwrap import levels_of
from lantern.core.value import Rule, Value, base
from lantern.errors import MutationError
from lantern.staging.control import Signal
from lantern.staging.gradients import (
    Call,
    Part,
    staged_forward,
    staged_pullback,
    staged_pushforward,
)
from lantern.staging.structure import leaves_of, unflatten
from lantern.staging.trees import is_tree
from lantern.transforms.forward import Forward as Forward_
from lantern.transforms.forward import jvp
from lantern.transforms.reverse import Reverse, vjp

__all__ = [
    "Derived",
    "Forward",
    "Parts",
    "Pullback",
    "Pushforward",
    "StaleError",
    "call_tracked",
    "tracked",
]


class Derived:
    """Something about a function at numbers that derivatives track.

    Args:
        f: the function.
        by: the leaves of its arguments that are tracked.
    """

    word = ""

    def __init__(self, f: Callable[..., Any], by: Sequence[Part]) -> None:
        self.f, self.by = f, tuple(by)
        self.__name__ = f"{self.word}_of_{getattr(f, '__name__', 'f')}"

    def __call__(self, *args: Any) -> Any:
        """Without a program."""
        raise NotImplementedError

    def staged(self, session: Any, args: tuple[Any, ...], call: Call) -> Any:
        """As part of a program."""
        raise NotImplementedError

    def on_leaves(self, args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        """The function of the tracked leaves alone that returns floats, and these."""

        def some(*xs: Any) -> tuple[Any, ...]:
            return tuple(floats_in(self.f(*replaced(args, self.by, xs))))

        return some, [leaves_of(args[i])[k] for i, k in self.by]


class Forward(Derived):
    """What f returns."""

    word = "value"

    def __call__(self, *args: Any) -> Any:
        """As f."""
        return self.f(*args)

    def staged(self, session: Any, args: tuple[Any, ...], call: Call) -> Any:
        """As ``Derived.staged``."""
        return staged_forward(session, self.f, args, call)


class Pullback(Derived):
    """What the tracked leaves receive; the last argument are the cotangents."""

    word = "pullback"

    def __call__(self, *args: Any) -> Any:
        """By ``lantern.vjp``."""
        some, xs = self.on_leaves(args[:-1])
        return vjp(some, *xs)[1](args[-1])

    def staged(self, session: Any, args: tuple[Any, ...], call: Call) -> Any:
        """As ``Derived.staged``."""
        *more, seeds = args
        return staged_pullback(session, self.f, tuple(more), self.by, seeds, call)


class Pushforward(Derived):
    """How the results move; the last argument are the tracked leaves' tangents."""

    word = "pushforward"

    def __call__(self, *args: Any) -> Any:
        """By ``lantern.jvp``."""
        some, xs = self.on_leaves(args[:-1])
        return jvp(some, xs, args[-1])[1]

    def staged(self, session: Any, args: tuple[Any, ...], call: Call) -> Any:
        """As ``Derived.staged``."""
        *more, tangents = args
        known = self.by, tangents
        return staged_pushforward(session, self.f, tuple(more), *known, call)[1]


def is_float(x: Any) -> bool:
    """Whether a leaf of a result has a derivative."""
    return type(x) is float or isinstance(x, Value)


def floats_in(y: Any) -> list[Any]:
    """The leaves of a result that have derivatives."""
    return [x for x in leaves_of(y) if is_float(x)]


def tracked(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Part, ...]]:
    """Arguments without the derivatives that track them, and which leaves these track.

    All tracked leaves must be floats, and what tracks them must be derivatives that run
    there and back, or forward: else there are none. A Taylor series, or who looks at
    each operation, wants the plain function.
    """
    simple: list[Any] = []
    places: list[Part] = []
    for i, x in enumerate(args):
        if isinstance(x, Value) and type(x.primal) is float and type(x.level) in _MODES:
            places.append((i, 0))
            simple.append(x.primal)
        elif type(x) in (float, int, bool):
            simple.append(x)
        else:
            return _tracked_in_structures(args)
    return tuple(simple), tuple(places)


def _tracked_in_structures(
    args: tuple[Any, ...],
) -> tuple[tuple[Any, ...], tuple[Part, ...]]:
    """As ``tracked``, of arguments of any kind."""
    by: list[Part] = []
    plain: list[Any] = []
    values: list[Value] = []
    for i, x in enumerate(args):
        if isinstance(x, Value):
            inside = base(x)
            by.append((i, 0))
            values.append(x)
        elif type(x) in (float, int, bool):
            inside = x
        else:
            leaves = leaves_of(x)
            own = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Value)]
            by += [(i, k) for k in own]
            values += [leaves[k] for k in own]
            inside = unflatten(x, [base(leaf) for leaf in leaves]) if own else x
        plain.append(inside)
    if any(type(base(x)) is not float for x in values):
        return args, ()
    if not all(isinstance(m, _MODES) for x in values for m in levels_of(x)):
        return args, ()
    return tuple(plain), tuple(by)


_MODES = (Reverse, Forward_)


def replaced(args: Sequence[Any], by: Sequence[Part], xs: Sequence[Any]) -> Any:
    """Arguments with other leaves in some places."""
    new = list(args)
    rest = iter(xs)
    for i in dict.fromkeys(i for i, _ in by):
        leaves = leaves_of(args[i])
        for j, k in by:
            if j == i:
                leaves[k] = next(rest)
        new[i] = unflatten(args[i], leaves)
    return tuple(new)


class Parts:
    """What is compiled of a function for derivatives by some of its leaves.

    Attributes:
        forward, pullback, pushforward: functions, compiled.
        there, back: the programs of the first two, made for the same constants.
        count: how many floats the first returns.
        is_current: whether it still has that program.
    """

    def __init__(self, *compiled: Any) -> None:
        self.forward, self.pullback, self.pushforward = compiled
        self.there: Any = None
        self.back: Any = None
        self.count = 0
        self.is_current: Callable[[], bool] = bool

    def value(self, given: tuple[Any, ...]) -> Any:
        """What the function returns, by a program whose pullback is known."""
        inside = []
        if set(map(type, given)) != {float}:
            inside = [x for x in leaves_of(given) if isinstance(x, Value)]
        if inside and not self.there.guards.hold():
            raise StaleError
        y = self.forward(*given)
        if not inside and not self.is_current():
            raise StaleError
        if type(y) is float and self.count == 1:
            return y
        levels = {level for x in inside for level in levels_of(x)}
        floats = floats_in(y)
        if len(floats) != self.count or any(
            not levels.issuperset(levels_of(x)) for x in floats
        ):
            raise StaleError  # it reads what a derivative tracks
        return y

    def back_to(self, given: tuple[Any, ...], z_bars: tuple[Any, ...]) -> Any:
        """What the tracked leaves receive, from the constants of the way there."""
        args = (*given, z_bars)
        try:
            if set(map(type, given + z_bars)) == {float}:
                return self.back.run([*given, *z_bars])
            if not any(isinstance(x, Value) for x in leaves_of(args)):
                return self.back.run(self.back.program.take_apart(args))
        except Exception:  # whatever it is, it is said below
            pass
        if not self.there.guards.hold():
            raise MutationError(
                f"{self.forward.__name__}: what the compiled function reads besides "
                f"its arguments was changed before its backward pass. Give it as an "
                f"argument, or change it later."
            )
        return self.pullback(*args)


class StaleError(Signal):
    """A function reads something else than what its programs were made for."""


class _Called:
    """One call of a compiled function with tracked numbers.

    Attributes:
        parts: what is compiled of it.
        place: makes the arguments of their tracked leaves.
        result: what it returned, if that is more than one float.
    """

    __slots__ = ("parts", "place", "result")

    def __init__(self, parts: Parts, place: Callable[..., Any]) -> None:
        self.parts, self.place, self.result = parts, place, None

    def tangent(self, xs: Sequence[Any], moves: Sequence[Any]) -> Any:
        """How the results move."""
        moves = tuple([0.0 if x_dot is None else x_dot for x_dot in moves])
        moves += (0.0,) * (len(xs) - len(moves))
        found = self.parts.pushforward(*self.place(xs), moves)
        return found[0] if self.result is None else found


def _compiled_rule(*xs: Any, called: _Called, tangent: Any) -> Rule:
    """The rule of every compiled function."""
    given, parts = called.place(xs), called.parts
    y = parts.value(given)
    if is_float(y):
        z_bar = yield y
        x_bars = parts.back_to(given, (z_bar,))
    else:
        called.result = y
        z_bars = yield tuple(floats_in(y))
        x_bars = parts.back_to(given, tuple(z_bars))
    for x_bar in x_bars:  # noqa: UP028  # nothing can be sent to a tuple
        yield x_bar


_rule = register_rule(_compiled_rule, "stated", own=False, adjoint=True)


def call_tracked(parts: Parts, args: tuple[Any, ...], by: Sequence[Part]) -> Any:
    """Call a compiled function with tracked numbers.

    Args:
        parts: what is compiled of it.
        args: the arguments.
        by: which of their leaves are tracked.

    Raises:
        StaleError: if the function must be compiled again.
    """
    if all(isinstance(x, Value) for x in args):
        xs, called = args, _Called(parts, tuple)
    else:
        # Containers are copied: they may be changed before the way back.
        apart = {i for i, _ in by}
        args = tuple(
            x if i not in apart and is_tree(x) else unflatten(x, leaves_of(x))
            for i, x in enumerate(args)
        )
        xs = tuple([leaves_of(args[i])[k] for i, k in by])
        called = _Called(parts, partial(replaced, args, by))
    z = start(_rule, xs, (), {"called": called, "tangent": called.tangent})
    if called.result is None:
        return z
    values = iter(z)
    new = [next(values) if is_float(x) else x for x in leaves_of(called.result)]
    return unflatten(called.result, new)
