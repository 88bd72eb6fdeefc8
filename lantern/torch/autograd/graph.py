"""What stands behind a tensor: ``torch.autograd.graph``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from lantern.blocks import Setting, between_turns, from_the_start
from lantern.core.value import base
from lantern.eager.backward import under_way
from lantern.eager.packed import ever, hooks
from lantern.eager.versions import writes, written
from lantern.errors import EagerError, OptionError, SizeError
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.torch.run.aliases import missing
from lantern.torch.tensor.gradients import own_receiver
from lantern.torch.tensor.nodes import (
    GradientEdge,
    Node,
    RemovableHandle,
    hook_pair,
    node_of,
    place_of,
)
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Where the gradient of a tensor goes.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> torch.autograd.graph.get_gradient_edge(x).node.name()
        'torch::autograd::AccumulateGrad'
    """
    if not tensor.requires_grad:
        raise EagerError(
            "It is not possible to get the gradient edge for a Tensor that does not "
            "require gradients"
        )
    return GradientEdge(node_of(tensor.receiver), place_of(tensor.receiver)[1])


class saved_tensors_hooks:
    """A block whose operations keep what a function makes of what they save.

    On the way back an operation is computed once more, from what another function makes
    of that. Operations of several results, as ``split``, and a program's own functions
    save as ever.

    Args:
        pack_hook: of a tensor that is saved: what is kept instead.
        unpack_hook: of that: the tensor again.

    Raises:
        RuntimeError: in a block of ``disable_saved_tensors_hooks``.

    Example:
        >>> import lantern.torch as torch
        >>> kept = []
        >>> def pack(x):
        ...     kept.append(x)
        ...     return len(kept) - 1
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(pack, kept.__getitem__):
        ...     y = x * x
        >>> y.backward()
        >>> len(kept), x.grad
        (2, tensor(6.))
    """

    __slots__ = ("__weakref__", "pair")

    def __init__(self, pack_hook: Any, unpack_hook: Any) -> None:
        pack, unpack = hook_pair(pack_hook, unpack_hook)

        def alone(array: Any) -> Any:
            with Setting(hooks, None):
                return pack(array)

        self.pair = alone, unpack
        ever.add("hooks")

    def __enter__(self) -> None:
        words = _disabled.get()
        if words is not None:
            raise EagerError(words)
        around = hooks.get()
        try:
            hooks.set((*self.pair, around))
        except BaseException:  # an interrupt, behind it
            hooks.set(around)
            raise

    @from_the_start
    def __exit__(self, *exception: object) -> None:
        try:
            innermost = None
        finally:
            innermost = hooks.get()
            if innermost is not None:
                hooks.set(innermost[2])


class save_on_cpu:
    """A block in which what rules save lies in the host's memory, as it does anyway.

    Args:
        pin_memory: has no effect, as ``device_type``.
        device_type: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     (x * x).backward()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        pass

    def __enter__(self) -> "save_on_cpu":
        return self

    def __exit__(self, *exception: Any) -> None:
        """Nothing to undo."""


_disabled: ContextVar[str | None]
_disabled = ContextVar("lantern.disable_saved_tensors_hooks", default=None)


def disable_saved_tensors_hooks(error_message: str) -> Any:
    """A block in which ``saved_tensors_hooks`` raises with a message.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        ...     with torch.autograd.graph.saved_tensors_hooks(len, len):
        ...         pass
        Traceback (most recent call last):
        ...
        lantern.errors.EagerError: not here
    """
    if hooks.get() is not None:
        raise EagerError(error_message)
    return Setting(_disabled, error_message)


def hooks_allowed() -> bool:
    """Whether ``saved_tensors_hooks`` may be entered."""
    return _disabled.get() is None


def increment_version(tensor: Any) -> None:
    """Count a write to memory that was made where nobody could notice.

    Args:
        tensor: the tensor, or several.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(2)
        >>> torch.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for x in (tensor,) if isinstance(tensor, Tensor) else tensor:
        written(in_memory(x))


@between_turns
def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all"
) -> Any:
    """Call a function once a pass has reached several tensors.

    Args:
        tensors: the tensors; those that require no gradient are as if reached by None.
        fn: of the list of gradients; with ``mode="any"``, of the first one.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle, whose ``remove()`` takes it back.

    Example:
        >>> import lantern.torch as torch
        >>> x, y = (torch.ones(1, requires_grad=True) for _ in range(2))
        >>> seen = lambda gradients: print(len(gradients))
        >>> handle = torch.autograd.graph.register_multi_grad_hook([x, y], seen)
        >>> (x * y).backward()
        2
    """
    if mode not in ("all", "any"):
        raise OptionError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tracked = [(i, own_receiver(x)) for i, x in enumerate(tensors) if x.requires_grad]
    passes: WeakKeyDictionary[Any, tuple[list[Any], set[int]]] = WeakKeyDictionary()

    def arrive(i: int, gradient: Any) -> None:
        this = under_way[-1]
        first = this not in passes
        if first:
            left = {j for j, receiver in tracked if this.resumes(receiver)}
            passes[this] = [None] * len(tensors), left
        found, left = passes[this]
        found[i] = gradient
        left.discard(i)
        if mode == "any" and first:
            fn(gradient)
        elif mode == "all" and not left:
            fn(found)

    def hook(i: int) -> Callable[[Any], None]:
        return lambda gradient: arrive(i, gradient)

    return _Handles([tensors[i].register_hook(hook(i)) for i, _ in tracked])


class _Handles(RemovableHandle):
    """Several handles as one."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        """Take all of them back."""
        for handle in self.handles:
            handle.remove()


class _Copy:
    """A saved array as it was."""

    __slots__ = ("__weakref__", "of", "tensor")

    def __init__(self, array: Any, tensor: Tensor) -> None:
        self.of = ref(array) if type(array) in buffers else lambda: None
        self.tensor = tensor


class _Copies:
    """Copies of what is saved in a block, each version of an array once.

    Attributes:
        cloned: those that are still needed.
    """

    def __init__(self) -> None:
        self.cloned: WeakValueDictionary[Any, _Copy] = WeakValueDictionary()
        self.open = True

    def keep(self, x: Tensor) -> _Copy:
        """A copy of what is saved."""
        array = base(x)
        key = id(array), writes(array) if type(array) in buffers else 0
        copy = self.cloned.get(key)
        if copy is None or copy.of() is not array:
            copy = self.cloned[key] = _Copy(array, x.clone())
        return copy

    def give(self, copy: _Copy) -> Tensor:
        """What was saved."""
        if not self.open:
            raise SizeError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' "
                "context in which the graph was originally recorded."
            )
        return copy.tensor


_copying: ContextVar[bool] = ContextVar("lantern.allow_mutation", default=False)


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """A block in which what a way back needs may be written to: copies are saved.

    The way back must be in the block as well.

    Raises:
        RuntimeError: inside of another such block.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     z = y * y
        ...     _ = y.zero_()
        ...     z.backward()
        >>> x.grad
        tensor(6.)
    """
    if _copying.get():
        raise EagerError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = _Copies()
    with (
        Setting(_copying, True),
        saved_tensors_hooks(copies.keep, copies.give),
    ):
        try:
            yield copies
        finally:
            copies.open = False
            copies.cloned.clear()


def __getattr__(name: str) -> Any:
    """Say which name there is that comes nearest."""
    raise missing("module 'torch.autograd.graph'", name, globals())
