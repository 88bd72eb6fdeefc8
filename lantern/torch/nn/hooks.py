"""Functions that are called around a module's forward and backward steps."""

import warnings
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import Any

from lantern.eager.grad_mode import is_enabled
from lantern.errors import EagerError
from lantern.torch.tensor.nodes import RemovableHandle

_numbers = count()
# A module's tables of hooks, by the numbers of their handles; and of two of them, which
# hooks take keyword arguments, and which are called in any case.
HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Hooked:
    """What a module has of hooks."""

    _backward_pre_hooks: dict[int, Any]
    _backward_hooks: dict[int, Any]
    _forward_hooks: dict[int, Any]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Any]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _state_dict_hooks: dict[int, Any]
    _state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_post_hooks: dict[int, Any]

    def register_forward_pre_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` first; what it returns replaces the arguments."""
        marks = {"_forward_pre_hooks_with_kwargs": with_kwargs}
        return self._hook("_forward_pre_hooks", hook, prepend, marks)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` last; what it returns is the output."""
        marks = {
            "_forward_hooks_with_kwargs": with_kwargs,
            "_forward_hooks_always_called": always_call,
        }
        return self._hook("_forward_hooks", hook, prepend, marks)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` on the way back."""
        return self._hook("_backward_hooks", hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's way back."""
        return self._hook("_backward_pre_hooks", hook, prepend)

    register_backward_hook = register_full_backward_hook

    def _hook(
        self, table: str, hook: Any, prepend: bool, marks: dict[str, bool] | None = None
    ) -> RemovableHandle:
        own = self.__dict__
        tables = [own[name] for name, marked in (marks or {}).items() if marked]
        return added(own[table], hook, prepend, *tables)


class WithModule:
    """A hook that takes the module first, where others do not."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, *args: Any) -> Any:
        """As the hook."""
        return self.hook(*args)


def added(
    hooks: Any, hook: Any, prepend: bool = False, *marked: dict[int, bool]
) -> RemovableHandle:
    """A hook in a table, and the handle that takes it out again.

    Args:
        hooks: the table.
        hook: the function.
        prepend: whether it is called before the others.
        marked: further tables, in which it is noted.
    """
    key = next(_numbers)
    hooks[key] = hook
    if prepend:
        hooks.move_to_end(key, last=False)
    for table in marked:
        table[key] = True
    return RemovableHandle(hooks, key, *marked)


# The numbers of hooks that are called with every module.
OF_ALL: dict[int, bool] = {}


class _Every(Hooked):
    """Where hooks stand that are called with every module."""

    def __init__(self) -> None:
        for name in HOOKS:
            self.__dict__[name] = OrderedDict()

    def _hook(
        self, table: str, hook: Any, prepend: bool, marks: Any = None
    ) -> RemovableHandle:
        handle = super()._hook(table, hook, prepend, marks)
        OF_ALL[handle.id] = True
        handle.marked += (OF_ALL,)
        return handle


EVERY = _Every()
register_module_forward_pre_hook = EVERY.register_forward_pre_hook
register_module_forward_hook = EVERY.register_forward_hook
register_module_full_backward_hook = EVERY.register_full_backward_hook
register_module_full_backward_pre_hook = EVERY.register_full_backward_pre_hook
register_module_backward_hook = EVERY.register_full_backward_hook


# What is called with everything that is put into a table of any module.
_AT_REGISTRATION: dict[str, Any] = {
    "_parameters": OrderedDict(),
    "_buffers": OrderedDict(),
    "_modules": OrderedDict(),
}


def register_module_parameter_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` first; what it returns is registered."""
    return added(_AT_REGISTRATION["_parameters"], hook)


def register_module_buffer_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` first; what it returns is registered."""
    return added(_AT_REGISTRATION["_buffers"], hook)


def register_module_module_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` first; what it returns is registered."""
    return added(_AT_REGISTRATION["_modules"], hook)


def registered(module: Any, table: str, name: str, value: Any) -> None:
    """Put a value into a table of a module, after the hooks that are told of it."""
    if value is not None:
        for hook in _AT_REGISTRATION[table].values():
            found = hook(module, name, value)
            value = value if found is None else found
    module.__dict__[table][name] = value


def _hooks(module: Any, table: str, marks: str = "") -> Any:
    """The hooks of all modules and then a module's own: number, hook, and mark."""
    return [
        (key, hook, bool(marks) and key in tables[marks])
        for tables in (EVERY.__dict__, module.__dict__)
        for key, hook in tables[table].items()
    ]


def called_with_hooks(module: Any, args: Any, kwargs: Any) -> Any:
    """Call a module's forward with everything that was registered."""
    called: set[int] = set()
    output: list[Any] = [None]
    way_back = None
    try:
        args, kwargs = _before(module, args, kwargs)
        hooks = _hooks(module, "_backward_hooks")
        early = _hooks(module, "_backward_pre_hooks")
        if (hooks or early) and is_enabled():
            from lantern.torch.nn.way_back import WayBack  # which few programs need

            way_back = WayBack(module, hooks, early)
            args = way_back.entered(args)
        output[0] = module.forward(*args, **kwargs)
        _after(module, args, kwargs, output, called)
    except Exception:
        _in_any_case(module, args, kwargs, output, called)
        raise
    return output[0] if way_back is None else way_back.left(output[0])


def _before(module: Any, args: Any, kwargs: Any) -> Any:
    """The arguments, as the hooks before the call leave them."""
    table = "_forward_pre_hooks"
    for _, hook, named in _hooks(module, table, f"{table}_with_kwargs"):
        found = hook(module, args, kwargs) if named else hook(module, args)
        if found is None:
            continue
        if not named:
            args = found if isinstance(found, tuple) else (found,)
        elif isinstance(found, tuple) and len(found) == 2:
            args, kwargs = found
        else:
            raise EagerError(
                f"forward pre-hook must return None or a tuple of (new_args, "
                f"new_kwargs), but got {found}."
            )
    return args, kwargs


def _after(module: Any, args: Any, kwargs: Any, output: Any, called: set[int]) -> None:
    """Let the hooks after the call see, and replace, the output."""
    table = "_forward_hooks"
    for key, hook, named in _hooks(module, table, f"{table}_with_kwargs"):
        called.add(key)
        more = (kwargs,) if named else ()
        found = hook(module, args, *more, output[0])
        if found is not None:
            output[0] = found


def _in_any_case(
    module: Any, args: Any, kwargs: Any, output: Any, called: set[int]
) -> None:
    """Call the hooks that an error must not keep from being called."""
    table = "_forward_hooks"
    always = _hooks(module, table, f"{table}_always_called")
    named = {k for k, _, x in _hooks(module, table, f"{table}_with_kwargs") if x}
    for key, hook, wanted in always:
        if not wanted or key in called:
            continue
        more = (kwargs,) if key in named else ()
        try:
            found = hook(module, args, *more, output[0])
        except Exception as error:
            warnings.warn(
                f"module forward hook with ``always_call=True`` raised an exception "
                f"that was silenced as another error was raised in forward: {error}",
                stacklevel=4,
            )
        else:
            output[0] = output[0] if found is None else found
