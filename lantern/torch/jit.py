"""TorchScript's decorators: Python functions stay Python functions."""

import builtins
import types
import typing
from contextlib import nullcontext
from typing import Any, Final

from lantern.errors import MissingRuleError
from lantern.torch.nn.module import Module
from lantern.torch.run.aliases import lead

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "load",
    "save",
    "script",
    "script_method",
    "trace",
    "unused",
]


class ScriptFunction:
    """A type that programs ask for: no function is of it.

    Example:
        >>> import lantern.torch as torch
        >>> isinstance(torch.jit.script(abs), torch.jit.ScriptFunction)
        False
    """


class ScriptModule(Module):
    """As ``nn.Module``.

    Example:
        >>> import lantern.torch as torch
        >>> issubclass(torch.jit.ScriptModule, torch.nn.Module)
        True
    """


def script(obj: Any, *args: Any, **options: Any) -> Any:
    """A function, a class or a module as it is: it runs as the Python that it is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.jit.script(lambda x: -x)(1)
        -1
    """
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """A function or a module as it is: branches stay, where PyTorch fixes them.

    Example:
        >>> import lantern.torch as torch
        >>> double = torch.jit.trace(lambda x: 2 * x, torch.ones(2))
        >>> double(torch.tensor([3.0]))
        tensor([6.])
    """
    return func


trace_module = trace


def script_method(fn: Any) -> Any:
    """A method as it is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.jit.export(lambda x: -x)(1)
        -1
    """
    return fn


export = script_if_tracing = interface = freeze = optimize_for_inference = script_method


def ignore(drop: Any = False, **options: Any) -> Any:
    """A function as it is; or a decorator that leaves it so.

    Example:
        >>> import lantern.torch as torch
        >>> torch.jit.ignore(lambda x: -x)(1)
        -1
    """
    return drop if callable(drop) else (lambda fn: fn)


unused = ignore
_overload = _overload_method = _script_if_tracing = ignore


def is_scripting() -> bool:
    """Whether TorchScript is running: no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.jit.is_scripting()
        False
    """
    return False


def is_tracing() -> bool:
    """Whether operations are being written down: no.

    Example:
        >>> import lantern.torch as torch
        >>> torch.jit.is_tracing()
        False
    """
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def optimized_execution(should_optimize: bool) -> Any:
    """A block without effect."""
    return nullcontext()


_REASON = "TorchScript programs are compiled, and there is no compiler here."


def save(m: Any, f: Any, *args: Any, **options: Any) -> None:
    """Raise: there are no TorchScript files here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.jit.save(torch.nn.Linear(2, 1), "model.pt")
        Traceback (most recent call last):
            ...
        lantern.errors.MissingRuleError: torch.jit.save: TorchScript...
    """
    raise MissingRuleError(
        f"torch.jit.save: {_REASON} Save the state: "
        "torch.save(model.state_dict(), file)."
    )


def load(f: Any, *args: Any, **options: Any) -> Any:
    """Raise: there are no TorchScript files here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.jit.load("model.pt")
        Traceback (most recent call last):
            ...
        lantern.errors.MissingRuleError: torch.jit.load: TorchScript...
    """
    raise MissingRuleError(
        f"torch.jit.load: {_REASON} Make the model from its class, and take its "
        "state: model.load_state_dict(torch.load(file))."
    )


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value is of a type, its elements included.

    Example:
        >>> import lantern.torch as torch
        >>> torch.jit.isinstance([1, 2], list[int])
        True
        >>> torch.jit.isinstance({"a": [1.0]}, dict[str, list[int]])
        False
    """
    if type(target_type) is tuple:
        return any(isinstance(obj, kind) for kind in target_type)
    outer, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if outer in (typing.Union, types.UnionType):
        return any(isinstance(obj, kind) for kind in inner)
    if not inner:
        return builtins.isinstance(obj, outer or target_type or type(None))
    if not builtins.isinstance(obj, outer):
        return False
    if outer is dict:
        keys, values = inner
        found = ((keys, [*obj]), (values, [*obj.values()]))
        return all(isinstance(x, kind) for kind, row in found for x in row)
    if outer is tuple and inner[-1] is not ...:
        return len(obj) == len(inner) and all(map(isinstance, obj, inner))
    return all(isinstance(x, inner[0]) for x in obj)


class TracerWarning(Warning):
    """What tracing a program would warn of."""


class Attribute(typing.NamedTuple):
    """A member with its type, which scripting would read.

    Args:
        value: the member.
        type: its type.
    """

    value: Any
    type: Any


class _List:
    """A type for annotations: a number, or a list of them."""

    def __getitem__(self, kind: Any) -> Any:
        return kind


List, Tuple, Dict, Optional = list, tuple, dict, typing.Optional
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _List()
__path__: list[str] = []
lead(__name__, "annotations")
