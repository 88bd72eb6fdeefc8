"""Modules that hold modules or parameters: in a row, or by name."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lantern.core.value import base
from lantern.errors import ArgumentError, PositionError
from lantern.torch.nn.module import Module
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor.tensor import Tensor

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Row(Module):
    """Modules with numbers for names."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _key(self, index: Any) -> str:
        n, i = len(self), index.__index__()
        if not -n <= i < n:
            raise PositionError(f"index {i} is out of range")
        return list(self._modules)[i]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(list(self._modules.items())[index])
        return self._modules[self._key(index)]

    def _part(self, items: Any) -> Any:
        return type(self)([module for _, module in items])

    def __setitem__(self, index: Any, module: Any) -> None:
        self.add_module(self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        gone = keys[index] if isinstance(index, slice) else [self._key(index)]
        self._renumber([m for k, m in self._modules.items() if k not in gone])

    def _renumber(self, modules: Iterable[Any]) -> None:
        modules = list(modules)
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def append(self, module: Any) -> Any:
        """Add a module behind the others; itself."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """Add modules behind the others; itself."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """Add a module before the one at an index; itself."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any) -> Any:
        """Take out the module at an index."""
        module = self[key]
        del self[key]
        return module

    def __add__(self, other: Iterable[Any]) -> Any:
        return (
            type(self)(*self, *other)
            if isinstance(self, Sequential)
            else type(self)([*self, *other])
        )

    def __iadd__(self, other: Iterable[Any]) -> Any:
        return self.extend(other)


class Sequential(_Row):
    """Modules called one after the other.

    Args:
        args: the modules; or one dictionary of them.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> model(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        items: Any = enumerate(args)
        if len(args) == 1 and isinstance(args[0], Mapping):
            items = args[0].items()
        for name, module in items:
            self.add_module(str(name), module)

    def _part(self, items: Any) -> Any:
        return type(self)(dict(items))

    def forward(self, input: Any) -> Any:
        """What the last module makes of what the ones before it made."""
        for module in self.__dict__["_modules"].values():
            input = module(input)
        return input


class ModuleList(_Row):
    """Modules in a list.

    Example:
        >>> import lantern.torch as torch
        >>> layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
        >>> layers
        ModuleList(
          (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
        )
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __repr__(self) -> str:
        from lantern.torch.nn.state import framed

        lines: list[str] = []
        start, texts = 0, [repr(module) for module in self]
        for i, text in enumerate(texts):
            if i + 1 < len(texts) and texts[i + 1] == text:
                continue
            text = text.replace("\n", "\n  ")
            many = f"({start}-{i}): {i - start + 1} x {text}"
            lines.append(many if i > start else f"({i}): {text}")
            start = i + 1
        return framed(self._get_name(), [], lines)


class ModuleDict(Module):
    """Modules by name.

    Example:
        >>> import lantern.torch as torch
        >>> parts = torch.nn.ModuleDict({"body": torch.nn.Linear(2, 2)})
        >>> parts["bend"] = torch.nn.ReLU()
        >>> parts
        ModuleDict(
          (body): Linear(in_features=2, out_features=2, bias=True)
          (bend): ReLU()
        )
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take out all."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take out the module of a name."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules by their names."""
        items = modules.items() if hasattr(modules, "items") else modules
        for key, module in items:
            self[key] = module


def _line(name: Any, x: Any) -> str:
    """A parameter in a few words."""
    if not isinstance(x, Tensor):
        return f"({name}): Object of type: {type(x).__name__}"
    kind = "Parameter" if isinstance(x, Parameter) else "Tensor"
    shape = "x".join(map(str, base(x).shape))
    dtype = str(x.dtype)
    return f"({name}): {kind} containing: [{dtype} of size {shape}]"


class _Parameters(Module):
    """What rows and dictionaries of parameters share: tensors become parameters.

    Other values stay what they are: modules in it are found, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["names"] = {}

    def _put(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            setattr(self, name, value)
        self.names[name] = None

    def extra_repr(self) -> str:
        """The sizes."""
        return "\n".join(_line(name, getattr(self, name)) for name in self.names)

    def __repr__(self) -> str:
        lines = self.extra_repr().split("\n")
        return f"{self._get_name()}(" + "\n".join(f"  {x}" for x in lines if x) + ")"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Is not possible."""
        raise ArgumentError(f"{self._get_name()} should not be called.")

    def __len__(self) -> int:
        return len(self.names)


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
        if values is not None:
            self.extend(values)

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self.names)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        n = len(self)
        if not -n <= index < n:
            raise PositionError(f"index {index} is out of range")
        return getattr(self, str(index % n))

    def __setitem__(self, index: int, param: Any) -> None:
        self._put(str(index % len(self)), param)

    def append(self, value: Any) -> Any:
        """Add a parameter behind the others; itself."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add parameters behind the others; itself."""
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Any:
        return self.extend(values)


class ParameterDict(_Parameters):
    """Parameters by name.

    Example:
        >>> import lantern.torch as torch
        >>> scales = torch.nn.ParameterDict({"width": torch.ones(2)})
        >>> scales["width"].requires_grad
        True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key) if key in self.names else self.names[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._put(key, value)

    def __delitem__(self, key: str) -> None:
        del self.names[key]
        delattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, key: str) -> bool:
        return key in self.names

    def keys(self) -> Any:
        """The names."""
        return self.names.keys()

    def items(self) -> Any:
        """Names and parameters."""
        return [(name, getattr(self, name)) for name in self.names]

    def values(self) -> Any:
        """The parameters."""
        return [getattr(self, name) for name in self.names]

    def update(self, parameters: Any) -> None:
        """Add parameters by their names."""
        items = parameters.items() if hasattr(parameters, "items") else parameters
        for key, value in items:
            self[key] = value
