"""Functions of eager tensors as functions of arrays, tracked or not."""

from typing import Any

import numpy as np

from lantern.core.value import Value
from lantern.torch.tensor.tensor import numpy_face, torch_face

__all__ = ["on_arrays"]


def on_arrays(function: Any, *args: Any, **options: Any) -> Any:
    """What a function of ``lantern.torch`` gives, its arrays and ours alike.

    Example:
        >>> import numpy as np
        >>> import lantern.torch as torch
        >>> on_arrays(torch.nn.functional.relu, np.array([-1.0, 2.0]))
        array([0., 2.])
    """
    z = function(*map(_tensor, args), **options)
    return tuple(map(numpy_face, z)) if isinstance(z, tuple) else numpy_face(z)


def _tensor(x: Any) -> Any:
    return torch_face(x) if isinstance(x, Value | np.ndarray) else x
