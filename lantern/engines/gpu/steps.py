"""Steps of optimisers over all parameters at once, as one kernel.

A parameter alone takes CuPy's launches, 12 to 25 µs each (a host beside an H100), which
for the 161 parameters of ResNet-50 is more than the rest of the step.
"""

from functools import lru_cache
from typing import Any

from lantern.engines.gpu import kernels
from lantern.engines.gpu.arrays import cupy, device, single

__all__ = ["adam", "descend", "fit"]

_PIECE = 16384  # as in kernels.cu


def fit(*arrays: Any) -> bool:
    """Whether the arrays of a parameter are for the kernels."""
    shape = arrays[0].shape
    return single(*arrays) and all(
        a.shape == shape and a.flags.c_contiguous for a in arrays
    )


def adam(parameters: list[Any], numbers: Any) -> None:
    """A step of Adam.

    Args:
        parameters: of each, its array, its gradient, the mean of gradients, and that
            of their squares.
        numbers: the shares of what is new in the mean, what is kept of squares, what is
            new in them, the step length, the root that squares are divided by, what is
            added to it, the decay that joins the gradient, and what is left of x.
    """
    _run("adam", parameters, numbers)


def descend(parameters: list[Any], numbers: Any) -> None:
    """A step of gradient descent with momentum.

    Args:
        parameters: of each, its array, its gradient, and its velocity.
        numbers: the step length, what is kept of the velocity, what is new in it, the
            decay that joins the gradient, and whether to look ahead (1) or not (0).
    """
    _run("descend", parameters, numbers)


def _run(name: str, parameters: list[Any], numbers: Any) -> None:
    places = tuple(a.data.ptr for arrays in parameters for a in arrays)
    sizes = tuple(arrays[0].size for arrays in parameters)
    table, blocks = _table(places, sizes, device())
    kernels.run_in_blocks(name, blocks, len(parameters), table, *numbers)


@lru_cache(1)  # the last one, so that no step takes more memory than the one before
def _table(places: Any, sizes: Any, _: int) -> Any:
    """What tells each block its piece, and how many blocks there are."""
    pieces = _pieces(sizes)
    return cupy().array([*pieces, *sizes, *places], "q"), len(pieces) // 2


@lru_cache(8)
def _pieces(sizes: Any) -> list[int]:
    """For each block the number of an array, and where its piece begins."""
    starts = ((i, s) for i, n in enumerate(sizes) for s in range(0, n, _PIECE))
    return [x for piece in starts for x in piece]
