"""Types of elements, and devices: ``torch.float32``, ``torch.device``."""

import builtins
from operator import attrgetter, index
from typing import Any

import numpy as np

from lantern.errors import ArgumentError, EagerError

__all__ = [
    "Size",
    "as_dtype",
    "as_numpy_dtype",
    "bcomplex32",
    "bfloat16",
    "bool",
    "cdouble",
    "cfloat",
    "chalf",
    "complex32",
    "complex64",
    "complex128",
    "device",
    "double",
    "dtype",
    "finfo",
    "float",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "half",
    "iinfo",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "long",
    "promote_types",
    "set_default_dtype",
    "short",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


class dtype:
    """A type of elements, which prints as PyTorch's does.

    Attributes:
        numpy: NumPy's type.
        is_floating_point: whether it is a real floating-point type.
        is_complex: whether it is complex.
        itemsize: bytes of an element.

    Example:
        >>> import lantern.torch as torch
        >>> torch.float32, torch.float32.itemsize
        (torch.float32, 4)
        >>> torch.float32.is_floating_point, torch.int64.is_signed
        (True, True)
    """

    __slots__ = ("is_complex", "is_floating_point", "itemsize", "name", "numpy")

    def __init__(self, name: str, plain: Any) -> None:
        self.name, self.numpy = name, np.dtype(plain)
        self.is_floating_point = self.numpy.kind == "f"
        self.is_complex = self.numpy.kind == "c"
        self.itemsize = self.numpy.itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    @property
    def is_signed(self) -> builtins.bool:
        """Whether it has negative numbers."""
        return self.numpy.kind not in "ub"

    def to_real(self) -> "dtype":
        """The type of the parts of such complex numbers; of others, this one."""
        return globals()[_PARTS.get(self.name, self.name)]

    def to_complex(self) -> "dtype":
        """The type of complex numbers of such parts."""
        if self.is_complex:
            return self
        for name, part in _PARTS.items():
            if part == self.name:
                return globals()[name]
        raise EagerError(f"{self}: no complex numbers have such parts.")


# The types of complex numbers, and those of their parts.
_PARTS = {
    "complex64": "float32",
    "complex128": "float64",
    "complex32": "float16",
    "bcomplex32": "bfloat16",
}


def _dtypes() -> dict[Any, dtype]:
    names = (
        "float16 float32 float64 uint8 int8 int16 int32 int64 complex64 complex128 "
        "uint16 uint32 uint64"
    )
    made = {np.dtype(name): dtype(name, name) for name in names.split()}
    made[np.dtype(np.bool_)] = dtype("bool", np.bool_)
    return made


by_numpy = _dtypes()
by_name = {d.name: d for d in by_numpy.values()}
float16, float32, float64 = (by_name[f"float{n}"] for n in (16, 32, 64))
uint8, int8, int16 = by_name["uint8"], by_name["int8"], by_name["int16"]
int32, int64 = by_name["int32"], by_name["int64"]
uint16, uint32, uint64 = (by_name[f"uint{n}"] for n in (16, 32, 64))
complex64, complex128, bool = (by_name[n] for n in ("complex64", "complex128", "bool"))
half, float, double = float16, float32, float64


class _Named(dtype):
    """A type that NumPy lacks: a name, so that programs can speak of it.

    ``bfloat16`` becomes a real type where it is first used: the only place that imports
    ``ml_dtypes``.
    """

    __slots__ = ()

    def __init__(self, name: str, itemsize: builtins.int) -> None:
        self.name, self.itemsize = name, itemsize
        self.is_complex = "complex" in name
        self.is_floating_point = name.startswith(("bfloat", "float"))

    def __getattr__(self, name: str) -> Any:
        if name != "numpy":
            raise AttributeError(f"torch.{self.name} has no attribute {name!r}")
        if self.name != "bfloat16":
            raise ArgumentError(
                f"{self.name}: NumPy has no such type, and so there are no tensors of "
                f"it. Use torch.float16, torch.bfloat16 or a wider type."
            )
        try:
            from ml_dtypes import bfloat16 as plain
        except ImportError:
            raise ArgumentError(
                "bfloat16: NumPy has no such type, ml_dtypes has. Install it, "
                "pip install lantern-ad[bf16], or use torch.float32, or torch.float16 "
                "where memory counts."
            ) from None
        self.numpy = np.dtype(plain)
        by_numpy[self.numpy] = self
        return self.numpy

    @property
    def is_signed(self) -> builtins.bool:
        """Whether it has negative numbers."""
        if self.name.startswith(("q", "bits")):
            raise EagerError(f"{self}: is_signed is not supported for quantized types")
        return self.name != "float8_e8m0fnu" and self.name[:1] != "u"


_NAMED = {
    "bcomplex32": 4,
    "bfloat16": 2,
    "complex32": 4,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
    "qint32": 4,
    "bits16": 2,
}
_BYTES = (
    "qint8 quint8 quint2x4 quint4x2 bits1x8 bits2x4 bits4x2 bits8 bit int1 int2 int3 "
    "int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7"
)
_NAMED |= dict.fromkeys(_BYTES.split(), 1)
named = {name: _Named(name, size) for name, size in _NAMED.items()}
bfloat16, bcomplex32 = named["bfloat16"], named["bcomplex32"]
complex32 = named["complex32"]
chalf = complex32
float8_e4m3fn, float8_e4m3fnuz = named["float8_e4m3fn"], named["float8_e4m3fnuz"]
float8_e5m2, float8_e5m2fnuz = named["float8_e5m2"], named["float8_e5m2fnuz"]
float8_e8m0fnu = named["float8_e8m0fnu"]
globals().update(named)
short, int, long, cfloat, cdouble = int16, int32, int64, complex64, complex128

F16, F32, F64, I64, BOOL = (d.numpy for d in (float16, float32, float64, int64, bool))
_default = [F32]


def default() -> Any:
    """NumPy's type for Python's floats."""
    return _default[0]


def get_default_dtype() -> dtype:
    """The type that Python's floats become.

    Example:
        >>> import lantern.torch as torch
        >>> torch.get_default_dtype()
        torch.float32
    """
    return by_numpy[_default[0]]


def set_default_dtype(d: dtype) -> None:
    """Choose the type that Python's floats become.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_default_dtype(torch.float64)
        >>> torch.tensor(0.5).dtype
        torch.float64
        >>> torch.set_default_dtype(torch.float32)
    """
    _default[0] = d.numpy


def as_dtype(plain: Any) -> dtype:
    """The dtype of one of NumPy's types.

    Example:
        >>> import lantern.torch as torch
        >>> torch.as_dtype("float32")
        torch.float32
    """
    plain = np.dtype(plain)
    if plain not in by_numpy:
        raise ArgumentError(
            f"can't convert np.ndarray of type {plain}. The only supported types are: "
            f"{', '.join(sorted(by_name))}."
        )
    return by_numpy[plain]


def as_numpy_dtype(d: Any) -> Any:
    """NumPy's type for a dtype, one of Python's types, or None.

    Example:
        >>> import lantern.torch as torch
        >>> torch.as_numpy_dtype(torch.float32)
        dtype('float32')
    """
    if d is None or isinstance(d, np.dtype):
        return d
    if isinstance(d, dtype):
        return d.numpy
    if isinstance(getattr(d, "dtype", None), dtype):  # torch.FloatTensor
        plain: Any = d.dtype.numpy
        return plain
    python: dict[Any, Any] = {builtins.bool: BOOL, builtins.int: I64}
    if isinstance(d, builtins.type) and d in python:
        return python[d]
    return as_dtype(d).numpy  # float64 for Python's float


# NumPy's letters; V is bfloat16's.
FLOATING, INEXACT = "fV", "fcV"
_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}


def category(plain: Any) -> builtins.int:
    """0 for bool, 1 for integers, 2 for floating-point, 3 for complex types."""
    return _KINDS[plain.kind]


def promoted(a: Any, b: Any) -> Any:
    """The type of a result of two arrays of NumPy's types: PyTorch's table."""
    if a is b:
        return a
    kinds = category(a), category(b)
    if kinds[0] != kinds[1] and max(kinds) == 2:
        return a if kinds[0] == 2 else b
    if max(kinds) == 3 and min(kinds) < 2:
        return a if kinds[0] == 3 else b
    if "V" in (a.kind, b.kind) and kinds == (2, 2):
        return (
            F32 if a.itemsize == b.itemsize else max(a, b, key=attrgetter("itemsize"))
        )
    if kinds == (1, 1) and _wide_unsigned(a) != _wide_unsigned(b):
        raise EagerError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted "
            f"to promote {type_name(a)} and {type_name(b)}"
        )
    return np.result_type(a, b)


def _wide_unsigned(plain: Any) -> builtins.bool:
    return plain.kind == "u" and plain.itemsize > 1


def is_half(plain: Any) -> builtins.bool:
    """Whether a type's sums are taken in float32: float16 or bfloat16."""
    return plain.itemsize == 2 and plain.kind in FLOATING


def digits(plain: Any) -> builtins.int:
    """How many binary digits the whole numbers of a floating-point type can have."""
    return 8 if plain.kind == "V" else np.finfo(plain).nmant + 1


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The type of a result of two arrays.

    Example:
        >>> import lantern.torch as torch
        >>> torch.promote_types(torch.int64, torch.float32)
        torch.float32
    """
    named = [isinstance(t, _Named) and t is not bfloat16 for t in (type1, type2)]
    if type1 is type2:
        return type1
    if True in named:
        return _with_name(*((type1, type2) if named[0] else (type2, type1)))
    return by_numpy[promoted(type1.numpy, type2.numpy)]


def _with_name(type1: dtype, type2: dtype) -> dtype:
    """As ``promote_types``, the first of types that are names only."""
    if not type1.name.endswith("complex32") or type2.name.startswith("float8"):
        raise EagerError(
            f"Promotion for Float8 Types is not supported, attempted to promote "
            f"{type1} and {type2}"
        )
    wide = {float32: complex64, float64: complex128, complex64: complex64}
    return wide.get(type2, complex128 if type2 is complex128 else type1)


_CAPITALS = {
    "bfloat16": "BFloat16",
    "bool": "Bool",
    "complex128": "ComplexDouble",
    "complex64": "ComplexFloat",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "int8": "Char",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "uint8": "Byte",
}


def type_name(dtype: Any) -> str:
    """What PyTorch's messages call one of NumPy's types."""
    return _CAPITALS[by_numpy[dtype].name]


class device:
    """Where an array lies: ``device("cpu")``, ``device("cuda:1")``.

    Example:
        >>> import lantern.torch as torch
        >>> device = torch.device("cuda", 1)
        >>> device
        device(type='cuda', index=1)
        >>> device.type, device.index
        ('cuda', 1)
    """

    __slots__ = ("index", "type")

    type: str
    index: Any

    def __init__(self, type: Any = "cpu", index: Any = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        if isinstance(type, builtins.int):
            type, index = "cuda", type
        kind, colon, number = type.partition(":")
        if kind not in ("cpu", "cuda", "meta"):
            raise EagerError(
                f"Expected one of cpu, cuda device type at start of device string: "
                f"{kind}"
            )
        given = number.isascii() and number.isdigit()
        if (colon and not given) or (index is not None and index < 0):
            raise EagerError(f"Invalid device string: '{type}'")
        self.type = kind
        self.index = builtins.int(number) if number else index

    def __enter__(self) -> "device":
        _outer.append(default_device[0])
        default_device[0] = self
        return self

    def __exit__(self, *exception: Any) -> None:
        default_device[0] = _outer.pop()

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __eq__(self, other: object) -> Any:
        return isinstance(other, device) and str(self) == str(other)

    def __hash__(self) -> builtins.int:
        return hash(str(self))


CPU = device("cpu")
# Where new tensors lie: see ``settings.set_default_device``.
default_device = [CPU]
_outer: list[device] = []


class Size(tuple[builtins.int, ...]):
    """The lengths of an array's axes, a tuple.

    Example:
        >>> import lantern.torch as torch
        >>> size = torch.ones(2, 3).shape
        >>> size, size.numel()
        (torch.Size([2, 3]), 6)
    """

    __slots__ = ()

    def __new__(cls, lengths: Any = ()) -> "Size":
        """Lengths from any sequence of whole numbers."""
        return super().__new__(cls, map(index, lengths))

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> builtins.int:
        """How many elements such an array has."""
        n = 1
        for length in self:
            n *= length
        return n

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        return Size(part) if isinstance(index, slice) else part

    def __add__(self, other: Any) -> Any:
        return Size(super().__add__(tuple(other)))

    def __mul__(self, count: Any) -> Any:
        return Size(super().__mul__(count))

    __rmul__ = __mul__


# The step at 1, the greatest, least and smallest normal number, and the resolution.
_LIMITS = {
    "bfloat16": (2**-7, 255 * 2.0**120, -255 * 2.0**120, 2.0**-126, 0.01),
    "float8_e4m3fn": (2**-3, 448.0, -448.0, 2.0**-6, 1.0),
    "float8_e4m3fnuz": (2**-3, 240.0, -240.0, 2.0**-7, 1.0),
    "float8_e5m2": (2**-2, 57344.0, -57344.0, 2.0**-14, 1.0),
    "float8_e5m2fnuz": (2**-3, 57344.0, -57344.0, 2.0**-15, 1.0),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127, 1.0),
}


class finfo:
    """The limits of a floating-point type.

    Example:
        >>> import lantern.torch as torch
        >>> torch.finfo(torch.float32).max
        3.4028234663852886e+38
        >>> torch.finfo(torch.float64).eps
        2.220446049250313e-16
    """

    def __init__(self, type: Any = None) -> None:
        if isinstance(type, _Named) and type.name in _LIMITS:
            self.dtype, self.bits = type.name, 8 * type.itemsize
            self.eps, self.max, self.min, self.tiny, self.resolution = _LIMITS[
                type.name
            ]
            self.smallest_normal = self.tiny
            return
        plain = default() if type is None else as_numpy_dtype(type)
        if plain.kind == "V":
            self.__init__(bfloat16)  # type: ignore[misc]
            return
        info: Any = np.finfo(plain)
        self.dtype, self.bits = by_numpy[plain].name, info.bits
        self.eps, self.tiny = builtins.float(info.eps), builtins.float(info.tiny)
        self.smallest_normal = self.tiny
        self.max, self.min = builtins.float(info.max), builtins.float(info.min)
        self.resolution = builtins.float(f"{builtins.float(info.resolution):.0e}")


class iinfo:
    """The limits of an integer type.

    Example:
        >>> import lantern.torch as torch
        >>> torch.iinfo(torch.int8).min, torch.iinfo(torch.int8).max
        (-128, 127)
    """

    def __init__(self, type: Any) -> None:
        info = np.iinfo(as_numpy_dtype(type))
        self.dtype, self.bits = as_dtype(info.dtype).name, info.bits
        self.max, self.min = builtins.int(info.max), builtins.int(info.min)


def fitting(value: Any, kind: Any) -> Any:
    """A number as a whole number of a type: those below 0 count from its end."""
    limits: Any = np.iinfo(kind)
    is_complex = isinstance(value, builtins.complex)
    if is_complex or not -limits.max - 1 <= value <= limits.max:
        raise EagerError(f"value cannot be converted to type {kind}_t without overflow")
    return np.array(builtins.int(value)).astype(kind)
