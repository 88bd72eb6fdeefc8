"""What the names of a file of PyTorch's stand for: the only list of what may be in one.

Tensors are views of the memory that the file names, so that those that share memory go
on sharing it; NumPy's types, devices and sizes are made from plain numbers and texts.
"""

from collections import OrderedDict
from typing import Any

import numpy as np

from lantern.errors import OptionError
from lantern.torch.file_format import as_stored, damaged, short
from lantern.torch.nn.parameter import Parameter
from lantern.torch.pickles.opcodes import Named, Reference, Unpickler, is_key
from lantern.torch.serialization import get_safe_globals
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["STORAGES", "Contents", "located"]

_MOST_AXES = 64
# PyTorch's classes of memory, and the type of their elements.
STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}  # fmt: skip
_TYPES = dtypes.by_name | dtypes.named


class Storage(Reference):
    """A part of memory that the file names.

    Args:
        kind: the name of the type of its elements; None for bytes.
        flat: its elements in a row; None as long as they are not read.
    """

    __slots__ = ("flat", "kind")

    def __init__(self, kind: str | None, flat: Any) -> None:
        self.kind, self.flat = kind, flat


def located(x: Tensor, device: str, map_location: Any) -> Tensor:
    """A tensor where ``map_location`` wants it.

    Args:
        x: the tensor, on the CPU.
        device: where it was when it was saved.
        map_location: a device, a dictionary or a function, as ``torch.load`` takes it.
    """
    if callable(map_location):
        map_location = map_location(x, device)
    elif isinstance(map_location, dict):
        map_location = map_location.get(device)
    if map_location is None or isinstance(map_location, Tensor):
        return x if map_location is None else map_location
    moved: Tensor = x.to(map_location)
    return moved


class Contents:
    """What the names of one file stand for.

    A pickle is read twice: first to learn how much memory of which type it names, and
    whether it may be read at all, and once more when the memory is there.

    Args:
        name: what an error calls the file.
        size: the bytes of the file; no more memory can be in it.
        map_location: as ``torch.load`` takes it.

    Attributes:
        announced: of each part of memory: the type, where it was, elements, bytes.
    """

    def __init__(self, name: str, size: int, map_location: Any = None) -> None:
        self.name, self.size, self.map_location = name, size, map_location
        self.announced: dict[str, tuple[str | None, str, int, int]] = {}
        self.storages: dict[str, Storage] = {}
        self.table = {
            "collections.OrderedDict": _ordered,
            "torch.Size": lambda sizes=(): Size([whole(n) for n in sizes]),
            "torch.device": dtypes.device,
            "builtins.set": _set,
            "builtins.complex": lambda a, b: complex(float(a), float(b)),
            "_codecs.encode": _bytes,
            "torch._utils._rebuild_tensor": self.tensor,
            "torch._utils._rebuild_tensor_v2": self.tensor,
            "torch._utils._rebuild_tensor_v3": self.tensor,
            "torch._utils._rebuild_parameter": self.parameter,
            "torch._utils._rebuild_parameter_with_state": self.parameter,
            "torch._tensor._rebuild_from_type_v2": self.of_type,
            "torch.Tensor": None,
            "builtins.bytearray": _bytearray,
        }

    def meaning(self, module: str, name: str) -> Any:
        """What a name stands for.

        Raises:
            FileFormatError: if it is not known here.
        """
        path = f"{module}.{name}".replace("__builtin__.", "builtins.")
        if path in self.table:
            return Named(path, self.table[path])
        if module == "torch" and name in _TYPES:
            return _TYPES[name]
        if module in ("torch", "torch.cuda") and name in STORAGES:
            return Named(path, STORAGES[name])
        if path == "torch.storage.UntypedStorage":
            return Named(path, None)
        for found in get_safe_globals():
            if path == f"{found.__module__}.{found.__qualname__}":
                return Named(path, found)
        raise damaged(
            self.name,
            f"holds {path:.200}, and what is read from a pickle is tensors and plain "
            "values, whatever weights_only says; nothing in it is run. Save the "
            "state_dict() instead; a class that you trust can be allowed by "
            "torch.serialization.safe_globals.",
        )

    # --- memory -----------------------------------------------------------------------

    def reader(self, file: Any) -> Unpickler:
        """What reads the pickles of an open file: first without their memory."""
        return Unpickler(file, self.name, self.meaning, self.stored)

    def stored(self, reference: Any) -> Storage:
        """What a reference to memory stands for."""
        kind, class_, key, device, count = reference[:5]
        if (
            kind != "storage"
            or not (isinstance(class_, Named) and class_.path.endswith("Storage"))
            or not (isinstance(key, str) and isinstance(device, str))
            or reference[5:] not in ((), (None,))
        ):
            raise damaged(self.name, f"has a damaged reference: {short(kind)}.")
        if key in self.storages:
            return self.storages[key]
        width = 1 if class_.call is None else _TYPES[class_.call].itemsize
        told = class_.call, device, whole(count), whole(count) * width
        if self.announced.setdefault(key, told) != told:
            raise damaged(self.name, f"has memory {short(key)} of two types or sizes.")
        if told[3] > self.size:
            raise damaged(
                self.name,
                f"names {told[3]} bytes of memory, and has {self.size} in all.",
            )
        return Storage(class_.call, None)

    def place(self, key: str, raw: Any, order: str) -> None:
        """Give a part of memory its bytes, where it is wanted.

        Args:
            key: its name.
            raw: its bytes.
            order: of those of a number, as ``as_stored`` takes it.
        """
        kind, device, *_ = self.announced[key]
        flat = raw if kind is None else as_stored(raw, kind, self.name, order)
        if self.map_location is not None:
            flat = located(fresh(flat), device, self.map_location).primal
        self.storages[key] = Storage(kind, flat)

    # --- tensors ----------------------------------------------------------------------

    def tensor(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any = False,
        hooks: Any = None,
        dtype: Any = None,
        metadata: Any = None,
    ) -> Tensor:
        """A view of memory; hooks and metadata are not for weights."""
        if not isinstance(storage, Storage):
            raise damaged(self.name, "has a tensor without memory.")
        kind = dtype.name if storage.kind is None else storage.kind
        if kind not in dtypes.by_name and kind != "bfloat16":
            raise damaged(
                self.name,
                f"has a tensor of {kind}, of which there are none here. Convert it to "
                "another type where PyTorch is installed.",
            )
        if storage.flat is None:
            return fresh(as_stored(np.zeros(0, np.uint8), kind, self.name))
        flat = storage.flat
        if storage.kind is None:
            flat = as_stored(flat, kind, self.name)
        x = fresh(self.view(flat, whole(offset), size, stride))
        return x.requires_grad_() if requires_grad is True else x

    def view(self, flat: Any, offset: int, size: Any, stride: Any) -> Any:
        """Elements of an array in a row, so far from one another along each axis."""
        sizes = [whole(n) for n in size]
        steps = [whole(n) for n in stride]
        count, last = 1, offset
        for n, step in zip(sizes, steps, strict=True):
            count, last = count * n, last + (n - 1) * step
        bytes_ = max(last, offset, *sizes, *steps, 1) * flat.itemsize
        if (
            len(sizes) > _MOST_AXES
            or (count and last >= len(flat))
            or max(bytes_, count * flat.itemsize) >= 1 << 63
        ):
            raise damaged(
                self.name,
                f"has a tensor of shape {short(sizes)} with strides {short(steps)} "
                f"from {offset} on, and {len(flat)} elements of memory for it.",
            )
        if not count:
            return flat[:0].reshape(sizes)
        if count == len(flat) and steps == _dense(sizes):
            return flat.reshape(sizes)  # also of a library that has no strides
        return _strided(flat, offset, sizes, steps)

    def parameter(
        self, data: Any, requires_grad: Any, hooks: Any = None, state: Any = None
    ) -> Parameter:
        """A parameter around a tensor."""
        if not isinstance(data, Tensor):
            raise damaged(self.name, "has a parameter without a tensor.")
        made = Parameter(data, requires_grad is True)
        self.set_state(made, {} if state is None else state)
        return made

    def of_type(self, rebuild: Any, kind: Any, args: Any, state: Any) -> Tensor:
        """A tensor with attributes, which are plain values."""
        if not (
            isinstance(rebuild, Named)
            and rebuild.path.startswith("torch._utils._rebuild_tensor")
            and isinstance(kind, Named)
            and kind.path == "torch.Tensor"
            and isinstance(args, tuple)
        ):
            raise damaged(self.name, "has a tensor of a class that is not known here.")
        x = self.tensor(*args)
        self.set_state(x, state)
        return x

    def set_state(self, x: Tensor, state: Any) -> None:
        """Give a tensor attributes: names that are free, and nothing is called."""
        if type(state) is not dict or not all(map(_is_free, state)):
            raise damaged(self.name, "has a tensor with attributes of other kinds.")
        x.__dict__.update(state)


def _is_free(name: Any) -> bool:
    """Whether an attribute of a tensor may have a name, as Python itself has none."""
    if type(name) is not str or not name.isidentifier() or name.startswith("__"):
        return False
    return not hasattr(Parameter, name)


def _dense(sizes: list[int]) -> list[int]:
    """The strides of a whole array, row by row."""
    steps = [1] * len(sizes)
    for i in range(len(sizes) - 1, 0, -1):
        steps[i - 1] = steps[i] * sizes[i]
    return steps


def _strided(flat: Any, offset: int, sizes: list[int], steps: list[int]) -> Any:
    """A view of an array in a row, which goes on knowing whose memory it shows."""
    from lantern.tensor.backend.numpy_namespace import array_namespace

    strides = [step * flat.itemsize for step in steps]
    if isinstance(flat, np.ndarray):
        at = offset * flat.itemsize
        return np.ndarray(sizes, flat.dtype, flat, at, strides)
    tricks = array_namespace(flat).lib.stride_tricks
    return tricks.as_strided(flat[offset:], sizes, strides)


def whole(n: Any) -> int:
    """A number that may count something."""
    if type(n) is not int or n < 0:
        raise OptionError(f"{short(n)} is no size")
    return n


def _ordered(pairs: Any = ()) -> OrderedDict[Any, Any]:
    """A dictionary in an order; Python 2 wrote its pairs as a list."""
    if not all(
        type(p) in (list, tuple) and len(p) == 2 and is_key(p[0]) for p in pairs
    ):
        raise OptionError("a dictionary of something else than pairs")
    return OrderedDict(map(tuple, pairs))


def _set(values: Any = ()) -> set[Any]:
    """A set of plain values."""
    if not all(map(is_key, values)):
        raise OptionError("a set of something else than plain values")
    return set(values)


def _bytearray(packed: Any = b"") -> bytearray:
    """Bytes that can be changed."""
    if type(packed) is not bytes:
        raise OptionError("a bytearray of something else than bytes")
    return bytearray(packed)


def _bytes(text: Any, encoding: Any) -> bytes:
    """Bytes, which protocol 2 writes as a text."""
    if type(text) is not str or encoding != "latin1":
        raise OptionError("bytes in another form than Python's")
    return text.encode("latin1")
