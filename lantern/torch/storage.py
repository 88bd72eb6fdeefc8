"""The memory of tensors, as PyTorch shows it: bytes in a row, or elements."""

import sys
from typing import Any, ClassVar

import numpy as np

from lantern.eager.versions import owner, written
from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.copying import copied_array
from lantern.torch.tensor.devices import address
from lantern.torch.tensor.dtypes import CPU
from lantern.torch.tensor.tensor import fresh

__all__ = ["STORAGES", "TypedStorage", "UntypedStorage", "memory_of"]


def mapped(filename: Any, shared: bool, nbytes: int) -> Any:
    """The bytes of a file as an array; one that is shared and too short grows."""
    if shared:
        with open(filename, "ab") as file:
            if file.tell() < nbytes:
                file.truncate(nbytes)
    mode: Any = "r+" if shared else "c"
    return np.memmap(filename, np.uint8, mode, shape=(nbytes,))


class UntypedStorage:
    """Bytes in a row, those of a tensor or new ones.

    Args:
        size: how many bytes; or an array, whose memory it is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, 3).untyped_storage().nbytes()
        24
        >>> len(torch.UntypedStorage(5))
        5
    """

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        made = np.zeros(size, np.uint8) if isinstance(size, int) else size
        self.array = made.reshape(-1).view(np.uint8) if made.size else made

    @classmethod
    def from_file(
        cls, filename: str, shared: bool = False, nbytes: int = 0
    ) -> "UntypedStorage":
        """The bytes of a file, read as they are asked for.

        Args:
            filename: its path.
            shared: whether what is written goes into the file.
            nbytes: how many there are.
        """
        return cls(mapped(filename, shared, nbytes))

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self.array.nbytes)

    __len__ = size = nbytes

    def data_ptr(self) -> int:
        """The address of the first one."""
        return address(self.array)

    @property
    def _cdata(self) -> int:
        return address(self.array)

    @property
    def device(self) -> Any:
        """Where they lie."""
        return CPU

    def element_size(self) -> int:
        """1: bytes."""
        return 1

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return list(self.array.view(np.uint8).tolist())

    def __getitem__(self, index: Any) -> Any:
        part = self.array.view(np.uint8)[index]
        return UntypedStorage(part) if isinstance(index, slice) else int(part)

    def __setitem__(self, index: Any, value: Any) -> None:
        other = value.array if isinstance(value, UntypedStorage) else value
        self.array.view(np.uint8)[index] = other

    def __eq__(self, other: object) -> Any:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    def copy_(self, source: "UntypedStorage") -> "UntypedStorage":
        """Take the bytes of another one."""
        self[:] = source
        return self

    def clone(self) -> "UntypedStorage":
        """The same bytes in memory of their own."""
        return UntypedStorage(self.array.copy())

    def resize_(self, size: int) -> "UntypedStorage":
        """Refused, unless it changes nothing: arrays of NumPy do not grow."""
        if size != self.nbytes():
            raise OptionError(
                f"UntypedStorage.resize_: memory of {self.nbytes()} bytes cannot "
                f"become {size}. Make a new tensor, or use Tensor.resize_."
            )
        return self

    def untyped(self) -> "UntypedStorage":
        """Itself."""
        return self

    def is_shared(self) -> bool:
        """Whether processes share it: ask the tensor."""
        return False

    def __repr__(self) -> str:
        rows = "\n".join(f" {x}" for x in self.tolist())
        return f"{rows}\n[torch.storage.UntypedStorage(device=cpu) of size {len(self)}]"


def memory_of(array: Any) -> Any:
    """All of the memory that an array shows a part of, as elements in a row."""
    whole = owner(array)
    if isinstance(whole, np.ndarray) and not whole.flags.c_contiguous:
        whole = whole.T if whole.T.flags.c_contiguous else whole
        whole = whole.transpose(np.argsort([-s for s in whole.strides], kind="stable"))
    flat = whole.reshape(-1)
    return flat if flat.dtype == array.dtype else flat.view(array.dtype)


class TypedStorage:
    """Elements of one type in a row: those of a tensor, or new ones.

    Args:
        data: how many; numbers; or an array without gaps, whose memory it is.
        dtype: the type of the elements.
        wrap_storage: bytes, which shall be the elements.

    Example:
        >>> import lantern.torch as torch
        >>> storage = torch.ones(2, 3).storage()
        >>> len(storage), storage.dtype
        (6, torch.float32)
        >>> torch.FloatStorage([1, 2]).tolist()
        [1.0, 2.0]
    """

    dtype: Any
    is_sparse = is_cuda = False
    device = CPU

    def __init__(
        self,
        data: Any = 0,
        *,
        dtype: Any = None,
        device: Any = None,
        wrap_storage: Any = None,
    ) -> None:
        kind = dtypes.get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            data = wrap_storage.array.view(kind.numpy)
        elif isinstance(data, int):
            data = np.zeros(data, kind.numpy)
        elif not isinstance(data, np.ndarray):
            data = np.array(data, kind.numpy)
        self.array, self.dtype = data, kind

    @classmethod
    def from_file(
        cls, filename: Any, shared: bool = False, size: int = 0, *, dtype: Any = None
    ) -> "TypedStorage":
        """The elements of a file, read as they are asked for."""
        kind = dtypes.get_default_dtype() if dtype is None else dtype
        array = mapped(filename, shared, size * kind.itemsize)
        return cls(array.view(kind.numpy), dtype=kind)

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", *, dtype: Any = None
    ) -> "TypedStorage":
        """The elements whose bytes a buffer has, in one order or the other."""
        kind = dtypes.get_default_dtype() if dtype is None else dtype
        order = sys.byteorder if byte_order == "native" else byte_order
        if order not in ("big", "little"):
            raise OptionError(f"invalid byte_order '{byte_order}'")
        plain = kind.numpy.newbyteorder(">" if order == "big" else "<")
        if kind is dtypes.bool:
            array = np.frombuffer(buffer, np.uint8) != 0
        else:
            array = np.frombuffer(buffer, plain).astype(kind.numpy)
        return cls(array, dtype=kind)

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return UntypedStorage(self.array)

    _untyped_storage = property(untyped)

    def size(self) -> int:
        """How many elements there are."""
        return int(self.array.size)

    __len__ = size

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self.array.nbytes)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> int:
        """How many bytes an element takes."""
        return int(self.array.itemsize)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return address(self.array)

    @property
    def _cdata(self) -> int:
        return address(self.array)

    def resizable(self) -> bool:
        """Whether they can become more: only what nothing else shows."""
        return False

    def is_shared(self) -> bool:
        """Whether processes share them: ask the tensor."""
        return False

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return list(self.array.tolist())

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise EagerError("slices are only supported in UntypedStorage.__getitem__")
        return self.array[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = value.array if isinstance(value, TypedStorage) else value
        written(self.array)

    def fill_(self, value: Any) -> "TypedStorage":
        """Take one value everywhere."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: Any = None) -> "TypedStorage":
        """Take the elements of another one."""
        self[:] = source
        return self

    def clone(self) -> "TypedStorage":
        """The same elements in memory of their own."""
        return TypedStorage(self.array.copy(), dtype=self.dtype)

    def cpu(self) -> "TypedStorage":
        """Itself."""
        return self

    def type(self, dtype: Any = None) -> Any:
        """The name of the class; or the elements in another type."""
        if dtype is None:
            return f"torch.{dtypes.type_name(self.array.dtype)}Storage"
        return TypedStorage(self.array.astype(dtype.numpy), dtype=dtype)

    def __eq__(self, other: object) -> Any:
        return isinstance(other, TypedStorage) and self.tolist() == other.tolist()

    def __hash__(self) -> int:
        return hash(self._cdata)

    def __deepcopy__(self, memo: dict[int, Any]) -> "TypedStorage":
        return TypedStorage(copied_array(self.array, memo), dtype=self.dtype)

    def __repr__(self) -> str:
        rows = "\n".join(f" {x}" for x in self.tolist())
        return (
            f"{rows}\n[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of "
            f"size {len(self)}]"
        )


def from_file(
    filename: Any,
    shared: bool = False,
    size: int = 0,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
) -> Any:
    """The numbers in a file as a tensor, read as they are asked for.

    Args:
        filename: its path.
        shared: whether what is written to the tensor goes into the file.
        size: how many there are.
        dtype: their type.
        requires_grad: whether a derivative may be asked for.

    Example:
        >>> import lantern.torch as torch
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "bytes"
        ...     _ = path.write_bytes(bytes([1, 2, 3]))
        ...     torch.from_file(path, size=3, dtype=torch.uint8)
        tensor([1, 2, 3], dtype=torch.uint8)
    """
    storage = TypedStorage.from_file(filename, shared, size, dtype=dtype)
    x = fresh(np.asarray(storage.array))
    return x.requires_grad_() if requires_grad else x


class _OfType(type):
    """The class of ``FloatStorage``: it makes storages of a type, and knows them."""

    dtype: ClassVar[Any]

    def __call__(cls, *data: Any, wrap_storage: Any = None) -> Any:
        """Elements: so many, or those of a sequence."""
        if len(data) > 1:
            raise EagerError(
                f"Too many positional arguments: {cls.__name__}() takes one at most"
            )
        if data and not isinstance(data[0], int | list | tuple | np.ndarray):
            raise ArgumentError(
                f"{cls.__name__}: Argument type not recognized: {type(data[0])}"
            )
        return TypedStorage(*data, dtype=cls.dtype, wrap_storage=wrap_storage)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, TypedStorage) and x.dtype is cls.dtype

    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> Any:
        """The elements of a file, read as they are asked for."""
        return TypedStorage.from_file(filename, shared, size, dtype=cls.dtype)

    def from_buffer(cls, buffer: Any, byte_order: str = "native") -> Any:
        """The elements whose bytes a buffer has."""
        return TypedStorage.from_buffer(buffer, byte_order, dtype=cls.dtype)


_WORDS = {
    "BFloat16": "bfloat16", "Bool": "bool", "Byte": "uint8", "Char": "int8",
    "ComplexDouble": "complex128", "ComplexFloat": "complex64", "Double": "float64",
    "Float": "float32", "Half": "float16", "Int": "int32", "Long": "int64",
    "Short": "int16",
}  # fmt: skip


def _of_type(word: str, kind: Any) -> Any:
    one = {"b": True, "f": 1.0, "V": 1.0, "c": 1 + 0j}
    shown = [one.get("V" if word == "BFloat16" else kind.numpy.kind, 1)]
    text = f"""The class, of old, of memory of type ``{kind}``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.{word}Storage([1]).tolist()
        {shown}
    """
    rest = {"dtype": kind, "__module__": "lantern.torch", "__doc__": text}
    return _OfType(f"{word}Storage", (), rest)


STORAGES: dict[str, Any] = {
    f"{word}Storage": _of_type(word, getattr(dtypes, kind))
    for word, kind in _WORDS.items()
}


def __getattr__(name: str) -> Any:
    """A class of elements of one type."""
    if name in STORAGES:
        return STORAGES[name]
    raise AttributeError(f"module 'torch.storage' has no attribute {name!r}")
