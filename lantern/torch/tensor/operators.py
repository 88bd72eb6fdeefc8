"""The operators of a tensor, which are the hot path, and how types meet in them."""

import operator
from typing import Any
from weakref import ref

import numpy as np
from numpy.exceptions import AxisError

from lantern.core.operation import operation_of
from lantern.core.value import UNTRACKED, Value, base
from lantern.eager.grad_mode import is_enabled
from lantern.eager.recorder import AMBIENT, NOTHING, STANDIN
from lantern.eager.versions import owner
from lantern.engines import products as engine
from lantern.errors import EagerError, MissingRuleError
from lantern.rules import arithmetic
from lantern.rules.number import Number
from lantern.tensor.backend.gpu_fusion import fusers
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.tensor.ops import products
from lantern.tensor.ops import shape as manipulation
from lantern.torch.tables import parameters, takes
from lantern.torch.tensor import dtypes
from lantern.torch.tensor import scaling as scales
from lantern.torch.tensor.batches import beside, mappings
from lantern.torch.tensor.detaching import in_transform
from lantern.torch.tensor.dtypes import BOOL, F32, F64, I64, INEXACT, is_half, promoted
from lantern.torch.tensor.error_messages import (
    again,
    misuse,
    refuse_zero,
    together,
)
from lantern.torch.tensor.error_messages import mismatch as mismatch
from lantern.torch.tensor.error_messages import refuse_numbers as refuse_numbers
from lantern.torch.tensor.named_results import into
from lantern.torch.tensor.tensor import (
    UNSEEN,
    Tensor,
    fresh,
    numpy_face,
    start,
    torch_face,
    untracked,
)
from lantern.torch.tensor.view_memory import (
    detached,
    moved_away,
    place,
    positions,
    share,
)

__all__ = ["binary", "call", "promote", "unary"]


def as_tensor(x: Any) -> Any:
    """A number or an array as a tensor; None for what is neither."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, np.ndarray | np.generic) or type(x) in buffers:
        return fresh(x)
    if isinstance(x, bool | int | float | complex | Number):
        return x
    return torch_face(x) if isinstance(x, Value) else None


def scalar_type(x: Any) -> Any:
    """The type that a Python number, tracked or not, stands for."""
    x = base(x)
    if isinstance(x, bool):
        return BOOL
    if isinstance(x, int):
        return I64
    return dtypes.default() if isinstance(x, float) else np.dtype(np.complex64)


def result_dtype(*operands: Any) -> Any:
    """NumPy's type of a result of tensors and numbers, by PyTorch's promotion.

    Tensors with axes come before those without, which come before Python's numbers; the
    later only count if they are of a higher kind.
    """
    ranked: list[Any] = [None, None, None]
    found: Any = None
    for x in operands:
        if isinstance(x, Tensor):
            plain = base(x)
            place, kind = (0 if plain.shape else 1), plain.dtype
        else:
            place, kind = 2, scalar_type(x)
        ranked[place] = kind if ranked[place] is None else promoted(ranked[place], kind)
    for kind in ranked:
        if found is None:
            found = kind
        elif kind is not None and dtypes.category(kind) > dtypes.category(found):
            if dtypes.category(kind) == 3 and found is F64:
                kind = np.dtype(np.complex128)
            found = kind
    return found


def cast(x: Any, kind: Any) -> Any:
    """A tensor with elements of one of NumPy's types."""
    plain = base(x)
    if plain.dtype == kind:
        return x
    stopped = not is_enabled() and not in_transform(x)
    if x.level is UNTRACKED or kind.kind not in INEXACT or stopped:
        return fresh(plain.astype(kind))
    return torch_face(manipulation.astype(numpy_face(x), kind))


def as_kind(x: Any, kind: Any) -> Any:
    """A number, or a value of either face, as a tensor of one of NumPy's types."""
    if isinstance(x, Value):
        return cast(torch_face(x), kind)
    return fresh(kind.type(x))


def promote(*operands: Any, floating: bool = False) -> list[Any]:
    """Tensors in the type of their result, and numbers or lists as they are."""
    numbers = (Value, int, float, complex)
    kind = result_dtype(*[x for x in operands if isinstance(x, numbers)])
    if floating and kind.kind in "iub":
        kind = dtypes.default()
    return [cast(x, kind) if isinstance(x, Tensor) else x for x in operands]


def brain_among(*operands: Any) -> Any:
    """NumPy's type of bfloat16, if an operand has it; else None."""
    for x in operands:
        if isinstance(x, Tensor) and (kind := base(x).dtype).kind == "V":
            return kind
    return None


def wider(x: Any, brain: Any) -> Any:
    """An operand as it is computed with: bfloat16 in float32."""
    return cast(x, F32) if isinstance(x, Tensor) and base(x).dtype == brain else x


def _careful(function: Any, floating: bool) -> Any:
    """An operation on tensors of any types, and on numbers."""

    def operate(x: Any, y: Any) -> Any:
        x, y = as_tensor(x), as_tensor(y)
        if x is None or y is None:
            return NotImplemented
        if function is arithmetic.subtract and any(
            isinstance(z, Tensor) and base(z).dtype is BOOL for z in (x, y)
        ):
            raise MissingRuleError(
                "Subtraction, the `-` operator, with a bool tensor is not supported. "
                "If you are trying to invert a mask, use the `~` or `logical_not()` "
                "operator instead."
            )
        if function is not products.matmul:
            x, y = promote(x, y, floating=floating)
            if function is arithmetic.remainder:
                refuse_zero(base(x), base(y))
        elif x.dtype is not y.dtype:
            raise EagerError(
                f"expected m1 and m2 to have the same dtype, but got: {x.dtype} != "
                f"{y.dtype}"
            )
        elif is_half(base(x).dtype):  # sums of halves are taken in float32
            return cast(operate(cast(x, F32), cast(y, F32)), base(x).dtype)
        if brain := brain_among(x, y):
            return cast(operate(*(wider(z, brain) for z in (x, y))), brain)
        try:
            return torch_face(function(numpy_face(x), numpy_face(y)))
        except (ValueError, TypeError, OverflowError) as error:
            return again(operate, function, error, x, y)

    return operate


_SYMBOLS = {
    "add": (arithmetic.add, operator.add),
    "sub": (arithmetic.subtract, operator.sub),
    "mul": (arithmetic.multiply, operator.mul),
    "truediv": (arithmetic.divide, operator.truediv),
    "mod": (arithmetic.remainder, operator.mod),
    "pow": (arithmetic.pow, arithmetic.raised),
    "matmul": (products.matmul, engine.matmul),
}

# The same for large tensors and a number.
_SCALING = {"mul": scales.multiplied, "truediv": scales.divided}


def binary(name: str) -> Any:
    """The method ``x op y``, with no step too many."""
    function, symbol = _SYMBOLS[name]
    rule: Any = function.rule  # type: ignore[attr-defined]  # given by lantern.op
    elementwise = 0 if name == "matmul" else 2
    scaling: Any = getattr(_SCALING.get(name), "rule", None)
    numbers = elementwise and {float, int}
    keeps: Any = NOTHING if name in ("add", "sub") else None
    # A constant factor comes last, so that what it is multiplied by is forgotten.
    turns = name == "mul"
    careful = _careful(function, name == "truediv")

    def operate(x: Any, y: Any) -> Any:
        a, level, left, right = x.primal, x.level, x.receiver, None
        dtype, saved, begin = a.dtype, keeps, rule
        if dtype is not F32 and dtype is not F64:
            return careful(x, y)
        if isinstance(y, Tensor):
            b = y.primal
            if b.dtype is not dtype:
                return careful(x, y)
            other = y.level
            if other is not UNTRACKED:
                if level is UNTRACKED:
                    left, right, level = None, y.receiver, other
                    if turns:
                        a, b, left, right = b, a, right, None
                elif other is level:
                    right = y.receiver
                else:
                    return careful(x, y)
        elif numbers and type(y) in numbers:
            b = y
            if scaling:  # nothing of x is needed on the way back
                saved = (STANDIN, b)
                if a.size >= scales.LEAST and scales.is_scale(b):
                    begin = scaling
        else:
            return careful(x, y)
        try:
            if level is not AMBIENT or not is_enabled():
                if level is UNTRACKED or level is AMBIENT:
                    return untracked(symbol(a, b))
                return careful(x, y)
            restarts = saved is not None
            if not restarts:
                saved = (a, b)
            return start(
                begin(a, b), begin, saved, left, right, elementwise, None, restarts
            )
        except (ValueError, TypeError) as error:
            return again(operate, function, error, x, y)

    operate.__name__ = f"__{name}__"
    return operate


def reflected(name: str) -> Any:
    """The method ``y op x`` for a number y."""
    function, symbol = _SYMBOLS[name]
    rule: Any = function.rule  # type: ignore[attr-defined]  # given by lantern.op
    numbers = name != "matmul" and {float, int}
    forgets = name in ("add", "sub")
    careful = _careful(function, name == "truediv")

    def operate_reflected(x: Any, y: Any) -> Any:
        a, level, right = x.primal, x.level, x.receiver
        dtype = a.dtype
        if not (numbers and type(y) in numbers and (dtype is F32 or dtype is F64)):
            return careful(y, x)
        if level is not AMBIENT or not is_enabled():
            if level is UNTRACKED or level is AMBIENT:
                return untracked(symbol(y, a))
            return careful(y, x)
        saved = NOTHING if forgets else (y, a)
        return start(rule(y, a), rule, saved, None, right, 2, None, forgets)

    operate_reflected.__name__ = f"__r{name}__"
    return operate_reflected


for _name in _SYMBOLS:
    setattr(Tensor, f"__{_name}__", binary(_name))
    _commutes = _name in ("add", "mul")
    setattr(Tensor, f"__r{_name}__", (binary if _commutes else reflected)(_name))


def unary(function: Any, floating: bool = False, single: bool = False) -> Any:
    """A function of one tensor, from one of Lantern's operations of one operand.

    Args:
        function: the operation; what it takes besides is handed on.
        floating: whether integers become numbers of the default type first.
        single: whether halves are computed in float32, and rounded once.
    """
    rule = function.rule
    kind = operation_of(rule).kind
    elementwise, forgets = int(kind == "elementwise"), kind == "linear"

    def meanwhile(kind: Any) -> Any:
        """The type in which elements of another type are computed; None for theirs."""
        if floating and kind.kind in "iub":
            return dtypes.default()
        brain = elementwise and kind.kind == "V"
        return F32 if brain or (single and is_half(kind)) else None

    def operate(input: Any, *args: Any, out: Any = None, **statics: Any) -> Any:
        if out is not None:
            return into(operate(input, *args, **statics), out)
        if (statics or args) and mappings():
            input = torch_face(beside(numpy_face(input), (args, statics)))
        try:
            a, level = input.primal, input.level
            dtype = a.dtype  # the commonest types are computed with as they are
            if dtype is not F32 and dtype is not F64 and (wide := meanwhile(dtype)):
                z = operate(cast(input, wide), *args, **statics)
                rounds = is_half(dtype) and base(z).dtype is F32
                return cast(z, dtype) if rounds else z
            if level is not AMBIENT or not is_enabled():
                if level is UNTRACKED or level is AMBIENT:
                    z = next(rule(a, *args, **statics))
                    return untracked(z if hasattr(z, "dtype") else np.asarray(z))
                return torch_face(function(numpy_face(input), *args, **statics))
            saved, left = (STANDIN if forgets else a, *args), input.receiver
            if args or statics:
                begun = rule(a, *args, **statics)
            elif fusers and elementwise and type(a) in fusers:
                begun = fusers[type(a)](rule, a, keeping=True)(a)
            else:
                begun = rule(a)
            return start(
                begun, rule, saved, left, None, elementwise, statics or None, forgets
            )
        except (AttributeError, AxisError) as error:
            raise misuse(operate.__name__, input, error) from None

    operate.__name__ = operate.__qualname__ = rule.__name__.strip("_")
    operate.__doc__ = (rule.__doc__ or "").partition("Example:")[0].rstrip()
    _, _, rest = parameters(rule).partition(", /")
    return takes(operate, f"input{rest}{'' if '*' in rest else ', *'}, out=None")


def joining(function: Any) -> Any:
    """A function of any number of tensors, from one of Lantern's linear operations."""
    rule = function.rule

    def operate(tensors: list[Any], *args: Any, **statics: Any) -> Any:
        receivers: list[Any] = []
        saved: Any = []
        for x in tensors:
            level, tracked = x.level, x.level is AMBIENT
            if not tracked and level is not UNTRACKED:
                return torch_face(function(*map(numpy_face, tensors), *args, **statics))
            receivers.append(x.receiver if tracked else None)
            saved.append(STANDIN if tracked else x.primal)
        try:
            arrays = [*[x.primal for x in tensors], *args]
            if not (is_enabled() and any(receivers)):
                return untracked(next(rule(*arrays, **statics)))
            begun, left = rule(*arrays, **statics), tuple(receivers)
            restarts = saved[0] is STANDIN
            return start(begun, rule, (*saved, *args), left, None, 0, statics, restarts)
        except TypeError as error:
            return operate(together(error, *tensors), *args, **statics)

    return operate


def call(function: Any, *args: Any, **options: Any) -> Any:
    """One of Lantern's functions on tensors, anywhere among its arguments."""
    try:
        return torch_face(function(*map(numpy_face, args), **options))
    except TypeError as error:
        return call(function, *together(error, *args), **options)
    except ValueError as error:
        if isinstance(error, IndexError | np.linalg.LinAlgError):
            raise
        raise EagerError(str(error)) from None


def views_of(x: Tensor) -> dict[int, Any]:
    """Weakly, the untracked tensors that show the memory of a base."""
    try:
        found: dict[int, Any] = x.views
    except AttributeError:
        found = x.views = {}
    return found


# Weakly, the tracked tensors that show the memory of others. In one list, gone through
# when one of those is written to: a table for each base takes longer to make.
_recent: list[Any] = []
_most = [256]


def _forget_dead() -> None:
    """Keep the list about as long as there are views."""
    n = len(_recent)  # what other threads append meanwhile stays
    live = [weak for weak in _recent[:n] if weak() is not None]
    _recent[:n] = live
    _most[0] = max(256, 2 * len(live))


def tracked_views(whole: Tensor) -> list[Tensor]:
    """The tracked tensors that show the memory of a base."""
    found = [weak() for weak in _recent]
    return [view for view in found if view is not None and view.viewed is whole]


def as_view(z: Any, x: Any) -> Any:
    """A tensor that shows the memory of another, marked as such."""
    z.viewed = whole = x if x.viewed is None else x.viewed
    if z.level is AMBIENT:
        z.receiver.memory = id(owner(z.primal))
        _recent.append(ref(z))
        if len(_recent) > _most[0]:
            _forget_dead()
    elif whole is not UNSEEN:
        views_of(whole)[id(z)] = ref(z)  # names that are free again are taken again
        if detached(x):
            moved_away(z, place(x, whole)[positions(base(z), base(x))])
    else:
        share(z, x)
    return z


def in_memory(x: Any) -> Any:
    """The array of a tensor, which can be written to: NumPy's scalars cannot."""
    array = x.primal
    if isinstance(array, np.generic):
        x.primal = array = np.asarray(array)
    return array
