"""An oracle for shift and reset: a small language, and a machine that evaluates it.

The machine keeps the continuation as a list of frames, so that capturing it is slicing
a list. It shares nothing with the library: no greenlet, no generator, no call stack.

Expressions are tuples:

    ("const", n)           n
    ("log", tag)           writes the tag; 0
    ("add", e, f)          the sum of two expressions
    ("try", e, f)          e, or f where e raises FailureError
    ("finally", e, f)      e, and f afterwards in any case
    ("raise", n)           raises FailureError(n)
    ("reset", kind, p, e)  e up to a delimiter of prompt p, by reset or delimit
    ("shift", p, handler)  p may be None: the nearest delimiter
    ("saved", e)           calls the continuation stored last with e; e if there is none

Handlers are tuples as well: (mode, pre, value, post) with a mode of

    "abort"   pre, and never call k
    "resume"  pre, answer = k(value), then 2 * answer + post
    "catch"   the same, but answer is 1000 where k(value) raises FailureError
    "throw"   pre, answer = k.throw(FailureError(value)), then 2 * answer + post
    "store"   pre, and store k
"""

from dataclasses import dataclass, field
from typing import Any


class FailureError(Exception):
    """What programs raise and catch."""


class MissingError(Exception):
    """No delimiter: stands for NoDelimiterError."""


@dataclass(eq=False)
class Unwinding:
    """The exception that aborts a body."""


@dataclass(eq=False)
class Captured:
    """A one-shot continuation: the frames above a delimiter."""

    frames: list[Any]
    kind: str
    prompt: Any
    spent: bool = False
    stored: bool = False


@dataclass
class Machine:
    """Evaluates one program."""

    trace: list[Any] = field(default_factory=list)
    saved: list[Captured] = field(default_factory=list)
    frames: list[Any] = field(default_factory=list)

    def run(self, program: Any) -> Any:
        """The outcome and the trace of a program; stored continuations are dropped."""
        outcome = self.loop([], "eval", program)
        while self.saved:
            captured = self.saved.pop()
            if not captured.spent:
                captured.stored = False
                self.loop([], "drop", captured)
        return outcome, self.trace

    def loop(self, frames: list[Any], action: str, payload: Any) -> Any:
        """Take steps until no frame is left."""
        self.frames = frames
        if action == "drop":
            action, payload = self.abort(payload, None)
        while True:
            if action == "eval":
                action, payload = self.evaluate(payload)
            elif not self.frames:
                return action, payload if action == "value" else repr(payload)
            elif action == "value":
                action, payload = self.give(self.frames.pop(), payload)
            else:
                action, payload = self.unwind(self.frames.pop(), payload)

    def evaluate(self, e: Any) -> tuple[str, Any]:
        """One step into an expression."""
        push = self.frames.append
        match e:
            case ("const", n):
                return "value", n
            case ("log", tag):
                self.trace.append(tag)
                return "value", 0
            case ("raise", n):
                return "error", FailureError(n)
            case ("reset", kind, prompt, body):
                push(("delimiter", kind, prompt))
                return "eval", body
            case ("shift", prompt, handler):
                return self.shift(prompt, handler)
            case (_, first, *_):
                push(e)
                return "eval", first
        raise AssertionError(e)

    def shift(self, prompt: Any, handler: Any) -> tuple[str, Any]:
        """Slice the frames off, and evaluate the handler in their place."""
        for i in reversed(range(len(self.frames))):
            frame = self.frames[i]
            if frame[0] == "delimiter" and prompt in (None, frame[2]):
                captured = Captured(self.frames[i + 1 :], frame[1], frame[2])
                del self.frames[i + 1 :]
                self.frames.append(("end", captured))
                self.frames.append(("pre", handler, captured))
                return "eval", handler[1]
        return "error", MissingError()

    def reinstate(self, captured: Captured) -> None:
        """Put the frames back, above a fresh delimiter."""
        captured.spent = True
        self.frames.append(("delimiter", captured.kind, captured.prompt))
        self.frames.extend(captured.frames)

    def abort(self, captured: Captured, value: Any) -> tuple[str, Any]:
        """Unwind the captured frames; then the value goes on."""
        unwinding = Unwinding()
        self.frames.append(("aborted", unwinding, value))
        self.reinstate(captured)
        return "error", unwinding

    def give(self, frame: Any, value: Any) -> tuple[str, Any]:
        """Hand a value to the newest frame."""
        push = self.frames.append
        match frame:
            case ("add", _, second):
                push(("plus", value))
                return "eval", second
            case ("plus", first):
                return "value", first + value
            case ("finally", _, last):
                push(("after", "value", value))
                return "eval", last
            case ("after", action, payload):
                return action, payload
            case ("saved", _):
                return self.call_saved(value)
            case ("pre", handler, captured):
                return self.handle(handler, captured, value)
            case ("argument", handler, captured):
                push(("answer", handler))
                self.reinstate(captured)
                if handler[0] == "throw":
                    return "error", FailureError(value)
                return "value", value
            case ("answer", handler):
                push(("plus", 2 * value))
                return "eval", handler[3]
            case ("end", captured):
                kept = captured.stored and captured.kind == "reset"
                if not captured.spent and not kept:
                    return self.abort(captured, value)
                return "value", value
            case ("aborted", _, replacement):
                return "value", replacement
        return "value", value  # try, delimiter

    def handle(self, handler: Any, captured: Captured, value: Any) -> tuple[str, Any]:
        """What a handler does after its first expression."""
        if handler[0] == "store":
            captured.stored = True
            self.saved.append(captured)
        if handler[0] in ("abort", "store"):
            return "value", value
        self.frames.append(("argument", handler, captured))
        return "eval", handler[2]

    def call_saved(self, value: Any) -> tuple[str, Any]:
        """Call the continuation that was stored last."""
        while self.saved:
            captured = self.saved.pop()
            if not captured.spent:
                self.reinstate(captured)
                break
        return "value", value

    def unwind(self, frame: Any, error: Any) -> tuple[str, Any]:
        """Hand an exception to the newest frame."""
        match frame:
            case ("try", _, otherwise) if isinstance(error, FailureError):
                return "eval", otherwise
            case ("answer", handler) if (
                isinstance(error, FailureError) and handler[0] == "catch"
            ):
                return self.give(frame, 1000)
            case ("finally", _, last):
                self.frames.append(("after", "error", error))
                return "eval", last
            case ("aborted", unwinding, value) if error is unwinding:
                return "value", value
            case ("end", captured) if not captured.spent:
                return self.end_by_error(captured, error)
        return "error", error

    def end_by_error(self, captured: Captured, error: Any) -> tuple[str, Any]:
        """A handler raises before it has called k: so does shift, in the body."""
        if not isinstance(error, Unwinding):
            self.reinstate(captured)
        elif not (captured.stored and captured.kind == "reset"):
            self.frames.append(("after", "error", error))
            return self.abort(captured, None)
        return "error", error
