"""What one sample call of an operation is."""

from typing import Any, NamedTuple


class Case(NamedTuple):
    """One call of an operation.

    Attributes:
        name: of the operation in the registry.
        operands: what is differentiated; intervals stand for random numbers.
        statics: the remaining arguments, by name.
        shapes: the operands' shapes, where it computes on arrays.
    """

    name: str
    operands: tuple[Any, ...]
    statics: dict[str, Any] = {}  # noqa: RUF012  # never written to
    shapes: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        statics = ",".join(f"{k}={v}" for k, v in self.statics.items())
        return f"{self.name}{list(self.shapes) or ''}{statics}"


Interval = tuple[float, float]
SIGNED = (-2.0, 2.0)
POSITIVE = (0.3, 2.5)
UNIT = (-0.9, 0.9)
ABOVE_ONE = (1.1, 3.0)


def array_case(
    name: str,
    *shapes: tuple[int, ...],
    interval: Interval = SIGNED,
    **statics: Any,
) -> Case:
    """A call on arrays of these shapes, with all numbers from one interval."""
    return Case(name, (interval,) * len(shapes), statics, shapes)
