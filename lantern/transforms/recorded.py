"""A recorded program that several callers go through at the same time.

What comes to a value is kept with its receiver. So a pass that begins while another one
is under way (in a thread, in a program that is paused, in a hook of that other pass)
goes through a twin of the program: the same rules, with receivers of its own.
"""

from functools import partial
from typing import Any

from lantern.core.error_propagation import Failed
from lantern.core.tree import tree_map
from lantern.core.value import Level, Receiver, Value
from lantern.errors import InUseError

__all__ = ["Recorded", "twin"]

Recorded = tuple[list[Receiver], Any, Any]  # the rules, the inputs and the result


def twin(where: str, level: Level, recorded: Recorded) -> Recorded:
    """A recorded program whose receivers have received nothing."""
    rules, inputs, y = recorded
    twins: dict[int, Receiver] = {}
    own = partial(_twin, where, twins)
    result = partial(_moved, level, own)
    return list(map(own, rules)), tree_map(result, inputs), tree_map(result, y)


def _twin(where: str, twins: dict[int, Receiver], z: Receiver) -> Receiver:
    """The twin of a receiver; those of its operands are there already, or have none."""
    found = twins.get(id(z))
    if found is not None:
        return found
    made = z.twin()
    if made is None:
        raise InUseError(
            f"{where}: it is in use already (in another thread, in a program that is "
            f"paused, or further out), and its program has a part that cannot run "
            f"twice at once: a checkpoint, a batch, a task or both_ways. Wait until "
            f"the other call is over, or make another {where}."
        )
    twins[id(z)] = made
    if type(made.suspended) is Failed:  # in the other pass, and not here
        made.suspended = made.suspended.rule
    made.left, made.right = (
        _operands(where, twins, x) for x in (made.left, made.right)
    )
    return made


def _operands(where: str, twins: dict[int, Receiver], x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple([_operands(where, twins, part) for part in x])
    return x if x is None else _twin(where, twins, x)


def _moved(level: Level, own: Any, given: Any) -> Any:
    """A value of the program, with its receiver's twin; anything else as it is."""
    x = given
    if not isinstance(x, Value) or x.level is not level:
        return x
    receiver = own(x.receiver)
    if x.receiver is x:
        return receiver
    x = x.numpy_face()
    cls: Any = type(x)
    return given.like_this(cls(x.primal, level, receiver))
