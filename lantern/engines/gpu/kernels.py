"""Our own kernels, of ``kernels.cu``: compiled by CuPy when the first of them runs."""

from functools import cache
from importlib import import_module
from typing import Any

from lantern.engines.gpu.arrays import cupy

__all__ = ["run", "run_in_blocks"]

_THREADS, _MOST_BLOCKS = 256, 2112  # sixteen blocks for each of 132 multiprocessors
_PACKAGE = "lantern.engines.gpu"


def run(name: str, n: int, *arguments: Any) -> None:
    """Run a kernel over n elements.

    Args:
        name: the kernel's.
        n: how many elements there are.
        arguments: those behind n, which CuPy gives as 64 bits, each number too.
    """
    blocks = min(-(-n // _THREADS), _MOST_BLOCKS)
    _kernel(name)((blocks,), (_THREADS,), (n, *arguments))


def run_in_blocks(name: str, blocks: int, *arguments: Any) -> None:
    """Run a kernel with so many blocks."""
    _kernel(name)((blocks,), (_THREADS,), arguments)


@cache
def _kernel(name: str) -> Any:
    return _module().get_function(name)


@cache
def _module() -> Any:
    resources = import_module("importlib.resources")  # which takes 8 ms
    source = resources.files(_PACKAGE).joinpath("kernels.cu").read_text()
    return cupy().RawModule(code=source)
