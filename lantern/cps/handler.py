"""Handlers wait in a list for the rest of their body, and are resumed newest first."""

from collections.abc import Callable, Generator
from typing import Any, ClassVar

from lantern.blocks import between_turns
from lantern.cps.patience import resume_collecting
from lantern.cps.prompt import Delimiter, Prompt, innermost
from lantern.errors import AlreadyResumedError, ArgumentError
from lantern.replaced import is_replaced, original

__all__ = ["GeneratorFunction", "Unwind", "begin", "delimit", "run", "unwind"]

GeneratorFunction = Callable[[], Generator[Any, Any, Any]]


def delimit(body: Callable[[], Any], waiting: list[Any], prompt: Prompt) -> Any:
    """Run a body on the current stack, up to a delimiter; return its answer.

    While it runs, entries are appended to a list: by ``shift`` its handlers, by the
    caller whatever else has to wait for the rest of the body. Then they are popped,
    newest first, and each gets the answer of the one before. An entry has:

    - ``resume(answer)``, which returns the answer for the next older entry.
    - ``catches``. If true, an exception goes to ``throw(error)``, which returns an
      answer or raises. If false, ``close()`` is called, and the exception travels on.

    Args:
        body: a function of no arguments.
        waiting: the list. It is empty in the end.
        prompt: names the delimiter.

    Returns:
        The answer of the oldest entry; of the body if there are none.

    Example:
        >>> from lantern.cps import Prompt, delimit, shift
        >>> def handler():
        ...     answer = yield 4
        ...     return answer + 100
        >>> delimit(lambda: 10 * shift(handler), [], Prompt("example"))
        140
    """
    delimiter = Delimiter(prompt, innermost.get(), waiting)
    token = None
    try:
        token = innermost.set(delimiter)
        return run(delimiter, body)
    finally:
        delimiter.live = False
        try:
            innermost.reset(token)  # type: ignore[arg-type]
        except (TypeError, MemoryError):  # an interrupt came first; or try again
            innermost.set(delimiter.outer)
        if delimiter.thresholds is not None:
            resume_collecting(*delimiter.thresholds)


@between_turns
def run(delimiter: Delimiter, body: Callable[[], Any]) -> Any:
    """The answer of a body, after everyone who waits for it has had a turn.

    The list is looked up each time: when the end of a handler is itself captured, this
    loop is a part of what is captured, and goes on with the list of another ``k(...)``.
    """
    try:
        answer = body()
        while delimiter.waiting:
            answer = delimiter.waiting.pop().resume(answer)
        return answer
    except BaseException as error:
        if not delimiter.waiting and not is_replaced(error):
            raise  # as the last line of _recover would
        errors = [error]
    return _recover(delimiter, errors)


@between_turns
def _recover(delimiter: Delimiter, errors: list[BaseException]) -> Any:
    """Offer an exception to those who wait; go on from the first answer.

    It comes in a list, which ``raise`` empties: as a local variable it would be part of
    a cycle with its own traceback.
    """
    while delimiter.waiting:
        entry = delimiter.waiting.pop()
        traceback = errors[0].__traceback__
        try:
            if not entry.catches:
                entry.close()
                continue
            answer = entry.throw(errors[0])
            errors.clear()
            while delimiter.waiting:
                answer = delimiter.waiting.pop().resume(answer)
            return answer
        except BaseException as error:
            if errors == [error]:  # it has only passed through; a million may do so
                error.__traceback__ = traceback
            errors[:] = [error]
    raise original(errors.pop())


class GeneratorHandler:
    """An entry for a generator handler that waits at its ``yield``."""

    __slots__ = ("generator",)
    catches: ClassVar[bool] = True

    def __init__(self, generator: Generator[Any, Any, Any]) -> None:
        self.generator = generator

    def resume(self, answer: Any) -> Any:
        """Make ``yield`` return the answer; return what the handler returns."""
        try:
            self.generator.send(answer)
        except StopIteration as stop:
            return stop.value
        raise self._yielded_again()

    def throw(self, error: BaseException) -> Any:
        """Make ``yield`` raise; return what the handler returns."""
        try:
            self.generator.throw(error)
        except StopIteration as stop:
            return stop.value
        except RuntimeError as raised:
            if raised.__cause__ is not error:
                raise
        else:
            raise self._yielded_again()
        raise error  # a StopIteration, which no generator lets through (PEP 479)

    def _yielded_again(self) -> AlreadyResumedError:
        self.generator.close()
        return AlreadyResumedError(
            f"shift: the handler {self.generator} yielded a second time, but "
            f"continuations are one-shot. Yield once, and return the answer."
        )


class Unwind(BaseException):
    """Raised through a body that will not be resumed, so that it can clean up.

    It is an entry, too, which waits at the delimiter for itself. Should the body
    swallow the exception and return something, that is replaced there.

    Args:
        value: what the handler returned instead of calling ``k``.
    """

    catches: ClassVar[bool] = True

    def __init__(self, value: Any) -> None:
        super().__init__("a handler has returned without calling k")
        self.value = value

    def resume(self, answer: Any) -> Any:
        """Replace the answer of the body."""
        return self.value

    def throw(self, error: BaseException) -> Any:
        """Catch itself, and no other."""
        if error is self:
            return self.value
        raise error


def unwind(delimiter: Delimiter, value: Any) -> Unwind:
    """The exception that takes a body to its delimiter, where the value waits."""
    error = Unwind(value)
    delimiter.waiting.append(error)
    return error


def begin(delimiter: Delimiter, handler: GeneratorFunction) -> Any:
    """The first step of a generator handler: what it yields, ``shift`` returns."""
    try:
        generator = handler()
    except TypeError as error:  # of its arguments: no line of it has run
        raise ArgumentError(
            f"shift: {error}. A generator handler takes no arguments: in it, "
            f"`result = yield value` stands for `result = k(value)`."
        ) from None
    try:
        value = next(generator)
    except StopIteration as stop:
        answer = stop.value
    else:
        delimiter.waiting.append(GeneratorHandler(generator))
        return value
    raise unwind(delimiter, answer)
