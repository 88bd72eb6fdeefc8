"""The package ``functorch``: ``torch.func`` with names of its own for modules."""

import copy
import warnings
from functools import wraps
from typing import Any

from lantern.torch import func
from lantern.torch.func.stateless import functional_call, stack_module_state
from lantern.torch.nn.module import Module

__all__ = [
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


def _older(function: Any, new: str) -> Any:
    """A function that says where its successor stands."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        warnings.warn(
            f"functorch.{function.__name__} is deprecated. Please use `{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **options)

    return call


__path__: list[str] = []  # of functorch.experimental
globals().update({name: getattr(func, name) for name in vars(func) if name[0] != "_"})
for _name in "grad grad_and_value hessian jacfwd jacrev jvp vjp".split():
    globals()[_name] = _older(getattr(func, _name), f"torch.func.{_name}")
globals()["vmap"] = _older(func.vmap, "torch.vmap")


def _stateless(model: Any) -> Any:
    """A copy of a module, the names of its parameters, and those of its buffers."""
    bare = copy.deepcopy(model)
    return bare, [n for n, _ in bare.named_parameters()], dict(bare.named_buffers())


class FunctionalModule(Module):
    """A module as a function of its parameters.

    Args:
        model: the module.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        bare, self.param_names, buffers = _stateless(model)
        self.buffer_names = list(buffers)
        self.__dict__["stateless_model"] = bare

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module returns with these parameters."""
        state = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModuleWithBuffers(FunctionalModule):
    """A module as a function of its parameters and its buffers.

    Args:
        model: the module.
    """

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module returns with these parameters and buffers."""
        state = dict(zip(self.param_names, params, strict=True))
        state |= zip(self.buffer_names, buffers, strict=True)
        return functional_call(self.stateless_model, state, args, kwargs)


def _values(tensors: Any, disable_autograd_tracking: bool) -> tuple[Any, ...]:
    if disable_autograd_tracking:
        return tuple(x.detach() for x in tensors)
    return tuple(tensors)


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> Any:
    """A module as a function of its parameters, and the parameters.

    Args:
        model: a module without buffers.
        disable_autograd_tracking: whether the parameters are plain.

    Example:
        >>> import lantern.torch as torch
        >>> function, weights = torch.functorch.make_functional(torch.nn.Linear(2, 1))
        >>> function([0 * w + 1 for w in weights], torch.ones(2)).item()
        3.0
    """
    parameters = _values(model.parameters(), disable_autograd_tracking)
    return FunctionalModule(model), parameters


def make_functional_with_buffers(
    model: Any, disable_autograd_tracking: bool = False
) -> Any:
    """A module as a function of its parameters and buffers, and both of these.

    Args:
        model: a module.
        disable_autograd_tracking: whether the parameters are plain.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.BatchNorm1d(2)
        >>> _, weights, buffers = torch.functorch.make_functional_with_buffers(layer)
        >>> len(weights), len(buffers)
        (2, 3)
    """
    parameters = _values(model.parameters(), disable_autograd_tracking)
    return FunctionalModuleWithBuffers(model), parameters, tuple(model.buffers())


def combine_state_for_ensemble(models: Any) -> Any:
    """Several modules of one kind as a function, their parameters and buffers stacked.

    Args:
        models: the modules.

    Example:
        >>> import lantern.torch as torch
        >>> pair = [torch.nn.Linear(2, 1) for _ in range(2)]
        >>> _, weights, _ = torch.functorch.combine_state_for_ensemble(pair)
        >>> weights[0].shape
        torch.Size([2, 1, 2])
    """
    parameters, buffers = stack_module_state(models)
    function = FunctionalModuleWithBuffers(models[0])
    return function, tuple(parameters.values()), tuple(buffers.values())
