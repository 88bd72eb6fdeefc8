"""Parameters that are computed from others, each time they are read."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

from lantern.blocks import between_turns
from lantern.eager.grad_mode import no_grad
from lantern.errors import EagerError, OptionError, ShapeError
from lantern.torch.nn.containers import ModuleDict, ModuleList
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
]

_cache: list[dict[tuple[int, str], Any]] = []


@contextmanager
def cached() -> Iterator[None]:
    """A block in which each parameter is computed once at most.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        >>> layer.weight is layer.weight
        False
        >>> with torch.nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    _cache.append({})
    try:
        yield
    finally:
        _cache.pop()


class ParametrizationList(ModuleList):
    """Modules through which a tensor goes, and the tensor, or several.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        >>> [name for name, _ in layer.parametrizations.weight.named_parameters()]
        ['original0', 'original1']
    """

    @between_turns
    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe, values = unsafe, original
        with no_grad(), suppress(NotImplementedError):
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    values = module.right_inverse(values)
        self.is_tensor = isinstance(values, Tensor)
        _check_parts(values, original)
        if self.is_tensor:
            self.ntensors = 1
            self._keep("original", values, original)
        else:
            self.ntensors = len(values)
            for i, value in enumerate(values):
                self._keep(f"original{i}", value, original)

    def _keep(self, name: str, value: Any, original: Any) -> None:
        if isinstance(original, Parameter):
            kept = original if value is original else Parameter(value)
            if kept is not original:
                kept.requires_grad_(original.requires_grad)
            self.register_parameter(name, kept)
        else:
            self.register_buffer(name, value)

    def _values(self) -> tuple[Any, ...]:
        if self.is_tensor:
            return (self.original,)
        return tuple(getattr(self, f"original{i}") for i in range(self.ntensors))

    def forward(self) -> Any:
        """The tensor that is computed."""
        first, *rest = list(self)
        x = first(*self._values())
        for module in rest:
            x = module(x)
        return x

    def right_inverse(self, value: Any) -> None:
        """Make the tensors such that a value is computed from them."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise OptionError(
                        f"parametrization {type(module).__name__} does not implement "
                        "right_inverse."
                    )
                value = module.right_inverse(value)
            row = (value,) if self.is_tensor else tuple(value)
            for x, y in zip(self._values(), row, strict=True):
                if self.is_tensor:
                    _check_alike("right_inverse", x, y, "must")
                x.copy_(y)


def _check_parts(values: Any, original: Any) -> None:
    """What a tensor is to be computed from: a tensor of its type, or several."""
    if isinstance(values, Tensor):
        if values.dtype != original.dtype:
            raise OptionError(
                "When `right_inverse` outputs one tensor, it may not change the dtype: "
                f"{original.dtype} became {values.dtype}."
            )
        return
    if not isinstance(values, Sequence):
        raise OptionError(
            "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
            f"tuple...). Got {type(values).__name__}"
        )
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise OptionError(
                "When `right_inverse` outputs a sequence, it must be of tensors. Got "
                f"element {i} of the sequence with type {type(value).__name__}."
            )


def _check_alike(what: str, before: Any, after: Any, rule: str = "may not") -> None:
    """A parametrization that is safe keeps the type and the shape of a tensor."""
    if not isinstance(after, Tensor):
        raise OptionError(f"{what} must return a tensor. Got {type(after).__name__}.")
    for name in ("dtype", "shape"):
        if getattr(before, name) != getattr(after, name):
            raise (ShapeError if name == "shape" else OptionError)(
                f"{_RULES[rule].format(what, name)}: {getattr(before, name)} became "
                f"{getattr(after, name)}. With unsafe=True it may."
            )


_RULES = {
    "may not": "Registering a parametrization may not change the {1} of the tensor",
    "must": "The tensor of {0} must have the same {1} as the tensor",
}


def _check_added(value: Any, parametrization: Any) -> None:
    """What a further parametrization makes of a value, and of its result."""
    result = parametrization(value)
    _check_alike("A parametrization", value, result)
    if hasattr(parametrization, "right_inverse"):
        with suppress(NotImplementedError):
            back = parametrization.right_inverse(result)
            _check_alike("parametrization.right_inverse", value, back, "must")


def _computed(name: str) -> property:
    """A property that computes a parameter."""

    def read(self: Any) -> Any:
        if not _cache:
            return self.parametrizations[name]()
        known = _cache[-1]
        key = id(self), name
        if key not in known:
            known[key] = self.parametrizations[name]()
        return known[key]

    def write(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def _refuse_state(self: Any) -> Any:
    raise EagerError(
        "Serialization of parametrized modules is only supported through state_dict(): "
        "their classes are made as they run."
    )


def _copied(self: Any, memo: Any) -> Any:
    memo[id(self)] = copy = object.__new__(type(self))
    copy.__dict__.update(deepcopy(self.__dict__, memo))
    return copy


def _opened(module: Any) -> None:
    """Let a module have a class of its own, for properties."""
    kind = type(module)

    def forward(self: Any, *args: Any, **options: Any) -> Any:
        return kind.forward(self, *args, **options)

    rest: dict[str, Any] = {
        "forward": forward,
        "__doc__": kind.__doc__,
        "__getstate__": _refuse_state,
        "__deepcopy__": _copied,
    }
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), rest)
    module.parametrizations = ModuleDict()


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a parameter, or a buffer, be computed by a module from what it was.

    Args:
        module: the module that has it.
        tensor_name: its name.
        parametrization: a module that takes the tensor, or what its ``right_inverse``
            makes of it, and gives the one that is to be used.
        unsafe: whether shape and type may change.

    Example:
        >>> import lantern.torch as torch
        >>> class Positive(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.exp()
        >>> layer = torch.nn.utils.parametrize.register_parametrization(
        ...     torch.nn.Linear(2, 2), "weight", Positive()
        ... )
        >>> bool((layer.weight > 0).all())
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known = module.parametrizations[tensor_name]
        known.unsafe |= unsafe
        if not unsafe:
            _check_added(getattr(module, tensor_name), parametrization)
        known.append(parametrization)
        return module
    if tensor_name not in {**module._parameters, **module._buffers}:
        raise OptionError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized "
            f"element with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    group = ParametrizationList([parametrization], original, unsafe)
    value = group()
    if not unsafe:
        _check_alike("A parametrization", original, value)
    if not is_parametrized(module):
        _opened(module)
    delattr(module, tensor_name)
    setattr(type(module), tensor_name, _computed(tensor_name))
    module.parametrizations[tensor_name] = group
    return module


def is_parametrized(module: Any, tensor_name: Any = None) -> bool:
    """Whether a module has a parameter, or this one, that is computed.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        >>> is_parametrized = torch.nn.utils.parametrize.is_parametrized
        >>> is_parametrized(layer, "weight"), is_parametrized(layer, "bias")
        (True, False)
    """
    groups = module._modules.get("parametrizations")
    if groups is None:
        return False
    return len(groups) > 0 if tensor_name is None else tensor_name in groups


def remove_parametrizations(
    module: Any, tensor_name: str, leave_parametrized: bool = True
) -> Any:
    """Let a parameter be one again: what is computed now, or what it was.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        >>> layer = torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise OptionError(
            f"Module {module} does not have a parametrization on {tensor_name}"
        )
    group = module.parametrizations[tensor_name]
    if leave_parametrized:
        with no_grad():
            value: Any = group().clone()
        first: Any = group._values()[0]
        if type(first) is Parameter and base(first).shape == base(value).shape:
            first.set_(value)
            value = first
    else:
        if not group.is_tensor:
            raise OptionError(
                "Cannot leave unparametrized (leave_parametrized=False) a tensor that "
                "is parametrized by several."
            )
        value = group.original
    trained = any(isinstance(x, Parameter) for x in group._values())
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if trained:
        made = value if isinstance(value, Parameter) else Parameter(value)
        module.register_parameter(tensor_name, made)
    else:
        module.register_buffer(tensor_name, value)
    if not len(module.parametrizations):
        del module._modules["parametrizations"]
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class that a module had."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
