"""What a module is: parameters, buffers and modules in it, found by assignment."""

from collections.abc import Callable, Iterator
from typing import Any

from lantern.errors import (
    ArgumentError,
    MissingRuleError,
    OptionError,
    TakenNameError,
)
from lantern.torch.nn.hooks import called_with_hooks
from lantern.torch.nn.moving import Movable
from lantern.torch.nn.parameter import Buffer, Parameter
from lantern.torch.paths import missing
from lantern.torch.tensor import Tensor

__all__ = ["Module"]

TABLES = ("_parameters", "_buffers", "_modules")
HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks")


class Module(Movable):
    """A part of a model: a function of tensors with parameters of its own.

    A subclass calls ``super().__init__()``, assigns its parameters and modules to
    attributes, and defines ``forward``.

    Attributes:
        training: whether it is being trained: see ``train`` and ``eval``.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Linear(3, 2)
        >>> model
        Linear(in_features=3, out_features=2, bias=True)
        >>> [tuple(p.shape) for p in model.parameters()]
        [(2, 3), (2,)]
    """

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _version = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = self.__dict__
        own["training"] = True
        for name in (*TABLES, *HOOKS):
            own[name] = {}
        own["_non_persistent_buffers_set"] = set()

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the module makes of its inputs. To be overridden."""
        raise MissingRuleError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As ``forward``, with the hooks."""
        own = self.__dict__
        if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]:
            return called_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    # --- assignment -----------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Tensor | Module) or (
            "_modules" in own and any(name in own[table] for table in TABLES)
        ):
            self._place(name, value)
        else:
            object.__setattr__(self, name, value)

    def _place(self, name: str, value: Any) -> None:
        """Put a parameter, a module or a buffer into its table."""
        own = self.__dict__
        if "_modules" not in own:
            if isinstance(value, Parameter | Module):
                what = "parameters" if isinstance(value, Parameter) else "module"
                raise _early(what)
            return object.__setattr__(self, name, value)
        if isinstance(value, Parameter):
            self._only(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._only(name, "_modules")
            own["_modules"][name] = value
        elif name in own["_parameters"]:
            if value is not None:
                raise ArgumentError(
                    f"cannot assign '{_kind(value)}' as parameter '{name}' "
                    f"(torch.nn.Parameter or None expected)"
                )
            own["_parameters"][name] = None
        elif name in own["_modules"]:
            if value is not None:
                raise ArgumentError(
                    f"cannot assign '{_kind(value)}' as child module '{name}' "
                    f"(torch.nn.Module or None expected)"
                )
            own["_modules"][name] = None
        elif name in own["_buffers"] or isinstance(value, Buffer):
            if value is not None and not isinstance(value, Tensor):
                raise ArgumentError(
                    f"cannot assign '{_kind(value)}' as buffer '{name}' "
                    f"(torch.Tensor or None expected)"
                )
            if name not in own["_buffers"]:
                self.register_buffer(name, value, value.__dict__["persistent"])
            own["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)
        return None

    def _only(self, name: str, table: str) -> None:
        """Let a name stand in no table but one."""
        own = self.__dict__
        own.pop(name, None)
        for other in TABLES:
            if other != table:
                own[other].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in TABLES:
            if table in own and name in own[table]:
                return own[table][name]
        if "_modules" not in own and not name.startswith("__"):
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}'. Call "
                f"super().__init__() first."
            )
        raise missing(f"'{type(self).__name__}' object", name, dir(self))

    def __delattr__(self, name: str) -> None:
        own = self.__dict__
        for table in TABLES:
            if name in own[table]:
                del own[table][name]
                own["_non_persistent_buffers_set"].discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        own = self.__dict__
        names = {*object.__dir__(self)}
        for table in TABLES:
            names |= set(own.get(table, ()))
        return sorted(name for name in names if not name[:1].isdigit())

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter, or None in its place."""
        self._check_name("parameter", name)
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentError(
                f"cannot assign '{_kind(param)}' object to parameter '{name}' "
                f"(torch.nn.Parameter or None required)"
            )
        self.__dict__["_parameters"][name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is no parameter; the state has it if it is persistent."""
        self._check_name("buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"cannot assign '{_kind(tensor)}' object to buffer '{name}' "
                f"(torch Tensor or None required)"
            )
        self.__dict__["_buffers"][name] = tensor
        lost = self.__dict__["_non_persistent_buffers_set"]
        lost.discard(name) if persistent else lost.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a module under a name."""
        if module is not None and not isinstance(module, Module):
            raise ArgumentError(f"{_kind(module)} is not a Module subclass")
        self._check_name("module", name)
        self.__dict__["_modules"][name] = module

    register_module = add_module

    def _check_name(self, what: str, name: str) -> None:
        own = self.__dict__
        if "_modules" not in own:
            raise _early(what)
        if not isinstance(name, str):
            raise ArgumentError(
                f"{what} name should be a string. Got {type(name).__name__}"
            )
        if "." in name:
            raise TakenNameError(f'{what} name can\'t contain "."')
        if name == "":
            raise TakenNameError(f'{what} name can\'t be empty string ""')
        table = {"parameter": 0, "buffer": 1, "module": 2}[what]
        if hasattr(self, name) and name not in own[TABLES[table]]:
            raise TakenNameError(f"attribute '{name}' already exists")

    # --- what is in it ----------------------------------------------------------------

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

    def modules(self) -> Iterator[Any]:
        """All modules in it, itself first."""
        return (module for _, module in self.named_modules())

    def _named(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        """The members of a table, here or in all modules; each once."""
        seen = set()
        places: Any = [(prefix, self)]
        if recurse:
            places = self.named_modules(None, prefix, remove_duplicate)
        for path, module in places:
            for name, x in module.__dict__[table].items():
                if x is None or id(x) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(x))
                yield f"{path}.{name}" if path else name, x

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All parameters, with their paths; each once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """All parameters, each once."""
        return (x for _, x in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """All buffers, with their paths; each once."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """All buffers, each once."""
        return (x for _, x in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Any:
        """The module at a path."""
        module = self
        for name in target.split(".") if target else ():
            found = module._modules.get(name)
            if found is None:
                raise AttributeError(
                    f"{type(module).__name__} has no attribute `{name}`"
                )
            module = found
        return module

    def get_parameter(self, target: str) -> Any:
        """The parameter at a path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._parameters:
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        return module._parameters[name]

    def get_buffer(self, target: str) -> Any:
        """The buffer at a path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        return module._buffers[name]

    # --- changing all of it -----------------------------------------------------------

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Call a function with every module, children first; the module itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Any:
        """Say whether it is being trained, to all modules in it."""
        if not isinstance(mode, bool):
            raise OptionError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Say that it is not being trained."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Say of all parameters whether a derivative may be asked for."""
        for x in self.parameters():
            x.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or make them 0."""
        for x in self.parameters():
            if set_to_none:
                x.grad = None
            elif x.grad is not None:
                x.grad = x.grad.detach().zero_()


def _kind(x: Any) -> str:
    if isinstance(x, Tensor):
        return x.type()
    return f"{type(x).__module__}.{type(x).__name__}".replace("lantern.", "")


def _early(what: str) -> AttributeError:
    return AttributeError(f"cannot assign {what} before Module.__init__() call")
