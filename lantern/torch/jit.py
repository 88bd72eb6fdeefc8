"""TorchScript's decorators: Python functions stay Python functions."""

from contextlib import nullcontext
from typing import Any, Final

from lantern.errors import MissingRuleError
from lantern.torch.nn.module import Module

__all__ = [
    "Final",
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


class ScriptModule(Module):
    """As ``nn.Module``."""


def script(obj: Any, *args: Any, **options: Any) -> Any:
    """A function, a class or a module as it is: it runs as the Python that it is.

    Example:
        >>> script(abs)(-1)
        1
    """
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """A function or a module as it is: branches stay, where PyTorch fixes them."""
    return func


trace_module = trace


def script_method(fn: Any) -> Any:
    """A method as it is."""
    return fn


export = script_if_tracing = interface = freeze = optimize_for_inference = script_method


def ignore(drop: Any = False, **options: Any) -> Any:
    """A function as it is; or a decorator that leaves it so."""
    return drop if callable(drop) else (lambda fn: fn)


unused = ignore


def is_scripting() -> bool:
    """Whether TorchScript is running: no."""
    return False


def is_tracing() -> bool:
    """Whether operations are being written down: no."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def optimized_execution(should_optimize: bool) -> Any:
    """A block without effect."""
    return nullcontext()


_REASON = "TorchScript programs are compiled, and there is no compiler here."


def save(m: Any, f: Any, *args: Any, **options: Any) -> None:
    """Raise: there are no TorchScript files here."""
    raise MissingRuleError(
        f"torch.jit.save: {_REASON} Save the state: "
        "torch.save(model.state_dict(), file)."
    )


def load(f: Any, *args: Any, **options: Any) -> Any:
    """Raise: there are no TorchScript files here."""
    raise MissingRuleError(
        f"torch.jit.load: {_REASON} Make the model from its class, and take its "
        "state: model.load_state_dict(torch.load(file))."
    )
