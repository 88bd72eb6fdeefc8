"""The two operators: ``reset`` marks where the rest ends, ``shift`` captures it."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from lantern.cps.context import Scope
from lantern.cps.handler import begin, has_yield
from lantern.cps.prompt import Delimiter, Prompt, innermost, nearest
from lantern.cps.resumption import begin_beside, capture, sweep
from lantern.cps.worker import getcurrent, hire, wait, work_on
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
        What the body returns; or, when handlers of ``shift`` wait for that, what the
        oldest of them returns.

    Raises:
        BaseException: what the body or a handler raises, if no handler catches it.
        NestingError: resets are nested deeper than ``NESTING_LIMIT``.

    Example:
        >>> reset(lambda: 1 + shift(lambda k: 10 * k(4)))
        50
    """
    if prompt is None:
        prompt = _unnamed
    _check(body, prompt)
    sweep()
    scope = Scope()
    delimiter = Delimiter(prompt, None, [], scope)
    delimiter.enter(innermost.get())
    if delimiter.depth > NESTING_LIMIT:
        _check_depth(delimiter)
    delimiter.caller = getcurrent()
    job = partial(work_on, delimiter, partial(_to_its_end, body, scope))
    return wait(hire(scope.copy(), job))


def shift(handler: Callable[..., Any], *, prompt: Prompt | None = None) -> Any:
    """Hand the rest of the body, up to a delimiter, to a handler.

    Args:
        handler: a function of ``k``, the rest (``Resumption``); or a generator function
            of no arguments, in which ``result = yield value`` stands for
            ``result = k(value)``. Its value becomes the value of the ``reset``, or of
            the ``k(...)`` under which the body was running. Without calling ``k`` it
            aborts the body, whose ``finally`` blocks run first. An exception that it
            raises before calling ``k`` is raised by ``shift``.
        prompt: the nearest delimiter of that prompt; by default the nearest of all.

    Returns:
        What the handler gives to ``k``.

    Raises:
        NoDelimiterError: no such delimiter encloses this call.

    Example:
        >>> def handler():
        ...     answer = yield 4
        ...     return 10 * answer
        >>> reset(lambda: 1 + shift(handler))
        50

    References:
        Danvy and Filinski (1990), "Abstracting control".
    """
    yields = has_yield("shift", handler)
    delimiter = nearest(prompt)
    if yields and delimiter.prompt.driver == "in place":
        return _begin_here(delimiter, handler)
    worker = (begin_beside if yields else capture)(delimiter, handler)
    del handler  # it may lead to k, and k to this greenlet
    return wait(worker)


def _check_depth(delimiter: Delimiter) -> None:
    """Refuse to nest deeper than is safe.

    Nested bodies take 8 KB each, and none of the C stack; but the traceback of an
    exception that crosses them all does, when it is freed.
    """
    main = delimiter.thread == threading.main_thread().ident
    if delimiter.depth > NESTING_LIMIT_MAIN or not main:
        raise NestingError(
            f"reset: nested {delimiter.depth} deep. Use a loop, or one reset for all."
        )


def _begin_here(delimiter: Delimiter, handler: Callable[..., Any]) -> Any:
    """The first step of a generator handler, on this stack, under its delimiter."""
    if innermost.get() is delimiter:
        return begin(delimiter, handler)
    token = innermost.set(delimiter)
    try:
        return begin(delimiter, handler)
    finally:
        innermost.reset(token)


def _to_its_end(body: Callable[[], Any], scope: Scope) -> Any:
    try:
        return body()
    finally:
        scope.over = True


def _check(body: Any, prompt: Any) -> None:
    """Refuse what is not a thunk, and what is not a prompt."""
    if has_yield("reset", body):
        raise ArgumentError(
            f"reset: {body!r} is a generator function, which would not run. Give a "
            f"function of no arguments, as in reset(lambda: f(x))."
        )
    if not isinstance(prompt, Prompt):
        raise ArgumentError(f"reset: expected a Prompt, got {prompt!r}.")
