"""Reading parts of a tensor by positions and masks; tensors with parts changed."""

import math
import warnings
from typing import Any

import numpy as np

from lantern.core.residuals import copied
from lantern.core.value import UNTRACKED, Value
from lantern.errors import EagerError, PositionError, ShapeError
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.tensor.ops import at
from lantern.tensor.ops import indexing as ours
from lantern.torch.functions.reduction import axis_of
from lantern.torch.functions.shape import _read
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.batches import of_all_examples
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import as_array, beside, grid
from lantern.torch.tensor.error_messages import check_together, several_axes
from lantern.torch.tensor.operators import as_kind, as_view, call, cast, in_memory
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face, torch_face
from lantern.torch.tensor.views import alone
from lantern.vectorizing.batched import Batched

_BASIC = (int, slice, type(None), type(...))
_MANY = 1 << 12  # positions


def plain_index(index: Any) -> Any:
    """An index of plain values, and whether it makes a view."""
    if type(index) in _BASIC:
        if type(index) is slice and index.step is not None:
            index = _plain_slice(index)
        return index, True
    if type(index) is not tuple:
        index = several_axes(index)
    parts, basic = [], True
    for part in index:
        if type(part) is slice:  # in no call: a step of a gated unit takes 1 % less
            step, start, stop = part.step, part.start, part.stop
            if step is not None or type(start) is Tensor or type(stop) is Tensor:
                part = _plain_slice(part)
        elif type(part) not in _BASIC:
            part, is_basic = _plain_part(part)
            basic = basic and is_basic
        parts.append(part)
    return tuple(parts), basic


def _plain_slice(part: slice) -> slice:
    bounds = part.start, part.stop, part.step
    if part.step is not None and part.step <= 0:
        raise ShapeError("step must be greater than zero")
    if Tensor not in map(type, bounds):
        return part
    return slice(*(int(b) if isinstance(b, Tensor) else b for b in bounds))


def _plain_part(part: Any) -> tuple[Any, bool]:
    if isinstance(part, bool | np.bool_):
        return bool(part), False
    if isinstance(part, np.integer):
        return int(part), True
    if isinstance(part, list | tuple | range):
        part = np.array([p.item() if isinstance(p, Tensor) else p for p in part])
        part = part if part.size else part.astype(int)
    array = base(part)
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind not in ("i", "u", "b"):
        raise PositionError(
            "tensors used as indices must be long, int, byte or bool tensors"
        )
    old = kind == "u" and array.dtype == np.uint8
    if old and (array.shape or isinstance(part, Tensor)):
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype "
            "torch.bool instead.",
            stacklevel=4,
        )
        return array.astype(bool), False
    if not array.shape and kind != "b" and type(array) is not Batched:
        return int(array), True
    return copied(array), False


def numbers_apart(index: Any) -> Any:
    """A plain index's numbers, and its other parts, where those have to come later.

    In PyTorch a number takes its axis away before positions are looked at, in NumPy it
    is a position like them: ``x[0, :, [1, 2]]`` has the positions' axis last or first.

    Returns:
        Two indices, of which the second is for what the first one gives; None where
        both libraries mean the same.
    """
    if type(index) is not tuple or int not in map(type, index):
        return None
    stand = [i for i, p in enumerate(index) if type(p) not in _BASIC or type(p) is int]
    if stand[-1] - stand[0] < len(stand):
        return None  # side by side
    numbers: list[Any] = []
    for part in index:
        if type(part) is int or part is ...:
            numbers.append(part)
        elif part is not None and type(part) is not bool:
            masks = getattr(getattr(part, "dtype", None), "kind", "") == "b"
            numbers += [slice(None)] * (part.ndim if masks else 1)
    return tuple(numbers), tuple(p for p in index if type(p) is not int)


def _check_index(index: Any, array: Any) -> None:
    """NumPy's complaint about an index, in PyTorch's words."""
    parts = index if type(index) is tuple else (index,)
    used = sum(
        0
        if p is None or p is ... or type(p) is bool
        else getattr(p, "ndim", 1)
        if getattr(getattr(p, "dtype", None), "kind", "") == "b"
        else 1
        for p in parts
    )
    if used > array.ndim:
        raise PositionError(f"too many indices for tensor of dimension {array.ndim}")
    for axis, part in enumerate(parts):
        if type(part) is int and axis < array.ndim and not any(p is ... for p in parts):
            n = array.shape[axis]
            if not -n <= part < n:
                raise PositionError(
                    f"index {part} is out of bounds for dimension {axis} with size {n}"
                )


def getitem(self: Tensor, index: Any) -> Any:
    """The part ``self[index]``: a view, if the index has no positions or masks."""
    index, basic = plain_index(index)
    array = in_memory(self)
    if basic:
        if type(index) is int:
            if not array.shape:
                raise PositionError(
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                    "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
                )
            index = (index, ...)
        elif type(index) is tuple and ... not in index:
            index = (*index, ...)
        try:
            z = fresh(array[index]) if self.level is UNTRACKED else _read(self, index)
            return as_view(z, self)
        except (IndexError, ValueError) as error:
            raise _refused(index, array, error) from None
    if (apart := numbers_apart(index)) is not None:
        return getitem(getitem(self, apart[0]), apart[1])
    try:
        return call(ours.read_at, self, index=index)
    except TypeError:
        if any(type(part) in buffers - {np.ndarray} for part in index):
            raise EagerError(
                f"indices should be either on cpu or on the same device as the indexed "
                f"tensor ({self.device})"
            ) from None
        raise
    except IndexError as error:
        raise _refused(index, array, error) from None


def _refused(index: Any, array: Any, error: Exception) -> Exception:
    if isinstance(error, ValueError):
        return ShapeError("step must be greater than zero")
    try:
        _check_index(index, array)
    except IndexError as ours:
        return ours
    words = str(error).replace("bounds for axis", "bounds for dimension")
    if "non-empty take from an empty" in words:
        return PositionError("index is out of bounds for dimension with size 0")
    if words.startswith("boolean index did not match"):
        words = (
            f"The shape of a mask does not match the shape of the indexed tensor "
            f"{list(array.shape)}: {words}"
        )
    return PositionError(words)


def put(self: Tensor, index: Any, value: Any) -> Any:
    """The tensor with a value in place of what is at a plain index."""
    if isinstance(value, Value):
        value = as_kind(value, base(self).dtype)
        if base(value).shape[:1] == (1,):
            axes = ours.joined(base(self), index)[index].ndim
            while base(value).ndim > axes and base(value).shape[0] == 1:
                value = value[0]
    x = ours.joined(numpy_face(self), index)
    return torch_face(at.plain_put(x, numpy_face(value), index=index))


def add_at(self: Tensor, index: Any, value: Any) -> Any:
    """The tensor with a value added at a plain index, each time that it is named."""
    if isinstance(value, Value):
        value = as_kind(value, base(self).dtype)
    x, part = ours.joined(numpy_face(self), index), numpy_face(value)
    return torch_face(at.plain_add_at(x, part, index=index))


def lines(array: Any, dim: int, positions: Any) -> Any:
    """The index of positions along each line of an axis, as gather has them."""
    dim = axis_of(dim, array.ndim)
    if not array.shape:
        return (...,)
    others = grid(positions.shape, positions)
    return (*others[:dim], positions, *others[dim + 1 :])


def changed_at_lines(
    change: Any, input: Tensor, dim: int, positions: Any, value: Any
) -> Any:
    """A tensor with a value put, or added, at positions along each line of an axis."""
    x, index = _placed(input, dim, positions)
    z = change(x, index, value)
    return z if x is input else z.reshape(base(input).shape)


def _placed(input: Tensor, dim: int, positions: Any) -> tuple[Tensor, Any]:
    """A tensor, and the index in it of positions along each line of an axis.

    For many positions it lies in a row: one array of them takes NumPy a third of the
    time.
    """
    array = base(input)
    if type(positions) is not np.ndarray or positions.size < _MANY:
        return input, lines(array, dim, positions)
    index = _in_a_row(array.shape, axis_of(dim, array.ndim), positions)
    return input.reshape(-1), index


def _in_a_row(shape: Any, dim: int, positions: Any) -> Any:
    """Positions along lines of an axis, counted in an array of one axis."""
    if (positions < 0).any():
        positions = np.where(positions < 0, positions + shape[dim], positions)
    where = positions * math.prod(shape[dim + 1 :])
    for i, n in enumerate(where.shape):
        if i != dim:
            others = np.arange(n) * math.prod(shape[i + 1 :])
            where += others.reshape(-1, *[1] * (where.ndim - i - 1))
    return where


def _positions(name: str, index: Any, input: Tensor) -> Any:
    array = base(index)
    if type(array) is not type(base(input)):
        check_together(input, index)
    if array.dtype.kind not in "iu":
        raise EagerError(f"{name}(): Expected dtype int64 for index")
    return array


def _checked(name: str, index: Any, length: int, dim: int) -> Any:
    every = of_all_examples(index)
    if every.size and (every.min() < 0 or every.max() >= length):
        wrong = every[(every < 0) | (every >= length)][0].item()
        raise (PositionError if name == "index_select" else EagerError)(
            f"index {wrong} is out of bounds for dimension {dim} with size {length}"
        )
    return index


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Any:
    """Along an axis the elements at positions of their own for each line.

    Shapes:
        input: (n, m); index: (k, l), l lines of k positions for dim 0; result: (k, l)

    Rule:
        z[i, j] = input[index[i, j], j] for dim 0, input[i, index[i, j]] for dim 1;
        what receives several cotangents adds them

    Raises:
        RuntimeError: for an index of other axes, or out of bounds.

    Example:
        >>> import lantern.torch as torch
        >>> torch.gather(
        ...     torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]])
        ... )
        tensor([[1, 1],
                [4, 3]])
    """
    array, positions = base(input), _positions("gather", index, input)
    if not array.shape:
        return input.reshape(()).expand(positions.shape).clone()
    if not positions.size:
        return input.reshape(-1)[:0].reshape(positions.shape)
    if not positions.ndim and array.ndim == 1:
        return gather(input, dim, index.reshape(1)).reshape(())
    if positions.ndim != array.ndim:
        raise EagerError(
            "Index tensor must have the same number of dimensions as input tensor"
        )
    dim = axis_of(dim, array.ndim)
    _checked("gather", positions, array.shape[dim], dim)
    return gathered(input, dim, copied(positions))


def gathered(input: Tensor, dim: int, positions: Any) -> Any:
    """As ``gather``, at positions that are known to be in range."""
    x, index = _placed(input, dim, positions)
    return call(ours.read_at, x, index=index)


def take_along_dim(input: Tensor, indices: Tensor, dim: Any = None) -> Any:
    """As ``gather``, both broadcast along the other axes; without dim, in a row.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[3, 1], [2, 4]])
        >>> torch.take_along_dim(x, x.argsort(dim=1), dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    if base(indices).dtype != np.int64:
        raise EagerError(
            f"torch.take_along_dim(): dtype of indices should be Long but got "
            f"{dtypes.type_name(base(indices).dtype)}"
        )
    if dim is None:
        return input.reshape(-1)[indices.reshape(-1)]
    n, m = base(input).ndim, base(indices).ndim
    if n != m:
        raise EagerError(
            "torch.take_along_dim(): input and indices should have the same number of "
            f"dimensions, but got {n} dimensions for input, and {m} dimensions for "
            "indices"
        )
    axis_of(dim, n)
    return call(ours.take_along_axis, input, base(indices), dim)


def take(input: Tensor, index: Tensor) -> Any:
    """Elements by their positions, all counted along one axis.

    Shapes:
        input: any; index: (...); result: (...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
        tensor([1, 4])
    """
    return alone(input.reshape(-1)[index], input)


def index_select(input: Tensor, dim: int, index: Tensor) -> Any:
    """The parts along an axis at some positions; a copy.

    Shapes:
        input: (..., n, ...); index: (k,); result: (..., k, ...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.index_select(
        ...     torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([1, 1, 0])
        ... )
        tensor([[2, 2, 1],
                [4, 4, 3]])
    """
    array = base(input)
    positions = np.atleast_1d(_positions("index_select", index, input))
    if positions.ndim > 1:
        raise PositionError("index_select(): Index is supposed to be a vector")
    if not array.shape:
        if positions.size != 1:
            raise EagerError(
                f"index_select(): Index to scalar can have only 1 value, got "
                f"{positions.size} value(s)"
            )
        return input.clone()
    dim = axis_of(dim, array.ndim)
    if not array.size and positions.size:
        _check_nothing(positions, array.shape[dim])
    _checked("index_select", positions, array.shape[dim], dim)
    return selected(input, dim, copied(positions))


def _check_nothing(positions: Any, length: int) -> None:
    if not length:
        raise EagerError("index_select(): self indexing axis dim should be positive")
    if positions.max() >= length or positions.min() < 0:
        raise EagerError(
            f"INDICES element is out of DATA bounds, id={positions.max()} "
            f"axis_dim={length}"
        )


def selected(input: Tensor, dim: int, positions: Any) -> Any:
    """As ``index_select``, at positions that are known to be in range."""
    return call(ours.read_at, input, index=(*(slice(None),) * dim, positions))


def masked_select(input: Tensor, mask: Tensor) -> Any:
    """The elements for which a mask holds, in a row.

    Shapes:
        input, mask: (...), broadcast; result: (k,)

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2, 3])
        >>> torch.masked_select(x, x > 1)
        tensor([2, 3])
    """
    if base(mask).dtype.kind != "b":
        raise EagerError("masked_select: expected BoolTensor for mask")
    shape = np.broadcast_shapes(base(input).shape, base(mask).shape)
    return input.expand(shape)[mask.expand(shape)]


def _number(name: str, value: Any, kind: Any) -> Any:
    """A number of a type that can hold it, which goes with the arrays of any device."""
    if kind.kind != "c" and (
        isinstance(value, complex)
        or (kind.kind in "iu" and abs(value) > np.iinfo(kind).max)
    ):
        raise EagerError(
            f"{name} cannot be converted to type {kind} without overflow: {value}"
        )
    return kind.type(value)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Any:
    """The tensor with a value where a mask holds.

    Shapes:
        input, mask: (...), broadcast; value: a number, or (); result: (...)

    Rule:
        input_bar = z_bar, 0 where the mask holds

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2, 3])
        >>> torch.masked_fill(x, x > 1, 0)
        tensor([1, 0, 0])
    """
    from lantern.torch.functions.elementwise import where

    if base(mask).dtype.kind != "b":
        raise EagerError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{mask.dtype}"
        )
    kind = base(input).dtype
    if isinstance(value, Value):
        value = torch_face(value)
        if base(value).shape:
            raise EagerError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got "
                f"tensor with {base(value).ndim} dimension(s)."
            )
        if dtypes.category(base(value).dtype) > dtypes.category(kind):
            raise EagerError(
                f"value cannot be converted to type {input.dtype} without overflow"
            )
        value = cast(value, kind)
    else:
        value = fresh(_number("value", value, kind))
    return where(mask, value, input)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Where the elements are not 0: positions in rows, or for each axis.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nonzero(torch.tensor([0, 3, 0, 5]))
        tensor([[1],
                [3]])
    """
    found = np.atleast_1d(base(input)).nonzero()
    if as_tuple:
        return tuple(map(fresh, found))
    if not base(input).shape:
        return fresh(np.stack(found, -1)[:, :0])
    return fresh(np.stack(found, -1))


def argwhere(input: Tensor) -> Any:
    """The positions of what is not 0, one in each row.

    Example:
        >>> import lantern.torch as torch
        >>> torch.argwhere(torch.tensor([[0, 1], [1, 0]]))
        tensor([[0, 1],
                [1, 0]])
    """
    return nonzero(input)


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    right: bool = False,
    side: Any = None,
    out_int32: bool = False,
    sorter: Any = None,
    out: Any = None,
) -> Any:
    """Where values would stand in an ordered sequence.

    Example:
        >>> import lantern.torch as torch
        >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([0, 3, 9]))
        tensor([0, 1, 3])
    """
    if side is not None and right and side != "right":
        raise EagerError("side and right can't be set to opposites")
    side = side or ("right" if right else "left")
    if side not in ("left", "right"):
        raise EagerError(f"side can only be 'left' or 'right' but got {side}")
    kind = np.int32 if out_int32 else np.int64
    rows, values = base(sorted_sequence), as_array(base(input))
    if not isinstance(input, Tensor):
        values = beside(values, rows)
    elif type(rows) is not type(values):
        check_together(sorted_sequence, input)
    if not rows.shape:
        raise EagerError("boundaries tensor should have positive dimension")
    if sorter is not None:
        rows = np.take_along_axis(rows, base(sorter), -1)
    if rows.ndim == 1:
        return fresh(as_array(np.searchsorted(rows, values, side), np.dtype(kind)))
    if not values.size:
        return fresh(values.astype(kind))
    if rows.ndim != values.ndim or rows.shape[:-1] != values.shape[:-1]:
        raise EagerError(
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of "
            f"boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(rows.shape)} and input value tensor "
            f"{list(values.shape)}"
        )
    flat, wanted = (x.reshape(-1, x.shape[-1]) for x in (rows, values))
    found = [np.searchsorted(r, v, side) for r, v in zip(flat, wanted, strict=True)]
    return fresh(np.stack(found).reshape(values.shape).astype(kind))


def bucketize(
    input: Any,
    boundaries: Tensor,
    *,
    right: bool = False,
    out_int32: bool = False,
    out: Any = None,
) -> Any:
    """The interval in which each value lies: the position of its right end.

    Example:
        >>> import lantern.torch as torch
        >>> torch.bucketize(torch.tensor([0, 3, 9]), torch.tensor([1, 3, 5]))
        tensor([0, 1, 3])
    """
    if base(boundaries).ndim != 1:
        raise EagerError(
            f"boundaries tensor must be 1 dimension, got dim({base(boundaries).ndim})"
        )
    return searchsorted(boundaries, input, right=right, out_int32=out_int32)


def isin(
    elements: Any,
    test_elements: Any,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Any:
    """Where the elements are among others.

    Example:
        >>> import lantern.torch as torch
        >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 3, 4]))
        tensor([False,  True,  True])
    """
    return fresh(as_array(np.isin(base(elements), base(test_elements), invert=invert)))


functions = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and not name.startswith("_")
    and getattr(value, "__module__", "") == __name__
    and name not in ("getitem", "put", "add_at", "lines", "plain_index")
    and name
    not in ("axis_of", "changed_at_lines", "gathered", "numbers_apart", "selected")
}
