"""Functions that are called around a module's forward and backward steps."""

import warnings
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import Any

from lantern.core.value import UNTRACKED
from lantern.eager.grad_mode import is_enabled
from lantern.errors import EagerError
from lantern.torch.autograd import Function
from lantern.torch.tensor.nodes import RemovableHandle
from lantern.torch.tensor.tensor import Tensor

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
        if is_enabled():
            way_back = _WayBack(module)
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


class _Through(Function):
    """Views of tensors; their cotangents, as a function leaves them."""

    @staticmethod
    def forward(ctx: Any, on_way_back: Any, *tensors: Any) -> Any:
        ctx.on_way_back = on_way_back
        return tuple(x.view_as(x) for x in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.on_way_back(gradients))


class _WayBack:
    """The hooks of one call of a module, and the cotangents that they see."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.hooks = [hook for _, hook, _ in _hooks(module, "_backward_hooks")]
        early = _hooks(module, "_backward_pre_hooks")
        self.early_hooks = [hook for _, hook, _ in early]
        self.outputs: Any = None
        self.inputs = 0
        self.tracked: list[int] = []

    def entered(self, args: Any) -> Any:
        """The arguments, watched."""
        self.inputs = len(args)
        if not (self.hooks or self.early_hooks):
            return args
        args, self.tracked = _watched(args, self._at_inputs)
        return args

    def left(self, output: Any) -> Any:
        """The output, watched: a tensor, or those directly in a tuple."""
        if not (self.hooks or self.early_hooks):
            return output
        if not isinstance(output, Tensor | tuple):
            warnings.warn(
                f"For backward hooks to be called, module output should be a Tensor or "
                f"a tuple of Tensors but received {type(output)}",
                stacklevel=4,
            )
        row = output if isinstance(output, tuple) else (output,)
        self.count = len(row)
        row, self.places = _watched(row, self._at_outputs)
        return row if isinstance(output, tuple) else row[0]

    def _at_outputs(self, gradients: Any) -> Any:
        whole = _spread(gradients, self.places, self.count)
        for hook in self.early_hooks:
            replaced = hook(self.module, whole)
            if replaced is not None:
                whole = _of_length(replaced, whole, "Backward pre hook", "grad_output")
        self.outputs = whole
        if not self.tracked:
            self._without_inputs()
        return tuple(whole[i] for i in self.places)

    def _without_inputs(self) -> None:
        """Call the hooks of a module of whose inputs none has a derivative."""
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to "
            "module outputs since no inputs require gradients.",
            stacklevel=2,
        )
        nothing = (None,) * self.inputs
        for hook in self.hooks:
            found = hook(self.module, nothing, self.outputs)
            if found is not None and set(_row(found)) != {None}:
                raise EagerError(
                    "Backward hook for Modules where no input requires gradient should "
                    "always return None or None for all gradients."
                )
        self.outputs = None

    def _at_inputs(self, gradients: Any) -> Any:
        if self.outputs is None:  # the way back did not lead through the output
            return gradients
        whole = _spread(gradients, self.tracked, self.inputs)
        for hook in self.hooks:
            replaced = hook(self.module, whole, self.outputs)
            if replaced is not None:
                whole = _of_length(replaced, whole, "Backward hook", "grad_input")
        self.outputs = None
        return tuple(whole[i] for i in self.tracked)


def _watched(row: Any, on_way_back: Any) -> Any:
    """A row whose tracked tensors call a function on the way back, and their places."""
    places = [i for i, x in enumerate(row) if _is_tracked(x)]
    if not places:
        return row, places
    through = _row(_Through.apply(on_way_back, *(row[i] for i in places)))
    new = list(row)
    for i, x in zip(places, through, strict=True):
        new[i] = x
    return (tuple(new) if type(row) is tuple else type(row)(*new)), places


def _spread(gradients: Any, places: list[int], count: int) -> tuple[Any, ...]:
    """Cotangents at their places in a row, None elsewhere."""
    whole: list[Any] = [None] * count
    for i, g in zip(places, gradients, strict=True):
        whole[i] = g
    return tuple(whole)


def _of_length(found: Any, whole: Any, hook: str, what: str) -> Any:
    """What a hook has returned, as a row of the right length."""
    found = _row(found)
    if len(found) != len(whole):
        raise EagerError(
            f"{hook} returned an invalid number of {what}, got {len(found)}, but "
            f"expected {len(whole)}"
        )
    return found


def _is_tracked(x: Any) -> bool:
    return isinstance(x, Tensor) and x.level is not UNTRACKED


def _row(x: Any) -> Any:
    return x if isinstance(x, tuple | list) else (x,)
