"""What libraries import to count operations: they are not counted here."""

from typing import Any

from lantern.errors import MissingRuleError

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """An error: operations are not counted.

    Example:
        >>> FlopCounterMode()
        Traceback (most recent call last):
            ...
        lantern.errors.MissingRuleError: FlopCounterMode: operations are not counted \
here. Time them, with torch.utils.benchmark.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        raise MissingRuleError(
            "FlopCounterMode: operations are not counted here. Time them, with "
            "torch.utils.benchmark."
        )
