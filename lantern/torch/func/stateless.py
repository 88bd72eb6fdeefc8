"""Modules as functions of their parameters."""

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import ArgumentError, EagerError, OptionError
from lantern.torch.functions.join_repeat import stack

__all__ = [
    "functional_call",
    "stack_module_state",
]


MISSING: Any = object()


def _check_names(module: Any, given: set[str], known: set[str]) -> None:
    """An error unless just the names of a module's tensors are there."""
    lines = [
        f"{what} key(s): {str(sorted(names))[1:-1]}."
        for what, names in (("Unexpected", given - known), ("Missing", known - given))
        if names
    ]
    if lines:
        first = f"Error(s) in reparametrizing for {type(module).__name__}:"
        raise EagerError("\n\t".join([first, *lines]))


def _owner(module: Any, name: str) -> tuple[Any, str]:
    """The part of a module that has a tensor, and the tensor's name there."""
    *path, last = name.split(".")
    for step in path:
        part = getattr(module, step, MISSING)
        if part is MISSING:
            raise AttributeError(f"{type(module).__name__} has no attribute `{step}`")
        module = part
    return module, last


def _exchange(part: Any, name: str, x: Any) -> Any:
    """Give a module a tensor, or take it away (MISSING); what it had before."""
    for table in (part._parameters, part._buffers):
        if name in table:
            before = table[name]
            if x is MISSING:
                del table[name]
            else:
                table[name] = x
            return before
    before = getattr(part, name, MISSING)
    if not (before is MISSING or before is None or hasattr(before, "dtype")):
        raise ArgumentError(
            f"attribute `{name}`: {before} is not an instance of torch.Tensor"
        )
    if x is not MISSING:
        setattr(part, name, x)
    elif before is not MISSING:
        delattr(part, name)
    return before


@contextmanager
@between_turns
def _holding(module: Any, tensors: dict[str, Any], given: dict[str, Any]) -> Any:
    """A block in which a module has other tensors; what it sets is ``given``."""
    before: list[tuple[str, Any, str, Any]] = []
    for x in tensors.values():
        if x is not None and not hasattr(x, "dtype"):
            raise ArgumentError(f"{x} is not an instance of torch.Tensor")
    try:
        for name, x in tensors.items():
            part, last = _owner(module, name)
            before.append((name, part, last, _exchange(part, last, x)))
        yield
    finally:
        for name, part, last, x in reversed(before):
            after = _exchange(part, last, x)
            if name in given and after is not MISSING:
                given[name] = after


def _tied(tensors: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """What is given under one name of a tensor under all its names."""
    names: dict[int, list[str]] = {}
    for name, x in known.items():
        names.setdefault(id(x), []).append(name)
    tensors = dict(tensors)
    for row in names.values():
        found = {id(tensors[name]): tensors[name] for name in row if name in tensors}
        if len(found) > 1:
            raise OptionError(
                f"functional_call got multiple values for keys {sorted(row)}, "
                f"which are tied. Consider using tie_weights=False"
            )
        for one in found.values():
            tensors |= dict.fromkeys(row, one)
    return tensors


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
            A name that belongs to nothing is an attribute as long as the call takes.
            What the module sets under a name stands in the dict afterwards.
        args: its argument, or a tuple of its arguments.
        kwargs: its keyword arguments.
        tie_weights: whether a tensor that has two names is replaced under both.
        strict: whether all names must be there, and no others.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Linear(2, 1)
        >>> state = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([10.0])}
        >>> torch.func.functional_call(model, state, torch.tensor([3.0, 4.0]))
        tensor([21.])
    """
    state = parameter_and_buffer_dicts
    if not isinstance(state, dict | list | tuple):
        raise OptionError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
            f"dicts, but got {type(state)}"
        )
    tensors: dict[str, Any] = {}
    for part in (state,) if isinstance(state, dict) else state:
        if twice := sorted(tensors.keys() & part.keys()):
            raise OptionError(
                f"{twice} appeared in multiple dictionaries: behavior of functional "
                f"call is ambiguous. Give each name once."
            )
        tensors |= part
    given = state if isinstance(state, dict) else {}
    if tie_weights or strict:  # a module in a circle has no end of names
        known = dict(module.named_parameters(remove_duplicate=False))
        known |= module.named_buffers(remove_duplicate=False)
        if tie_weights:
            tensors = _tied(tensors, known)
        if strict:
            _check_names(module, set(tensors), set(known))
    row = () if args is None else args if isinstance(args, tuple) else (args,)
    with _holding(module, tensors, given):
        return module(*row, **(kwargs or {}))


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
        for name, x in rows[0].items():
            if any(row[name].requires_grad != x.requires_grad for row in rows):
                raise EagerError(
                    f"Expected {name} of each model to have the same .requires_grad"
                )
        return {
            name: stack([row[name].detach() for row in rows]).requires_grad_(
                x.requires_grad
            )
            for name, x in rows[0].items()
        }

    return stacked("named_parameters"), stacked("named_buffers")
