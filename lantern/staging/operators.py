"""The surface of programs with objects that have hooks (``objects.py``).

Where Python would call a function of an object's class, that function is followed here
like any other. So it is with operators, tests, elements, loops and stars; where Python
calls one in another place, the program is given up (``watch.py``).
"""

import operator
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from lantern.errors import ArgumentError, StagingError
from lantern.staging.access import BINARY
from lantern.staging.branches import COMPARISONS
from lantern.staging.control import has_staged
from lantern.staging.objects import class_attribute, has_hooks
from lantern.staging.python_functions import Once
from lantern.staging.staged import Staged
from lantern.staging.surface import Surface
from lantern.staging.trees import StagedTree

__all__ = ["Careful"]

_UNARY: dict[str, Callable[[Any], Any]] = {
    "USub": operator.neg,
    "UAdd": operator.pos,
    "Invert": operator.invert,
}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_ASKED = (len, abs, float, int, round, iter, reversed)
_THROUGH = (max, min, any, all, list, tuple, set, enumerate, sorted)
_TEXTS = (str, bytes, list, tuple)


class Careful(Surface):
    """The constructs of one staging in which Python would call functions by itself."""

    is_careful = True

    def __init__(self, recursive: set[CodeType], kept: set[Any]) -> None:
        super().__init__(recursive, kept)
        self._known: dict[type, bool] = {}

    def hook(self, x: Any, name: str) -> FunctionType | None:
        """The function of an object's class that Python would call.

        Raises:
            StagingError: if it is not one that can be followed.
        """
        cls = _class_of(x)
        found = class_attribute(cls, name)
        if found is None or found is class_attribute(object, name):
            return None
        if type(found) is not FunctionType:
            raise StagingError(
                f"{name}: of {cls.__name__} it is not known what it does."
            )
        if isinstance(x, StagedTree):
            self.claim(x.is_instance(cls), lambda: None)
        elif not self.session.is_inside(x):
            self.session.guards.attribute(x, "__class__", cls)
        self.session.guards.attribute(cls, name, found)
        return found

    def _has_hooks(self, x: Any) -> bool:
        """Whether Python would call functions of an object's class."""
        cls = _class_of(x)
        if cls not in self._known:
            is_tree = isinstance(x, StagedTree)
            self._known[cls] = cls is not Staged and has_hooks(cls, not is_tree)
        return self._known[cls]

    # Operators.

    def binary(self, op: str, x: Any, y: Any) -> Any:
        """``x op y``."""
        if not self._has_hooks(x) and not self._has_hooks(y):
            if op == "Mod" and isinstance(x, str | bytes):
                self.text(y)
            return BINARY[op](x, y)
        name = BINARY[op].__name__.strip("_")
        found = self._either(f"__{name}__", f"__r{name}__", x, y)
        if found is NotImplemented:
            raise ArgumentError(f"unsupported operand types for {name}")
        return found

    def augment(self, op: str, x: Any, y: Any) -> Any:
        """``x op= y`` of a variable."""
        if self._has_hooks(x):
            f = self.hook(x, f"__i{BINARY[op].__name__.strip('_')}__")
            found = NotImplemented if f is None else self.call(f, x, y)
            return self.binary(op, x, y) if found is NotImplemented else found
        return (
            self.binary(op, x, y) if self._has_hooks(y) else super().augment(op, x, y)
        )

    def _compared(self, op: str, x: Any, y: Any) -> Any:
        if op in ("In", "NotIn") and self._has_hooks(y):
            f = self.hook(y, "__contains__")
            if f is None:
                raise StagingError("in: of an object that has no __contains__.")
            found = self.truth(self.call(f, y, x))
            return found if op == "In" else self.not_(found)
        if op not in COMPARISONS or not (self._has_hooks(x) or self._has_hooks(y)):
            return super()._compared(op, x, y)
        name = COMPARISONS[op].__name__
        own = [x for x in (x, y) if self._has_hooks(x) and self.hook(x, "__ne__")]
        if name == "ne" and not own:
            return self.not_(self._compared("Eq", x, y))
        found = self._either(f"__{name}__", f"__{_SWAPPED[name]}__", x, y)
        if found is not NotImplemented:
            return found
        if name not in ("eq", "ne"):
            raise ArgumentError(f"{name} is not supported")
        if isinstance(x, StagedTree) or isinstance(y, StagedTree):
            raise StagingError(f"{name}: whether two objects are one is not known yet.")
        return (x is y) == (name == "eq")

    def _either(self, name: str, reflected: str, x: Any, y: Any) -> Any:
        """What the class of one of two objects says, in Python's order."""
        if type(x) in _TEXTS:
            raise StagingError(f"{name}: of a {type(x).__name__} and an object.")
        kinds = _class_of(x), _class_of(y)
        ways = [(x, name, y), (y, reflected, x)]
        is_comparison = name.strip("_") in _SWAPPED
        if kinds[0] is kinds[1]:
            ways = ways if is_comparison else ways[:1]
        elif issubclass(kinds[1], kinds[0]):
            own = [class_attribute(cls, reflected) for cls in kinds]
            if is_comparison or own[0] is not own[1]:
                ways.reverse()
        for owner, method, other in ways:
            f = self.hook(owner, method) if self._has_hooks(owner) else None
            found = NotImplemented if f is None else self.call(f, owner, other)
            if found is not NotImplemented:
                return found
        return NotImplemented

    def unary(self, op: str, x: Any) -> Any:
        """``-x``, ``+x``, ``~x``."""
        if not self._has_hooks(x):
            return _UNARY[op](x)
        f = self.hook(x, f"__{_UNARY[op].__name__.strip('_')}__")
        if f is None:
            raise ArgumentError(f"bad operand type for unary {op}")
        return self.call(f, x)

    # Tests.

    def truth(self, x: Any) -> Any:
        """What a test asks of a value."""
        if not self._has_hooks(x):
            return super().truth(x)
        f = self.hook(x, "__bool__")
        if f is not None:
            return self.call(f, x)
        f = self.hook(x, "__len__")
        return f is None or self._compared("NotEq", self.call(f, x), 0)

    # What is in an object.

    def item(self, x: Any, index: Any) -> Any:
        """``x[index]``."""
        f = self.hook(x, "__getitem__") if self._has_hooks(x) else None
        return super().item(x, index) if f is None else self.call(f, x, index)

    def set_item(self, value: Any, x: Any, index: Any) -> None:
        """``x[index] = value``."""
        f = self.hook(x, "__setitem__") if self._has_hooks(x) else None
        if f is None:
            super().set_item(value, x, index)
        else:
            self.call(f, x, index, value)

    def items_of(self, x: Any) -> Any:
        """What a loop, a comprehension or a star goes through."""
        if not self._has_hooks(x):
            return x
        f = self.hook(x, "__iter__")
        found = x if f is None else self.call(f, x)
        if self._has_hooks(found):
            raise StagingError(
                f"iter: what is in a {type(x).__name__} is not known. Make it a list."
            )
        return found

    def text(self, x: Any) -> Any:
        """What stands in a text."""
        if has_staged(x) or type(x) not in (int, float, bool, str, bytes, type(None)):
            raise StagingError(
                f"a text of a {type(x).__name__}. Write it outside of the function."
            )
        return x

    def call(self, f: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``f(...)``."""
        if not args or type(f) not in (type, type(len)):
            return super().call(f, *args, **kwargs)
        if f in _ASKED and self._has_hooks(args[0]):
            hook = self.hook(args[0], f"__{f.__name__}__")
            if hook is not None:
                return super().call(hook, *args, **kwargs)
        if f is bool and self._has_hooks(args[0]):
            return super().call(bool, self.truth(args[0]))
        if f in (str, repr):
            args = tuple(map(self.text, args))
        if f in _FUNCTIONS:
            return _FUNCTIONS[f](self, *args, **kwargs)
        if f is zip or (f in _THROUGH and len(args) == 1):
            args = tuple(map(self.items_of, args))
        if f is map:
            args = (args[0], *map(self.items_of, args[1:]))
        if f is sum:
            return self._summed(*args, **kwargs)
        return super().call(f, *args, **kwargs)

    def _summed(self, xs: Any, start: Any = 0) -> Any:
        """``sum``."""
        found = self.items_of(xs)
        if not isinstance(found, Once):  # what is in it is there before it is added up
            found = list(found)
            if not any(map(self._has_hooks, (start, *found))):
                return super().call(sum, found, start)
        for x in found:
            start = self.binary("Add", start, x)
        return start


def _class_of(x: Any) -> type:
    """The class of an object; of a tree's part the one that it most likely has."""
    return x.likely_class() or type(None) if isinstance(x, StagedTree) else type(x)


def _function(name: str, way: Callable[..., Any]) -> Callable[..., Any]:
    return lambda surface, *args: way(surface, name, *args)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{f: _function(name, Careful.binary) for name, f in BINARY.items()},
    **{f: _function(name, Careful.unary) for name, f in _UNARY.items()},
    pow: _function("Pow", Careful.binary),
}
"""Functions that do what operators do."""
