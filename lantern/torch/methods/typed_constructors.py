"""Names of old: ``torch.FloatTensor`` and its kin, by type and place."""

from typing import Any

from lantern.torch.functions.creation import tensor, zeros
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.dtypes import dtype
from lantern.torch.tensor.tensor import Tensor

__all__ = ["TYPES", "on_gpu"]


class TypedTensor(type):
    """The class of ``FloatTensor``: it makes tensors of a type, and knows them."""

    dtype: dtype
    device: str

    def __call__(cls, *data: Any, **options: Any) -> Any:
        """A tensor of data, or of lengths of axes."""
        options = {"dtype": cls.dtype, "device": cls.device}
        if len(data) == 1 and isinstance(data[0], cls):
            return data[0].view_as(data[0])
        if len(data) == 1 and not isinstance(data[0], int | dtypes.Size):
            return tensor(data[0], **options)
        return zeros(*data or (0,), **options)

    def __instancecheck__(cls, x: Any) -> bool:
        return (
            isinstance(x, Tensor)
            and x.dtype is cls.dtype
            and x.device.type == cls.device
        )

    def __repr__(cls) -> str:
        module = cls.__module__.removeprefix("lantern.")
        return f"<class '{module}.{cls.__name__}'>"


_KINDS = {
    "Bool": dtypes.bool,
    "Byte": dtypes.uint8,
    "Char": dtypes.int8,
    "Double": dtypes.float64,
    "Float": dtypes.float32,
    "Half": dtypes.float16,
    "Int": dtypes.int32,
    "Long": dtypes.int64,
    "Short": dtypes.int16,
}


def _typed(device: str, module: str) -> dict[str, Any]:
    return {
        f"{word}Tensor": TypedTensor(
            f"{word}Tensor",
            (),
            {"dtype": kind, "device": device, "__module__": module},
        )
        for word, kind in _KINDS.items()
    }


TYPES = _typed("cpu", "lantern.torch")
_ON_GPU = _typed("cuda", "lantern.torch.cuda")


def on_gpu(name: str) -> Any:
    """A class of tensors on a GPU."""
    if name not in _ON_GPU:
        raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}")
    return _ON_GPU[name]
