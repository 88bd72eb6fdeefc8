"""A tensor that a module counts among its parameters."""

from typing import TYPE_CHECKING, Any, cast

from lantern.core.value import UNTRACKED
from lantern.eager.recorder import Recorder
from lantern.errors import EagerError, UninitializedError
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.subclasses import SILENT, disabled
from lantern.torch.tensor.tensor import NOBODY, Tensor
from lantern.torch.tensor.view_memory import share

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


def is_lazy(param: Any) -> bool:
    """Whether a parameter or a buffer waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class Parameter(Tensor):
    """A tensor that becomes a parameter of the module to which it is assigned.

    Args:
        data: a tensor, whose memory it shares.
        requires_grad: whether a derivative may be asked for.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Parameter(torch.ones(2))
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__: Any = disabled

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """A parameter around the memory of a tensor."""
        from lantern.torch.functions.creation import tensor

        if data is None:
            data = tensor([])
        x = object.__new__(cls)
        x.primal, x.level, x.receiver = base(data), UNTRACKED, NOBODY
        x.viewed = x.sharers = None
        if isinstance(data, Tensor):
            share(x, data)
        return x.requires_grad_() if requires_grad else x

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module to which it is assigned.

    Args:
        data: a tensor, whose memory it shares.
        persistent: whether it belongs to the module's state.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Module()
        >>> model.mean = torch.nn.Buffer(torch.zeros(2))
        >>> list(model.state_dict()), list(model.parameters())
        (['mean'], [])
    """

    __slots__ = ()
    __torch_function__: Any = disabled
    if TYPE_CHECKING:
        persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """A buffer around the memory of a tensor."""
        from lantern.torch.functions.creation import tensor

        data = tensor([]) if data is None else data
        x: Any = object.__new__(cls)
        x.primal, x.level, x.receiver = base(data), UNTRACKED, NOBODY
        x.viewed = x.sharers = None
        x.persistent = persistent
        if isinstance(data, Tensor):
            share(x, data)
        return x


SILENT.update((Parameter, Buffer))


_ParameterMeta, _BufferMeta = type(Parameter), type(Buffer)


class UninitializedTensorMixin:
    """What a parameter or a buffer is whose shape is not known yet.

    Its type and its device are those of an empty tensor, which is its ``data``.
    """

    __slots__ = ()
    cls_to_become: Any
    requires_grad: Any

    @property
    def data(self) -> Any:
        """An empty tensor, of the type that there will be."""
        return self.__dict__["empty"]

    @data.setter
    def data(self, x: Any) -> None:
        """Be of another type, or on another device."""
        self.__dict__["empty"] = x.data if is_lazy(x) else x.detach()

    @property
    def primal(self) -> Any:
        """Raises: there is no array yet."""
        raise UninitializedError(
            "Attempted to use an uninitialized parameter: it has no value before its "
            "layer has seen an input. Call the model once first."
        )

    @property
    def shape(self) -> Any:
        """Raises: it is not known yet."""
        raise EagerError(
            "Can't access the shape of an uninitialized parameter or buffer. This "
            "error usually happens in `load_state_dict` when trying to load an "
            "uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    @property
    def dtype(self) -> Any:
        """The type that its elements will have."""
        return self.data.dtype

    @property
    def device(self) -> Any:
        """Where it will lie."""
        return self.data.device

    @property
    def is_leaf(self) -> bool:
        """Whether no rule made it: so it is."""
        return True

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Say whether a derivative may be asked for; the tensor itself."""
        empty, whole = self.data, cast(Any, self)
        empty.requires_grad_(requires_grad)
        whole.level, whole.receiver = empty.level, empty.receiver
        self.data = empty
        return self

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """Take nothing, from another without a value."""
        return self if is_lazy(src) else super().copy_(src)  # type: ignore[misc]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Have a shape, and memory whose values are not set.

        Args:
            shape: the lengths of the axes.
            device: where it shall lie.
            dtype: the elements' type.
        """
        from lantern.torch.functions.creation import empty

        x = empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        del self.__dict__["empty"]
        self.__class__ = self.cls_to_become
        whole = cast(Any, self)
        whole.primal = x.primal
        if type(whole.receiver) is Recorder:
            whole.receiver.shape, whole.receiver.dtype = x.primal.shape, x.primal.dtype

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self.__reduce_ex__(2)[0](*self.__reduce_ex__(2)[1])
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, str(self.device), self.dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _of_data(name: str, moves: bool) -> Any:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        found = getattr(self.data, name)(*args, **options)
        if moves:
            x = _uninitialized(type(self), False, found.device, found.dtype)
            x.__dict__.update(self.__dict__ | {"empty": found})
            return x
        return found

    method.__name__ = name
    method.__doc__ = f"As ``{name}`` of the empty tensor."
    return method


for _name in (
    "bfloat16 char cpu cuda double float half int long short to "
    "get_device is_complex is_floating_point size"
).split():
    _moves = _name[:3] not in ("get", "is_", "siz")
    setattr(UninitializedTensorMixin, _name, _of_data(_name, _moves))


def _uninitialized(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    from lantern.torch.functions.creation import empty

    x = object.__new__(cls)
    x.viewed = x.sharers = None
    x.data = empty(0, device=device, dtype=dtype)
    return x.requires_grad_(requires_grad)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet.

    Args:
        requires_grad: whether a derivative may be asked for.
        device: where it shall lie.
        dtype: its type.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.LazyLinear(2)
        >>> isinstance(layer.weight, torch.nn.UninitializedParameter)
        True
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> Any:
        """A parameter that holds nothing."""
        return _uninitialized(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet.

    Args:
        requires_grad: whether a derivative may be asked for.
        device: where it shall lie.
        dtype: its type.
        persistent: whether it belongs to the module's state.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.LazyBatchNorm1d()
        >>> layer.running_mean
        <UninitializedBuffer>
    """

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        """A buffer that holds nothing."""
        x = _uninitialized(cls, requires_grad, device, dtype)
        x.persistent = persistent
        return x
