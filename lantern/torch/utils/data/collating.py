"""Examples joined to a batch."""

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from typing import Any

import numpy as np

from lantern.core.value import UNTRACKED
from lantern.errors import ArgumentError, EagerError
from lantern.torch.functions.creation import as_tensor, tensor
from lantern.torch.methods import table
from lantern.torch.tensor.dtypes import float64
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: Any) -> Any:
    """Tensors and numbers stacked; structures of them, part by part.

    Args:
        batch: a list of examples of one form.

    Raises:
        RuntimeError: if the examples are of different sizes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.utils.data.default_collate([{"x": 1.5, "y": 0}, {"x": 2.5, "y": 1}])
        {'x': tensor([1.5000, 2.5000], dtype=torch.float64), 'y': tensor([0, 1])}
    """
    first = batch[0]
    if isinstance(first, Tensor):
        if all(x.level is UNTRACKED for x in batch):
            try:
                return fresh(np.stack([x.primal for x in batch]))
            except ValueError:
                pass
        return table.FUNCTIONS["stack"](list(batch))
    if isinstance(first, np.ndarray | np.generic) and first.dtype.kind not in "SUO":
        return default_collate([as_tensor(np.asarray(x)) for x in batch])
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        joined = {k: default_collate([x[k] for x in batch]) for k in first}
        return _like_mapping(first, joined)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(x) != len(first) for x in batch):
            raise EagerError("each element in list of batch should be of equal size")
        parts = [default_collate(list(part)) for part in zip(*batch, strict=True)]
        return _like_sequence(first, parts)
    raise ArgumentError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
        f"lists; found {type(first)}"
    )


def _like_mapping(first: Any, parts: dict[Any, Any]) -> Any:
    """Parts in a mapping of the first one's class, with what else it holds."""
    if type(first) is dict:
        return parts
    try:
        if isinstance(first, MutableMapping):
            whole = copy(first)
            whole.update(parts)
            return whole
        return type(first)(parts)
    except TypeError:  # of a class that is made of something else
        return parts


def _like_sequence(first: Any, parts: list[Any]) -> Any:
    """Parts in a sequence of the first one's class; for a tuple, as ever, a list."""
    if type(first) is list or isinstance(first, tuple):
        return parts
    try:
        if isinstance(first, MutableSequence):
            whole = copy(first)
            whole[:] = parts
            return whole
        return type(first)(parts)
    except TypeError:
        return parts


def default_convert(data: Any) -> Any:
    """Arrays as tensors, wherever they are in a structure.

    Example:
        >>> import lantern.torch as torch
        >>> import numpy as np
        >>> torch.utils.data.default_convert([np.ones(2), "a"])
        [tensor([1., 1.], dtype=torch.float64), 'a']
    """
    if isinstance(data, np.ndarray | np.generic) and data.dtype.kind not in "SUO":
        return as_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return _like_mapping(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like_sequence(data, [default_convert(x) for x in data])
    return data
