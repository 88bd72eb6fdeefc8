"""The base of optimisers: groups of parameters with options, state by parameter."""

import warnings
from collections import defaultdict
from collections.abc import Callable
from copy import copy, deepcopy
from itertools import chain
from typing import Any

import numpy as np

from lantern.core.contribution import Contribution
from lantern.eager.grad_mode import enable_grad
from lantern.eager.recorder import Recorder
from lantern.eager.versions import written
from lantern.errors import ArgumentError, OptionError
from lantern.tensor.backend.blas import adding_multiple
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.torch.functions.creation import tensor, zeros_like
from lantern.torch.optim.hooks import (
    Hooked,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from lantern.torch.optim.plan import BLOCK, Plan, carry_out
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import plain_number
from lantern.torch.tensor.dtypes import CPU
from lantern.torch.tensor.layouts import like_leaf
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

_LARGE = 1 << 15  # elements: for fewer, NumPy's two passes take less time than a call


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def __getattr__(name: str) -> Any:
    """What else optimisers of libraries are written with."""
    from lantern.torch.optim import inner

    return getattr(inner, name)


def tracked(function: Callable[[], Any]) -> Any:
    """What a closure returns, its operations kept."""
    with enable_grad():
        return function()


def with_gradients(group: dict[str, Any]) -> list[tuple[Tensor, Any, Any]]:
    """The parameters with a gradient, their arrays, and it, in the form that it has.

    The arrays are about to be written to: that is noted here.
    """
    found, arrays = [], []
    for p in group["params"]:
        receiver = p.receiver
        grad = receiver.grad if type(receiver) is Recorder else p.grad
        if grad is None:
            continue
        array = p.primal
        if type(array) not in buffers:
            array = in_memory(p)
        if isinstance(grad, Tensor):
            grad = grad.primal
        found.append((p, array, grad))
        arrays.append(array)
    written(*arrays)
    return found


class Optimizer(Hooked):
    """Moves parameters by their gradients, in place.

    Args:
        params: parameters, pairs of a name and a parameter, or dictionaries with
            ``params`` and options of their own.
        defaults: the options of all other groups.

    Attributes:
        param_groups: dictionaries with ``params`` and options.
        state: by parameter, what is kept from step to step.

    Example:
        >>> import lantern.torch as torch
        >>> class Descent(torch.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...
        ...     @torch.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p -= group["lr"] * p.grad
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> optimizer = Descent([p], lr=0.25)
        >>> p.square().sum().backward()
        >>> optimizer.step()
        >>> p.data
        tensor([0.5000])
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise ArgumentError(
                f"params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {type(params).__name__}"
            )
        self.defaults = defaults
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._scratch: dict[Any, Any] = {}
        self._without_hooks()
        self._opt_called = False
        groups = list(params)
        if not groups:
            raise OptionError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise ArgumentError(
                f"param_group must be a dict, but got {type(param_group)}"
            )
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise ArgumentError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. Please use "
                "a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names:
            if len(names) < len(params):
                raise OptionError(
                    "all optimizer params should be with/without names. Some param "
                    "names are missing"
                )
            param_group["param_names"] = names
            params = [p for _, p in params]
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                raise OptionError(
                    f"all optimizer param groups should be with/without names. cannot "
                    f"add param group {'with' if names else 'without'} names to the "
                    f"optimizer"
                )
        for p in params:
            if not isinstance(p, Tensor):
                raise ArgumentError(
                    f"optimizer can only optimize Tensors, but one of the params is "
                    f"{type(p).__name__}"
                )
            tracked = self.defaults.get("differentiable") or p.retains_grad
            if not (p.is_leaf or tracked):
                raise OptionError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) < len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in "
                "future, this will cause an error",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if known & {id(p) for p in params}:
            raise OptionError("some parameters appear in more than one parameter group")
        param_group["params"] = params
        for name, value in self.defaults.items():
            if value is required and name not in param_group:
                raise OptionError(
                    f"parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            param_group.setdefault(name, value)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or make them 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    receiver = p.receiver
                    if type(receiver) is Recorder:
                        receiver.grad = None
                    else:
                        p.grad = None
                elif p.grad is not None:
                    p.grad = p.grad.detach().zero_()

    def step(self, closure: Any = None) -> Any:
        """Move all parameters that have a gradient.

        Args:
            closure: computes the loss and its gradients again, and returns the loss.

        Returns:
            What the closure returned.
        """
        loss = None if closure is None else tracked(closure)
        plan = Plan()
        for group in self.param_groups:
            self._group(group, plan)
        carry_out(plan)
        return loss

    def _group(self, group: dict[str, Any], plan: Plan) -> None:
        """Plan to move the parameters of one group."""
        if group.get("differentiable"):
            from lantern.torch.optim.differentiable import move_tracked

            move_tracked(self, group)
            return
        sign = -1 if group.get("maximize") else 1
        options = self._options(group)
        for p, array, grad in with_gradients(group):
            g = p.grad.primal if isinstance(grad, Contribution) else grad
            if sign < 0:
                g = np.negative(g)  # at once: a step may look at it while it plans
            large, start = array.size > 2 * BLOCK, len(plan)
            g = like_leaf(array, g) if large else g
            x = parts(array)
            self._move(p, x, parts(g), self.state[p], options, plan)
            if large and type(x) is np.ndarray:
                plan.cut(start, x, self._scratch.values())

    def _options(self, group: dict[str, Any]) -> Any:
        """What ``_move`` needs of a group's options."""
        return group

    def _move(
        self, p: Tensor, x: Any, g: Any, state: Any, options: Any, plan: Plan
    ) -> None:
        """Plan to move one parameter: nothing that it has, or keeps, changes here.

        Args:
            p: the parameter.
            x: its array; of complex numbers, their parts, along an axis more.
            g: the array of its gradient, likewise, which must stay as it is.
            state: what is kept for it.
            options: what ``_options`` made of the group.
            plan: gets a function and its arguments, in a tuple, for each call.
        """
        raise NotImplementedError

    def scratch(self, x: Any, which: Any = 0) -> Any:
        """An array like x for a plan to compute in, the same one every time."""
        key = (x.shape, x.dtype, which)
        found = self._scratch.get(key)
        if found is None or type(found) is not type(x):
            found = self._scratch[key] = np.empty_like(x)
        return found

    def shift(self, x: Any, g: Any, factor: float, plan: Plan) -> None:
        """Plan ``x += factor * g``: of large arrays in one pass, if they lie alike."""
        one = adding_multiple(x, g, factor) if x.size > _LARGE else None
        if one is not None:
            plan.append(one)
            return
        out = self.scratch(x)
        plan.append((np.multiply, g, factor, out))
        plan.append((np.add, x, out, x))

    def decayed(
        self, x: Any, g: Any, weight_decay: float, plan: Plan, lr: float | None = None
    ) -> Any:
        """The gradient with that of ``weight_decay / 2 * sum(x * x)``.

        With a step length the decay is decoupled: x itself shrinks, g stays as it is.
        """
        if not weight_decay:
            return g
        if lr is not None:
            plan.append((np.multiply, x, 1 - lr * weight_decay, x))
            return g
        out = self.scratch(x, "decay")
        plan.append((np.multiply, x, weight_decay, out))
        plan.append((np.add, out, g, out))
        return out

    # --- state ------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What is kept, by numbers of the parameters, and the groups' options."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(p)] if isinstance(p, Tensor) else p: copy(kept)
            for p, kept in self.state.items()
            if kept or not isinstance(kept, dict)
        }
        packed = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            packed = hook(self, packed) or packed
        return packed

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on where another optimiser of such parameters was."""
        state_dict = copy(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            state_dict = hook(self, state_dict) or state_dict
        groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise OptionError(
                "loaded state dict has a different number of parameter groups"
            )
        for mine, other in zip(self.param_groups, groups, strict=True):
            if len(mine["params"]) != len(other["params"]):
                raise OptionError(
                    "loaded state dict contains a parameter group that doesn't match "
                    "the size of optimizer's group"
                )
        numbers = chain.from_iterable(group["params"] for group in groups)
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        by_number = dict(zip(numbers, params, strict=True))
        self.state = defaultdict(dict)
        for key, kept in state_dict["state"].items():
            p = by_number.get(key, key)
            if isinstance(kept, dict):
                kept = {name: _like(x, p, name) for name, x in kept.items()}
            self.state[p] = kept
        for mine, other in zip(self.param_groups, groups, strict=True):
            mine.update({k: v for k, v in other.items() if k != "params"})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
            if i + 1 < len(self.param_groups):
                lines.append("")
        return "\n".join([*lines, ")"])


# Numbers that are kept as tensors of the CPU, wherever the parameters lie.
_ON_HOST = frozenset({"step", "mu_product", "eta", "mu"})


def _like(x: Any, p: Any, name: str) -> Any:
    """A copy of something kept, in the parameter's own type and place."""
    if not isinstance(x, Tensor):
        number = name == "step" and isinstance(x, int | float)
        return tensor(float(x), device=CPU) if number else deepcopy(x)
    if name in _ON_HOST:
        return x.detach().cpu().clone()
    if not isinstance(p, Tensor):
        return x.detach().clone()
    return x.detach().to(dtype=p.dtype, device=p.device).clone()


def parts(array: Any) -> Any:
    """Complex numbers as their two parts, in the same memory; others as they are."""
    if array.dtype.kind != "c":
        return array
    return array[..., None].view(array.real.dtype)


def kept(state: Any, name: str, p: Tensor, start: Any = 0) -> Any:
    """The array that is kept under a name; at first, of one number."""
    if name not in state:
        state[name] = zeros_like(p.detach())
        if start:
            parts(in_memory(state[name]))[...] = start
    return parts(in_memory(state[name]))


def counted(state: Any, plan: Plan) -> int:
    """How often this parameter will have been moved, this time included."""
    if "step" not in state:
        state["step"] = tensor(0.0, device=CPU)
    step = in_memory(state["step"])
    plan.append((np.add, step, 1, step))
    return int(step) + 1


def checked(**options: Any) -> None:
    """Raise, in PyTorch's words, for what may not be negative, or is of another form.

    ``foreach`` and ``capturable`` have no effect but which errors there are.
    """
    words = {
        "lr": "learning rate",
        "eps": "epsilon value",
        "weight_decay": "weight_decay value",
        "momentum": "momentum value",
        "rho": "rho value",
        "alpha": "alpha value",
        "lr_decay": "lr_decay value",
        "initial_accumulator_value": "initial_accumulator_value value",
        "momentum_decay": "momentum_decay value",
    }
    foreach, capturable = (options.pop(n, None) for n in ("foreach", "capturable"))
    for name in ("lr", "betas"):
        _check_tensors(name, options.get(name), bool(foreach and not capturable))
    for name, value in options.items():
        if name == "betas":
            for i, beta in enumerate(value):
                if not 0 <= float(beta) < 1:
                    raise OptionError(f"Invalid beta parameter at index {i}: {beta}")
        elif float(base(value)) < 0 or (name == "rho" and value > 1):
            raise OptionError(f"Invalid {words[name]}: {value}")


def checked_rate(lr: Any) -> None:
    """Raise, in the words of PyTorch's newer optimisers, for a wrong step length."""
    _check_tensors("lr", lr, False)
    if float(lr) < 0:
        raise OptionError(f"Learning rate should be >= 0 but is: {lr}")


def _check_tensors(name: str, value: Any, together: bool) -> None:
    """Raise if step length or betas are tensors in a form that PyTorch refuses."""
    parts = value if name == "betas" else (value,)
    tensors = [isinstance(plain_number(name, x), Tensor) for x in parts or ()]
    if name == "lr" and tensors[0] and base(value).size != 1:
        raise OptionError("Tensor lr must be 1-element")
    if name == "betas" and len(set(tensors)) > 1:
        raise OptionError("betas must be either both floats or both Tensors")
    if any(tensors) and together:
        raise OptionError(
            f"{name}{'[0]' * (name == 'betas')} as a Tensor is not supported for "
            f"capturable=False and foreach=True"
        )


def options_of(**options: Any) -> dict[str, Any]:
    """A group's options, with those that have no effect here."""
    return options | {
        "maximize": options.get("maximize", False),
        "foreach": None,
        "differentiable": options.get("differentiable", False),
    }
