"""Values that may be absent: a value itself, or None."""

from typing import Any

import numpy as np

from lantern.errors import ArgumentError
from lantern.onnx.operators.table import operator

__all__: list[str] = []


@operator("Optional", since=15)
def optional(x: Any = None, type: Any = None) -> Any:
    """A value, or none of a type."""
    return x


@operator("OptionalHasElement", since=15)
def has_element(x: Any = None) -> Any:
    """Whether there is a value."""
    return np.array(x is not None)


@operator("OptionalGetElement", since=15)
def get_element(x: Any) -> Any:
    """The value.

    Raises:
        ArgumentError: if there is none.
    """
    if x is None:
        raise ArgumentError("onnx: OptionalGetElement of what is absent.")
    return x
