"""Solutions of equations: the derivative comes from the equation, not the search.

The search runs on plain values and leaves nothing behind, so memory does not grow with
the number of its steps. With F(x, args) == 0 at the solution, the backward step solves
``(dF/dx)^T w == -x_bar`` for w and pulls w back to the arguments. That linear equation
is one of the same kind, with a solution of its own derivatives: so every order works.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from lantern.core.namespace import namespace
from lantern.core.tree import tree_leaves, tree_map, tree_structure
from lantern.core.unwrap import detached
from lantern.core.value import base, is_complex, is_tracked, zeros_like
from lantern.errors import ArgumentError, ConvergenceError, ShapeError
from lantern.guards.environment import Steady
from lantern.transforms.arguments import check_function, describe, is_number
from lantern.transforms.custom_rule import Run, apply
from lantern.transforms.reverse import vjp

__all__ = ["fixed_point", "root"]

Function = Callable[..., Any]


def fixed_point(
    f: Function,
    x0: Any,
    *args: Any,
    tol: float | None = None,
    max_steps: int = 10_000,
) -> Any:
    """The x with ``x == f(x, *args)``, by repeated application of f.

    Args:
        f: takes x and args, returns a structure like x; it contracts near the solution.
            What it is differentiated by must be among args, not in a closure.
        x0: where to start: numbers, arrays, or a structure of them. The solution does
            not depend on it, and so its derivative is zero.
        args: parameters, any structures; the solution is differentiated by these.
        tol: stop when no element changes by more than ``tol * (1 + abs(element))``; by
            default 64 times the precision of its type.
        max_steps: give up after so many applications.

    Returns:
        The solution, like x0.

    Raises:
        ConvergenceError: if the changes do not become small.
        ArgumentError: if f closes over a tracked value.
        MutationError: in the backward pass, if an array that f closes over was changed.
        ShapeError: if f does not return a structure like x0.

    Rule:
        args_bar = (df/dargs)^T w, where w solves ``w == x_bar + (df/dx)^T w``

    Example:
        >>> import lantern
        >>> def heron(x, a):
        ...     return (x + a / x) / 2
        >>> fixed_point(heron, 1.0, 4.0)
        2.0
        >>> lantern.grad(lambda a: fixed_point(heron, 1.0, a))(4.0)
        0.25

    References:
        Christianson (1994), "Reverse accumulation and attractive fixed points".
    """
    where = "fixed_point"
    check_function(where, f)
    f, start = Steady(where, f), _plain_start(where, x0)

    def residual(x: Any, *args: Any) -> Any:
        return tree_map(lambda fx, x: fx - x, f(x, *args), x)

    def search(start: Any, *args: Any) -> Any:
        return _iterate(where, lambda x: f(x, *args), start, tol, max_steps)

    def by_iteration(pullback: Function, x_bar: Any) -> Any:
        def step(w: Any) -> Any:
            return tree_map(lambda a, b, c: a + b + c, w, pullback(w), x_bar)

        return _iterate(where, step, tree_map(zeros_like, x_bar), tol, max_steps)

    return _found_from(start, f, residual, search, by_iteration, args)


def root(
    f: Function,
    x0: Any,
    *args: Any,
    solver: Function | None = None,
    tol: float | None = None,
    max_steps: int = 100,
) -> Any:
    """The x with ``f(x, *args) == 0``, by Newton's method.

    Args:
        f: takes x and args, returns as many real numbers as x has. What it is
            differentiated by must be among args, not in a closure.
        x0: where to start: one number or one array.
        args: parameters, any structures; the solution is differentiated by these.
        solver: finds the root in another way: ``solver(g, x0)`` gets the function g of
            x alone and returns a plain solution, as ``scipy.optimize.fsolve`` does.
        tol: stop when no element changes by more than ``tol * (1 + abs(element))``; by
            default 64 times the precision of its type.
        max_steps: give up after so many steps of Newton's method.

    Returns:
        The solution, like x0.

    Raises:
        ConvergenceError: if the steps do not become small.
        ArgumentError: if x0 is not real numbers, or f closes over a tracked value.
        ShapeError: if f does not return as many numbers as x has.
        MutationError: in the backward pass, if an array that f closes over was changed.

    Rule:
        args_bar = (df/dargs)^T w, where w solves ``(df/dx)^T w == -x_bar``

    Example:
        >>> import lantern
        >>> def f(x, a):
        ...     return x**3 - a
        >>> root(f, 1.0, 8.0)
        2.0
        >>> round(lantern.grad(lambda a: root(f, 1.0, a))(8.0), 12)  # 1/12
        0.083333333333

    References:
        Griewank and Walther (2008), section 15.1.
    """
    check_function("root", f)
    f, start = Steady("root", f), _plain_start("root", x0)
    if not is_number(start) or is_complex(start):
        raise ArgumentError(
            f"root: x0 must be one real number or array, got {tree_structure(start)}. "
            f"Join several unknowns in an array, complex ones by real and imaginary "
            f"part."
        )

    def search(start: Any, *args: Any) -> Any:
        if solver is None:
            return _newton(lambda x: f(x, *args), start, tol, max_steps)
        return solver(lambda x: _one_step("root", f(x, *args), start), start)

    return _found_from(start, f, f, search, _by_elimination, args)


def _found_from(
    start: Any,
    f: Steady,
    residual: Function,
    search: Function,
    linear: Function,
    args: Any,
) -> Any:
    """As ``_solution``, by a search from a start; each example may have its own."""
    if not any(map(is_tracked, tree_leaves(start))):
        return _solution(f, residual, partial(search, start), linear, args)

    def of_both(x: Any, start: Any, *args: Any) -> Any:
        return residual(x, *args)

    return _solution(f, of_both, search, linear, (start, *args))


def _solution(
    f: Steady, residual: Function, search: Function, linear: Function, args: Any
) -> Any:
    """The x with ``residual(x, *args) == 0``, differentiable by args.

    Args:
        f: what the equation is made of.
        residual: the equation.
        search: finds x for plain args.
        linear: finds w with ``pullback(w) + x_bar == 0`` for a pullback and x_bar.
        args: the parameters.
    """
    if not any(map(is_tracked, tree_leaves(args))):
        return search(*tree_map(base, args))

    def body(run: Run, *args: Any) -> Any:
        if run.saved is None:  # one search, however often the rule is started
            run.saved = f.settle(lambda: _solution(f, residual, search, linear, args))
        x = run.saved
        x_bar = yield x

        def transposed(w: Any, x: Any, args: Any, x_bar: Any) -> Any:
            return tree_map(lambda a, b: a + b, _pullback(residual, x, args)(w), x_bar)

        def search_transposed(x: Any, args: Any, x_bar: Any) -> Any:
            return linear(_pullback(residual, x, args), x_bar)

        known = (x, args, x_bar)
        w = _solution(f, transposed, search_transposed, linear, known)
        leaves = list(tree_leaves(args))
        wanted = [i for i, is_wanted in enumerate(run.wanted) if is_wanted]

        def of_wanted(*some: Any) -> Any:
            replaced = dict(zip(wanted, some, strict=True))
            full = [replaced.get(i, leaf) for i, leaf in enumerate(leaves)]
            return residual(x, *run.place(full))

        bars = vjp(of_wanted, *(leaves[i] for i in wanted))[1](w)
        by_place = dict(zip(wanted, bars, strict=True))
        yield from run.place([by_place.get(i) for i in range(len(leaves))])

    return apply(f.where, "adjoint", body, args)


def _pullback(residual: Function, x: Any, args: Sequence[Any]) -> Function:
    """The transpose of the residual's derivative by x."""
    _, pullback = vjp(lambda x: residual(x, *args), x)
    return lambda w: pullback(w)[0]


def _plain_start(where: str, x0: Any) -> Any:
    """Where a search starts: plain floating-point values."""

    def plain(leaf: Any) -> Any:
        leaf = detached(leaf)
        if not is_number(leaf):
            raise ArgumentError(
                f"{where}: cannot start from {describe(leaf)}. Give numbers or arrays."
            )
        return float(leaf) if isinstance(leaf, int) else leaf

    return tree_map(plain, x0)


def _one_step(where: str, y: Any, x: Any) -> Any:
    """What the equation gave, plain and of x's form."""
    if any(map(is_tracked, tree_leaves(y))):
        raise ArgumentError(
            f"{where}: f closes over a tracked value, whose derivative would be lost. "
            f"Pass it as an argument: {where}(f, x0, value)."
        )
    if _form(x) != _form(y):
        raise ShapeError(
            f"{where}: f of {_form(x)} returned {_form(y)}. Return the form of x."
        )
    return tree_map(base, y)


def _form(tree: Any) -> Any:
    """Structure and shapes."""
    return tree_map(lambda leaf: f"shape {tuple(getattr(leaf, 'shape', ()))}", tree)


def _iterate(
    where: str, step: Function, x: Any, tol: float | None, max_steps: int
) -> Any:
    """Apply a step until nothing changes."""
    for _ in range(max_steps):
        last, x = x, _one_step(where, step(x), x)
        if all(map(_settled, tree_leaves(last), tree_leaves(x), repeat(tol))):
            return x
    raise ConvergenceError(
        f"{where}: x still changes after {max_steps} steps, now {x!r}. Start nearer to "
        f"the solution, allow more (max_steps, tol), or use lantern.root."
    )


def _settled(last: Any, x: Any, tol: float | None) -> bool:
    """Whether a leaf is finite and has changed by no more than the tolerance."""
    if getattr(x, "shape", ()):
        change, allowed = abs(x - last), _tolerance(x, tol) * (1 + abs(x))
        return bool(((change <= allowed) & (change < math.inf)).all())
    change, allowed = float(abs(x - last)), _tolerance(x, tol) * (1 + float(abs(x)))
    return bool(change <= allowed and change < math.inf)


def _tolerance(x: Any, tol: float | None) -> float:
    if tol is not None:
        return tol
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype.kind not in "fc":
        return 64 * sys.float_info.epsilon
    return 64 * float(namespace(x).finfo(dtype).eps)


def _newton(f: Function, x: Any, tol: float | None, max_steps: int) -> Any:
    """Newton's method; a step that does not bring f nearer to 0 is halved."""
    size = _size(_one_step("root", f(x), x))
    for _ in range(max_steps):
        y, pullback = vjp(f, x)
        step = _by_newton(lambda w, p=pullback: p(w)[0], _one_step("root", y, x))
        new, new_size = x + step, size
        for _ in range(30):
            new_size = _trial(f, new)
            if new_size < size or _settled(x, new, tol):
                break
            step = step / 2
            new = x + step
        last, x, size = x, new, new_size
        if _settled(last, x, tol):
            return x
    raise ConvergenceError(
        f"root: no solution after {max_steps} steps of Newton's method, now at {x!r}. "
        f"Start nearer to it, allow more (max_steps, tol), or give a solver."
    )


def _trial(f: Function, x: Any) -> float:
    """How far from 0 f is at x; infinitely, where it overflows."""
    try:
        return _size(f(x))
    except ArithmeticError:
        return math.inf


def _size(y: Any) -> float:
    return float(abs(y).max() if getattr(y, "shape", ()) else abs(y))


def _matrix(pullback: Function, like: Any) -> Any:
    """The transpose of the derivative: in column i what unit vector i is pulled to."""
    xp = namespace(like)
    count = like.size
    units = xp.eye(count, dtype=like.dtype)
    columns = [pullback(units[i].reshape(like.shape)).ravel() for i in range(count)]
    return xp.stack(columns, axis=1)


def _by_newton(pullback: Function, y: Any) -> Any:
    """The step from a point with value y to the root of the linearised function."""
    return _divided(pullback, y, lambda matrix: matrix.T)


def _by_elimination(pullback: Function, x_bar: Any) -> Any:
    """The w with ``pullback(w) + x_bar == 0``."""
    return _divided(pullback, x_bar, lambda matrix: matrix)


def _divided(pullback: Function, y: Any, orient: Function) -> Any:
    """The solution w of ``matrix @ w == -y``, with the pullback's oriented matrix."""
    try:
        if not getattr(y, "shape", ()):
            return -y / pullback(y * 0 + 1)
        solve = namespace(y).linalg.solve
        return solve(orient(_matrix(pullback, y)), -y.ravel()).reshape(y.shape)
    except (ZeroDivisionError, ValueError) as error:
        raise ConvergenceError(
            f"root: the derivative by x is singular ({error}). Start elsewhere; where "
            f"it is singular at the solution itself, that has no derivative."
        ) from error
