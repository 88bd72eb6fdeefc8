"""Prompts name delimiters. One context variable, the only ambient thing, finds them."""

from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

from lantern.cps.context import Scope, thread_id
from lantern.errors import ArgumentError, NoDelimiterError

if TYPE_CHECKING:
    from lantern.cps.patience import Thresholds
    from lantern.cps.worker import Waiter

__all__ = ["Delimiter", "Prompt", "in_force", "innermost", "nearest"]

_DRIVERS = ("in place", "switching")


class Prompt:
    """A name for delimiters, by which nested ones are told apart.

    It holds no state of any run: one prompt serves many threads and many nestings.

    Args:
        name: for messages.
        driver: where the first step of a generator handler runs: "in place", as an
            ordinary call; or "switching", in another greenlet while the body is
            suspended in its own. Results are the same.

    Example:
        >>> from lantern.cps import Prompt, reset, shift
        >>> outer = Prompt("outer")
        >>> reset(lambda: 1 + reset(lambda: 2 + shift(lambda k: 10 * k(3))))
        51
        >>> reset(
        ...     lambda: 1 + reset(lambda: 2 + shift(lambda k: 10 * k(3), prompt=outer)),
        ...     prompt=outer,
        ... )
        60
    """

    __slots__ = ("driver", "name")
    absent: ClassVar[str | None] = None  # what ``shift`` says where no delimiter is

    def __init__(self, name: str | None = None, *, driver: str = "in place") -> None:
        if driver not in _DRIVERS:
            raise ArgumentError(
                f"Prompt: driver is {driver!r}. Take one of {_DRIVERS}."
            )
        self.name = name
        self.driver = driver

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        return f"<{type(self).__name__} {name}{self.driver}>"


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


innermost: ContextVar[Delimiter | None] = ContextVar("lantern.innermost", default=None)


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
