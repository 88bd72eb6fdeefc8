"""Conjugation of complex cotangents: the gradient needs a rule's adjoint."""

from typing import Any

from lantern.core.contribution import Contribution
from lantern.core.namespace import namespace
from lantern.core.operation import by_code

__all__ = ["conj", "is_adjoint"]


def is_adjoint(rule: Any) -> bool:
    """Whether a rule's backward step is written as an adjoint, not as a transpose."""
    known = by_code.get(getattr(rule, "gi_code", None))  # type: ignore[arg-type]
    return known is not None and known.adjoint


def conj(x: Any) -> Any:
    """The complex conjugate of a cotangent or of a contribution in any form."""
    if isinstance(x, list | tuple):
        return tuple(map(conj, x))
    if isinstance(x, Contribution):
        return x.each(conj)
    return conj(x()) if callable(x) else namespace(x).conj(x)
