"""The older path of ``torch.func.functional_call``."""

import warnings
from typing import Any

from lantern.torch.func import stateless

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """As ``torch.func.functional_call``, with a warning that it has moved there.

    Example:
        >>> import warnings
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.utils.stateless import functional_call
        >>> warnings.simplefilter("ignore", FutureWarning)
        >>> model = torch.nn.Linear(1, 1, bias=False)
        >>> functional_call(model, {"weight": torch.tensor([[3.0]])}, torch.ones(1))
        tensor([3.])
    """
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0. Please use "
        "`torch.func.functional_call`.",
        FutureWarning,
        stacklevel=2,
    )
    return stateless.functional_call(
        module,
        parameters_and_buffers,
        args,
        kwargs,
        tie_weights=tie_weights,
        strict=strict,
    )
