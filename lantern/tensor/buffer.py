"""A mutable array: the only tensor that changes after it was made."""

import math
import operator
from typing import Any, ClassVar

from lantern.core.dispatch import register_class
from lantern.core.operation import Function
from lantern.core.residuals import register_mutable
from lantern.core.tree import tree_leaves
from lantern.core.value import Value, base, is_tracked, unwrapped
from lantern.tensor import buffer_functions
from lantern.tensor.array_api_methods import WRITING, fitted
from lantern.tensor.buffer_writes import Storage, Window, as_index, narrowed, shape_of
from lantern.tensor.immutable import refuse_to_set
from lantern.tensor.ops import sorting
from lantern.tensor.ops.at import At, fitting
from lantern.tensor.ops.creation import asarray
from lantern.tensor.ops.indexing import settled
from lantern.tensor.tensor import Tensor

__all__ = ["Buffer"]


class Buffer(Tensor):
    """An array that can be written to, also with tracked values.

    It is used like an ndarray: ``b[i] = v``, ``b[mask] += v``, ``b *= 2``,
    ``np.add(x, y, out=b)``. Its slices are windows onto the same memory. Wherever an
    operation reads it, it is the tensor ``b.freeze()`` of that moment. Between tracked
    tensors and a buffer the derivative is exact, of any order and in both modes.

    Args:
        x: what it starts with, which is copied: an array, a number, nested lists,
            tracked or not.
        dtype: the type of the elements; by default as they are.

    Example:
        >>> import lantern
        >>> import numpy as np
        >>> def powers(x):
        ...     b = lantern.Buffer(np.ones(4))
        ...     for i in range(1, 4):
        ...         b[i] = b[i - 1] * x
        ...     return lantern.sum(b)
        >>> lantern.grad(powers)(2.0)
        17.0

    References:
        Innes (2018), Don't unroll adjoint, on buffers that are frozen afterwards.
    """

    __slots__ = ("_frozen", "_storage", "_version", "_window")
    changes: ClassVar[bool] = True

    def __init__(self, x: Any, dtype: Any = None) -> None:
        x = unwrapped(x.frozen() if isinstance(x, Value) else x)
        if any(isinstance(leaf, Value) for leaf in tree_leaves(x)):
            array = asarray(x, dtype=dtype)
        else:
            array = asarray(x, dtype=dtype, copy=True)
        storage = Storage(array)
        self._show(storage, storage.whole)

    def _show(self, storage: Storage, window: Window) -> Any:
        self._storage, self._window = storage, window
        self._frozen, self._version = None, -1
        return self

    def freeze(self) -> Any:
        """The elements as they are now: a tensor that never changes.

        Example:
            >>> b = Buffer([1.0, 2.0])
            >>> before = b.freeze()
            >>> b[0] = 5.0
            >>> before, b
            (Tensor(array([1., 2.])), Buffer(array([5., 2.])))
        """
        storage = self._storage
        if self._version != storage.version:
            self._frozen = storage.read(self._window)
            self._version = storage.version
        return self._frozen

    frozen = freeze

    @property
    def primal(self) -> Any:
        """The value itself, as it is now."""
        return self.freeze().primal

    @property
    def level(self) -> Any:  # type: ignore[override]  # a slot of tensors
        """The derivative that the elements belong to now."""
        return self.freeze().level

    @property
    def receiver(self) -> Any:  # type: ignore[override]  # a slot of tensors
        """Who waits for the cotangent of the elements as they are now."""
        return self.freeze().receiver

    @classmethod
    def emerge(cls, primal: Any, level: Any, *args: Any, **options: Any) -> Any:
        """What is computed from a buffer is a tensor, or a value for many examples."""
        if not level.is_derivative:
            return primal
        return Tensor.emerge(primal, level, *args, **options)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return shape_of(self._window)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return base(self._storage.array).dtype

    def __len__(self) -> int:
        return self.shape[0] if self.shape else len(base(self))  # raises

    def __getitem__(self, index: Any) -> Any:
        """An element as a tensor; a slice as a window; by arrays a tensor, a copy."""
        window = narrowed(self._window, index)
        if window is None:
            return self.freeze()[index]
        if not any(type(part) is range for part in window):
            return self._storage.read(window)
        return Buffer.__new__(Buffer)._show(self._storage, window)

    def __setitem__(self, index: Any, v: Any) -> None:
        window = narrowed(self._window, index)
        same = isinstance(v, Buffer) and v._storage is self._storage
        if same and v._window == window:
            return  # b[0:2] += 1 ends with b[0:2] = b[0:2]
        v = _given(v)
        if window is not None:
            self._storage.write(window, v)
        elif self._storage.is_plain and not isinstance(v, Value):
            part = self._memory()
            part[settled(index, part)] = v
        else:
            self[...] = At(self.freeze())[index].set(v)

    def _memory(self) -> Any:
        """The elements of a plain buffer, to be written to."""
        return self._storage.own()[(*as_index(self._window), ...)]

    def take_result(self, z: Any) -> Any:
        """Take what a function has computed, as its ``out=``; the buffer itself."""
        self[...] = fitting(z, self)
        return self

    def fill(self, v: Any) -> None:
        """Set all elements to a value."""
        self[...] = v

    def put(self, indices: Any, v: Any, mode: str = "raise") -> None:
        """Set the elements at positions in the flattened array; v is repeated."""
        buffer_functions.put(self, indices, v, mode)

    def sort(self, axis: int = -1, **options: Any) -> None:
        """Put the elements in order along an axis."""
        self[...] = sorting.sort(self.freeze(), axis, **options)

    def partition(self, kth: Any, axis: int = -1, **options: Any) -> None:
        """Put the elements in order around positions along an axis."""
        self[...] = sorting.partition(self.freeze(), kth, axis, **options)

    def copy(self) -> Any:
        """Another buffer with the same elements."""
        return Buffer(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Any:
        return Buffer(self)

    def __reduce__(self) -> Any:
        if is_tracked(self):
            return super().__reduce__()
        return Buffer, (base(self),)


def _given(v: Any) -> Any:
    """What is written: no buffer, and no untracked tensor."""
    v = unwrapped(v.frozen() if isinstance(v, Value) else v)
    return asarray(v) if isinstance(v, list | tuple) else v


def _in_place(name: str) -> Function:
    """The method ``b op= y``."""
    operation = getattr(operator, f"__{name}__")
    write = getattr(operator, f"__i{name}__")

    def operate(self: Buffer, y: Any) -> Any:
        y = _given(y)
        if self._storage.is_plain and not isinstance(y, Value):
            write(self._memory(), y)
        else:
            old = self.freeze()
            self[...] = fitted(operation(old, y), base(old))
        return self

    return operate


for _name in WRITING:
    setattr(Buffer, f"__i{_name}__", _in_place(_name))
refuse_to_set(Buffer)
register_mutable(Buffer, Buffer.freeze)
register_class(Buffer, Tensor)  # what tracks a buffer is no buffer
