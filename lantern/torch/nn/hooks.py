"""Functions that are called around a module's forward and backward steps."""

from collections.abc import Callable
from itertools import count
from typing import Any

from lantern.torch.autograd import Function
from lantern.torch.gradients import Handle
from lantern.torch.modes import is_enabled
from lantern.torch.tensor import Tensor
from lantern.value import UNTRACKED

_numbers = count()


class Hooked:
    """What a module has of hooks."""

    _forward_hooks: dict[int, Any]
    _forward_pre_hooks: dict[int, Any]
    _backward_hooks: dict[int, Any]

    def register_forward_pre_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> Handle:
        """Call ``hook(module, args)`` first; what it returns replaces the arguments."""
        entry = _WithNames(hook) if with_kwargs else hook
        return added(self._forward_pre_hooks, entry, prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> Handle:
        """Call ``hook(module, args, output)`` last; what it returns is the output."""
        entry = _WithNames(hook) if with_kwargs else hook
        return added(self._forward_hooks, entry, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Handle:
        """Call ``hook(module, grad_input, grad_output)`` on the way back."""
        return added(self._backward_hooks, (hook, False, False), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Handle:
        """Call ``hook(module, grad_output)`` before the module's way back."""
        return added(self._backward_hooks, (hook, False, True), prepend)

    register_backward_hook = register_full_backward_hook


class _WithNames:
    """A hook that takes keyword arguments, too."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook


def added(hooks: dict[int, Any], entry: Any, prepend: bool = False) -> Handle:
    """A hook in a table, and the handle that takes it out again."""
    key = next(_numbers)
    if prepend:
        rest = dict(hooks)
        hooks.clear()
        hooks[key] = entry
        hooks.update(rest)
    else:
        hooks[key] = entry
    return Handle(hooks, key)


def called_with_hooks(module: Any, args: Any, kwargs: Any) -> Any:
    """Call a module's forward with everything that was registered."""
    for hook in list(module._forward_pre_hooks.values()):
        if type(hook) is _WithNames:
            replaced = hook.hook(module, args, kwargs)
            if replaced is not None:
                args, kwargs = replaced
        else:
            replaced = hook(module, args)
            if replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
    way_back = None
    if module._backward_hooks and is_enabled():
        way_back = _WayBack(module, list(module._backward_hooks.values()))
        args = way_back.entered(args)
    output = module.forward(*args, **kwargs)
    for hook in list(module._forward_hooks.values()):
        replaced = (
            hook.hook(module, args, kwargs, output)
            if type(hook) is _WithNames
            else hook(module, args, output)
        )
        if replaced is not None:
            output = replaced
    return output if way_back is None else way_back.left(output)


class _Through(Function):
    """Tensors as they are; their cotangents, as a function leaves them."""

    @staticmethod
    def forward(ctx: Any, on_way_back: Any, *tensors: Any) -> Any:
        ctx.on_way_back = on_way_back
        return tuple(x.clone() for x in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.on_way_back(gradients))


class _WayBack:
    """The hooks of one call of a module, and the cotangents that they see."""

    def __init__(self, module: Any, hooks: list[Any]) -> None:
        self.module, self.hooks = module, hooks
        self.outputs: Any = None
        self.inputs = 0
        self.tracked: list[int] = []

    def entered(self, args: Any) -> Any:
        """The arguments, watched."""
        self.inputs = len(args)
        self.tracked = [i for i, x in enumerate(args) if _is_tracked(x)]
        if not self.tracked:
            return args
        watched = _Through.apply(self._at_inputs, *(args[i] for i in self.tracked))
        args = list(args)
        for i, x in zip(self.tracked, _row(watched), strict=True):
            args[i] = x
        return tuple(args)

    def left(self, output: Any) -> Any:
        """The output, watched."""
        outputs = _row(output)
        places = [i for i, x in enumerate(outputs) if _is_tracked(x)]
        if not places:
            return output
        self.count, self.places = len(outputs), places
        watched = _Through.apply(self._at_outputs, *(outputs[i] for i in places))
        outputs = list(outputs)
        for i, x in zip(places, _row(watched), strict=True):
            outputs[i] = x
        return tuple(outputs) if isinstance(output, tuple | list) else outputs[0]

    def _at_outputs(self, gradients: Any) -> Any:
        whole: list[Any] = [None] * self.count
        for i, g in zip(self.places, gradients, strict=True):
            whole[i] = g
        for hook, _, early in self.hooks:
            if early:
                replaced = hook(self.module, tuple(whole))
                if replaced is not None:
                    whole = list(_row(replaced))
        self.outputs = tuple(whole)
        if not self.tracked:
            self._call(tuple([None] * self.inputs))
        return tuple(whole[i] for i in self.places)

    def _at_inputs(self, gradients: Any) -> Any:
        whole: list[Any] = [None] * self.inputs
        for i, g in zip(self.tracked, gradients, strict=True):
            whole[i] = g
        whole = list(self._call(tuple(whole)))
        return tuple(whole[i] for i in self.tracked)

    def _call(self, whole: Any) -> Any:
        for hook, _, early in self.hooks:
            if not early:
                replaced = hook(self.module, whole, self.outputs)
                if replaced is not None:
                    whole = _row(replaced)
        return whole


def _is_tracked(x: Any) -> bool:
    return isinstance(x, Tensor) and x.prompt is not UNTRACKED


def _row(x: Any) -> Any:
    return x if isinstance(x, tuple | list) else (x,)
