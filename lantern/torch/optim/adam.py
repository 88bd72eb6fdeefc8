"""Adam and its relatives: a mean of gradients over the root of that of squares."""

import math
from functools import partial
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.engines import gpu, steps
from lantern.errors import MissingRuleError
from lantern.torch.optim.optimizer import (
    Optimizer,
    checked,
    counted,
    kept,
    options_of,
)
from lantern.torch.optim.plan import Plan
from lantern.torch.tensor.devices import kernel
from lantern.torch.tensor.dtypes import CPU
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


def follow(mean: Any, x: Any, share: float, out: Any, plan: Plan) -> None:
    """Plan ``mean += (x - mean) * share``, to be computed in ``out``."""
    plan.append((np.subtract, x, mean, out))
    plan.append((np.multiply, out, share, out))
    plan.append((np.add, mean, out, mean))


def follow_square(mean: Any, g: Any, beta: float, out: Any, plan: Plan) -> None:
    """Plan ``mean = beta * mean + (1 - beta) * g * g``, to be computed in ``out``."""
    plan.append((np.multiply, g, g, out))
    plan.append((np.multiply, out, 1 - beta, out))
    plan.append((np.multiply, mean, beta, mean))
    plan.append((np.add, mean, out, mean))


def adam(
    x: Any, g: Any, mean: Any, square: Any, largest: Any, out: Any, new: float,
    kept: float, new_square: float, lr: float, root: float, eps: float, plan: Plan,
    xp: Any = np,
) -> None:  # fmt: skip
    """Plan ``x -= lr * mean / (sqrt(square) / root + eps)``, computed in ``out``.

    ``new`` and ``new_square`` are the shares of g and its square in their means, and
    ``kept`` is the rest of the latter; ``largest`` is the largest ``square`` so far, or
    None.
    """
    plan += [
        (xp.subtract, g, mean, out),
        (xp.multiply, out, new, out),
        (xp.add, mean, out, mean),
        (xp.multiply, g, g, out),
        (xp.multiply, out, new_square, out),
        (xp.multiply, square, kept, square),
        (xp.add, square, out, square),
    ]
    if largest is not None:
        plan.append((partial(xp.maximum, out=largest), largest, square))
        square = largest
    plan += [
        (xp.sqrt, square, out),
        (xp.divide, out, root, out),
        (xp.add, out, eps, out),
        (xp.divide, mean, out, out),
        (xp.multiply, out, lr, out),
        (xp.subtract, x, out, x),
    ]


def _adam_in_one(*arguments: Any, xp: Any) -> None:
    """All of ``adam`` at once, to be made one kernel of a device."""
    plan = Plan()
    adam(*arguments, plan, xp)  # type: ignore[call-arg]  # all others are there
    for call in plan:
        _at_once(call)


def _at_once(call: tuple[Any, ...]) -> None:
    function, *arguments = call
    if type(function) is partial:  # the third argument of a maximum is no output
        function(*arguments)
    else:
        function(*arguments[:-1], out=arguments[-1])


class Adam(Optimizer):
    """Steps by the mean of the gradients over the root of that of their squares.

    Args:
        params: see ``Optimizer``.
        lr: the step length.
        betas: how much of the two means is kept at each step.
        eps: is added to the root.
        weight_decay: adds that times the parameters to their gradients.
        amsgrad: take the largest mean of squares so far.
        foreach: has no effect, as ``capturable`` and ``fused``.
        maximize: go up instead.
        capturable: see above.
        differentiable: track the step, for derivatives through training.
        fused: see above.
        decoupled_weight_decay: shrink the parameters themselves instead.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.Adam([p], lr=0.1)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.9000])

    References:
        Kingma and Ba (2015), algorithm 1; Reddi et al. (2018).
    """

    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Any = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        checked(
            lr=lr,
            eps=eps,
            betas=betas,
            weight_decay=weight_decay,
            foreach=foreach,
            capturable=capturable,
        )
        options = options_of(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            differentiable=differentiable,
        )
        options |= {
            "capturable": False,
            "fused": None,
            "decoupled_weight_decay": decoupled_weight_decay or self.decoupled,
        }
        super().__init__(params, options)

    def _options(self, group: dict[str, Any]) -> Any:
        beta1, beta2 = map(float, group["betas"])
        decay = group["weight_decay"]
        decoupled = group.get("decoupled_weight_decay", self.decoupled)
        return (
            float(group["lr"]), beta1, beta2, group["eps"], decay, decoupled,
            group["amsgrad"],
        )  # fmt: skip

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, options: Any, plan: Plan
    ) -> None:
        lr, beta1, beta2, eps, decay, decoupled, amsgrad = options
        step = counted(state, plan)
        mean, square = kept(state, "exp_avg", p), kept(state, "exp_avg_sq", p)
        largest = kept(state, "max_exp_avg_sq", p) if amsgrad else None
        root = math.sqrt(1 - beta2**step)
        values = 1 - beta1, beta2, 1 - beta2, lr / (1 - beta1**step), root, eps
        on_host = type(x) is np.ndarray
        # The size is asked for in no call: most parameters are small.
        if largest is None and (x.size >= steps.LEAST or not on_host):
            joins, shrinks = (0.0, lr * decay) if decoupled else (float(decay), 0.0)
            numbers = *values, joins, 1 - shrinks
            if not on_host and gpu.steps.fit(x, g, mean, square):
                plan.together(gpu.steps.adam, (x, g, mean, square), numbers)
                return
            calls = steps.adam(x, g, mean, square, numbers)
            if calls is not None:
                plan += calls
                return
        g = self.decayed(x, g, decay, plan, lr if decoupled else None)
        numbers = plan.numbers(x, *values)
        arguments = x, g, mean, square, largest, self.scratch(x), *numbers
        if on_host:
            adam(*arguments, plan)  # type: ignore[call-arg]  # all are there
        else:
            plan.append((kernel(_adam_in_one, namespace(x)), *arguments))


class AdamW(Adam):
    """Adam that shrinks the parameters themselves.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.AdamW([p], lr=0.1, weight_decay=0.5)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.8500])

    References:
        Loshchilov and Hutter (2019), algorithm 2.
    """

    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


class NAdam(Optimizer):
    """Adam that looks ahead by one step of momentum.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.NAdam([p], lr=0.1)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.8944])

    References:
        Dozat (2016).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked(
            lr=lr,
            eps=eps,
            betas=betas,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
        )
        options = options_of(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"capturable": False})

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        from lantern.torch.functions.creation import tensor

        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        step, decay = counted(state, plan), group["weight_decay"]
        if "mu_product" not in state:
            state["mu_product"] = tensor(1.0, dtype=p.dtype.to_real(), device=CPU)
        mean, square = kept(state, "exp_avg", p), kept(state, "exp_avg_sq", p)
        out = self.scratch(x)
        shrinks = lr if group["decoupled_weight_decay"] else None
        g = self.decayed(x, g, decay, plan, shrinks)
        mu, ahead = (
            beta1 * (1 - 0.5 * 0.96 ** (n * group["momentum_decay"]))
            for n in (step, step + 1)
        )
        if state["mu_product"].requires_grad:
            raise MissingRuleError(
                "NAdam: the derivative with respect to mu_product is not computed."
            )
        so_far = in_memory(state["mu_product"])
        plan.append((np.multiply, so_far, mu, so_far))
        follow(mean, g, 1 - beta1, out, plan)
        follow_square(square, g, beta2, out, plan)
        product = float(so_far * mu)
        root, more = self.scratch(x, 1), out
        plan.append((np.divide, square, 1 - beta2**step, root))
        plan.append((np.sqrt, root, root))
        plan.append((np.add, root, group["eps"], root))
        plan.append((np.divide, g, root, more))
        plan.append((np.multiply, more, lr * (1 - mu) / (1 - product), more))
        plan.append((np.subtract, x, more, x))
        plan.append((np.divide, mean, root, more))
        plan.append((np.multiply, more, lr * ahead / (1 - product * ahead), more))
        plan.append((np.subtract, x, more, x))


class RAdam(Optimizer):
    """Adam that waits until the mean of squares can be trusted.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.RAdam([p], lr=0.1)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.8000])

    References:
        Liu et al. (2020), algorithm 2.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Any = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        options = options_of(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"capturable": False})

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        step, decay = counted(state, plan), group["weight_decay"]
        mean, square = kept(state, "exp_avg", p), kept(state, "exp_avg_sq", p)
        out = self.scratch(x)
        shrinks = lr if group["decoupled_weight_decay"] else None
        g = self.decayed(x, g, decay, plan, shrinks)
        follow(mean, g, 1 - beta1, out, plan)
        follow_square(square, g, beta2, out, plan)
        whole = 2 / (1 - beta2) - 1
        length = whole - 2 * step * beta2**step / (1 - beta2**step)
        scale = lr / (1 - beta1**step)
        if length > 5:
            scale *= math.sqrt(
                (length - 4) * (length - 2) * whole
                / ((whole - 4) * (whole - 2) * length)
            ) * math.sqrt(1 - beta2**step)  # fmt: skip
            plan.append((np.sqrt, square, out))
            plan.append((np.add, out, group["eps"], out))
            plan.append((np.divide, mean, out, out))
            plan.append((np.multiply, out, scale, out))
        else:
            plan.append((np.multiply, mean, scale, out))
        plan.append((np.subtract, x, out, x))


class Adamax(Optimizer):
    """Adam with the largest gradient in place of the mean of squares.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.Adamax([p], lr=0.1)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.9000])

    References:
        Kingma and Ba (2015), algorithm 2.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        checked(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        options = options_of(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"capturable": False})

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        step, out = counted(state, plan), self.scratch(x)
        g = self.decayed(x, g, group["weight_decay"], plan)
        mean, largest = kept(state, "exp_avg", p), kept(state, "exp_inf", p)
        follow(mean, g, 1 - beta1, out, plan)
        plan.append((np.abs, g, out))
        plan.append((np.add, out, group["eps"], out))
        plan.append((np.multiply, largest, beta2, largest))
        plan.append((partial(np.maximum, out=largest), largest, out))
        plan.append((np.divide, mean, largest, out))
        plan.append((np.multiply, out, lr / (1 - beta1**step), out))
        plan.append((np.subtract, x, out, x))
