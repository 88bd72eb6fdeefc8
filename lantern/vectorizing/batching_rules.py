"""Batching rules: how operations are computed for all examples at once.

A batching rule gets a ``BatchedCall`` whose mapped operands have the examples along
their first axis, and returns a result that has them there too. Elementwise operations
need no more than aligned axes; others are listed here by name; what is not listed is
computed example by example, so that it is slow but right. An operation that is used
often gets a line here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lantern.core.numpy_protocols import find_operation
from lantern.core.operation import Function
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import Value
from lantern.errors import ShapeError
from lantern.tensor.ops.concat_stack import stack
from lantern.tensor.ops.shape import axis_of, broadcast_to, moveaxis

__all__ = [
    "BATCHING_RULES",
    "BatchedCall",
    "BatchingRule",
    "aligned",
    "along",
    "axes_behind",
    "beside",
    "direct",
    "elementwise",
    "one_by_one",
    "reorder",
]

BatchingRule = Callable[["BatchedCall"], Any]


class BatchedCall:
    """One call of an operation on operands of which some are mapped.

    Attributes:
        examples: the level; its ``size`` is the number of examples.
        function: the operation, on values of the levels outside.
        operands: the mapped ones with the examples along the first axis.
        mapped: which ones they are.
        statics: the other arguments by name; some may be batched values.
    """

    __slots__ = ("examples", "function", "mapped", "operands", "statics")

    def __init__(
        self,
        examples: Any,
        function: Function,
        operands: Sequence[Any],
        mapped: Sequence[bool],
        statics: Mapping[str, Any],
    ) -> None:
        self.examples, self.function = examples, function
        self.operands, self.mapped, self.statics = operands, mapped, statics

    def run(self, *operands: Any, **changed: Any) -> Any:
        """The operation with these operands, and some other arguments changed."""
        return self.function(*operands, **{**self.statics, **changed})

    def ndims(self) -> list[int]:
        """The number of axes that each operand has for one example."""
        pairs = zip(self.operands, self.mapped, strict=True)
        return [len(_shape(x)) - m for x, m in pairs]

    def spread(self, i: int, shape: tuple[int, ...] | None = None) -> Any:
        """An operand with the examples along its first axis, mapped or not.

        Args:
            i: which one.
            shape: that of one example, to which the operand broadcasts.
        """
        x, size = self.operands[i], self.examples.size
        if self.mapped[i]:
            if shape is None or x.shape[1:] == shape:
                return x
            return broadcast_to(aligned(x, True, len(shape)), (size, *shape))
        return broadcast_to(x, (size, *(_shape(x) if shape is None else shape)))

    def static(self, name: str, default: Any = None) -> Any:
        """An argument that is not batched."""
        return self.statics.get(name, default)


def _shape(x: Any) -> tuple[int, ...]:
    shape = getattr(x, "shape", ())  # of a type it is no tuple
    return shape if isinstance(shape, tuple) else ()


def aligned(x: Any, mapped: bool, ndim: int) -> Any:
    """A mapped array whose examples have ``ndim`` axes; others broadcast as they are.

    Shapes:
        x: (size, ...); result: (size, 1, ..., 1, ...)
    """
    missing = ndim + 1 - len(x.shape) if mapped else 0
    if missing <= 0:
        return x
    return x.reshape((x.shape[0], *(1,) * missing, *x.shape[1:]))


def beside(operand: Any, statics: Mapping[str, Any], examples: Any) -> Any:
    """An operand beside arguments that differ between the examples of a map outside.

    An operation is found by its operands, and must be found among those examples.
    """
    for x in tree_leaves(tuple(statics.values())):
        x = x.stacked if examples.owns(x) else x
        if isinstance(x, Value) and not x.level.is_derivative:
            operand = x.join(operand)
    return operand


def one_by_one(call: BatchedCall) -> Any:
    """Any operation: for each example by itself."""
    examples = call.examples

    def example(i: int) -> Any:
        pairs = zip(call.operands, call.mapped, strict=True)
        statics = tree_map(
            lambda x: _one(x, i) if examples.owns(x) else x, dict(call.statics)
        )
        return call.function(*(x[i] if m else x for x, m in pairs), **statics)

    if not examples.size:
        raise ShapeError(
            "vmap: there are no examples, and this operation is computed one by one, "
            "so that the form of its result is not known. Give at least one example."
        )
    results = [example(i) for i in range(examples.size)]
    return tree_map(lambda *parts: stack(parts), *results)


def _one(x: Any, i: int) -> Any:
    return x.stacked[i] if x.mapped else x.stacked


def elementwise(call: BatchedCall) -> Any:
    """An operation of each element, or one that broadcasts its operands' leading axes.

    Batched arguments that are not operands, as the condition of ``where``, take part.
    """
    owns, statics = call.examples.owns, call.statics
    extra = {k: x for k, x in statics.items() if owns(x)}
    ndim = max([*call.ndims(), *(len(_shape(x)) for x in statics.values())])
    pairs = zip(call.operands, call.mapped, strict=True)
    operands = [aligned(x, m, ndim) for x, m in pairs]
    extra = {k: aligned(x.stacked, x.mapped, ndim) for k, x in extra.items()}
    return call.run(*operands, **extra)


def direct(call: BatchedCall) -> Any:
    """An operation that has any number of leading axes already."""
    return call.run(*call.operands)


def axes_behind(axis: Any, ndim: int) -> Any:
    """Axes of one example, counted behind the axis of the examples."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    if hasattr(axis, "__iter__"):
        return tuple(axis_of(a, ndim) + 1 for a in axis)
    return axis_of(axis, ndim) + 1


def along(default: Any) -> BatchingRule:
    """An operation of one operand along its argument ``axis``."""

    def batching_rule(call: BatchedCall) -> Any:
        axis = axes_behind(call.static("axis", default), call.ndims()[0])
        return call.run(*call.operands, axis=axis)

    return batching_rule


def _roll(call: BatchedCall) -> Any:
    (x,), axis = call.operands, call.static("axis")
    if axis is not None:
        return call.run(x, axis=axes_behind(axis, call.ndims()[0]))
    shift = call.static("shift")
    several = getattr(shift, "shape", isinstance(shift, list | tuple))
    total = sum(shift) if several else shift
    return call.run(x.reshape(len(x), -1), shift=total, axis=1).reshape(x.shape)


def _reshape(call: BatchedCall) -> Any:
    (x,), shape = call.operands, call.static("shape")
    shape = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    if -1 in shape:
        known = -math.prod(shape)
        rest = math.prod(x.shape[1:]) // known if known else 0
        shape = tuple(rest if n == -1 else n for n in shape)
    return call.run(x, shape=(x.shape[0], *shape))


def _permute_dims(call: BatchedCall) -> Any:
    ndim, axes = call.ndims()[0], call.static("axes")
    behind = axes_behind(range(ndim)[::-1] if axes is None else axes, ndim)
    return call.run(*call.operands, axes=(0, *behind))


def _expand_dims(call: BatchedCall) -> Any:
    axis = call.static("axis")
    axes = tuple(axis) if hasattr(axis, "__iter__") else (axis,)
    return call.run(*call.operands, axis=axes_behind(axes, call.ndims()[0] + len(axes)))


def _squeeze(call: BatchedCall) -> Any:
    (x,), axis = call.operands, call.static("axis")
    if axis is None:
        axis = [i for i, n in enumerate(x.shape[1:]) if n == 1]
    return call.run(x, axis=axes_behind(axis, call.ndims()[0]))


def _broadcast_to(call: BatchedCall) -> Any:
    shape = call.static("shape")
    return call.spread(0, tuple(shape) if hasattr(shape, "__iter__") else (shape,))


def _concat(call: BatchedCall) -> Any:
    operands = [call.spread(i) for i in range(len(call.operands))]
    return call.run(*operands, axis=axes_behind(call.static("axis"), call.ndims()[0]))


def _stack(call: BatchedCall) -> Any:
    operands = [call.spread(i) for i in range(len(call.operands))]
    axis = axes_behind(call.static("axis"), call.ndims()[0] + 1)
    return call.run(*operands, axis=axis)


def _matrices(call: BatchedCall) -> Any:
    """An operation of the last two axes; of vectors one by one."""
    return direct(call) if call.ndims()[0] >= 2 else one_by_one(call)


def _tile(call: BatchedCall) -> Any:
    (x,), reps = call.operands, call.static("reps")
    reps = tuple(reps) if hasattr(reps, "__iter__") else (reps,)
    ndim = call.ndims()[0]
    reps = (1,) * (ndim - len(reps)) + reps
    return call.run(aligned(x, True, len(reps)), reps=(1, *reps))


def _pad(call: BatchedCall) -> Any:
    return call.run(*call.operands, widths=[(0, 0), *call.static("widths")])


def _linspace(call: BatchedCall) -> Any:
    pairs = zip(call.operands, call.mapped, strict=True)
    ndim = max(call.ndims())
    operands = [aligned(x, m, ndim) for x, m in pairs]
    return call.run(*operands, axis=axes_behind(call.static("axis"), ndim + 1))


def reorder(call: BatchedCall) -> Any:
    """Elements of each example in an order of its own, or in one for all."""
    order, ndim = call.static("order"), call.ndims()[0]
    order = order.stacked if call.examples.owns(order) else order[None]
    return call.run(
        call.spread(0), order=order, axis=axes_behind(call.static("axis"), ndim)
    )


def _matmul(call: BatchedCall) -> Any:
    (x, y), (n, m) = call.operands, call.ndims()
    both = call.mapped[0] and call.mapped[1]
    if not both:
        if call.mapped[0] and m <= 2 and (n == 1 or m == 1):
            return call.run(x, y)
        if call.mapped[0] and m == 2:  # one product, not one for each example
            z = call.run(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), y)
            return z.reshape((*x.shape[:-1], y.shape[-1]))
        if call.mapped[1] and m == 1 and n <= 2:
            return call.run(y, x if n == 1 else x.mT)
    x = x[..., None, :] if n == 1 else x
    y = y[..., None] if m == 1 else y
    ndim = max(n, m, 2)
    z = call.run(aligned(x, call.mapped[0], ndim), aligned(y, call.mapped[1], ndim))
    z = z[..., 0] if m == 1 else z
    return (z[..., 0] if m == 1 else z[..., 0, :]) if n == 1 else z


def _einsum(call: BatchedCall) -> Any:
    terms = call.static("terms")
    letter = next(c for c in "zyxwvutsrqponmlkjihgfedcbaZYX" if c not in "".join(terms))
    x, y = (letter * m + t for m, t in zip(call.mapped, terms, strict=False))
    return call.run(*call.operands, terms=(x, y, letter + terms[2]))


def _tensordot(call: BatchedCall) -> Any:
    """As ``einsum``, with letters for the axes."""
    n, m = call.ndims()
    of_x, of_y = _pairs(call.static("axes"), n, m)
    letters = iter("abcdefghijklmnopqrstuvwxyABCDEFGHIJKLMNOPQRSTUVWXYZ")
    x = [next(letters) for _ in range(n)]
    y = [x[of_x[of_y.index(j)]] if j in of_y else next(letters) for j in range(m)]
    out = [c for i, c in enumerate(x) if i not in of_x]
    out += [c for j, c in enumerate(y) if j not in of_y]
    terms = tuple(map("".join, (x, y, out)))
    einsum: Any = find_operation("einsum")
    statics = {"terms": terms}
    return _einsum(
        BatchedCall(call.examples, einsum.function, call.operands, call.mapped, statics)
    )


def _pairs(axes: Any, n: int, m: int) -> tuple[list[int], list[int]]:
    """Which axes of two operands are summed together, counted from 0."""
    if not hasattr(axes, "__iter__"):
        return list(range(n - axes, n)), list(range(axes))
    of_x, of_y = (a if hasattr(a, "__iter__") else (a,) for a in axes)
    return [axis_of(a, n) for a in of_x], [axis_of(b, m) for b in of_y]


def _solve(call: BatchedCall) -> Any:
    """Equations with matrices a; for one matrix, all right-hand sides together."""
    (a, b), (n, m) = call.operands, call.ndims()
    vector = m == 1
    if vector:
        b, m = b[..., None], 2
    if not call.mapped[0] and n == m == 2:
        columns = moveaxis(b, 0, 1)
        z = call.run(a, columns.reshape(b.shape[1], b.shape[0] * b.shape[2]))
        z = moveaxis(z.reshape(columns.shape), 1, 0)
    else:
        ndim = max(n, m)
        z = call.run(aligned(a, call.mapped[0], ndim), aligned(b, call.mapped[1], ndim))
    return z[..., 0] if vector else z


# How operations are computed, by their names; those that index are in indexing_rules.
BATCHING_RULES: dict[str, BatchingRule] = {
    name: batching_rule
    for names, batching_rule in {
        "conj real imag where astype to_device ldexp cross vecdot frechet": elementwise,
        "cholesky qr eigvalsh eigh eigvals eig svdvals svd inv pinv det cofactors "
        "slogdet expm matrix_transpose": direct,
        "sum mean max min prod logsumexp var flip": along(None),
        "cumsum cumprod cummax cummin softmax log_softmax repeat vector_norm unwrap "
        "fft ifft rfft irfft": along(-1),
        "tril triu": _matrices,
        "solve solve_triangular": _solve,
        "roll": _roll,
        "reshape": _reshape,
        "permute_dims": _permute_dims,
        "expand_dims": _expand_dims,
        "squeeze": _squeeze,
        "broadcast_to": _broadcast_to,
        "concat": _concat,
        "stack": _stack,
        "tile": _tile,
        "pad": _pad,
        "linspace": _linspace,
        "reorder": reorder,
        "matmul": _matmul,
        "einsum": _einsum,
        "tensordot": _tensordot,
    }.items()
    for name in names.split()
}
