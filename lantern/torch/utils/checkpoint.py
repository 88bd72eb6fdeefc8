"""Parts of a model whose values are computed again on the way back, not kept."""

import enum
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from itertools import compress
from operator import itemgetter
from typing import Any

import numpy as np

from lantern.blocks import Setting, between_turns
from lantern.eager.backward import one_pass, order_of, propagate
from lantern.eager.grad_mode import enable_grad, is_grad_enabled
from lantern.eager.recorder import AMBIENT, Recorder
from lantern.eager.versions import order
from lantern.errors import ArgumentError, EagerError, OptionError, counted
from lantern.torch.autograd import Function
from lantern.torch.methods.sampling import get_rng_state, set_rng_state
from lantern.torch.tensor.batches import mappings
from lantern.torch.tensor.detaching import in_transform
from lantern.torch.tensor.gradients import seeds_of
from lantern.torch.tensor.tensor import Tensor, make, torch_face

__all__ = [
    "CheckpointError",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Nothing: random numbers are drawn on the CPU, whatever the arguments lie on.

    Example:
        >>> import lantern.torch as torch
        >>> torch.utils.checkpoint.get_device_states(torch.ones(1))
        ([], [])
    """
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: Any = None) -> None:
    """Has no effect: see ``get_device_states``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.utils.checkpoint.set_device_states([], [])
    """


class CheckpointError(EagerError):
    """A function that computes something else when it is called again.

    Example:
        >>> import lantern.torch as torch
        >>> ways, x = [torch.exp, torch.square], torch.ones(1, requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(lambda x: ways.pop()(x), x)
        >>> y.backward()
        Traceback (most recent call last):
            ...
        lantern.torch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: ...
    """


class _Again(Function):
    """A call whose rules are suspended anew when its results have their cotangents."""

    @staticmethod
    def forward(ctx: Any, run: Any, *operands: Any) -> Any:
        ctx.run, outputs = run, run.outputs
        run.outputs = None
        ctx.save_for_backward(*operands[: len(run.places)])
        if run.nested is not True:
            still = [
                z
                for z, moves in zip(_row(outputs), run.moves, strict=True)
                if isinstance(z, Tensor) and not moves
            ]
            ctx.mark_non_differentiable(*still)
        return outputs

    @staticmethod
    @between_turns
    def backward(ctx: Any, *z_bars: Any) -> Any:
        again = is_grad_enabled()
        operands = ctx.saved_tensors
        given = [x if again else _leaf(x) for x in operands]
        start = next(order)
        outputs = _row(ctx.run.call_again(given))
        tracked = [isinstance(z, Tensor) and z.requires_grad for z in outputs]
        if not any(tracked):
            raise EagerError(
                "none of output has requires_grad=True, this checkpoint() is not "
                "necessary"
            )
        ends = [x.receiver if x.requires_grad else None for x in given]
        ctx.run.check(start, ends, outputs)
        seeds = seeds_of(list(compress(outputs, tracked)), compress(z_bars, tracked))
        ends += ctx.run.outer
        with one_pass:
            asked = [x for x in ends if x is not None]
            found = propagate(seeds, again, again, asked, within=True)
        # What is handed over twice gets its share once.
        return None, *(None if x is None else _face(found.pop(x, None)) for x in ends)


class _Run:
    """One call: its values, the random numbers that it drew, and what it needs."""

    @between_turns
    def __init__(self, call: Any, args: Any, options: Any) -> None:
        self.call, self.nested = call, options["use_reentrant"]
        self.state = get_rng_state() if options["preserve_rng_state"] else None
        self.checked = options["determinism_check"] != "none"
        asked = _debugged.get()
        self.told = options["debug"] if asked is None else asked
        around, self.around = options["context_fn"]()
        self.args = [None if isinstance(x, Tensor) else x for x in args]
        self.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        start = next(order)
        inner = list(map(_leaf, args))
        with enable_grad(), around:
            outputs = call(*inner)
        row = _row(outputs)
        self.in_transform = in_transform(*row)
        if self.in_transform:
            return
        ends = [x.receiver for x in inner if isinstance(x, Tensor)]
        self.steps, self.outer = _steps(start, ends, row)
        self.moves = [isinstance(z, Tensor) and z.requires_grad for z in row]
        several = isinstance(outputs, tuple)
        self.outputs = tuple(map(_plain, row)) if several else _plain(outputs)

    def call_again(self, tensors: Any) -> Any:
        """The call's results, with their rules."""
        args = list(self.args)
        for i, x in zip(self.places, tensors, strict=True):
            args[i] = x
        after = get_rng_state()
        if self.state is not None:
            set_rng_state(self.state)
        with enable_grad(), self.around:
            outputs = self.call(*args)
        set_rng_state(after)
        return outputs

    def check(self, start: int, ends: Any, outputs: Any) -> None:
        """Raise if the second call went another way than the first.

        Args:
            start: when it began.
            ends: the receivers of its arguments.
            outputs: its results.
        """
        steps, _ = _steps(start, ends, outputs)
        told = "" if not self.told else _TOLD.format(self.steps, steps)
        if len(steps) != len(self.steps):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved "
                "during the original forward and recomputation: the function has "
                f"computed {counted(len(self.steps), 'value')} that matter at first, "
                f"and {len(steps)} when it was called again. Let it do the same each "
                f"time.{told}"
            )
        if self.checked and steps != self.steps:
            pairs = zip(self.steps, steps, strict=True)
            first, then = next(pair for pair in pairs if pair[0] != pair[1])
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors "
                f"have different metadata than during the forward pass: {first}, then "
                f"{then}; these tensors have different metadata. Let the function do "
                f"the same each time.{told}"
            )


_TOLD = """
You are seeing this error because you passed `debug=True` to checkpoint, or asked for it
by set_checkpoint_debug_enabled. At first and then it computed
{}
{}"""


def _row(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _leaf(x: Any) -> Any:
    """An argument as a leaf of its own; what has no derivative as it is."""
    if not isinstance(x, Tensor) or not x.requires_grad:
        return x
    return x.detach().requires_grad_()


def _plain(z: Any) -> Any:
    return z.detach() if isinstance(z, Tensor) else z


def _face(z_bar: Any) -> Any:
    return None if z_bar is None else torch_face(z_bar)


def _steps(start: int, ends: list[Any], outputs: Any) -> tuple[list[Any], list[Any]]:
    """What a call has computed for its results, and what they need from outside.

    Returns:
        Of each rule its name, and the shapes and types of its results, in their order;
        the receivers from before the call that are none of its arguments.
    """
    waiting = [z.receiver for z in outputs if isinstance(z, Tensor) and z.requires_grad]
    known = {id(x) for x in ends}
    steps, outer = [], []
    while waiting:
        receiver = waiting.pop()
        if receiver is None or id(receiver) in known:
            continue
        known.add(id(receiver))
        when = order_of(receiver)
        if when > start:
            steps.append((when, _step(receiver)))
            waiting.extend(receiver.operands())
        elif type(receiver) is Recorder:
            outer.append(receiver)
        else:
            raise EagerError(
                "checkpoint: the function uses one of several results of an operation "
                "outside of it. Hand it over as an argument."
            )
    return [step for _, step in sorted(steps, key=itemgetter(0))], outer


def _step(receiver: Any) -> Any:
    row = getattr(receiver, "primals", (receiver,))
    rule = getattr(receiver, "function", None)
    return getattr(rule, "__name__", None), *((x.shape, x.dtype) for x in row)


def _edge(x: Recorder) -> Tensor:
    """A tensor that costs nothing, with a receiver."""
    return make(
        np.ndarray(x.shape, x.dtype, _ZERO, strides=(0,) * len(x.shape)), AMBIENT, x
    )


_ZERO = bytes(32)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs as leaves, of which derivatives are wanted if they were before.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.utils.checkpoint import detach_variable
        >>> x = torch.ones(1, requires_grad=True)
        >>> detach_variable((x * 2, 3))
        (tensor([2.], requires_grad=True), 3)
    """
    return tuple(_leaf(x) for x in inputs)


def check_backward_validity(inputs: Any) -> None:
    """Warn if no derivative is wanted of any input.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.utils.checkpoint import check_backward_validity
        >>> check_backward_validity([torch.ones(1, requires_grad=True)])
    """
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None",
            stacklevel=2,
        )


def noop_context_fn() -> tuple[Any, Any]:
    """Two blocks that change nothing, for the two calls of a function.

    Example:
        >>> import lantern.torch as torch
        >>> first, again = torch.utils.checkpoint.noop_context_fn()
    """
    return nullcontext(), nullcontext()


# Whether the way of a call is told when another one goes otherwise; None for as asked.
_debugged: ContextVar[bool | None] = ContextVar("lantern.checkpoint", default=None)


def set_checkpoint_debug_enabled(enabled: bool | None) -> Setting:
    """A block in which it is settled whether errors tell what a function computed.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):
        ...     z = torch.utils.checkpoint.checkpoint(torch.sin, torch.ones(1))
    """
    return Setting(_debugged, enabled)


class CheckpointPolicy(enum.Enum):
    """What may be said of an operation: whether its value is kept.

    Example:
        >>> import lantern.torch as torch
        >>> torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE.value
        0
    """

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)


class SelectiveCheckpointContext:
    """What a policy is told of the call that it decides about.

    Args:
        is_recompute: whether that is the second one.

    Example:
        >>> import lantern.torch as torch
        >>> options = {"is_recompute": False}
        >>> torch.utils.checkpoint.SelectiveCheckpointContext(**options).is_recompute
        False
    """

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """Blocks for ``context_fn``; all values are computed again, whatever the policy.

    Args:
        policy_fn_or_list: a function, or a list of operations whose values to keep.
        allow_cache_entry_mutation: has no effect: nothing is kept.

    Raises:
        TypeError: if it is neither.
        ValueError: if the list holds what is no operation with its overload.

    Example:
        >>> import lantern.torch as torch
        >>> module = torch.utils.checkpoint
        >>> def contexts():
        ...     return module.create_selective_checkpoint_contexts(lambda *_: None)
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> module.checkpoint(torch.exp, x, context_fn=contexts).backward()
        >>> x.grad
        tensor(7.3891)
    """
    if isinstance(policy_fn_or_list, list):
        for operation in policy_fn_or_list:
            if not callable(operation):
                raise OptionError(
                    "Expected op in `op_list` to be an OpOverload but got: "
                    f"{operation} of type {type(operation)}."
                )
    elif not callable(policy_fn_or_list):
        raise ArgumentError(
            "policy_fn_or_list must be either a function or a list of ops, got "
            f"{type(policy_fn_or_list).__name__}."
        )
    return noop_context_fn()


def set_checkpoint_early_stop(enable: bool) -> Any:
    """A block without effect: functions are called again to their end.

    Example:
        >>> import lantern.torch as torch
        >>> with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     z = torch.utils.checkpoint.checkpoint(torch.sin, torch.ones(1))
    """
    return nullcontext()


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: Any = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **options: Any,
) -> Any:
    """The function's value, without what its rules would keep.

    On the way back the function is called a second time.

    Args:
        function: what is called; it returns a tensor or a tuple of them.
        args: its arguments.
        use_reentrant: whether a result always requires a gradient; the way is the same.
        preserve_rng_state: whether random numbers are the same the second time.
        context_fn: makes two blocks, around the first call and around the second.
        determinism_check: ``"none"`` if other shapes may come the second time.
        debug: whether an error tells what was computed.
        early_stop: has no effect.
        options: the function's keyword arguments.

    Raises:
        CheckpointError: on the way back, if the function computes something else.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> torch.utils.checkpoint.checkpoint(lambda x: (x * x).exp(), x).backward()
        >>> x.grad
        tensor(218.3926)
    """
    # Transforms of functions, vmap among them, keep what they need.
    if not is_grad_enabled() or in_transform(*args) or mappings():
        return function(*args, **options)
    settings = {
        "use_reentrant": use_reentrant,
        "preserve_rng_state": preserve_rng_state,
        "context_fn": context_fn,
        "determinism_check": determinism_check,
        "debug": debug,
    }
    run = _Run(lambda *args: function(*args, **options), args, settings)
    if run.in_transform:  # because of what the function closes over
        return run.call_again([x for x in args if isinstance(x, Tensor)])
    if not use_reentrant and not any(run.moves):
        return run.outputs
    tensors = [x for x in args if isinstance(x, Tensor)]
    return _Again.apply(run, *tensors, *map(_edge, run.outer))


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: Any = None, **options: Any
) -> Any:
    """A row of layers in segments, each but the last one computed again.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([3.0], requires_grad=True)
        >>> layers = [torch.square, torch.nn.ReLU(), torch.square]
        >>> run = torch.utils.checkpoint.checkpoint_sequential
        >>> run(layers, 3, x, use_reentrant=False).backward()
        >>> x.grad
        tensor([108.])
    """
    layers = list(functions.children() if hasattr(functions, "children") else functions)
    if not 0 < segments <= len(layers):
        raise EagerError(
            f"checkpoint_sequential: {counted(segments, 'segment')} for "
            f"{counted(len(layers), 'layer')}. "
            "Take at least 1, and no more than there are layers."
        )

    def run(part: list[Any]) -> Any:
        def call(x: Any) -> Any:
            for layer in part:
                x = layer(x)
            return x

        return call

    size = len(layers) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(layers[start : start + size]), input)
    return run(layers[size * (segments - 1) :])(input)
