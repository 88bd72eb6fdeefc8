"""Modules as functions of their parameters."""

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import EagerError, OptionError
from lantern.torch.functions.join_repeat import stack

__all__ = ["functional_call", "stack_module_state"]


@contextmanager
@between_turns
def _holding(module: Any, tensors: Any, strict: bool) -> Any:
    """A block in which a module has other parameters and buffers."""
    before: list[tuple[Any, str, Any]] = []
    known = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    known |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
    if strict and known != set(tensors):
        lines = [f"Error(s) in reparametrizing for {type(module).__name__}:"]
        for what, names in (
            ("Missing", known - set(tensors)),
            ("Unexpected", set(tensors) - known),
        ):
            if names:
                lines.append(f"{what} key(s): {str(sorted(names))[1:-1]}.")
        raise EagerError("\n\t".join(lines))
    try:
        for name, x in tensors.items():
            if name not in known:
                raise AttributeError(
                    f"functional_call: {type(module).__name__} has no parameter or "
                    f"buffer {name!r}"
                )
            path, _, last = name.rpartition(".")
            part = module
            for step in path.split(".") if path else ():
                part = getattr(part, step)
            table = part._parameters if last in part._parameters else part._buffers
            before.append((table, last, table[last]))
            table[last] = x
        yield
    finally:
        for table, last, x in reversed(before):
            table[last] = x


@between_turns
def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What a module returns with other parameters and buffers than its own.

    Args:
        module: an ``nn.Module``.
        parameter_and_buffer_dicts: tensors by their names, or several dicts of them.
        args: its argument, or a tuple of its arguments.
        kwargs: its keyword arguments.
        tie_weights: whether a tensor that has two names is replaced under both.
        strict: whether all names must be there.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Linear(2, 1)
        >>> state = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([10.0])}
        >>> torch.func.functional_call(model, state, torch.tensor([3.0, 4.0]))
        tensor([21.])
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict | list | tuple):
        raise OptionError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
            f"dicts, but got {type(given)}"
        )
    tensors: dict[str, Any] = {}
    for part in (given,) if isinstance(given, dict) else given:
        tensors |= part
    if tie_weights:
        names: dict[int, list[str]] = {}
        for name, x in module.named_parameters(remove_duplicate=False):
            names.setdefault(id(x), []).append(name)
        for row in names.values():
            found = {
                id(tensors[name]): tensors[name] for name in row if name in tensors
            }
            if len(found) > 1:
                raise OptionError(
                    f"functional_call got multiple values for keys {sorted(row)}, "
                    f"which are tied. Consider using tie_weights=False"
                )
            for one in found.values():
                tensors |= dict.fromkeys(row, one)
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with _holding(module, tensors, strict):
        return module(*given, **(kwargs or {}))


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of modules of one class, each stacked.

    Example:
        >>> import lantern.torch as torch
        >>> models = [torch.nn.Linear(2, 3) for _ in range(4)]
        >>> parameters, buffers = torch.func.stack_module_state(models)
        >>> parameters["weight"].shape
        torch.Size([4, 3, 2])
    """
    if not models:
        raise EagerError("stack_module_state: Expected at least one model, got 0.")
    if len({type(m) for m in models}) > 1:
        raise EagerError(
            "stack_module_state: Expected all models to be of the same class."
        )

    if len({m.training for m in models}) > 1:
        raise EagerError(
            "stack_module_state: Expected all models to have the same training/eval "
            "mode."
        )

    def stacked(kind: str) -> dict[str, Any]:
        rows = [dict(getattr(m, kind)()) for m in models]
        return {
            name: stack([row[name].detach() for row in rows]).requires_grad_(
                x.requires_grad
            )
            for name, x in rows[0].items()
        }

    return stacked("named_parameters"), stacked("named_buffers")
