"""Types of staged values: what is known of a value before the program runs."""

from typing import Any, NamedTuple

__all__ = [
    "BOOL",
    "FLOAT",
    "INT",
    "NOTHING",
    "RECORD",
    "TAPE",
    "TREE",
    "Type",
    "join",
    "type_of",
]


class Type(NamedTuple):
    """The type of a staged value.

    Attributes:
        kind: "float", "int" and "bool" are Python's; "array" has a dtype and a shape;
            "tree" is an object of the caller's, looked at when the program runs;
            "tape" and "record" are what a forward pass saves for the way back;
            "nothing" is the result of what is done for its effect.
        dtype: of an array.
        shape: of an array.
    """

    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.kind != "array":
            return self.kind
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def is_number(self) -> bool:
        """Whether it is one of Python's numbers."""
        return self.kind in ("float", "int", "bool")

    @property
    def has_cotangent(self) -> bool:
        """Whether a derivative goes through values of this type.

        The cotangent of what a forward pass saves is a record of cotangents.
        """
        if self.kind == "array":
            return self.dtype[0] in "fc"
        return self.kind in ("float", "tape", "record")

    @property
    def is_saved(self) -> bool:
        """Whether it is what a forward pass saves for the way back."""
        return self.kind in ("tape", "record")


FLOAT, INT, BOOL = Type("float"), Type("int"), Type("bool")
TREE, TAPE, RECORD, NOTHING = map(Type, ("tree", "tape", "record", "nothing"))
_NUMBERS = {float: FLOAT, int: INT, bool: BOOL}


def type_of(x: Any) -> Type | None:
    """The type of a plain value that can be staged; None for any other.

    Example:
        >>> str(type_of(2.0)), str(type_of("two"))
        ('float', 'None')
    """
    known = _NUMBERS.get(type(x))
    if known is None and hasattr(x, "dtype") and isinstance(x.shape, tuple):
        return Type("array", str(x.dtype), x.shape)
    return known


def join(one: Type, other: Type) -> Type | None:
    """The type of a value that is of one type or of another; None if there is none.

    An int that may as well be a float becomes one, as it would in arithmetic.
    """
    if one == other:
        return one
    return FLOAT if {one, other} == {FLOAT, INT} else None
