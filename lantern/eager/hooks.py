"""What a program has asked to be called around a backward step, and in which order.

All of it lies in the table ``hooks`` of a receiver. Plain functions see the cotangent
of a value; the classes here are for what comes before, behind or after the step.
"""

from collections.abc import Sequence
from typing import Any

from lantern.blocks import Setting, between_turns
from lantern.core.contribution import Masked
from lantern.core.value import Value
from lantern.eager.grad_mode import grad_mode
from lantern.eager.recorder import AMBIENT, NumpyFace
from lantern.tensor.accumulate.accumulator import Accumulator
from lantern.tensor.backend.numpy_namespace import buffers

__all__ = [
    "RETAIN",
    "After",
    "Afterwards",
    "Before",
    "Notes",
    "Recording",
    "called_after",
    "called_before",
    "hooked",
    "inspectors",
    "of_kind",
    "settle_between",
]

# The hook of a value that is no leaf, and keeps its gradient all the same.
RETAIN = object()


class _Around:
    """A hook that is not of the cotangent of one value.

    Args:
        call: what is called.
    """

    __slots__ = ("call",)

    def __init__(self, call: Any) -> None:
        self.call = call


class Before(_Around):
    """Of a rule: called with its cotangents, just before it is resumed."""

    __slots__ = ()


class After(_Around):
    """Of a rule: called with what it hands on and its cotangents, once it is over."""

    __slots__ = ()


class Afterwards(_Around):
    """Of a leaf: called once its gradient is where it belongs."""

    __slots__ = ()


class Notes(dict[Any, Any]):
    """What a program has written down beside a rule; nothing is called."""


_OTHERS = frozenset({Before, After, Afterwards, Notes})


# Functions of a receiver and what its rule hands on, which are called at each step.
inspectors: list[Any] = []


class Recording(Setting):
    """A block for hooks: what they compute is tracked if the pass itself is."""

    __slots__ = ()

    def __init__(self, create: bool) -> None:
        super().__init__(grad_mode, create)

    def within(self, before: bool | int) -> bool | int:
        """The mode in the block, in the form of the one around it."""
        return type(before)(self.value)


def of_kind(z: Any, kind: Any) -> list[Any]:
    """The hooks of one class, in their order."""
    hooks = getattr(z, "hooks", None)
    return [h for h in hooks.values() if type(h) is kind] if hooks else []


@between_turns
def hooked(z: Any, z_bar: Any, create: bool) -> Any:
    """The cotangent, as the hooks of the value leave it."""
    retained = False
    with Recording(create):
        for hook in list(z.hooks.values()):
            if hook is RETAIN:
                retained = True
            elif type(hook) not in _OTHERS:
                replaced = hook(z_bar)
                if replaced is not None:
                    z_bar, z.owned = replaced, False
    if retained:
        _retain(z, z_bar)
    return z_bar


def _retain(z: Any, z_bar: Any) -> None:
    """Add to the gradient of what is no leaf, after all other hooks."""
    total = z.grad
    if isinstance(total, Value):
        tracked = total.level is AMBIENT
        total = NumpyFace(*_parts(total)) if tracked else total.primal
    if total is not None:
        z.grad = total + z_bar
    else:  # a copy: what a sum hands on cannot be written to
        z.grad = z_bar.copy() if type(z_bar) in buffers else z_bar


def _parts(x: Any) -> Any:
    return x.primal, x.level, x.receiver


def called_before(z: Any, z_bar: Any, create: bool) -> Any:
    """A rule's cotangents, as what is called before it leaves them."""
    with Recording(create):
        for hook in of_kind(z, Before):
            z_bar = hook.call(z_bar)
    return z_bar


def called_after(z: Any, found: list[Any], z_bar: Any, create: bool) -> list[Any]:
    """What a rule hands on, as what is called after it leaves that."""
    with Recording(create):
        for hook in of_kind(z, After):
            found = hook.call(found, z_bar)
    return found


def settle_between(
    z: Any, rule: Any, z_bar: Any, operands: Sequence[Any], create: bool
) -> None:
    """The backward step of a rule, before and after which something is called.

    What it hands on is collected first, so that it can be seen and replaced as a whole.
    """
    z_bar = called_before(z, z_bar, create)
    if not inspectors and not of_kind(z, After):
        if operands:
            z.settle(rule, z_bar, operands)
        return
    waiting = [
        Accumulator().prepare(x.shape, x.dtype) if isinstance(x, Accumulator) else x
        for x in operands
    ]
    if operands:
        z.settle(rule, z_bar, waiting)
    rest = [None] * (len(z.operands()) - len(operands))
    found = [w.cotangent if isinstance(w, Accumulator) else None for w in waiting]
    for inspect in inspectors:
        inspect(z, found)
    replaced = called_after(z, [*found, *rest], z_bar, create)
    for x, w, x_bar, new in zip(operands, waiting, found, replaced, strict=False):
        if new is None or not isinstance(x, Accumulator):
            continue
        mask = w.mask if new is x_bar else None
        x.accumulate(new if mask is None else Masked(mask, new))
