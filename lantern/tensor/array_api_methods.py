"""Methods that the array API standard asks for beyond differentiable arithmetic.

Comparisons, operations on bits and floor division, whose derivative is zero; operators
that write in place; the array's namespace, and DLPack.
"""

import operator
import sys
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.operation import Function
from lantern.core.tree import tree_map
from lantern.core.value import Value, base, is_tracked
from lantern.errors import ArgumentError, MutationError, ShapeError
from lantern.rules.operators import OperatorValue

__all__ = ["WRITING", "StandardArray", "as_constant", "fitted", "is_array", "writeable"]

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_OTHERS = (type, Value)  # NumPy's scalar types have a dtype too
_BITS = "and or xor lshift rshift".split()
_COMPARISONS = "eq ne lt le gt ge".split()
WRITING = "add sub mul truediv floordiv mod pow matmul".split() + _BITS


def is_array(x: Any) -> bool:
    """Whether x is an array of an array library, or a NumPy scalar.

    Example:
        >>> import numpy as np
        >>> is_array(np.ones(2)), is_array(np.float64), is_array(2.0)
        (True, False, False)
    """
    return hasattr(x, "ndim") and hasattr(x, "dtype") and not isinstance(x, _OTHERS)


def as_constant(cls: Any, z: Any, *operands: Any) -> Any:
    """A result with derivative zero, as the operands' own kind of array.

    This is the one place that decides it. Beside a tracked operand the result is a
    plain array: a mask or an index belongs to no derivative, rules make them of their
    primals, and a plain one costs nothing more. Among untracked operands it is an
    untracked array of the class, so that ``x < y`` has the same namespace as x, as the
    standard asks.
    """
    if any(map(is_tracked, operands)) or not is_array(z):
        return z
    return cls(z)


class StandardArray(OperatorValue):
    """The methods of the standard's array object that ``Tensor`` inherits."""

    __slots__ = ()

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The standard's functions, ``lantern.array_api``."""
        if api_version is not None and api_version not in _VERSIONS:
            raise ArgumentError(
                f"__array_namespace__: there is no version {api_version!r} of the "
                f"array API standard here. Choose one of {_VERSIONS}."
            )
        return sys.modules["lantern"].array_api

    def plain(self, where: str) -> Any:
        """The array itself, unless that would lose a derivative."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return int(base(self).nbytes)

    @property
    def itemsize(self) -> int:
        """The bytes that one element takes."""
        return int(base(self).itemsize)

    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements."""
        return bytes(self.plain("tobytes").tobytes(order))

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(base(self), ndigits)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        plain = self.plain("__dlpack__")
        return (
            namespace(plain)
            .asarray(plain)
            .__dlpack__(
                stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
            )
        )

    def __dlpack_device__(self) -> Any:
        plain = base(self)
        return namespace(plain).asarray(plain).__dlpack_device__()

    def __invert__(self) -> Any:
        return as_constant(type(self), ~base(self), self)

    def __setitem__(self, index: Any, value: Any) -> None:
        if is_tracked(self) or is_tracked(value):
            raise MutationError(
                "x[i] = v: a tracked array cannot be written to. Use a buffer, "
                "lantern.Buffer(x), or x.at[i].set(v), lantern.where, lantern.stack."
            )
        plain = writeable(base(self))
        if not _is_written_to(plain):
            self.primal = plain = namespace(plain).asarray(plain)
        plain[tree_map(base, index)] = base(value)


def _constant(operation: Function) -> tuple[Function, Function]:
    """The methods ``x op y`` and ``y op x`` of an operation with derivative zero."""

    def operate(x: Any, y: Any) -> Any:
        return as_constant(type(x), operation(base(x), base(y)), x, y)

    def operate_reflected(x: Any, y: Any) -> Any:
        return as_constant(type(x), operation(base(y), base(x)), x, y)

    return operate, operate_reflected


def _is_written_to(plain: Any) -> bool:
    """Whether an array can be changed at all: NumPy's scalars cannot."""
    return hasattr(plain, "__setitem__")


def writeable(plain: Any) -> Any:
    """An array itself, if it can be written to; NumPy's scalars as they are.

    Raises:
        MutationError: if it is read-only, as what is read from a buffer.
    """
    flags = getattr(plain, "flags", None)
    if _is_written_to(plain) and not getattr(flags, "writeable", True):
        raise MutationError(
            "x[i] = v: the array is read-only, as what is read from a buffer. Write "
            "to the buffer itself, or to a copy: lantern.Buffer(x)."
        )
    return plain


def _in_place(operation: Function, write: Function) -> Function:
    """The method ``x op= y``.

    An untracked array is written to, and keeps its type. With a tracked operand nothing
    is written, for rules may have saved x: the name is bound to a new value, which
    still has the shape and the type of x. NumPy's scalars are replaced as numbers are.
    """

    def operate(x: Any, y: Any) -> Any:
        plain = base(x)
        if not _is_written_to(plain):
            return operation(x, y)
        if is_tracked(x) or is_tracked(y):
            return fitted(operation(x, y), plain)
        write(writeable(plain), base(y))
        return x

    return operate


def fitted(z: Any, x: Any) -> Any:
    """The result of ``x op= y`` in the shape and type of x, or an error."""
    if z.shape != x.shape:
        raise ShapeError(
            f"x op= y: the result has shape {z.shape}, and x has {x.shape}. "
            f"Write x = x op y."
        )
    if z.dtype == x.dtype:
        return z
    if not namespace(x).can_cast(z.dtype, x.dtype, "same_kind"):
        raise ArgumentError(
            f"x op= y: the result is of type {z.dtype}, and x of {x.dtype}. "
            f"Write x = x op y."
        )
    return z.astype(x.dtype)


def _install() -> None:
    """Give the class its operators."""
    for name in (*_COMPARISONS, *_BITS, "floordiv"):
        method, reflected = _constant(getattr(operator, f"__{name}__"))
        setattr(StandardArray, f"__{name}__", method)
        if name not in _COMPARISONS:
            setattr(StandardArray, f"__r{name}__", reflected)
    for name in WRITING:
        symbol = f"__i{name}__"
        method = _in_place(getattr(operator, f"__{name}__"), getattr(operator, symbol))
        setattr(StandardArray, symbol, method)


_install()
