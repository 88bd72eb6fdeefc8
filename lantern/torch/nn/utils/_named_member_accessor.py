"""A module's parameters, buffers and modules by their full names."""

from collections.abc import Iterable
from typing import Any

from lantern.torch.nn.module import Module
from lantern.torch.tensor.tensor import Tensor

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_tensor"]


class NamedMemberAccessor:
    """What gets, sets and exchanges tensors of a module by names with dots.

    Args:
        module: the module.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
        >>> names = NamedMemberAccessor(model)
        >>> old = names.swap_tensor("0.weight", torch.tensor([[3.0]]))
        >>> model(torch.ones(1))
        tensor([3.])
        >>> _ = names.swap_tensor("0.weight", old)
    """

    def __init__(self, module: Module) -> None:
        self.module = module

    def get_submodule(self, name: str) -> Any:
        """A module inside."""
        return self.module.get_submodule(name)

    def swap_submodule(self, path: str, value: Any) -> Any:
        """Put a module in the place of one; the former one."""
        parent, _, last = path.rpartition(".")
        owner, former = self.get_submodule(parent), self.get_submodule(path)
        setattr(owner, last, value)
        return former

    def _place(self, name: str) -> tuple[Any, str]:
        """The table of a module in which a tensor stands, and its name there."""
        parent, _, last = name.rpartition(".")
        owner = self.get_submodule(parent)
        if last in owner._parameters:
            return owner._parameters, last
        if last in owner._buffers:
            return owner._buffers, last
        if isinstance(owner.__dict__.get(last), Tensor):
            return owner.__dict__, last
        raise AttributeError(f"{type(owner).__name__} has no attribute `{last}`")

    def get_tensor(self, name: str) -> Any:
        """A parameter or buffer."""
        table, last = self._place(name)
        return table[last]

    def set_tensor(self, name: str, value: Any) -> None:
        """Put a tensor, of any kind, in the place of one."""
        self.swap_tensor(name, value)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Put a tensor in the place of one; the former one."""
        table, last = self._place(name)
        former, table[last] = table[last], value
        return former

    def del_tensor(self, name: str) -> None:
        """Take a tensor away."""
        table, last = self._place(name)
        del table[last]

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """Several parameters or buffers."""
        return [self.get_tensor(name) for name in names]

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """Put tensors in the places of others."""
        self.swap_tensors_dict(named_tensors)

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Put tensors in the places of others; the former ones, and what is missing."""
        former, missing = {}, []
        for name, value in named_tensors.items():
            try:
                former[name] = self.swap_tensor(name, value)
            except AttributeError:
                if not allow_missing:
                    raise
                missing.append(name)
        return former, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Which of the module's names are missing, and which are none of it."""
        known = {name for name, _ in self.named_tensors()}
        given = set(keys)
        return sorted(known - given), sorted(given - known)

    def named_parameters(self, remove_duplicate: bool = True) -> Any:
        """Parameters with their names."""
        return self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Any:
        """Buffers with their names."""
        return self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Any:
        """Both."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Any:
        """Modules with their names."""
        return self.module.named_modules(remove_duplicate=remove_duplicate)


def swap_tensor(
    module: Module, name: str, tensor: Any, allow_missing: bool = False
) -> Any:
    """Put a tensor in the place of a module's own; the former one.

    Args:
        module: the module.
        name: the tensor's name, without dots.
        tensor: what takes its place.
        allow_missing: whether there may be none yet.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Linear(1, 1, bias=False)
        >>> old = swap_tensor(model, "weight", torch.tensor([[3.0]]))
        >>> model(torch.ones(1)), type(old)
        (tensor([3.]), <class 'lantern.torch.nn.parameter.Parameter'>)
    """
    if allow_missing and not hasattr(module, name):
        setattr(module, name, tensor)
        return None
    return NamedMemberAccessor(module).swap_tensor(name, tensor)


def set_tensor(module: Module, name: str, tensor: Any) -> None:
    """Put a tensor in the place of a module's own, without dots in its name."""
    swap_tensor(module, name, tensor, True)
