"""The array API standard, version 2024.12: what ``x.__array_namespace__()`` returns.

Nothing is computed here: ``lantern.array_api.signatures`` finds each function by its
name.

Example:
    >>> import lantern
    >>> import numpy as np
    >>> from lantern import array_api as xp
    >>> x = xp.linspace(0.0, 1.0, 3)
    >>> x.__array_namespace__() is xp
    True
    >>> xp.less(x, 0.7)
    Tensor(array([ True,  True, False]))
    >>> def softmax(x):  # written for any array library
    ...     xp = x.__array_namespace__()
    ...     z = xp.exp(x - xp.max(x))
    ...     return z / xp.sum(z)
    >>> lantern.grad(lambda x: softmax(x)[0])(np.zeros(2))
    array([ 0.25, -0.25])

References:
    Consortium for Python Data API Standards, Python array API standard, v2024.12.
"""

from types import ModuleType
from typing import Any

from lantern.array_api.signatures import CONSTANTS, SIGNATURES, conforming
from lantern.tensor.backend.numpy_namespace import numpy_namespace

__array_api_version__ = "2024.12"


def __array_namespace_info__() -> Any:  # noqa: N807  # the standard's name
    """What the array library says of its types and devices."""
    return numpy_namespace.module.__array_namespace_info__()


def _find(name: str) -> Any:
    """What a name of the standard stands for; made when it is first asked for."""
    if name in CONSTANTS:
        return getattr(numpy_namespace.module, name)
    if name in SIGNATURES:
        return conforming(name)
    raise AttributeError(f"lantern.array_api: the standard has no {name!r}.")


class Extension(ModuleType):
    """A part of the standard with a name of its own."""

    def __getattr__(self, name: str) -> Any:
        value = _find(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return _names(self.__name__)


def _names(extension: str) -> list[str]:
    """The names of an extension, or with "" those beside the extensions."""
    split = (name.rpartition(".") for name in SIGNATURES)
    return sorted(name for owner, _, name in split if owner == extension)


linalg = Extension("linalg", "Linear algebra, as the standard has it.")
fft = Extension("fft", "Fourier transforms, as the standard has them.")
__all__ = ["__array_api_version__", "__array_namespace_info__", "fft", "linalg"]
__all__.extend([*CONSTANTS, *_names("")])


def __getattr__(name: str) -> Any:
    value = globals()[name] = _find(name)
    return value


def __dir__() -> list[str]:
    return __all__
