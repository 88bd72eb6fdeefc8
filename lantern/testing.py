"""Checks of derivatives against finite differences, for users and for our own tests."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lantern.core.tree import tree_leaves, tree_map, tree_paths
from lantern.core.value import base
from lantern.errors import ArgumentError, LanternError
from lantern.transforms.arguments import check_function
from lantern.transforms.forward import jvp
from lantern.transforms.reverse import vjp

__all__ = ["GradientError", "check_grads"]

_WORST = 5  # so many elements does a report show
# The weights of the central difference of sixth order at 1, 2 and 3 steps.
_STENCIL = (3 / 4, -3 / 20, 1 / 60)


class GradientError(LanternError, AssertionError):
    """A derivative differs from finite differences.

    Example:
        >>> import lantern
        >>> check_grads(lambda x: x * lantern.stop_gradient(x), (1.0,))
        Traceback (most recent call last):
            ...
        lantern.testing.GradientError: check_grads: fwd is wrong in 1 of 1 ...
    """


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float = 1e-7,
    rtol: float = 1e-7,
    eps: float = 1e-3,
    seed: int = 0,
) -> None:
    """Check the derivatives of f in a random direction, in every mix of modes.

    With J the derivative of f, v a random direction and y_bar a random cotangent, the
    forward derivative must equal a central difference along v, and the pullback must
    satisfy ``<y_bar, J v> == <pullback(y_bar), v>``. For higher orders both derivatives
    are themselves checked.

    Args:
        f: takes and returns structures of real or complex numbers and arrays.
        args: the point, in double precision.
        order: how many times to differentiate.
        modes: "fwd", "rev" or both.
        atol: absolute tolerance.
        rtol: relative tolerance.
        eps: the step of the finite differences.
        seed: of the random directions.

    Raises:
        GradientError: a report that names the mode, and the arguments or results with
            the worst elements, found and expected.
        ArgumentError: if args is no tuple or list, or a mode or the order is unknown.

    Example:
        >>> import lantern
        >>> check_grads(lambda x: lantern.sin(x) * x, (0.5,), order=2)
        >>> @lantern.custom_rule
        ... def cube(x, /):
        ...     z_bar = yield x**3
        ...     yield z_bar * 2 * x**2
        >>> check_grads(cube, (2.0,), modes=("rev",))
        Traceback (most recent call last):
        ...
        lantern.testing.GradientError: check_grads: rev is wrong in 1 of 1 elements.
            args[0]: found -4.3..., expected -6.4... by finite differences, off by 2.16
        Check the rules of the operations that f uses.

    References:
        Griewank and Walther (2008), section 3.1; Fornberg (1988), table 1.
    """
    check_function("check_grads", f)
    unknown = [mode for mode in modes if mode not in ("fwd", "rev")]
    if not isinstance(args, tuple | list) or unknown or not modes or order < 1:
        raise ArgumentError(
            f"check_grads: got args of type {type(args).__name__}, order={order!r}, "
            f"modes={modes!r}. Give the arguments as a tuple, an order from 1 on, and "
            f"'fwd', 'rev' or both."
        )
    _check(f, tuple(args), order, tuple(modes), (atol, rtol, eps), seed, "")


def _check(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    tolerances: tuple[float, float, float],
    seed: int,
    path: str,
) -> None:
    rng = np.random.default_rng(seed)
    v = random_like(args, rng)
    y = f(*args)
    y_bar = random_like(y, rng)
    expected = difference(f, args, v, tolerances[2])

    def forward(*x: Any) -> Any:
        return jvp(f, x, v)[1]

    def reverse(*x: Any) -> Any:
        return vjp(f, *x)[1](y_bar)

    for mode in modes:
        where = f"{mode}{path}"
        if mode == "fwd":
            _compare(where, "f(*args)", forward(*args), expected, tolerances)
        else:
            gradient = reverse(*args)
            _compare_structure(where, gradient, args)
            if not _close(inner(gradient, v), inner(y_bar, expected), tolerances):
                whole = _by_element(f, args, y_bar, tolerances[2])
                _compare(where, "args", gradient, whole, tolerances)
                _compare(
                    where,
                    "the sum",
                    inner(gradient, v),
                    inner(y_bar, expected),
                    tolerances,
                )
        if order > 1:
            derivative = forward if mode == "fwd" else reverse
            step = (derivative, args, order - 1, modes, tolerances, seed + 1)
            _check(*step, f" of {where}")


def _close(got: Any, want: Any, tolerances: tuple[float, float, float]) -> Any:
    """Whether elements agree; nan agrees with nan."""
    atol, rtol, _ = tolerances
    return np.isclose(got, want, atol=atol, rtol=rtol, equal_nan=True)


def _compare(
    where: str, name: str, got: Any, want: Any, tolerances: tuple[float, float, float]
) -> None:
    """Raise a report of the elements that differ, the worst ones first."""
    wrong: list[tuple[float, str]] = []
    count = 0
    for (path, found), expected in zip(tree_paths(got), tree_leaves(want), strict=True):
        keys = "".join(f"[{key!r}]" for key in path)
        found, expected = np.asarray(found), np.asarray(expected)
        count += found.size
        off = np.abs(found - expected)
        for i in np.argwhere(~_close(found, expected, tolerances)):
            place = tuple(map(int, i))
            line = (
                f"    {name}{keys}{list(place) if place else ''}: found "
                f"{found[place]:.9g}, expected {expected[place]:.9g} by finite "
                f"differences, off by {off[place]:.3g}"
            )
            wrong.append((float(np.nan_to_num(off[place], nan=np.inf)), line))
    if wrong:
        wrong.sort(key=lambda pair: -pair[0])
        lines = [line for _, line in wrong[:_WORST]]
        if len(wrong) > _WORST:
            lines.append(f"    and {len(wrong) - _WORST} more")
        raise GradientError(
            f"check_grads: {where} is wrong in {len(wrong)} of {count} elements.\n"
            + "\n".join(lines)
            + "\nCheck the rules of the operations that f uses."
        )


def _by_element(f: Callable[..., Any], args: Any, y_bar: Any, eps: float) -> Any:
    """The gradient of ``<y_bar, f>``, element by element, for a report."""

    def scalar(*x: Any) -> float:
        return inner(y_bar, f(*x))

    def along(leaf: int, unit: Any) -> float:
        places = iter(range(len(list(tree_leaves(args)))))
        v = tree_map(
            lambda x: unit if next(places) == leaf else np.zeros(np.shape(x)), args
        )
        return float(difference(scalar, args, v, eps))

    def of_leaf(i: int, x: Any) -> Any:
        units = np.eye(np.size(x)).reshape(-1, *np.shape(x))
        flat: list[Any] = [along(i, unit) for unit in units]
        if np.asarray(x).dtype.kind == "c":
            flat = [a + 1j * along(i, 1j * u) for a, u in zip(flat, units, strict=True)]
        return np.reshape(flat, np.shape(x))

    places = iter(range(len(list(tree_leaves(args)))))
    return tree_map(lambda x: of_leaf(next(places), x), args)


def _compare_structure(where: str, gradient: Any, args: Any) -> None:
    def describe(leaf: Any) -> str:
        kind = getattr(leaf, "dtype", type(leaf).__name__)
        return f"{kind}{np.shape(leaf)}"

    got, want = tree_map(describe, gradient), tree_map(describe, args)
    if got != want:
        raise GradientError(
            f"check_grads: {where} has leaves {got}, the arguments have {want}. A "
            f"gradient has its argument's structure, shapes and types."
        )


def random_like(tree: Any, rng: np.random.Generator) -> Any:
    """A structure of random numbers, of the same shapes and types, none near zero."""

    def leaf(x: Any) -> Any:
        x = base(x)
        shape, dtype = np.shape(x), np.asarray(x).dtype
        draw = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
        if dtype.kind == "c":
            draw = draw + 1j * rng.uniform(0.5, 1.5, shape)
        return draw.astype(dtype) if isinstance(x, np.ndarray) else type(x)(draw)

    return tree_map(leaf, tree)


def inner(x: Any, y: Any) -> float:
    """The real inner product of two structures of numbers."""
    pairs = zip(tree_leaves(x), tree_leaves(y), strict=True)
    return float(sum(np.sum(np.real(np.conj(a) * b)) for a, b in pairs))


def difference(
    f: Callable[..., Any], args: tuple[Any, ...], v: tuple[Any, ...], eps: float
) -> Any:
    """The derivative of f at args along v, by central differences of sixth order."""

    def at(step: float) -> Any:
        return f(*tree_map(lambda x, x_dot: x + step * x_dot, args, v))

    total = None
    for k, weight in enumerate(_STENCIL, start=1):
        change = tree_map(
            lambda high, low, w=weight: w * (high - low) / eps,
            at(k * eps),
            at(-k * eps),
        )
        total = change if total is None else tree_map(lambda a, b: a + b, total, change)
    return total
