"""The two operators: ``reset`` marks where the rest ends, ``shift`` captures it."""

import threading
from collections.abc import Callable
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from typing import Any

from lantern.cps.context import Scope
from lantern.cps.delimiter import Delimiter, nearest
from lantern.cps.handler import begin
from lantern.cps.prompt import Prompt, innermost
from lantern.cps.resumption import begin_beside, handle
from lantern.cps.worker import (
    Errand,
    Inbox,
    Waiter,
    getcurrent,
    hire,
    wait,
    work_on,
)
from lantern.errors import ArgumentError, NestingError

__all__ = ["reset", "shift"]

NESTING_LIMIT = 1_000
"""How deep resets may nest in any thread, however small its C stack."""

NESTING_LIMIT_MAIN = 10_000
"""How deep they may nest in the main thread."""

_unnamed = Prompt()


def reset(body: Callable[[], Any], *, prompt: Prompt | None = None) -> Any:
    """Run a body up to a delimiter, in a greenlet of its own; return its answer.

    Args:
        body: a function of no arguments.
        prompt: names the delimiter, for a ``shift`` that looks for this prompt.

    Returns:
        What the body returns; or, if handlers wait for that, what the oldest of them
        returns.

    Raises:
        NestingError: resets are nested too deep.
        BaseException: what the body or a handler raised and no handler caught.

    Example:
        >>> from lantern.cps import reset, shift
        >>> reset(lambda: 1 + shift(lambda k: 10 * k(4)))
        50
    """
    if prompt is None:
        prompt = _unnamed
    _check(body, prompt)
    inbox = Inbox()
    return wait(_start(body, prompt, inbox), inbox)


def shift(handler: Callable[..., Any], *, prompt: Prompt | None = None) -> Any:
    """Hand the rest of the body, up to a delimiter, to a handler.

    What the handler returns becomes the value of the ``reset``, or of the ``k(...)``
    under which the body was running. If it returns without having called or stored
    ``k``, the body is aborted: its ``finally`` blocks run first. What it raises before
    it calls ``k``, ``shift`` raises.

    Args:
        handler: a function of ``k`` (``Resumption``); or a generator function of no
            arguments, in which ``result = yield value`` stands for
            ``result = k(value)``.
        prompt: the innermost delimiter of this prompt; None for the innermost of all.

    Returns:
        The value that the handler gives to ``k``.

    Raises:
        NoDelimiterError: there is no such delimiter.

    Example:
        >>> from lantern.cps import reset, shift
        >>> def handler():
        ...     answer = yield 4
        ...     return 10 * answer
        >>> reset(lambda: 1 + shift(handler))
        50

    References:
        Danvy and Filinski (1990), "Abstracting control".
    """
    yields = _has_yield("shift", handler)
    delimiter = nearest(prompt)
    if yields and delimiter.prompt.driver == "in place":
        if delimiter is innermost.get():
            return begin(delimiter, handler)
        return _begin_inside(delimiter, handler)
    inbox = Inbox()
    job = begin_beside if yields else handle
    errand = hire(getcurrent().gr_context, job, delimiter, handler, Waiter(inbox))
    del handler  # it may lead to k, and k to this greenlet
    return wait(errand, inbox)


def _begin_inside(delimiter: Delimiter, handler: Callable[..., Any]) -> Any:
    """``begin``, in place but as if called at an outer delimiter."""
    token = innermost.set(delimiter)
    try:
        return begin(delimiter, handler)
    finally:
        innermost.reset(token)


def _start(body: Callable[[], Any], prompt: Prompt, inbox: Inbox) -> Errand:
    """The errand to run a body up to a new delimiter, for the current greenlet."""
    scope = Scope()
    delimiter = Delimiter(prompt, None, [], scope)
    delimiter.enter(innermost.get())
    if delimiter.depth > NESTING_LIMIT:
        _check_depth(delimiter)
    delimiter.caller = Waiter(inbox)
    return hire(scope.copy(), work_on, delimiter, partial(_to_its_end, body, scope))


def _check_depth(delimiter: Delimiter) -> None:
    """Refuse to nest deeper than is safe.

    Nested bodies take 8 KB each, and nothing of the C stack. But the traceback of an
    exception that has crossed them all does, when it is freed.
    """
    main = delimiter.thread == threading.main_thread().ident
    if delimiter.depth > NESTING_LIMIT_MAIN or not main:
        raise NestingError(
            f"reset: nested {delimiter.depth} deep. Use a loop, or one reset for all."
        )


def _to_its_end(body: Callable[[], Any], scope: Scope) -> Any:
    try:
        return body()
    finally:
        scope.over = True


def _check(body: Any, prompt: Any) -> None:
    """Refuse what is no thunk, and what is no prompt."""
    if _has_yield("reset", body):
        raise ArgumentError(
            f"reset: {body!r} is a generator function: to call it runs nothing. Give a "
            f"thunk that returns the result, as in reset(lambda: f(x))."
        )
    if not isinstance(prompt, Prompt):
        raise ArgumentError(f"reset: prompt must be a Prompt, got {prompt!r}.")


def _has_yield(where: str, function: Any) -> bool:
    """Whether a call makes a generator. Refuse what cannot be called, and ``async``."""
    try:
        flags = function.__code__.co_flags
    except AttributeError:
        flags = _flags(where, function)
    if flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        raise ArgumentError(
            f"{where}: {function!r} is asynchronous. Give a plain function; it may run "
            f"an event loop of its own."
        )
    return bool(flags & CO_GENERATOR)


def _flags(where: str, function: Any) -> int:
    """The flags of the code that runs when a partial, or an object, is called."""
    if not callable(function):
        raise ArgumentError(f"{where}: {function!r} is no function. Give a function.")
    while isinstance(function, partial):
        function = function.func
    if not hasattr(function, "__code__"):
        function = type(function).__call__
    return getattr(getattr(function, "__code__", None), "co_flags", 0)
