"""Effects: what a program asks for, and handlers, who decide what that means.

An effect is called like a function. What the call does is decided by whoever runs the
program, not by who wrote it: so one program can be sampled, scored, run dry, watched or
differentiated in different ways.

Example:
    >>> from lantern.effects import Effect, handle
    >>> draw = Effect("draw")
    >>> def program(scale):
    ...     return scale * draw("x") + draw("y")
    >>> handle(lambda: program(10.0), {draw: lambda name: 2.0})
    22.0
    >>> handle(lambda: program(10.0), {draw: lambda name: len(name)})
    11.0

References:
    Plotkin and Pretnar (2009), "Handlers of algebraic effects".
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from inspect import isgeneratorfunction
from typing import Any

from lantern.blocks import Setting, between_turns
from lantern.cps import Prompt, delimit, reset, shift
from lantern.errors import ArgumentError, UnhandledEffectError
from lantern.transforms.arguments import check_in_force

__all__ = ["Effect", "UnhandledEffectError", "WithRest", "handle", "with_rest"]

Handler = Callable[..., Any]


class Effect:
    """Something that a program asks for; handlers give it a meaning.

    Args:
        name: for messages.
        default: what a call means where no handler is in force; without one that is an
            error.

    Raises:
        UnhandledEffectError: by a call, if there is neither.

    Example:
        >>> from lantern.effects import Effect
        >>> log = Effect("log", default=print)
        >>> log("nobody handles this")
        nobody handles this
    """

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: Handler | None = None) -> None:
        self.name, self.default = name, default

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Ask for it: the innermost handler answers."""
        scope = _scope.get()
        while scope is not None:
            if self in scope.handlers:
                return scope.answer(scope.handlers[self], args, kwargs)
            scope = scope.outer
        if self.default is None:
            raise UnhandledEffectError(
                f"{self.name}: no handler is in force here. Run the program under "
                f"handle(program, {{{self.name}: ...}}), or give the effect a default."
            )
        return self.default(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Effect {self.name!r}>"


class WithRest:
    """A handler that gets the rest of the program; see ``with_rest``.

    Example:
        >>> with_rest(lambda k: k(1)).handler(lambda value: value + 1)
        2
    """

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        self.handler = handler


def with_rest(handler: Handler) -> WithRest:
    """Make a function of ``k`` and the effect's arguments a handler.

    ``k(value)`` goes on with the program and returns its answer. It can be called once,
    now or later; if it is neither called nor kept, the program ends with what the
    handler returns.

    Example:
        >>> from lantern.effects import Effect, handle, with_rest
        >>> ask, later = Effect("ask"), []
        >>> def keep(k, question):
        ...     later.append(k)
        ...     return question
        >>> handle(lambda: 2 * ask("how many?"), {ask: with_rest(keep)})
        'how many?'
        >>> later.pop()(21)
        42
    """
    return WithRest(handler)


@between_turns
def handle(
    body: Callable[[], Any], handlers: Mapping[Effect, Handler | WithRest]
) -> Any:
    """Run a body; what it asks for, at any depth, these handlers answer.

    A handler is one of three things:

    - a function of the effect's arguments: what it returns, the call returns;
    - a generator function of them: what it yields, the call returns; its ``yield``
      gives it the answer of the rest of the body, and what it returns takes the
      answer's place. One that never yields ends the body with what it returns;
    - ``with_rest(function)``, which gets the rest of the body as a function.

    While a handler runs, the handlers further out are in force. So it may ask for the
    same effect, which then means what it means there.

    Args:
        body: a function of no arguments.
        handlers: for each effect, who answers it.

    Returns:
        The answer of the body, as the generator handlers have left it.

    Example:
        The second handler sees what the rest came to.

        >>> from lantern.effects import Effect, handle
        >>> choose = Effect("choose")
        >>> def program():
        ...     return (choose("a", "b") + choose("c", "d")).upper()
        >>> handle(program, {choose: lambda first, second: second})
        'BD'
        >>> def first_and_report(first, second):
        ...     answer = yield first
        ...     return f"{answer}, choosing {first}"
        >>> handle(program, {choose: first_and_report})
        'AC, choosing c, choosing a'
    """
    handlers = dict(handlers)
    for effect, handler in handlers.items():
        _check(effect, handler)
    scope = _Scope(handlers, _scope.get())
    inside = partial(_run, scope, body)
    with Setting(_scope, _scope.get()):  # a handler of the rest may leave its body's
        if any(isinstance(handler, WithRest) for handler in handlers.values()):
            z = reset(inside, prompt=scope.prompt)
        else:
            z = delimit(inside, [], scope.prompt)
        check_in_force("handle", z)
        return z


class _Scope:
    """Handlers in force, and those further out."""

    __slots__ = ("handlers", "outer", "prompt")

    def __init__(self, handlers: Mapping[Effect, Any], outer: "_Scope | None") -> None:
        self.handlers, self.outer = handlers, outer
        self.prompt = Prompt("handle")

    def answer(self, handler: Any, args: Any, kwargs: Any) -> Any:
        """What an effect comes to, with the handlers further out in force."""
        with Setting(_scope, self.outer):
            if isinstance(handler, WithRest):
                function = handler.handler
                return shift(lambda k: function(k, *args, **kwargs), prompt=self.prompt)
            if isgeneratorfunction(handler):
                return shift(partial(handler, *args, **kwargs), prompt=self.prompt)
            return handler(*args, **kwargs)


_scope: ContextVar[_Scope | None] = ContextVar("lantern.effects", default=None)


def _run(scope: _Scope, body: Callable[[], Any]) -> Any:
    """The body with its handlers in force; they are not while they themselves wait."""
    with Setting(_scope, scope):
        return body()


def _check(effect: Any, handler: Any) -> None:
    """Refuse what is no effect, and what is no handler."""
    if not isinstance(effect, Effect):
        raise ArgumentError(
            f"handle: {effect!r} is no effect. Make one: Effect('name')."
        )
    if not callable(handler) and not isinstance(handler, WithRest):
        raise ArgumentError(
            f"handle: the handler of {effect.name} is {handler!r}. Give a function."
        )
