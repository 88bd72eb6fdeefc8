"""Operations that a program defines itself, with a backward step of its own."""

import weakref
from collections.abc import Callable, Iterable
from functools import wraps
from types import FunctionType
from typing import Any

from lantern.core.dispatch import register_rule, start
from lantern.core.value import Rule, Value, base, zeros_like
from lantern.eager.grad_mode import no_grad, set_grad_enabled
from lantern.eager.recorder import AMBIENT, Recorder
from lantern.eager.versions import check_arrays, last_write, order
from lantern.errors import EagerError, MissingRuleError
from lantern.guards.captured import Reading, Search, Unchanged
from lantern.op import op
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.torch.tensor.operators import is_recorded
from lantern.torch.tensor.tensor import (
    Tensor,
    fresh,
    make,
    numpy_face,
    plain_cotangent,
    torch_face,
)
from lantern.transforms.forward import Forward

__all__ = ["Context", "Function", "once_differentiable"]


class Context:
    """What a ``Function`` keeps between its forward and its backward step.

    Attributes:
        needs_input_grad: for each argument, whether its gradient is wanted.

    Example:
        >>> import lantern.torch as torch
        >>> class Scale(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, factor):
        ...         ctx.factor = factor
        ...         return x * factor
        ...
        ...     @staticmethod
        ...     def backward(ctx, z_bar):
        ...         return z_bar * ctx.factor, None
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> Scale.apply(x, 5.0).backward()
        >>> x.grad
        tensor(5.)
    """

    needs_input_grad: tuple[bool, ...] = ()
    materialize = True
    places: tuple[int, ...] = ()
    count = 0  # of the arguments

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._constant: tuple[int, ...] = ()
        self._since, self._read = 0, set[str]()
        self._unchanged: Unchanged | None = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for the backward step."""
        self._saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` kept.

        Raises:
            EagerError: if one was written to meanwhile.
        """
        self._check(self._saved)
        return tuple(x.tensor() if isinstance(x, _Output) else x for x in self._saved)

    def settle(self, backward: Any) -> None:
        """The forward step is over: what the backward step will read must not change.

        Saved tensors are looked at when they are read, what else it names in the
        context or closes over at the beginning of the backward step.
        """
        search = Search(backward)
        found = search.found()
        self._since, self._read = next(order), search.attributes
        arrays = [x for x in self._named() if type(x) in buffers]
        found += [Reading("an array of ctx", x) for x in arrays]
        self._unchanged = Unchanged("backward", found)

    def check(self) -> None:
        """Raise if something that lies in the context has been written to."""
        self._check(self._named())
        name = None if self._unchanged is None else self._unchanged.changes()
        if name is not None:
            raise EagerError(
                f"one of the variables needed for gradient computation has been "
                f"modified by an inplace operation: {name}, which the backward step "
                f"reads. Save a copy of it, or make a new array instead of writing to "
                f"this one."
            )

    def _named(self) -> list[Any]:
        own = vars(self)
        return [own[name] for name in self._read if name in own]

    def _check(self, values: Iterable[Any]) -> None:
        tensors = [base(x) for x in values if isinstance(x, Tensor)]
        outputs = [x.primal for x in values if isinstance(x, _Output)]
        arrays = [x for x in tensors + outputs if type(x) in buffers]
        if self._since and self._since < last_write[0]:
            check_arrays(self._since, arrays)

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Say that results have no derivative."""
        self._constant = tuple(map(id, outputs))

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that arguments were written to."""

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing cotangents are zeros, or None."""
        self.materialize = value


class _Output:
    """A saved result: its array, and weakly its receiver, so as to close no ring."""

    def __init__(self, primal: Any, receiver: Any) -> None:
        self.primal = primal
        self.receiver = weakref.ref(receiver) if type(receiver) is Recorder else None

    def tensor(self) -> Any:
        """The result as a tensor."""
        receiver = None if self.receiver is None else self.receiver()
        return (
            fresh(self.primal)
            if receiver is None
            else make(self.primal, AMBIENT, receiver)
        )


class _Results:
    """What a ``Function`` has computed: a constant that its rule must not copy."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain


@op
def _custom(
    *operands: Any, function: Any, context: Any, outputs: Any, tangent: Any = None
) -> Rule:
    """An operation that a program defines, whose results are known already.

    Shapes:
        operands: any; result: as the function's

    Rule:
        as the function's ``backward``
    """
    tracked = any(isinstance(x, Value) for x in operands)
    del operands, tangent
    plain = outputs.plain
    several = type(plain) is tuple
    z_bar = yield (plain, plain := None)[0]
    z_bars = [torch_face(z) for z in (z_bar if several else (z_bar,))]
    context.check()
    with set_grad_enabled(tracked or any(z.requires_grad for z in z_bars)):
        gradients = function.backward(context, *z_bars)
    gradients = gradients if isinstance(gradients, tuple | list) else (gradients,)
    wanted = context.places
    count = context.count
    if len(gradients) < count or any(g is not None for g in gradients[count:]):
        raise EagerError(
            f"function {function.__name__}Backward returned an incorrect number of "
            f"gradients (expected {count}, got {len(gradients)})"
        )
    for i in wanted:
        gradient = gradients[i]
        yield None if gradient is None else plain_cotangent(gradient)


_code = _custom.rule.__code__.replace(co_name="_custom")  # type: ignore[attr-defined]
_moved = register_rule(FunctionType(_code, globals()), "stated")
_moved.__kwdefaults__ = {"tangent": None}


class Function:
    """An operation with a backward step of its own.

    Example:
        >>> import lantern.torch as torch
        >>> class Cube(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**3
        ...
        ...     @staticmethod
        ...     def backward(ctx, z_bar):
        ...         (x,) = ctx.saved_tensors
        ...         return 3 * x**2 * z_bar
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor(12.)
    """

    @staticmethod
    def forward(*args: Any, **options: Any) -> Any:
        """The value. To be overridden."""
        raise MissingRuleError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """For each argument of ``forward``, its contribution or None."""
        raise MissingRuleError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the results, from those of the arguments."""
        raise MissingRuleError(
            "You must implement the jvp function for custom autograd.Function to use "
            "it with forward mode AD."
        )

    setup_context: Any = None

    @classmethod
    def apply(cls, *args: Any, **options: Any) -> Any:
        """The operation's value, tracked if an argument is."""
        context = Context()
        tensors = [x for x in args if isinstance(x, Tensor)]
        tracked = is_recorded(*tensors)
        context.needs_input_grad = tuple(
            isinstance(x, Tensor) and x.requires_grad for x in args
        )
        context.count = len(args)
        context.places = tuple(i for i, x in enumerate(args) if isinstance(x, Tensor))
        if cls.jvp is not Function.jvp:
            args = tuple(map(_standing, args))
        with no_grad():
            if cls.setup_context is not None:
                results = cls.forward(*args, **options)
                cls.setup_context(context, args, results)
            else:
                results = cls.forward(context, *args, **options)
        if not tracked:
            return results
        return _tracked(cls, context, tensors, results)


def _tracked(cls: Any, context: Context, tensors: list[Any], results: Any) -> Any:
    """The results of a ``Function`` with its rule behind them."""
    several = isinstance(results, tuple)
    row = results if several else (results,)
    plain = tuple(base(z) for z in row)
    if several and len(row) == 1:
        found = (_started(cls, context, tensors, plain[0]),)
    else:
        found = _started(cls, context, tensors, plain if several else plain[0])
        found = found if several else (found,)
    faces = []
    for z, face in zip(row, found, strict=True):
        face = fresh(base(z)) if id(z) in context._constant else torch_face(face)
        faces.append(face)
    context._saved = tuple(
        next(
            (
                _Output(f.primal, f.receiver)
                for z, f in zip(row, faces, strict=True)
                if x is z
            ),
            x,
        )
        if isinstance(x, Tensor)
        else x
        for x in context._saved
    )
    context.settle(cls.backward)
    return tuple(faces) if several else faces[0]


def _started(cls: Any, context: Context, tensors: list[Any], plain: Any) -> Any:
    statics = {"function": cls, "context": context, "outputs": _Results(plain)}
    operands = tuple(map(numpy_face, tensors))
    if cls.jvp is Function.jvp or not any(_moves(x) for x in tensors):
        return _custom(*operands, **statics)

    def tangent(_: Any, tangents: list[Any]) -> Any:
        row: list[Any] = [None] * context.count
        for i, x, x_dot in zip(context.places, tensors, tangents, strict=True):
            row[i] = fresh(zeros_like(base(x))) if x_dot is None else torch_face(x_dot)
        found = cls.jvp(context, *row)
        return (
            tuple(map(numpy_face, found)) if type(plain) is tuple else numpy_face(found)
        )

    return start(_moved, operands, (), {**statics, "tangent": tangent})


def _moves(x: Any) -> bool:
    """Whether a value has a tangent."""
    return isinstance(x, Tensor) and isinstance(x.prompt, Forward)


def _standing(x: Any) -> Any:
    """A value without its tangent."""
    return torch_face(x.primal) if _moves(x) else x


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Let the backward step of a ``Function`` compute without derivative.

    Example:
        >>> import lantern.torch as torch
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...
        ...     @staticmethod
        ...     @torch.autograd.function.once_differentiable
        ...     def backward(ctx, z_bar):
        ...         return 2 * z_bar
        >>> x = torch.tensor(5.0, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor(2.)
    """

    @wraps(backward)
    def without(ctx: Any, *z_bars: Any) -> Any:
        with no_grad():
            return backward(ctx, *z_bars)

    return without
