"""A tensor that a module counts among its parameters."""

from typing import Any

from lantern.torch.tensor import NOBODY, Tensor
from lantern.value import UNTRACKED, base

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A tensor that becomes a parameter of the module to which it is assigned.

    Args:
        data: a tensor, whose memory it shares.
        requires_grad: whether a derivative may be asked for.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Parameter(torch.ones(2))
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """A parameter around the memory of a tensor."""
        from lantern.torch.creation import tensor

        if data is None:
            data = tensor([])
        x = object.__new__(cls)
        x.primal, x.prompt, x.receiver, x.viewed = base(data), UNTRACKED, NOBODY, None
        return x.requires_grad_() if requires_grad else x

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module to which it is assigned.

    Args:
        data: a tensor, whose memory it shares.
        persistent: whether it belongs to the module's state.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Module()
        >>> model.mean = torch.nn.Buffer(torch.zeros(2))
        >>> list(model.state_dict()), list(model.parameters())
        (['mean'], [])
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """A buffer around the memory of a tensor."""
        x: Any = object.__new__(cls)
        x.primal, x.prompt, x.receiver, x.viewed = base(data), UNTRACKED, NOBODY, None
        x.persistent = persistent
        return x
