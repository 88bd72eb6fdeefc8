"""Writing inside a transform of functions: a new value takes the old one's place.

The rules of a derivative hold the arrays that they saved, and would not notice a write.
So here nothing is written to: the tensor gets the new value, and if it is a view, its
base one with the new part in it. All other views of the base then read their parts of
that. Where they lie is worked out once from memory, and remembered.
"""

from typing import Any

from lantern.core.value import Value, base
from lantern.eager.grad_mode import is_enabled
from lantern.eager.recorder import AMBIENT
from lantern.eager.versions import written
from lantern.errors import EagerError
from lantern.tensor.ops import at
from lantern.tensor.ops.indexing import plain_getitem as read
from lantern.tensor.ops.shape import reshape
from lantern.torch.tensor.batches import check_examples
from lantern.torch.tensor.detaching import in_transform, lost_in_memory
from lantern.torch.tensor.dtypes import category, type_name
from lantern.torch.tensor.operators import cast, in_memory, views_of
from lantern.torch.tensor.tensor import Tensor, fresh, numpy_face, torch_face
from lantern.torch.tensor.view_memory import is_shown_elsewhere, moved_away, place

__all__ = ["check_fit", "replaced"]


def check_fit(kind: Any, shape: Any, array: Any) -> None:
    """Raise, in PyTorch's words, unless a result may be written to an array."""
    if category(kind) > category(array.dtype):
        raise EagerError(
            f"result type {type_name(kind)} can't be cast to the desired output type "
            f"{type_name(array.dtype)}"
        )
    if shape != array.shape:
        raise EagerError(
            f"output with shape {list(array.shape)} doesn't match the broadcast shape "
            f"{list(shape)}"
        )


def replaced(x: Tensor, z: Any, casting: str = "same_kind") -> Tensor:
    """Let a tensor, its base and all views of that follow from its new value."""
    check_examples(x, z)
    if casting != "unsafe":
        check_fit(base(z).dtype, base(z).shape, base(x))
    z = cast(z, base(x).dtype)
    whole = x.viewed if isinstance(x.viewed, Tensor) else x
    if is_shown_elsewhere(whole):
        raise lost_in_memory()
    views = {id(v): v for v in (weak() for weak in views_of(whole).values())}
    views.pop(id(None), None)
    if x is not whole:
        views[id(x)] = x
    if whole.level is AMBIENT:  # views of it that are not known here are refused
        written(in_memory(whole), tracked=True)
    for v in views.values():
        moved_away(v, place(v, whole))
    flat = reshape(numpy_face(z), (-1,))
    if x is not whole:
        rest = reshape(numpy_face(whole), (-1,))
        flat = at.plain_put(rest, flat, index=place(x, whole))
    _take(whole, reshape(flat, base(whole).shape))
    for v in views.values():
        _take(v, reshape(read(flat, index=place(v, whole)), base(v).shape))
    if "outside" in whole.__dict__:
        _written_outside(whole)
    return x


def _written_outside(x: Tensor) -> None:
    """Let the tensor that an argument of a mapped function came from follow it."""
    outside, axis, examples = x.__dict__["outside"]
    value = numpy_face(x)
    if isinstance(value, Value) and value.level.depth > examples.depth:
        raise EagerError(
            "vmap: an argument was written a value to that a derivative inside the "
            "mapped function tracks. clone() it first."
        )
    own = examples.owns(value)
    z = torch_face(value.stacked if own else value)
    if not (own and value.mapped):
        z = (z if isinstance(z, Tensor) else fresh(z)).expand(examples.size, *x.shape)
    outside.copy_(z.movedim(0, axis) if axis else z)


def _take(x: Tensor, value: Any) -> None:
    stopped = not is_enabled() and (in_transform(x) or not in_transform(value))
    if stopped and getattr(value, "level", None) is not x.level:
        x.primal = value  # what no_grad does to a value is no part of its derivative
        return
    z = torch_face(value)
    x.primal, x.level, x.receiver = z.primal, z.level, z.receiver
