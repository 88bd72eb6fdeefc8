"""An eager array: the PyTorch-compatible API over the same rules.

What a program computes with is a ``Tensor``; its ``Recorder`` owns the suspended rule.
``from_lists.py``, ``operators.py``, ``gradients.py`` and ``methods/`` give the class
what it can do.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lantern.core.value import UNTRACKED, Level, Receiver, Value, base
from lantern.eager.grad_mode import is_enabled, without_stopped
from lantern.eager.recorder import AMBIENT, NumpyFace, Recorder, recorded, starter
from lantern.errors import ArgumentError, BatchedValueError, EagerError
from lantern.rules.number import Number
from lantern.tensor.backend.device import device as device_name
from lantern.tensor.backend.numpy_namespace import array_namespace
from lantern.tensor.ops.creation import array
from lantern.tensor.tensor import Tensor as NumpyTensor
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.batches import is_followed, no_single_value
from lantern.torch.tensor.detaching import plain_number
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.layouts import like_leaf
from lantern.torch.tensor.subclasses import SILENT, asks
from lantern.vectorizing.batched import Batched

if TYPE_CHECKING:  # with what is installed below, and by lantern.torch.methods
    from lantern.torch.tensor.members import Wrapper
else:
    from lantern.core.value import Wrapper

__all__ = ["Tensor", "is_tensor"]

_new = object.__new__
_size = tuple.__new__  # of lengths that are whole numbers: ``Size`` looks at each
# Who receives for arrays that nothing tracks.
NOBODY: Any = Receiver()
NOBODY.suspended = NOBODY.left = NOBODY.right = NOBODY.cotangent = None


def fresh(primal: Any) -> "Tensor":
    """An untracked tensor that holds an array, of one example where it is batched."""
    if type(primal) is Batched:
        return make(primal, primal.level, NOBODY)
    return untracked(primal)


def untracked(primal: Any) -> "Tensor":
    """An untracked tensor that holds a plain array."""
    x = _new(Tensor)
    x.primal = primal
    x.level = UNTRACKED
    x.receiver = NOBODY
    x.viewed = x.sharers = None
    return x


def make(primal: Any, level: Level, receiver: Any) -> "Tensor":
    """A tensor from its parts."""
    x = _new(Tensor)
    x.primal = primal
    x.level = level
    x.receiver = receiver
    x.viewed = x.sharers = None
    return x


def torch_face(z: Any) -> Any:
    """A result of Lantern's other face as a tensor; tensors as they are."""
    if isinstance(z, Value):
        if isinstance(z, Tensor):
            return z
        if not isinstance(z, Wrapper):
            return make(z, z.level, NOBODY) if type(z) is Batched else z
        if isinstance(z, Number):
            z = array(z)
        if z.level is not UNTRACKED:
            return make(z.primal, z.level, z.receiver)
        z = z.primal
    return fresh(z if hasattr(z, "dtype") else np.asarray(z))


def numpy_face(x: Any) -> Any:
    """A tensor as Lantern's functions take it; what is no tensor as it is."""
    if not isinstance(x, Tensor):
        return x
    level = x.level
    if level is UNTRACKED:
        return x.primal
    if level is AMBIENT:
        return NumpyFace(x.primal, level, x.receiver) if is_enabled() else x.primal
    if not level.is_derivative:
        return x.primal if is_enabled() else _stopped(x.primal)
    z = NumpyTensor(x.primal, level, x.receiver)
    return z if is_enabled() else without_stopped(z)


def _stopped(x: Batched) -> Any:
    """Examples without the derivatives around their ``vmap`` that ``no_grad`` stops."""
    return Batched(numpy_face(torch_face(x.stacked)), x.level, x.mapped)


# A gradient that a user hands over, as the rules take it.
plain_cotangent = numpy_face


# What a transform gives, where its result or gradient is an eager array.
NumpyFace.shown = torch_face  # type: ignore[assignment, method-assign]


class Tensor(Wrapper):
    """An array as PyTorch has it.

    Args:
        data: nested lists of numbers, or an array; or the lengths of the axes.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    # views: of a base, weakly, the untracked tensors that show its memory.
    # sharers: an object that it and those that show its memory as no views hold.
    __slots__ = (
        "__dict__ __weakref__ primal level receiver sharers viewed views".split()
    )
    __hash__ = object.__hash__
    __array_priority__ = 1000
    rank: ClassVar[int] = 3
    is_face: ClassVar[bool] = True
    receiver: Any
    viewed: Any
    views: Any
    sharers: Any

    if TYPE_CHECKING:

        def __new__(cls, *data: Any, dtype: Any = None, device: Any = None) -> Any:
            """A tensor from data or of a shape: ``from_lists.py``."""

    @classmethod
    def emerge(
        cls,
        primal: Any,
        level: Level,
        rule: Any,
        left: Any,
        right: Any = None,
        elementwise: int = 0,
    ) -> Any:
        """A new tensor, which owns its suspended rule."""
        if level is UNTRACKED or (level is AMBIENT and not is_enabled()):
            return torch_face(primal)
        if level is AMBIENT:
            receiver = recorded(primal, rule, left, right, elementwise)
            return make(primal, level, receiver)
        z = NumpyTensor.emerge(primal, level, rule, left, right, elementwise)
        return make(z.primal, level, z.receiver)

    def gradient(self) -> Any:
        """What the tensor has received as an input of ``lantern.grad``."""
        return torch_face(NumpyTensor.gradient(self))  # type: ignore[arg-type]

    def one(self) -> Any:
        """1 in the tensor's own type."""
        return NumpyTensor.one(self)  # type: ignore[arg-type]

    def numpy_face(self) -> Any:
        """The value under NumPy's names, as rules take it."""
        return numpy_face(self)

    def like_this(self, z: Any) -> Any:
        """What a transform gives for a tensor: an array becomes one."""
        return torch_face(z) if hasattr(z, "dtype") else z

    # --- what it is ---------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The lengths of the axes.

        Example:
            >>> import lantern.torch as torch
            >>> torch.ones(2, 3).shape
            torch.Size([2, 3])
        """
        return _size(Size, base(self).shape)

    @property
    def ndim(self) -> int:
        """The number of axes.

        Example:
            >>> import lantern.torch as torch
            >>> torch.ones(2, 3).ndim
            2
        """
        return base(self).ndim

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements.

        Example:
            >>> import lantern.torch as torch
            >>> torch.tensor([1, 2]).dtype
            torch.int64
        """
        return dtypes.by_numpy[base(self).dtype]

    @property
    def device(self) -> dtypes.device:
        """Where the array lies.

        Example:
            >>> import lantern.torch as torch
            >>> torch.tensor([1.0]).device
            device(type='cpu')
        """
        plain = base(self)
        if isinstance(plain, np.ndarray | np.generic):
            return dtypes.CPU
        return dtypes.device(device_name(plain))

    def __len__(self) -> int:
        shape = base(self).shape
        if not shape:
            raise ArgumentError("len() of a 0-d tensor")
        return shape[0]

    def item(self) -> Any:
        """The only element, as a Python number.

        Example:
            >>> import lantern.torch as torch
            >>> torch.tensor([[2.5]]).item()
            2.5
        """
        plain = base(self)
        if plain.size != 1:
            raise EagerError(
                f"a Tensor with {plain.size} elements cannot be converted to Scalar"
            )
        try:
            return plain.item()
        except BatchedValueError:
            raise no_single_value("item") from None

    def tolist(self) -> Any:
        """The elements, as nested lists of Python numbers.

        Example:
            >>> import lantern.torch as torch
            >>> torch.tensor([[1, 2], [3, 4]]).tolist()
            [[1, 2], [3, 4]]
        """
        try:
            return base(self).tolist()
        except BatchedValueError:
            raise no_single_value("tolist") from None

    def __bool__(self) -> bool:
        plain = base(self)
        if plain.size != 1:
            what = "more than one value" if plain.size else "no values"
            raise EagerError(f"Boolean value of Tensor with {what} is ambiguous")
        try:
            return bool(plain)
        except BatchedValueError:
            raise no_single_value("bool") from None

    def __index__(self) -> int:
        plain = base(self)
        if plain.size != 1 or plain.dtype.kind not in "iub":
            raise ArgumentError(
                "only integer tensors of a single element can be converted to an index"
            )
        try:
            return int(plain.item())
        except BatchedValueError:
            raise no_single_value("item") from None

    def __format__(self, spec: str) -> str:
        if not base(self).shape and spec:
            return format(self.item(), spec)
        return object.__format__(self, spec) if spec else repr(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_wrap__(self, array: Any, *rest: Any) -> Any:
        return fresh(np.asarray(array))

    def numpy(self, *, force: bool = False) -> Any:
        """The array itself, which shares memory with the tensor.

        Example:
            >>> import lantern.torch as torch
            >>> torch.tensor([1.0, 2.0]).numpy()
            array([1., 2.], dtype=float32)
        """
        if self.requires_grad and not force and is_enabled():
            plain_number("numpy", self)
            raise EagerError(
                "Can't call numpy() on Tensor that requires grad. Use "
                "tensor.detach().numpy() instead."
            )
        plain = base(self)
        if type(plain) is Batched:
            raise no_single_value("numpy")
        if isinstance(plain, np.generic):
            self.primal = plain = np.asarray(plain)
        elif not isinstance(plain, np.ndarray):
            if not force:
                raise ArgumentError(
                    "can't convert cuda device type tensor to numpy. Use Tensor.cpu() "
                    "to copy the tensor to host memory first."
                )
            plain = array_namespace(plain).to_device(plain, "cpu")
        return plain

    def __repr__(self) -> str:
        from lantern.torch.tensor.printing import text

        return text(self, torch_face, type(self).__name__ if asks(self) else "tensor")

    def __iter__(self) -> Iterator[Any]:
        if not base(self).shape:
            raise ArgumentError("iteration over a 0-d tensor")
        return (self[i] for i in range(len(self)))

    def _repr_html_(self) -> str:
        """The tensor in a notebook: what it prints, and what it is."""
        from html import escape

        kind = str(self.dtype).removeprefix("torch.")
        told = [f"shape {tuple(self.shape)}", kind, str(self.device)]
        told += ["requires grad"] * self.requires_grad
        return (
            f"<pre>{escape(repr(self))}</pre><small>{escape(' · '.join(told))}</small>"
        )

    # --- its derivative -------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether a derivative may be asked for.

        Example:
            >>> import lantern.torch as torch
            >>> x = torch.tensor([1.0], requires_grad=True)
            >>> x.requires_grad, (x * 2).requires_grad, x.detach().requires_grad
            (True, True, False)
        """
        level = self.level
        return level is not UNTRACKED and (level.is_derivative or is_followed(self))

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        """As ``requires_grad_``."""
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Say whether a derivative may be asked for; the tensor itself.

        Example:
            >>> import lantern.torch as torch
            >>> torch.tensor([1.0, 2.0]).requires_grad_()
            tensor([1., 2.], requires_grad=True)
        """
        if bool(requires_grad) == self.requires_grad:
            return self
        if type(base(self)) is Batched:
            raise EagerError(
                "You are attempting to call Tensor.requires_grad_() (or perhaps using "
                "torch.autograd.functional.* APIs) inside of a function being "
                "transformed by vmap. Use torch.func's transforms inside (grad, vjp, "
                "jacrev, ...), or call requires_grad_() outside."
            )
        if not requires_grad:
            if not self.is_leaf:
                raise EagerError(
                    "you can only change requires_grad flags of leaf variables. If you "
                    "want to use a computed variable in a subgraph that doesn't "
                    "require differentiation use var_no_grad = var.detach()."
                )
            grad = self.grad
            self.level, self.receiver = UNTRACKED, NOBODY
            if grad is not None:
                self.grad = grad
            return self
        array = base(self)
        if array.dtype.kind not in dtypes.INEXACT:
            raise EagerError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        self.level, self.receiver = (
            AMBIENT,
            Recorder().prepare(array.shape, array.dtype),
        )
        self.receiver.grad = self.__dict__.pop("grad", None)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no rule made it.

        Example:
            >>> import lantern.torch as torch
            >>> x = torch.tensor([1.0], requires_grad=True)
            >>> x.is_leaf, (x * 2).is_leaf
            (True, False)
        """
        receiver = self.receiver
        if type(receiver) is Recorder:
            return receiver.function is None
        return self.level is UNTRACKED or not self.requires_grad

    @property
    def grad(self) -> Any:
        """What the passes so far have left; None for nothing.

        Example:
            >>> import lantern.torch as torch
            >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
            >>> (x * x).sum().backward()
            >>> x.grad
            tensor([2., 4.])
        """
        receiver = self.receiver
        if type(receiver) is not Recorder:
            return self.__dict__.get("grad") if receiver is NOBODY else None
        grad = receiver.grad
        if grad is not None and type(grad) is not Tensor:
            grad = like_leaf(self.primal, receiver.dense_grad())
            grad = receiver.grad = torch_face(grad)
        return grad

    @grad.setter
    def grad(self, grad: Any) -> None:
        """Another tensor of this shape, or None."""
        if grad is not None:
            if not isinstance(grad, Tensor):
                raise ArgumentError(
                    f"assigned grad expected to be a Tensor or None but got grad of "
                    f"type {type(grad).__name__}"
                )
            if grad is self:
                raise EagerError("can't assign Variable as its own grad")
            if base(grad).dtype != base(self).dtype:
                raise EagerError(
                    f"attempting to assign a gradient with dtype '{grad.dtype}' to a "
                    f"tensor of dtype '{self.dtype}'. Convert it with "
                    f"grad.to(tensor.dtype)."
                )
            if base(grad).shape != base(self).shape:
                raise EagerError(
                    f"attempting to assign a gradient of size '{list(grad.shape)}' to "
                    f"a tensor of size '{list(self.shape)}'. Please ensure that the "
                    f"gradient and the tensor are the same size"
                )
        if type(self.receiver) is Recorder:
            self.receiver.grad = grad
        else:
            self.__dict__["grad"] = grad

    @grad.deleter
    def grad(self) -> None:
        """None."""
        self.grad = None

    _grad = grad


UNSEEN: Any = object()  # in place of a view's base: what is written is not noticed


def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_tensor(torch.tensor([1])), torch.is_tensor([1])
        (True, False)
    """
    return isinstance(obj, Tensor)


start = starter(Tensor)
SILENT.add(Tensor)
