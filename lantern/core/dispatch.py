"""How an operation starts on its operands, and which class tracks its result."""

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS
from operator import attrgetter
from types import CodeType
from typing import Any

from lantern.core.error_propagation import note
from lantern.core.namespace import common_namespace, tables
from lantern.core.operation import (
    Function,
    Op,
    RuleFunction,
    by_code,
    operation_of,
    registry,
)
from lantern.core.residuals import residual
from lantern.core.value import (
    UNTRACKED,
    Level,
    Replayable,
    Value,
    base,
    too_few_contributions,
    unwrapped,
)
from lantern.errors import ArgumentError

__all__ = [
    "begin",
    "begun_by",
    "first",
    "from_lists",
    "kind_of",
    "operand_count",
    "refuse",
    "register_class",
    "register_rule",
    "registered",
    "start",
    "value_class",
]

Statics = Mapping[str, Any]
ValueClass = type[Value] | Callable[[type], type[Value]]

_registered: dict[type | str, ValueClass] = {}
_classes: dict[type, type[Value]] = {}  # those that were found


# Results of no operand's class: several at once, and a lazy rule's Python numbers.
_SEVERAL, _ALONE = frozenset({tuple}), frozenset({tuple, float, int, complex})
# Types of options that nobody can change.
_FIXED = frozenset({type(None), bool, int, float, str, tuple})


def kind_of(rule: Any) -> str:
    """The kind of the operation that a started rule came from."""
    return begun_by(rule).kind


def begun_by(rule: Any) -> Op:
    """The operation that a started rule came from."""
    started: Any = rule.started if isinstance(rule, Replayable) else rule
    return by_code[started.gi_code]


def operand_count(rule: Replayable) -> int:
    """How many of a started rule's arguments are differentiable operands."""
    arity = operation_of(rule.rule).arity
    return len(rule.operands) if arity < 0 else arity


def start(
    rule: RuleFunction, operands: Sequence[Any], args: Sequence[Any], statics: Statics
) -> Any:
    """As ``_start``; arrays of two libraries are refused by name."""
    try:
        return _start(rule, operands, args, statics)
    except TypeError:
        common_namespace(*map(base, operands))  # says so, if that is why
        raise


def _start(
    rule: RuleFunction, operands: Sequence[Any], args: Sequence[Any], statics: Statics
) -> Any:
    """Run a rule's forward step for the innermost derivative among the operands.

    Those of outer derivatives are constants to it. If nothing is tracked, that is all.
    """
    values = [x for x in operands if isinstance(x, Value)]
    if len(values) < len(operands):
        operands = [from_lists(x) for x in operands]
        values = [x for x in operands if isinstance(x, Value)]
    if not values:
        return first(rule(*operands, *args, **statics))
    prompts = [x.level for x in values]
    level = prompts[0]
    if prompts.count(level) == len(operands):
        primals: list[Any] = [x.primal for x in values]
        receivers = [x.receiver for x in values]
    else:
        level = max(prompts, key=attrgetter("depth"))
        primals, receivers = _split(rule, operands, level)
    args = [residual(level, x) for x in args] if args else args
    if statics:
        statics = {name: residual(level, x) for name, x in statics.items()}
    left, right = receivers[0], receivers[-1] if len(receivers) == 2 else None
    known = operation_of(rule)
    if len(receivers) > 2 or known.lazy:
        left, right = tuple(receivers), None
    started = begin(level, rule, (*primals, *args), statics)
    try:
        primal = first(started)
    except (ArithmeticError, ValueError) as error:
        note(error, rule, map(base, operands))
        raise
    if not level.is_derivative:
        return primal
    cls = value_class(primal)
    if type(primal) not in (_ALONE if known.lazy else _SEVERAL):
        classes = [type(x) for x in values if x.level is level or x.is_face]
        if classes.count(cls) < len(classes):
            cls = max([cls, *classes], key=attrgetter("rank"))
    elementwise = known.arity if known.kind == "elementwise" else 0
    return cls.emerge(primal, level, started, left, right, elementwise)


def _split(
    rule: RuleFunction, operands: Sequence[Any], level: Level
) -> tuple[list[Any], list[Any]]:
    """The primals and, up to the last one that there is, the receivers of operands.

    Those that the derivative does not track are constants to it.
    """
    if level is not UNTRACKED:
        operands = [unwrapped(x) for x in operands]
    own = [isinstance(x, Value) and x.level is level for x in operands]
    if not all(own) and operation_of(rule).keeps:
        pairs = zip(operands, own, strict=True)
        operands = [x if o else residual(level, x) for x, o in pairs]
    primals = [x.primal if o else x for x, o in zip(operands, own, strict=True)]
    receivers = [x.receiver if o else None for x, o in zip(operands, own, strict=True)]
    while receivers[-1] is None:
        receivers.pop()
    return primals, receivers


def first(started: Any) -> Any:
    """The forward step of a rule."""
    try:
        return next(started)
    except StopIteration:
        raise too_few_contributions(started) from None


def from_lists(x: Any) -> Any:
    """Nested lists of numbers, tracked or not, as an array; anything else as it is."""
    return sys.modules["lantern"].array(x) if type(x) in (list, tuple) else x


def begin(
    level: Level, rule: RuleFunction, args: Sequence[Any], statics: Statics
) -> Any:
    """A rule about to run, in the form that the derivative needs."""
    if level.begin is None:
        return rule(*args, **statics)
    return level.begin(rule, args, statics)


def _unary(rule: RuleFunction, elementwise: int, lazy: bool) -> Function:
    alone = _ALONE if lazy else _SEVERAL

    def function(x: Any, /, *args: Any, **statics: Any) -> Any:
        if not isinstance(x, Value):
            if type(x) is list or type(x) is tuple:
                return function(from_lists(x), *args, **statics)
            return first(rule(x, *args, **statics))
        level = x.level
        for arg in args:
            if type(arg) not in _FIXED:
                args = tuple([residual(level, a) for a in args])
                break
        if statics:
            statics = {name: residual(level, a) for name, a in statics.items()}
        begin = level.begin
        if begin is None:
            started = rule(x.primal, *args, **statics)
        else:
            started = begin(rule, (x.primal, *args), statics)
        try:
            z = next(started)
        except StopIteration:
            raise too_few_contributions(started) from None
        cls = value_class(z) if type(z) in alone else type(x)
        left = (x.receiver,) if lazy else x.receiver
        return cls.emerge(z, level, started, left, None, elementwise)

    return function


def _unary_elementwise(rule: RuleFunction) -> Function:
    """As ``_unary``, for an elementwise rule without statics, in fewer steps.

    It is the library's own: a user's may give a result of another shape or type.
    """

    def function(x: Any, /) -> Any:
        if isinstance(x, Value):
            return x.through(rule)
        if type(x) is list or type(x) is tuple:
            return function(from_lists(x))
        return first(rule(x))

    return function


def _general(rule: RuleFunction, arity: int) -> Function:
    def function(*args: Any, **statics: Any) -> Any:
        return start(rule, args[:arity], args[arity:], statics)

    return function


def _variadic(rule: RuleFunction) -> Function:
    def function(*operands: Any, **statics: Any) -> Any:
        return start(rule, operands, (), statics)

    return function


def _constant(rule: RuleFunction) -> Function:
    def function(*operands: Any, **statics: Any) -> Any:
        try:
            return next(rule(*map(base, map(from_lists, operands)), **statics))
        except (ArithmeticError, ValueError) as error:
            if any(isinstance(x, Value) for x in operands):
                note(error, rule, map(base, operands))
            raise

    return function


def registered(
    rule: RuleFunction,
    kind: str,
    own: bool = True,
    additive: bool = False,
    adjoint: bool = False,
) -> Function:
    """The operation that a rule of a kind makes, in the table from now on."""
    code = rule.__code__
    variadic = bool(code.co_flags & CO_VARARGS)
    arity = -1 if variadic else code.co_posonlyargcount
    lazy = kind == "general" or any(type(x) is CodeType for x in code.co_consts)
    function = _function(rule, kind, arity, own, lazy)
    functools.update_wrapper(function, rule)
    function.rule = rule  # type: ignore[attr-defined]  # functions take attributes
    name = rule.__name__.lstrip("_")
    registry[name] = by_code[code] = Op(
        name, rule, kind, arity, function, own, additive, adjoint, lazy
    )
    return function


def _function(
    rule: RuleFunction, kind: str, arity: int, own: bool, lazy: bool
) -> Function:
    """The operation on plain and tracked values, in as few steps as its kind allows."""
    if kind == "constant":
        return _constant(rule)
    if arity == 1:
        code = rule.__code__
        alone = code.co_argcount + code.co_kwonlyargcount == 1
        plain = alone and own and not (code.co_flags & CO_VARKEYWORDS or lazy)
        if kind == "elementwise" and plain:
            return _unary_elementwise(rule)
        return _unary(rule, int(kind == "elementwise"), lazy)
    return _variadic(rule) if arity < 0 else _general(rule, arity)


def register_rule(
    rule: RuleFunction, kind: str, own: bool = True, adjoint: bool = False
) -> RuleFunction:
    """Give a rule of any number of operands its kind, without making it an operation.

    For rules that many operations share, as a user's (``custom_rule``); these call
    ``start`` themselves. What they contribute may have any form.
    """
    by_code[rule.__code__] = Op(
        rule.__name__, rule, kind, -1, rule, own, False, adjoint, True
    )
    return rule


def register_class(kind: type | str, cls: ValueClass) -> None:
    """Let a class, or what a function makes of each type, track a type or a module."""
    _registered[kind] = cls
    _classes.clear()


def refuse(kind: type) -> type[Value]:
    """No class tracks what looks like NumPy's arrays, and is something else."""
    if kind.__module__.partition(".")[0] == "pandas":
        raise tables.refusal(kind.__name__)
    raise ArgumentError(
        f"{kind.__module__}.{kind.__qualname__}: unsupported array type. Give an "
        f"array: numpy.asarray(x), x.toarray() of a sparse one; of a masked one "
        f"x.filled(0.0), and leave elements out with lantern.where."
    )


def value_class(primal: Any) -> type[Value]:
    """The class that tracks a primal; of a tracked one, its own class."""
    kind = type(primal)
    if kind not in _classes:
        own = isinstance(primal, Value) and kind not in _registered
        _classes[kind] = kind if own else _class_for(kind)
    return _classes[kind]


def _class_for(kind: type) -> type[Value]:
    names: list[Any] = []
    for cls in kind.__mro__:
        names += cls, cls.__module__, cls.__module__.partition(".")[0]
    found = next(_registered[name] for name in names if name in _registered)
    if found is _registered[object] and (
        hasattr(kind, "__array__") or hasattr(kind, "dtype")
    ):
        found = refuse
    return found if isinstance(found, type) else found(kind)
