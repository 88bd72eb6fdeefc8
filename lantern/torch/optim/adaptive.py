"""Optimisers with a step length for each element: from its gradients so far."""

import math
from operator import setitem
from typing import Any

import numpy as np

from lantern.errors import OptionError
from lantern.torch.optim.adam import follow, follow_square
from lantern.torch.optim.optimizer import (
    Optimizer,
    checked,
    counted,
    kept,
    options_of,
)
from lantern.torch.optim.plan import Plan
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Adadelta", "Adagrad", "RMSprop", "SparseAdam"]


class Adagrad(Optimizer):
    """Steps by the gradients over the root of the sum of their squares.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.Adagrad([p], lr=0.1)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.9000])

    References:
        Duchi et al. (2011).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: Any = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: Any = None,
    ) -> None:
        checked(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        options = options_of(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"fused": None})

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        step, out = counted(state, plan), self.scratch(x)
        total = kept(state, "sum", p, group["initial_accumulator_value"])
        g = self.decayed(x, g, group["weight_decay"], plan)
        plan.append((np.multiply, g, g, out))
        plan.append((np.add, total, out, total))
        plan.append((np.sqrt, total, out))
        plan.append((np.add, out, group["eps"], out))
        plan.append((np.divide, g, out, out))
        length = float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        plan.append((np.multiply, out, length, out))
        plan.append((np.subtract, x, out, x))


class RMSprop(Optimizer):
    """Steps by the gradients over the root of the mean of their squares.

    Args:
        params: see ``Optimizer``.
        lr: the step length.
        alpha: how much of the mean is kept at each step.
        eps: is added to the root.
        weight_decay: adds that times the parameters to their gradients.
        momentum: how much of the last step is repeated.
        centered: take the variance instead of the mean of squares.
        capturable: has no effect, as ``foreach``.
        foreach: see above.
        maximize: go up instead.
        differentiable: track the step, for derivatives through training.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.RMSprop([p], lr=0.01)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.9000])

    References:
        Tieleman and Hinton (2012); Graves (2013), for the centred form.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: Any = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked(
            lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        options = options_of(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"capturable": False})

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        counted(state, plan)
        alpha, out = group["alpha"], self.scratch(x)
        g = self.decayed(x, g, group["weight_decay"], plan)
        square = kept(state, "square_avg", p)
        follow_square(square, g, alpha, out, plan)
        if group["centered"]:
            mean = kept(state, "grad_avg", p)
            follow(mean, g, 1 - alpha, out, plan)
            plan.append((np.multiply, mean, mean, out))
            plan.append((np.subtract, square, out, out))
            plan.append((np.sqrt, out, out))
        else:
            plan.append((np.sqrt, square, out))
        plan.append((np.add, out, group["eps"], out))
        plan.append((np.divide, g, out, out))
        if group["momentum"]:
            velocity = kept(state, "momentum_buffer", p)
            plan.append((np.multiply, velocity, group["momentum"], velocity))
            plan.append((np.add, velocity, out, velocity))
            plan.append((np.multiply, velocity, float(group["lr"]), out))
        else:
            plan.append((np.multiply, out, float(group["lr"]), out))
        plan.append((np.subtract, x, out, x))


class Adadelta(Optimizer):
    """Steps in the units of the parameters, from the steps before.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = torch.optim.Adadelta([p], lr=100.0)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.6838])

    References:
        Zeiler (2012), algorithm 1.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: Any = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        checked(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        options = options_of(
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, options | {"capturable": False})

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        counted(state, plan)
        rho, eps, out = group["rho"], group["eps"], self.scratch(x)
        g = self.decayed(x, g, group["weight_decay"], plan)
        square, moved = kept(state, "square_avg", p), kept(state, "acc_delta", p)
        follow_square(square, g, rho, out, plan)
        root = self.scratch(x, 1)
        plan.append((np.add, square, eps, root))
        plan.append((np.sqrt, root, root))
        plan.append((np.add, moved, eps, out))
        plan.append((np.sqrt, out, out))
        plan.append((np.divide, out, root, out))
        plan.append((np.multiply, out, g, out))
        follow_square(moved, out, rho, root, plan)
        plan.append((np.multiply, out, float(group["lr"]), out))
        plan.append((np.subtract, x, out, x))


class SparseAdam(Optimizer):
    """Adam, that moves and remembers only the rows of a table that were read.

    Args:
        params: tables, of which few rows have a gradient that is not 0.
        lr: the step length.
        betas: how much of the two means is kept at each step.
        eps: is added to the root.
        maximize: go up instead.

    Example:
        >>> import lantern.torch as torch
        >>> table = torch.nn.Embedding.from_pretrained(torch.ones(3, 1), freeze=False)
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.5)
        >>> table(torch.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> table.weight.detach().flatten()
        tensor([1.0000, 0.5000, 1.0000])
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: Any = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if not lr > 0:
            raise OptionError(f"Invalid learning rate: {lr}")
        checked(eps=eps, betas=betas)
        options = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, options)

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        step, (first, second) = counted(state, plan), group["betas"]
        mean, square = kept(state, "exp_avg", p), kept(state, "exp_avg_sq", p)
        rows = np.flatnonzero(g.reshape(len(g), -1).any(1))
        g = g[rows]
        some = mean[rows] + (g - mean[rows]) * (1 - first)
        squares = square[rows] + (g * g - square[rows]) * (1 - second)
        root = np.sqrt(squares) + group["eps"]
        length = float(group["lr"]) * math.sqrt(1 - second**step) / (1 - first**step)
        plan.append((setitem, mean, rows, some))
        plan.append((setitem, square, rows, squares))
        plan.append((setitem, x, rows, x[rows] - length * some / root))
