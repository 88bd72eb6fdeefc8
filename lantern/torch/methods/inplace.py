"""Writing to a tensor in place: its memory, its versions, and its derivative.

What is not tracked is written to memory, and remembered as written: a rule that saved
the memory before says so on the way back. A tracked operation computes from a copy, and
gives the tensor the new rule. If the tensor is a view, its base gets a rule that puts
the new part in.
"""

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.core.dispatch import register_rule
from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves
from lantern.core.value import UNTRACKED, Rule, Value, unwrapped
from lantern.eager.grad_mode import is_enabled
from lantern.eager.recorder import AMBIENT, NumpyFace
from lantern.eager.versions import owner, written
from lantern.engines import gpu
from lantern.errors import ArgumentError, EagerError
from lantern.rules.special import passed
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.tensor.ops import at
from lantern.tensor.ops.indexing import plain_getitem as read
from lantern.tensor.ops.shape import permute_dims
from lantern.tensor.ops.shape import reshape as reshaped
from lantern.torch.functions.comparison import tracked_like
from lantern.torch.functions.copies_splits import as_strided
from lantern.torch.functions.elementwise import functions, scaled
from lantern.torch.functions.indexing import (
    getitem,
    numbers_apart,
    plain_index,
    put,
)
from lantern.torch.methods.functional_inplace import check_fit, replaced
from lantern.torch.tables import documented, in_place_example, parameters, takes
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.detaching import in_transform, is_recorded, lost_in_memory
from lantern.torch.tensor.devices import beside
from lantern.torch.tensor.dtypes import F32, F64, INEXACT, fitting
from lantern.torch.tensor.dtypes import type_name as type_name
from lantern.torch.tensor.gradients import rebind, set_data
from lantern.torch.tensor.operators import (
    cast,
    in_memory,
    mismatch,
    tracked_views,
    views_of,
)
from lantern.torch.tensor.tensor import (
    UNSEEN,
    Tensor,
    fresh,
    make,
    numpy_face,
    start,
    torch_face,
)
from lantern.torch.tensor.view_memory import ALL, Window, lies, place, window
from lantern.torch.tensor.views import is_shared

REPEATED = (
    "unsupported operation: more than one element of the written-to tensor refers to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def refuse_leaf(x: Tensor, part: bool = False) -> None:
    """Raise if a tracked leaf, or a part of one, is about to be written to."""
    if not is_enabled():
        return
    viewed = x.viewed
    for leaf, what in ((x, "a view of a" if part else "a"), (viewed, "a view of a")):
        if isinstance(leaf, Tensor) and leaf.level is AMBIENT and leaf.is_leaf:
            raise EagerError(
                f"{what} leaf Variable that requires grad is being used in an in-place "
                f"operation."
            )
    if (
        isinstance(viewed, Tensor)
        and viewed.level is AMBIENT
        and x.level is UNTRACKED
        and base(x).dtype.kind in INEXACT
    ):
        raise EagerError(
            "A view was created in no_grad mode and is being modified inplace with "
            "grad mode enabled: what it shows has a derivative, and it has none. Make "
            "both the view and the change inside of the no_grad block, or both outside."
        )


def refuse_repeated(array: Any) -> None:
    """Raise if an array shows an element more than once: NumPy makes it read-only."""
    if type(array) is np.ndarray and not array.flags.writeable:
        raise EagerError(REPEATED)


def store(x: Tensor, plain: Any, casting: str = "same_kind") -> None:
    """Write a plain array to the memory of a tensor."""
    array = in_memory(x)
    refuse_repeated(array)
    shape = getattr(plain, "shape", ())
    if casting != "unsafe":
        check_fit(getattr(plain, "dtype", array.dtype), shape, array)
    try:
        array[...] = plain
    except ValueError:
        raise EagerError(
            f"The size of tensor a {list(array.shape)} must match the size of tensor b "
            f"{list(shape)}"
        ) from None
    if x.viewed is not UNSEEN:
        written(array)


def write(
    x: Tensor,
    function: Callable[..., Any],
    *args: Any,
    casting: str = "same_kind",
    **options: Any,
) -> Tensor:
    """Give a tensor the value of a function of it and more, in its own memory.

    Args:
        x: what is written to; the function's first argument.
        function: an operation on tensors.
        args: its other arguments.
        casting: "unsafe" lets floating-point results become integers.
        options: its keyword arguments.
    """
    refuse_leaf(x)
    if in_transform(x, *args, *options.values()):
        if x.viewed is UNSEEN:
            raise lost_in_memory()
        return replaced(x, function(x, *args, **options), casting)
    if not is_recorded(x, *args, *options.values()):
        z = function(fresh(x.primal), *args, **options)
        store(x, base(z), casting)
        return x
    array = in_memory(x)
    before = make(array.copy(), x.level, x.receiver)
    args = tuple(before if y is x else y for y in args)
    z = function(before, *args, **options)
    store(x, base(z), casting)
    if base(z).shape != array.shape:
        z = z.expand(array.shape)
    z = cast(z, array.dtype)
    written(array, tracked=True)
    return taken(x, z)


def taken(x: Tensor, z: Tensor) -> Tensor:
    """Let a tensor, to whose memory a value has been written, follow from that."""
    viewed = x.viewed
    if z.level is not AMBIENT and in_transform(x, z):
        return replaced(x, z)
    if isinstance(viewed, Tensor):
        _rebase(x, viewed, z)
    else:
        rebind(x, z)
        if getattr(x.receiver, "memory", 0):  # of a value whose memory is free again
            x.receiver.memory = 0
    _follow(x if viewed is None else viewed, x)
    return x


def _follow(whole: Any, x: Tensor) -> None:
    """Let views be parts of their base's value."""
    if whole is UNSEEN:
        return
    found = [weak() for weak in list(views_of(whole).values())]
    for view in [*found, *tracked_views(whole)]:
        if view is None:
            continue
        if view is not x and base(view).dtype.kind in INEXACT:
            rebind(view, _part(view, whole, lies(view, whole)))
            view.receiver.memory = id(owner(view.primal))


def _part(view: Tensor, whole: Tensor, where: Any) -> Any:
    """The value of a view, as a part of its base's."""
    shape, value = view.primal.shape, numpy_face(whole)
    if where is ALL:
        return reshaped(value, shape)
    if isinstance(where, Window):
        found = permute_dims(read(value, index=where.parts), axes=where.order)
        return reshaped(found, shape)
    return reshaped(read(reshaped(value, (-1,)), index=where), shape)


def _with_part(view: Tensor, whole: Tensor, where: Any, z: Any) -> Any:
    """The value of a base, after a view of it has got another one."""
    value, shape = numpy_face(whole), in_memory(whole).shape
    if where is ALL:
        if z.level is AMBIENT:
            return reshaped(z, shape)
        # of a constant, so that the base stays tracked
        where = window(view, whole) or place(view, whole)
    if isinstance(where, Window):
        back = tuple(map(where.order.index, range(len(where.order))))
        turned = permute_dims(reshaped(z, where.shape), axes=back)
        return at.plain_put(value, turned, index=where.parts)
    if where.size > np.unique(where).size:
        raise EagerError(REPEATED)
    flat = reshaped(value, (-1,))
    return reshaped(at.plain_put(flat, reshaped(z, (-1,)), index=where), shape)


def _rebase(x: Tensor, viewed: Tensor, z: Tensor) -> None:
    """Let the base of a view, and the view, follow from the view's new value."""
    where = lies(x, viewed)
    rebind(viewed, _with_part(x, viewed, where, numpy_face(z)))
    part = _part(x, viewed, where)
    assert isinstance(part, NumpyFace)
    rebind(x, part)
    x.receiver.memory = id(owner(x.primal))


def delitem(self: Tensor, index: Any) -> None:
    """An error: a tensor keeps its length."""
    raise ArgumentError("Tensor does not support deleting items")


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """``self[index] = value``."""
    index, basic = plain_index(index)
    refuse_leaf(self, part=True)
    apart = None if basic else numbers_apart(index)
    if apart is not None:
        return setitem(getitem(self, apart[0]), apart[1], value)
    array = in_memory(self)
    if type(value) in (float, complex) and array.dtype.kind in "iu":
        value = fitting(value, array.dtype)  # NumPy makes some number of nan
    tracked = is_recorded(self, value) or in_transform(self, value)
    try:
        if tracked:
            if not _is_there(value, array, index):
                write(self, _put_at, index, value)
            return
        plain = base(value)
        array[index] = plain
    except OverflowError:
        if type(value) is not int:
            raise
        return setitem(self, index, fitting(value, array.dtype))
    except (TypeError, ValueError) as refused:
        if isinstance(value, Tensor) and value.device != self.device:
            return setitem(self, index, value.to(self.device))
        masked = "boolean array indexing assignment" in str(refused)
        if tracked or (isinstance(refused, TypeError) and not masked):
            raise
        array, index = _alone(array, index)
        if isinstance(value, list | tuple):
            plain = value = np.asarray(value)
        try:
            _put_plain(array, index, plain)
        except (TypeError, ValueError) as error:
            chosen = fresh(array[index])
            if basic or not isinstance(value, Tensor):
                raise mismatch(None, value, chosen, error) from None
            raise EagerError(
                f"shape mismatch: value tensor of shape {list(base(value).shape)} "
                f"cannot be broadcast to indexing result of shape {list(chosen.shape)}"
            ) from None
    if self.viewed is not UNSEEN:
        written(array)


def _is_there(value: Any, array: Any, index: Any) -> bool:
    """Whether a part has its value already: ``x[i] += y`` ends in ``x[i] = x[i]``."""
    if not isinstance(value, Tensor) or not isinstance(value.viewed, Tensor):
        return False
    a, b = array[index], value.primal
    return (
        type(a) is np.ndarray
        and type(b) is np.ndarray
        and a.ctypes.data == b.ctypes.data
        and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)
    )


def _alone(array: Any, index: Any) -> Any:
    """What is to be written to; of expanded memory a part that shows none twice."""
    if type(array) is not np.ndarray or array.flags.writeable:
        return array, index
    parts = index if type(index) is tuple else (index,)
    if not any(part is ... for part in parts):
        parts = (*parts, ...)  # of one element a view, too
    part = array[parts]
    repeats = any(
        n > 1 and not s for n, s in zip(part.shape, part.strides, strict=True)
    )
    if repeats or not np.may_share_memory(part, array):
        raise EagerError(REPEATED)
    return _writable(part), (...,)


def _put_plain(array: Any, index: Any, plain: Any) -> None:
    """As NumPy's assignment, dropping leading axes of length 1."""
    plain = np.asarray(plain) if isinstance(plain, int | float | complex) else plain
    while plain.ndim > array[index].ndim and plain.shape[0] == 1:
        plain = plain[0]
    array[index] = plain


def _put_at(x: Tensor, index: Any, value: Any) -> Any:
    return put(x, index, value)


def _operator(name: str) -> Any:
    """``x op= y``: with one call of NumPy where nothing is tracked."""
    function = getattr(operator, f"__{name}__")
    direct = getattr(operator, f"__i{name}__")

    def operate(x: Tensor, y: Any) -> Any:
        other = y
        tracked = x.level is not UNTRACKED
        if isinstance(y, Tensor):
            other = y.primal
            tracked = tracked or y.level is not UNTRACKED
        elif type(y) is not float and isinstance(y, Value):
            other = y = unwrapped(y)
            tracked = tracked or isinstance(y, Value)
        array = x.primal
        if (
            (tracked and (is_enabled() or in_transform(x, y)))
            or (type(x.viewed) is Tensor and x.viewed.level is AMBIENT and is_enabled())
            or type(array) not in buffers
            or array.dtype.kind != "f"
            or isinstance(other, complex)
            or getattr(getattr(other, "dtype", None), "kind", "f") == "c"
        ):
            return write(x, function, y)
        try:
            direct(array, other)
        except TypeError:  # of what lies on another device
            return write(x, function, y)
        except ValueError as error:
            refuse_repeated(array)
            raise _grown(x, y, error) from None
        if x.viewed is not UNSEEN:
            written(array)
        return x

    operate.__name__ = f"__i{name}__"
    return operate


def _grown(x: Any, y: Any, error: Exception) -> EagerError:
    a, b = base(x).shape, np.shape(base(y))
    try:
        both = np.broadcast_shapes(a, b)
    except ValueError:
        return mismatch(None, x, y, error)
    return EagerError(
        f"output with shape {list(a)} doesn't match the broadcast shape {list(both)}"
    )


OPERATORS = {
    f"__i{name}__": _operator(name)
    for name in "add sub mul truediv mod pow floordiv lshift rshift and or xor".split()
}


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Take the values of another tensor, broadcast and in this one's type.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(2, 2)
        >>> x.copy_(torch.tensor([1, 2]))
        tensor([[1., 2.],
                [1., 2.]])
    """
    return write(self, _taken, src, casting="unsafe")


def _taken(x: Tensor, src: Any) -> Any:
    if isinstance(src, Value):
        src = torch_face(src)
    else:
        src = fresh(beside(np.asarray(src), base(x)))
    if type(base(src)) is not type(base(x)):
        src = src.to(x.device)
    src = cast(src, base(x).dtype)
    if base(src).shape != base(x).shape:
        src = src.expand(base(x).shape)
    return src.clone() if src.requires_grad else tracked_like(fresh(base(src)), x)


def fill_(input: Tensor, value: Any) -> Tensor:
    """Take one value everywhere.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.zeros(2)
        >>> x.fill_(7)
        tensor([7., 7.])
    """
    if is_recorded(input, value) or in_transform(input, value):
        return write(input, _filled, value)
    refuse_leaf(input)
    number = base(unwrapped(value))
    if type(number) is int and base(input).dtype.kind in "iu":
        number = fitting(number, base(input).dtype)
    store(input, beside(number, base(input)), "unsafe")
    return input


def _filled(x: Tensor, value: Any) -> Any:
    return put(x, (...,), value)


def zero_(input: Tensor) -> Tensor:
    """Become 0 everywhere.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> x.zero_()
        tensor([0, 0])
    """
    return fill_(input, 0)


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Show the memory of another tensor, or a part of a storage; of nothing, none.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> x.set_(torch.tensor([3, 4, 5]))
        tensor([3, 4, 5])
        >>> x.set_(torch.arange(6).storage(), 1, (2, 2), (2, 1))
        tensor([[1, 2],
                [3, 4]])
    """
    kind = base(self).dtype
    if source is None:
        source = fresh(np.empty(0, kind))
    elif not isinstance(source, Tensor):
        known = getattr(source, "dtype", self.dtype)
        if known is not self.dtype:
            raise EagerError(
                f"Expected a Storage of type {self.dtype} or an UntypedStorage, but "
                f"got type {known} for argument 1 'storage'"
            )
        source = fresh(source.array.view(kind))
    if base(source).dtype != kind:
        raise EagerError(
            f"Could not set tensor of type {source.dtype} to a tensor of type "
            f"{self.dtype}"
        )
    if size is not None:
        source = as_strided(source, size, stride, storage_offset)
    set_data(self, source)
    return self


# What writes to positions that it reads from other tensors; of these, the values True
# write one value to memory that is shown several times.
_AT_POSITIONS = {
    "index_add": False, "index_copy": False, "index_fill": True, "index_put": True,
    "masked_fill": True, "masked_scatter": False, "put": False, "scatter": False,
    "scatter_add": False,
}  # fmt: skip


def _apart(name: str, function: Any) -> Any:
    """Writing to positions, refused where what is read lies in what is written."""

    def method(input: Tensor, *args: Any, **options: Any) -> Tensor:
        array = in_memory(input)
        for x in tree_leaves((args, options)):
            if isinstance(x, Tensor) and is_shared(x, input):
                raise EagerError(
                    "unsupported operation: some elements of the input tensor and the "
                    "written-to tensor refer to a single memory location. Please "
                    "clone() the tensor before performing the operation."
                )
        shown_once = type(array) is not np.ndarray or array.flags.writeable
        if shown_once or not _AT_POSITIONS[name]:
            return write(input, function, *args, **options)
        warnings.warn(
            f"Use of {name}_ on expanded tensors is deprecated. Please clone() the "
            f"tensor before performing this operation.",
            stacklevel=2,
        )
        before = array.copy()
        after = base(function(fresh(before), *args, **options))
        changed = after != before
        _writable(array)[changed] = after[changed]
        written(array)
        return input

    return method


def _writable(array: Any) -> Any:
    """An array that NumPy lets nobody write to, since it shows elements repeatedly."""
    array = array[...]
    array.flags.writeable = True
    return array


def in_place(name: str, function: Any) -> Any:
    """The method ``x.name_()``, which writes what the function returns."""

    def method(input: Tensor, *args: Any, **options: Any) -> Tensor:
        return write(input, function, *args, **options)

    if name in _AT_POSITIONS:
        method = _apart(name, function)
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"As ``{name}``, in the tensor's own memory."
    takes(method, parameters(function, out=False))
    if name in _EXAMPLES:
        return documented(method, _EXAMPLES[name])
    method.__doc__ += in_place_example(f"{name}_", function)
    return method


def relu_(input: Tensor) -> Tensor:
    """``max(x, 0)``, in the tensor's own memory.

    Gain over ``write``, which keeps a copy and then stores the result: two of three
    passes over memory, and on a GPU two of three kernels.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([-1.0, 2.0])
        >>> x.relu_()
        tensor([0., 2.])
    """
    array = input.primal
    whole = input.viewed is None and type(array) in buffers
    short = whole and array.dtype in (F32, F64) and is_recorded(input)
    if not short or in_transform(input):
        return write(input, functions["relu"])
    refuse_leaf(input)
    refuse_repeated(array)
    written(array, tracked=True)
    return taken(input, start(_relu(array), _relu, (array,), input.receiver, None, 1))


def _relu(x: Any) -> Rule:
    """As ``relu``, in x's memory; of its result again it is the same.

    Rule:
        x_bar = z_bar where z > 0, else 0
    """
    if isinstance(x, Value):
        z = namespace(x).relu(x)
    elif (z := gpu.elementwise.relu(x, x)) is None:
        z = namespace(x).maximum(x, 0, out=x)
    del x
    z_bar = yield z
    x_bar = gpu.elementwise.relu_back(z_bar, z)
    yield passed(z_bar, z) if x_bar is None else x_bar


register_rule(_relu, "elementwise")


def add_(self: Tensor, other: Any, former: Any = None, *, alpha: Any = 1) -> Tensor:
    """Add ``alpha * other``, in the tensor's own memory; formerly alpha came first.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> x.add_(10, alpha=2)
        tensor([21, 22])
    """
    if former is not None:
        alpha, other = other, former
    self += scaled(self, other, alpha)
    return self


def sub_(self: Tensor, other: Any, former: Any = None, *, alpha: Any = 1) -> Tensor:
    """Subtract ``alpha * other``, in its own memory; formerly alpha came first.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([10, 20])
        >>> x.sub_(1, alpha=3)
        tensor([ 7, 17])
    """
    if former is not None:
        alpha, other = other, former
    self -= scaled(self, other, alpha)
    return self


def mul_(self: Tensor, other: Any) -> Tensor:
    """Multiply, in the tensor's own memory.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1, 2])
        >>> x.mul_(10)
        tensor([10, 20])
    """
    self *= other
    return self


METHODS = {f.__name__: f for f in (add_, copy_, fill_, mul_, relu_, set_, sub_, zero_)}
# Of these, the function's example does not show what the method does.
_EXAMPLES = {
    "eq": """As ``eq``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2])
        >>> x.eq_(2)
        tensor([0, 1])
        """,
    "float_power": """As ``float_power``, in the memory of a tensor of double precision.

        >>> x = torch.tensor([1.0, 4.0], dtype=torch.float64)
        >>> x.float_power_(0.5)
        tensor([1., 2.], dtype=torch.float64)
        """,
    "ge": """As ``ge``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2, 3])
        >>> x.ge_(2)
        tensor([0, 1, 1])
        """,
    "greater": """As ``gt``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2, 3])
        >>> x.greater_(2)
        tensor([0, 0, 1])
        """,
    "greater_equal": """As ``ge``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2, 3])
        >>> x.greater_equal_(2)
        tensor([0, 1, 1])
        """,
    "gt": """As ``gt``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2, 3])
        >>> x.gt_(2)
        tensor([0, 0, 1])
        """,
    "le": """As ``le``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2, 3])
        >>> x.le_(2)
        tensor([1, 1, 0])
        """,
    "less": """As ``lt``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2, 3])
        >>> x.less_(2)
        tensor([1, 0, 0])
        """,
    "less_equal": """As ``le``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2, 3])
        >>> x.less_equal_(2)
        tensor([1, 1, 0])
        """,
    "logical_and": """As ``logical_and``, in the tensor's own memory and type.

        >>> x = torch.tensor([0, 1, 2])
        >>> x.logical_and_(torch.tensor([1, 0, 3]))
        tensor([0, 0, 1])
        """,
    "logical_not": """As ``logical_not``, in the tensor's own memory and type.

        >>> x = torch.tensor([0, 1, 2])
        >>> x.logical_not_()
        tensor([1, 0, 0])
        """,
    "logical_or": """As ``logical_or``, in the tensor's own memory and type.

        >>> x = torch.tensor([0, 1, 0])
        >>> x.logical_or_(torch.tensor([1, 0, 0]))
        tensor([1, 1, 0])
        """,
    "logical_xor": """As ``logical_xor``, in the tensor's own memory and type.

        >>> x = torch.tensor([0, 1, 2])
        >>> x.logical_xor_(torch.tensor([1, 0, 3]))
        tensor([1, 1, 0])
        """,
    "lt": """As ``lt``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2, 3])
        >>> x.lt_(2)
        tensor([1, 0, 0])
        """,
    "ne": """As ``ne``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2])
        >>> x.ne_(2)
        tensor([1, 0])
        """,
    "nextafter": """
        >>> x = torch.tensor([0.0, 1.0])
        >>> x.nextafter_(torch.tensor([1.0, 1.0]))
        tensor([1.4013e-45, 1.0000e+00])
        """,
    "not_equal": """As ``ne``, in the tensor's own type: 1 where it holds.

        >>> x = torch.tensor([1, 2])
        >>> x.not_equal_(2)
        tensor([1, 0])
        """,
    "polygamma": """
        >>> x = torch.tensor([1.0, 2.0])
        >>> x.polygamma_(1)
        tensor([1.6449, 0.6449])
        """,
    "true_divide": """
        >>> x = torch.tensor([7.0, -7.0])
        >>> x.true_divide_(2)
        tensor([ 3.5000, -3.5000])
        """,
}
