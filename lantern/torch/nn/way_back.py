"""A module's hooks on the way back, around the cotangents of its inputs and outputs."""

import warnings
from typing import Any

from lantern.core.value import UNTRACKED
from lantern.errors import EagerError
from lantern.torch.autograd import Function
from lantern.torch.tensor.tensor import Tensor

__all__ = ["WayBack"]


class _Through(Function):
    """Views of tensors; their cotangents, as a function leaves them."""

    @staticmethod
    def forward(ctx: Any, on_way_back: Any, *tensors: Any) -> Any:
        ctx.on_way_back = on_way_back
        return tuple(x.view_as(x) for x in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.on_way_back(gradients))


class WayBack:
    """The hooks of one call of a module, and the cotangents that they see.

    Args:
        module: the module.
        hooks: called when the cotangents of its inputs are known: number, hook, mark.
        early: called when those of its outputs are.
    """

    def __init__(self, module: Any, hooks: Any, early: Any) -> None:
        self.module = module
        self.hooks = [hook for _, hook, _ in hooks]
        self.early_hooks = [hook for _, hook, _ in early]
        self.outputs: Any = None
        self.inputs = 0
        self.tracked: list[int] = []

    def entered(self, args: Any) -> Any:
        """The arguments, watched."""
        self.inputs = len(args)
        args, self.tracked = _watched(args, self._at_inputs)
        return args

    def left(self, output: Any) -> Any:
        """The output, watched: a tensor, or those directly in a tuple."""
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
