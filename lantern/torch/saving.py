"""Tensors, and structures of them, in safetensors files: nothing in them is executed.

Tensors are named by their paths, so that a state is a plain file of the format, as
PyTorch users exchange them; the structure stands in the file's metadata, as JSON. A
file is checked whole before anything is allocated for it, and replaces another one at
once or not at all.
"""

import json
import os
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np

from lantern.errors import (
    ArgumentError,
    EagerError,
    FileFormatError,
    NotArrayError,
    OptionError,
)
from lantern.files import write_file
from lantern.torch.file_format import (
    begins_pickle,
    damaged,
    file_bytes,
    parsed,
    read_file,
    read_up_to,
    short,
    stored_as,
)
from lantern.torch.nn.parameter import Parameter
from lantern.torch.pickles.contents import located
from lantern.torch.pickles.reading import read_pickles
from lantern.torch.pickles.writing import pickle_bytes
from lantern.torch.serialization import (
    get_default_format,
    packed_object,
    unpacked_object,
)
from lantern.torch.shards import read_shards
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.devices import on_host
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["load", "save"]

_STRUCTURE = "lantern.structure"
_MOST_DIGITS = 4300  # which Python itself reads and writes by default


# --- writing --------------------------------------------------------------------------


def save(obj: Any, f: Any, *args: Any, **options: Any) -> None:
    """Write a tensor or a structure of tensors to a file.

    Args:
        obj: tensors, numbers, texts and None, in dictionaries, lists and tuples: what
            ``state_dict()`` of a module, an optimiser or a schedule gives, or several;
            whole modules, and objects that are their attributes, such as options: see
            ``torch.serialization`` for who may read them.
        f: a path, or an open binary file.
        args: have no effect; as PyTorch has them.
        options: ``format="pytorch"`` writes what PyTorch's ``torch.load`` reads, in
            place of a safetensors file; ``serialization.set_default_format`` says so
            for a whole program. Others have no effect.

    Raises:
        AttributeError: for something else than a path or a file that can be written.
        TypeError: for an object of another class, which only a pickle could hold.
        ValueError: for another format.

    Example:
        >>> import io
        >>> import lantern.torch as torch
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.ones(2), "epoch": 3}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if not (isinstance(f, str | bytes | os.PathLike) or hasattr(f, "write")):
        raise NotArrayError(
            f"torch.save: expected 'f' to be string, path, or a file-like object with "
            f"a 'write' attribute, got {type(f).__name__}"
        )
    form = options.get("format") or get_default_format()
    if form not in ("safetensors", "pytorch"):
        raise OptionError(
            f"torch.save: there is no format {short(form)}. Use 'safetensors' or "
            "'pytorch'."
        )
    if form == "pytorch":
        write_file("torch.save", f, pickle_bytes(obj))
        return
    arrays: dict[str, Any] = {}
    try:
        structure = json.dumps(_packed(obj, "", arrays))
    except RecursionError:
        raise ArgumentError(
            "torch.save: the object holds itself, or is nested too deep. Save its "
            "parts, each once."
        ) from None
    ordered = {n: np.array(on_host(x), order="C") for n, x in arrays.items()}
    packed = file_bytes(ordered, {"format": "pt", _STRUCTURE: structure})
    write_file("torch.save", f, packed)


def _plain(x: Any) -> Any:
    """A tensor's array, of a type that the format has."""
    array = in_memory(x.detach()) if isinstance(x, Tensor) else np.asarray(x)
    native = array.dtype.newbyteorder("=")
    if stored_as(native) is None:
        advice = "Save real and imaginary parts" if native.kind == "c" else "Convert it"
        raise ArgumentError(
            f"torch.save: the format has no complex numbers, objects or texts in "
            f"arrays, got {native}. {advice}."
        )
    return array if array.dtype == native else array.astype(native)


def _packed(x: Any, path: str, arrays: dict[str, Any]) -> Any:
    """A structure for JSON; its tensors go to ``arrays``, by their paths."""
    if isinstance(x, Parameter):
        return _packed_parameter(x, path, arrays)
    if isinstance(x, Tensor | np.ndarray | np.generic):
        name = path.encode(errors="replace").decode() or "tensor"
        while name in arrays or name == "__metadata__":
            name += "_"
        kind = "tensor" if isinstance(x, Tensor) else "array"
        arrays[name] = _plain(x)
        return {kind: name}
    if x is None or isinstance(x, bool | str):
        return x
    if isinstance(x, int | float):
        return _number(x, path)
    if isinstance(x, dtypes.dtype):
        return {"dtype": x.name}
    if isinstance(x, Mapping):
        items = [
            [_packed(k, path, arrays), _packed(v, _joined(path, k), arrays)]
            for k, v in x.items()
        ]
        metadata = getattr(x, "_metadata", None)
        if isinstance(metadata, Mapping):  # of a module's state
            return {"state": [items, _packed(metadata, path, arrays)]}
        kind = "ordered" if isinstance(x, OrderedDict) else "dict"
        return {kind: items}
    if isinstance(x, list | tuple):
        items = [_packed(v, _joined(path, i), arrays) for i, v in enumerate(x)]
        kind = "tuple" if isinstance(x, tuple) else "list"
        return {"size" if isinstance(x, Size) else kind: items}
    return packed_object(x, path, lambda v, at: _packed(v, at, arrays))


def _number(x: Any, path: str) -> Any:
    """A plain number, which can be read again."""
    if isinstance(x, float):
        return float(x)
    if x.bit_length() > 3 * _MOST_DIGITS:  # a digit has more than three bits
        raise ArgumentError(
            f"torch.save: the number at {path or 'the top'!r} has {x.bit_length()} "
            "bits. Save it as a text, or as bytes."
        )
    return int(x)


def _packed_parameter(x: Any, path: str, arrays: dict[str, Any]) -> Any:
    """A parameter; one that two modules share is stored once."""
    array = _plain(x)
    for name, known in arrays.items():
        if known is array:
            return {"parameter": [name, x.requires_grad]}
    ((_, name),) = _packed(x.detach(), path, arrays).items()
    arrays[name] = array
    return {"parameter": [name, x.requires_grad]}


def _joined(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


# --- reading --------------------------------------------------------------------------


def load(f: Any, map_location: Any = None, *args: Any, **options: Any) -> Any:
    """Read what ``save`` has written, PyTorch's own files, or other safetensors files.

    Of PyTorch's files (``.pt``, ``.pth``, also those before version 1.6) tensors,
    parameters and plain values are read, as its ``weights_only=True`` does it: nothing
    in a file is run or imported, and anything else is refused by its name. bfloat16
    becomes float32 without ``ml_dtypes``. Of a checkpoint in several files the index
    is given, as Hugging Face writes it (``model.safetensors.index.json``).

    Args:
        f: a path, or an open binary file.
        map_location: the device for the tensors, by default the CPU; a dictionary of
            devices; or a function of memory, as a tensor in a row, and the device that
            it was saved from.
        args: as PyTorch has it: a ``pickle_module``, which must be Python's own, since
            nothing in a file is run.
        options: ``weights_only=False`` allows modules of the program's own classes in
            files of Lantern's ``save``: see ``torch.serialization``. It allows nothing
            more in a pickle. ``mmap=True`` maps a file of PyTorch's, so that tensors
            are read when they are looked at. Others have no effect.

    Raises:
        RuntimeError: if the file is cut off, damaged, or of another format.
        ValueError: for ``mmap`` without a path.

    Example:
        >>> import lantern.torch as torch
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"weight": torch.tensor([1.0, 2.0])}, file)
        >>> _ = file.seek(0)
        >>> torch.load(file)
        {'weight': tensor([1., 2.])}
    """
    trusted = options.get("weights_only") is False
    module = options.get("pickle_module", args[0] if args else None)
    if module is not None and module is not sys.modules.get("pickle"):
        raise EagerError(
            "Can not safely load weights when explicit pickle_module is specified: "
            "nothing in a file is run here. Leave it out."
        )
    if hasattr(f, "read"):
        if options.get("mmap"):
            raise OptionError("f must be a file name in order to use the mmap argument")
        name = str(getattr(f, "name", "the file"))
        return _loaded(f, name, map_location, trusted)
    name = os.fsdecode(f)
    if name.endswith(".index.json"):
        return read_shards(name, lambda path: load(path, map_location))
    with open(f, "rb") as file:
        path = name if options.get("mmap") else None
        return _loaded(file, name, map_location, trusted, path)


def _loaded(
    f: Any, name: str, map_location: Any, trusted: bool, mapped: str | None = None
) -> Any:
    """What an open file holds; of PyTorch's, mapped from a path."""
    first = read_up_to(f, 8, name)
    if begins_pickle(first):
        return read_pickles(f, first, name, map_location, mapped)
    arrays, metadata = read_file(f, name, first)

    def placed(key: str) -> Tensor:
        return located(fresh(arrays[key]), "cpu", map_location)

    if _STRUCTURE not in metadata:
        return {key: placed(key) for key in arrays}
    try:
        structure = parsed(metadata[_STRUCTURE], _MOST_DIGITS, name, "structure")
        return _Reader(name, placed, arrays, trusted).read(structure)
    except FileFormatError:
        raise
    except RecursionError:
        raise damaged(name, "has a structure that is too deep to follow.") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise damaged(
            name, f"has a damaged structure ({short(str(error))})."
        ) from error


class _Reader:
    """How a structure is made from its JSON."""

    def __init__(self, name: str, placed: Any, arrays: Any, trusted: bool) -> None:
        self.name, self.placed, self.arrays = name, placed, arrays
        self.trusted = trusted
        self.parameters: dict[str, Any] = {}

    def read(self, x: Any) -> Any:
        """A part of the structure."""
        if not isinstance(x, dict | list):
            return x
        ((kind, inner),) = self.typed(x, dict).items()
        if kind == "tensor":
            return self.placed(self.stored(inner))
        if kind == "parameter":
            return self.parameter(*self.typed(inner, list))
        if kind == "array":
            return self.arrays[self.stored(inner)]
        if kind == "dtype":
            return dtypes.by_name[self.typed(inner, str)]
        if kind in ("dict", "ordered"):
            return self.mapping(kind, inner)
        if kind == "state":
            items, versions = self.typed(inner, list)
            state: Any = self.mapping("ordered", items)
            state._metadata = self.read(self.typed(versions, dict))
            if not isinstance(state._metadata, dict):
                raise damaged(self.name, "has versions that are no dictionary.")
            return state
        if kind == "size":
            return Size([self.typed(n, int) for n in self.typed(inner, list)])
        if kind in ("list", "tuple"):
            items = map(self.read, self.typed(inner, list))
            return list(items) if kind == "list" else tuple(items)
        return unpacked_object(kind, inner, self, self.trusted)

    def typed(self, x: Any, kind: type) -> Any:
        """A part of the file that must be of one type of JSON's."""
        if type(x) is not kind:
            raise damaged(
                self.name,
                f"has a damaged structure: {short(x)} where a {kind.__name__} was "
                "expected.",
            )
        return x

    def stored(self, name: Any) -> str:
        """The name of an array of the file."""
        if self.typed(name, str) not in self.arrays:
            raise damaged(self.name, f"has not the tensor {short(name)}.")
        return str(name)

    def mapping(self, kind: str, inner: Any) -> Any:
        """A dictionary from its pairs."""
        made: dict[Any, Any] = {} if kind == "dict" else OrderedDict()
        pairs = self.typed(inner, list)
        for pair in pairs:
            key, value = self.typed(pair, list)
            made[self.read(key)] = self.read(value)
        if len(made) < len(pairs):
            raise damaged(self.name, "has a dictionary with one key twice.")
        return made

    def parameter(self, name: Any, requires_grad: Any) -> Any:
        """A parameter; the same one for all who share it."""
        if self.stored(name) not in self.parameters:
            x, wanted = self.placed(name), self.typed(requires_grad, bool)
            if wanted and not x.is_floating_point():
                raise damaged(self.name, f"has a parameter {short(name)} of integers.")
            self.parameters[name] = Parameter(x, wanted)
        return self.parameters[name]
