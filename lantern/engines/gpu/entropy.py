"""Losses of classes: one kernel there and one back, in place of CuPy's dozen."""

from typing import Any

from lantern.engines.gpu import kernels
from lantern.engines.gpu.arrays import empty, single

__all__ = ["entropy", "entropy_back"]


def entropy(x: Any, places: Any) -> Any:
    """For each row ``logsumexp(x) - x[target]``, and the former; or None.

    Shapes:
        x: (n, classes); places: (n,), in all of x as one row; results: (n,)
    """
    if not (single(x) and x.ndim == 2 and x.flags.c_contiguous and _fit(places, x)):
        return None
    losses, logarithms = empty(len(x)), empty(len(x))
    kernels.run_in_blocks("entropy", len(x), x.shape[1], x, places, losses, logarithms)
    return losses, logarithms


def entropy_back(x: Any, places: Any, logarithms: Any, factors: Any) -> Any:
    """``factors * (softmax(x) - one_hot(targets))``; None if not for the engine.

    Shapes:
        x: (n, classes); places, logarithms: (n,); factors: (n,) or (); result: as x
    """
    if not single(factors):
        return None
    x_bar, step = empty(x.shape), int(factors.ndim > 0)
    kernels.run_in_blocks(
        "entropy_back", len(x), x.shape[1], x, places, logarithms, factors, step, x_bar
    )
    return x_bar


def _fit(places: Any, x: Any) -> bool:
    fit = type(places) is type(x) and places.dtype.char in "lq"
    return fit and places.shape == x.shape[:1] and places.flags.c_contiguous
