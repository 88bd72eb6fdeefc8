"""Steps that are tracked themselves, for derivatives through training.

An optimiser's plan is a list of functions of arrays. Here the same plan is carried out
with the tensors in place of their arrays; nothing is written before its end.
"""

import operator
from functools import partial
from typing import Any

import numpy as np

from lantern.blocks import between_turns
from lantern.eager.grad_mode import enable_grad
from lantern.errors import MissingRuleError
from lantern.torch.optim.plan import Plan
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor


def _maximum(x: Tensor, y: Any) -> Tensor:
    return x.maximum(y) if isinstance(y, Tensor) else x.clamp(min=y)


_TRACKED: dict[Any, Any] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.abs: operator.abs,
    np.sign: operator.methodcaller("sign"),
    np.sqrt: operator.methodcaller("sqrt"),
    np.maximum: _maximum,
    np.minimum: lambda x, y: x.clamp(max=y),
}


@between_turns
def move_tracked(optimizer: Any, group: dict[str, Any]) -> None:
    """Move a group's parameters by operations that are tracked."""
    for name, value in group.items():
        if isinstance(value, Tensor) and value.requires_grad:
            raise MissingRuleError(
                f"{type(optimizer).__name__}: the derivative of a step with respect to "
                f"{name} is not computed. Write the step with tensors."
            )
    options = optimizer._options(group)
    with enable_grad():
        for p in group["params"]:
            if p.grad is not None:
                if p.is_complex():
                    raise MissingRuleError(
                        f"{type(optimizer).__name__}: differentiable=True has no form "
                        f"for complex parameters. Keep torch.view_as_real(p) instead."
                    )
                g = -p.grad if group.get("maximize") else p.grad
                _move(optimizer, p, g, options)


def _move(optimizer: Any, p: Tensor, g: Tensor, options: Any) -> None:
    plan, state = Plan(), optimizer.state[p]
    x, gradient = in_memory(p), g.primal
    optimizer._move(p, x, gradient, state, options, plan)
    values: dict[int, Any] = {id(x): p, id(gradient): g}
    for kept in _tensors(state):
        values[id(in_memory(kept))] = kept
    constant = set(values)
    for function, *operands in plan:
        if function is operator.setitem and operands[0] is state:
            state[operands[1]] = operands[2]
            values.setdefault(id(in_memory(operands[2])), operands[2])
            continue
        function, operands, out = _read(function, operands)
        tensors = [values.get(id(operand), operand) for operand in operands]
        values[id(out)] = function(*tensors)
        constant.discard(id(out))
    for name, kept in list(state.items()):
        place = id(in_memory(kept)) if isinstance(kept, Tensor) else None
        if place in values and place not in constant:
            state[name] = values[place]
    if id(x) not in constant:
        p.copy_(values[id(x)])


def _tensors(state: Any) -> list[Tensor]:
    return [kept for kept in state.values() if isinstance(kept, Tensor)]


def _read(function: Any, operands: list[Any]) -> tuple[Any, Any, Any]:
    """A call of a plan as a function of tensors, its operands, and where it writes."""
    if function is operator.setitem:
        return (lambda value: value), operands[2:], operands[0]
    if isinstance(function, partial):
        operands, function = [*operands, function.keywords["out"]], function.func
    if function not in _TRACKED:
        raise MissingRuleError(
            f"differentiable=True: {getattr(function, '__name__', function)} has no "
            f"tracked form here. Move the parameters to the CPU."
        )
    return _TRACKED[function], operands[:-1], operands[-1]
