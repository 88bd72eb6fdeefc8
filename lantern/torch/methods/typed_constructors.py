"""Names of old: ``torch.FloatTensor`` and its kin, by type and place."""

from functools import cache
from typing import Any

from lantern.errors import ArgumentError
from lantern.torch.functions.creation import tensor, zeros
from lantern.torch.tables import documented
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
        from lantern.torch.storage import TypedStorage  # which few programs need

        options = {"dtype": cls.dtype, "device": cls.device}
        if len(data) == 1 and isinstance(data[0], cls):
            return data[0].view_as(data[0])
        if len(data) == 1 and isinstance(data[0], TypedStorage):
            return zeros(0, **options).set_(data[0])
        if len(data) == 1 and not isinstance(data[0], int | dtypes.Size):
            return tensor(data[0], **options)
        if not all(isinstance(n, int | dtypes.Size) for n in data):
            raise ArgumentError(
                f"{cls.__name__} received an invalid combination of arguments: "
                f"{', '.join(type(x).__name__ for x in data)}"
            )
        return zeros(*data or (0,), **options)

    def __new__(cls, name: str, bases: Any, names: Any) -> Any:
        """A class that nothing is derived from."""
        for base in bases:
            raise ArgumentError(
                f"type 'torch.{base.__name__}' is not an acceptable base type"
            )
        return super().__new__(cls, name, bases, names)

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
    "Bool": (
        dtypes.bool,
        """The class, of old, of tensors of type ``torch.bool``.

        >>> torch.BoolTensor([True, False])
        tensor([ True, False])
        """,
    ),
    "Byte": (
        dtypes.uint8,
        """The class, of old, of tensors of type ``torch.uint8``.

        >>> torch.ByteTensor([1, 2])
        tensor([1, 2], dtype=torch.uint8)
        """,
    ),
    "Char": (
        dtypes.int8,
        """The class, of old, of tensors of type ``torch.int8``.

        >>> torch.CharTensor([1, 2])
        tensor([1, 2], dtype=torch.int8)
        """,
    ),
    "Double": (
        dtypes.float64,
        """The class, of old, of tensors of type ``torch.float64``.

        >>> torch.DoubleTensor([1, 2])
        tensor([1., 2.], dtype=torch.float64)
        """,
    ),
    "Float": (
        dtypes.float32,
        """The class, of old, of tensors of type ``torch.float32``.

        >>> torch.FloatTensor([1, 2])
        tensor([1., 2.])
        >>> isinstance(torch.ones(2), torch.FloatTensor)
        True
        """,
    ),
    "Half": (
        dtypes.float16,
        """The class, of old, of tensors of type ``torch.float16``.

        >>> torch.HalfTensor([1, 2])
        tensor([1., 2.], dtype=torch.float16)
        """,
    ),
    "Int": (
        dtypes.int32,
        """The class, of old, of tensors of type ``torch.int32``.

        >>> torch.IntTensor([1, 2])
        tensor([1, 2], dtype=torch.int32)
        """,
    ),
    "Long": (
        dtypes.int64,
        """The class, of old, of tensors of type ``torch.int64``.

        >>> torch.LongTensor([1, 2])
        tensor([1, 2])
        """,
    ),
    "Short": (
        dtypes.int16,
        """The class, of old, of tensors of type ``torch.int16``.

        >>> torch.ShortTensor([1, 2])
        tensor([1, 2], dtype=torch.int16)
        """,
    ),
}


def _typed(word: str, kind: dtype, device: str, module: str) -> Any:
    rest = {"dtype": kind, "device": device, "__module__": module}
    return TypedTensor(f"{word}Tensor", (), rest)


TYPES = {
    f"{word}Tensor": documented(_typed(word, kind, "cpu", "lantern.torch"), example)
    for word, (kind, example) in _KINDS.items()
}


@cache
def on_gpu(name: str) -> Any:
    """A class of tensors on a GPU."""
    if name not in TYPES:
        raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}")
    word = name.removesuffix("Tensor")
    return _typed(word, _KINDS[word][0], "cuda", "lantern.torch.cuda")
