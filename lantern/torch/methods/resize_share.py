"""Changes of the form that a tensor has, and questions how it lies in memory."""

import math
from builtins import callable as is_function
from typing import TYPE_CHECKING, Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.eager.versions import owner
from lantern.errors import ArgumentError, EagerError
from lantern.torch.functions import creation
from lantern.torch.functions import shape as shaping
from lantern.torch.functions.copies_splits import as_strided
from lantern.torch.methods import sampling
from lantern.torch.methods.inplace import refuse_leaf, store
from lantern.torch.tables import documented, parameters, takes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import address, beside, on_host
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.gradients import rebind
from lantern.torch.tensor.layouts import FORMATS, in_order_of, laid
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor, fresh

if TYPE_CHECKING:
    import lantern.torch.storage

__all__ = ["METHODS", "PROPERTIES"]


def _in_place(function: Any) -> Any:
    """A method that makes a tensor a view of itself."""

    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        refuse_leaf(self)
        z = function(self, *args, **options)
        self.primal = z.primal
        rebind(self, z)
        return self

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"As ``{function.__name__}``, of the tensor itself."
    return takes(method, parameters(function, out=False))


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Have another form; elements that are new hold anything.

    Raises:
        RuntimeError: if a derivative may be asked for.

    Example:
        >>> import lantern.torch as torch
        >>> torch.arange(4).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    if self.requires_grad:
        raise EagerError("cannot resize variables that require grad")
    shape = creation.shape_of(sizes)
    array = in_memory(self)
    _check_sizes(shape, array.itemsize)
    if array.shape == shape and memory_format is None:
        return self
    xp = namespace(array)
    flat = xp.ascontiguousarray(array).reshape(-1)
    size = int(np.prod(shape))
    if size > flat.size:
        flat = xp.concatenate([flat, xp.zeros(size - flat.size, flat.dtype)])
    self.primal = flat[:size].reshape(shape)
    if memory_format is not None:
        self.primal = laid(self.primal, memory_format)
    return self


def _check_sizes(shape: Any, itemsize: int) -> None:
    """Raise if no memory could have so many elements."""
    if math.prod(max(n, 1) for n in shape[1:]) >= 1 << 63:
        raise EagerError("Stride calculation overflowed")
    if math.prod(shape) * itemsize >= 1 << 63:
        raise EagerError(
            f"Storage size calculation overflowed with sizes={list(shape)}"
        )


def resize_as_(input: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Have the form of another tensor.

    Example:
        >>> import lantern.torch as torch
        >>> torch.arange(4).resize_as_(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    if memory_format is FORMATS["preserve_format"]:
        resize_(input, *base(other).shape)
        input.primal = in_order_of(base(other), input.primal)
        return input
    return resize_(input, *base(other).shape, memory_format=memory_format)


def new(self: Tensor, *data: Any, size: Any = None, device: Any = None) -> Tensor:
    """A new tensor of this one's type: of data, or of lengths of axes.

    Another tensor's memory, or a storage, is shared.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).new([2, 3])
        tensor([2., 3.])
    """
    from lantern.torch.storage import TypedStorage, UntypedStorage  # which few need

    options: dict[str, Any] = {"dtype": self.dtype, "device": device or self.device}
    if size is not None:
        data = (Size(size),)
    (first,) = data if len(data) == 1 else (None,)
    if isinstance(first, TypedStorage | UntypedStorage):
        return creation.empty(0, **options).set_(first)
    if isinstance(first, Tensor) and first.ndim:
        if first.dtype is not self.dtype:
            raise ArgumentError(
                f"expected {self.type()} (got {first.type()}); use new_tensor()"
            )
        return first.view_as(first)
    if first is not None and not isinstance(first, int | Size):
        return creation.tensor(first, **options)
    return creation.empty(*data or (0,), **options)


def stride(self: Tensor, dim: Any = None) -> Any:
    """How far apart in memory neighbours along each axis are, in elements.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2, 3)
        >>> x.stride(), x.T.stride()
        ((3, 1), (1, 3))
    """
    array = in_memory(self)
    steps = [s // array.itemsize for s in array.strides]
    if not array.size:
        lengths = [max(n, 1) for n in (*array.shape[1:], 1)]
        steps = [math.prod(lengths[i:]) for i in range(array.ndim)]
    for i in range(len(steps) - 1, -1, -1):
        if array.shape[i] == 1:  # NumPy may have anything there
            steps[i] = steps[i + 1] * array.shape[i + 1] if i + 1 < len(steps) else 1
    return tuple(steps) if dim is None else steps[dim]


def storage_offset(self: Tensor) -> int:
    """How many elements of the memory lie before the first one.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1, 2, 3])[1:].storage_offset()
        1
    """
    array = in_memory(self)
    return (address(array) - address(owner(array))) // array.itemsize


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Take one value along the diagonal.

    Example:
        >>> import lantern.torch as torch
        >>> torch.zeros(2, 2).fill_diagonal_(5)
        tensor([[5., 0.],
                [0., 5.]])
    """
    if base(self).ndim < 2:
        raise EagerError("dimensions must larger than 1")
    where = np.zeros(base(self).shape, np.bool_)
    np.fill_diagonal(where, True, wrap)
    return self.masked_fill_(fresh(beside(where, base(self))), fill_value)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors show the same part of the same memory in one form.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> x.is_set_to(x[:]), x.is_set_to(x.clone())
        (True, False)
    """
    a, b = in_memory(self), in_memory(tensor)
    return address(a) == address(b) and a.shape == b.shape and a.strides == b.strides


def storage(self: Tensor) -> "lantern.torch.storage.TypedStorage":
    """The memory in a row: it has ``data_ptr``, ``size`` and elements.

    Example:
        >>> import lantern.torch as torch
        >>> len(torch.ones(2, 3).storage())
        6
    """
    from lantern.torch.storage import TypedStorage, memory_of  # which few need

    return TypedStorage(memory_of(in_memory(self)), dtype=self.dtype)


def untyped_storage(self: Tensor) -> "lantern.torch.storage.UntypedStorage":
    """The memory, as bytes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, 3).untyped_storage().nbytes()
        24
    """
    from lantern.torch.storage import UntypedStorage  # which few need

    return UntypedStorage(owner(in_memory(self)))


def base_of(self: Tensor) -> Any:
    """The tensor that this one is a view of; None if it is none."""
    return self.viewed if isinstance(self.viewed, Tensor) else None


def is_nonzero(self: Tensor) -> bool:
    """Whether the only element is not 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([2.0]).is_nonzero()
        True
    """
    return bool(self)


def is_conj(self: Tensor) -> bool:
    """False: conjugates are computed at once.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(1).is_conj()
        False
    """
    return False


def is_neg(self: Tensor) -> bool:
    """False: negatives are computed at once.

    Example:
        >>> import lantern.torch as torch
        >>> (-torch.ones(1)).is_neg()
        False
    """
    return False


def is_inference(self: Tensor) -> bool:
    """False: tensors do not know the mode that they were made in.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(1).is_inference()
        False
    """
    return False


def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Replace each element by a function of it and another tensor's.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2).map_(torch.tensor([3.0, 4.0]), lambda a, b: a + b)
        tensor([4., 5.])
    """
    return _mapped("map_", self, callable, tensor)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replace each element by a function of it and two other tensors'.

    Example:
        >>> import lantern.torch as torch
        >>> x, y = torch.tensor([3.0, 4.0]), torch.tensor(2.0)
        >>> torch.ones(2).map2_(x, y, lambda a, b, c: a + b * c)
        tensor([7., 9.])
    """
    return _mapped("map2_", self, callable, x, y)


def _mapped(name: str, self: Tensor, callable: Any, *others: Tensor) -> Tensor:
    if any(x.requires_grad for x in (self, *others)):
        raise EagerError(f"Can't call {name}() on Variable that requires grad.")
    if not is_function(callable):
        raise ArgumentError(
            f"{name}: the argument is not callable, but a {type(callable).__name__}"
        )
    return each(self, callable, *others)


def each(self: Tensor, function: Any, *others: Tensor) -> Tensor:
    """Replace each element by what a function gives for numbers, slowly."""
    array = in_memory(self)
    arrays = [np.broadcast_to(on_host(base(x)), array.shape) for x in others]
    rows = [x.ravel().tolist() for x in (on_host(array), *arrays)]
    found = [function(*row) for row in zip(*rows, strict=True)]
    wrong = [x for x in found if not isinstance(x, int | float | complex | np.generic)]
    if wrong:
        raise ArgumentError(f"the function must return numbers, got {wrong[0]!r:.80}")
    store(self, beside(np.array(found, array.dtype).reshape(array.shape), array))
    return self


def share_memory_(self: Tensor) -> Tensor:
    """Move a tensor's array to memory that forked processes share; the tensor itself.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2).share_memory_()
        >>> child = torch.multiprocessing.Process(target=x.fill_, args=(3.0,))
        >>> child.start()
        >>> child.join()
        >>> x
        tensor([3., 3.])
    """
    array = base(self)
    if isinstance(array, np.ndarray | np.generic) and not is_shared(self):
        from mmap import mmap  # which few programs need

        memory = mmap(-1, max(array.nbytes, 1))
        shared = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
        shared[...] = array
        self.primal = shared
    return self


def is_shared(self: Tensor) -> bool:
    """Whether a tensor's array lies in memory that forked processes share.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_shared(), torch.ones(2).share_memory_().is_shared()
        (False, True)
    """
    array = base(self)
    while isinstance(array, np.ndarray):
        array = array.base
    if not isinstance(array, memoryview):
        return False
    from mmap import mmap  # which few programs need

    return isinstance(array.obj, mmap)


def is_cpu(self: Tensor) -> bool:
    """Whether the tensor lies in the host's memory.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_cpu
        True
    """
    return self.device.type == "cpu"


def is_meta(self: Tensor) -> bool:
    """Whether the tensor has a form but no memory: never here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_meta
        False
    """
    return False


def is_mps(self: Tensor) -> bool:
    """Whether the tensor lies on an Apple GPU: never here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_mps
        False
    """
    return False


def is_nested(self: Tensor) -> bool:
    """Whether the tensor is a list of tensors of several forms: never here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_nested
        False
    """
    return False


def is_quantized(self: Tensor) -> bool:
    """Whether the elements are quantised: never here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_quantized
        False
    """
    return False


def is_xpu(self: Tensor) -> bool:
    """Whether the tensor lies on an Intel GPU: never here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_xpu
        False
    """
    return False


def name(self: Tensor) -> None:
    """The name of what a tensor is for: none has one.

    Example:
        >>> import lantern.torch as torch
        >>> print(torch.tensor([1.0]).name)
        None
    """
    return None


METHODS: dict[str, Any] = {
    f.__name__: f
    for f in (
        fill_diagonal_, is_conj, is_inference, is_neg, is_nonzero, is_set_to,
        is_shared, map2_, map_, new, resize_, resize_as_, share_memory_, storage,
        storage_offset, stride,
    )
}  # fmt: skip
METHODS |= {
    "as_strided_": documented(
        _in_place(as_strided),
        """
        >>> torch.arange(4).as_strided_((2, 2), (1, 2))
        tensor([[0, 2],
                [1, 3]])
        """,
    ),
    "squeeze_": documented(
        _in_place(shaping.functions["squeeze"]),
        """
        >>> torch.tensor([[1, 2]]).squeeze_()
        tensor([1, 2])
        """,
    ),
    "swapaxes_": documented(
        _in_place(shaping.functions["swapaxes"]),
        """
        >>> torch.tensor([[1, 2], [3, 4]]).swapaxes_(0, 1)
        tensor([[1, 3],
                [2, 4]])
        """,
    ),
    "swapdims_": documented(
        _in_place(shaping.functions["swapdims"]),
        """
        >>> torch.tensor([[1, 2], [3, 4]]).swapdims_(0, 1)
        tensor([[1, 3],
                [2, 4]])
        """,
    ),
    "t_": documented(
        _in_place(shaping.functions["t"]),
        """
        >>> torch.tensor([[1, 2], [3, 4]]).t_()
        tensor([[1, 3],
                [2, 4]])
        """,
    ),
    "transpose_": documented(
        _in_place(shaping.functions["transpose"]),
        """
        >>> torch.tensor([[1, 2], [3, 4]]).transpose_(0, 1)
        tensor([[1, 3],
                [2, 4]])
        """,
    ),
    "unsqueeze_": documented(
        _in_place(shaping.functions["unsqueeze"]),
        """
        >>> torch.tensor([1, 2]).unsqueeze_(0)
        tensor([[1, 2]])
        """,
    ),
}
METHODS |= {
    "bernoulli": sampling.bernoulli,
    "multinomial": sampling.multinomial,
    "untyped_storage": untyped_storage,
    "_is_view": lambda self: base_of(self) is not None,
}
PROPERTIES: dict[str, Any] = {
    f.__name__: f
    for f in (is_cpu, is_meta, is_mps, is_nested, is_quantized, is_xpu, name)
} | {
    "_base": base_of,
}
