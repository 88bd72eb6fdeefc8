"""Modules that hold modules: in a row, or by name."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lantern.errors import ArgumentError, OptionError, PositionError
from lantern.torch.nn.module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


def pairs(module: Any, found: Any) -> Iterator[tuple[Any, Any]]:
    """Keys and values of a mapping, or of a row of pairs."""
    name = module._get_name()
    if not isinstance(found, Iterable):
        raise ArgumentError(
            f"{name}.update should be called with an iterable of key/value pairs, but "
            f"got {type(found).__name__}"
        )
    if isinstance(found, Mapping) or hasattr(found, "items"):
        yield from found.items()
        return
    for i, pair in enumerate(found):
        where = f"{name} update sequence element #{i}"
        if not isinstance(pair, Iterable):
            raise ArgumentError(f"{where} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise OptionError(f"{where} has length {len(pair)}; 2 is required")
        yield pair[0], pair[1]


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
        setattr(self, self._key(index), module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [self._key(index)]:
            delattr(self, key)
        left = list(self._modules.values())
        self._modules = {str(i): module for i, module in enumerate(left)}

    def _shift(self, index: int) -> None:
        """Move the modules from an index on one place further."""
        modules = self._modules
        for i in range(len(modules), index, -1):
            modules[str(i)] = modules[str(i - 1)]

    def append(self, module: Any) -> Any:
        """Add a module behind the others; itself."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """Add modules behind the others; itself."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(
                f"{self._get_name()}.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: Any) -> Any:
        """Take out the module at an index."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Row):
    """Modules called one after the other.

    Args:
        args: the modules; or one ``OrderedDict`` of them.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> model(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        items: Any = enumerate(args)
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            items = args[0].items()
        for name, module in items:
            self.add_module(str(name), module)

    def _part(self, items: Any) -> Any:
        return type(self)(OrderedDict(items))

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before the one at an index; itself."""
        n = len(self)
        if not isinstance(module, Module):
            raise ArgumentError(f"module should be of type: {Module}")
        if not -n <= index <= n:
            raise PositionError(f"Index out of range: {index}")
        index += n if index < 0 else 0
        self._shift(index)
        self._modules[str(index)] = module
        return self

    def __add__(self, other: Any) -> Any:
        return Sequential(*self).__iadd__(other)

    def __iadd__(self, other: Any) -> Any:
        if not isinstance(other, Sequential):
            raise OptionError(
                f"add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return self.extend(other)

    def __mul__(self, other: int) -> Any:
        return Sequential(*self).__imul__(other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Any:
        if not isinstance(other, int):
            raise ArgumentError(
                f"unsupported operand type(s) for *: {type(self)} and {type(other)}"
            )
        if other <= 0:
            raise OptionError(
                f"Non-positive multiplication factor {other} for {type(self)}"
            )
        return self.extend(list(self) * (other - 1))

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
            self += modules

    def insert(self, index: int, module: Any) -> None:
        """Put a module before the one at an index."""
        n = len(self)
        index = max(index + n, 0) if index < 0 else min(index, n)
        self._shift(index)
        self._modules[str(index)] = module

    def __add__(self, other: Iterable[Any]) -> Any:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Any]) -> Any:
        return self.extend(modules)

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
        module = self[key]
        del self[key]
        return module

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
        for key, module in pairs(self, modules):
            self[key] = module
