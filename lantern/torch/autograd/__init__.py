"""Derivatives on demand, and operations with a derivative of one's own."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from lantern.blocks import Setting, from_the_start
from lantern.core.value import UNTRACKED, zeros_like
from lantern.eager.backward import call_back, ending, one_pass, propagate, under_way
from lantern.eager.grad_mode import enable_grad as enable_grad
from lantern.eager.grad_mode import no_grad as no_grad
from lantern.eager.grad_mode import set_grad_enabled as set_grad_enabled
from lantern.eager.hooks import inspectors
from lantern.errors import EagerError, OptionError
from lantern.torch.functions.join_repeat import stack
from lantern.torch.run.aliases import lead
from lantern.torch.run.on_demand import on_demand
from lantern.torch.tensor.gradients import find_nan, run_backward, seeds_of
from lantern.torch.tensor.nodes import GradientEdge, part_of
from lantern.torch.tensor.nodes import SavedTensor as SavedTensor
from lantern.torch.tensor.tensor import Tensor, torch_face

__all__ = ["Function", "backward", "enable_grad", "grad", "no_grad"]


def variable(*args: Any, **kwargs: Any) -> Any:
    """Refused, as in PyTorch, where it made a tensor once."""
    raise EagerError(
        "torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead"
    )


grad_mode = lead(__name__, "grad_mode variable")["grad_mode"]


class _Variables(type):
    def __call__(
        cls, data: Any = None, requires_grad: bool = False, volatile: Any = None
    ) -> Any:
        """A leaf with the memory of a tensor."""
        if data is None:
            data = Tensor()
        data = data if isinstance(data, Tensor) else Tensor(data)
        return data.detach().requires_grad_(requires_grad)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor)


class _Engine:
    """What resumes rules, as PyTorch's engine is asked."""

    @staticmethod
    def queue_callback(function: Any) -> None:
        """Call a function when the backward pass that is under way is over."""
        if not under_way and not ending:
            raise EagerError(
                "Final callbacks can only be installed during backward pass."
            )
        if not under_way:
            ending[-1].append(function)
        else:
            under_way[-1].callbacks.append(function)


class Variable(metaclass=_Variables):
    """What tensors with a derivative were called once: they are tensors."""

    _execution_engine = _Engine()


_threads: ContextVar[bool] = ContextVar("lantern.multithreading", default=True)


def is_multithreading_enabled() -> bool:
    """What was said last: a backward pass runs in the thread that began it."""
    return _threads.get()


class set_multithreading_enabled(Setting):
    """Say at once, or for a block, whether devices may have threads: none has one."""

    def __init__(self, mode: bool) -> None:
        super().__init__(_threads, mode)
        self.outer = _threads.get()
        _threads.set(mode)

    def __enter__(self) -> None:
        _threads.set(self.outer)
        super().__enter__()


def _profiler_enabled() -> bool:
    """Whether a profile is being taken."""
    from lantern.torch.autograd.profiler import running  # which few programs need

    return bool(running)


def kineto_available() -> bool:
    """False: Python's profiler measures."""
    return False


def _row(tensors: Any) -> tuple[Any, ...]:
    one = isinstance(tensors, Tensor | GradientEdge)
    return (tensors,) if one else tuple(tensors)


def _gradients(gradients: Any, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    if gradients is None:
        return (None,) * len(outputs)
    return _row(gradients)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """As ``Tensor.backward``, of several tensors in one pass.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> torch.autograd.backward([x * x, 2 * x])
        >>> x.grad
        tensor(8.)
    """
    outputs = _row(tensors)
    gradients = _gradients(grad_tensors, outputs)
    run_backward(outputs, gradients, retain_graph, create_graph, inputs)


def _of_rows(outputs: Any, inputs: Any, gradients: Any, options: Any) -> Any:
    """The gradients of each row of cotangents, joined."""
    rows = zip(*gradients, strict=True)
    found = [grad(outputs, inputs, row, True, *options) for row in rows]
    columns = zip(*found, strict=True)
    return tuple(None if part[0] is None else stack(part) for part in columns)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the outputs' sum; no ``.grad`` changes.

    Args:
        outputs: tensors that depend on the inputs.
        inputs: with respect to which.
        grad_outputs: the outputs' cotangents; 1 for tensors of one element.
        retain_graph: whether the rules may be needed again.
        create_graph: whether the gradients can be differentiated themselves.
        only_inputs: has no effect.
        allow_unused: whether an input may be independent of the outputs (None then).
        is_grads_batched: whether the cotangents are several, along a first axis.
        materialize_grads: give zeros in place of None.

    Raises:
        RuntimeError: where PyTorch raises it, in its words.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> torch.autograd.grad(x * x, x)
        (tensor(6.),)
    """
    outputs, inputs = _row(outputs), _row(inputs)
    if is_grads_batched:
        options = (create_graph, only_inputs, allow_unused, False, materialize_grads)
        return _of_rows(outputs, inputs, _row(grad_outputs), options)
    if materialize_grads and allow_unused is False:
        raise OptionError(_NOT_ALLOWED)
    retain = create_graph if retain_graph is None else retain_graph
    chosen = list(map(_asked, inputs))
    seeds = seeds_of(outputs, _gradients(grad_outputs, outputs))
    callbacks: list[Any] = []
    with one_pass:
        asked = [receiver for receiver, _ in chosen]
        found = propagate(seeds, retain, create_graph, asked, callbacks=callbacks)
        if callbacks:
            call_back(callbacks)
    results: list[Any] = []
    for x, (receiver, part) in zip(inputs, chosen, strict=True):
        gradient = found[receiver]
        if part is not None and gradient is not None:
            gradient = gradient[part]
        if gradient is None and materialize_grads:
            gradient = _zeros(x, create_graph)
        elif gradient is None and not allow_unused:
            raise EagerError(_UNUSED.format(len(results)))
        results.append(None if gradient is None else torch_face(gradient))
    return tuple(results)


_NOT_ALLOWED = (
    "Expected allow_unused to be True or not passed when materialize_grads=True, but "
    "got: allow_unused=False."
)
_UNUSED = (
    "The differentiated Tensor at index {} appears to not have been used in the graph. "
    "Set allow_unused=True if this is the desired behavior."
)


def _zeros(x: Any, tracked: bool) -> Any:
    """What stands for a missing gradient: one may ask how it depends on something."""
    if isinstance(x, GradientEdge):
        raise EagerError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    return torch_face(zeros_like(x)).requires_grad_(tracked)


def _asked(x: Any) -> tuple[Any, int | None]:
    """Whose cotangent is asked for; of several results, of which one."""
    if isinstance(x, GradientEdge):
        return x.node.receiver, part_of(x)
    if x.level is UNTRACKED:
        raise EagerError("One of the differentiated Tensors does not require grad")
    return x.receiver, None


class detect_anomaly:
    """A block in which a backward step that hands on a nan is an error.

    Args:
        check_nan: whether it is.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(1, requires_grad=True)
        >>> with detect_anomaly():
        ...     (x.sqrt() * 0).backward()
        Traceback (most recent call last):
            ...
        lantern.errors.EagerError: Function 'SqrtBackward0' returned nan values in its \
0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.mode = check_nan

    def __enter__(self) -> None:
        self.before = inspectors[:]
        inspectors[:] = [find_nan] if self.mode else []

    @from_the_start
    def __exit__(self, *exception: Any) -> None:
        try:
            before = None
        finally:
            before = self.before
            inspectors[:] = before


class set_detect_anomaly(detect_anomaly):
    """Say at once, or for a block, whether a step that hands on a nan is an error."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode and check_nan)
        super().__enter__()

    def __enter__(self) -> None:
        return None


lead(__name__, "gradcheck", "lantern.torch.autograd.checking")
globals().pop("gradcheck", None)  # as an attribute it is the function

if TYPE_CHECKING:
    from lantern.torch.autograd import forward_ad as forward_ad
    from lantern.torch.autograd import functional as functional
    from lantern.torch.autograd import graph as graph
    from lantern.torch.autograd import profiler as profiler
    from lantern.torch.autograd.seldom import *
else:
    _PATHS = "forward_ad functional graph profiler"
    on_demand(__name__, _PATHS.split())
