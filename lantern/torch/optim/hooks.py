"""Functions that are called around steps of optimisers, and around their states."""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any

from lantern.errors import EagerError
from lantern.torch.tensor.nodes import RemovableHandle

__all__ = ["register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

_before_all: OrderedDict[int, Any] = OrderedDict()
_after_all: OrderedDict[int, Any] = OrderedDict()
TABLES = tuple(
    f"_optimizer_{moment}_hooks"
    for moment in "step_pre step_post state_dict_pre state_dict_post "
    "load_state_dict_pre load_state_dict_post".split()
)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function before each step of every optimiser."""
    return added(_before_all, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function after each step of every optimiser."""
    return added(_after_all, hook)


def added(
    table: OrderedDict[int, Any], hook: Any, prepend: bool = False
) -> RemovableHandle:
    """Note a hook in a table."""
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def hooked(step: Any) -> Any:
    """A step with what is to be called before and after it."""

    @wraps(step)
    def whole(self: Any, *args: Any, **options: Any) -> Any:
        if _before_all or self._optimizer_step_pre_hooks:
            (self, *args), options = _called_before(step, self, args, options)
        out = step(self, *args, **options) if args or options else step(self)
        self._opt_called = True
        if _after_all or self._optimizer_step_post_hooks:
            own = self._optimizer_step_post_hooks.values()
            for hook in (*own, *_after_all.values()):
                hook(self, (self, *args), options)
        return out

    whole.hooked = True  # type: ignore[attr-defined]
    return whole


def _called_before(step: Any, optimizer: Any, args: Any, options: Any) -> Any:
    """The arguments of a step, after what is to be called before it."""
    given = (optimizer, *args), options
    own = optimizer._optimizer_step_pre_hooks.values()
    for hook in (*_before_all.values(), *own):
        changed = hook(given[0][0], *given)
        if changed is None:
            continue
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise EagerError(
                f"{step} must return None or a tuple of (new_args, new_kwargs), "
                f"but got {changed}."
            )
        given = changed
    return given


class Hooked:
    """What an optimiser has of hooks."""

    _optimizer_step_pre_hooks: OrderedDict[int, Any]
    _optimizer_step_post_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]
    _opt_called: bool  # whether a step was taken
    _step_of_its_own: Any = None  # a step that a program gave it before its schedule

    def _without_hooks(self) -> None:
        """Begin with empty tables, and with a step that looks at them."""
        for name in TABLES:
            vars(self).setdefault(name, OrderedDict())
        cls: Any = type(self)
        if not hasattr(cls.step, "hooked"):
            cls.step = hooked(cls.step)

    def _hook(self, name: str, hook: Any, prepend: bool = False) -> RemovableHandle:
        return added(getattr(self, f"_optimizer_{name}_hooks"), hook, prepend)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step."""
        return self._hook("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._hook("step_post", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before its state is read."""
        return self._hook("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)``; what it returns is the state."""
        return self._hook("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)``; what it returns is loaded instead."""
        return self._hook("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return self._hook("load_state_dict_post", hook, prepend)
