"""SciPy's results for plain operands; for tracked ones, a rule's."""

from typing import Any

from lantern.core.namespace import common_namespace
from lantern.core.operation import operation_of
from lantern.core.value import Value
from lantern.tensor.backend.numpy_namespace import array_namespace

__all__ = ["evaluate"]


def evaluate(function: Any, *operands: Any, name: str = "") -> Any:
    """A function of tracked operands by its rule, of plain ones by SciPy.

    Args:
        function: the operation.
        operands: what it computes on.
        name: SciPy's, if it is another one.
    """
    if any(isinstance(x, Value) for x in operands):
        rule = getattr(function, "rule", None)  # none: made of other operations
        if rule and operation_of(rule).kind == "constant":  # of examples of a vmap
            return common_namespace(*operands).each(function, *operands)
        return function(*operands)
    scipys = array_namespace(*operands).scipys(name or function.__name__)
    z = scipys(*operands)
    return z if any(hasattr(x, "dtype") for x in operands) else z.item()
