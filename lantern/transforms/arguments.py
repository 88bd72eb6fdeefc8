"""Arguments of derivatives: the only file that refuses them, in words."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, NoneType
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.tree import leaf_path, tree_leaves, tree_map
from lantern.core.unwrap import holds
from lantern.core.value import Level, Value, base, is_complex
from lantern.errors import (
    ArgumentError,
    DetachError,
    EscapedError,
    NotScalarError,
    ShapeError,
    counted,
)

__all__ = [
    "FIRST",
    "NOT_PLAIN",
    "by_names",
    "check_contents",
    "check_driver",
    "check_function",
    "check_in_force",
    "check_level",
    "check_like",
    "check_result",
    "check_scalar",
    "checked_leaf",
    "choose",
    "chosen_by",
    "describe",
    "is_number",
    "isolate",
    "named_positions",
    "opened",
    "pair",
    "place",
]

_DRIVERS = ("in place", "switching")
_PLAIN = frozenset({float, int, complex, NoneType})
_NOT_NUMBERS = (bool, str, bytes, bytearray, list, tuple, type)
NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def check_function(where: str, f: Any) -> None:
    """Refuse what cannot be differentiated, before anything runs."""
    if type(f) is FunctionType and not f.__code__.co_flags & NOT_PLAIN:
        return
    if not callable(f):
        raise ArgumentError(
            f"{where}: expected a function, got {type(f).__name__}. "
            f"Write {where}(f)(x), with f not yet called."
        )
    for called in (f, type(f).__call__):
        if (
            inspect.isgeneratorfunction(called)
            or inspect.iscoroutinefunction(called)
            or inspect.isasyncgenfunction(called)
        ):
            raise ArgumentError(
                f"{where}: {getattr(f, '__name__', f)} is a generator or coroutine "
                f"function. Give a plain function that returns its result."
            )


def is_number(x: Any) -> bool:
    """Whether a leaf is a number or an array, tracked or not."""
    return hasattr(type(x), "__mul__") and not isinstance(x, _NOT_NUMBERS)


def describe(leaf: Any) -> str:
    """What a leaf is, for messages."""
    shape = getattr(leaf, "shape", ())
    if shape and isinstance(shape, tuple):
        return f"an array of {getattr(leaf, 'dtype', 'bytes')} of shape {shape}"
    return f"{base(leaf)!r} of type {type(base(leaf)).__name__}"


def place(name: str, tree: Any, leaf: Any) -> str:
    """Where a leaf is in a structure, for messages; nothing if it is the whole."""
    path = leaf_path(tree, leaf)
    return f" at {name}{path}" if path else ""


def check_scalar(where: str, y: Any, holomorphic: bool) -> None:
    """Refuse a result that is not one number of the expected kind."""
    shape = tuple(getattr(y, "shape", ()))
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    if shape or not is_number(y) or kind in {"b", "U", "S", "M", "m"}:
        got = f"shape {shape}" if shape else describe(y)
        raise NotScalarError(
            f"{where}: f must return a scalar, got {got}. Use vjp with a seed, or "
            f"jacobian; for a second result use has_aux=True."
        )
    if is_complex(y) is not holomorphic:
        got, other = ("complex", "real") if is_complex(y) else ("real", "complex")
        raise NotScalarError(
            f"{where}: f must return a {other} number, got a {got} one. Take "
            f"abs or the real part; for a complex derivative use holomorphic=True."
        )


def checked_leaf(where: str, leaf: Any, dtype: Any, tree: Any, given: Any) -> Any:
    """A number, or an array that is not simply real, if it can be differentiated."""
    kind = getattr(dtype, "kind", "f")
    if kind == "V" and str(dtype) == "bfloat16":  # NumPy takes long to write a dtype
        kind = "f"
    if not is_number(leaf) or kind not in "fciu" or (kind in "iu" and leaf.shape):
        raise ArgumentError(
            f"{where}: cannot differentiate with respect to {describe(leaf)}"
            f"{place('x', tree, given)}. Convert it to a floating-point type, choose "
            f"other argnums, or pass it by closure."
        )
    return float(leaf) if kind in "iu" or isinstance(leaf, int) else leaf


def choose(where: str, argnums: Any, args: Sequence[Any]) -> Sequence[int]:
    """The positions to differentiate, checked."""
    if type(argnums) is int and 0 <= argnums < len(args):
        return (argnums,)
    chosen = argnums if isinstance(argnums, tuple | list) else (argnums,)
    for i in chosen:
        if type(i) is not int:
            raise ArgumentError(
                f"{where}: argnums must be an int, a parameter's name, '*' or a tuple "
                f"of ints or of names, got {argnums!r}. Count positions from 0."
            )
        if not -len(args) <= i < len(args):
            raise ArgumentError(
                f"{where}: argnums={argnums!r}, but f was called with "
                f"{counted(len(args), 'positional argument')}. Pass the "
                "differentiated arguments by position."
            )
    if len({i % len(args) for i in chosen}) < len(chosen):
        raise ArgumentError(
            f"{where}: argnums={argnums!r} names an argument twice. Name each once."
        )
    return chosen


class _Unsaid(int):
    """Argnums that nobody has given: the first argument."""


FIRST: Any = _Unsaid(0)


def chosen_by(where: str, argnums: Any, argnum: Any) -> Any:
    """What was given under one of two names: JAX's argnums, HIPS autograd's argnum."""
    if argnum is None:
        return 0 if argnums is FIRST else argnums
    if argnums is not FIRST and argnums is not None:
        raise ArgumentError(
            f"{where}: argnums={argnums!r} and argnum={argnum!r} are two names of one "
            f"thing. Give one of them."
        )
    return argnum


def by_names(argnums: Any) -> bool:
    """Whether arguments are chosen by their names, or all by "*"."""
    first = argnums[:1] if isinstance(argnums, tuple | list) else (argnums,)
    return any(isinstance(name, str) for name in first)


def _choose_named(
    where: str,
    f: Callable[..., Any],
    argnums: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[list[Any], Callable[..., Any]]:
    """The arguments that names choose, and f as a function of these alone.

    A parameter that the call leaves out counts with its default.
    """
    if argnums == "*":
        if not args:
            raise ArgumentError(
                f"{where}: argnums='*' means all positional arguments, but f was "
                f"called with none. Pass the differentiated arguments by position."
            )
        return list(args), lambda *chosen: f(*chosen, **kwargs)
    names = argnums if isinstance(argnums, tuple | list) else (argnums,)
    parameters, given = _parameters(where, f), named_positions(where, f, args)
    defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    known = {**defaults, **given, **kwargs}
    if wrong := [n for n in names if not isinstance(n, str) or n not in known]:
        raise ArgumentError(
            f"{where}: argnums={argnums!r}, but the call of f has no argument "
            f"{wrong[0]!r}; it has {', '.join(known) or 'none'}. Name these, or count "
            f"positions."
        )
    if len(set(names)) < len(names):
        raise ArgumentError(
            f"{where}: argnums={argnums!r} names an argument twice. Name each once."
        )
    by_position = {name: i for i, name in enumerate(given) if name in names}

    def call(*chosen: Any) -> Any:
        positional, by_name = list(args), dict(kwargs)
        for name, x in zip(names, chosen, strict=True):
            if name in by_position:
                positional[by_position[name]] = x
            else:
                by_name[name] = x
        return f(*positional, **by_name)

    return [known[name] for name in names], call


def named_positions(
    where: str, f: Callable[..., Any], args: Sequence[Any]
) -> dict[str, Any]:
    """The positional arguments by the names of their parameters, as far as they go."""
    parameters = _parameters(where, f)
    given = zip(parameters, args, strict=False)
    return {name: x for name, x in given if _takes_one(parameters[name])}


def isolate(
    where: str,
    f: Callable[..., Any],
    argnums: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[Sequence[Any], Callable[..., Any], Sequence[Any] | None]:
    """The arguments that argnums chooses, f as a function of these alone, their keys.

    The keys are the positions or names themselves; None if one argument is chosen, and
    not a tuple of one.
    """
    several = isinstance(argnums, tuple | list)
    if type(argnums) is not int and by_names(argnums):
        chosen, call = _choose_named(where, f, argnums, args, kwargs)
        every = range(len(chosen)) if argnums == "*" else None
        return chosen, call, argnums if several else every
    positions = choose(where, argnums, args)

    def call_by_position(*chosen: Any) -> Any:
        replaced = list(args)
        for i, x in zip(positions, chosen, strict=True):
            replaced[i] = x
        return f(*replaced, **kwargs)

    inputs = [args[i] for i in positions]
    return inputs, call_by_position, positions if several else None


def _parameters(where: str, f: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function by name."""
    try:
        return inspect.signature(f).parameters
    except ValueError:
        raise ArgumentError(
            f"{where}: {getattr(f, '__name__', f)} does not tell the names of its "
            f"parameters. Choose arguments by position."
        ) from None


def _takes_one(parameter: inspect.Parameter) -> bool:
    """Whether a parameter takes one positional argument."""
    return parameter.kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )


def pair(where: str, y: Any) -> tuple[Any, Any]:
    """Check that a function with ``has_aux`` returned two things."""
    if isinstance(y, tuple) and len(y) == 2:
        return y
    raise ArgumentError(
        f"{where}: with has_aux=True f must return (value, aux), got "
        f"{type(base(y)).__name__}. Return a pair."
    )


def check_driver(where: str, driver: str) -> None:
    """Refuse the name of a driver that does not exist."""
    if driver not in _DRIVERS:
        raise ArgumentError(
            f"{where}: there is no driver {driver!r}. Choose one of {_DRIVERS}."
        )


def check_like(where: str, tree: Any, other: Any) -> None:
    """Refuse a structure that does not match in containers, shapes and numbers."""
    expected, got = (tree_map(_form, t) for t in (tree, other))
    if expected != got:
        raise ShapeError(
            f"{where}: expected the structure and shapes {expected}, got {got}. "
            f"Give one leaf of the same shape for each."
        )
    for leaf, like in zip(tree_leaves(other), tree_leaves(tree), strict=True):
        namespace(base(like), base(leaf))  # refuses arrays of two libraries
        if not is_number(leaf) or (is_complex(leaf) and not is_complex(like)):
            raise ArgumentError(
                f"{where}: expected a number like {describe(like)}, got "
                f"{describe(leaf)}. Give a real number for a real one."
            )


def check_result(where: str, y: Any, level: Level) -> None:
    """Refuse a result with leaves that are no numbers, or belong to a later level."""
    for leaf in tree_leaves(y):
        if not is_number(leaf):
            raise ArgumentError(
                f"{where}: f must return numbers, arrays or structures of them, got "
                f"{describe(leaf)}{place('y', y, leaf)}. Return other things with "
                f"has_aux=True."
            )
        if isinstance(leaf, Value):
            check_level(where, leaf, level)
        elif type(leaf) not in _PLAIN:
            check_contents(where, leaf, level)


def check_contents(where: str, y: Any, level: Level) -> None:
    """Refuse a result with a value of a derivative inside, where nothing looks."""
    if holds(y, level):
        raise DetachError(
            f"{where}: f returned an object of {type(y).__module__}."
            f"{type(y).__qualname__} with a tracked value inside, which would count as "
            f"a constant. Return the value itself (y.data of an array of xarray's, "
            f"lantern.array(y.tolist()) of an array of objects), or make its class a "
            f"container with lantern.register_tree."
        )


def opened(where: str, y: Any, level: Level) -> Any:
    """The number in a result without axes: of an array of objects, or of xarray's.

    Raises:
        DetachError: if it is not known how the result is to be opened.
    """
    if type(y) in _PLAIN or not is_number(y) or tuple(getattr(y, "shape", ())):
        return y
    objects = getattr(getattr(y, "dtype", None), "kind", "") == "O"
    inside = y.item() if objects and hasattr(y, "flat") else getattr(y, "data", None)
    if isinstance(inside, Value) and hasattr(y, "__array__"):
        return inside
    check_contents(where, y, level)
    return y


def check_level(where: str, y: Value, level: Level) -> None:
    """Refuse a value of a derivative that was begun after this one."""
    if y.level.depth > level.depth:
        raise EscapedError(
            f"{where}: f returned a value of a derivative that was begun inside of it "
            f"(it left that one early, or was fed with it), and the derivative would "
            f"be lost. Return what the inner one gives, or use lantern.stop_gradient."
        )


def check_in_force(where: str, y: Any) -> None:
    """Refuse a value of a derivative that ended when its body was left."""
    for leaf in tree_leaves(y):
        if isinstance(leaf, Value) and leaf.level.is_over:
            name = leaf.level.name
            raise EscapedError(
                f"{where}: the body was left with a value of a {name} that it has "
                f"begun itself, and that is over now: {leaf!r:.60}. Leave with what "
                f"the {name} returns, or use an early_exit inside of it."
            )


def _form(leaf: Any) -> str:
    return f"shape {tuple(getattr(leaf, 'shape', ()))}"
