"""Modules that hold parameters: in a row, or by name."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lantern.core.value import base
from lantern.errors import ArgumentError, EagerError, PositionError
from lantern.torch.nn.containers import pairs
from lantern.torch.nn.module import Module
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor.tensor import Tensor

__all__ = ["ParameterDict", "ParameterList"]


def _line(name: Any, x: Any, kind: str) -> str:
    """A parameter in a few words."""
    if not isinstance(x, Tensor):
        return f"  ({name}): Object of type: {type(x).__name__}"
    what = "Parameter" if isinstance(x, Parameter) else "Tensor"
    shape = "x".join(map(str, base(x).shape))
    place = f" ({x.device})" if x.device.type == "cuda" else ""
    return f"  ({name}): {what} containing: [{kind} of size {shape}{place}]"


class _Parameters(Module):
    """What rows and dictionaries of parameters share: tensors become parameters.

    Other values stay what they are: modules in it are found, too.
    """

    def _put(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Is not possible."""
        raise EagerError(f"{self._get_name()} should not be called.")


class ParameterList(_Parameters):
    """Parameters in a list.

    Example:
        >>> import lantern.torch as torch
        >>> weights = torch.nn.ParameterList([torch.zeros(2), torch.zeros(3)])
        >>> [name for name, _ in weights.named_parameters()]
        ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def _key(self, index: Any) -> str:
        n, i = len(self), index.__index__()
        if not -n <= i < n:
            raise PositionError(f"index {i} is out of range")
        return str(i % n)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(self[i] for i in range(*index.indices(len(self))))
        return getattr(self, self._key(index))

    def __setitem__(self, index: int, param: Any) -> None:
        self._put(self._key(index), param)

    def append(self, value: Any) -> Any:
        """Add a parameter behind the others; itself."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add parameters behind the others; itself."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise ArgumentError(
                f"ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Any:
        return self.extend(values)

    def extra_repr(self) -> str:
        """Types and sizes."""
        return "\n".join(
            _line(i, x, str(getattr(x, "dtype", ""))) for i, x in enumerate(self)
        )


class ParameterDict(_Parameters):
    """Parameters by name; of a plain dictionary, in the order of the names.

    Example:
        >>> import lantern.torch as torch
        >>> scales = torch.nn.ParameterDict({"width": torch.ones(2)})
        >>> scales["width"].requires_grad
        True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _text(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[_text(key)] = None
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> Any:
        found = self.copy()
        found.update(other)
        return found

    def __ror__(self, other: Any) -> Any:
        found = other.copy()
        found.update(self)
        return found

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def copy(self) -> Any:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, or something else."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter of a name, which is set if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> Any:
        """A dictionary of names with one value."""
        return ParameterDict((key, default) for key in keys)

    def pop(self, key: str) -> Any:
        """Take out the parameter of a name."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take out the last name and parameter."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Take out all."""
        for key in list(self):
            del self[key]

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Any:
        """Names and parameters."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Any:
        """The parameters."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add parameters by their names."""
        found = pairs(self, parameters)
        ordered = isinstance(parameters, OrderedDict | ParameterDict)
        if isinstance(parameters, Mapping) and not ordered:
            found = iter(sorted(parameters.items()))
        for key, value in found:
            self[key] = value

    def extra_repr(self) -> str:
        """Types and sizes."""
        return "\n".join(
            _line(key, x, x.type() if isinstance(x, Tensor) else "")
            for key, x in self.items()
        )


def _text(key: Any) -> str:
    if not isinstance(key, str):
        raise ArgumentError(
            f"Index given to ParameterDict cannot be used as a key as it is not a "
            f"string (type is '{type(key).__name__}')."
        )
    return key
