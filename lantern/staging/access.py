"""Objects in rewritten code: what it reads, writes, combines and calls.

A read outside of the program is guarded here, and a write there refused.
"""

import operator
from collections import defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import is_dataclass
from types import (
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from lantern.errors import StagingError
from lantern.staging.branches import pass_
from lantern.staging.calls import Methods, call
from lantern.staging.control import IF, StoppedError
from lantern.staging.for_while import Loops, is_value
from lantern.staging.native.questions import MISSING
from lantern.staging.objects import HEAP_TYPE, class_attribute
from lantern.staging.optional import Optional, definite
from lantern.staging.staged import NeedsPlainError, is_staged
from lantern.staging.trees import StagedTree
from lantern.staging.types import INT

__all__ = ["BINARY", "Access"]

MOST_WRITTEN = 16
"""Places of a list of which one is assigned to that is known when the program runs."""

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "MatMult": operator.matmul,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
}
_IN_PLACE = {
    op: getattr(operator, f"i{f.__name__.strip('_')}") for op, f in BINARY.items()
}
_TRUSTED = frozenset("math operator functools lantern numpy".split())
_Pair = namedtuple("_Pair", "first second")
_OF_NUMBERS = ("real", "imag", "conjugate", "shape", "ndim", "size")
_PLACES = (MemberDescriptorType, GetSetDescriptorType, type(_Pair.first))
_IMMUTABLE = (int, float, bool, str, bytes, tuple, range, type(None))


class Access(Loops):
    """The constructs that ask objects for something, or change them."""

    def item(self, x: Any, index: Any) -> Any:
        """``x[index]``."""
        x, index = definite(x), definite(index)
        if not is_staged(index) or is_staged(x):
            if isinstance(x, defaultdict) and index not in x:
                return self._default(x, index)
            found = x[index]
            return self.session.made(found) if type(index) is slice else found
        if isinstance(x, list | tuple) and index.node.type is INT and len(x) <= 64:
            if not x:
                raise StoppedError
            return self._half(list(x), self._place(x, index), 0)
        raise NeedsPlainError("item: an index that is known when the program runs.")

    def _default(self, x: Any, key: Any) -> Any:
        """What a defaultdict puts at a key that it does not have."""
        if x.default_factory is None:
            return x[key]  # as Python raises it
        found = self.call(x.default_factory)
        self.session.write(x, "a new key")
        x[key] = found
        return found

    def _place(self, x: Any, index: Any) -> Any:
        """The place that an index of a list means; it is one of the list's."""
        if index.node.type is not INT:
            raise NeedsPlainError("item: an index that is no int.")
        place = IF(index < 0, lambda: index + len(x), lambda: index)
        inside = self.and_(place >= 0, lambda: place < len(x))
        self.claim(inside, lambda: "list index out of range")
        return place

    def _half(self, items: list[Any], index: Any, at: int) -> Any:
        """One of several values, found by halves."""
        if len(items) == 1:
            return items[0]
        half = len(items) // 2
        return IF(
            index < at + half,
            lambda: self._half(items[:half], index, at),
            lambda: self._half(items[half:], index, at + half),
        )

    def slice_(self, *parts: Any) -> slice:
        """``a:b:c``."""
        return slice(*parts)

    def attribute(self, x: Any, name: str) -> Any:
        """``x.name``."""
        if is_staged(x):
            if isinstance(x, StagedTree):
                return self._of_tree(x, name)
            if name not in _OF_NUMBERS:
                raise StagingError(f"{name}: of a number that is known when it runs.")
            return getattr(x, name)
        kind: Any = type(x)
        if kind is Optional:
            return self.attribute(x.definite(), name)
        if kind is ModuleType and x.__name__.partition(".")[0] in _TRUSTED:
            return getattr(x, name)
        found = class_attribute(kind, name)
        fget = getattr(found, "fget", None)
        if fget is not None:
            self._guard_class(x, name, found)
            return self.call(fget, x)
        if type(class_attribute(type(found), "__get__")) is FunctionType:
            raise StagingError(
                f"{name}: it is found by code of a {type(found).__name__}. Read it "
                f"outside of the function."
            )
        value = getattr(x, name)
        if self.session.is_inside(x) or isinstance(x, _IMMUTABLE):
            if name not in getattr(x, "__dict__", ()):
                self._guard_class(x, name, found)
        else:
            self.session.guards.attribute(x, name, value)
        return value

    def _of_tree(self, x: StagedTree, name: str) -> Any:
        """A method of an object that is walked, or what its attribute is."""
        cls = x.likely_class()
        found = cls and class_attribute(cls, name)
        if type(found) is not FunctionType:
            if found is not None:  # a slot, or an item's name: where machine code reads
                self.session.guards.of_class(cls, name, found)
            return x.field(name)
        every = [found, *(class_attribute(type(y), name) for y in x.node.example)]
        functions = list(dict.fromkeys(f for f in every if type(f) is FunctionType))
        if len(functions) > 1:
            return Methods(x, name, functions)
        self.claim(x.has_method(name, found), pass_)
        return MethodType(found, x)

    def of_parent(self, find: Any, cls: Any, x: Any, name: str) -> Any:
        """``super().name``: what the classes behind one have for an object."""
        kind = x.likely_class() if isinstance(x, StagedTree) else type(x)
        if find is not super or cls not in kind.__mro__:
            raise StagingError(
                f"super: of a {kind.__name__} it is not known what it is."
            )
        if isinstance(x, StagedTree):
            self.claim(x.is_instance(kind), pass_)
        for base in kind.__mro__[kind.__mro__.index(cls) + 1 :]:
            found = base.__dict__.get(name)
            self.session.guards.attribute(base, name, getattr(base, name, MISSING))
            if found is not None:
                break
        if type(found) is FunctionType:
            return MethodType(found, x)
        if type(found) is property:
            return self.call(found.fget, x)
        raise StagingError(f"super: {name} is no function and no property there.")

    def _guard_class(self, x: Any, name: str, found: Any) -> None:
        """Guard what a class has for all its objects."""
        cls = type(x)
        if found is None or type(found) in _PLACES or not cls.__flags__ & HEAP_TYPE:
            return
        self.session.guards.of_class(cls, name, found)

    # Writes.

    def set_item(self, value: Any, x: Any, index: Any) -> None:
        """``x[index] = value``, which is computed before x and the index are."""
        if is_staged(index):
            if self._few or type(x) is not list or not 0 < len(x) <= MOST_WRITTEN:
                raise NeedsPlainError("an assignment to an element known later.")
            place = self._place(x, index)
            found = [self._one_of(place == i, value, y) for i, y in enumerate(x)]
            self.session.write(x, "an assignment to an element")
            x[:] = found
            return
        self.session.write(x, "an assignment to an element")
        x[index] = value

    def _one_of(self, test: Any, x: Any, y: Any) -> Any:
        """One of two numbers."""
        if not (is_value(x) and is_value(y)):
            raise NeedsPlainError("an assignment to an element known later.")
        return IF(test, lambda: x, lambda: y)

    def del_item(self, x: Any, index: Any) -> None:
        """``del x[index]``."""
        if is_staged(index):
            raise NeedsPlainError("del: of an element that is known later.")
        self.session.write(x, "del")
        del x[index]

    def set_attribute(self, value: Any, x: Any, name: str) -> None:
        """``x.name = value``."""
        found = class_attribute(type(x), name)
        fset = getattr(found, "fset", None)
        if fset is not None:
            self._guard_class(x, name, found)
            self.call(fset, x, value)
            return
        self.session.write(x, "an assignment to an attribute")
        if isinstance(x, defaultdict):
            raise StagingError(f"{name}: of a defaultdict it does not change.")
        if _is_more_than_fields(x, name):
            raise StagingError(f"{name}: it is no field of a {type(x).__name__}.")
        setattr(x, name, value)

    def set_past_class(self, x: Any, name: Any, value: Any) -> None:
        """``object.__setattr__(x, name, value)``, as frozen data classes need it."""
        found = class_attribute(type(x), name)
        if hasattr(found, "__set__") and type(found) is not MemberDescriptorType:
            raise StagingError(f"{name}: it is set by code of a {type(found)}.")
        self.session.write(x, "an assignment to an attribute")
        if _is_more_than_fields(x, name):
            raise StagingError(f"{name}: it is no field of a {type(x).__name__}.")
        object.__setattr__(x, name, value)

    def augment(self, op: str, x: Any, y: Any) -> Any:
        """``x op= y`` of a variable."""
        if isinstance(x, list | dict | set | deque):
            self.session.write(x, "an augmented assignment")
            return _IN_PLACE[op](x, y)
        return BINARY[op](x, y)

    def augment_item(self, op: str, x: Any, index: Any, y: Callable[[], Any]) -> None:
        """``x[index] op= y``."""
        self.set_item(self.augment(op, self.item(x, index), y()), x, index)

    def augment_attribute(
        self, op: str, x: Any, name: str, y: Callable[[], Any]
    ) -> None:
        """``x.name op= y``."""
        self.set_attribute(self.augment(op, self.attribute(x, name), y()), x, name)

    # Operators and calls.

    def binary(self, op: str, x: Any, y: Any) -> Any:
        """``x op y``: more in ``operators.py``."""
        return BINARY[op](x, y)

    def joined(self, op: str, x: Any, y: Any) -> Any:
        """``x op y`` where one of them is a list that the program writes down."""
        found = self.binary(op, x, y)
        is_new = type(x) in (list, int) and type(y) in (list, int)
        return self.session.made(found) if is_new else found

    def made(self, x: Any) -> Any:
        """A list, dict or set that the program writes down."""
        return self.session.made(x)

    def call(self, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``f(...)``."""
        return call(self.session, f, args, kwargs)


def _is_more_than_fields(x: Any, name: str) -> bool:
    """Whether an attribute would be lost where an object is made anew of its fields.

    Those of classes with ``__post_init__`` are not made anew.
    """
    if not is_dataclass(x) or hasattr(x, "__post_init__"):
        return False
    return name not in x.__dataclass_fields__
