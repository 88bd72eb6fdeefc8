"""Tensors made from nothing, from numbers, or from draws."""

from functools import wraps
from typing import Any

import numpy as np

from lantern.errors import ArgumentError, EagerError, ShapeError
from lantern.tensor.namespace import find_device
from lantern.torch import dtypes
from lantern.torch.dtypes import as_numpy_dtype
from lantern.torch.gradients import set_data
from lantern.torch.lists import array_of
from lantern.torch.tensor import Tensor, fresh
from lantern.value import base

__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "complex",
    "empty",
    "empty_like",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "scalar_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]


def finished(array: Any, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor around an array, where and as a caller of a creator wants it."""
    device = device or dtypes.default_device[0]
    if device is not dtypes.CPU and str(device) != "cpu":
        array = moved(array, device)
    x = fresh(array)
    return x.requires_grad_() if requires_grad else x


def into(z: Tensor, out: Tensor | None) -> Tensor:
    """A result, or the tensor that it is to be written to."""
    if out is None:
        return z
    if z.requires_grad:
        raise EagerError(
            "functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    if base(out).shape == base(z).shape:
        return out.copy_(z)
    set_data(out, z.to(out.dtype))
    return out


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
        return into(create(*args, **options), out)

    return function


def moved(array: Any, device: Any) -> Any:
    """A plain array on a device."""
    library, number = find_device(str(dtypes.device(device)))
    return library.receive(array, number) if str(device) != "cpu" else array


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
        >>> tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    try:
        array = array_of(data, as_numpy_dtype(dtype))
    except ShapeError:
        raise
    except ValueError as error:
        raise ShapeError(f"tensor: the lists have unequal lengths ({error})") from None
    return finished(array, device, requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of the data, which shares memory with it where it can."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    if isinstance(data, np.ndarray) and dtype is None:
        return finished(from_numpy(data).primal, device)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of the data, which shares memory with it where it can."""
    make = tensor if copy else as_tensor
    x = make(obj, dtype=dtype, device=device)
    return x.requires_grad_() if requires_grad else x


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares memory with an array of NumPy's."""
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(f"expected np.ndarray (got {type(ndarray).__name__})")
    dtypes.as_dtype(ndarray.dtype)
    return fresh(ndarray)


def scalar_tensor(s: Any, **options: Any) -> Tensor:
    """A number as a tensor without axes, of the default type."""
    return full((), s, **{"dtype": dtypes.get_default_dtype(), **options})


def shape_of(size: Any) -> tuple[int, ...]:
    """The lengths of axes that were given one by one, or in a sequence."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        size = size[0]
    elif len(size) == 1 and isinstance(size[0], Tensor):
        size = size[0].tolist() if size[0].ndim else size
    shape = tuple(int(n) for n in size)
    if any(n < 0 for n in shape):
        n = next(n for n in shape if n < 0)
        raise EagerError(
            f"Trying to create tensor with negative dimension {n}: {list(shape)}"
        )
    return shape


def _filled(name: str, what: str) -> Any:
    make = getattr(np, name)

    def function(
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        kind = dtypes.default() if dtype is None else as_numpy_dtype(dtype)
        return finished(make(shape_of(size), kind), device, requires_grad)

    doc = f"A tensor of {what}; its axes' lengths in a row."
    return complete(_named(function, name, doc))


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


zeros = _filled("zeros", "zeros")
ones = _filled("ones", "ones")
empty = _filled("empty", "anything")


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
        >>> full((2,), 7)
        tensor([7, 7])
    """
    kind = as_numpy_dtype(dtype)
    value = base(fill_value)
    if kind is None:
        kind = array_of(value, None).dtype
    shape = shape_of((size,))
    return finished(np.full(shape, value, kind), device, requires_grad)


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
        fill = tuple(map(base, fill))
        if type(array) is np.ndarray or isinstance(array, np.generic):
            made = np.asarray(make(array, *fill, dtype=kind))
            return finished(made, device or dtypes.CPU, requires_grad)
        return finished(make(array, *fill, dtype=kind), None, requires_grad)

    doc = f"A tensor of {what}, in the shape and type of another."
    return complete(_named(function, f"{name}_like", doc))


zeros_like = _like("zeros", "zeros")
ones_like = _like("ones", "ones")
empty_like = _like("empty", "anything")
full_like = _like("full", "one number")


@complete
def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from start to before end, in steps.

    Example:
        >>> arange(3)
        tensor([0, 1, 2])
    """
    start, end, step = base(start), base(end), base(step)
    if end is None:
        start, end = 0, start
    if not all(np.isfinite(x) for x in (start, end, step)):
        raise EagerError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise EagerError("step must be nonzero")
    if (end - start) * step < 0:
        raise EagerError("upper bound and lower bound inconsistent with step sign")
    kind = as_numpy_dtype(dtype)
    if kind is None:
        whole = all(
            isinstance(x, int)
            or getattr(getattr(x, "dtype", None), "kind", "f") in "iu"
            for x in (start, end, step)
        )
        kind = dtypes.I64 if whole else dtypes.default()
    count = max(int(np.ceil((end - start) / step)), 0)
    array = (start + step * np.arange(count)).astype(kind)
    return finished(array, device, requires_grad)


@complete
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers at equal distances, from start to end.

    Example:
        >>> linspace(0, 1, 3)
        tensor([0.0000, 0.5000, 1.0000])
    """
    kind = dtypes.default() if dtype is None else as_numpy_dtype(dtype)
    if steps < 0:
        raise EagerError("number of steps must be non-negative")
    if np.ndim(base(start)) or np.ndim(base(end)):
        raise EagerError(
            "linspace only supports 0-dimensional start and end tensors, but got start "
            f"with {np.ndim(base(start))} dimension(s) and end with "
            f"{np.ndim(base(end))} dimension(s)."
        )
    start, end = base(start), base(end)
    if kind.kind == "f":
        start, end = float(start), float(end)
    array = np.linspace(start, end, steps, dtype=kind)
    return finished(array, device, requires_grad)


def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, **options: Any
) -> Tensor:
    """Powers of a base, whose exponents have equal distances."""
    exponents = linspace(start, end, steps, dtype=dtypes.float64).primal
    kind = as_numpy_dtype(options.pop("dtype", None)) or dtypes.default()
    return finished((base**exponents).astype(kind), **options)


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
        >>> eye(2)
        tensor([[1., 0.],
                [0., 1.]])
    """
    kind = dtypes.default() if dtype is None else as_numpy_dtype(dtype)
    if n < 0 or (m is not None and m < 0):
        raise EagerError(f"n must be greater or equal to 0, got {n} and {m}")
    return finished(np.eye(n, m, dtype=kind), device, requires_grad)


def tril_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """The positions of a lower triangle, row and column."""
    return finished(np.array(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0, **options: Any) -> Tensor:
    """The positions of an upper triangle, row and column."""
    return finished(np.array(np.triu_indices(row, offset, col)))


def complex(real: Any, imag: Any) -> Any:
    """Complex numbers of their real and imaginary parts."""
    if not (isinstance(real, Tensor) and isinstance(imag, Tensor)):
        raise ArgumentError("complex(): both arguments must be Tensor")
    if base(real).dtype != base(imag).dtype or base(real).dtype.kind != "f":
        raise EagerError(
            "Expected both inputs to be Half, Float or Double tensors of one type but "
            f"got {real.dtype} and {imag.dtype}"
        )
    return real + imag * 1j
