"""The start of a rule of several operands on eager tensors, in few steps."""

from functools import partial
from typing import Any

import numpy as np

from lantern.core.operation import operation_of
from lantern.core.value import UNTRACKED, base
from lantern.eager.grad_mode import is_enabled
from lantern.eager.recorder import AMBIENT, STANDIN
from lantern.errors import EagerError
from lantern.torch.tensor.batches import beside, mappings, of_all_examples
from lantern.torch.tensor.dtypes import I64, is_half, type_name
from lantern.torch.tensor.error_messages import together
from lantern.torch.tensor.halves import in_single
from lantern.torch.tensor.tensor import fresh, numpy_face, start, torch_face


def in_singles(function: Any) -> Any:
    """A function of tensors that computes halves in float32."""
    return partial(in_single, function)


def fused(function: Any, halves: Any = in_singles) -> Any:
    """A function of tensors, from one of Lantern's operations of several operands.

    An operand may be None. What the operation takes besides is named. A linear one has
    one operand.

    Args:
        function: the operation.
        halves: what makes, of the result, a function for operands of 16 bits; None if
            the operation takes them as they are.
    """
    rule = function.rule
    forgets = operation_of(rule).kind == "linear"

    def operate(*operands: Any, **statics: Any) -> Any:
        if statics and mappings():
            first = beside(numpy_face(operands[0]), statics)
            operands = (torch_face(first), *operands[1:])
        arrays: list[Any] = []
        receivers: list[Any] = []
        last = 0
        for x in operands:
            array = receiver = None
            if x is not None:
                array, level = x.primal, x.level
                if level is AMBIENT:
                    receiver, last = x.receiver, len(arrays) + 1
                elif level is not UNTRACKED:
                    return torch_face(function(*map(numpy_face, operands), **statics))
            arrays.append(array)
            receivers.append(receiver)
        kind = arrays[0].dtype
        if kind.itemsize == 2 and of_halves is not None and is_half(kind):
            return of_halves(*operands, **statics)
        try:
            if not last or not is_enabled():
                return fresh(next(rule(*arrays, **statics)))
            begun = rule(*arrays, **statics)
            if forgets:  # the way back needs no operand
                arrays[0] = STANDIN
            left, right = receivers[0], receivers[1] if last == 2 else None
            if last > 2:
                left = tuple(receivers[:last])
            return start(begun, rule, arrays, left, right, 0, statics, forgets)
        except TypeError as error:
            return operate(*together(error, *operands), **statics)

    operate.__name__ = operate.__qualname__ = rule.__name__.strip("_")
    operate.__doc__ = rule.__doc__
    of_halves = halves and halves(operate)
    operate.operation = function  # type: ignore[attr-defined]  # functions take them
    return operate


def same_types(x: Any, y: Any) -> None:
    """Raise, in PyTorch's words, if two operands of a product differ in type."""
    a, b = base(x).dtype, base(y).dtype
    if a is not b and a != b:
        raise EagerError(
            f"mat1 and mat2 must have the same dtype, but got {type_name(a)} and "
            f"{type_name(b)}"
        )


def inside(index: Any, n: int) -> bool:
    """Whether an array of integers names places from 0 to below n only."""
    if type(index) is not np.ndarray:
        index = of_all_examples(index)
    if index.size == 1:
        return 0 <= index.item() < n
    # Seen as unsigned, negative ones are too large.
    unsigned = (index if index.dtype is I64 else index.astype(I64)).view(np.uint64)
    if type(unsigned) is np.ndarray:
        # NumPy takes a fourth of the time to find the place of the largest.
        return not index.size or unsigned.item(unsigned.argmax()) < n
    return not index.size or bool(unsigned.max() < n)
