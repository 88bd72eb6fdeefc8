"""Optimisers that see a parameter as a matrix: its rows, columns and directions."""

import math
from operator import setitem
from typing import Any

import numpy as np

from lantern.errors import MissingRuleError, OptionError
from lantern.torch.optim.optimizer import Optimizer, checked_rate, counted, kept
from lantern.torch.optim.plan import Plan
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["Adafactor", "Muon"]


class Adafactor(Optimizer):
    """Steps over the root of a mean of squares that is kept by rows and columns alone.

    Args:
        params: see ``Optimizer``.
        lr: the longest step relative to the parameter's size, and of the decay.
        beta2_decay: the share of what is new in the means at step t is t to this power.
        eps: the least root (by default that of the type), and the least size.
        d: the root mean square above which a step is shortened to it.
        weight_decay: shrinks the parameters themselves.
        foreach: has no effect.
        maximize: go up instead.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([[1.0, 2.0]], requires_grad=True)
        >>> optimizer = torch.optim.Adafactor([p], lr=0.1)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([[0.8419, 1.8419]])

    References:
        Shazeer and Stern (2018), algorithm 4.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: Any = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: Any = None,
        maximize: bool = False,
    ) -> None:
        checked_rate(lr)
        least, size = eps
        for name, value, right in (
            ("beta2_decay should be <= 0", beta2_decay, beta2_decay <= 0),
            ("epsilon1 should be >= 0", least, least is None or least >= 0),
            ("epsilon2 should be >= 0", size, size >= 0),
            ("Clipping threshold d should be >= 1", d, d >= 1),
            ("weight_decay should be >= 0", weight_decay, weight_decay >= 0),
        ):
            if not right:
                raise OptionError(f"{name} but is: {value}")
        super().__init__(
            params,
            {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d}
            | {"weight_decay": weight_decay, "foreach": foreach, "maximize": maximize},
        )

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        _refuse_complex(self, p)
        lr, (least, size) = float(group["lr"]), group["eps"]
        least = np.finfo(x.dtype).eps if least is None else least
        step = counted(state, plan)
        new = step ** group["beta2_decay"]
        length = max(size, _root_mean_square(x)) * min(lr, step**-0.5)
        if x.ndim > 1:
            rows, columns = (
                _following(state, name, np.mean(g * g, axis, keepdims=True), new, plan)
                for name, axis in (("row_var", -1), ("col_var", -2))
            )
            mean = np.mean(rows, -2, keepdims=True)
            square = rows @ columns / np.maximum(mean, least)
        else:
            square = _following(state, "variance", g * g, new, plan)
        update = g / np.sqrt(np.maximum(square, least**2))
        length /= max(1.0, _root_mean_square(update) / group["d"])
        self.decayed(x, g, group["weight_decay"], plan, lr)
        plan.append((np.subtract, x, update * length, x))


class Muon(Optimizer):
    """Steps in the direction of the momentum, all of whose singular values become 1.

    The directions are computed in bfloat16, as in PyTorch, and so are known to about
    three digits. For parameters that are matrices; move the others by AdamW.

    Args:
        params: see ``Optimizer``.
        lr: the step length.
        weight_decay: shrinks the parameters themselves.
        momentum: how much of the mean of gradients is kept at each step.
        nesterov: look ahead by one step of momentum.
        ns_coefficients: a, b and c of the polynomial a x + b x³ + c x⁵, which takes
            singular values nearer to 1 each time.
        eps: the least norm that a momentum is divided by.
        ns_steps: how often the polynomial is applied.
        adjust_lr_fn: ``"original"`` for the length of Jordan et al., by the ratio of
            sides, ``"spectral_unclamped"`` for theirs also where there are more
            columns, or ``"match_rms_adamw"`` for one that is as long as AdamW's.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True)
        >>> optimizer = torch.optim.Muon([p], lr=0.1, weight_decay=0.0)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> (p.detach() * 100).round()
        tensor([[ 89.,   0.],
                [  0., 193.]])

    References:
        Jordan et al. (2024); Liu et al. (2025), for the second length.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Any = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        checked_rate(lr)
        if momentum < 0:
            raise OptionError(f"momentum should be >= 0 but is: {momentum}")
        if weight_decay < 0:
            raise OptionError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in _LENGTHS:
            raise OptionError(
                f"Adjust learning rate function {adjust_lr_fn} is not supported"
            )
        super().__init__(
            params,
            {"lr": lr, "weight_decay": weight_decay, "momentum": momentum}
            | {"nesterov": nesterov, "ns_coefficients": ns_coefficients, "eps": eps}
            | {"ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn},
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if p.ndim != 2:
                raise OptionError(
                    f"Muon only supports 2D parameters whereas we found a parameter "
                    f"with size: {p.size()}"
                )

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, group: Any, plan: Plan
    ) -> None:
        _refuse_complex(self, p)
        lr, momentum = float(group["lr"]), group["momentum"]
        buffer = kept(state, "momentum_buffer", p)
        update = buffer + (g - buffer) * (1 - momentum)
        plan.append((setitem, buffer, ..., update))
        if group["nesterov"]:
            update = g + (update - g) * momentum
        coefficients, count = group["ns_coefficients"], group["ns_steps"]
        update = _orthogonal(update, coefficients, count, group["eps"])
        self.decayed(x, g, group["weight_decay"], plan, lr)
        length = lr * _LENGTHS[group["adjust_lr_fn"]](*x.shape)
        plan.append((np.subtract, x, update.astype(x.dtype) * length, x))


_LENGTHS: dict[str | None, Any] = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "spectral_unclamped": lambda rows, columns: math.sqrt(rows / columns),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}
_LENGTHS[None] = _LENGTHS["original"]


def _orthogonal(x: Any, coefficients: Any, count: int, eps: float) -> Any:
    """Each singular value led to 1 by a polynomial, in steps of bfloat16."""
    if count >= 100:
        raise OptionError(
            "Number of steps must be less than 100 for computational efficiency"
        )
    a, b, c = coefficients
    wide = x.shape[0] <= x.shape[1]
    x = _short(x if wide else x.T)
    x = _short(x / np.maximum(_short(np.linalg.norm(x).reshape(1, 1)), eps))
    for _ in range(count):
        gram = _short(x @ x.T)
        x = _short(a * x + _short(b * gram + c * (gram @ gram)) @ x)
    return x if wide else x.T


def _short(x: Any) -> Any:
    """The nearest numbers of bfloat16, as float32: its upper half, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    bits += 0x7FFF + (bits >> 16 & 1)
    return (bits & 0xFFFF0000).view(np.float32)


def _root_mean_square(x: Any) -> float:
    return float(np.linalg.norm(x.reshape(-1))) / max(1, x.size) ** 0.5


def _following(state: Any, name: str, new: Any, share: float, plan: Plan) -> Any:
    """A mean that is kept under a name, after this step."""
    if name not in state:
        state[name] = fresh(np.zeros_like(new))
    mean = in_memory(state[name])
    plan.append((setitem, mean, ..., after := mean + (new - mean) * share))
    return after


def _refuse_complex(optimizer: Optimizer, p: Tensor) -> None:
    if p.is_complex():
        name = type(optimizer).__name__
        raise MissingRuleError(f"{name} does not support complex parameters")
