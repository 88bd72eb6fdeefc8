"""Examples joined to a batch."""

import re
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
    if len(default_collate_fn_map) > len(_KINDS) and type(first) not in _KINDS:
        for kind, function in list(default_collate_fn_map.items())[len(_KINDS) :]:
            if isinstance(first, kind):  # of a class that a program has added
                return function(batch, collate_fn_map=default_collate_fn_map)
    return _of_kind(batch)


def _of_kind(batch: Any, *, collate_fn_map: Any = None) -> Any:
    first = batch[0]
    if isinstance(first, Tensor):
        if all(type(x) is Tensor and x.level is UNTRACKED for x in batch):
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


def collate(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """As ``default_collate``, with functions of one's own for classes.

    Args:
        batch: a list of examples of one form.
        collate_fn_map: for a class, or several, what joins a list of its objects; it
            gets ``collate_fn_map`` as well. The first that fits an example counts.

    Example:
        >>> from lantern.torch.utils.data._utils.collate import collate
        >>> def largest(batch, *, collate_fn_map=None):
        ...     return max(batch)
        >>> collate([["a", 1], ["bc", 2]], collate_fn_map={str: largest, int: largest})
        ['bc', 2]
    """
    first, known = batch[0], collate_fn_map or {}
    found = known.get(type(first))
    if found is None:
        fits = (f for kind, f in known.items() if isinstance(first, kind))
        found = next(fits, None)
    if found is not None:
        return found(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        rows = {k: [x[k] for x in batch] for k in first}
        joined = {k: collate(row, collate_fn_map=known) for k, row in rows.items()}
        return _like_mapping(first, joined)
    if isinstance(first, Sequence) and not isinstance(first, str | bytes):
        if any(len(x) != len(first) for x in batch):
            raise EagerError("each element in list of batch should be of equal size")
        parts = [
            collate(list(p), collate_fn_map=known) for p in zip(*batch, strict=True)
        ]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return _like_sequence(first, parts)
    raise ArgumentError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
        f"lists; found {type(first)}"
    )


# PyTorch's names of what joins examples of one class, and the table that programs add
# to: what they add counts for ``default_collate`` as well.
collate_tensor_fn = collate_numpy_array_fn = collate_numpy_scalar_fn = _of_kind
collate_float_fn = collate_int_fn = collate_str_fn = _of_kind
np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
    "lists; found {}"
)
_KINDS = (Tensor, np.ndarray, (np.bool_, np.number, np.object_), float, int, str, bytes)
default_collate_fn_map: dict[Any, Any] = dict.fromkeys(_KINDS, _of_kind)
