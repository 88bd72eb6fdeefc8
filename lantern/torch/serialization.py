"""Whole objects in files: classes are named, attributes are stored, no code is.

An object that is read is one of a class that the program knows, made without its
constructor, with the attributes that the file has. A class of the program's own must be
allowed: by ``safe_globals``, or, if it is a module's, by ``weights_only=False``; so are
constraints and distributions.
"""

import argparse
import mmap
import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from enum import Enum, EnumMeta
from types import ModuleType
from typing import IO, Any

from lantern.errors import ArgumentError, FileFormatError, OptionError
from lantern.torch.tensor.dtypes import device

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_default_format",
    "get_safe_globals",
    "safe_globals",
    "set_default_format",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

# What the parameters of ``load`` are called in annotations.
FileLike: Any = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION: Any = Any

_allowed: list[Any] = []
_chosen: dict[str, Any] = {
    "crc32": True,
    "format": "safetensors",
    "mmap": getattr(mmap, "MAP_PRIVATE", 2),
    "order": None,
    "skip": False,
}


DEFAULT_PROTOCOL = 2  # of pickles


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow classes, whose objects a file may hold.

    Example:
        >>> import lantern.torch as torch
        >>> from collections import OrderedDict
        >>> torch.serialization.add_safe_globals([OrderedDict])
        >>> OrderedDict in torch.serialization.get_safe_globals()
        True
        >>> torch.serialization.clear_safe_globals()
    """
    _allowed.extend(safe_globals)


def get_safe_globals() -> list[Any]:
    """The classes that are allowed.

    Example:
        >>> import lantern.torch as torch
        >>> torch.serialization.clear_safe_globals()
        >>> torch.serialization.get_safe_globals()
        []
    """
    return list(_allowed)


def clear_safe_globals() -> None:
    """Allow no classes any more.

    Example:
        >>> import lantern.torch as torch
        >>> torch.serialization.clear_safe_globals()
        >>> torch.serialization.get_safe_globals()
        []
    """
    _allowed.clear()


class LoadEndianness(Enum):
    """In which order the bytes of a number stand in files that do not say so.

    Example:
        >>> import lantern.torch as torch
        >>> torch.serialization.LoadEndianness.LITTLE.name
        'LITTLE'
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The order of bytes for files that do not say so; None for the machine's.

    Example:
        >>> import lantern.torch as torch
        >>> torch.serialization.get_default_load_endianness() is None
        True
    """
    return _chosen["order"]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose the order of bytes for files of PyTorch's that do not say so.

    Example:
        >>> import lantern.torch as torch
        >>> order = torch.serialization.LoadEndianness.LITTLE
        >>> torch.serialization.set_default_load_endianness(order)
        >>> torch.serialization.get_default_load_endianness().name
        'LITTLE'
        >>> torch.serialization.set_default_load_endianness(None)
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise ArgumentError(
            f"Invalid argument type in function set_default_load_endianness: "
            f"{endianness!r:.80}"
        )
    _chosen["order"] = endianness


def get_crc32_options() -> bool:
    """Whether the check sums of PyTorch's files are checked.

    Example:
        >>> import lantern.torch as torch
        >>> torch.serialization.get_crc32_options()
        True
    """
    return bool(_chosen["crc32"])


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether the check sums of files of PyTorch's are checked, as by default.

    PyTorch, told the same, writes files whose check sums are none; and a program that
    writes into a file's memory (``MAP_SHARED``) leaves the old ones. Those that are
    written here are always right.

    Example:
        >>> import lantern.torch as torch
        >>> torch.serialization.set_crc32_options(False)
        >>> torch.serialization.get_crc32_options()
        False
        >>> torch.serialization.set_crc32_options(True)
    """
    _chosen["crc32"] = bool(compute_crc32)


def get_default_format() -> str:
    """The format in which ``torch.save`` writes what is not told otherwise.

    Example:
        >>> import lantern.torch as torch
        >>> torch.serialization.get_default_format()
        'safetensors'
    """
    return str(_chosen["format"])


def set_default_format(format: str) -> None:
    """Choose the format of ``torch.save``: "safetensors", or "pytorch" for PyTorch's.

    For programs that say no format, and whose files PyTorch shall read.

    Example:
        >>> import lantern.torch as torch
        >>> torch.serialization.set_default_format("pytorch")
        >>> torch.serialization.get_default_format()
        'pytorch'
        >>> torch.serialization.set_default_format("safetensors")
    """
    if format not in ("safetensors", "pytorch"):
        raise OptionError(
            f"set_default_format: there is no format {format!r:.80}. Use 'safetensors' "
            f"or 'pytorch'."
        )
    _chosen["format"] = format


def get_default_mmap_options() -> int:
    """How ``load(mmap=True)`` maps files: ``mmap.MAP_PRIVATE`` or ``MAP_SHARED``.

    Example:
        >>> import lantern.torch as torch
        >>> import mmap
        >>> torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
        True
    """
    return int(_chosen["mmap"])


class set_default_mmap_options:
    """Choose how ``load(mmap=True)`` maps files; as a block, for its time.

    Args:
        flags: ``mmap.MAP_PRIVATE``, so that what is written to a tensor stays in the
            program, or ``mmap.MAP_SHARED``, so that it goes into the file, whose check
            sums are then the old ones: see ``set_crc32_options``.

    Example:
        >>> import lantern.torch as torch
        >>> import mmap
        >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
        True
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ArgumentError(
                f"Invalid argument in function set_default_mmap_options, expected "
                f"mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self.before, _chosen["mmap"] = _chosen["mmap"], flags

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: Any) -> None:
        _chosen["mmap"] = self.before


class skip_data:
    """A block in which ``torch.save`` leaves the bytes of tensors out, as zeros.

    Only in PyTorch's format. What is written can be filled later.

    Args:
        materialize_fake_tensors: has no effect; as PyTorch has it.

    Example:
        >>> import io
        >>> import lantern.torch as torch
        >>> file = io.BytesIO()
        >>> with torch.serialization.skip_data():
        ...     torch.save(torch.ones(2), file, format="pytorch")
        >>> _ = file.seek(0)
        >>> torch.load(file)
        tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.before = False

    def __enter__(self) -> None:
        self.before, _chosen["skip"] = _chosen["skip"], True

    def __exit__(self, *exception: Any) -> None:
        _chosen["skip"] = self.before


def chosen(name: str) -> Any:
    """What programs have chosen: "crc32", "skip", "order", "mmap"."""
    return _chosen[name]


class safe_globals:
    """A block in which classes are allowed, whose objects a file may hold.

    Example:
        >>> import lantern.torch as torch
        >>> from collections import OrderedDict
        >>> with torch.serialization.safe_globals([OrderedDict]):
        ...     print(torch.serialization.get_safe_globals() == [OrderedDict])
        True
    """

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self.added = list(safe_globals)

    def __enter__(self) -> None:
        self.before = get_safe_globals()
        _allowed.extend(self.added)

    def __exit__(self, *exception: Any) -> None:
        _allowed[:] = self.before


def _functions() -> dict[str, Any]:
    """The functions that a module may have among its attributes, by name."""
    from lantern.torch.methods.table import FUNCTIONS
    from lantern.torch.nn import functional

    found = {f"torch.{name}": f for name, f in FUNCTIONS.items()}
    for name, f in vars(functional).items():
        if callable(f):
            found[f"torch.nn.functional.{name}"] = f
    return found


def is_whole(x: Any) -> bool:
    """Whether an object is stored as its class and its attributes."""
    from lantern.torch.nn.module import Module

    return isinstance(x, Module | argparse.Namespace) or _is_plain(type(x))


def _is_plain(kind: type) -> bool:
    """Whether objects of a class are their attributes, and can be made without it."""
    ways = ("__new__", "__reduce__", "__reduce_ex__", "__getstate__")
    usual = all(getattr(kind, way, None) is getattr(object, way, None) for way in ways)
    more = hasattr(kind, "__slots__") or hasattr(kind, "__del__")
    return usual and not more and "__dict__" in dir(kind)


def packed_object(x: Any, path: str, pack: Any) -> Any:
    """A module, or what its attributes may be besides plain data, for JSON.

    Args:
        x: the object.
        path: where it is.
        pack: how an attribute at a path is stored.
    """
    if callable(x) and not is_whole(x):
        for name, function in _functions().items():
            if function is x:
                return {"function": name}
    if isinstance(x, set | frozenset):
        return {"set": [pack(v, path) for v in sorted(x, key=repr)]}
    if isinstance(x, bytes):
        return {"bytes": x.hex()}
    if isinstance(x, Enum):
        return {"member": [type(x).__module__, type(x).__qualname__, x.name]}
    if isinstance(x, device):
        return {"device": str(x)}
    if not is_whole(x):
        raise ArgumentError(
            f"torch.save: an object of class {type(x).__name__} at "
            f"{path or 'the top'!r} could only be saved as code. Save a state_dict()."
        )
    kind = type(x)
    if "<locals>" in kind.__qualname__:
        raise ArgumentError(
            f"torch.save: the class {kind.__qualname__} at {path or 'the top'!r} is "
            "defined inside of a function, and cannot be found again. Save a "
            "state_dict()."
        )
    # What has no attributes says None.
    state = x.__getstate__() or ({} if not vars(x) else None)
    if not isinstance(state, dict):
        raise ArgumentError(
            f"torch.save: {kind.__qualname__}.__getstate__ at {path or 'the top'!r} "
            f"gives no dictionary, but {type(state).__name__}. Save a state_dict()."
        )
    items = [
        [name, pack(value, f"{path}.{name}" if path else name)]
        for name, value in state.items()
    ]
    return {"object": [kind.__module__, kind.__qualname__, items]}


def _found(module: str, name: str) -> Any:
    """A class among those that the program knows; nothing is imported or run for it.

    Of the layers here that is all of them, asked for or not.
    """
    if f"{module}.".startswith("lantern.torch.nn."):
        from lantern.torch import nn

        dir(nn)  # which imports them
    place: Any = sys.modules.get(module)
    for word in name.split("."):
        known = isinstance(place, ModuleType | type)
        place = vars(place).get(word) if known else None
    return place


def unpacked_object(kind: str, inner: Any, reader: Any, trusted: bool) -> Any:
    """An object from its JSON: see ``packed_object``.

    Args:
        kind: what it is.
        inner: its parts.
        reader: what reads an attribute, and checks types.
        trusted: whether classes need not be allowed.
    """
    if kind == "function":
        return _functions()[reader.typed(inner, str)]
    if kind == "set":
        return {reader.read(v) for v in reader.typed(inner, list)}
    if kind == "bytes":
        return bytes.fromhex(reader.typed(inner, str))
    if kind == "device":
        return device(reader.typed(inner, str))
    if kind == "member":
        module, name, member = (reader.typed(v, str) for v in reader.typed(inner, list))
        return _checked_class(module, name, False).__members__[member]
    if kind != "object":
        raise FileFormatError(
            f"torch.load: the file has a damaged structure: a part {kind!r:.80}."
        )
    module, name, items = reader.typed(inner, list)
    found = _checked_class(reader.typed(module, str), reader.typed(name, str), trusted)
    made, state = object.__new__(found), {}
    for item in reader.typed(items, list):
        key, value = reader.typed(item, list)
        state[reader.typed(key, str)] = reader.read(value)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    else:
        made.__dict__.update(state)
    return made


def _checked_class(module: str, name: str, trusted: bool) -> Any:
    """A class, if files may hold its objects."""
    from lantern.torch.nn.module import Module

    found = _found(module, name)
    said = f"{module:.80}.{name:.80}"
    if found is None:
        raise FileFormatError(
            f"torch.load: the file holds an object of class {said}, which "
            "this program does not have. Define or import the class first."
        )
    is_module = isinstance(found, type) and issubclass(found, Module)
    if not is_module and not (
        isinstance(found, EnumMeta) or (isinstance(found, type) and _is_plain(found))
    ):
        raise FileFormatError(f"torch.load: {said} is no class of objects in files.")
    ours = found is argparse.Namespace or (is_module and module.startswith("lantern."))
    # Constraints and distributions are their attributes, too, and ours.
    known = is_module or module.startswith("lantern.torch.distributions.")
    if not (ours or (trusted and known) or any(found is c for c in _allowed)):
        way = "Say weights_only=False, or allow" if known else "Allow"
        raise FileFormatError(
            f"Weights only load failed: the file holds an object of class {said}. "
            f"{way} it with torch.serialization.safe_globals, if you trust the file."
        )
    return found


# --- archives, as PyTorch's own tools open them ---------------------------------------


def _open_file_like(name_or_buffer: Any, mode: str) -> Any:
    """A block with an open file: of a path, or the one that is given."""
    if isinstance(name_or_buffer, str | os.PathLike):
        return open(name_or_buffer, mode)
    return nullcontext(name_or_buffer)


def _open_zipfile_reader(name_or_buffer: Any) -> Any:
    """A block with an archive's records."""
    from lantern.torch.file_reader import PyTorchFileReader

    return nullcontext(PyTorchFileReader(name_or_buffer))


def _open_zipfile_writer(name_or_buffer: Any) -> Any:
    """A block in which an archive is written, record by record."""
    from lantern.torch.file_reader import PyTorchFileWriter

    return PyTorchFileWriter(name_or_buffer)


def _is_zipfile(f: Any) -> bool:
    """Whether an open file begins as an archive."""
    here = f.tell()
    first = f.read(4)
    f.seek(here)
    return bool(first == b"PK\x03\x04")
