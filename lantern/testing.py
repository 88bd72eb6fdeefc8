"""Checks of derivatives against finite differences, for users and for our own tests."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lantern.errors import LanternError
from lantern.forward import jvp
from lantern.reverse import vjp
from lantern.tree import tree_leaves, tree_map
from lantern.value import base

__all__ = ["GradientError", "check_grads"]

# The weights of the central difference of sixth order at 1, 2 and 3 steps.
_STENCIL = (3 / 4, -3 / 20, 1 / 60)


class GradientError(LanternError, AssertionError):
    """A derivative differs from finite differences."""


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
        GradientError: naming the mode, the expected and the found value.

    Example:
        >>> import lantern
        >>> check_grads(lambda x: lantern.sin(x) * x, (0.5,), order=2)

    References:
        Griewank and Walther (2008), section 3.1; Fornberg (1988), table 1.
    """
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
        where = f"{path}{mode}"
        if mode == "fwd":
            for got, want in zip(
                tree_leaves(forward(*args)), tree_leaves(expected), strict=True
            ):
                _compare(where, got, want, tolerances)
        else:
            gradient = reverse(*args)
            _compare_structure(where, gradient, args)
            got, want = inner(gradient, v), inner(y_bar, expected)
            _compare(where, got, want, tolerances)
        if order > 1:
            derivative = forward if mode == "fwd" else reverse
            step = (derivative, args, order - 1, modes, tolerances, seed + 1)
            _check(*step, f"{where} of ")


def _compare(
    where: str, got: Any, want: Any, tolerances: tuple[float, float, float]
) -> None:
    atol, rtol, _ = tolerances
    if not np.allclose(got, want, atol=atol, rtol=rtol, equal_nan=True):
        off = np.max(np.abs(np.asarray(got) - np.asarray(want)))
        raise GradientError(
            f"check_grads: {where} is {got}, finite differences give {want}, which is "
            f"off by {off:.3g}. Check the rules of the operations that f uses."
        )


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
