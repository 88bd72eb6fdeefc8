"""Functions of sizes that could be symbols in PyTorch: they are always numbers here."""

import math
from collections.abc import Callable
from typing import Any

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max",
    "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


class SymInt:
    """A whole number that is not known yet: nothing is one.

    Example:
        >>> import lantern.torch as torch
        >>> isinstance(torch.ones(2).shape[0], torch.SymInt)
        False
    """


class SymFloat:
    """A number that is not known yet: nothing is one.

    Example:
        >>> import lantern.torch as torch
        >>> isinstance(torch.ones(2).sum().item(), torch.SymFloat)
        False
    """


class SymBool:
    """A truth value that is not known yet: nothing is one.

    Example:
        >>> import lantern.torch as torch
        >>> isinstance(torch.ones(2).is_floating_point(), torch.SymBool)
        False
    """


def sym_int(a: Any) -> int:
    """A number without its fraction.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sym_int(-2.5)
        -2
    """
    return math.trunc(a)


def sym_float(a: Any) -> float:
    """A number as a float.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sym_float(2)
        2.0
    """
    return float(a)


def sym_not(a: Any) -> bool:
    """Whether a condition does not hold.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sym_not(True)
        False
    """
    return not a


def _alike(function: Callable[..., Any], a: Any, b: Any) -> Any:
    found = function(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_max(a: Any, b: Any) -> Any:
    """The larger one; a float if either is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sym_max(3, 2.0)
        3.0
    """
    return _alike(max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller one; a float if either is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sym_min(3, 2)
        2
    """
    return _alike(min, a, b)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """The one value where a condition holds, else the other.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sym_ite(True, 1, 2)
        1
    """
    return t if b else f


def sym_sum(args: Any) -> Any:
    """The sum of several numbers.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sym_sum([1, 2, 3])
        6
    """
    return sum(args)


def sym_sqrt(a: Any) -> float:
    """The root of a number.

    Example:
        >>> import lantern.torch as torch
        >>> torch.sym_sqrt(4)
        2.0
    """
    return math.sqrt(a)


_sym_sqrt = sym_sqrt
