"""Optimisers with one step length for all: gradient descent."""

from functools import partial
from operator import setitem
from typing import Any

import numpy as np

from lantern.core.contribution import Contribution
from lantern.engines import gpu
from lantern.errors import OptionError
from lantern.torch.functions.creation import tensor, zeros_like
from lantern.torch.optim.optimizer import (
    Optimizer,
    checked,
    counted,
    kept,
    options_of,
    parts,
    with_gradients,
)
from lantern.torch.optim.plan import Plan
from lantern.torch.tensor.dtypes import CPU
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor

__all__ = ["ASGD", "SGD", "Rprop"]


class SGD(Optimizer):
    """Gradient descent, with momentum if asked for.

    Args:
        params: see ``Optimizer``.
        lr: the step length.
        momentum: how much of the last step is repeated.
        dampening: how much of the gradient is left out of the momentum.
        weight_decay: adds that times the parameters to their gradients.
        nesterov: look ahead by one step of momentum.
        maximize: go up instead.
        foreach: has no effect, as ``fused``.
        differentiable: track the step, for derivatives through training.
        fused: see above.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.SGD([p], lr=0.25)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.5000])

    References:
        Sutskever et al. (2013), equations 3 and 4.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Any = None,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        checked(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise OptionError(
                "Nesterov momentum requires a momentum and zero dampening"
            )
        options = options_of(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"fused": None})

    def _options(self, group: dict[str, Any]) -> Any:
        return (
            float(group["lr"]), group["momentum"], group["dampening"],
            group["weight_decay"], group["nesterov"],
        )  # fmt: skip

    def _group(self, group: dict[str, Any], plan: Plan) -> None:
        if group["momentum"] or group["weight_decay"] or group["differentiable"]:
            super()._group(group, plan)
            return
        step = float(group["lr"])
        if not group["maximize"]:
            step = -step
        kind = dtype = factor = None
        for _, x, grad in with_gradients(group):
            if isinstance(grad, Contribution):
                plan.extend(grad.additions(x, step))
            elif x.size > 4096:
                self.shift(x, grad, step, plan)
            else:
                if grad.dtype is not dtype or type(grad) is not kind:
                    kind, dtype = type(grad), grad.dtype
                    factor = self._factor(step, grad, plan)
                plan.append((np.add, x, grad * factor, x))

    _last: Any = (None, None)  # a step length, for whom, and as an array

    def _factor(self, step: float, grad: Any, plan: Plan) -> Any:
        """As ``plan.numbers`` has the step length; the last one is kept."""
        known = step, type(grad), grad.dtype
        if self._last[0] != known:
            self._last = known, *plan.numbers(grad, step)
        return self._last[1]

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, options: Any, plan: Plan
    ) -> None:
        lr, momentum, dampening, decay, nesterov = options
        buffer = state.get("momentum_buffer") if momentum else None
        on_host = buffer is None or type(x) is np.ndarray
        if not on_host and gpu.steps.fit(x, g, in_memory(buffer)):
            numbers = lr, float(momentum), 1.0 - dampening, float(decay), int(nesterov)
            plan.together(gpu.steps.descend, (x, g, in_memory(buffer)), numbers)
            return
        if decay:
            g = self.decayed(x, g, decay, plan)
        step = self.scratch(x)
        if momentum:
            if buffer is None:
                buffer = zeros_like(p.detach())
                velocity = parts(in_memory(buffer))
                plan.append((setitem, velocity, ..., g))
                plan.append((setitem, state, "momentum_buffer", buffer))
            else:
                velocity = parts(in_memory(buffer))
                plan.append((np.multiply, velocity, momentum, velocity))
                if dampening:
                    plan.append((np.multiply, g, 1 - dampening, step))
                    plan.append((np.add, velocity, step, velocity))
                else:
                    plan.append((np.add, velocity, g, velocity))
            if nesterov:
                plan.append((np.multiply, velocity, momentum, step))
                plan.append((np.add, step, g, step))
                plan.append((np.multiply, step, lr, step))
                plan.append((np.subtract, x, step, x))
                return
            g = velocity
        self.shift(x, g, -lr, plan)


class ASGD(Optimizer):
    """Gradient descent, and the mean of where it has been (``state["ax"]``).

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.ASGD([p], lr=0.25)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.5000])

    References:
        Polyak and Juditsky (1992).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        checked(lr=lr, weight_decay=weight_decay)
        options = options_of(
            lr=lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"capturable": False})

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        lr, lambd = float(group["lr"]), group["lambd"]
        step = counted(state, plan)
        # As tensors of single precision they are in PyTorch's state.
        eta = float(state.setdefault("eta", tensor(lr, device=CPU)))
        mu = float(state.setdefault("mu", tensor(1.0, device=CPU)))
        mean, out = kept(state, "ax", p), self.scratch(x)
        g = self.decayed(x, g, group["weight_decay"], plan)
        plan.append((np.multiply, x, 1 - lambd * eta, x))
        plan.append((np.multiply, g, eta, out))
        plan.append((np.subtract, x, out, x))
        plan.append((np.subtract, x, mean, out))
        plan.append((np.multiply, out, mu, out))
        plan.append((np.add, mean, out, mean))
        eta = lr / (1 + lambd * lr * step) ** group["alpha"]
        plan.append((setitem, state, "eta", tensor(eta, device=CPU)))
        mu = 1 / max(1.0, step - group["t0"])
        plan.append((setitem, state, "mu", tensor(mu, device=CPU)))


class Rprop(Optimizer):
    """Steps that look at signs alone: longer while they stay, shorter when they turn.

    Args:
        params: see ``Optimizer``.
        lr: the first step length of each element.
        etas: what a length is multiplied by when the sign turns, and when it stays.
        step_sizes: the least and the greatest length.
        capturable: has no effect, as ``foreach``.
        foreach: see above.
        maximize: go up instead.
        differentiable: track the step, for derivatives through training.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.Rprop([p], lr=0.1)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.9000])

    References:
        Riedmiller and Braun (1993).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: Any = (0.5, 1.2),
        step_sizes: Any = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked(lr=lr, foreach=foreach, capturable=capturable)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise OptionError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        options = options_of(
            lr=lr,
            etas=etas,
            step_sizes=step_sizes,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"capturable": False})

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        counted(state, plan)
        before, out = kept(state, "prev", p), self.scratch(x)
        lengths = kept(state, "step_size", p, float(group["lr"]))
        shrink, grow = group["etas"]
        sign, (least, most) = g * before, group["step_sizes"]
        turned = sign < 0
        factors = np.where(turned, shrink, np.where(sign > 0, grow, 1))
        plan.append((np.multiply, lengths, factors.astype(x.dtype), lengths))
        plan.append((partial(np.maximum, out=lengths), lengths, least))
        plan.append((partial(np.minimum, out=lengths), lengths, most))
        plan.append((np.multiply, g, ~turned, before))
        plan.append((np.sign, before, out))
        plan.append((np.multiply, out, lengths, out))
        plan.append((np.subtract, x, out, x))
