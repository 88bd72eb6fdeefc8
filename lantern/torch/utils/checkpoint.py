"""Parts of a model whose values are computed again on the way back, not kept."""

from typing import Any

import numpy as np

from lantern.eager.grad_mode import enable_grad, is_grad_enabled
from lantern.eager.recorder import AMBIENT, Recorder
from lantern.eager.versions import order
from lantern.errors import EagerError, counted
from lantern.torch.autograd import Function, grad
from lantern.torch.methods.sampling import get_rng_state, set_rng_state
from lantern.torch.tensor.batches import mappings
from lantern.torch.tensor.tensor import Tensor, make

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "get_device_states",
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


class _Again(Function):
    """A call whose rules are suspended anew when its results have their cotangents."""

    @staticmethod
    def forward(ctx: Any, run: Any, n: int, *operands: Any) -> Any:
        outputs, ctx.run, ctx.n, ctx.operands = run.outputs, run, n, operands
        run.outputs = None
        return outputs

    @staticmethod
    def backward(ctx: Any, *z_bars: Any) -> Any:
        args = list(map(_leaf, ctx.operands[: ctx.n]))
        outputs = ctx.run.again(args)
        tracked = [x for x in args if isinstance(x, Tensor) and x.requires_grad]
        inputs = [*tracked, *ctx.operands[ctx.n :]]
        pairs = [
            (z, z_bar)
            for z, z_bar in zip(_row(outputs), z_bars, strict=True)
            if isinstance(z, Tensor) and z.requires_grad
        ]
        rows = zip(*pairs, strict=True)
        found = iter(grad(next(rows), inputs, next(rows), allow_unused=True))
        return (
            None,
            None,
            *(
                next(found) if isinstance(x, Tensor) and x.requires_grad else None
                for x in (*args, *ctx.operands[ctx.n :])
            ),
        )


class _Run:
    """One call: its values, the random numbers that it drew, and what it needs."""

    def __init__(self, call: Any, args: Any, preserve: bool) -> None:
        self.call, self.state = call, get_rng_state() if preserve else None
        start = next(order)
        inner = list(map(_leaf, args))
        with enable_grad():
            outputs = call(*inner)
        self.leaves = _outer(start, inner, outputs)
        several = isinstance(outputs, tuple)
        self.outputs = tuple(map(_plain, outputs)) if several else _plain(outputs)

    def again(self, args: Any) -> Any:
        """The call's results, with their rules."""
        after = get_rng_state()
        if self.state is not None:
            set_rng_state(self.state)
        with enable_grad():
            outputs = self.call(*args)
        set_rng_state(after)
        return outputs


def _row(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _leaf(x: Any) -> Any:
    """An argument as a leaf of its own."""
    if not isinstance(x, Tensor):
        return x
    return x.detach().requires_grad_(x.requires_grad)


def _plain(z: Any) -> Any:
    return z.detach() if isinstance(z, Tensor) else z


def _outer(start: int, inner: list[Any], outputs: Any) -> list[Tensor]:
    """The leaves behind a call's results that are older than the call."""
    waiting = [z.receiver for z in _row(outputs) if isinstance(z, Tensor)]
    known = {id(x.receiver) for x in inner if isinstance(x, Tensor)}
    seen: dict[int, Any] = {}
    while waiting:
        receiver = waiting.pop()
        if type(receiver) is not Recorder or id(receiver) in seen:
            continue
        seen[id(receiver)] = receiver
        if receiver.function is not None and receiver.order < start:
            raise EagerError(
                "checkpoint: the function uses a tensor that was computed outside of "
                "it. Hand it over as an argument."
            )
        waiting.extend(receiver.operands())
    return [
        make(np.broadcast_to(np.zeros((), x.dtype), x.shape), AMBIENT, x)
        for x in seen.values()
        if x.function is None and id(x) not in known
    ]


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: Any = None,
    preserve_rng_state: bool = True,
    **options: Any,
) -> Any:
    """The function's value, without what its rules would keep.

    On the way back the function is called a second time.

    Args:
        function: what is called; it returns a tensor or a tuple of them.
        args: its arguments.
        use_reentrant: has no effect.
        preserve_rng_state: whether random numbers are the same the second time.
        options: the function's keyword arguments.

    Raises:
        RuntimeError: if the function uses a tensor, computed outside of it, that was
            not handed over as an argument; parameters may be used.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> torch.utils.checkpoint.checkpoint(lambda x: (x * x).exp(), x).backward()
        >>> x.grad
        tensor(218.3926)
    """
    for name in ("context_fn", "determinism_check", "debug", "early_stop"):
        options.pop(name, None)
    if not is_grad_enabled() or mappings():  # a vmap keeps what it needs
        return function(*args, **options)
    run = _Run(lambda *args: function(*args, **options), args, preserve_rng_state)
    return _Again.apply(run, len(args), *args, *run.leaves)


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
