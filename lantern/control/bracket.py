"""Brackets around the rest of a program: enter, await or leave it."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from functools import partial, wraps
from inspect import isgeneratorfunction
from operator import attrgetter
from types import TracebackType
from typing import Any, ClassVar

from lantern.core.dispatch import first, value_class
from lantern.core.residuals import residual
from lantern.core.unwrap import read_only
from lantern.core.value import Receiver, Rule, Value, base, unwrapped
from lantern.cps import Prompt, delimit, shift
from lantern.cps.delimiter import in_force
from lantern.errors import ArgumentError, MissingRuleError, RuleError
from lantern.rules.arithmetic import positive
from lantern.transforms.arguments import check_function, check_in_force, is_number
from lantern.transforms.reverse import Reverse

__all__ = ["both_ways", "bracket", "early_exit", "with_answer"]

Manager = AbstractContextManager[Any]


def current_level() -> Reverse | None:
    """The innermost reverse-mode derivative that is being taken around the caller."""
    for level in in_force():
        if isinstance(level, Reverse) and level.goes_back:
            return level
    return None


def goes_back_once(level: Reverse) -> bool:
    """Whether each rule of a derivative is resumed once, at the end of its program."""
    begin = level.begin
    return begin is None or not begin.replays


class Moment(Receiver):
    """An entry without a value: a moment of the backward pass, which always comes.

    Args:
        arrive: called when the backward pass comes to it.
        leave: called instead when an exception ends the backward pass before.

    Attributes:
        kept: whether the derivative has let it wait.
    """

    __slots__ = ("arrive", "kept", "leave")
    catches: ClassVar[bool] = True

    def __init__(
        self, arrive: Callable[[], Any], leave: Callable[[BaseException | None], Any]
    ) -> None:
        self.arrive, self.leave, self.kept = arrive, leave, True
        self.suspended = self.left = self.right = self.cotangent = None

    def operands(self) -> tuple[Receiver | None, ...]:
        """Nobody."""
        return ()

    def release(self) -> None:
        """The derivative keeps nothing of what is done here."""
        self.kept = False

    def resume(self, answer: Any) -> Any:
        """Do what is to be done here."""
        self.arrive()
        return answer

    def replay(self) -> None:
        """As ``resume``, for each call of a pullback."""
        self.arrive()

    def throw(self, error: BaseException) -> Any:
        """See an exception pass."""
        self.leave(error)
        raise error

    def close(self) -> None:
        """The pass ends before it comes here."""
        self.leave(None)

    def forget(self) -> None:
        """A pullback has ended before it came here."""
        self.leave(None)


class bracket:  # noqa: N801 (a context manager: used like a verb)
    """Keep a context manager open until the block's backward pass is complete.

    ``with bracket(manager):`` enters the manager, and where a derivative is being taken
    by reverse mode it does not exit at the end of the block: what follows runs, then
    the backward pass, and the manager exits when that has come back to the beginning of
    the block. No value needs to pass through. If nothing is being differentiated, or in
    forward mode alone, or under ``vjp`` (whose pullback may be called many times, or
    never) it exits at the end of the block.

    An exception in the block, or in what follows, is shown to the manager; it cannot be
    suppressed, as there is no value to go on with.

    Args:
        manager: any context manager: a timer, a lock, a span of a log.

    Example:
        >>> import contextlib
        >>> import lantern
        >>> @contextlib.contextmanager
        ... def span(name):
        ...     print("begin", name)
        ...     yield
        ...     print("end", name)
        >>> def f(x):
        ...     with lantern.bracket(span("square")):
        ...         y = x * x
        ...     print("the rest")
        ...     return y + 1.0
        >>> lantern.grad(f)(3.0)
        begin square
        the rest
        end square
        6.0
    """

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.open = self.waits = False

    def __enter__(self) -> Any:
        value = self.manager.__enter__()
        self.open = True
        level = current_level()
        if level is not None and goes_back_once(level):
            moment = Moment(self._exit, self._exit)
            try:
                level.suspend(moment)
            except BaseException as error:
                self._exit(error)
                raise
            self.waits = moment.kept
        return value

    def _exit(self, error: BaseException | None = None) -> None:
        if self.open:
            self.open = False
            _leave(self.manager, error)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None or not self.waits:
            self._exit(error)


class both_ways:  # noqa: N801 (a context manager: used like a verb)
    """Run a block in a context, and its backward pass in such a context as well.

    ``with both_ways(make):`` enters ``make()`` for the block. When a backward pass
    comes to the end of the block, it enters another ``make()``, and exits it at the
    beginning of the block. So a timer measures the block alone, there and back, and a
    policy (a precision, an error state, a log level) holds for its forward and backward
    steps and for nothing else. Each call of a pullback does the same again.

    Args:
        make: returns a new context manager each time it is called.

    Example:
        >>> import numpy as np
        >>> import lantern
        >>> def f(x):
        ...     with lantern.both_ways(lambda: np.errstate(divide="ignore")):
        ...         y = lantern.sqrt(x)  # its slope at 0 divides by 0
        ...     return lantern.sum(y)
        >>> lantern.grad(f)(np.zeros(2))
        array([inf, inf])
    """

    def __init__(self, make: Callable[[], Manager]) -> None:
        if not callable(make):
            raise ArgumentError(
                f"both_ways: expected a function that makes a context manager, got "
                f"{type(make).__name__}. Write both_ways(lambda: ...)."
            )
        self.make = make
        self.level: Reverse | None = None
        self.here: Manager | None = None  # of the block
        self.back: Manager | None = None  # of the backward pass

    def __enter__(self) -> Any:
        self.level = current_level()
        if self.level is not None:
            self.level.suspend(Moment(self._exit, self._exit))
        manager = self.make()
        value = manager.__enter__()
        self.here = manager
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        manager, self.here = self.here, None
        if manager is None:
            return None
        suppressed = manager.__exit__(kind, error, traceback)
        if error is None and self.level is not None:
            self.level.suspend(Moment(self._enter, lambda error: None))
        return suppressed

    def _enter(self) -> None:
        manager = self.make()
        manager.__enter__()
        self.back = manager

    def _exit(self, error: BaseException | None = None) -> None:
        manager, self.back = self.back, None
        if manager is not None:
            _leave(manager, error)


def _leave(manager: Manager, error: BaseException | None) -> None:
    """Exit a context manager, which may look at an exception but not swallow it."""
    if error is None:
        manager.__exit__(None, None, None)
    else:
        manager.__exit__(type(error), error, error.__traceback__)


class _Exit(Prompt):
    """Where a body ends that may be left early."""

    __slots__ = ()
    absent = (
        "early_exit: leave was called when its body was over, or in another thread. "
        "Call it inside of the body, and use early_exit anew for another one."
    )


def early_exit(body: Callable[[Callable[[Any], Any]], Any]) -> Any:
    """Run a body that may end early, with a value, from any depth.

    What was computed before still gets its derivative: the value may depend on it.
    ``finally`` blocks and context managers between run; ``except Exception`` does not
    notice.

    Args:
        body: a function of ``leave``; ``leave(value)`` ends it.

    Returns:
        What the body returns, or the value that it left with.

    Raises:
        NoDelimiterError: by ``leave``, if the body is over, or in another thread.
        EscapedError: the value belongs to a derivative, or a ``vmap``, that the body
            has begun itself, and that is over with it.

    Example:
        >>> import lantern
        >>> def walk(x, leave):
        ...     if x > 100.0:
        ...         leave(x)
        ...     walk(x * x, leave)
        >>> def f(x):
        ...     return lantern.early_exit(lambda leave: walk(x, leave))
        >>> f(2.0), lantern.grad(f)(2.0)  # x**8
        (256.0, 1024.0)
    """
    check_function("early_exit", body)
    prompt = _Exit("early_exit")

    def leave(value: Any = None) -> Any:
        return shift(partial(_abort, value), prompt=prompt)

    z = delimit(lambda: body(leave), [], prompt)
    check_in_force("early_exit", z)
    return z


def _abort(value: Any) -> Generator[Any, Any, Any]:
    """A handler that ends the body: it never yields."""
    return value
    yield


def with_answer(rule: Callable[..., Rule]) -> Callable[..., Any]:
    """Make a generator function an operation that sees what its program came to.

    The rule is written like any other (``lantern.op``). At its ``yield`` it gets a
    pair: the value of the function being differentiated, and the cotangent of what it
    has yielded (zero where nothing came). What it yields may be anything, also what has
    no derivative: a draw, a choice, an index.

    Args:
        rule: a generator function; its positional-only parameters are differentiated.

    Returns:
        An operation, for reverse mode (``grad``, ``value_and_grad``).

    Raises:
        RuleError: if ``rule`` is no generator function or has no operand.
        MissingRuleError: by the operation, under ``vjp`` or ``jvp``, which do not know
            what the whole program comes to.

    Example:
        Whatever the loss does with a draw, this moves its distribution the right way on
        average.

        >>> import lantern
        >>> @lantern.with_answer
        ... def score_function(log_probability, /, draw):
        ...     loss, _ = yield draw
        ...     yield loss
        >>> lantern.grad(lambda p: 10.0 * score_function(lantern.log(p), 3))(0.5)
        60.0

    References:
        Williams (1992); Schulman et al. (2015).
    """
    if not isgeneratorfunction(rule) or not rule.__code__.co_posonlyargcount:
        raise RuleError(
            f"with_answer: {rule!r} is no rule. Write a generator function whose "
            f"differentiated parameters stand before '/'."
        )
    arity = rule.__code__.co_posonlyargcount

    @wraps(rule)
    def operation(*args: Any, **statics: Any) -> Any:
        return _perform(rule, args[:arity], args[arity:], statics)

    return operation


def _perform(rule: Any, operands: Any, args: Any, statics: Any) -> Any:
    """Start such an operation; what it yields is tracked where it can be."""
    operands = [unwrapped(x) for x in operands]
    values = [x for x in operands if isinstance(x, Value)]
    if not values:
        return first(rule(*operands, *args, **statics))
    level = max((x.level for x in values), key=attrgetter("depth"))
    if not isinstance(level, Reverse) or not goes_back_once(level):
        raise MissingRuleError(
            f"{rule.__name__}: it needs the answer of the whole program, which "
            f"{level.name} does not know. Use grad or value_and_grad."
        )
    own = [isinstance(x, Value) and x.level is level for x in operands]
    keep = partial(_kept, level)
    primals = [x.primal if o else keep(x) for x, o in zip(operands, own, strict=True)]
    receivers = [x.receiver if o else None for x, o in zip(operands, own, strict=True)]
    named = {name: keep(x) for name, x in statics.items()}
    started = rule(*primals, *map(keep, args), **named)  # no operation: seen by nobody
    value = first(started)
    answered = Answered(started, tuple(receivers))
    level.suspend(answered)
    if not _is_differentiable(base(value)):
        return value
    cls = value_class(value)
    answered.inside = cls(value, level).receiver  # type: ignore[call-arg]
    passing = positive.rule(value)  # type: ignore[attr-defined]  # by lantern.op
    return cls.emerge(next(passing), level, passing, answered)


def _kept(level: Reverse, x: Any) -> Any:
    """An argument; an array as it is now."""
    return residual(level, x) if hasattr(x, "dtype") else x


def _is_differentiable(value: Any) -> bool:
    """Whether what such a rule yields can have a cotangent; a draw may be a count."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return dtype.kind in "fc"
    return is_number(value) and not isinstance(value, int)


class Answered(Receiver):
    """A rule that waits for the answer of its program, as well as for a cotangent.

    Attributes:
        inside: adds up the cotangent of what the rule has yielded; None if that cannot
            have one.
    """

    __slots__ = ("inside",)

    def __init__(self, rule: Any, operands: tuple[Any, ...]) -> None:
        self.suspended, self.left, self.right = rule, operands, None
        self.cotangent: Any = None
        self.inside: Any = None

    def holds_complex(self) -> bool:
        """False: such rules are written as adjoints."""
        return False

    def accumulate(self, contribution: Any) -> None:
        """Take the cotangent of what the rule has yielded."""
        self.inside.accumulate(contribution)
        self.cotangent = self.inside.cotangent

    def resume(self, answer: Any) -> Any:
        """Run the backward step, with the answer and the cotangent."""
        z_bar = 0.0 if self.cotangent is None else self.cotangent
        self.settle(self.suspended, (answer, read_only(z_bar)), self.left)
        self.release()
        self.inside = self.cotangent = None
        return answer
