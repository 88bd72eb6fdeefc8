"""Programs that stop in the middle, wait for a value from outside, and go on."""

from collections.abc import Callable
from functools import partial
from typing import Any

from lantern.cps import Prompt, reset, shift
from lantern.cps.context import thread_id
from lantern.errors import ArgumentError, ResumptionError

__all__ = ["Program", "pause"]


class _Pauses(Prompt):
    """Where a program ends that can be paused."""

    __slots__ = ()
    absent = (
        "pause: no Program is running here, in this thread. Call it inside of a "
        "function that was given to lantern.Program."
    )


_prompt = _Pauses("pause")


class Program:
    """A program that can be paused anywhere, handed around, and fed from outside.

    It runs at once, up to its first ``pause`` or its end. Then it is an object like any
    other: keep it in a list, feed it when its data are there, feed others in between.
    It may be in the middle of a derivative; then that is taken when it goes on. It
    stays in its thread. A paused program that is dropped is unwound: its ``finally``
    blocks run.

    Args:
        body: a function.
        args: what to call it with.
        kwargs: the same, by name.

    Example:
        >>> import lantern
        >>> def loss(w):
        ...     x = lantern.pause("x, please")
        ...     return (w * x) ** 2
        >>> program = lantern.Program(lantern.grad(loss), 3.0)
        >>> program.request
        'x, please'
        >>> program.resume(2.0)
        >>> program.done, program.result
        (True, 24.0)
    """

    __slots__ = ("_paused", "_result", "_state", "_thread")
    _paused: "_Paused | None"
    _state: str

    def __init__(self, body: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not callable(body):
            raise ArgumentError(
                f"Program: expected a function, got {type(body).__name__}. Write "
                f"Program(f, x), with f not yet called."
            )
        self._result: Any = None
        self._thread = thread_id()
        self._continue(lambda: reset(lambda: body(*args, **kwargs), prompt=_prompt))

    @property
    def done(self) -> bool:
        """Whether the program has come to its end."""
        return self._state == "done"

    @property
    def request(self) -> Any:
        """What ``pause`` was called with; None if the program does not wait."""
        return None if self._paused is None else self._paused.request

    @property
    def result(self) -> Any:
        """What the program has returned.

        Raises:
            ResumptionError: it is not done.
        """
        if not self.done:
            raise ResumptionError(
                f"Program: it is {self._state}, and has no result. Feed it "
                f"with resume(value) until it is done."
            )
        return self._result

    def resume(self, value: Any = None) -> None:
        """Go on with a value, which ``pause`` returns, up to the next pause or the end.

        Raises:
            ResumptionError: the program is over, or it belongs to another thread.
            BaseException: what the program raises; then it is over.
        """
        self._continue(partial(self._take(), value))

    def throw(self, error: BaseException) -> None:
        """Go on with an exception, which ``pause`` raises."""
        self._continue(partial(self._take().throw, error))

    def _take(self) -> Any:
        """The rest of the program, which can be called once."""
        if self._paused is None:
            raise ResumptionError(
                f"Program: it is {self._state}, and waits for nothing. Start another "
                f"one: Program(f, x)."
            )
        if self._thread != thread_id():
            raise ResumptionError(
                "Program: it was started in another thread, and cannot leave it. Feed "
                "it there."
            )
        return self._paused.k

    def _continue(self, go: Callable[[], Any]) -> None:
        """Run up to the next pause or the end."""
        self._paused, self._state = None, "running"
        try:
            outcome = go()
        except BaseException:
            self._state = "over"
            raise
        if isinstance(outcome, _Paused):
            self._paused, self._state = outcome, "waiting"
        else:
            self._result, self._state = outcome, "done"

    def __repr__(self) -> str:
        waits = f" for {self.request!r}" if self._paused else ""
        return f"<Program: {self._state}{waits}>"


class _Paused:
    """A body that waits: what it asked for, and how to go on."""

    __slots__ = ("k", "request")

    def __init__(self, request: Any, k: Any) -> None:
        self.request, self.k = request, k


def pause(request: Any = None) -> Any:
    """Stop the program here, from any depth, until it is fed.

    Args:
        request: for whoever feeds it (``Program.request``).

    Returns:
        What it is fed with.

    Raises:
        NoDelimiterError: no ``Program`` is running here.

    Example:
        >>> import lantern
        >>> program = lantern.Program(lambda: 1 + lantern.pause("a number"))
        >>> program.resume(41)
        >>> program.result
        42
    """
    return shift(lambda k: _Paused(request, k), prompt=_prompt)
