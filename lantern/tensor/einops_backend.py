"""The one file that knows einops, whose functions take arrays of a list of libraries.

It finds who computes on an array among the subclasses of its own ``AbstractBackend``.
Nothing of it is imported here: the subclasses are made when the program imports it.
"""

from typing import Any

from lantern.core.value import Value
from lantern.imported import once_imported

__all__ = ["watch"]


def watch() -> None:
    """Let einops know tracked arrays, as soon as there is einops."""
    once_imported("einops._backends", _register)


def _register(backends: Any) -> None:
    class Backend(backends.NumpyBackend):
        """NumPy's functions, by which tracked arrays find their rules."""

        framework_name = "lantern"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Value) and not tensor.is_face

    _kept.append(Backend)  # else nobody would hold it: einops looks at its subclasses


_kept: list[Any] = []
