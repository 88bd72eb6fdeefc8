"""Derivatives that look at every operation: only while a ``debug`` block is open.

Nothing here is asked for otherwise. A block that opens replaces the initialisers of the
two kinds of derivative, and the last one that closes puts them back; a derivative that
is begun in the block's context then becomes one of the classes below.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from lantern.blocks import mutex
from lantern.core.residuals import Mutable
from lantern.core.value import Level, Receiver, escaped
from lantern.debugging.checked_rule import Checked, Report, Settings
from lantern.debugging.source_line import Shown
from lantern.transforms.forward import Forward
from lantern.transforms.reverse import Reverse

__all__ = ["debug"]

_report: "ContextVar[Report | None]" = ContextVar("lantern.debug", default=None)
_lock = mutex()
_initialisers: dict[type[Level], Callable[..., None]] = {}  # while blocks are open
_blocks: WeakSet[Report] = WeakSet()


class Inspection:
    """The ``suspend`` of a derivative that is looked at."""

    __slots__ = ("inner",)

    def __init__(self, inner: Callable[[Receiver], object]) -> None:
        self.inner = inner

    def __call__(self, receiver: Receiver) -> None:
        """Look at a new value; then do with it what the derivative does."""
        if isinstance(receiver.suspended, Checked):
            receiver.suspended.has_waited(receiver)
        self.inner(receiver)


_begin: Any = Level.__dict__["begin"]
_suspend: Any = Level.__dict__["suspend"]


class Looking(Level):
    """What a derivative becomes that is looked at: the same, with other eyes."""

    __slots__ = ()

    @property
    def begin(self) -> Any:
        """How a rule is started."""
        return _begin.__get__(self)

    @begin.setter
    def begin(self, value: Any) -> None:
        """Keep looking, and keep what this way of starting would keep."""
        if isinstance(value, Settings):
            _begin.__set__(self, value)
        elif value is not None:
            settings = self.begin
            settings.shows = issubclass(value, Shown)
            settings.replays = value.replays

    @property
    def suspend(self) -> Any:
        """What is done with a new value."""
        return _suspend.__get__(self)

    @suspend.setter
    def suspend(self, value: Any) -> None:
        """Look first; then do this. At the end let go of what was saved.

        Unless there is a pullback, which may still need it.
        """
        if value is escaped and not self.begin.replays:
            self.begin.release()
        if not isinstance(value, Inspection):
            value = Inspection(value)
        _suspend.__set__(self, value)

    def keep(self, mutable: Mutable, x: Any) -> Any:
        """As its class keeps it; remember the original, to freeze it as well."""
        self.begin.constants.append(x)
        return super().keep(mutable, x)


_kinds: dict[type[Level], Any] = {}


def _looking(kind: type[Level]) -> Any:
    """The class of a derivative that is looked at, made when it is first needed."""
    if kind not in _kinds:
        name = f"Looking{kind.__name__}"
        _kinds[kind] = type(name, (Looking, kind), {"__slots__": ()})
    return _kinds[kind]


def _look(level: Level, report: Report) -> None:
    """Make a derivative that has just been begun one that is looked at."""
    begin, suspend = level.begin, level.suspend
    level.__class__ = _looking(type(level))
    settings = Settings(report, saves=isinstance(level, Reverse))
    report.settings.append(settings)
    level.begin = settings  # type: ignore[assignment]  # started as the class is
    level.begin, level.suspend = begin, suspend


def _initialiser(kind: type[Level]) -> Callable[..., None]:
    plain = _initialisers[kind]

    def initialise(self: Level, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        report = _report.get()
        if report is not None:
            _look(self, report)

    return initialise


def _open(report: Report) -> None:
    with _lock:
        _blocks.add(report)
        if not _initialisers:
            for kind in (Reverse, Forward):
                _initialisers[kind] = kind.__init__
                type.__setattr__(kind, "__init__", _initialiser(kind))


def _close(report: Report) -> None:
    with _lock:
        _blocks.discard(report)
        if not _blocks:
            for kind, plain in _initialisers.items():
                type.__setattr__(kind, "__init__", plain)
            _initialisers.clear()


@contextmanager
def _block(report: Report) -> Iterator[None]:
    """Have a report filled; whatever interrupts this, the next derivative is right."""
    token = _report.set(report)
    try:
        _open(report)
        yield
    finally:
        try:
            _close(report)
        finally:
            _report.reset(token)
            report.end()


@contextmanager
def debug(
    *,
    nan: str = "raise",
    inf: str = "raise",
    dtype: str = "warn",
    shape: str = "warn",
    freeze: bool = True,
) -> Iterator[Report]:
    """A block in which every operation of every derivative is looked at.

    It names the operation, and the user's line, where something first appeared, on the
    way there or on the way back: a nan or an infinity out of finite operands; a result
    of another floating-point type than all arrays that it is differentiated in, or a
    contribution of another than its cotangent and its operand; a result that
    broadcasting made larger than both operands, or a contribution of a rule of the
    user's that has to be broadcast to its operand. An exception on the way back gets
    notes: the operations through which its cotangent came, with their lines. Arrays
    that are saved for the way back become read-only until the derivative is over, so
    that a write raises at the line of the writer. Outside of it nothing costs anything.

    Args:
        nan, inf, dtype, shape: what to do: "raise", "warn" or "ignore".
        freeze: whether saved arrays become read-only. For a pullback they stay so
            until the block is closed.

    Returns:
        What the block is bound to: a report, whose ``findings`` list what was found.

    Raises:
        AnomalyError: at a finding that is to be raised.

    Example:
        >>> import lantern
        >>> import numpy as np
        >>> with debug(inf="ignore"), np.errstate(all="ignore"):
        ...     lantern.grad(lambda x: lantern.sum(np.sqrt(x) * 0.0))(np.zeros(2))
        Traceback (most recent call last):
            ...
        lantern.errors.AnomalyError: debug: the backward step of sqrt gave nan, at ...
        >>> w = np.ones(2)
        >>> def loss(x):
        ...     y = x * w
        ...     w[0] = 5.0
        ...     return lantern.sum(y)
        >>> with debug():
        ...     lantern.grad(loss)(np.ones(2))
        Traceback (most recent call last):
            ...
        ValueError: assignment destination is read-only
    """
    actions = {"nan": nan, "inf": inf, "dtype": dtype, "shape": shape}
    report = Report(actions, freeze)
    with _block(report):
        yield report
