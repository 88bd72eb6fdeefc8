"""Hooks of a program in its own derivative: a cotangent, and how deep it is."""

import itertools
from collections.abc import Callable
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.operation import operation_of
from lantern.core.residuals import secured
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.unwrap import levels_of, read_only
from lantern.core.value import (
    Level,
    Rule,
    Value,
    base,
    is_complex,
)
from lantern.cps.prompt import innermost
from lantern.errors import ArgumentError
from lantern.op import linear
from lantern.transforms.arguments import check_like

__all__ = ["hook", "nestlevel"]


def hook(fn: Callable[[Any], Any], x: Any) -> Any:
    """x itself, whose cotangent goes through a function on the way back.

    The function is called once in each backward pass that reaches x, when all that came
    after x is over. Forward mode takes no notice of it. It acts on the innermost
    derivative that tracks x; a derivative around that one differentiates through
    the function, so that both modes give the same second derivatives.

    Args:
        fn: takes the cotangent and returns another; or returns None, and the cotangent
            stays as it is (``print``, ``list.append``). An array comes read-only.
        x: a number, an array, or a structure; fn then gets all the cotangents at once,
            in the same structure: zeros for what was not used, None for a constant.

    Shapes:
        x: any; the cotangent, what fn returns and the result: as x

    Returns:
        What x was. Use it in place of x.

    Raises:
        ArgumentError: if fn is not callable.
        ShapeError: in the backward pass, if fn returns another shape or structure.

    Example:
        >>> import lantern
        >>> lantern.grad(lambda a, b: hook(lambda g: -g, a) * b, argnums=(0, 1))(
        ...     2.0, 3.0
        ... )
        (-3.0, 2.0)
        >>> lantern.grad(lambda x: hook(print, x * x) * 3.0)(2.0)
        3.0
        12.0
    """
    if not callable(fn):
        raise ArgumentError(
            f"hook: the function comes first, got {type(fn).__name__}. "
            f"Write hook(print, x)."
        )
    level = max((_level(leaf) for leaf in tree_leaves(x)), default=0)
    if not level:
        return x
    if _level(x):
        return _hook(x, fn=fn)
    own = [leaf for leaf in tree_leaves(x) if _level(leaf) == level]
    count = itertools.count()
    places = tree_map(lambda leaf: next(count) if _level(leaf) == level else None, x)

    def on_all(z_bars: Any) -> Any:
        z_bars = _watched(fn, tree_map(lambda place: z_bars[place], places))
        return tuple(tree_leaves(z_bars))

    results = iter(_hook_all(*own, fn=on_all))
    return tree_map(lambda leaf: next(results) if _level(leaf) == level else leaf, x)


def _level(x: Any) -> int:
    return x.level.depth if isinstance(x, Value) else 0


def _watched(fn: Callable[[Any], Any], z_bar: Any) -> Any:
    """What a user's function makes of a cotangent, or of a structure of them."""
    shown = tree_map(read_only, z_bar)
    answer = fn(shown)
    if answer is None or answer is shown:
        return z_bar
    answer = secured(answer, given=tree_leaves(shown))
    check_like("hook", z_bar, answer)
    return answer


@linear
def _hook(x: Any, /, fn: Callable[[Any], Any]) -> Rule:
    """x itself, whose cotangent goes through a function.

    Shapes:
        x: (...); result: (...)

    Rule:
        x_bar = fn(z_bar)
    """
    holds_complex, dtype = is_complex(x), getattr(x, "dtype", None)
    z_bar = yield (x, x := None)[0]
    if is_complex(z_bar) and not holds_complex:  # a real one together with its mask
        xp = namespace(z_bar)
        x_bar = _watched(fn, xp.astype(xp.real(z_bar), dtype))
        yield x_bar + 1j * ((base(xp.imag(z_bar)) != 0) | (base(x_bar) != 0))
    else:
        yield _watched(fn, z_bar)


@linear
def _hook_all(*x: Any, fn: Callable[[Any], Any]) -> Rule:
    """Several values themselves, whose cotangents go through one function together.

    Shapes:
        x: any; result: a tuple of them

    Rule:
        x_bar = fn(z_bar)
    """
    z_bar = yield (x, x := ())[0]
    for x_bar in fn(z_bar):  # noqa: UP028  # nothing can be sent to a tuple
        yield x_bar


# They see the gradient itself, not its conjugate.
for _made in (_hook, _hook_all):
    operation_of(_made.rule).adjoint = True  # type: ignore[union-attr]


def nestlevel(*operands: Any) -> int:
    """How many derivatives are being taken here, one inside another.

    Args:
        operands: values whose derivatives are counted, in every mode. Without any, the
            reverse-mode derivatives around the call are counted, as far as they were
            begun in the same thread.

    Example:
        >>> import lantern
        >>> seen = []
        >>> def f(x):
        ...     seen.append((nestlevel(), nestlevel(x), nestlevel(2.0)))
        ...     return x * x
        >>> _ = f(1.0), lantern.grad(f)(1.0), lantern.grad(lantern.grad(f))(1.0)
        >>> seen
        [(0, 0, 0), (1, 1, 0), (2, 2, 0)]
        >>> lantern.jvp(nestlevel, (1.0,), (1.0,))[0]
        1
    """
    if operands:
        return len({level for x in tree_leaves(operands) for level in levels_of(x)})
    found, delimiter = 0, innermost.get()
    while delimiter is not None:
        found += delimiter.live and isinstance(delimiter.prompt, Level)
        delimiter = delimiter.outer
    return found
