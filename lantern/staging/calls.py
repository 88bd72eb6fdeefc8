"""Calls while a program is staged: each is followed, done now, or refused.

A user's function is followed, in its rewritten form. What is known to depend on its
arguments alone is called now. All else is refused, for it might do something, or find
something else another time.
"""

import dataclasses
import functools
import math
import operator
from collections import defaultdict, deque
from contextlib import nullcontext, suppress
from dataclasses import MISSING, fields, is_dataclass
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import lantern
from lantern.core.numpy_protocols import OUR_NAMES, find_operation
from lantern.errors import StagingError
from lantern.staging import control, functions, loops
from lantern.staging.control import Signal, StoppedError, has_staged
from lantern.staging.derived import Derived
from lantern.staging.fixed import Fixed
from lantern.staging.functions import call as call_function
from lantern.staging.gradients import DERIVATIVES, derivative_of, staged_derivative
from lantern.staging.ir import current
from lantern.staging.objects import HEAP_TYPE, class_attribute
from lantern.staging.optional import Optional, definite
from lantern.staging.python_functions import TABLE, Once, ordered
from lantern.staging.rewrite import rewritten
from lantern.staging.session import NeedsCareError, Session
from lantern.staging.staged import (
    NeedsPlainError,
    Staged,
    is_staged,
    operate,
    perform,
    staged,
)
from lantern.staging.structure import is_faithful, is_undefined
from lantern.staging.trees import StagedTree
from lantern.staging.types import FLOAT, INT
from lantern.staging.watch import is_generated, is_lanterns, is_trusted

__all__ = ["COMPILED", "Methods", "NeedsFunctionError", "call"]

_COMBINATORS = {control.IF, loops.WHILE, loops.LOOP, functions.FUN, functions.TREE}
_MATH = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees erf "
    "erfc exp exp2 expm1 fabs floor fmod gamma hypot isfinite isinf isnan ldexp lgamma "
    "log log10 log1p log2 pow radians remainder sin sinh sqrt tan tanh trunc".split()
)
_MATH_OF_KNOWN = frozenset("comb factorial frexp gcd isqrt lcm modf perm".split())
_PURE_LANTERN = frozenset("abs clip imag real sign where conj".split())
_READ: dict[Any, frozenset[str]] = {
    list: frozenset("copy count index".split()),
    deque: frozenset("copy count index".split()),
    dict: frozenset("copy get items keys values".split()),
    defaultdict: frozenset("copy get items keys values".split()),
    tuple: frozenset("count index".split()),
    set: frozenset("copy union intersection difference issubset".split()),
    float: frozenset("is_integer hex conjugate".split()),
    int: frozenset("bit_length conjugate".split()),
    range: frozenset("count index".split()),
}
_WRITE: dict[Any, frozenset[str]] = {
    list: frozenset("append extend insert pop remove reverse clear sort".split()),
    deque: frozenset(
        "append appendleft clear extend extendleft insert pop popleft remove reverse "
        "rotate".split()
    ),
    dict: frozenset("update setdefault pop clear popitem".split()),
    defaultdict: frozenset("update setdefault pop clear popitem".split()),
    set: frozenset("add update discard remove clear pop".split()),
}
_OPERATORS = frozenset(
    getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow neg pos lt le gt ge eq ne".split()
)
_MAKE = frozenset({list, tuple, dict, set, deque, defaultdict})
_NEW = frozenset("copy items keys values union intersection difference".split())
"""What makes an object: others hand back what may be somebody else's."""
COMPILED: dict[int, Any] = {}
"""The plain functions of compiled ones, by the ids of these."""

MOST_DEPTH = 16
"""How often a function may stand on the stack before it becomes one of the program."""


class NeedsFunctionError(Signal):
    """A function that calls itself has to be one of the program."""

    def __init__(self, code: CodeType) -> None:
        self.code = code


class Methods:
    """A method of an object that is walked: those of the classes that were met.

    Args:
        x: the object.
        name: the method's.
        functions: each class's.
    """

    __slots__ = ("functions", "name", "x")

    def __init__(self, x: StagedTree, name: str, functions: list[FunctionType]) -> None:
        self.x, self.name, self.functions = x, name, functions

    def staged(self, session: Session, args: tuple[Any, ...], kwargs: Any) -> Any:
        """A call: of the one that the object has."""
        if not self.functions:
            raise StoppedError
        first, *rest = self.functions
        others = Methods(self.x, self.name, rest)
        return control.IF(
            self.x.has_method(self.name, first),
            lambda: call(session, first, (self.x, *args), kwargs),
            lambda: others.staged(session, args, kwargs),
        )


def call(
    session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of a call in a staged program."""
    has_optional = False
    for x in (f, *args, *kwargs.values()):
        if is_undefined(x):
            x.refuse()
        has_optional = has_optional or type(x) is Optional
    if has_optional and not _is_followed(session, f):
        args = tuple(map(definite, args))
        kwargs = {name: definite(x) for name, x in kwargs.items()}
    owner = f.__self__ if type(f) is BuiltinFunctionType else f
    f = COMPILED.get(id(owner), f)
    kind = type(f)
    if f in TABLE if kind in (BuiltinFunctionType, type) else False:
        found = TABLE[f](session, *args, **kwargs)
        return session.made(found) if f in _MAKE else found
    if kind is FunctionType:
        return _call_function(session, f, args, kwargs)
    if kind is MethodType:
        return call(session, f.__func__, (f.__self__, *args), kwargs)
    if kind is functools.partial:
        return call(session, f.func, (*f.args, *args), {**f.keywords, **kwargs})
    if (kind.__module__, kind.__name__) == ("numpy", "ufunc"):
        return _call_numpy(session, f, args, kwargs)
    if kind is BuiltinFunctionType or kind.__name__ == "method_descriptor":
        found = _call_builtin(session, f, args, kwargs)
        return session.made(found) if f.__name__ in _NEW else found
    if isinstance(f, type):
        return _construct(session, f, args, kwargs)
    if isinstance(f, Methods):
        return f.staged(session, args, kwargs)
    if isinstance(f, Derived | Fixed):
        return f.staged(session, args, call)
    if f is object.__setattr__ and len(args) == 3 and not kwargs:
        return session.lt.set_past_class(*args)
    method = getattr(kind, "__call__", None)  # noqa: B004  # the class's own function
    if type(method) is FunctionType:
        session.guards.attribute(kind, "__call__", method)
        return call(session, method, (f, *args), kwargs)
    raise _refused(f, "it is not known what it does")


def _is_followed(session: Session, f: Any) -> bool:
    """Whether a call runs a user's function, or passes its arguments on to one."""
    if type(f) is FunctionType and not session.is_ours(f):
        return str(f.__module__ or "").partition(".")[0] not in ("lantern", "numpy")
    return type(f) in (FunctionType, MethodType, functools.partial, Methods)


def _refused(f: Any, why: str) -> StagingError:
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", repr(f))
    return StagingError(
        f"call: {name} is not staged: {why}. Call it outside of the function, or leave "
        f"this function as it is."
    )


def _call_function(
    session: Session, f: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    owner = str(f.__module__ or "").partition(".")[0]
    derivative = derivative_of(f)
    if derivative is not None:
        if kwargs:
            raise _refused(f, "a derivative with arguments by name")
        return staged_derivative(session, derivative, args, call)
    if f in DERIVATIVES and not kwargs:
        return DERIVATIVES[f](session, call, *args)
    if f is dataclasses.replace and args and not args[1:]:
        return _replaced(session, args[0], kwargs)
    if f.__name__ == "_replace" and is_trusted(f.__code__) and len(args) == 1:
        return _replaced(session, args[0], kwargs)
    if owner == "lantern" and is_lanterns(f.__code__) and not session.is_ours(f):
        return _call_lantern(session, f, args, kwargs)
    if owner == "numpy":
        return session.made(_call_numpy(session, f, args, kwargs))
    return follow(session, f, args, kwargs)


def follow(
    session: Session, f: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a user's function in its rewritten form."""
    session.step()
    ours = session.is_ours(f)
    code = f.__code__
    if not ours:
        session.guards.function(f)
    if code.co_flags & (0x80 | 0x100 | 0x200):
        raise _refused(f, "it is a coroutine")
    if code.co_flags & 0x20:
        return Once(_run(session, f, *args, **kwargs))
    if code in session.recursive and not kwargs and any(map(has_staged, args)):
        return call_function(f, functools.partial(_run, session, f), args)
    apart = "inline" in current.off and bool(session.active)
    if apart and not kwargs and args and all(map(_is_value, args)):
        return call_function(f, functools.partial(_run, session, f), args)
    times = session.active.count(code)
    dynamic = any(_is_dynamic(x) for x in args)
    if times and (dynamic or times >= MOST_DEPTH) and not kwargs:
        raise NeedsFunctionError(code)
    return _run(session, f, *args, **kwargs)


def _replaced(session: Session, x: Any, changes: dict[str, Any]) -> Any:
    """A data class's object, or a named tuple, with some other fields."""
    cls: Any = type(x)
    if isinstance(x, StagedTree):
        cls = x.likely_class()
        session.lt.claim(x.is_instance(cls), None)
    if issubclass(cls, tuple):
        names = cls._fields
    elif is_dataclass(cls) and all(f.init for f in fields(cls)):
        names = tuple(f.name for f in fields(cls))
    else:
        raise _refused(cls, "it has fields that are not given")
    if not changes.keys() <= {*names}:
        raise StoppedError
    old = {n: session.lt.attribute(x, n) for n in names if n not in changes}
    return call(session, cls, (), {n: {**old, **changes}[n] for n in names})


def _is_value(x: Any) -> bool:
    return is_staged(x) or type(x) in (float, int)


def _is_dynamic(x: Any) -> bool:
    return is_staged(x) and (isinstance(x, StagedTree) or x.node.type is INT)


def _run(session: Session, f: FunctionType, *args: Any, **kwargs: Any) -> Any:
    run = f if session.is_ours(f) else session.rewritten(f, rewritten)
    depth = len(session.active)
    session.active.append(f.__code__)
    try:
        return run(*args, **kwargs)
    finally:
        del session.active[depth:]


def _followed(session: Session, x: Any) -> Any:
    """A function as one that runs in its rewritten form."""
    is_ours = type(x) is FunctionType and session.is_ours(x)
    return functools.partial(session.call, x) if callable(x) and not is_ours else x


def _call_lantern(
    session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if f in _COMBINATORS:
        return f(*(_followed(session, x) for x in args), **kwargs)
    if f in (lantern.grad, lantern.value_and_grad):
        return f(*args, **kwargs)
    if f is lantern.stop_gradient and len(args) == 1 and type(args[0]) is Staged:
        return operate("stopped", args[0])
    if hasattr(f, "rule") or f.__name__ in _PURE_LANTERN:
        return f(*args, **kwargs)
    if getattr(f, "__wrapped__", None) is not None and f.__module__.startswith(
        "lantern.staging"
    ):
        return f(*args, **kwargs)  # what FUN has made
    raise _refused(f, "it is not among the functions that can be staged")


def _call_numpy(
    session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    name = OUR_NAMES.get(f.__name__, f.__name__)
    known = [type(x) is Staged and x.node.type is FLOAT for x in args]
    plain = [type(x) in (float, int) for x in args]
    if not session.derivatives or kwargs or not any(known):
        raise _refused(f, "NumPy's functions are staged on what a derivative tracks")
    if not all(map(operator.or_, known, plain)) or find_operation(name) is None:
        raise _refused(f, "it has no rule for numbers")
    return perform(f"numpy.{name}", args, {})


def _call_builtin(
    session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    owner: Any = getattr(f, "__self__", None)
    name = f.__name__
    if isinstance(owner, ModuleType):
        if owner is math and name in _MATH and not kwargs:
            return _call_math(name, f, args)
        if owner is math and name in _MATH_OF_KNOWN and not kwargs:
            return _call_known(f, args)
        if f in _OPERATORS:
            return f(*args)
        raise _refused(f, "it is not known what it does")
    if isinstance(owner, Staged):
        return f(*args, **kwargs)
    kind: Any = type(owner)
    if name == "index" and kind in (list, tuple) and has_staged((owner, args)):
        return session.lt.place(owner, *args)
    if name in _READ.get(kind, ()) or kind is str:
        return f(*args, **kwargs)
    if kind in _WRITE and name in _WRITE[kind]:
        session.write(owner, name)
        if name == "sort":
            owner[:] = ordered(session, owner, *args, **kwargs)
            return None
        return f(*args, **kwargs)
    raise _refused(f, "it is not known what it does")


def _call_math(name: str, f: Any, args: tuple[Any, ...]) -> Any:
    if not any(map(is_staged, args)):
        return f(*args)
    if any(isinstance(x, StagedTree) for x in args):
        args = tuple(
            staged(x.unboxed().node) if isinstance(x, StagedTree) else x for x in args
        )
    if name == "log" and len(args) == 2:  # as Python computes it
        x, base = (_call_math(name, f, (y,)) for y in args)
        return x / base
    return perform(f"math.{name}", args, {})


def _call_known(f: Any, args: tuple[Any, ...]) -> Any:
    if all(type(x) in (float, int, bool) for x in args):
        return f(*args)
    raise NeedsPlainError(f"{f.__name__}: of what is known only when the program runs.")


def _construct(
    session: Session, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """An object of a class: a named tuple, a dataclass, or one with ``__init__``."""
    session.meet(cls)
    init = cls.__init__
    is_written = type(init) is FunctionType
    if cls in (nullcontext, suppress):
        return cls(*args, **kwargs)
    if issubclass(cls, BaseException):
        if is_written:  # the plain function makes it, and raises it
            raise StoppedError
        return cls(*args, **kwargs)
    if issubclass(cls, tuple) and not is_written and _is_named_tuple(cls):
        return session.made(cls(*args, **kwargs))
    plain = cls.__new__ is object.__new__ and type(cls).__call__ is type.__call__
    if plain and not hasattr(cls, "__del__"):
        session.guards.attribute(cls, "__init__", init)
        if is_dataclass(cls) and is_faithful(cls):
            return _made_of_fields(session, cls, args, kwargs)
        if is_dataclass(cls) and _is_finished(cls):
            if not session.is_careful:  # none may be made anew without being seen
                raise NeedsCareError
            return _finished(session, cls, args, kwargs)
        is_users = is_written and not is_generated(init.__code__)
        if is_users and cls.__setattr__ is object.__setattr__:
            made = session.made(object.__new__(cls))
            call(session, init, (made, *args), kwargs)
            return made
        if init is object.__init__ and not args and not kwargs and _is_simple(cls):
            return session.made(object.__new__(cls))
    raise _refused(cls, "it is not known how its objects are made")


def _is_simple(cls: Any) -> bool:
    """Whether a class is the user's, and leaves it to Python how its objects change."""
    return cls.__flags__ & HEAP_TYPE != 0 and cls.__setattr__ is object.__setattr__


def _is_named_tuple(cls: Any) -> bool:
    code = getattr(cls.__new__, "__code__", None)
    return code is not None and is_generated(code)


def _is_finished(cls: Any) -> bool:
    """Whether objects of a dataclass have their fields set, and are then finished."""
    init, every = cls.__init__.__code__, fields(cls)
    given = [f for f in every if f.init]
    if type(class_attribute(cls, "__post_init__")) is not FunctionType:
        return False
    sets = getattr(cls.__setattr__, "__code__", None)
    if not is_generated(init) or not (sets is None or is_generated(sets)):
        return False
    if init.co_argcount + init.co_kwonlyargcount != 1 + len(given):
        return False
    own = [class_attribute(cls, f.name) for f in every]
    return all(f.init or f.default is MISSING for f in every) and all(
        type(x) is MemberDescriptorType
        or not (hasattr(x, "__get__") or hasattr(x, "__set__"))
        for x in own
    )


def _finished(
    session: Session, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """An object of a dataclass with ``__post_init__``, which is followed."""
    names = [f.name for f in fields(cls) if f.init and not f.kw_only]
    known = {f.name for f in fields(cls) if f.init}
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not kwargs.keys() <= known - given.keys():
        raise StoppedError
    given |= kwargs
    made = session.made(object.__new__(cls))
    for f in fields(cls):
        if f.name in given:
            value = given[f.name]
        elif f.default_factory is not MISSING:
            value = call(session, f.default_factory, (), {})
        elif f.default is not MISSING:
            value = f.default
        elif f.init:
            raise StoppedError
        else:
            continue
        object.__setattr__(made, f.name, value)
    finish = class_attribute(cls, "__post_init__")
    session.guards.attribute(cls, "__post_init__", finish)
    call(session, finish, (made,), {})
    return made


def _made_of_fields(
    session: Session, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """An object of a dataclass; functions that make defaults are followed."""
    names = [f.name for f in fields(cls) if not f.kw_only]
    given = {*names[: len(args)], *kwargs}
    for f in fields(cls):
        if f.default_factory is not MISSING and f.name not in given:
            kwargs = {**kwargs, f.name: call(session, f.default_factory, (), {})}
    return session.made(cls(*args, **kwargs))
