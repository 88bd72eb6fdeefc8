"""How operations of layers are computed for all examples of a ``vmap`` at once.

Windows: the examples are more of the examples that a layer takes; where weights differ
between them too, they are groups of channels that do not meet. All other rules compute
on batched values as on any others, step by step.
"""

from typing import Any

from lantern.core.tree import tree_map
from lantern.core.value import base
from lantern.tensor.ops.shape import broadcast_to, moveaxis
from lantern.torch.nn import pools, windows
from lantern.torch.nn.entropies import entropy, entropy_of_one
from lantern.torch.nn.gates import cell
from lantern.torch.nn.rules import affine, normalised, rows
from lantern.torch.nn.windows import Form
from lantern.vectorizing.batched import Batched
from lantern.vectorizing.batching_rules import BatchedCall
from lantern.vectorizing.dispatch import by_rule, give_batching_rule

__all__ = ["chosen_of"]


def _more(x: Any) -> Any:
    """The examples of a ``vmap`` and those of a layer along one axis."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def _apart(z: Any, size: int) -> Any:
    """As many examples of the ``vmap`` along an axis of their own."""
    return z.reshape(size, z.shape[0] // size, *z.shape[1:])


def _channels(x: Any) -> Any:
    """Examples of a ``vmap`` as channels: (size, n, c, ...) as (n, size * c, ...)."""
    x = moveaxis(x, 0, 1)
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])


def _from_channels(z: Any, size: int) -> Any:
    """The inverse of ``_channels``."""
    return moveaxis(z.reshape(z.shape[0], size, -1, *z.shape[2:]), 1, 0)


def _grouped(form: Form, size: int) -> Form:
    """The form of as many layers side by side."""
    return form._replace(groups=form.groups * size)


def _of_weights(call: BatchedCall, *rest: Any) -> Any:
    """``correlate`` and ``spread``: of an array and weights."""
    (x, w), size = call.operands[:2], call.examples.size
    form = call.static("form")
    if not call.mapped[1]:
        return _apart(call.run(_more(x), w, *rest), size)
    z = call.run(_channels(call.spread(0)), _more(w), *rest, form=_grouped(form, size))
    return _from_channels(z, size)


def _correlate(call: BatchedCall) -> Any:
    """Products of weights with windows; the bias is added afterwards."""
    x, w, *rest = call.operands
    bias = rest[0] if rest else None
    if bias is None or not any(call.mapped[1:]):
        return _of_weights(call, bias)
    z = _of_weights(call, None) if any(call.mapped[:2]) else call.run(x, w, None)
    lead = [bias.shape[0], 1] if call.mapped[2] else []
    return z + bias.reshape(*lead, -1, *[1] * len(call.static("form").size))


def _match(call: BatchedCall) -> Any:
    """Products of windows with results: those of each example are a group."""
    size, form = call.examples.size, call.static("form")
    x, z = (_channels(call.spread(i)) for i in range(2))
    return _apart(call.run(x, z, form=_grouped(form, size)), size)


def _windows(call: BatchedCall) -> Any:
    """An operation of the windows of each channel; what is chosen may differ, too."""
    (x,), chosen = call.operands, call.static("chosen")
    x, changed = _more(call.spread(0)), {}
    if chosen is not None:
        if call.examples.owns(chosen):
            mapped, chosen = chosen.mapped, chosen.stacked
            shape = chosen.shape[mapped:]
        else:
            shape = chosen.shape
        changed["chosen"] = _more(broadcast_to(chosen, (call.examples.size, *shape)))
    if "known" in call.statics:
        changed["known"] = []
    z = call.run(x, **changed)
    return tree_map(lambda z: _apart(z, call.examples.size), z)


def chosen_of(x: Any, form: Form) -> tuple[Any, Any]:
    """As that of ``pools``, of an array that may be batched."""
    if type(x) is not Batched:
        return pools.chosen_of(x, form)
    chosen: tuple[Any, Any] = x.level.compute(_windows, _chosen, (x,), {"form": form})
    return chosen


def _chosen(x: Any, form: Form) -> tuple[Any, Any]:
    return chosen_of(base(x), form)


for _function in (affine, cell, entropy, entropy_of_one, normalised, rows):
    give_batching_rule(_function.operation, by_rule)
give_batching_rule(windows.correlate_any, _correlate)
give_batching_rule(windows.spread_any, _of_weights)
give_batching_rule(windows.match_any, _match)
for _function in (
    pools.sums_any,
    pools.spread_sums_any,
    pools.pick_any,
    pools.unpick_any,
):
    give_batching_rule(_function, _windows, statics=True)
