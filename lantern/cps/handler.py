"""Generator handlers, which wait at a delimiter for the rest of its body."""

from collections.abc import Callable, Generator
from typing import Any, ClassVar

from lantern.cps.delimiter import Delimiter
from lantern.errors import AlreadyResumedError, ArgumentError

__all__ = ["GeneratorFunction", "Unwind", "begin", "unwind"]

GeneratorFunction = Callable[[], Generator[Any, Any, Any]]


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
