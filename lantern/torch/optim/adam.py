"""Adam and its relatives: a mean of gradients over the root of that of squares."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.torch.optim.optimizer import (
    Optimizer,
    checked,
    counted,
    kept,
    options_of,
)
from lantern.torch.tensor.devices import kernel
from lantern.torch.tensor.dtypes import CPU
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


def follow(mean: Any, x: Any, share: float, out: Any) -> None:
    """``mean += (x - mean) * share``, computing in ``out``."""
    np.subtract(x, mean, out=out)
    out *= share
    mean += out


def follow_square(mean: Any, g: Any, beta: float, out: Any) -> None:
    """``mean = beta * mean + (1 - beta) * g * g``, computing in ``out``."""
    np.multiply(g, g, out=out)
    out *= 1 - beta
    mean *= beta
    mean += out


def adam(
    x: Any, g: Any, mean: Any, square: Any, largest: Any, out: Any, new: float,
    kept: float, new_square: float, lr: float, root: float, eps: float, xp: Any = np,
) -> None:  # fmt: skip
    """``x -= lr * mean / (sqrt(square) / root + eps)``, computing in ``out``.

    ``new`` and ``new_square`` are the shares of g and its square in their means, and
    ``kept`` is the rest of the latter; ``largest`` is the largest ``square`` so far, or
    None.
    """
    xp.subtract(g, mean, out=out)
    out *= new
    mean += out
    xp.multiply(g, g, out=out)
    out *= new_square
    square *= kept
    square += out
    if largest is not None:
        square = xp.maximum(largest, square, out=largest)
    xp.sqrt(square, out=out)
    out /= root
    out += eps
    xp.divide(mean, out, out=out)
    out *= lr
    x -= out


class Adam(Optimizer):
    """Steps by the mean of the gradients over the root of that of their squares.

    Args:
        params: see ``Optimizer``.
        lr: the step length.
        betas: how much of the two means is kept at each step.
        eps: is added to the root.
        weight_decay: adds that times the parameters to their gradients.
        amsgrad: take the largest mean of squares so far.
        foreach: has no effect, as ``capturable``, ``differentiable`` and ``fused``.
        maximize: go up instead.
        capturable: see above.
        differentiable: see above.
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

    def _move(self, p: Tensor, x: Any, g: Any, state: Any, options: Any) -> None:
        lr, beta1, beta2, eps, decay, decoupled, amsgrad = options
        step = counted(state)
        mean, square = kept(state, "exp_avg", p), kept(state, "exp_avg_sq", p)
        largest = kept(state, "max_exp_avg_sq", p) if amsgrad else None
        g = self.decayed(x, g, decay, lr if decoupled else None)
        move = adam if type(x) is np.ndarray else kernel(adam, namespace(x))
        move(
            x, g, mean, square, largest, self.scratch(x), 1 - beta1, beta2, 1 - beta2,
            lr / (1 - beta1**step), math.sqrt(1 - beta2**step), eps,
        )  # fmt: skip


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
        )
        super().__init__(params, options | {"capturable": False})

    def _move(self, p: Tensor, x: Any, g: Any, state: Any, group: Any) -> None:
        from lantern.torch.functions.creation import tensor

        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        step, decay = counted(state), group["weight_decay"]
        if "mu_product" not in state:
            state["mu_product"] = tensor(1.0, dtype=p.dtype, device=CPU)
        mean, square = kept(state, "exp_avg", p), kept(state, "exp_avg_sq", p)
        out = self.scratch(x)
        g = self.decayed(x, g, decay, lr if group["decoupled_weight_decay"] else None)
        mu, ahead = (
            beta1 * (1 - 0.5 * 0.96 ** (n * group["momentum_decay"]))
            for n in (step, step + 1)
        )
        so_far = state["mu_product"].primal
        so_far *= mu
        follow(mean, g, 1 - beta1, out)
        follow_square(square, g, beta2, out)
        product = float(so_far)
        root, more = self.scratch(x, 1), out
        np.divide(square, 1 - beta2**step, out=root)
        np.sqrt(root, out=root)
        root += group["eps"]
        np.divide(g, root, out=more)
        more *= lr * (1 - mu) / (1 - product)
        x -= more
        np.divide(mean, root, out=more)
        more *= lr * ahead / (1 - product * ahead)
        x -= more


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
        )
        super().__init__(params, options | {"capturable": False})

    def _move(self, p: Tensor, x: Any, g: Any, state: Any, group: Any) -> None:
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        step, decay = counted(state), group["weight_decay"]
        mean, square = kept(state, "exp_avg", p), kept(state, "exp_avg_sq", p)
        out = self.scratch(x)
        g = self.decayed(x, g, decay, lr if group["decoupled_weight_decay"] else None)
        follow(mean, g, 1 - beta1, out)
        follow_square(square, g, beta2, out)
        whole = 2 / (1 - beta2) - 1
        length = whole - 2 * step * beta2**step / (1 - beta2**step)
        scale = lr / (1 - beta1**step)
        if length > 5:
            scale *= math.sqrt(
                (length - 4) * (length - 2) * whole
                / ((whole - 4) * (whole - 2) * length)
            ) * math.sqrt(1 - beta2**step)  # fmt: skip
            np.sqrt(square, out=out)
            out += group["eps"]
            np.divide(mean, out, out=out)
            out *= scale
        else:
            np.multiply(mean, scale, out=out)
        x -= out


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
            lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize
        )
        super().__init__(params, options | {"capturable": False})

    def _move(self, p: Tensor, x: Any, g: Any, state: Any, group: Any) -> None:
        lr, (beta1, beta2) = float(group["lr"]), group["betas"]
        step, out = counted(state), self.scratch(x)
        g = self.decayed(x, g, group["weight_decay"])
        mean, largest = kept(state, "exp_avg", p), kept(state, "exp_inf", p)
        follow(mean, g, 1 - beta1, out)
        np.abs(g, out=out)
        out += group["eps"]
        largest *= beta2
        np.maximum(largest, out, out=largest)
        np.divide(mean, largest, out=out)
        out *= lr / (1 - beta1**step)
        x -= out
