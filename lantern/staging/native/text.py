"""Lines of LLVM's language, and the names of values, labels and types in them."""

import struct
from typing import Any

from lantern.staging.types import Type

__all__ = ["Text", "Words", "literal", "llvm_type"]

_TYPES = {
    "float": "double",
    "int": "i64",
    "bool": "i1",
    "tree": "ptr",
    "tape": "ptr",
    "record": "ptr",
}
SAFE_INT = 2**53
"""Up to here an int is a float exactly."""


def llvm_type(type: Type) -> str:
    """LLVM's type of a value."""
    return _TYPES[type.kind]


def literal(x: Any) -> str:
    """A Python number in LLVM's notation: a float by its bits."""
    if type(x) is bool:
        return str(x).lower()
    if type(x) is int:
        return str(x)
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Words:
    """The addresses that a module finds in a table: its text has none, and no process.

    So machine code can be kept for other processes, which fill in their own table.

    Attributes:
        addresses: by their places.
        constants: vectors, by their types and lanes, and the names that they have.
    """

    def __init__(self) -> None:
        self.addresses: list[int] = []
        self.constants: dict[str, str] = {}
        self._places: dict[int, int] = {}

    def place(self, address: int) -> int:
        """Where an address stands in the table."""
        if address not in self._places:
            self._places[address] = len(self.addresses)
            self.addresses.append(address)
        return self._places[address]

    def constant(self, vector: str) -> str:
        """Where a constant vector stands."""
        return self.constants.setdefault(vector, f"@c{len(self.constants)}")


class Text:
    """The lines of one function, with fresh names.

    Args:
        words: the addresses of the module.
    """

    def __init__(self, words: Words) -> None:
        self.words = words
        self.lines: list[str] = []
        self.label = "entry"
        self._count = 0

    def fresh(self, letter: str) -> str:
        """A name that no other has."""
        self._count += 1
        return f"{letter}{self._count}"

    def do(self, line: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {line}")

    def let(self, expression: str) -> str:
        """An instruction's value, by its name."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {expression}")
        return name

    def begin(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        """Go on elsewhere."""
        self.do(f"br label %{label}")

    def fork(self, condition: str, yes: str, no: str) -> None:
        """Go on in one of two places."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def address(self, number: int) -> str:
        """An address, from the table."""
        place = self.words.place(number)
        at = f"getelementptr (i64, ptr @words, i64 {place})"
        return self.let(f"load ptr, ptr {at}, !invariant.load !1")

    def object(self, x: object) -> str:
        """The address of an object of Python's, which somebody has to keep."""
        return self.address(id(x))

    def bail_if(self, condition: str) -> None:
        """Leave the program if a condition holds."""
        on = self.fresh("on")
        self.do(f"br i1 {condition}, label %bail, label %{on}, !prof !0")
        self.begin(on)
