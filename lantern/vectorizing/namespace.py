"""The functions that compute on batched values: a namespace beside NumPy's.

What has a rule comes from ``lantern``. What compares, counts, rounds or makes constants
is computed here, on the plain arrays of all examples.
"""

import sys
from functools import partial
from operator import attrgetter
from typing import Any

from lantern.core.contribution import Masked
from lantern.core.dispatch import from_lists
from lantern.core.namespace import common_namespace
from lantern.core.numpy_protocols import find_operation, works_on_plain_values
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import Value, base
from lantern.errors import BatchedValueError
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.backend.numpy_namespace import (
    ignore_fp_warnings as ignore_fp_warnings,
)
from lantern.tensor.ops.zero_derivative import __all__ as zero_derivative
from lantern.tensor.ops.zero_derivative import check_out
from lantern.vectorizing import batching_rules
from lantern.vectorizing.batching_rules import BatchedCall

__all__ = ["library"]

select = Masked

# What these take behind the array.
_NUMBERING: dict[str, tuple[str, ...]] = {
    "argmax": ("axis",),
    "argmin": ("axis",),
    "nanargmax": ("axis",),
    "nanargmin": ("axis",),
    "argsort": ("axis", "kind"),
    "argpartition": ("kth", "axis"),
}
_COUNTING = dict.fromkeys(("all", "any", "count_nonzero"), ("axis",))
_ELEMENTWISE = frozenset(
    ("around fix isclose iscomplex isneginf isposinf isreal nan_to_num round").split()
)
# Functions whose result has a size that depends on values.
REFUSED = frozenset(
    (
        "argwhere compress extract flatnonzero intersect1d nonzero setdiff1d setxor1d "
        "trim_zeros union1d unique unique_all unique_counts unique_inverse "
        "unique_values"
    ).split()
)
# What functions of Lantern ask of a namespace where the derivative is zero.
_ASKED_FOR_CONSTANTS = frozenset(
    "angle copysign heaviside histogram histogram_bin_edges histogramdd nan_to_num "
    "bincount linalg.lstsq linalg.matrix_rank".split()
)
# What is said of the form of one example alone.
_ABOUT = frozenset(
    "can_cast common_type iscomplexobj isrealobj ndim result_type shape size".split()
)


def __getattr__(name: str) -> Any:
    """The function of a name, for batched values."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "matrix_rank":
        return linalg.matrix_rank
    if name in REFUSED:
        return partial(_by_values, name)
    if name in _ABOUT:
        return partial(_about, name)
    found = getattr(sys.modules["lantern"], name, None)
    rule = find_operation(name)
    if (
        works_on_plain_values(name)
        or name in _ASKED_FOR_CONSTANTS
        or name in zero_derivative
        or (rule is not None and rule.kind == "constant")
    ):
        return partial(constant, name)
    if found is not None:
        return found
    found = getattr(numpy_namespace.module, name, None)
    if found is None:
        raise AttributeError(f"batched values have no function {name!r}")
    plain = isinstance(found, type) or not callable(found)
    return found if plain else partial(constant, name)


def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    """The slices that a condition chooses, the same ones of each example."""
    if _is_value(base(condition)):
        return _by_values("compress", condition, a, axis)
    return sys.modules["lantern"].compress(condition, a, axis)


def extract(condition: Any, arr: Any) -> Any:
    """The elements that a condition chooses, the same ones of each example."""
    if _is_value(base(condition)):
        return _by_values("extract", condition, arr)
    return sys.modules["lantern"].extract(condition, arr)


def _by_values(name: str, *args: Any, **kwargs: Any) -> Any:
    return _level([args, kwargs]).by_values(name, args, kwargs)


def _level(tree: Any) -> Any:
    """The innermost level of examples among the leaves of a structure."""
    found = (x.level for x in map(base, tree_leaves(tree)) if _is_value(x))
    return max(found, key=attrgetter("depth"))


def _about(name: str, *args: Any, **kwargs: Any) -> Any:
    plain = tree_map(_form, tree_map(base, args))
    return getattr(numpy_namespace, name)(*plain, **kwargs)


def _form(x: Any) -> Any:
    """An array in the form of one example."""
    if not _is_value(x):
        return x
    return numpy_namespace.broadcast_to(numpy_namespace.zeros((), x.dtype), x.shape)


def _is_value(x: Any) -> bool:
    return isinstance(x, Value)


def constant(name: str, *args: Any, **kwargs: Any) -> Any:
    """A function with derivative zero, on the plain arrays of all examples."""
    check_out(name, args, kwargs)
    args, kwargs = tree_map(base, args), tree_map(base, kwargs)
    if not any(map(_is_value, tree_leaves([args, kwargs]))):
        return _plainly(name, *args, **kwargs)
    check_out(name, args, kwargs, mapped=True)
    names = _NUMBERING.get(name) or _COUNTING.get(name)
    if names:
        args, kwargs = args[:1], dict(zip(names, args[1:], strict=False)) | kwargs
    examples, batching = _level([args, kwargs]), _batching_rule_of(name)
    if batching is batching_rules.elementwise:
        args = tuple(map(from_lists, args))
    if (
        batching is batching_rules.one_by_one
    ):  # wherever the batched ones are among these
        every = {"args": args, "kwargs": kwargs}
        return examples.compute(batching, partial(_call, name), (), every)
    return examples.compute(batching, partial(_plainly, name), args, kwargs)


def each(function: Any, *operands: Any) -> Any:
    """A function of each element with derivative zero, for all examples at once."""
    batching = batching_rules.elementwise
    operands = tuple(map(from_lists, operands))
    return _level(operands).compute(batching, function, operands, {})


def scipys(name: str, part: str = "special") -> Any:
    """SciPy's function of each element by its name, with derivative zero."""

    def function(*operands: Any) -> Any:
        return common_namespace(*operands).scipys(name, part)(*operands)

    return partial(each, function)


def _call(name: str, args: Any, kwargs: Any) -> Any:
    return _plainly(name, *args, **kwargs)


def _batching_rule_of(name: str) -> batching_rules.BatchingRule:
    """How a function is computed for all examples at once."""
    if name in _NUMBERING:
        return partial(_numbering, -1 if name in ("argsort", "argpartition") else None)
    if name in _COUNTING:
        return batching_rules.along(None)
    function = getattr(numpy_namespace.module, name, None)  # none behind "linalg."
    ufunc = type(function) is numpy_namespace.ufunc
    if ufunc or name in _ELEMENTWISE:
        return batching_rules.elementwise
    return batching_rules.one_by_one


def _plainly(name: str, *args: Any, **kwargs: Any) -> Any:
    """A function of an array library, on plain arrays."""
    plain = tree_map(base, args)
    return attrgetter(name)(array_namespace(*plain))(*plain, **kwargs)


def _numbering(default: int | None, call: BatchedCall) -> Any:
    """What says where along an axis; None: where in the flat array."""
    (x,), axis = call.operands, call.static("axis", default)
    ndim = len(x.shape) - 1
    if axis is None:
        z = call.run(x.reshape(len(x), -1), axis=1)
        return z.reshape(len(x), *[1] * ndim) if call.static("keepdims") else z
    return call.run(x, axis=batching_rules.axes_behind(axis, ndim))


def library(x: Any) -> Any:
    """The library of the arrays of all examples."""
    x = base(x)
    while isinstance(x, Value):
        batched: Any = x
        if batched.library is not None:
            return batched.library
        x = base(batched.stacked)
    return array_namespace(x)


class _LinearAlgebra:
    """The functions of linear algebra."""

    def __getattr__(self, name: str) -> Any:
        if f"linalg.{name}" in _ASKED_FOR_CONSTANTS:
            return partial(constant, f"linalg.{name}")
        ours = getattr(sys.modules["lantern"].linalg, name, None)
        return getattr(numpy_namespace.linalg, name) if ours is None else ours

    def matrix_power(self, a: Any, n: int) -> Any:
        """A power of matrices; with exponent 0 a constant."""
        if n == 0:
            return constant("linalg.matrix_power", a, 0)
        return sys.modules["lantern"].linalg.matrix_power(a, n)

    def norm(self, x: Any, ord: Any = None, *args: Any, **options: Any) -> Any:
        """The norm of vectors or matrices; of order 0 a constant."""
        if isinstance(ord, int | float) and ord == 0:
            return constant("linalg.norm", x, ord, *args, **options)
        return sys.modules["lantern"].linalg.norm(x, ord, *args, **options)


linalg = _LinearAlgebra()


def real_if_close(x: Any, tol: float = 100) -> Any:
    """A real array; whether a complex one is real would differ between the examples."""
    if x.dtype.kind == "c":
        raise BatchedValueError(
            "real_if_close: inside vmap the examples would have different types. Use "
            "lantern.real where you know that they are real."
        )
    return x


def zeros_like(x: Any, dtype: Any = None, **_: Any) -> Any:
    """A plain array of zeros in the form of one example."""
    return library(x).zeros(x.shape, dtype=x.dtype if dtype is None else dtype)


def ones_like(x: Any, dtype: Any = None, **_: Any) -> Any:
    """A plain array of ones in the form of one example."""
    return library(x).ones(x.shape, dtype=x.dtype if dtype is None else dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, *_: Any, **__: Any) -> Any:
    """A plain array of one number in the form of one example."""
    return library(x).full(x.shape, fill_value, x.dtype if dtype is None else dtype)


empty_like = zeros_like


def asarray(x: Any, dtype: Any = None, **_: Any) -> Any:
    """A batched value as it is; plain numbers as an array."""
    if not _is_value(x):
        return array_namespace(x).asarray(x, dtype=dtype)
    return x if dtype is None or x.dtype == dtype else astype(x, dtype)


def array(x: Any, dtype: Any = None, **_: Any) -> Any:
    """A batched value, which never changes; plain numbers as an array of their own."""
    if _is_value(x):
        return asarray(x, dtype)
    return array_namespace(x).array(x, dtype=dtype)


def astype(x: Any, dtype: Any, *, copy: bool = True) -> Any:
    """The elements in another type; whole numbers are constants."""
    if not _is_value(x):
        return array_namespace(x).astype(x, dtype, copy=copy)
    if numpy_namespace.dtype(dtype).kind not in "iub":
        return sys.modules["lantern"].astype(x, dtype, copy=copy)
    x = base(x)
    return x.level.compute(
        batching_rules.elementwise, lambda z: base(z).astype(dtype), (x,), {}
    )


def device(x: Any) -> str:
    """The name of the device that the arrays of all examples lie on."""
    while isinstance(x, Value):
        x = base(x.stacked)  # type: ignore[attr-defined]  # a batched one
    return str(array_namespace(x).device(x))
