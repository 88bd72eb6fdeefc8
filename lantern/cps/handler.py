"""Whoever waits for the rest of a body waits in a list, and is resumed newest first."""

from collections.abc import Callable, Generator
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from typing import Any, ClassVar

from lantern.cps.prompt import Delimiter, Prompt, Waiting, innermost
from lantern.errors import AlreadyResumedError, ArgumentError

__all__ = ["Unwind", "begin", "delimit", "has_yield", "run", "unwind"]

GeneratorFunction = Callable[[], Generator[Any, Any, Any]]


def delimit(body: Callable[[], Any], waiting: list[Any], prompt: Prompt) -> Any:
    """Run a body on the current stack, up to a delimiter; return its answer.

    When the body has returned, whatever waits is resumed, newest first, each entry
    with the answer of the one before.

    Args:
        body: a function of no arguments.
        waiting: a list of the caller's. The body may append entries (``Waiting``) of
            its own; ``shift`` appends its handlers here as well.
        prompt: names the delimiter.

    Returns:
        The answer of the oldest entry, or of the body if nothing waits.

    Raises:
        BaseException: what the body or an entry raised and no entry caught. All
            others are closed by then, newest first.

    Example:
        >>> def handler():
        ...     answer = yield 4
        ...     return answer + 100
        >>> delimit(lambda: 10 * shift(handler), [], Prompt("example"))
        140
    """
    outer = innermost.get()
    delimiter = Delimiter(prompt, outer, waiting)
    token = innermost.set(delimiter)
    try:
        return run(delimiter, body)
    finally:
        delimiter.live = False
        innermost.reset(token)


def run(delimiter: Delimiter, body: Callable[[], Any]) -> Any:
    """The answer of a body, after everyone who waits for it has had their turn.

    The list is looked up afresh each time: where a handler captures the rest of
    another handler, this loop is part of that rest, and may find a new list.
    """
    try:
        answer = body()
        while delimiter.waiting:
            answer = delimiter.waiting.pop().resume(answer)
        return answer
    except BaseException as raised:
        if not delimiter.waiting:
            raise
        error = raised
    try:
        return _recover(delimiter, error)
    finally:
        del error


def _recover(delimiter: Delimiter, error: BaseException) -> Any:
    """Offer an exception to those who wait, newest first; go on from an answer."""
    while delimiter.waiting:
        entry: Waiting = delimiter.waiting.pop()
        traceback = error.__traceback__
        try:
            if not entry.catches:
                entry.close()
                continue
            answer = entry.throw(error)
            while delimiter.waiting:
                answer = delimiter.waiting.pop().resume(answer)
            return answer
        except BaseException as raised:
            if raised is error:  # it only passed through: a million may do that
                raised.__traceback__ = traceback
            error = raised
    try:
        raise error
    finally:
        del error


class GeneratorHandler:
    """A generator handler that waits at its ``yield``."""

    __slots__ = ("generator",)
    catches: ClassVar[bool] = True

    def __init__(self, generator: Generator[Any, Any, Any]) -> None:
        self.generator = generator

    def resume(self, answer: Any) -> Any:
        """Give the answer to the ``yield``; return what the handler returns."""
        try:
            self.generator.send(answer)
        except StopIteration as stop:
            return stop.value
        raise self._yielded_again()

    def throw(self, error: BaseException) -> Any:
        """Raise at the ``yield``; return what the handler returns."""
        try:
            self.generator.throw(error)
        except StopIteration as stop:
            return stop.value
        except RuntimeError as raised:
            if raised.__cause__ is not error:
                raise
        else:
            raise self._yielded_again()
        raise error  # a StopIteration, which a generator may not let through (PEP 479)

    def close(self) -> None:
        """Run what the handler has in ``finally``."""
        self.generator.close()

    def _yielded_again(self) -> AlreadyResumedError:
        name = self.generator.__qualname__
        self.generator.close()
        return AlreadyResumedError(
            f"shift: the handler {name} yielded a second time, but continuations are "
            f"one-shot. Yield once, and return the answer."
        )


class Unwind(BaseException):
    """Raised through a body that will not be resumed, so that it can clean up."""

    def __init__(self, abort: "Abort") -> None:
        super().__init__("this body was aborted by a handler that did not call k")
        self.abort = abort


class Abort:
    """The value of a handler that never resumed the body, waiting in its place.

    It is the newest entry while ``Unwind`` travels through the body. Whatever answer
    the body then makes up, swallowing that exception, is replaced here.
    """

    __slots__ = ("value",)
    catches: ClassVar[bool] = True

    def __init__(self, value: Any) -> None:
        self.value = value

    def resume(self, answer: Any) -> Any:
        """Replace the answer."""
        return self.value

    def throw(self, error: BaseException) -> Any:
        """Catch the exception that was raised for this abort, and no other."""
        if isinstance(error, Unwind) and error.abort is self:
            return self.value
        raise error

    def close(self) -> None:
        """Nothing to clean up."""


def unwind(delimiter: Delimiter, value: Any) -> Unwind:
    """The exception that takes a body to its delimiter; the value waits there."""
    abort = Abort(value)
    delimiter.waiting.append(abort)
    return Unwind(abort)


def begin(delimiter: Delimiter, handler: GeneratorFunction) -> Any:
    """The first step of a generator handler: what it yields is what shift returns."""
    try:
        generator = handler()
    except TypeError as error:  # only from binding arguments: no code has run yet
        raise ArgumentError(
            f"shift: {error}. A generator handler takes no arguments: "
            f"`result = yield value` is its `result = k(value)`."
        ) from None
    try:
        value = next(generator)
    except StopIteration as stop:
        answer = stop.value
    else:
        delimiter.waiting.append(GeneratorHandler(generator))
        return value
    raise unwind(delimiter, answer)


def has_yield(where: str, function: Any) -> bool:
    """Whether a call would make a generator; refuse what is no plain function.

    Looks through ``functools.partial`` and at the ``__call__`` of an object.
    """
    try:
        flags = function.__code__.co_flags
    except AttributeError:
        flags = _flags(where, function)
    if flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        raise ArgumentError(
            f"{where}: {function!r} is asynchronous. Give a plain function; "
            f"it may run an event loop of its own."
        )
    return bool(flags & CO_GENERATOR)


def _flags(where: str, function: Any) -> int:
    if not callable(function):
        raise ArgumentError(
            f"{where}: expected a function, got {function!r}. "
            f"Write {where}(lambda: ...)."
        )
    while isinstance(function, partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(
        type(function).__call__, "__code__", None
    )
    return getattr(code, "co_flags", 0)
