"""Utilities of training loops: what they do with all parameters at once."""

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from lantern.eager.versions import written
from lantern.errors import EagerError
from lantern.torch.methods import table
from lantern.torch.nn.utils import rnn as rnn
from lantern.torch.run.aliases import lead, missing
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "skip_init",
    "vector_to_parameters",
]

_NORMS = ("remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm")
_PARTS = "fusion norms parametrizations parametrize prune stateless".split()
lead(__name__, "clip_grad convert_parameters")


def _gradients(parameters: Any) -> list[Any]:
    """The gradients that there are."""
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:
    """The norm of all tensors in a row.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)
    """
    arrays = [base(x) for x in ([tensors] if isinstance(tensors, Tensor) else tensors)]
    if not arrays:
        return fresh(np.asarray(0.0, np.float32))
    norm_type = float(norm_type)
    if norm_type == 2:
        total = np.sqrt(sum(np.vdot(a, a).real for a in arrays))
    else:
        norms = [np.linalg.norm(a.reshape(-1), norm_type) for a in arrays]
        total = np.linalg.norm(np.stack(norms), norm_type)
    if error_if_nonfinite and not np.isfinite(total):
        raise EagerError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            f"non-finite, so it cannot be clipped. To disable this error and scale "
            f"the gradients by the non-finite norm anyway, set "
            f"`error_if_nonfinite=False`"
        )
    return fresh(as_array(total, arrays[0].dtype))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:
    """Scale all gradients, so that their norm in a row is limited; what it was.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> p.grad = torch.tensor([4.0])
        >>> torch.nn.utils.clip_grad_norm_([p], 2.0)
        tensor(4.)
        >>> p.grad
        tensor([2.0000])
    """
    gradients = _gradients(parameters)
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    factor: Any
    if isinstance(total.primal, np.ndarray | np.generic):
        factor = float(max_norm) / (float(total) + 1e-6)
        if factor >= 1:
            return total
    else:  # a GPU need not wait until the host knows
        factor = np.minimum(float(max_norm) / (total.primal + 1e-6), 1)
    for grad in gradients:
        array = in_memory(grad)
        array *= factor
        written(array)
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: Any = None
) -> None:
    """Scale all gradients whose norm is known, so that it is limited.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.tensor([1.0], requires_grad=True)
        >>> p.grad = torch.tensor([4.0])
        >>> torch.nn.utils.clip_grads_with_norm_([p], 2.0, torch.tensor(8.0))
        >>> p.grad
        tensor([1.0000])
    """
    factor = np.minimum(float(max_norm) / (total_norm.primal + 1e-6), 1)
    for grad in _gradients(parameters):
        array = in_memory(grad)
        array *= as_array(factor, array.dtype)
        written(array)


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module; its first values are drawn all the same.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3)
        Linear(in_features=2, out_features=3, bias=True)
    """
    return module_cls(*args, **kwargs)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Limit every element of all gradients.

    Example:
        >>> import lantern.torch as torch
        >>> p = torch.zeros(2, requires_grad=True)
        >>> p.grad = torch.tensor([4.0, -0.5])
        >>> torch.nn.utils.clip_grad_value_([p], 1.0)
        >>> p.grad
        tensor([ 1.0000, -0.5000])
    """
    for grad in _gradients(parameters):
        array = in_memory(grad)
        np.clip(array, -clip_value, clip_value, out=array)
        written(array)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters in a row.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.utils.parameters_to_vector([torch.ones(2, 2), torch.zeros(3)])
        tensor([1., 1., 1., 1., 0., 0., 0.])
    """
    return table.FUNCTIONS["cat"]([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Any]) -> None:
    """Give all parameters the values of a row.

    Example:
        >>> import lantern.torch as torch
        >>> p, q = torch.zeros(2), torch.zeros(1)
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), [p, q])
        >>> p.tolist(), q.tolist()
        ([1.0, 2.0], [3.0])
    """
    start = 0
    for p in parameters:
        n = base(p).size
        p.data = vec[start : start + n].detach().reshape(base(p).shape).clone()
        start += n


# As it was called once.
clip_grad_norm = clip_grad_norm_


if TYPE_CHECKING:
    from lantern.torch.nn.utils import parametrizations as parametrizations
    from lantern.torch.nn.utils import parametrize as parametrize
    from lantern.torch.nn.utils import prune as prune
    from lantern.torch.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from lantern.torch.nn.utils.fusion import (
        fuse_conv_bn_weights as fuse_conv_bn_weights,
    )
    from lantern.torch.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
    from lantern.torch.nn.utils.fusion import (
        fuse_linear_bn_weights as fuse_linear_bn_weights,
    )
    from lantern.torch.nn.utils.norms import (
        remove_spectral_norm as remove_spectral_norm,
    )
    from lantern.torch.nn.utils.norms import remove_weight_norm as remove_weight_norm
    from lantern.torch.nn.utils.norms import spectral_norm as spectral_norm
    from lantern.torch.nn.utils.norms import weight_norm as weight_norm
else:

    def __getattr__(name: str) -> Any:
        """A part that is imported when it is asked for; else the nearest name."""
        if name in _PARTS:
            return importlib.import_module(f"lantern.torch.nn.utils.{name}")
        if name.startswith("fuse_"):
            return getattr(
                importlib.import_module("lantern.torch.nn.utils.fusion"), name
            )
        if name in _NORMS:
            part = importlib.import_module("lantern.torch.nn.utils.norms")
            return getattr(part, name)
        raise missing("module 'torch.nn.utils'", name, globals(), _NORMS)
