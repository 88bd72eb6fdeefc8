"""The parts of a module: its children, parameters and buffers, with their paths."""

from collections.abc import Callable, Iterator
from typing import Any

from lantern.errors import OptionError
from lantern.torch.nn.parameter import Parameter
from lantern.torch.nn.state import StateOf

__all__ = ["Containing"]


class Containing(StateOf):
    """What a module has to find its parts with."""

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly in it, with their names; each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The modules directly in it."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All modules in it, itself first, with their paths."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """All modules in it, itself first."""
        found = self.named_modules(remove_duplicate=remove_duplicate)
        return (module for _, module in found)

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """What a function gives for the module, or for all in it; each once."""
        seen = set()
        places: Any = [(prefix, self)]
        if recurse:
            places = self.named_modules(
                prefix=prefix, remove_duplicate=remove_duplicate
            )
        for path, module in places:
            for name, x in get_members_fn(module):
                if x is None or id(x) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(x))
                yield f"{path}.{name}" if path else name, x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All parameters, with their paths; each once."""
        return self._named_members(_own_parameters, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """All parameters, each once."""
        return (x for _, x in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All buffers, with their paths; each once."""
        return self._named_members(_own_buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """All buffers, each once."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Any:
        """The module at a path."""
        module = self
        for name in target.split(".") if target else ():
            module = _part(module, name, Containing, "an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Let a module take the place at a path.

        Args:
            target: the path.
            module: what takes the place.
            strict: whether there must be a module already.
        """
        if target == "":
            raise OptionError("Cannot set the submodule without a target name!")
        if not isinstance(module, Containing):
            raise OptionError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path) if path else self
        if strict or hasattr(parent, name):
            _part(parent, name, Containing, "an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Any:
        """The parameter at a path."""
        path, _, name = target.rpartition(".")
        return _part(self.get_submodule(path), name, Parameter, "an nn.Parameter")

    def get_buffer(self, target: str) -> Any:
        """The buffer at a path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = _part(module, name, object, "a buffer")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found


def _own_parameters(module: Any) -> Any:
    return module._parameters.items()


def _own_buffers(module: Any) -> Any:
    return module._buffers.items()


def _part(module: Any, name: str, kind: type, what: str) -> Any:
    """An attribute of a module, which must be of a class."""
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    found = getattr(module, name)
    if not isinstance(found, kind):
        raise AttributeError(f"`{name}` is not {what}")
    return found
