"""The table of operators: which function computes one, from which version on."""

from collections.abc import Callable
from typing import Any

__all__ = ["CONSTANT", "OPERATORS", "lookup", "operator", "rows"]

# By domain and name: functions, and since which version of the operator they hold.
OPERATORS: dict[tuple[str, str], list[tuple[int, Any]]] = {}

# Operators whose derivative is zero wherever there is one.
CONSTANT = frozenset(
    (
        "ArgMax ArgMin BitShift Ceil EyeLike Floor Greater GreaterOrEqual Equal "
        "IsInf IsNaN Less LessOrEqual NonZero RandomNormalLike "
        "RandomUniformLike Round Shape Sign Size Bernoulli Multinomial "
        "QuantizeLinear DynamicQuantizeLinear ConstantOfShape "
        "SequenceLength OptionalHasElement NonMaxSuppression "
        "Not And Or Xor StringNormalizer Binarizer HammingWindow HannWindow "
        "BlackmanWindow Range MelWeightMatrix"
    ).split()
)


def operator(
    *names: str, since: int = 1, domain: str = "", reals_only: bool = False
) -> Callable[[Any], Any]:
    """Enter a function into the table, for operators of these names.

    A node's inputs are its positional arguments, and the attributes those by name:
    where a later version of the format has made an input of an attribute, one function
    serves both. Arguments called ``outputs`` and ``opset`` are told how many results
    are asked for, and the version of the operator.

    Args:
        names: the operators.
        since: the first version whose meaning this is.
        domain: of the operators.
        reals_only: whether inputs of other types are the reference's.
    """

    def enter(function: Any) -> Any:
        function.reals_only = reals_only
        for name in names:
            entries = OPERATORS.setdefault((domain, name), [])
            entries.append((since, function))
            entries.sort(key=lambda entry: -entry[0])
        return function

    return enter


def rows(table: dict[str, Any], since: int = 1, reals_only: bool = False) -> None:
    """Enter functions whose names are the operators'."""
    for name, function in table.items():

        def own(*inputs: Any, function: Any = function) -> Any:
            return function(*inputs)

        operator(name, since=since, reals_only=reals_only)(own)


def lookup(domain: str, name: str, version: int) -> Any:
    """The function for an operator of a version; None where there is none."""
    for since, function in OPERATORS.get((domain, name), []):
        if since <= version:
            return function
    return None
