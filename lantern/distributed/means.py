"""Structures of arrays, averaged over the ranks."""

from typing import Any

from lantern.core.tree import tree_map
from lantern.distributed.collectives import all_reduce

__all__ = ["pmean", "psum"]


def pmean(tree: Any, group: Any = None, loss: str = "sum") -> Any:
    """The mean over the ranks of each array or number of a structure.

    Args:
        tree: dictionaries, lists, dataclasses, ... of arrays: gradients, as a rule.
        group: as in ``all_reduce``.
        loss: as in ``all_reduce``.

    Example:
        >>> import lantern
        >>> import lantern.distributed as dist
        >>> loss = lambda p: p["a"] ** 2 * p["b"]
        >>> dist.pmean(lantern.grad(loss)({"a": 3.0, "b": 2.0}))
        {'a': 12.0, 'b': 9.0}
    """
    return tree_map(lambda x: all_reduce(x, "mean", group, loss), tree)


def psum(tree: Any, group: Any = None, loss: str = "sum") -> Any:
    """The sum over the ranks of each array or number of a structure.

    Args:
        tree: as in ``pmean``.
        group: as in ``all_reduce``.
        loss: as in ``all_reduce``.

    Example:
        >>> import lantern.distributed as dist
        >>> dist.psum({"a": 3.0})
        {'a': 3.0}
    """
    return tree_map(lambda x: all_reduce(x, "sum", group, loss), tree)
