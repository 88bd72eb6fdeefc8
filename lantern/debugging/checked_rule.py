"""A started rule whose every step is looked at, and the report of what was found."""

import warnings
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any, NamedTuple

from lantern.core.dispatch import kind_of
from lantern.core.operation import operation_of
from lantern.core.tree import tree_leaves
from lantern.core.unwrap import read_only
from lantern.core.value import Receiver, Replayable, Value, base
from lantern.debugging.anomaly import (
    Finding,
    new_dtype,
    new_infinity,
    new_shape,
    unusual,
    wrong_dtype,
    wrong_shape,
)
from lantern.debugging.freeze import Freezer
from lantern.debugging.source_line import Line, Watched, user_line
from lantern.errors import AnomalyError, ArgumentError

__all__ = ["Checked", "Report", "Settings"]

_ADVICE = {
    "nan": "Its operands had none. Guard the operation, or debug(nan='ignore').",
    "inf": "Its operands were finite. Guard the operation, or debug(inf='ignore').",
    "dtype": "Convert the other operand first, or debug(dtype='ignore').",
    "shape": "Reshape it if that was not meant, or debug(shape='ignore').",
}
_ACTIONS = ("raise", "warn", "ignore")
_LINKS_TOLD = 8
_freezer = Freezer()


class Report:
    """What a debug block does, and what it has found.

    Attributes:
        findings: in the order of their appearance, each line once.
    """

    def __init__(self, actions: dict[str, str], freeze: bool) -> None:
        for kind, action in actions.items():
            if action not in _ACTIONS:
                raise ArgumentError(
                    f"debug: {kind}={action!r}. Take one of {_ACTIONS}."
                )
        self.actions, self.freeze = actions, freeze
        self.findings: list[Finding] = []
        self.settings: list[Settings] = []

    def tell(self, finding: Finding) -> None:
        """Do with a finding what the user has asked for."""
        action = self.actions[finding.kind]
        if action == "ignore" or finding in self.findings:
            return
        self.findings.append(finding)
        told = f"{finding}. {_ADVICE[finding.kind]}"
        if action == "raise":
            raise AnomalyError(told)
        warnings.warn_explicit(
            told, UserWarning, finding.line.file, finding.line.number
        )

    def end(self) -> None:
        """The block is closed: what is frozen becomes writable again."""
        self.freeze = False
        for settings in self.settings:
            settings.release()
        self.settings.clear()

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "debug: nothing was found"


class Settings:
    """How one derivative begins its rules while it is looked at.

    Attributes:
        report: of the block.
        saves: whether rules wait, and what they have saved must stay as it is.
        replays: whether rules are needed more than once.
        shows: whether results are kept to be looked at.
        held: what this derivative has frozen.
        constants: those of the next operation, before they are copied.
    """

    __slots__ = ("constants", "held", "replays", "report", "saves", "shows")

    def __init__(self, report: Report, saves: bool) -> None:
        self.report, self.saves = report, saves
        self.replays = self.shows = False
        self.held: set[int] = set()
        self.constants: list[Any] = []

    def __call__(self, rule: Any, operands: Any, statics: Any) -> "Checked":
        """A rule about to run."""
        return Checked(self, rule, operands, statics)

    def hold(self, saved: list[Any]) -> None:
        """Freeze what a rule has saved, and the constants of which it is a copy."""
        constants, self.constants = self.constants, []
        kept = {_bytes(x) for x in saved} - {None}
        for x in (*saved, *(c for c in constants if _bytes(c) in kept)):
            _freezer.hold(x, self, self.held)

    def release(self) -> None:
        """Let go of what this derivative has frozen."""
        for key in list(self.held):
            _freezer.release(key, self)
        self.held.clear()


def _saved(started: Any) -> Iterator[Any]:
    """What a suspended rule keeps, also in a rule of the user's that it runs."""
    for x in tree_leaves(list(started.gi_frame.f_locals.values())):
        if isinstance(x, GeneratorType) and x.gi_frame is not None:
            yield from _saved(x)
        else:
            yield x


def _bytes(x: Any) -> Any:
    """What tells whether an array is a copy of another."""
    if isinstance(x, Value) or not hasattr(type(x), "tobytes"):
        return None
    return x.shape, x.dtype.str, x.tobytes()


class Link(NamedTuple):
    """An operation through which a cotangent has come."""

    operation: str
    line: Line
    sender: "Link | None"


class Checked(Watched):
    """A started rule whose every step is looked at.

    Attributes:
        settings: what to look for.
        before: whether there were nans, and infinities, in the forward step already.
        waiter: who waits for the cotangent.
        receivers: who receives the contributions.
        sent: how many of them have been made.
        sender: the operation that has contributed to the cotangent last.
    """

    __slots__ = ("before", "receivers", "sender", "sent", "settings", "waiter")

    waiter: Receiver | None
    receivers: tuple[Receiver | None, ...]

    def __init__(self, settings: Settings, *started: Any) -> None:
        super().__init__(*started)
        self.settings, self.contributions = settings, None
        self.before: tuple[bool, bool] | None = None
        self.sender: Link | None = None
        self.waiter, self.receivers, self.sent = None, (), 0

    @property
    def is_users(self) -> bool:
        """Whether the rule was written outside of the library."""
        return not operation_of(self.rule).own

    def __next__(self) -> Any:
        """The rule's forward step, looked at when it is made for the first time."""
        value = Replayable.__next__(self)
        if self.before is None:
            self.line = user_line()
            self._look_at_forward_step(value)
        return value

    def _look_at_forward_step(self, value: Any) -> None:
        operands = list(self.operands)
        found, earlier = unusual(value), unusual(operands)
        self.before = found[0] or earlier[0], found[1] or earlier[1]
        kind = new_infinity(found, earlier)
        if kind is not None:
            self._tell(kind, "forward", f"gave {kind}")
        if kind_of(self) == "elementwise":
            detail = new_shape(value, operands)
            if detail is not None:
                self._tell("shape", "forward", detail)
        if self.settings.saves and self.settings.report.freeze:
            self.settings.hold([base(x) for x in _saved(self.started)])

    def has_waited(self, receiver: Receiver) -> None:
        """The rule now waits for the cotangent that a receiver gets."""
        self.waiter, self.receivers = receiver, receiver.operands()
        detail = new_dtype(receiver, self.receivers)
        if detail is not None and self.name != "astype":
            self._tell("dtype", "forward", detail)
        if self.settings.saves and not self.settings.replays:
            self.operands, self.statics = (), {}
            if not self.settings.shows:
                self.value = None

    def again(self, replace: Any = None) -> Any:
        """The rule afresh, looked at in another backward pass as in the first one."""
        if replace is not None:
            return super().again(replace)
        fresh = Checked(self.settings, self.rule, self.operands, self.statics)
        fresh.line, fresh.before, fresh.sender = self.line, self.before, self.sender
        fresh.waiter, fresh.receivers = self.waiter, self.receivers
        return fresh

    def send(self, z_bar: Any) -> Any:
        """The rule's next contribution."""
        place, self.sent = self.sent, self.sent + 1
        if self.settings.report.freeze:
            z_bar = read_only(z_bar)
        receiver = self.receivers[place] if place < len(self.receivers) else None
        return self._look_at(lambda: super(Checked, self).send(z_bar), z_bar, receiver)

    def _look_at(
        self, contribute: Callable[[], Any], z_bar: Any, receiver: Receiver | None
    ) -> Any:
        try:
            x_bar = contribute()
        except StopIteration:
            raise
        except Exception as error:
            self._explain(error)
            raise
        if callable(x_bar):
            return lambda: self._look_at(x_bar, z_bar, receiver)
        rule = getattr(receiver, "suspended", None)
        if isinstance(rule, Checked):
            rule.sender = Link(self.name, self.line, self.sender)
        phase = "backward" if self.settings.saves else "forward-mode"
        found = unusual(x_bar, getattr(self.waiter, "mask", None))
        kind = new_infinity(found, unusual(z_bar), self.before or (False, False))
        if kind is not None:
            self._tell(kind, phase, f"gave {kind}")
        if not self.settings.saves:
            return x_bar
        detail = wrong_dtype(x_bar, z_bar, receiver)
        if detail is not None and self.name != "astype":
            self._tell("dtype", phase, detail)
        if self.is_users:
            detail = wrong_shape(x_bar, z_bar, receiver, kind_of(self))
            if detail is not None:
                self._tell("shape", phase, detail)
        return x_bar

    def _tell(self, kind: str, phase: str, detail: str) -> None:
        self.settings.report.tell(Finding(kind, phase, self.name, self.line, detail))

    def _explain(self, error: Exception) -> None:
        """Add to an exception the operations through which the backward pass came."""
        error.add_note(f"in the backward step of {self.name}, at {self.line}")
        link, told = self.sender, 0
        while link is not None and told < _LINKS_TOLD:
            error.add_note(f"its cotangent came from {link.operation}, at {link.line}")
            link, told = link.sender, told + 1
        if link is not None:
            error.add_note("and so on, to the result")

    def close(self) -> None:
        """Drop the started rule."""
        super().close()
        self.waiter, self.receivers = None, ()
