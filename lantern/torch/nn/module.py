"""Modules: parameters, buffers and modules in them, found by assignment."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from lantern.errors import (
    ArgumentError,
    MissingRuleError,
    OptionError,
    TakenNameError,
)
from lantern.torch.nn.hooks import HOOKS, OF_ALL, called_with_hooks, registered
from lantern.torch.nn.moving import Movable
from lantern.torch.nn.parameter import Buffer, Parameter
from lantern.torch.run.aliases import missing
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Module"]

TABLES = ("_parameters", "_buffers", "_modules")


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
    dump_patches = False
    call_super_init = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            raise _unwanted(type(self).__name__, args, kwargs)
        own = self.__dict__
        own["training"] = True
        for name in TABLES:
            own[name] = {}
        own["_non_persistent_buffers_set"] = set()
        for name in HOOKS:
            own[name] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _replicate_for_data_parallel(self) -> Any:
        """A copy with tables of its own, in which parameters are to be put."""
        replica = object.__new__(type(self))
        own = replica.__dict__
        own.update(self.__dict__)
        own["_parameters"] = {}
        own["_buffers"], own["_modules"] = self._buffers.copy(), self._modules.copy()
        own["_is_replica"] = True
        return replica

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the module makes of its inputs. To be overridden."""
        raise MissingRuleError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As ``forward``, with the hooks."""
        own = self.__dict__
        if (
            own["_forward_hooks"]
            or own["_forward_pre_hooks"]
            or own["_backward_hooks"]
            or own["_backward_pre_hooks"]
            or OF_ALL
        ):
            return called_with_hooks(self, args, kwargs)
        if kwargs or len(args) != 1:
            return self.forward(*args, **kwargs)
        return self.forward(args[0])  # by unpacking it takes twice as long

    _call_impl = _wrapped_call_impl = __call__

    def __init_subclass__(cls, **options: Any) -> None:
        """Let a subclass define how it is called under PyTorch's inner names, too."""
        super().__init_subclass__(**options)
        for name in ("_call_impl", "_wrapped_call_impl"):
            if name in cls.__dict__ and "__call__" not in cls.__dict__:
                cls.__call__ = cls.__dict__[name]  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled."""
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Be what was copied or pickled."""
        own = self.__dict__
        own.update(state)
        for name in HOOKS:
            own.setdefault(name, OrderedDict())
        own.setdefault("_non_persistent_buffers_set", set())

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
            registered(self, "_modules", name, value)
        elif name in own["_parameters"]:
            if value is not None:
                raise ArgumentError(
                    f"cannot assign '{_kind(value)}' as parameter '{name}' "
                    f"(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
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
            persistent = name not in own["_non_persistent_buffers_set"]
            if isinstance(value, Buffer):
                persistent = value.persistent
            if persistent:  # which overrides of old do not know
                self.register_buffer(name, value)
            else:
                self.register_buffer(name, value, persistent)
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

    def call_with(self, parameters: dict[str, Any], *args: Any, **named: Any) -> Any:
        """What it returns with other parameters, by their names, than its own.

        ``lantern.viz`` draws by it what a module does.

        Example:
            >>> import lantern.torch as torch
            >>> layer = torch.nn.Linear(1, 1)
            >>> new = {"weight": torch.tensor([[3.0]]), "bias": torch.tensor([1.0])}
            >>> layer.call_with(new, torch.tensor([2.0]))
            tensor([7.])
        """
        from lantern.torch.func.stateless import functional_call

        return functional_call(self, parameters, args, named)

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
        raise missing(f"'{type(self).__name__}' object", name, self.__dir__)

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
        registered(self, "_parameters", name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is no parameter; the state has it if it is persistent."""
        self._check_name("buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise ArgumentError(
                f"cannot assign '{_kind(tensor)}' object to buffer '{name}' "
                f"(torch Tensor or None required)"
            )
        registered(self, "_buffers", name, tensor)
        lost = self.__dict__["_non_persistent_buffers_set"]
        lost.discard(name) if persistent else lost.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a module under a name."""
        own = self.__dict__
        if "_modules" not in own:
            raise _early("module")
        if module is not None and not isinstance(module, Module):
            raise ArgumentError(f"{_kind(module)} is not a Module subclass")
        self._check_name("module", name)
        registered(self, "_modules", name, module)

    def register_module(self, name: str, module: Any) -> None:
        """As ``add_module``."""
        self.add_module(name, module)

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
        if name not in own[TABLES[table]] and self._has(name):
            raise TakenNameError(f"attribute '{name}' already exists")

    def _has(self, name: str) -> bool:
        """As ``hasattr``, but no one looks for the nearest name of what is absent."""
        own, kinds = self.__dict__, type(self).__mro__
        if name in own or any(name in own[table] for table in TABLES):
            return True
        elsewhere = type(self).__getattr__ is not Module.__getattr__
        if elsewhere or any(name in vars(cls) for cls in kinds):
            return hasattr(self, name)  # which a property without a value denies
        return False

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
                x.grad.detach_().zero_()


def _unwanted(name: str, args: Any, kwargs: Any) -> ArgumentError:
    if kwargs:
        word = next(iter(kwargs))
        return ArgumentError(
            f"{name}.__init__() got an unexpected keyword argument '{word}'"
        )
    return ArgumentError(
        f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
    )


def _kind(x: Any) -> str:
    if isinstance(x, Tensor):
        return x.type()
    return f"{type(x).__module__}.{type(x).__name__}".replace("lantern.", "")


def _early(what: str) -> AttributeError:
    return AttributeError(f"cannot assign {what} before Module.__init__() call")
