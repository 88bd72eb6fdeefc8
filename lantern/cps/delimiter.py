"""Delimiters: a body runs up to one, then those who wait there, newest first."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lantern.blocks import between_turns
from lantern.cps.context import Scope, thread_id
from lantern.cps.patience import Thresholds, resume_collecting
from lantern.cps.prompt import Prompt, innermost
from lantern.errors import ArgumentError, NoDelimiterError
from lantern.replaced import is_replaced, original

if TYPE_CHECKING:
    from lantern.cps.worker import Waiter

__all__ = ["Delimiter", "delimit", "in_force", "nearest", "run"]


class Delimiter:
    """A delimiter in force: what ``innermost`` holds.

    It knows who waits for its body, never the greenlet that its body runs in: nothing
    that is suspended may reach itself (see ``wait``).

    Args:
        prompt: its name.
        outer: the next delimiter further out.
        waiting: the entries that wait for the answer of the rest, newest last.
        scope: the context variables of a body that has a greenlet of its own; None for
            a body on its caller's stack, which cannot be moved elsewhere.

    Attributes:
        thread: where it is in force.
        depth: how many bodies with greenlets are nested here.
        live: False while the body is paused, and when it is over.
        caller: who waits for the final answer.
        origin: whom a record stands in for, if that is a body in place; else None.
        thresholds: the collector's own, and those in force while it waits for this
            body (``patience``).
    """

    __slots__ = (
        "caller",
        "depth",
        "live",
        "origin",
        "outer",
        "prompt",
        "scope",
        "thread",
        "thresholds",
        "waiting",
    )

    def __init__(
        self,
        prompt: Prompt,
        outer: "Delimiter | None",
        waiting: list[Any],
        scope: Scope | None = None,
    ) -> None:
        self.prompt = prompt
        self.outer = outer
        self.waiting = waiting
        self.scope = scope
        self.thread = thread_id()
        self.depth: int = 0 if outer is None else outer.depth
        self.live = True
        self.caller: Waiter | None = None
        self.origin: Delimiter | None = None
        self.thresholds: tuple[Thresholds, Thresholds] | None = None

    @property
    def movable(self) -> bool:
        """Whether the body can be paused, and go on elsewhere."""
        return self.scope is not None

    def enter(self, outer: "Delimiter | None") -> None:
        """Come into force, for a movable body, inside another delimiter."""
        self.outer = outer
        self.depth = 1 if outer is None else outer.depth + 1
        self.live = True

    def stand_in(self) -> "Delimiter":
        """A record for a handler to run under while the body is suspended.

        Whoever waits for a movable body now waits for the handler. The list of a body
        in place is its caller's, and stays.
        """
        record = Delimiter(self.prompt, self.outer, self.waiting, self.scope)
        record.depth = self.depth
        if self.movable:
            record.caller, self.caller = self.caller, None
            self.waiting, self.live = [], False
        else:
            record.origin = self.origin or self
        return record


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


def nearest(prompt: Prompt | None) -> Delimiter:
    """The innermost live delimiter; with a prompt, the innermost of that prompt."""
    delimiter, thread = innermost.get(), thread_id()
    while delimiter is not None:
        named = prompt is None or delimiter.prompt is prompt
        if named and delimiter.live and delimiter.thread == thread:
            return delimiter
        delimiter = delimiter.outer
    if not isinstance(prompt, Prompt | None):
        raise ArgumentError(f"shift: prompt must be a Prompt, got {prompt!r}.")
    if prompt is not None and prompt.absent is not None:
        raise NoDelimiterError(prompt.absent)
    raise NoDelimiterError(
        f"shift: called where no delimiter {'' if prompt is None else f'of {prompt} '}"
        "encloses it. Call it inside the body of a reset, in the same thread."
    )


def in_force() -> Iterator[Prompt]:
    """The prompts of the delimiters around the caller, innermost first.

    Also of those that a thread or task has inherited with its context variables.
    """
    delimiter = innermost.get()
    while delimiter is not None:
        if delimiter.live:
            yield delimiter.prompt
        delimiter = delimiter.outer
