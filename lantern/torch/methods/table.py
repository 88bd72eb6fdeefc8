"""The table of methods; what only tensors have: their form, type and place."""

from importlib import import_module
from typing import Any

import numpy as np

from lantern.core.value import UNTRACKED
from lantern.eager.versions import writes
from lantern.errors import EagerError, OptionError, ShapeError
from lantern.rules import arithmetic
from lantern.tensor.backend.device import to_device
from lantern.torch import asking
from lantern.torch.functions import (
    comparison,
    copies_splits,
    creation,
    elementwise,
    indexing,
    of_special,
)
from lantern.torch.functions import shape as shaping
from lantern.torch.functions.table import FUNCTIONS as _OF_TORCH
from lantern.torch.functions.table import complete, names_with
from lantern.torch.methods import inplace, resize_share
from lantern.torch.methods.filling import METHODS as _FILLING
from lantern.torch.tables import another, documented, parameters, takes
from lantern.torch.tensor import dtypes, gradients
from lantern.torch.tensor.batches import first_example, for_each
from lantern.torch.tensor.copying import METHODS as COPYING
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import address, as_array
from lantern.torch.tensor.dlpack import METHODS as EXPORTING
from lantern.torch.tensor.dtypes import Size, as_numpy_dtype, type_name
from lantern.torch.tensor.layouts import FORMATS, copied, laid, lies, strided
from lantern.torch.tensor.layouts import layout as _layout
from lantern.torch.tensor.operators import call, cast, in_memory, refuse_numbers, unary
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face, torch_face
from lantern.vectorizing.batched import Batched

_copied, _copied_so = unary(arithmetic.positive), unary(copied)
_PRESERVE, _IN_ROWS = FORMATS["preserve_format"], FORMATS["contiguous_format"]


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, through which the derivative goes.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> y = torch.clone(x)
        >>> y[0] = 9
        >>> x
        tensor([1, 2])
    """
    if input.level is not UNTRACKED:
        if not input.level.is_derivative:
            z = torch_face(numpy_face(input).copy())
        elif memory_format is None:
            z = _copied(input)
        else:
            z = _copied_so(input, form=memory_format)
    elif (array := as_array(base(input))).flags.c_contiguous or 0 in array.strides:
        z = fresh(array.copy())
    else:
        z = fresh(array.copy("K"))  # its axes in their order, without gaps
    if memory_format is not None:
        z.primal = laid(as_array(z.primal), memory_format)
    return z


def size(self: Tensor, dim: Any = None) -> Any:
    """The lengths of the axes, or of one.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2, 3)
        >>> x.size(), x.size(1)
        (torch.Size([2, 3]), 3)
    """
    shape = base(self).shape
    if dim is None:
        return tuple.__new__(Size, shape)
    return shape[shaping.axis_of(dim, len(shape))]


def dim(self: Tensor) -> int:
    """The number of axes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, 3).dim()
        2
    """
    return base(self).ndim


def numel(self: Tensor) -> int:
    """The number of elements.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, 3).nelement()
        6
    """
    return base(self).size


def element_size(self: Tensor) -> int:
    """How many bytes an element takes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).element_size()
        4
    """
    return base(self).dtype.itemsize


def data_ptr(self: Tensor) -> int:
    """The address of the first element.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2, 3])
        >>> x[1:].data_ptr() - x.data_ptr()
        8
    """
    return address(in_memory(self))


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in a row in memory, or in another order of the axes.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> x.is_contiguous(), x.T.is_contiguous()
        (True, False)
    """
    array = first_example(base(self))
    if memory_format is not None:
        return lies(array, memory_format)
    return isinstance(array, np.generic) or bool(array.flags.c_contiguous)


def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor with its elements in a row in memory; itself, if they are.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[1, 2], [3, 4]]).T
        >>> x.is_contiguous(), x.contiguous().is_contiguous()
        (False, True)
        >>> torch.ones(2, 3, 2, 2).contiguous(
        ...     memory_format=torch.channels_last
        ... ).stride()
        (12, 1, 6, 3)
    """
    if is_contiguous(self, memory_format):
        return self
    return clone(self, memory_format=memory_format or _IN_ROWS)


def to(self: Tensor, *args: Any, **options: Any) -> Tensor:
    """The tensor in another type, on another device, or as another tensor is.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> x.to(torch.float64)
        tensor([1., 2.], dtype=torch.float64)
        >>> x.to("cpu", torch.bool)
        tensor([True, True])
    """
    kind, device = options.get("dtype"), options.get("device")
    flags: list[bool] = []
    for argument in args:
        if isinstance(argument, Tensor):
            kind, device = argument.dtype, argument.device
        elif isinstance(argument, dtypes.dtype):
            kind = argument
        elif isinstance(argument, bool):  # non_blocking, and then copy
            flags.append(argument)
        elif isinstance(argument, str | dtypes.device | int):
            device = argument
    z = self if kind is None else cast(self, as_numpy_dtype(kind))
    if device is not None and (here := str(self.device)) != str(device):
        name = str(dtypes.device(device))
        if not here.startswith(name):
            z = call(to_device, z, name)
    copy = options.get("copy") or flags[1:] == [True]
    z = clone(z) if z is self and copy else z
    form = options.get("memory_format")
    return z if form in (None, _PRESERVE) else contiguous(z, form)


def _to_type(kind: dtypes.dtype) -> Any:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            return to(self, kind, memory_format=memory_format)
        return cast(self, as_numpy_dtype(kind))

    method.__doc__ = f"The tensor with elements of type {kind}."
    return method


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type; or the tensor in another type.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> x.type()
        'torch.LongTensor'
        >>> x.type(torch.float32)
        tensor([1., 2.])
    """
    if dtype is None:
        return f"torch.{type_name(base(self).dtype)}Tensor"
    if dtype is Tensor:
        return cast(self, dtypes.default())
    if isinstance(dtype, str):
        word = dtype.removeprefix("torch.").removesuffix("Tensor")
        found = [n for n in dtypes.by_numpy if type_name(n) == word]
        if not found:
            raise ShapeError(f"invalid type: '{dtype}'")
        return cast(self, found[0])
    return cast(self, as_numpy_dtype(dtype))


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in another one's type.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1, 2]).type_as(torch.tensor([0.5]))
        tensor([1., 2.])
    """
    return cast(self, base(other).dtype)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in the host's memory.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1, 2]).cpu()
        tensor([1, 2])
    """
    return to(self, "cpu", memory_format=memory_format)


def cuda(
    self: Tensor,
    device: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor on a GPU.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> y = x.cuda() if torch.cuda.is_available() else x
        >>> y.cpu()
        tensor([1, 2])
    """
    return to(self, "cuda" if device is None else device, memory_format=memory_format)


def _new(creator: Any) -> Any:
    def method(self: Tensor, *args: Any, **options: Any) -> Tensor:
        options.setdefault("dtype", self.dtype)
        options.setdefault("device", self.device)
        z, array = creator(*args, **options), base(self)
        if type(array) is not Batched or z.requires_grad:
            return z
        return fresh(for_each(base(z), array))

    return takes(method, f"self, {parameters(creator)}")


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Replace each element by a function of it: of a number, slowly, on the host.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> x.apply_(lambda number: 10 * number)
        tensor([10., 20.])
    """
    if self.requires_grad:
        raise EagerError("Can't call apply_() on Variable that requires grad.")
    return resize_share.each(self, callable)


def backwards(self: Tensor) -> Tensor:
    """The tensor with its first axis reversed."""
    return FUNCTIONS["flip"](self, (0,)) if base(self).ndim else self


def contains(self: Tensor, element: Any) -> bool:
    """Whether an element, or any of several, is among the tensor's."""
    if not isinstance(element, Tensor | int | float | complex | np.generic):
        raise EagerError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    return bool((base(self) == base(element)).any())


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor as it is: memory is not page-locked here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1, 2]).pin_memory()
        tensor([1, 2])
    """
    return self


def matrix_adjoint(self: Tensor) -> Tensor:
    """A matrix transposed, and conjugated.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([[1 + 1j, 2j]]).H.resolve_conj()
        tensor([[1.-1.j],
                [0.-2.j]])
    """
    if base(self).ndim not in (0, 2):
        raise EagerError(
            f"tensor.H is only supported on matrices (2-D tensors). Got "
            f"{base(self).ndim}-D tensor."
        )
    return copies_splits.adjoint(self) if base(self).ndim else self


def invert(self: Tensor) -> Tensor:
    """The complement of bits, or of truth."""
    return fresh(np.invert(base(self)))


def is_complex(self: Tensor) -> bool:
    """Whether the elements are complex numbers.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1j]).is_complex()
        True
    """
    return base(self).dtype.kind == "c"


def is_floating_point(self: Tensor) -> bool:
    """Whether the elements are real floating-point numbers.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_floating_point()
        True
    """
    return base(self).dtype.kind in dtypes.FLOATING


def is_pinned(self: Tensor) -> bool:
    """Whether the memory is page-locked: never here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_pinned()
        False
    """
    return False


def is_signed(self: Tensor) -> bool:
    """Whether the elements can be negative.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1]).is_signed(), torch.tensor([True]).is_signed()
        (True, False)
    """
    return base(self).dtype.kind not in "ub"


def is_cuda(self: Tensor) -> bool:
    """Whether the tensor lies on a GPU.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_cuda
        False
    """
    return self.device.type == "cuda"


def is_sparse(self: Tensor) -> bool:
    """Whether only entries other than 0 are stored: of tensors, never.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).is_sparse
        False
    """
    return False


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
    """The tensor itself, which stores all its elements; or in another type.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).to_dense()
        tensor([1.])
    """
    return self if dtype is None else self.to(dtype)


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether another tensor has the same shape.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, 3).is_same_size(torch.zeros(2, 3))
        True
    """
    return bool(self.shape == other.shape)


def _version(self: Tensor) -> int:
    """How often the tensor's memory has been written to."""
    return writes(in_memory(self))


def layout(self: Tensor) -> _layout:
    """How the elements are stored: ``torch.strided``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).layout == torch.strided
        True
    """
    return strided


def nbytes(self: Tensor) -> int:
    """How many bytes the elements take.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, 3).nbytes
        24
    """
    return base(self).nbytes


def itemsize(self: Tensor) -> int:
    """How many bytes an element takes.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).itemsize
        4
    """
    return base(self).dtype.itemsize


def mH(self: Tensor) -> Tensor:
    """The matrices along the last two axes transposed, and conjugated.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([[1 + 1j, 2j]]).mH.resolve_conj()
        tensor([[1.-1.j],
                [0.-2.j]])
    """
    return copies_splits.adjoint(self)


_FRAMES = "self, n_fft, hop_length=None, win_length=None, window=None, center=True, "
# Of functions of layers and signals, their parameters and what they do to a tensor.
_LATE = {
    "hardshrink": (
        "self, lambd=0.5",
        """0 for elements up to ``lambd`` from 0; the others as they are.

        >>> torch.tensor([0.2, 2.0]).hardshrink()
        tensor([0., 2.])
        """,
    ),
    "istft": (
        _FRAMES + "normalized=False, onesided=None, length=None, return_complex=False",
        """The signal whose short-time Fourier transform the tensor is.

        >>> spectrum = torch.ones(8).stft(4, window=torch.ones(4), return_complex=True)
        >>> spectrum.istft(4, window=torch.ones(4)).shape
        torch.Size([8])
        """,
    ),
    "prelu": (
        "self, weight",
        """The elements, and ``weight`` times those below 0.

        >>> torch.tensor([-2.0, 2.0]).prelu(torch.tensor([0.25]))
        tensor([-0.5000,  2.0000])
        """,
    ),
    "stft": (
        _FRAMES + "pad_mode='reflect', normalized=False, onesided=None, "
        "return_complex=None, align_to_window=None",
        """The short-time Fourier transform of a signal.

        >>> torch.ones(8).stft(4, window=torch.ones(4), return_complex=True).shape
        torch.Size([3, 9])
        """,
    ),
}


def _late(name: str) -> Any:
    """A method that is a function of layers or signals, imported when it is called.

    The class has no ``__getattr__`` for that, nor for names that are missing: Python
    3.11 reads each attribute of such a class in ten times as long.
    """

    def method(self: Tensor, *args: Any, **options: Any) -> Any:
        return getattr(import_module("lantern.torch"), name)(self, *args, **options)

    method.__name__ = method.__qualname__ = name
    shown, words = _LATE[name]
    return documented(takes(method, shown), words)


def _device_number(self: Tensor) -> Any:
    """The number of the GPU that a tensor lies on; -1 in the host's memory.

    Example:
        >>> import lantern.torch as torch
        >>> torch.tensor([1.0]).get_device()
        -1
    """
    return -1 if self.device.type == "cpu" else self.device.index


def _reflected(function: Any) -> Any:
    def reflected(self: Tensor, other: Any) -> Any:
        refuse_numbers(function.__name__, self, other, "second")
        return function(other, self)

    return reflected


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The elements where a condition holds, else those of the other.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-1, 2, -3])
        >>> x.where(x > 0, 0)
        tensor([0, 2, 0])
    """
    return elementwise.where(condition, self, other)


_OWN = {
    f.__name__: f
    for f in (
        apply_, clone, contiguous, cpu, cuda, data_ptr, dim, element_size, is_complex,
        is_contiguous, is_floating_point, is_pinned, is_same_size, is_signed, numel,
        pin_memory,
size, to, to_dense, type_as, where,
    )
}  # fmt: skip
_TYPES = {
    "bool": (
        dtypes.bool,
        """Whether each element is other than 0.

        >>> torch.tensor([0, 1, 2]).bool()
        tensor([False,  True,  True])
        """,
    ),
    "byte": (
        dtypes.uint8,
        """
        >>> torch.tensor([1.7, 2.0]).byte()
        tensor([1, 2], dtype=torch.uint8)
        """,
    ),
    "char": (
        dtypes.int8,
        """
        >>> torch.tensor([1.7, -2.0]).char()
        tensor([ 1, -2], dtype=torch.int8)
        """,
    ),
    "cdouble": (
        dtypes.complex128,
        """
        >>> torch.tensor([1.0]).cdouble()
        tensor([1.+0.j], dtype=torch.complex128)
        """,
    ),
    "cfloat": (
        dtypes.complex64,
        """
        >>> torch.tensor([1.0]).cfloat()
        tensor([1.+0.j])
        """,
    ),
    "double": (
        dtypes.float64,
        """
        >>> torch.tensor([1.0]).double()
        tensor([1.], dtype=torch.float64)
        """,
    ),
    "float": (
        dtypes.float32,
        """
        >>> torch.tensor([1, 2]).float()
        tensor([1., 2.])
        """,
    ),
    "bfloat16": (
        dtypes.bfloat16,
        """
        >>> torch.tensor([1.0]).bfloat16()
        tensor([1.], dtype=torch.bfloat16)
        """,
    ),
    "half": (
        dtypes.float16,
        """
        >>> torch.tensor([1.0]).half()
        tensor([1.], dtype=torch.float16)
        """,
    ),
    "int": (
        dtypes.int32,
        """
        >>> torch.tensor([1.7, -1.7]).int()
        tensor([ 1, -1], dtype=torch.int32)
        """,
    ),
    "long": (
        dtypes.int64,
        """
        >>> torch.tensor([1.7, -1.7]).long()
        tensor([ 1, -1])
        """,
    ),
    "short": (
        dtypes.int16,
        """
        >>> torch.tensor([1.7, -1.7]).short()
        tensor([ 1, -1], dtype=torch.int16)
        """,
    ),
}
_NEW = {
    "new_empty": documented(
        _new(creation.empty),
        """A tensor of anything, of this one's type, on its device.

        >>> torch.tensor([1.0]).new_empty((2, 3)).shape
        torch.Size([2, 3])
        """,
    ),
    "new_empty_strided": documented(
        _new(creation.empty_strided),
        """A tensor of anything, of this one's type, with these strides.

        >>> torch.tensor([1.0]).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
        """,
    ),
    "new_full": documented(
        _new(creation.full),
        """A tensor of one value, of this one's type, on its device.

        >>> torch.tensor([1.0]).new_full((2,), 7)
        tensor([7., 7.])
        """,
    ),
    "new_ones": documented(
        _new(creation.ones),
        """A tensor of ones, of this one's type, on its device.

        >>> torch.tensor([1]).new_ones(2)
        tensor([1, 1])
        """,
    ),
    "new_tensor": documented(
        _new(creation.tensor),
        """A tensor of data, of this one's type, on its device.

        >>> torch.tensor([1.0]).new_tensor([2, 3])
        tensor([2., 3.])
        """,
    ),
    "new_zeros": documented(
        _new(creation.zeros),
        """A tensor of zeros, of this one's type, on its device.

        >>> torch.tensor([1]).new_zeros(2)
        tensor([0, 0])
        """,
    ),
}
FUNCTIONS = _OF_TORCH | complete(of_special.functions)


def _converting(kind: Any) -> Any:
    """The method that makes a number of Python's of the only element."""

    def convert(self: Any) -> Any:
        if base(self).size != 1:
            raise OptionError(
                "only one element tensors can be converted to Python scalars"
            )
        return kind(Tensor.item(self))

    return convert


FURTHER = {
    "__complex__": _converting(complex),
    "__contains__": contains,
    "__reversed__": backwards,
    "__float__": _converting(float),
    "__int__": _converting(int),
    "__abs__": FUNCTIONS["abs"],
    "__and__": FUNCTIONS["bitwise_and"],
    "__floordiv__": FUNCTIONS["floor_divide"],
    "__getitem__": indexing.getitem,
    "__invert__": invert,
    "__lshift__": FUNCTIONS["bitwise_left_shift"],
    "__neg__": FUNCTIONS["neg"],
    "__or__": FUNCTIONS["bitwise_or"],
    "__pos__": lambda self: self,
    "__rand__": _reflected(FUNCTIONS["bitwise_and"]),
    "__rfloordiv__": _reflected(FUNCTIONS["floor_divide"]),
    "__rlshift__": _reflected(FUNCTIONS["bitwise_left_shift"]),
    "__ror__": _reflected(FUNCTIONS["bitwise_or"]),
    "__rrshift__": _reflected(FUNCTIONS["bitwise_right_shift"]),
    "__rshift__": FUNCTIONS["bitwise_right_shift"],
    "__rxor__": _reflected(FUNCTIONS["bitwise_xor"]),
    "__delitem__": inplace.delitem,
    "__setitem__": inplace.setitem,
    "__xor__": FUNCTIONS["bitwise_xor"],
    "get_device": _device_number,
    "ndimension": dim,
    "nelement": numel,
    "type": type_,
    **{f"__{name}__": FUNCTIONS[name] for name in comparison.COMPARISONS},
    **{name: _late(name) for name in _LATE},
}
PROPERTIES = {
    f.__name__: f for f in (is_cuda, is_sparse, itemsize, layout, mH, nbytes)
} | {
    "_cdata": id,
    "_version": _version,
    "T": shaping.reversed_axes,
    "H": matrix_adjoint,
    "mT": shaping.matrix_transposed,
}


def _part(get: Any) -> Any:
    """A part of complex numbers, which may be written to."""

    def write(self: Tensor, value: Any) -> None:
        get(self).copy_(value)

    return property(another(get, get.__name__), write)


_PARTS = {
    "imag": documented(
        _part(elementwise.imag),
        """The imaginary part.

        >>> torch.tensor([1 + 2j]).imag
        tensor([2.])
        """,
    ),
    "real": documented(
        _part(elementwise.real),
        """The real part.

        >>> torch.tensor([1 + 2j]).real
        tensor([1.])
        """,
    ),
}


def install() -> None:
    """Give the class its methods."""
    # What comes later counts: a tensor's own method before the function of that name.
    alone = names_with("function")
    table = {name: f for name, f in FUNCTIONS.items() if name not in alone}
    table |= {f"{n}_": inplace.in_place(n, FUNCTIONS[n]) for n in names_with("method_")}
    table |= gradients.METHODS | inplace.METHODS | inplace.OPERATORS | _FILLING
    table |= _OWN | {
        n: documented(_to_type(k), text) for n, (k, text) in _TYPES.items()
    }
    table |= _NEW | FURTHER
    table |= resize_share.METHODS | COPYING | EXPORTING | asking.METHODS
    properties = PROPERTIES | resize_share.PROPERTIES
    for name, getter in properties.items():
        table[name] = property(another(getter, name))
    table |= _PARTS
    for name, method in table.items():  # which is no function of another name or place
        setattr(Tensor, name, another(method, name))


install()
