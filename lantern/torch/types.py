"""Names for annotations: ``torch.types``."""

import builtins
import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from lantern.torch.storage import UntypedStorage as Storage
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.dtypes import device as _Device
from lantern.torch.tensor.dtypes import dtype as _dtype  # noqa: F401
from lantern.torch.tensor.tensor import Tensor as Tensor

__all__ = ["Device", "FileLike", "IntLikeType", "Number", "Storage", "Tensor"]

_bool, _int, _float, _complex = bool, int, float, complex
Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = _Device | str | builtins.int | None
FileLike: TypeAlias = str | os.PathLike[str] | Any
IntLikeType: TypeAlias = builtins.int
FloatLikeType: TypeAlias = builtins.float
BoolLikeType: TypeAlias = builtins.bool
_device: TypeAlias = _Device
_size: TypeAlias = Size | list[builtins.int] | tuple[builtins.int, ...]
_symsize = _size
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge = _TensorOrTensors
_Number = (builtins.int, builtins.float, builtins.bool)
_dispatchkey: TypeAlias = str
py_sym_types = ()
_layout: TypeAlias = Any
_qscheme: TypeAlias = Any
