"""What becomes of the losses of all elements, as a name and as a number."""

import warnings
from typing import Any

from lantern.errors import OptionError
from lantern.torch.nn.functional.loss import chosen

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction.

    Example:
        >>> get_enum("sum")
        2
    """
    if reduction not in _NUMBERS:
        raise OptionError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: Any, reduce: Any, emit_warning: bool = True) -> str:
    """The reduction that older programs name by two truths.

    Example:
        >>> legacy_get_string(False, True, emit_warning=False)
        'sum'
    """
    given = [True if x is None else x for x in (size_average, reduce)]
    with warnings.catch_warnings():
        if not emit_warning:
            warnings.simplefilter("ignore")
        return chosen("mean", *given)


def legacy_get_enum(size_average: Any, reduce: Any, emit_warning: bool = True) -> int:
    """Its number.

    Example:
        >>> legacy_get_enum(True, False, emit_warning=False)
        0
    """
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
