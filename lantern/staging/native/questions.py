"""What machine code asks Python's own objects before a call.

A global, an attribute or an item of a list that a program has taken for constant has no
word of its own that would tell of a change. So machine code finds it as the interpreter
does, and compares the address of what is there with the one in a table.
"""

from types import MethodType
from typing import Any, NamedTuple

from lantern.staging.native.text import Text

__all__ = ["MISSING", "Question"]

MISSING = object()
"""What stands for the value of a name that is bound to nothing."""


class Question(NamedTuple):
    """A place among Python's objects, and what was there.

    Attributes:
        kind: "name", "item", "attribute" or "method".
        owner: the dict, the list or the object.
        key: the name or the position.
        value: what was there; ``MISSING`` for nothing.
    """

    kind: str
    owner: Any
    key: Any
    value: Any

    @classmethod
    def about(cls, owner: Any, name: str, value: Any) -> "Question":
        """A question about an attribute."""
        kind = "method" if type(value) is MethodType else "attribute"
        return cls(kind, owner, name, value)

    def now(self) -> Any:
        """What is there now."""
        if self.kind == "name":
            return self.owner.get(self.key, MISSING)
        if self.kind == "item":
            return self.owner[self.key] if self.key < len(self.owner) else MISSING
        return getattr(self.owner, self.key, MISSING)

    def word(self, value: Any) -> int:
        """What machine code sees of a value: the function of a method."""
        if self.kind == "method":
            is_bound = type(value) is MethodType
            is_same = is_bound and value.__self__ is self.value.__self__
            return id(value.__func__) if is_same else 0
        return 0 if value is MISSING else id(value)

    def asked(self, text: Text) -> str:
        """The address of what is there when machine code runs; null for nothing."""
        owner = text.object(self.owner)
        if self.kind == "item":
            return text.let(f"call ptr @PyList_GetItem(ptr {owner}, i64 {self.key})")
        key = text.object(self.key)
        if self.kind == "name":
            return text.let(f"call ptr @PyDict_GetItem(ptr {owner}, ptr {key})")
        if self.kind == "attribute":
            return text.let(f"call ptr @attribute_of(ptr {owner}, ptr {key})")
        bound = text.object(self.value.__self__)
        return text.let(f"call ptr @method_of(ptr {owner}, ptr {key}, ptr {bound})")
