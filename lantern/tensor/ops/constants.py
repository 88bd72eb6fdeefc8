"""Arrays of constants, made from nothing but a shape."""

from typing import Any

from lantern.core.namespace import namespace
from lantern.core.operation import Function
from lantern.core.value import base
from lantern.tensor.backend.device import to_device
from lantern.tensor.backend.numpy_namespace import (
    array_namespace,
    find_device,
    numpy_namespace,
)

__all__ = [
    "empty", "empty_like", "eye", "identity", "ones", "ones_like", "tri", "zeros",
    "zeros_like",
]  # fmt: skip

# Each function's meaning, with an example: three lines for one.
_MEANINGS = """
empty: An array of a shape, whose elements are whatever was in memory.
>>> empty((2, 3)).shape
(2, 3)
eye: A matrix with ones on a diagonal, and zeros elsewhere.
>>> eye(1, 3, k=1)
array([[0., 1., 0.]])
identity: The identity matrix of a size.
>>> identity(2).ravel()
array([1., 0., 0., 1.])
ones: An array of ones.
>>> ones(3)
array([1., 1., 1.])
tri: A matrix with ones on and below a diagonal, and zeros elsewhere.
>>> tri(1, 3, k=1)
array([[1., 1., 0.]])
zeros: An array of zeros.
>>> zeros((1, 3))
array([[0., 0., 0.]])
empty_like: An array in the form of x, whose elements are whatever was in memory.
>>> empty_like([[1.0, 2.0]]).shape
(1, 2)
ones_like: Ones in the form of x.
>>> ones_like([[1.0, 2.0]])
array([[1., 1.]])
zeros_like: Zeros in the form of x.
>>> zeros_like([[1.0, 2.0]])
array([[0., 0.]])
"""


def told(text: str, function: Function, name: str, more: str) -> Function:
    """A function with its name, and with a docstring from a text like the one above."""
    meaning, example, shown = text.partition(f"\n{name}: ")[2].split("\n", 3)[:3]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{meaning}

    It is ``numpy.{name}``{more}.

    Example:
        {example}
        {shown}
    """
    return function


def _creator(name: str) -> Function:
    """NumPy's function of a name."""

    def function(*args: Any, device: Any = None, **options: Any) -> Any:
        return on_device(device, name, args, options)

    return told(_MEANINGS, function, name, "; the elements are constants")


def on_device(device: Any, name: str, args: Any, options: Any) -> Any:
    """The result of an array library's function on a device; by default on the CPU."""
    if device is None:
        return getattr(numpy_namespace, name)(*args, **options)
    z = getattr(find_device(device)[0], name)(*args, **options)
    return to_device(z, device)


def _like(name: str) -> Function:
    """The function of a name, for constants in the form of a value."""

    def function(x: Any, /, *args: Any, device: Any = None, **options: Any) -> Any:
        x = base(x)
        alone = not args and not options and not isinstance(x, list | tuple)
        xp = namespace(x) if alone else array_namespace(x)
        z = getattr(xp, name)(x, *args, **options)
        return z if device is None else to_device(z, device)

    return told(_MEANINGS, function, name, "; the elements are constants")


empty = _creator("empty")
eye = _creator("eye")
identity = _creator("identity")
ones = _creator("ones")
tri = _creator("tri")
zeros = _creator("zeros")

empty_like = _like("empty_like")
ones_like = _like("ones_like")
zeros_like = _like("zeros_like")
