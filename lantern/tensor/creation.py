"""Arrays made from nothing: constants to every derivative."""

from typing import Any

from lantern.namespace import namespace
from lantern.tree import tree_map
from lantern.value import base, zeros_like

__all__ = ["ones_like", "stop_gradient", "zeros_like"]


def ones_like(x: Any) -> Any:
    """A plain one of the shape and type of a value, tracked or not.

    Example:
        >>> import numpy as np
        >>> ones_like(np.array([2.0, 3.0]))
        array([1., 1.])
    """
    x = base(x)
    return namespace(x).ones_like(x)


def stop_gradient(tree: Any) -> Any:
    """The same values as constants: nothing is differentiated through them.

    Example:
        >>> import lantern
        >>> lantern.grad(lambda x: x * stop_gradient(x))(3.0)
        3.0
    """
    return tree_map(base, tree)
