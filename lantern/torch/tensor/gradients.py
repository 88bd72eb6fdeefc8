"""Gradients of tensors: backward, hooks, and the rule behind a tensor."""

import math
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.blocks import between_turns
from lantern.core.residuals import copied
from lantern.core.value import UNTRACKED, Value, base
from lantern.eager.backward import (
    call_back,
    check_views,
    finished,
    listeners,
    one_pass,
    propagate,
)
from lantern.eager.hooks import (
    RETAIN,
    Afterwards,
    Recording,
    called_after,
    called_before,
    of_kind,
)
from lantern.eager.recorder import AMBIENT, Recorder
from lantern.eager.versions import last_write, rewritten
from lantern.errors import ArgumentError, EagerError
from lantern.rules.multiple_results import Part
from lantern.tensor.accumulate.deferred_products import DeferredSum
from lantern.tensor.backend.numpy_namespace import ONES, buffers
from lantern.torch.tensor.detaching import in_transform, lost
from lantern.torch.tensor.devices import as_array
from lantern.torch.tensor.dtypes import INEXACT, Size, by_numpy
from lantern.torch.tensor.nodes import (
    GradientEdge,
    RemovableHandle,
    add_hook,
    node_of,
    part_of,
    place_of,
)
from lantern.torch.tensor.tensor import (
    UNSEEN,
    Tensor,
    fresh,
    numpy_face,
    plain_cotangent,
    torch_face,
    untracked,
)
from lantern.torch.tensor.view_memory import HELD_ONCE, share
from lantern.vectorizing.batched import Batched, without_derivative

__all__ = ["run_backward", "seeds_of"]


def root_of(y: Any) -> tuple[Any, Any, Any, int | None]:
    """Where a derivative begins: receiver, shape, type; which of several results."""
    if isinstance(y, GradientEdge):
        receiver, part = y.node.receiver, part_of(y)
        if part is not None:
            primal = receiver.primals[part]
            return receiver, primal.shape, primal.dtype, part
        return receiver, receiver.shape, receiver.dtype, None
    if y.level is not AMBIENT:
        if in_transform(y):
            raise EagerError(
                f"backward: the tensor belongs to {y.level.name}, which is being "
                f"taken around this program, and not to backward. Call "
                f"torch.func.grad or lantern.grad for a derivative inside of it, "
                f"or backward outside."
            )
        raise EagerError(
            "element 0 of tensors does not require grad and does not have a grad_fn"
        )
    array = base(y)
    return y.receiver, array.shape, array.dtype, None


def seeds_of(outputs: Any, gradients: Any) -> list[tuple[Any, Any]]:
    """Pairs of a receiver and its cotangent, checked."""
    seeds: list[tuple[Any, Any]] = []
    for y, gradient in zip(outputs, gradients, strict=True):
        if gradient is None and type(y) is Tensor and y.level is AMBIENT:
            array = y.primal
            seed = ONES.get(type(array))  # as most passes begin
            if seed is None and array.size == 1 and array.dtype.kind == "f":
                seed = y.one()
            if seed is not None:
                seeds.append((y.receiver, seed))
                continue
        receiver, shape, dtype, part = root_of(y)
        if gradient is None:
            if math.prod(shape) != 1:
                raise EagerError(
                    "grad can be implicitly created only for scalar outputs"
                )
            if dtype.kind == "c":
                raise EagerError(
                    "grad can be implicitly created only for real scalar outputs but "
                    f"got {by_numpy[dtype]}"
                )
            seed = np.ones(shape, dtype)
        else:
            seed = plain_cotangent(gradient)
            _check_seed(seed, shape, dtype, len(seeds))
        seeds.append((receiver, seed if part is None else Part(part, seed)))
    if rewritten:
        check_views(last_write[0] + 1, (receiver for receiver, _ in seeds))
    return seeds


def _check_seed(seed: Any, shape: Any, dtype: Any, i: int) -> None:
    """Raise unless a cotangent fits its output."""
    found = getattr(seed, "shape", None)
    if found != shape:
        raise EagerError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {Size(found or ())} "
            f"and output[{i}] has a shape of {Size(shape)}."
        )
    if seed.dtype != dtype and "c" in (seed.dtype.kind, dtype.kind):
        raise EagerError(
            f"For complex Tensors, both grad_output and output are required to have "
            f"the same dtype. Mismatch in dtype: grad_output[{i}] has a dtype of "
            f"{by_numpy[seed.dtype]} and output[{i}] has a dtype of {by_numpy[dtype]}."
        )


@between_turns
def run_backward(
    outputs: Any,
    gradients: Any,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Any,
) -> None:
    """The backward pass, and what it leaves in the leaves."""
    retain = create_graph if retain_graph is None else retain_graph
    chosen = None
    if inputs is not None:
        inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        if not inputs:
            raise EagerError("'inputs' argument to backward() cannot be empty.")
        chosen = list(map(_left_in, inputs))
    seeds = seeds_of(outputs, gradients)
    callbacks: list[Any] = []
    with one_pass:
        received = propagate(seeds, retain, create_graph, chosen, True, callbacks)
        seeds.clear()
        while received:
            pair = received.popitem()
            if pair[1] is None:
                pass
            elif not pair[0].hooks:
                _leave(pair, create_graph)
            elif not _retains(pair[0]):
                _left_and_called(*pair, create_graph)
        if callbacks:
            call_back(callbacks)
        if listeners:
            finished()


def _left_in(x: Any) -> Any:
    """Who gets the gradient of an input that a program has named."""
    if isinstance(x, GradientEdge):
        return x.node.receiver
    receiver = own_receiver(x)
    retain_grad(x)
    return receiver


def _left_and_called(receiver: Any, grad: Any, create_graph: bool) -> None:
    """Leave a gradient where it belongs, and call what waits for that."""
    pair = receiver, called_before(receiver, grad, create_graph)
    if type(receiver) is not Recorder:
        return
    _leave(pair, create_graph)
    with Recording(create_graph):
        for hook in of_kind(receiver, Afterwards):
            hook.call()
    called_after(receiver, [], pair[1], create_graph)


def find_nan(receiver: Any, found: list[Any]) -> None:
    """Raise if a rule hands on a nan."""
    for i, x_bar in enumerate(found):
        if x_bar is not None and np.isnan(base(x_bar)).any():
            name = node_of(receiver).name()
            raise EagerError(
                f"Function '{name}' returned nan values in its {i}th output."
            )


def _leave(pair: tuple[Any, Any], create_graph: bool) -> None:
    """Add a cotangent to a leaf's gradient.

    Args:
        pair: who receives it, and the cotangent, which no name has: so it is counted.
        create_graph: whether the gradient is tracked.
    """
    receiver = pair[0]
    total = receiver.grad
    if total is None and type(pair[1]) in buffers:
        if receiver.owned:
            receiver.owned = False
            receiver.grad = pair[1]
        elif sys.getrefcount(pair[1]) <= HELD_ONCE and (
            pair[1].base is None or _has_all_of_its_base(pair[1])
        ):
            receiver.grad = pair[1]
        else:
            receiver.grad = copied(pair[1])
        return
    grad, owned, receiver.owned = pair[1], receiver.owned, False
    if total is None:
        if type(grad) is DeferredSum and (waiting := grad.alone()) is not None:
            receiver.grad = waiting
            return
    elif type(total) in buffers and type(grad) in buffers and not create_graph:
        total += grad  # that nobody has seen yet
        return
    else:
        total = receiver.grad = torch_face(receiver.dense_grad())
    grad = grad.settle() if type(grad) is DeferredSum else grad
    if isinstance(grad, Value):
        grad = torch_face(grad)
        receiver.grad = grad if total is None else total + grad
    elif total is None:
        receiver.grad = as_array(grad if owned else copied(grad))
    elif create_graph or total.level is not UNTRACKED:
        receiver.grad = total + fresh(grad)
    elif type(total.primal) in buffers:
        total.primal += grad
    else:
        total.primal = total.primal + grad


def _has_all_of_its_base(x: Any) -> bool:
    """Whether an array has the memory that it shows to itself, in another form."""
    if type(x.base) is not np.ndarray or sys.getrefcount(x.base) > HELD_ONCE:
        return False
    is_all = x.base.flags.owndata and x.base.nbytes == x.nbytes
    return is_all and x.flags.writeable


def grad_fn(self: Tensor) -> Any:
    """The suspended rule that made it; None for a leaf.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> x.grad_fn is None, x.sum().grad_fn.name()
        (True, 'SumBackward0')
    """
    return None if self.is_leaf else node_of(self.receiver)


def output_nr(self: Tensor) -> int:
    """Which of the results of its rule it is.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.eye(2, requires_grad=True)
        >>> [part.output_nr for part in torch.linalg.qr(x)]
        [0, 1]
    """
    return place_of(self.receiver)[1]


def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Resume the rules behind this tensor, newest first; leave ``.grad`` in leaves.

    Args:
        gradient: the cotangent; 1 for a tensor of one element.
        retain_graph: whether the rules may be needed again.
        create_graph: whether the gradients can be differentiated themselves.
        inputs: the only tensors that get a gradient.

    Raises:
        RuntimeError: where PyTorch raises it, in its words.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
    run_backward((self,), (gradient,), retain_graph, create_graph, inputs)


def own_receiver(self: Tensor) -> Any:
    """The receiver, in a form that has hooks."""
    if self.level is not AMBIENT:
        raise EagerError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    if type(self.receiver) is not Recorder:
        self.receiver = (+numpy_face(self)).receiver
    return self.receiver


def register_hook(self: Tensor, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call a function with the gradient, which may return another in its place.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> handle = x.register_hook(lambda gradient: 10 * gradient)
        >>> (3 * x).backward()
        >>> x.grad
        tensor([30.])
    """

    def on_plain(z_bar: Any) -> Any:
        replaced = hook(torch_face(z_bar))
        if replaced is None:
            return None
        _check_replaced(hook, replaced, z_bar)
        return plain_cotangent(replaced)

    return _hook(self, on_plain)


def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Any], Any]
) -> RemovableHandle:
    """Call a function with the leaf once a pass has added to its ``.grad``.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
        >>> (3 * x).backward()
        tensor([3.])
    """
    own_receiver(self)
    if not self.is_leaf:
        raise EagerError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        )
    leaf = weakref.ref(self)  # which owns the hooks: no ring

    def call() -> None:
        if hook(leaf()) is not None:
            raise EagerError("Tensor post accumulate grad hooks should return None.")

    return _hook(self, Afterwards(call))


def _check_replaced(hook: Any, replaced: Any, z_bar: Any) -> None:
    """Raise unless what a hook returns can take the gradient's place."""
    if not isinstance(replaced, Tensor):
        raise ArgumentError(
            f"expected Variable, but hook returned '{type(replaced).__name__}'"
        )
    new, old = base(replaced), base(z_bar)
    name = getattr(hook, "__name__", "")
    if new.shape != old.shape:
        raise EagerError(f"hook '{name}' has changed the size of value")
    if new.dtype != old.dtype:
        raise EagerError(
            f"hook '{name}' has changed the type of value (was {fresh(old).type()} got "
            f"{replaced.type()})"
        )


def _hook(self: Tensor, hook: Any) -> RemovableHandle:
    return add_hook(own_receiver(self), hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient, although no leaf.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> y = 2 * x
        >>> y.retain_grad()
        >>> (y * y).backward()
        >>> y.grad
        tensor([4.])
    """
    if not self.requires_grad:
        raise EagerError("can't retain_grad on Tensor that has requires_grad=False")
    if not self.is_leaf and not self.retains_grad:
        _hook(self, RETAIN)


def retains_grad(self: Tensor) -> bool:
    """Whether it is no leaf, and keeps its gradient all the same.

    Example:
        >>> import lantern.torch as torch
        >>> y = 2 * torch.tensor([1.0], requires_grad=True)
        >>> y.retain_grad()
        >>> y.retains_grad
        True
    """
    return not self.is_leaf and _retains(self.receiver)


def _retains(receiver: Any) -> bool:
    hooks: Any = getattr(receiver, "hooks", None)
    return hooks is not None and RETAIN in hooks.values()


def rebind(x: Tensor, z: Any) -> None:
    """Let a tensor that was written to have the rule of its new value behind it.

    A gradient that it has, or is to keep, goes with it; hooks stay with the old value.
    """
    before, grad = x.receiver, x.__dict__.pop("grad", None)
    x.level, x.receiver = z.level, z.receiver
    retained = _retains(before)
    if retained:
        grad = before.grad
        kept = {k: h for k, h in before.hooks.items() if h is not RETAIN}
        before.grad, before.hooks = None, kept or None
        _hook(x, RETAIN)
    if grad is not None and x.level is AMBIENT:
        own_receiver(x).grad = grad


def detach(self: Tensor) -> Any:
    """The same memory, without derivative.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * 3).detach()
        tensor([3., 6.])
    """
    array = self.primal
    if isinstance(array, Value):
        z = fresh(without_derivative(base(array)))
    else:
        z = untracked(array)
    # What is written through it is no part of a derivative, nor its views' concern.
    if self.viewed is UNSEEN:
        z.viewed = UNSEEN
    return share(z, self)


def detach_(self: Tensor) -> Any:
    """Cut this tensor off what made it.

    Raises:
        RuntimeError: for a view: what it shows would keep its derivative.

    Example:
        >>> import lantern.torch as torch
        >>> y = torch.tensor([1.0], requires_grad=True) * 3
        >>> y.detach_()
        tensor([3.])
    """
    if isinstance(self.viewed, Tensor):
        raise EagerError("Can't detach views in-place. Use detach() instead.")
    grad = self.grad
    z = detach(self)
    self.primal, self.level, self.receiver = z.primal, z.level, z.receiver
    if grad is not None:
        self.grad = grad
    return self


def data(self: Tensor) -> Any:
    """The same memory, without derivative, to be written to in silence.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> x.data[0] = 5.0
        >>> x
        tensor([5., 2.], requires_grad=True)
    """
    if isinstance(self.primal, np.generic):
        self.primal = np.asarray(self.primal)
    array = base(self)
    if type(array) is Batched:
        raise EagerError(
            "accessing `data` under vmap transform is not allowed. Use x.detach()."
        )
    z = fresh(array)
    z.viewed = UNSEEN
    return share(z, self)


def set_data(self: Tensor, x: Tensor) -> None:
    """Show the memory of another tensor, and stay the leaf that this one is."""
    if not isinstance(x, Tensor):
        if hasattr(x, "layout"):  # a sparse one
            raise EagerError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and "
                "`tensor` have incompatible tensor type. Use tensor.to_dense()."
            )
        raise ArgumentError(
            f"Variable data has to be a tensor, but got {type(x).__name__}"
        )
    if type(base(self)) is Batched or type(base(x)) is Batched:
        raise EagerError(
            "mutating directly with `.data` under vmap transform is not allowed; nor "
            "is out=. Use x.copy_(y)."
        )
    if in_transform(self, x):
        raise lost("x.data = y, x.set_(y)")
    array = base(x)
    if self.requires_grad and array.dtype.kind not in INEXACT:
        raise EagerError(
            "data set to a tensor that requires gradients must be floating point or "
            f"complex dtype, got {x.dtype}"
        )
    if type(self.receiver) is Recorder:
        self.receiver.grad = self.grad  # in the shape that it had
        self.receiver.shape, self.receiver.dtype = array.shape, array.dtype
        self.receiver.memory = 0  # that of the view it was
    self.primal = array
    share(self, x)


METHODS: dict[str, Any] = {
    "backward": backward,
    "data": property(data, set_data),
    "detach": detach,
    "detach_": detach_,
    "grad_fn": property(grad_fn),
    "output_nr": property(output_nr),
    "register_hook": register_hook,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
    "retain_grad": retain_grad,
    "retains_grad": property(retains_grad),
}
