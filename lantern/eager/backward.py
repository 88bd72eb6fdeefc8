"""The way back: the suspended rules that received a cotangent, resumed newest first."""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from types import GeneratorType
from typing import Any

from lantern.blocks import between_turns, mutex
from lantern.core.dispatch import kind_of
from lantern.core.error_propagation import Failed
from lantern.cps.worker import getcurrent
from lantern.eager.hooks import hooked, inspectors, settle_between
from lantern.eager.packed import ever, hooks
from lantern.eager.recorder import (
    AMBIENT,
    FREED,
    SECOND_TIME,
    NumpyFace,
    Recorder,
)
from lantern.eager.versions import check_arrays, last_write, rewritten, saved_arrays
from lantern.errors import EagerError, InUseError
from lantern.replaced import restore
from lantern.tensor.accumulate.accumulator import Accumulator
from lantern.tensor.accumulate.deferred_products import DeferredSum
from lantern.tensor.backend.numpy_namespace import buffers

__all__ = [
    "Pass",
    "call_back",
    "check_views",
    "ending",
    "finished",
    "listeners",
    "one_pass",
    "order_of",
    "propagate",
    "reached",
    "under_way",
]


class Pass:
    """One pass that is under way.

    Attributes:
        worker: the greenlet that it runs in.
        retain: whether its rules may be needed again.
        create: whether what hooks compute is tracked.
        leaves: whether what arrives is left in the inputs, or handed to the caller.
        seeds: where it began: pairs of a receiver and its cotangent.
        wanted: the identities of the receivers that matter; None for all.
        asked: the identities of the inputs that were asked for; None for all leaves.
        ends: the identities of inputs at which the pass ends: their hooks and what is
            behind them are another's business.
        whole: whether all that led to the seeds matters, and only leaves are asked for.
        callbacks: what is to be called when it is over; None for nothing.
        began: the last write to an array before.
        saves: the hooks of saved tensors that were in force when it began.
        waiting: the receivers that have received something, and the leaves.
    """

    wanted: Any = None
    asked: Any = None
    ends: Any = ()
    whole = True
    callbacks: Any = None
    waiting: tuple[Any, Any] = ((), ())
    _number = None

    def __init__(self, retain: bool, create: bool, leaves: bool, seeds: Any) -> None:
        self.worker, self.retain, self.create = getcurrent(), retain or create, create
        self.leaves, self.seeds = leaves, seeds
        self.saves, self.began = hooks.get() if ever else None, last_write[0]

    def ask(self, inputs: list[Any], captured: dict[int, Any], within: bool) -> None:
        """Let only what leads to some inputs matter."""
        captured.update((id(x), None) for x in inputs)
        self.asked = captured.keys()
        if within:
            self.ends = self.asked
        known = reached([z for z, _ in self.seeds], self.ends)
        self.wanted = wanted = upstream(known, inputs)
        self.whole = wanted >= known.keys() and not any(map(order_of, inputs))

    def resumes(self, receiver: Any) -> bool:
        """Whether it comes by a receiver, or has just come there."""
        if self.wanted is not None:
            return id(receiver) in self.wanted
        heap, leaves = self.waiting
        roots = [*(z for z, _ in self.seeds), *(z for _, z in heap), *leaves]
        return id(receiver) in reached(roots)

    @property
    def number(self) -> int:
        """One that no other pass has."""
        if self._number is None:
            self._number = next(_numbers)
        return self._number


_numbers = count()
# Threads that share leaves take turns; a rule may start another pass inside its own.
one_pass = mutex()
# The passes, the innermost last.
under_way: list[Pass] = []
# Weakly, who wants to hear of passes: ``begin(roots, heap, nested)`` may put entries
# between the rules, ``end()`` comes when the gradients are where they belong.
listeners: list[Any] = []


def order_of(z: Any) -> int:
    """When a rule was suspended; 0 for a leaf."""
    order: int | None = z.order
    if order is None:  # of another face
        if z.suspended is None:
            raise EagerError(SECOND_TIME)
        order = z.suspended.order
    return order


def reached(roots: Iterable[Any], ends: Any = ()) -> dict[int, Any]:
    """All receivers that some roots come from, by their identities.

    Args:
        roots: receivers.
        ends: the identities of those behind which nothing is looked for.
    """
    found, waiting = {}, list(roots)
    while waiting:
        z = waiting.pop()
        if z is not None and (key := id(z)) not in found:
            found[key] = z
            if key not in ends:
                waiting += z.operands()
    return found


def upstream(known: dict[int, Any], inputs: Iterable[Any]) -> set[int]:
    """The identities of those of some receivers that lead to some inputs."""
    wanted = {id(x) for x in inputs}
    for z in sorted(known.values(), key=order_of):
        if not wanted.isdisjoint(map(id, z.operands())):
            wanted.add(id(z))
    return wanted


@between_turns
def propagate(
    seeds: list[tuple[Any, Any]],
    retain: bool = False,
    create: bool = False,
    inputs: list[Any] | None = None,
    leave: bool = False,
    callbacks: list[Any] | None = None,
    within: bool = False,
) -> dict[Any, Any]:
    """Resume rules newest first, and give what arrived where nothing is resumed.

    Args:
        seeds: pairs of a receiver and its cotangent.
        retain: whether the rules may be needed again.
        create: whether the contributions can be differentiated themselves.
        inputs: the receivers whose cotangents are asked for; by default all leaves.
        leave: whether the caller leaves the cotangents in the inputs.
        callbacks: gets what is to be called when all is where it belongs.
        within: whether the pass ends at the inputs, a part of one around it.

    Returns:
        The cotangents of the inputs, or of all leaves that received one.
    """
    heap: list[Any] = []
    leaves: dict[Any, Any] = {}
    captured: dict[int, Any] = {}
    around = len(under_way)
    aside: list[Any] = []
    this = Pass(retain, create, leave, seeds)
    this.callbacks = callbacks
    if inputs is not None:
        this.ask(inputs, captured, within)
    try:
        if around:
            _set_aside(this, aside)
        under_way.append(this)
        this.waiting = heap, leaves
        for z, seed in seeds:
            if this.wanted is None or id(z) in this.wanted:
                _expect(z, heap, leaves)
                z.accumulate(seed)
        if listeners and inputs is None:
            for listener in present():
                listener.begin([z for z, _ in seeds], heap, bool(around))
        _resume_all(heap, leaves, captured, retain, create, this)
        _arrive(leaves, captured, this)
        return leaves if inputs is None else {x: captured[id(x)] for x in inputs}
    except BaseException as error:
        for z in (*(z for _, z in heap), *leaves):
            _put(z, None)
            if type(getattr(z, "suspended", None)) is Failed:
                z.forget()
        restore(error)
        raise
    finally:
        del under_way[around:]
        if ever and hooks.get() is not this.saves:  # a hook has not left its block
            hooks.set(this.saves)
        for z, received in aside:
            _put(z, *received)


# What is still to be called at the end of passes that have come to it.
ending: list[list[Any]] = []


def call_back(callbacks: list[Any]) -> None:
    """Call what was asked for during a pass; one such function may ask for another."""
    ending.append(callbacks)
    try:
        while callbacks:
            callbacks.pop(0)()
    finally:
        ending.pop()


def present() -> list[Any]:
    """Those who listen."""
    found = [reference() for reference in listeners]
    return [listener for listener in found if listener is not None]


def finished() -> None:
    """Let those who listen know that a pass is over; not of one inside another."""
    if not under_way:
        for listener in present():
            listener.end()


def _resume_all(
    heap: list[Any],
    leaves: dict[Any, Any],
    captured: dict[int, Any],
    retain: bool,
    create: bool,
    this: Pass,
) -> None:
    """Resume all rules that receive something, newest first.

    A rule is younger than its operands: it stays the first of the heap while they come.
    """
    once = not (retain or create or rewritten or inspectors) and this.whole
    while heap:
        z = heap[0][1]
        if z.cotangent is None:
            pass  # those who made it had nothing for it
        elif (
            once
            and type(z.suspended) is GeneratorType  # that of a ``Recorder``
            and z.hooks is None
            and z.order >= last_write[0]
        ):
            left = z.left
            for x in left if type(left) is tuple else (left, z.right):
                if x is None or x.cotangent is not None:
                    continue
                if order := x.order:  # as ``_expect``, in no call
                    heappush(heap, (-order, x))
                elif order is None:
                    _expect(x, heap, leaves)
                else:
                    leaves[x] = None
            z.resume(None)
            if not z.restarts:  # as ``release``, in no call
                z.saved, z.left, z.right = FREED, None, None
        elif id(z) in this.ends:
            captured[id(z)] = _settled(z)
            _put(z, None)
        else:
            z_bar = _settled(z)
            if type(z) is Recorder and z.hooks is not None:
                z.cotangent = hooked(z, z_bar, create)
            if id(z) in captured:
                captured[id(z)] = z.cotangent
            _resume_carefully(z, heap, leaves, retain, create, this)
        heappop(heap)


def _settled(z: Any) -> Any:
    """What has come to a receiver; nothing waits there any longer."""
    return z.settled() if type(z) is Recorder else z.cotangent


def _expect(x: Any, heap: list[Any], leaves: dict[Any, Any]) -> None:
    """Put who may receive something where it will be seen to."""
    order = x.order
    if order is None:
        order = order_of(x)
    if order:
        heappush(heap, (-order, x))
    else:
        leaves[x] = None


def _set_aside(this: Pass, aside: list[Any]) -> None:
    """Note what receivers have received in a pass that this one is inside of.

    A hook, or a rule of the user's, has begun it; the pass around it goes on later.
    """
    if under_way[-1].worker is not getcurrent():
        raise InUseError(
            "backward: another backward pass is under way in this thread, in a "
            "program that is paused. Let that one come to its end first."
        )
    for z in reached([z for z, _ in this.seeds], this.ends).values():
        if z.cotangent is not None:
            received = z.cotangent, getattr(z, "mask", None), getattr(z, "owned", False)
            aside.append((z, received))
            z.cotangent = None


def _put(z: Any, z_bar: Any, mask: Any = None, owned: bool = False) -> None:
    """Let a receiver have received this."""
    z.cotangent = z_bar
    if isinstance(z, Accumulator):
        z.mask, z.owned = mask, owned


def _arrive(leaves: dict[Any, Any], captured: dict[Any, Any], this: Pass) -> None:
    """Let the leaves' hooks see what has come, and note what was asked for.

    What waits at a leaf for which there is neither goes on waiting.
    """
    seen = False
    for z in leaves:
        z_bar, z.cotangent, z.mask = z.cotangent, None, None
        if type(z_bar) is DeferredSum:
            if last_write[0] != this.began:  # a hook has written to something
                check_arrays(this.began, z_bar.arrays())
            if z.hooks is not None or id(z) in captured:
                z_bar = z_bar.settle()
        leaves[z] = z_bar
        if z.hooks is not None:
            seen = True
    if seen or captured:
        for z in leaves:
            hooks = z.hooks is not None and id(z) not in this.ends
            if hooks and leaves[z] is not None:
                leaves[z] = hooked(z, leaves[z], this.create)
            if id(z) in captured:
                captured[id(z)] = leaves[z]


# Rules that save their result, where PyTorch saves operands: if the result has been
# written to, they are started again.
_BY_OPERANDS = frozenset(
    {"abs", "divide", "ieee_divide", "logsigmoid", "memories", "normalised"}
)


def _resume_carefully(
    z: Any,
    heap: list[Any],
    leaves: dict[Any, Any],
    retain: bool,
    create: bool,
    this: Pass,
) -> None:
    """One backward step, in the general way.

    The rule may be needed again, be differentiated itself, or be another face's.
    """
    ours, again, rule = type(z) is Recorder, retain or create, z.suspended
    if type(rule) is Failed and rule.error is not None:
        raise rule.error  # of the step before it, whose rule has no other operands
    operands = z.operands()
    if rewritten:
        check_views(order_of(z), operands)
    if this.wanted is not None:
        operands = tuple([x if id(x) in this.wanted else None for x in operands])
        if not any(operands) and not this.leaves:  # it goes on waiting
            z.cotangent = None
            return
    if not ours:
        again_now = again or _is_rewritten(z, operands)
        rule = _other(z, create) if again_now else rule.started
    elif rule is None or create:
        rule = z.restarted(create, z.cotangent)
    elif z.order < last_write[0]:
        rule = _still_right(z, create)
    while operands and operands[-1] is None:
        operands = operands[:-1]
    for x in operands:
        if x is not None and x.cotangent is None:
            _expect(x, heap, leaves)
    z_bar, z.cotangent = z.cotangent, None
    if ours or not again:
        z.suspended = None  # a pass that begins in the rule finds it started by nobody
    seen = inspectors or getattr(z, "hooks", None)
    if seen and (operands or this.leaves):
        settle_between(z, rule, z_bar, operands, create)
    elif operands:
        z.settle(rule, z_bar, operands)
    if not again:
        z.release()


def _still_right(z: Recorder, create: bool) -> Any:
    """A rule since whose start arrays were written to: the same one, if not to its own.

    Where it has saved its result only, it is started again.
    """
    wants = [i for i, r in enumerate(z.operands(), 1) if r is not None]
    try:
        check_arrays(z.order, saved_arrays(z.suspended, wants[-1]))
    except EagerError:
        if z.function.__name__.strip("_") not in _BY_OPERANDS:
            raise
        return z.restarted(create, z.cotangent)
    return z.suspended


def _is_rewritten(z: Any, operands: Any) -> bool:
    """Whether a rule of several results has saved what was written to since."""
    if order_of(z) >= last_write[0]:
        return False
    try:
        check_arrays(order_of(z), saved_arrays(z.suspended.started, len(operands)))
    except EagerError:
        return True
    return False


def _other(z: Any, create: bool) -> Any:
    """The rule of another face's receiver, afresh."""
    receivers, suspended = z.operands(), z.suspended
    # A program's own function has its results, and says itself what it has saved.
    if suspended.order < last_write[0] and "outputs" not in suspended.statics:
        saved = (x for x in suspended.operands if type(x) in buffers)
        check_arrays(suspended.order, () if kind_of(suspended) == "linear" else saved)

    def replace(i: int, argument: Any) -> Any:
        x = receivers[i] if i < len(receivers) else None
        if not create or x is None:
            return argument
        if isinstance(x, Accumulator):
            return NumpyFace(argument, AMBIENT, x)
        return argument  # several results, of which the rule takes one

    rule = suspended.again(replace)
    next(rule)
    return rule


def check_views(used: int, receivers: Any) -> None:
    """Raise if views were used that were made before their memory was rewritten.

    Args:
        used: when, in the order of rules and writes.
        receivers: of the views, and of what is no view.
    """
    for x in receivers:
        for stamp in rewritten.get(getattr(x, "memory", 0), ()):
            if x.order < stamp < used:
                raise EagerError(
                    "a view of a tensor was used after another tensor with the same "
                    "memory had been modified by an inplace operation, so that its "
                    "derivative is not known. Take the view after the modification."
                )
