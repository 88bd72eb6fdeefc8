"""The methods and properties of an ndarray, which ``Tensor`` inherits."""

import operator
from collections.abc import Iterator
from typing import Any

from lantern.core.numpy_protocols import scipys_words
from lantern.core.value import base, is_tracked
from lantern.errors import DetachError
from lantern.rules import arithmetic
from lantern.tensor.array_api_methods import StandardArray
from lantern.tensor.backend.device import device, to_device
from lantern.tensor.ops import at as updating
from lantern.tensor.ops import (
    cumulative,
    elementwise,
    indexing,
    mean_variance,
    products,
    rearrange,
    reduction,
    sorting,
    zero_derivative,
)
from lantern.tensor.ops import shape as manipulation

__all__ = ["NdarrayMethods"]


class NdarrayMethods(StandardArray):
    """What an ndarray can do by name: each is an operation, or asks the plain array."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return base(self).shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return base(self).size

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return base(self).dtype

    @property
    def device(self) -> str:
        """The name of the device that the array lies on."""
        return device(self)

    def to_device(self, device: str, /, *, stream: None = None) -> Any:
        """The array on a device; itself, if it lies there."""
        return to_device(self, device)

    to = to_device

    @property
    def T(self) -> Any:
        """The array with its axes reversed."""
        return manipulation.permute_dims(self)

    @property
    def mT(self) -> Any:
        """The array with its last two axes swapped."""
        return manipulation.matrix_transpose(self)

    def __len__(self) -> int:
        return len(base(self))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return indexing.getitem(self, index)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """The elements in another shape."""
        new = shape[0] if len(shape) == 1 else shape
        return manipulation.reshape(self, new, order, copy=copy)

    def transpose(self, *axes: Any) -> Any:
        """The array with its axes permuted; reversed, if no order is given."""
        if len(axes) == 1 and not hasattr(axes[0], "__index__"):
            axes = axes[0]
        return manipulation.permute_dims(self, axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """The array with two axes swapped."""
        return manipulation.swapaxes(self, axis1, axis2)

    def ravel(self, order: str = "C") -> Any:
        """The elements along one axis."""
        return manipulation.ravel(self, order)

    flatten = ravel

    @property
    def flat(self) -> Any:
        """The elements along one axis, to be read one by one."""
        return manipulation.ravel(self)

    @property
    def at(self) -> updating.At:
        """The way to changed arrays: ``x.at[index].set(v)``."""
        return updating.At(self)

    def take(
        self, indices: Any, axis: int | None = None, *, mode: str = "raise"
    ) -> Any:
        """The elements at some positions along an axis."""
        return indexing.take(self, indices, axis, mode=mode)

    def compress(self, condition: Any, axis: int | None = None) -> Any:
        """The parts along an axis for which a condition holds."""
        return indexing.compress(condition, self, axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:
        """The array with each part along an axis repeated."""
        return rearrange.repeat(self, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """The diagonals of the matrices along two axes."""
        return products.diagonal(self, offset, axis1, axis2)

    def argsort(self, axis: int | None = -1, *args: Any, **options: Any) -> Any:
        """Where the elements of the sorted array come from: plain integers."""
        return sorting.argsort(self, axis, *args, **options)

    def argpartition(self, kth: Any, axis: int | None = -1, *args: Any) -> Any:
        """Where the elements of the partitioned array come from: plain integers."""
        return sorting.argpartition(self, kth, axis, *args)

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Any:
        """Where values would stand in this sorted array: plain integers."""
        return sorting.searchsorted(self, v, side, sorter)

    def nonzero(self) -> Any:
        """The positions of elements that are not 0, as plain integers."""
        return sorting.nonzero(self)

    def squeeze(self, axis: Any = None) -> Any:
        """The array without axes of length 1."""
        return manipulation.squeeze(self, axis)

    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """The array with elements of another type."""
        return manipulation.astype(self, dtype, copy=copy)

    # These take what the functions take: an array is their first argument.
    sum, mean, prod = reduction.sum, reduction.mean, reduction.prod
    max, min, ptp = reduction.max, reduction.min, reduction.ptp
    var, std = mean_variance.var, mean_variance.std
    cumsum, cumprod = cumulative.cumsum, cumulative.cumprod
    all, any = zero_derivative.all, zero_derivative.any
    argmax, argmin = zero_derivative.argmax, zero_derivative.argmin
    clip, round = elementwise.clip, zero_derivative.round
    trace = products.trace

    def dot(self, other: Any) -> Any:
        """The product over this array's last axis, as that of ``lantern.dot``."""
        return products.dot(self, other)

    def copy(self) -> Any:
        """The array as a new value."""
        return arithmetic.positive(self)

    def plain(self, where: str = "float") -> Any:
        """The array itself, unless that would lose a derivative."""
        if is_tracked(self):
            raise DetachError(
                scipys_words()
                or f"{where}: a tracked array would become a constant, as in "
                f"math.sin(x), x.item() or b[i] = x. Use lantern's functions "
                f"(lantern.sin), a lantern.Buffer for b, lantern.stack to build "
                f"arrays, or lantern.stop_gradient to detach it."
            )
        return base(self)

    def __float__(self) -> float:
        return float(self.plain("float"))

    def __complex__(self) -> complex:
        return complex(self.plain("complex"))

    def __index__(self) -> int:
        return operator.index(self.plain("index"))

    def item(self) -> Any:
        """The only element, as a Python number."""
        return self.plain("item").item()

    def tolist(self) -> Any:
        """The elements, as nested lists of Python numbers."""
        return self.plain("tolist").tolist()
