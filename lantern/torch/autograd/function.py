"""Operations that a program defines itself, with a backward step of its own."""

import inspect
from collections.abc import Callable
from copy import copy
from functools import lru_cache, wraps
from operator import attrgetter
from types import FunctionType
from typing import Any

from lantern.blocks import between_turns
from lantern.core.dispatch import register_rule, start
from lantern.core.namespace import namespace
from lantern.core.value import UNTRACKED, Rule, Value, base, zeros_like
from lantern.eager.grad_mode import enable_grad, is_grad_enabled, no_grad
from lantern.eager.packed import hooks
from lantern.eager.recorder import AMBIENT
from lantern.eager.versions import last_write, written
from lantern.errors import EagerError, MissingRuleError
from lantern.op import op
from lantern.torch.autograd.context import Context, Output
from lantern.torch.autograd.examples import each_way_back, holds_examples, of_examples
from lantern.torch.methods.inplace import refuse_leaf, taken
from lantern.torch.tensor.detaching import is_recorded
from lantern.torch.tensor.dtypes import INEXACT
from lantern.torch.tensor.nodes import Suspended
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import (
    Tensor,
    fresh,
    make,
    numpy_face,
    plain_cotangent,
    torch_face,
)
from lantern.transforms.forward import Forward

__all__ = [
    "BackwardCFunction",
    "Context",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "once_differentiable",
]

FunctionCtx = Context


class _Results:
    """What a ``Function`` has computed: a constant that its rule must not copy."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain


@op
@between_turns
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
    z_bars: Any = [torch_face(z) for z in (z_bar if several else (z_bar,))]
    tracked = tracked or any(z.requires_grad for z in z_bars)
    z_bars = context._own_with_gaps(z_bars, getattr(z_bar, "missing", ()))
    checked, start = context._own_check(), last_write[0]
    with enable_grad() if tracked else no_grad():
        gradients = each_way_back(_way_back(function), context, z_bars)
    gradients = gradients if isinstance(gradients, tuple | list) else (gradients,)
    gradients = context._own_written(checked, start, gradients)
    wanted = context._own_places
    count = context._own_count
    if len(gradients) < count or any(g is not None for g in gradients[count:]):
        raise EagerError(
            f"function {function.__name__}Backward returned an incorrect number of "
            f"gradients (expected {count}, got {len(gradients)})"
        )
    for i in wanted:
        gradient = gradients[i]
        if gradient is not None:
            _check_gradient(function, gradient, i, context._own_shapes[i])
        yield None if gradient is None else plain_cotangent(gradient)


def _way_back(function: Any) -> Any:
    """The backward step of a ``Function``, which has one of two names."""
    if function.backward is Function.backward:
        return function.vjp
    if function.vjp is not Function.vjp:
        raise EagerError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not "
            "allowed. You should only implement one of them."
        )
    return function.backward


def _check_gradient(function: Any, gradient: Any, i: int, shape: Any) -> None:
    """Raise unless a contribution fits its argument, or can be summed to fit."""
    if not hasattr(gradient, "shape"):
        raise EagerError(f"expected Variable or None (got {type(gradient).__name__})")
    found = tuple(base(gradient).shape)
    if found != shape:
        padded = (1,) * (len(found) - len(shape)) + tuple(shape)
        pairs = zip(padded, found, strict=False)
        if len(padded) > len(found) or not all(n in (1, m) for n, m in pairs):
            raise EagerError(
                f"Function {function.__name__}Backward returned an invalid gradient at "
                f"index {i} - got {list(found)} but expected shape compatible with "
                f"{list(shape)}"
            )


_code = _custom.rule.__code__.replace(co_name="_custom")  # type: ignore[attr-defined]
_moved = register_rule(FunctionType(_code, globals()), "stated")
_moved.__kwdefaults__ = {"tangent": None}


class BackwardCFunction(Suspended):
    """The node of an operation that a program defines.

    Example:
        >>> import lantern.torch as torch
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        >>> y = Double.apply(torch.ones(1, requires_grad=True))
        >>> isinstance(y.grad_fn, torch.autograd.function.BackwardCFunction)
        True
    """

    __slots__ = ()


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
    def backward(*args: Any, **options: Any) -> Any:
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

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The operation for many examples at once: that is found without it."""
        raise MissingRuleError(
            "vmap: operations of a program are computed example by example."
        )

    setup_context: Any = None
    generate_vmap_rule = False
    _backward_cls: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        names = {"__slots__": (), "__module__": cls.__module__, "_forward_cls": cls}
        cls._backward_cls = type(f"{cls.__name__}Backward", (BackwardCFunction,), names)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """An error: operations are called by their method ``apply``."""
        raise EagerError(
            "Legacy autograd function with non-static forward method is deprecated. "
            "Please use new-style autograd function with static forward method. Call "
            f"{type(self).__name__}.apply(...)."
        )

    @classmethod
    @between_turns
    def apply(cls, *args: Any, **options: Any) -> Any:
        """The operation's value, tracked if an argument is."""
        if holds_examples((args, options)):
            own = None if cls.vmap is Function.vmap else cls.vmap
            return of_examples(cls, own, args, options)
        context = Context()
        if cls.setup_context is not None:
            args, options = _bound(cls.forward, args, options)
        tensors = [_as_it_is(x) for x in args if isinstance(x, Tensor)]
        tracked = is_recorded(*tensors)
        context.needs_input_grad = tuple(
            isinstance(x, Tensor) and x.requires_grad for x in args
        )
        context._own_count = len(args)
        context._own_places = tuple(
            i for i, x in enumerate(args) if isinstance(x, Tensor)
        )
        context._own_shapes = {i: base(args[i]).shape for i in context._own_places}
        given, args = args, tuple(map(_standing, args))
        with no_grad():
            if cls.setup_context is not None:
                results = cls.forward(*args, **options)
                cls.setup_context(context, args, results)
            else:
                results = cls.forward(context, *args, **options)
        if context._dirty:
            _check_dirty(context._dirty, results, tracked)
        if not tracked:
            return _untracked(results)
        dirty: dict[int, Any] = {}
        if context._dirty:
            of = {id(x): y for x, y in zip(args, given, strict=True)}
            dirty = {id(x): of.get(id(x), x) for x in context._dirty}
        return _tracked(cls, context, tensors, results, dirty)


class InplaceFunction(Function):
    """An operation that may write to its arguments.

    Args:
        inplace: whether it does.

    Example:
        >>> import lantern.torch as torch
        >>> torch.autograd.function.InplaceFunction(inplace=True).inplace
        True
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


def _untracked(results: Any) -> Any:
    """Results without derivative; what is an argument may have one."""
    row = results if isinstance(results, tuple) else (results,)
    if not any(isinstance(z, Tensor) and z.level is AMBIENT for z in row):
        return results
    row = tuple(z.detach() if isinstance(z, Tensor) else z for z in row)
    return row if isinstance(results, tuple) else row[0]


def _bound(forward: Any, args: Any, options: Any) -> Any:
    """The arguments of a forward step, in their order and with its defaults."""
    bound = _signature(forward).bind(*args, **options)
    bound.apply_defaults()
    return bound.args, bound.kwargs


@lru_cache(256)
def _signature(forward: Any) -> Any:
    return inspect.signature(forward)


def _check_dirty(dirty: Any, results: Any, tracked: bool) -> None:
    """Raise unless what was written to is a result, and no leaf."""
    row = results if isinstance(results, tuple) else (results,)
    for x in dirty:
        if not any(z is x for z in row):
            raise EagerError(
                "Some elements marked as dirty during the forward method were not "
                "returned as output. The inputs that are modified inplace must all be "
                "outputs of the Function."
            )
        if tracked:
            refuse_leaf(x)


def _tracked(
    cls: Any, context: Context, tensors: list[Any], results: Any, dirty: dict[int, Any]
) -> Any:
    """The results of a ``Function`` with its rule behind them.

    Args:
        cls: the class.
        context: that of the call.
        tensors: the arguments that are tensors.
        results: what the forward step has returned.
        dirty: the arguments that were written to, by the identity of what the forward
            step had in their place.
    """
    several = isinstance(results, tuple)
    whole = results if several else (results,)
    context._own_slots = tuple(isinstance(z, Tensor) for z in whole)
    row = tuple(z for z in whole if isinstance(z, Tensor))
    if not row:
        return results
    context._own_still = tuple(
        i for i, z in enumerate(whole) if id(z) in context._constant
    )
    plain = tuple(base(z) for z in row)
    if dirty:
        lost = set(map(id, dirty.values()))
        tensors = [_stand_in(x) if id(x) in lost else x for x in tensors]
    found, outer = plain, _levels(tensors)
    for level in outer:
        innermost = level is outer[-1]
        own = context if innermost else _seen_by(level, context)
        own._level = None if level is AMBIENT else level
        inputs = tensors if innermost else [_seen_by(level, x) for x in tensors]
        found = _started(cls, own, inputs, found)
        if not innermost:
            found = tuple(
                x if _is_constant(z, context) else y
                for x, y, z in zip(plain, found, row, strict=True)
            )
            _settled(cls, own, context._saved, row, list(map(torch_face, found)))
    for x in dirty.values():
        if not isinstance(x.primal, Value):  # else a derivative around it has it anew
            written(in_memory(x), tracked=True)
    faces: list[Any] = []
    for z, face in zip(row, found, strict=True):
        twin = next((f for y, f in zip(row, faces, strict=False) if y is z), None)
        if twin is not None:  # a result that is returned twice is one tensor
            faces.append(twin)
            continue
        face = fresh(base(z)) if _is_constant(z, context) else torch_face(face)
        x = dirty.get(id(z))
        faces.append(face if x is None else taken(x, face))
    _settled(cls, context, context._saved, row, faces)
    left = iter(faces)
    filled = [next(left) if isinstance(z, Tensor) else z for z in whole]
    return tuple(filled) if several else filled[0]


def _is_constant(z: Tensor, context: Context) -> bool:
    """Whether a result has no derivative."""
    return id(z) in context._constant or base(z).dtype.kind not in INEXACT


def _levels(tensors: list[Any]) -> list[Any]:
    """The derivatives that track some tensors, the outermost first."""
    found = {x.level for x in tensors}
    found.discard(UNTRACKED)
    for x in tensors:
        x = x.primal
        while isinstance(x, Value):
            found.add(x.level)
            x = x.primal
    if len(found) == 1:
        return list(found)
    found = {x for x in found if x is not UNTRACKED and x.is_derivative}
    return sorted(found, key=attrgetter("depth"))


def _seen_by(level: Any, x: Any) -> Any:
    """A tensor, or a context with its tensors, without derivatives inside of one."""
    if isinstance(x, Context):
        seen = copy(x)
        for name, value in vars(x).items():
            setattr(seen, name, _seen_by(level, value))
        seen._saved = tuple(_seen_by(level, y) for y in x._saved)
        return seen
    while isinstance(x, Tensor) and _depth(x) > level.depth:
        x = torch_face(x.primal)
    return x


def _depth(x: Tensor) -> int:
    return -1 if x.level is UNTRACKED else x.level.depth


def _settled(cls: Any, context: Context, saved: Any, row: Any, faces: Any) -> None:
    """The results stand: what a context keeps of them closes no ring.

    Args:
        cls: the class of the function.
        context: that of the call, or what one derivative sees of it.
        saved: what the call has saved.
        row: its results.
        faces: what stands for them.
    """
    kept = list(context._saved)
    for i, x in enumerate(saved):
        if isinstance(x, Tensor):
            pairs = zip(row, faces, strict=True)
            face = next((f for z, f in pairs if x is z), None)
            kept[i] = kept[i] if face is None else Output(face.primal, face.receiver)
    context._saved = tuple(kept)
    context._own_settle(_way_back(cls))
    pair = hooks.get()
    if pair is not None:
        context._own_pack(pair)


def _as_it_is(x: Tensor) -> Tensor:
    """A tensor, or one like it where a write to it would give it another value."""
    return make(x.primal, x.level, x.receiver) if isinstance(x.primal, Value) else x


def _stand_in(x: Tensor) -> Tensor:
    """In place of an operand whose value is no longer there."""
    return make(namespace(x.primal).empty_like(x.primal), x.level, x.receiver)


def _started(cls: Any, context: Context, tensors: list[Any], row: Any) -> Any:
    """Results that one derivative tracks, by the values that they have outside."""
    plain = row if len(row) > 1 else row[0]
    found = _derived(cls, context, tensors, plain)
    return found if len(row) > 1 else (found,)


def _derived(cls: Any, context: Context, tensors: list[Any], plain: Any) -> Any:
    statics = {"function": cls, "context": context, "outputs": _Results(plain)}
    operands = tuple(map(numpy_face, tensors))
    if not any(_moves(x) for x in tensors):
        return _custom(*operands, **statics)
    whole = plain if type(plain) is tuple else (plain,)

    def tangent(_: Any, tangents: list[Any]) -> Any:
        row: list[Any] = [None] * context._own_count
        for i, x, x_dot in zip(context._own_places, tensors, tangents, strict=True):
            still = base(x).dtype.kind not in INEXACT
            zero = None if still else fresh(zeros_like(base(x)))
            row[i] = zero if x_dot is None else torch_face(x_dot)
        found = cls.jvp(context, *row)
        found = found if isinstance(found, tuple) else (found,)
        moved = _moved_by(context, found, whole)
        return moved if type(plain) is tuple else moved[0]

    return start(_moved, operands, (), {**statics, "tangent": tangent})


def _moved_by(context: Context, found: Any, whole: Any) -> tuple[Any, ...]:
    """The tangents of the results that are tensors, zeros where one stands still."""
    pairs = zip(found, context._own_slots, strict=True)
    row = [z_dot for z_dot, is_tensor in pairs if is_tensor]
    slots = [i for i, is_tensor in enumerate(context._own_slots) if is_tensor]
    for i, z_dot in zip(slots, row, strict=True):
        if z_dot is not None and i in context._own_still:
            raise EagerError(
                f"jvp returned a tangent for the result {i}, which was marked as not "
                "differentiable. You should return None at that position instead."
            )
    return tuple(
        zeros_like(z) if z_dot is None else numpy_face(z_dot)
        for z_dot, z in zip(row, whole, strict=True)
    )


def _moves(x: Any) -> bool:
    """Whether a value has a tangent."""
    return isinstance(x, Tensor) and isinstance(x.level, Forward)


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
    @between_turns
    def without(ctx: Any, *z_bars: Any) -> Any:
        tracked = is_grad_enabled()
        with no_grad():
            found = backward(ctx, *z_bars)
        if not tracked:
            return found
        behind = [
            x for x in (*z_bars, *ctx.saved_tensors) if getattr(x, "requires_grad", 0)
        ]
        if not behind:
            return found
        several = isinstance(found, tuple)
        row = found if several else (found,)
        row = tuple(
            _Twice.apply(g.detach(), *behind) if isinstance(g, Tensor) else g
            for g in row
        )
        return row if several else row[0]

    return without


class _Twice(Function):
    """A gradient that has no derivative itself."""

    @staticmethod
    def forward(ctx: Any, gradient: Any, *behind: Any) -> Any:
        return gradient

    @staticmethod
    def backward(ctx: Any, *z_bars: Any) -> Any:
        raise EagerError(
            "trying to differentiate twice a function that was marked with "
            "@once_differentiable"
        )
