"""Several results in a row; what a result is written to: ``out=...``."""

import warnings
from operator import itemgetter
from typing import Any, ClassVar

from lantern.errors import EagerError
from lantern.torch.tables import parameters, takes
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.error_messages import together
from lantern.torch.tensor.gradients import set_data

__all__ = ["Row", "into", "named", "of_its_type", "with_out"]


# What ``torch.return_types`` has.
CLASSES: dict[str, Any] = {}
_MODULE = "lantern.torch.return_types"


class Row(tuple[Any, ...]):
    """Several results, by position and by name, which print as PyTorch's do.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sort(torch.tensor([3, 1, 2])).values
        tensor([1, 2, 3])
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *parts: Any) -> Any:
        """The results one by one, or in a row."""
        if len(parts) == 1 < len(cls._fields):
            (parts,) = parts
        return tuple.__new__(cls, parts)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        parts = map("{}={!r}".format, self._fields, self)
        return f"torch.return_types.{type(self).__name__}(\n" + ",\n".join(parts) + ")"


def named(name: str, fields: str = "values indices") -> Any:
    """The class of a row of results with names.

    Made without ``collections.namedtuple``, which compiles code for each class.
    """
    names = fields.split()
    if name in CLASSES and CLASSES[name]._fields == tuple(names):
        return CLASSES[name]
    parts = {field: property(itemgetter(i)) for i, field in enumerate(names)}
    own = {"__slots__": (), "_fields": tuple(names), "__module__": _MODULE}
    CLASSES[name] = found = type(name, (Row,), own | parts)
    return found


def into(z: Any, out: Any) -> Any:
    """A result, or the tensor that it is to be written to; of a tuple, each part."""
    if out is None:
        return z
    if isinstance(z, tuple):
        parts = tuple(map(into, z, out))
        return parts if type(z) is tuple else type(z)(*parts)
    if z.requires_grad or out.requires_grad:
        raise EagerError(
            "functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    if dtypes.category(base(z).dtype) > dtypes.category(base(out).dtype):
        raise EagerError(
            f"result type {z.dtype} can't be cast to the desired output type "
            f"{out.dtype}"
        )
    if base(out).shape == base(z).shape:
        return out.copy_(z)
    if base(out).size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(base(out).shape)}, which does not match the required output shape "
            f"{list(base(z).shape)}. This behavior is deprecated, and in a future "
            f"PyTorch release outputs will not be resized unless they have zero "
            f"elements. Give it the shape first, or none: out.resize_(0).",
            stacklevel=4,
        )
    set_data(out, z.to(out.dtype))
    return out


def of_its_type(z: Any, out: Any, scan: bool = False) -> Any:
    """A result, of which what it is to be written to must have the type.

    Args:
        z: the result, or several.
        out: the tensor, or as many.
        scan: whether it is one of a scan, of which PyTorch says it in other words.
    """
    several = isinstance(z, tuple)
    for x, y in zip(z if several else [z], out if several else [out], strict=True):
        if y is not None and base(x).dtype != base(y).dtype:
            words = (
                "expected scalar_type {} but found {}"
                if scan
                else "Expected out tensor to have dtype {}, but got {} instead"
            )
            names = [dtypes.type_name(base(t).dtype) for t in (x, y)]
            raise EagerError(words.format(*(names if scan else (x.dtype, y.dtype))))
    return z


# Functions whose results go to tensors of their types only, and those that are scans.
_STRICT = {"aminmax", "gather"}
_SCANS = {"cummax", "cummin", "logcumsumexp"}


def result_into(name: str, z: Any, out: Any) -> Any:
    """The result of a function of PyTorch's, in what it is to be written to."""
    scan = name in _SCANS
    if out is not None and (scan or name in _STRICT or isinstance(z, Row)):
        z = of_its_type(z, out, scan)
    return into(z, out)


# What computes in the type of the tensor that it is written to.
_AS_OUT = {"cumprod", "cumsum", "prod", "sum"}


def agree_on_type(name: str, out: Any, options: dict[str, Any]) -> None:
    """Refuse a type that is asked for, if the result goes into another one."""
    asked = options.get("dtype")
    if asked is None:
        if name in _AS_OUT:
            options["dtype"] = out.dtype
    elif dtypes.as_numpy_dtype(asked) != base(out).dtype:
        raise EagerError(
            f"Expected out tensor to have dtype {asked}, but got {out.dtype} instead"
        )


def with_out(function: Any) -> Any:
    """A function whose result may be written to a tensor: ``out=...``."""
    if "out" in function.__code__.co_varnames:
        return function

    def either(*args: Any, out: Any = None, **options: Any) -> Any:
        if out is not None:
            agree_on_type(function.__name__, out, options)
        try:
            z = function(*args, **options)
            return z if out is None else result_into(function.__name__, z, out)
        except TypeError as error:
            return either(*together(error, *args), out=out, **options)

    either.__name__ = either.__qualname__ = function.__name__
    either.__module__, either.__doc__ = function.__module__, function.__doc__
    return takes(either, parameters(function, out=True))
