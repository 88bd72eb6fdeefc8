"""Files for PyTorch: what its ``torch.load(path, weights_only=True)`` reads.

The steps of the pickle are those that PyTorch writes. Tensors that share memory share
it in the file, and one that is there twice is one again.
"""

import io
import struct
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from lantern.eager.versions import owner
from lantern.errors import ArgumentError, EagerError
from lantern.torch.file_reader import entry
from lantern.torch.nn.parameter import Parameter
from lantern.torch.pickles.contents import STORAGES
from lantern.torch.serialization import chosen
from lantern.torch.storage import memory_of
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.copying import attributes
from lantern.torch.tensor.devices import address, on_host
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor

__all__ = ["pickle_bytes"]

_CLASSES = {kind: name for name, kind in STORAGES.items()}
_DEEPEST = 90


def pickle_bytes(obj: Any) -> bytes:
    """The bytes of a file that holds an object.

    Raises:
        ArgumentError: for what PyTorch would not read without running it.
    """
    import zipfile  # which imports a lot

    writer = _Writer()
    writer.put(obj, "", 0)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def add(name: str, content: Any) -> None:
            archive.writestr(entry(zipfile.ZipInfo, name, file.tell()), content)

        add("data.pkl", b"\x80\x02" + bytes(writer.steps) + b".")
        add("byteorder", sys.byteorder.encode())
        for key, memory in enumerate(writer.memories):
            flat = memory.view(np.uint8)
            add(f"data/{key}", bytes(flat.size) if chosen("skip") else flat)
        add("version", b"3\n")
    return file.getvalue()


class _Writer:
    """The steps that make an object, and the memory that they name."""

    def __init__(self) -> None:
        self.steps = bytearray()
        self.memories: list[Any] = []
        # By identity: the place in the memo, and what keeps the identity taken.
        self.memo: dict[int, tuple[int, Any]] = {}
        self.keys: dict[int, tuple[int, Any]] = {}
        self.kinds: dict[int, tuple[Any, Any]] = {}

    def put(self, x: Any, path: str, depth: int) -> None:
        """Write the steps of one object, or where it is remembered."""
        if id(x) in self.memo:
            self.steps += b"j" + struct.pack("<I", self.memo[id(x)][0])
            return
        if depth > _DEEPEST:
            raise ArgumentError(
                "torch.save: the object holds itself, or is nested too deep. Save its "
                "parts, each once."
            )
        if self.plain(x):
            return
        if isinstance(x, Tensor):
            self.attributed(x, path, depth)
        elif isinstance(x, Mapping):
            self.mapping(x, path, depth)
        elif isinstance(x, list):
            self.steps += b"]"
            self.remember(x)
            self.sequence(x, path, depth)
            self.steps += b"e"
            return
        elif isinstance(x, tuple | set):
            self.fixed(x, path, depth)
        else:
            raise ArgumentError(
                f"torch.save: PyTorch would not read a {type(x).__name__} at "
                f"{path or 'the top'!r} as weights. Save tensors and plain values."
            )
        if not isinstance(x, Mapping):
            self.remember(x)

    def remember(self, x: Any) -> None:
        """Remember what is on top of the stack."""
        place = len(self.memo)
        self.steps += b"r" + struct.pack("<I", place)
        self.memo[id(x)] = place, x

    def plain(self, x: Any) -> bool:
        """Write a value without parts, if it is one."""
        if x is None or x is True or x is False:
            self.steps += {None: b"N", True: b"\x88", False: b"\x89"}[x]
        elif isinstance(x, int):
            if not -(2**31) <= x < 2**31:
                packed = int(x).to_bytes(x.bit_length() // 8 + 1, "little", signed=True)
                if len(packed) > 255:
                    raise ArgumentError("torch.save: a number of more than 2040 bits.")
                self.steps += b"\x8a" + bytes([len(packed)]) + packed
            else:
                self.steps += b"J" + struct.pack("<i", x)
        elif isinstance(x, float):
            self.steps += b"G" + struct.pack(">d", x)
        elif isinstance(x, str):
            self.text(x)
        elif isinstance(x, bytes):
            self.name("_codecs", "encode", b"(")
            self.text(x.decode("latin1"))
            self.text("latin1")
            self.steps += b"tR"
        elif isinstance(x, bytearray):
            self.name("__builtin__", "bytearray", b"(")
            self.plain(bytes(x))
            self.steps += b"tR"
        elif isinstance(x, complex):
            self.name("__builtin__", "complex")
            self.steps += struct.pack(
                ">cdcdcc", b"G", x.real, b"G", x.imag, b"\x86", b"R"
            )
        elif isinstance(x, dtypes.dtype):
            self.name("torch", x.name)
        elif isinstance(x, dtypes.device):
            self.name("torch", "device")
            self.text(str(x))
            self.steps += b"\x85R"
        else:
            return False
        return True

    def text(self, x: str) -> None:
        """Write a text."""
        packed = x.encode("utf-8", "surrogatepass")
        self.steps += b"X" + struct.pack("<I", len(packed)) + packed

    def name(self, module: str, name: str, then: bytes = b"") -> None:
        """Write a name of PyTorch's or Python's, and a step."""
        self.steps += f"c{module}\n{name}\n".encode() + then

    # --- containers -------------------------------------------------------------------

    def mapping(self, x: Any, path: str, depth: int) -> None:
        """Write a dictionary, and the versions of a module's state."""
        metadata = getattr(x, "_metadata", None)
        if isinstance(x, OrderedDict) or metadata is not None:
            self.name("collections", "OrderedDict", b")R")
        else:
            self.steps += b"}"
        self.remember(x)
        self.steps += b"("
        for key, value in x.items():
            self.put(key, path, depth + 1)
            self.put(value, f"{path}.{key}" if path else str(key), depth + 1)
        self.steps += b"u"
        if metadata is not None:
            self.steps += b"}"
            self.text("_metadata")
            self.put(metadata, path, depth + 1)
            self.steps += b"sb"

    def sequence(self, x: Any, path: str, depth: int) -> None:
        """Write a mark and parts."""
        self.steps += b"("
        for i, value in enumerate(x):
            self.put(value, f"{path}.{i}" if path else str(i), depth + 1)

    def fixed(self, x: Any, path: str, depth: int) -> None:
        """Write a tuple, a size or a set, which are made of all of their parts."""
        if isinstance(x, set):
            self.name("__builtin__", "set", b"(](")
            for value in sorted(x, key=repr):
                self.put(value, path, depth + 1)
            self.steps += b"etR"
            return
        if isinstance(x, Size):
            self.name("torch", "Size", b"(")
        self.sequence(x, path, depth)
        self.steps += b"ttR" if isinstance(x, Size) else b"t"

    # --- tensors ----------------------------------------------------------------------

    def attributed(self, x: Tensor, path: str, depth: int) -> None:
        """Write a tensor with the attributes that a program has given it."""
        state = attributes(x)
        if isinstance(x, Parameter):
            with_state = "_with_state" if state else ""
            self.name("torch._utils", f"_rebuild_parameter{with_state}", b"(")
            self.view(x, False)
            self.plain(bool(x.requires_grad))
            self.name("collections", "OrderedDict", b")R")
        elif state:
            self.name("torch._tensor", "_rebuild_from_type_v2", b"(")
            self.view(x, x.requires_grad, of_type=True)
        else:
            self.view(x, x.requires_grad)
            return
        if state:
            self.put(state, path, depth + 1)
        self.steps += b"tR"

    def view(self, x: Tensor, wanted: Any, of_type: bool = False) -> None:
        """Write a tensor as a view of memory, or what makes one of a type."""
        array = on_host(in_memory(x.detach()))
        kind = dtypes.by_numpy[array.dtype].name
        self.name("torch._utils", f"_rebuild_tensor_v{2 if kind in _CLASSES else 3}")
        if of_type:
            self.name("torch", "Tensor")
        self.steps += b"("
        self.memory(array)
        self.plain(bool(wanted))
        self.name("collections", "OrderedDict", b")R")
        if kind not in _CLASSES:
            self.name("torch", kind)
        self.steps += b"t" if of_type else b"tR"

    def memory(self, array: Any) -> None:
        """Write the memory of an array, and which part of it the array is."""
        base = owner(array)
        self.once(base, array.dtype)
        if _is_in_a_row(array, base):
            flat = memory_of(array)
        else:
            base = array = np.array(array, order="C")
            flat = base.reshape(-1)
        kind = _CLASSES.get(dtypes.by_numpy[array.dtype].name)
        self.steps += b"("
        self.text("storage")
        self.name(*(("torch", kind) if kind else ("torch.storage", "UntypedStorage")))
        self.text(str(self.key(base, flat)))
        self.text("cpu")
        self.plain(flat.size if kind else flat.nbytes)
        self.steps += b"tQ"
        step = array.itemsize
        self.plain((address(array) - address(flat)) // step if array.size else 0)
        self.sizes(array.shape)
        self.sizes(stride // step for stride in array.strides)

    def once(self, memory: Any, kind: Any) -> None:
        """Raise if memory that is written already is shown as another type."""
        if self.kinds.setdefault(id(memory), (kind, memory))[0] != kind:
            raise EagerError(
                "Cannot save multiple tensors or storages that view the same data as "
                "different types. clone() one of them."
            )

    def sizes(self, numbers: Any) -> None:
        """Write a tuple of numbers."""
        self.steps += b"("
        for n in numbers:
            self.plain(int(n))
        self.steps += b"t"

    def key(self, base: Any, flat: Any) -> int:
        """The number of a part of memory, which is written once."""
        if id(base) not in self.keys:
            self.keys[id(base)] = len(self.memories), base
            self.memories.append(flat)
        return self.keys[id(base)][0]


def _is_in_a_row(array: Any, base: Any) -> bool:
    """Whether an array is elements of its memory, counted from the first one on."""
    step = array.itemsize
    return (
        base.nbytes % step == 0
        and all(stride >= 0 and stride % step == 0 for stride in array.strides)
        and np.may_share_memory(flat := memory_of(array), array) | (not array.size)
        and (address(array) - address(flat)) % step == 0
    )
