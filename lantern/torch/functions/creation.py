"""Tensors made from nothing, from numbers, or from draws."""

from functools import reduce, wraps
from operator import index
from typing import Any

import numpy as np

from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import unwrapped
from lantern.errors import ArgumentError, DetachError, EagerError, ShapeError
from lantern.tensor.ops.creation import array as together_in
from lantern.tensor.tensor import Tensor as NumpyTensor
from lantern.torch.tables import documented, parameters, takes
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.batches import for_each
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import is_differentiated
from lantern.torch.tensor.devices import as_array, is_array, made, moved, on_host
from lantern.torch.tensor.dtypes import as_numpy_dtype, fitting
from lantern.torch.tensor.from_lists import array_of
from lantern.torch.tensor.layouts import laid
from lantern.torch.tensor.named_results import into, of_its_type
from lantern.torch.tensor.operators import as_kind, result_dtype
from lantern.torch.tensor.operators import as_tensor as as_number
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face, torch_face
from lantern.vectorizing.batched import Batched

__all__ = [
    "as_tensor",
    "asarray",
    "complex",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]


# What every function that makes a tensor takes, as ``help`` shows it.
OPTIONS = (
    "out=None, dtype=None, layout=None, device=None, requires_grad=False, "
    "pin_memory=False"
)


def finished(array: Any, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor around an array, where and as a caller of a creator wants it."""
    device = dtypes.default_device[0] if device is None else device
    if device is not dtypes.CPU and str(device) != "cpu":
        array = moved(array, device)
    x = fresh(array)
    return x.requires_grad_() if requires_grad else x


def created(
    name: str, *args: Any, device: Any, requires_grad: bool, **options: Any
) -> Tensor:
    """A new tensor that a function of NumPy's makes, on the device itself."""
    device = dtypes.default_device[0] if device is None else device
    if device is dtypes.CPU or str(device) == "cpu":
        x = fresh(getattr(np, name)(*args, **options))
    else:
        x = fresh(made(device, name, *args, **options))
    return x.requires_grad_() if requires_grad else x


def complete(create: Any) -> Any:
    """A function that creates tensors, with the arguments that have no effect here."""

    @wraps(create)
    def function(
        *args: Any,
        out: Any = None,
        layout: Any = None,
        pin_memory: bool = False,
        memory_format: Any = None,
        **options: Any,
    ) -> Tensor:
        z = into(create(*args, **options), out)
        if memory_format is not None:
            z.primal = laid(z.primal, memory_format)
        return z

    rest = "layout=None, pin_memory=False, memory_format=None"
    takes(create, f"{parameters(create, out=True)}, {rest}")
    return function


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor that holds a copy of numbers, of nested lists of them, or of an array.

    Args:
        data: the numbers.
        dtype: the type of the elements; by default float32 for Python's floats.
        device: where it shall lie.
        requires_grad: whether a derivative may be asked for.
        pin_memory: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    try:
        array = array_of(data, as_numpy_dtype(dtype))
    except DetachError:
        return _assembled(data, dtype, device)
    except ShapeError:
        raise
    except ValueError as error:
        raise ShapeError(f"tensor: the lists have unequal lengths ({error})") from None
    if type(array) is not np.ndarray and str(device) == "cpu":
        array = on_host(array)
    return finished(array, device, requires_grad)


def _assembled(data: Any, dtype: Any, device: Any) -> Tensor:
    """A tensor of tracked values of the other face, and of numbers, in lists."""
    kind = as_numpy_dtype(dtype)
    if kind is None:
        kinds = [result_dtype(as_number(x)) for x in tree_leaves(data)]
        kind = reduce(dtypes.promoted, kinds)
    z = as_kind(together_in(tree_map(numpy_face, data)), kind)
    return z if device is None else z.to(device)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of the data, which shares memory with it where it can.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> torch.as_tensor(x) is x
        True
        >>> torch.as_tensor([1.0, 2.0])
        tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    if isinstance(data, NumpyTensor):
        return torch_face(data).to(dtype=dtype, device=device)
    if isinstance(data, np.ndarray) and dtype is None:
        return finished(from_numpy(data).primal, device)
    if dtype is device is None and not isinstance(data, list) and is_array(data):
        return fresh(data)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of the data, which shares memory with it where it can.

    Example:
        >>> import lantern.torch as torch
        >>> torch.asarray([1.0, 2.0], dtype=torch.float64)
        tensor([1., 2.], dtype=torch.float64)
    """
    x = (tensor if copy else as_tensor)(obj, dtype=dtype, device=device)
    return x.requires_grad_() if requires_grad else x


def from_dlpack(ext_tensor: Any) -> Any:
    """A tensor with the memory of another library's array.

    Args:
        ext_tensor: an array that has ``__dlpack__``.

    Example:
        >>> import numpy as np
        >>> import lantern.torch as torch
        >>> torch.from_dlpack(np.ones(2))
        tensor([1., 1.], dtype=torch.float64)
    """
    if isinstance(ext_tensor, Tensor):
        return ext_tensor
    if not hasattr(ext_tensor, "__dlpack__"):
        raise ArgumentError(
            f"from_dlpack: {type(ext_tensor).__name__} has no __dlpack__. Give the "
            f"array itself."
        )
    return fresh(np.from_dlpack(ext_tensor))


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares memory with an array of NumPy's.

    Example:
        >>> import lantern.torch as torch
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> x = torch.from_numpy(array)
        >>> array[0] = 5
        >>> x
        tensor([5., 0.], dtype=torch.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.as_dtype(ndarray.dtype)
    return fresh(ndarray)


def scalar_tensor(s: Any, **options: Any) -> Tensor:
    """A number as a tensor without axes, of the default type.

    Example:
        >>> import lantern.torch as torch
        >>> torch.scalar_tensor(2)
        tensor(2.)
    """
    return full((), s, **{"dtype": dtypes.get_default_dtype(), **options})


takes(scalar_tensor, f"s, *, {OPTIONS}")


def shape_of(size: Any) -> tuple[int, ...]:
    """The lengths of axes that were given one by one, or in a sequence."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        size = size[0]
    elif len(size) == 1 and isinstance(size[0], Tensor):
        size = size[0].tolist() if size[0].ndim else size
    shape = tuple(map(index, size))
    if any(n < 0 for n in shape):
        n = next(n for n in shape if n < 0)
        raise EagerError(
            f"Trying to create tensor with negative dimension {n}: {list(shape)}"
        )
    return shape


def _filled(name: str, what: str) -> Any:
    def function(
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        kind = dtypes.default() if dtype is None else as_numpy_dtype(dtype)
        shape = shape_of(sizes if size is None else size)
        return created(name, shape, kind, device=device, requires_grad=requires_grad)

    doc = f"A tensor of {what}; its axes' lengths in a row."
    return complete(_named(function, name, doc))


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


zeros = documented(
    _filled("zeros", "zeros"),
    """
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """,
)
ones = documented(
    _filled("ones", "ones"),
    """
    >>> torch.ones(2, 3)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """,
)
empty = documented(
    _filled("empty", "anything"),
    """
    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """,
)


@complete
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of anything, its neighbours along each axis so far apart in memory.

    Example:
        >>> import lantern.torch as torch
        >>> torch.empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    shape, steps = shape_of((size,)), tuple(map(index, stride))
    if len(shape) != len(steps):
        raise EagerError(
            f"mismatch in length of strides and shape: {list(steps)}, {list(shape)}"
        )
    if min(steps, default=0) < 0:
        raise EagerError(
            "as_strided: Negative strides are not supported at the moment, got "
            f"strides: {list(steps)}"
        )
    kind = dtypes.default() if dtype is None else as_numpy_dtype(dtype)
    reach = sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    memory = np.empty(reach + 1 if 0 not in shape else 0, kind)
    array = np.ndarray(shape, kind, memory, 0, tuple(n * kind.itemsize for n in steps))
    if any(not step and n > 1 for n, step in zip(shape, steps, strict=True)):
        array.flags.writeable = False  # as of what is expanded
    return finished(array, device, requires_grad)


def _filled_with(value: Any, shape: Any, kind: Any, device: Any) -> Any:
    """A tensor that holds a tracked value everywhere."""
    value = as_kind(value, kind)
    value = value if device is None else value.to(device)
    return value.expand(shape).clone()


@complete
def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor that holds one number everywhere.

    Example:
        >>> import lantern.torch as torch
        >>> torch.full((2,), 7)
        tensor([7, 7])
    """
    kind = as_numpy_dtype(dtype)
    if is_differentiated(fill_value):
        kind = result_dtype(as_number(fill_value)) if kind is None else kind
        return _filled_with(fill_value, shape_of((size,)), kind, device)
    value = base(unwrapped(fill_value))
    if kind is None:
        kind = array_of(value, None).dtype
    elif np.dtype(kind).kind in "iu" and not isinstance(value, np.ndarray):
        value = fitting(value, np.dtype(kind)).item()  # which a GPU takes as well
    shape, options = shape_of((size,)), {"device": device}
    return created("full", shape, value, kind, requires_grad=requires_grad, **options)


def _like(name: str, what: str) -> Any:
    make = getattr(np, f"{name}_like")

    def function(
        input: Any,
        *fill: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        fill_value: Any = None,
    ) -> Tensor:
        array = base(input)
        kind = array.dtype if dtype is None else as_numpy_dtype(dtype)
        if fill_value is not None:
            fill = (fill_value,)
        if is_differentiated(*fill):
            place = input.device if device is None else device
            return _filled_with(fill[0], array.shape, kind, place)
        fill = tuple(base(unwrapped(x)) for x in fill)
        z = as_array(make(array, *fill, dtype=kind))
        x = fresh(z if type(array) is not Batched else for_each(z, array))
        x = x if device is None else x.to(device)
        return x.requires_grad_() if requires_grad else x

    value = ", fill_value" if name == "full" else ""
    rest = "dtype=None, device=None, requires_grad=False"
    takes(function, f"input{value}, *, {rest}")
    doc = f"A tensor of {what}, in the shape and type of another."
    return complete(_named(function, f"{name}_like", doc))


zeros_like = documented(
    _like("zeros", "zeros"),
    """
    >>> torch.zeros_like(torch.tensor([3, 4]))
    tensor([0, 0])
    """,
)
ones_like = documented(
    _like("ones", "ones"),
    """
    >>> torch.ones_like(torch.tensor([3, 4]))
    tensor([1, 1])
    """,
)
empty_like = documented(
    _like("empty", "anything"),
    """
    >>> torch.empty_like(torch.tensor([1, 2])).dtype
    torch.int64
    """,
)
full_like = documented(
    _like("full", "one number"),
    """
    >>> torch.full_like(torch.tensor([1.0, 2.0]), 7)
    tensor([7., 7.])
    """,
)


@complete
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere.

    Example:
        >>> import lantern.torch as torch
        >>> torch.eye(2)
        tensor([[1., 0.],
                [0., 1.]])
    """
    kind = dtypes.default() if dtype is None else as_numpy_dtype(dtype)
    if n < 0 or (m is not None and m < 0):
        raise EagerError(f"n must be greater or equal to 0, got {n} and {m}")
    options = {"device": device, "requires_grad": requires_grad}
    return created("eye", n, m, dtype=kind, **options)


def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """The positions of a lower triangle, row and column.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])
    """
    return _positions(np.tril_indices(row, offset, col), **options)


takes(tril_indices, f"row, col, offset=0, *, {OPTIONS}")


def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """The positions of an upper triangle, row and column.

    Example:
        >>> import lantern.torch as torch
        >>> torch.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
    """
    return _positions(np.triu_indices(row, offset, col), **options)


takes(triu_indices, f"row, col, offset=0, *, {OPTIONS}")


def _positions(
    found: Any, dtype: Any = None, layout: Any = None, device: Any = None
) -> Tensor:
    kind = dtypes.I64 if dtype is None else as_numpy_dtype(dtype)
    return finished(np.array(found, kind), device)


def complex(real: Any, imag: Any, *, out: Any = None) -> Any:
    """Complex numbers of their real and imaginary parts.

    Example:
        >>> import lantern.torch as torch
        >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
        tensor([1.+2.j])
    """
    if not (isinstance(real, Tensor) and isinstance(imag, Tensor)):
        raise ArgumentError("complex(): both arguments must be Tensor")
    if base(real).dtype != base(imag).dtype or base(real).dtype.kind != "f":
        raise EagerError(
            "Expected both inputs to be Half, Float or Double tensors of one type but "
            f"got {real.dtype} and {imag.dtype}"
        )
    return into(of_its_type(real + imag * 1j, out), out)
