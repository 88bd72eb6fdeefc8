"""Where a complex cotangent is conjugated: the gradient needs a rule's adjoint."""

from types import CodeType
from typing import Any

from lantern.core.contribution import Contribution
from lantern.core.namespace import namespace

__all__ = ["adjoint_rules", "conj", "is_adjoint"]

# The code of rules that are written as adjoints (``lantern.op.adjoint``).
adjoint_rules: set[CodeType] = set()


def is_adjoint(rule: Any) -> bool:
    """Whether a rule's backward step is written as an adjoint, not as a transpose."""
    return getattr(rule, "gi_code", None) in adjoint_rules


def conj(x: Any) -> Any:
    """The complex conjugate of a cotangent or of a contribution in any form."""
    if isinstance(x, list | tuple):
        return tuple(map(conj, x))
    if isinstance(x, Contribution):
        return x.each(conj)
    return conj(x()) if callable(x) else namespace(x).conj(x)
