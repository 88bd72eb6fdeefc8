"""A recorded program that several callers go through at the same time.

What comes to a value is kept with its receiver. So a pass that begins while another one
is under way (in a thread, in a program that is paused, in a hook of that other pass)
goes through a twin of the program: the same rules, with receivers of its own.
"""

from functools import partial
from typing import Any

from lantern.core.error_propagation import Failed
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import Level, Receiver, Value, unwrapped
from lantern.core.value_classes import value_class
from lantern.errors import InUseError
from lantern.replaced import restore
from lantern.rules.number import Number, in_kind_of

__all__ = ["Recorded", "gradient", "pull", "twin"]

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
    if type(made.rule) is Failed:  # in the other pass, and not here
        made.rule = made.rule.rule
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
    if not isinstance(x, Value) or x.prompt is not level:
        return x
    receiver = own(x.receiver)
    if x.receiver is x:
        return receiver
    x = x.numpy_face()
    cls: Any = type(x)
    return given.like_this(cls(x.primal, level, receiver))


def _receive(level: Level, y: Any, y_bar: Any) -> None:
    """Let a result's leaves receive their parts of a seed."""
    for leaf, seed in zip(tree_leaves(y), tree_leaves(y_bar), strict=True):
        if isinstance(leaf, Value) and leaf.prompt is level:
            seed = unwrapped(seed)
            if not getattr(seed, "shape", ()):
                seed = in_kind_of(leaf, seed)
            leaf.receiver.accumulate(seed)


def _empty(rules: list[Receiver], y: Any) -> None:
    """Forget what has come to values made in ``no_grad``, which hand nothing on."""
    last = [leaf.receiver for leaf in tree_leaves(y) if isinstance(leaf, Value)]
    for x in (*last, *(x for z in rules for x in z.operands())):
        if x is not None and x.rule is None:
            x.cotangent = None


def gradient(inputs: Any, originals: Any, holomorphic: bool = False) -> Any:
    """What each leaf of an input structure has received, in the original's type."""
    if type(inputs) is Number and not holomorphic:
        g = inputs.gradient()
        return g if type(g) is float or not isinstance(g, Value) else g.shown()

    leaves = iter(tree_leaves(originals))

    def leaf(x: Value) -> Any:
        g = x.gradient().conjugate() if holomorphic else x.gradient()
        original = next(leaves, None)
        if isinstance(g, Value):
            g = g.shown()
        if not isinstance(original, Value) or x.is_face:
            return g
        if unwrapped(original) is original:
            return g
        cls: Any = value_class(original)
        return cls(g)

    return tree_map(leaf, inputs)


def pull(level: Level, recorded: Recorded, y_bar: Any, primals: Any) -> Any:
    """The gradients of a recorded program's inputs."""
    rules, inputs, y = recorded
    try:
        _receive(level, y, y_bar)
        for z in reversed(rules):
            z.replay()
        return tuple(map(gradient, inputs, primals))
    except BaseException as error:
        for z in rules:
            z.forget()
        restore(error)
        raise
    finally:
        for x in tree_leaves(inputs):
            x.receiver.cotangent = None
        if getattr(level, "drops", False):
            _empty(rules, y)
