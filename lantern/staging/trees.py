"""Staged objects of the caller's: trees that are walked when the program runs.

What an attribute or an item of such an object is, is guessed from the example that the
program was staged with; whether the guess is right is asked when the program runs.
"""

import operator
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import cache
from types import FunctionType, MethodType
from typing import Any

from lantern.core.tree import is_leaf
from lantern.core.value import Value
from lantern.errors import StagingError
from lantern.staging.ir import Node, emit
from lantern.staging.objects import HEAP_TYPE, is_by_identity
from lantern.staging.staged import CLASSES, Staged, is_staged
from lantern.staging.types import BOOL, FLOAT, INT, TREE, type_of

__all__ = [
    "StagedTree",
    "is_changeable",
    "is_method",
    "is_plain",
    "is_tree",
    "reachable",
    "reads_plainly",
]

MOST_EXAMPLES = 200
"""How many objects of a tree are looked at."""


class StagedTree(Staged):
    """An object that is known when the program runs.

    Its node's example is a list of objects that may stand there.
    """

    __slots__ = ()

    def is_none(self) -> Staged:
        """Whether it is None."""
        return Staged(emit("is_none", (self.node,), BOOL))

    def is_instance(self, cls: type) -> Staged:
        """Whether it is an object of a class, and of no subclass."""
        return Staged(emit("is_exactly", (self.node,), BOOL, cls))

    def has_method(self, name: str, function: FunctionType) -> Staged:
        """Whether an attribute of it is the method that a function is."""
        return Staged(emit("is_method", (self.node,), BOOL, (name, function)))

    def __eq__(self, other: Any) -> Any:
        return _as_number(operator.eq, self, other)

    def __ne__(self, other: Any) -> Any:
        return _as_number(operator.ne, self, other)

    __hash__ = Staged.__hash__

    def unboxed(self) -> Staged:
        """The float that it is."""
        return Staged(emit("unbox", (self.node,), FLOAT))

    def size(self) -> Staged:
        """How many items a tuple or a list has."""
        return Staged(emit("size", (self.node,), INT, self._sequence()))

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int:
            return self._part("get", index, lambda x: x[index])
        if type(index) is not Staged or index.node.type is not INT:
            raise StagingError(
                f"item: {index!r} of an object that is known when the program runs. "
                f"Index it with an int."
            )
        cls = self._sequence()
        found = [y for x in self.node.example if type(x) is cls for y in x]
        return self._found("get_at", (self.node, index.node), cls, found)

    def _sequence(self) -> Any:
        """The class of a tuple or a list."""
        cls = self.likely_class()
        if cls is not tuple and cls is not list:
            raise StagingError("item: of an object that is no tuple and no list.")
        return cls

    def likely_class(self) -> Any:
        """The class that it most likely has; None if there is no example."""
        kinds = [type(x) for x in self.node.example]
        return next((k for k in kinds if k is not type(None)), None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.field(name)

    def field(self, name: str) -> Any:
        """An attribute, whatever this class has under that name."""
        return self._part("field", name, lambda x: getattr(x, name))

    def _part(self, op: str, key: Any, get: Callable[[Any], Any]) -> Any:
        found = []
        for x in self.node.example:
            try:
                found.append(get(x))
            except (TypeError, IndexError, AttributeError, KeyError):
                continue
        if (
            not found
            and op == "field"
            and any(x is not None for x in self.node.example)
        ):
            raise AttributeError(key)
        cls = self.likely_class()
        return self._found(op, (self.node,), (key, cls), found)

    def _found(self, op: str, inputs: Any, static: Any, found: list[Any]) -> Any:
        """A part, of the type that the examples have in common."""
        known = {type_of(x) for x in found}
        only = known.pop() if len(known) == 1 else None
        if only in (FLOAT, INT, BOOL):
            return Staged(emit(op, inputs, only, static))
        if all(x is None for x in found):  # what holds it may stand there, too
            found = [*inputs[0].example, *found]
        return StagedTree(emit(op, inputs, TREE, static, example=found))


def _as_number(compare: Callable[[Any, Any], Any], x: StagedTree, y: Any) -> Any:
    """A comparison of what must be a number: Python would compare two places."""
    if not is_staged(y) and type(y) not in (float, int, bool):
        raise StagingError(
            f"==: of an object that is known when the program runs and a "
            f"{type(y).__name__}. Compare what is in them."
        )
    return compare(x.unboxed(), y)


CLASSES["tree"] = StagedTree


def is_tree(x: Any) -> bool:
    """Whether an argument is walked when the program runs, and not taken apart before.

    It is, if it is an object of a user's class; or if it is a structure that holds
    None, as a tree does where it ends, or very much, or objects that equal themselves
    alone.
    """
    if isinstance(x, Value):
        return False
    if _has_no_copy(x):
        return True
    if isinstance(x, tuple | list) or _is_record(x):
        waiting, seen = list(_parts(x)), 0
        while waiting and seen < MOST_EXAMPLES:
            part, seen = waiting.pop(), seen + 1
            if part is None or _has_no_copy(part):
                return True
            if isinstance(part, tuple | list) or _is_record(part):
                waiting += _parts(part)
        return seen >= MOST_EXAMPLES  # too large to be taken apart
    cls: Any = type(x)
    if cls.__module__ == "builtins" or not is_leaf(x):
        return False
    return "__slots__" in cls.__dict__ or is_plain(cls)


def _is_record(x: Any) -> bool:
    return is_dataclass(x) and not isinstance(x, type)


def _has_no_copy(x: Any) -> bool:
    """Whether something is an object of fields that no copy of it is equal to."""
    return _is_record(x) and is_by_identity(type(x))


@cache
def is_plain(cls: Any) -> bool:
    """Whether to read an attribute of a class's objects does nothing else.

    Not even where its name is that of something in the class: that is asked elsewhere.
    """
    return (
        cls.__flags__ & HEAP_TYPE != 0
        and cls.__dictoffset__ != 0
        and reads_plainly(cls)
        and not hasattr(cls, "__array__")
        and not any("__call__" in vars(c) for c in cls.__mro__)
    )


def reads_plainly(cls: Any) -> bool:
    """Whether a class leaves it to Python to find its objects' attributes."""
    own = cls.__getattribute__ is not object.__getattribute__
    return not own and not hasattr(cls, "__getattr__")


def is_changeable(nodes: Iterable[Node]) -> bool:
    """Whether any of the objects that a program walks may be written to."""
    walked = [x.static[1] for x in nodes if x.op in ("get", "field")]
    walked += [x.static for x in nodes if x.op in ("get_at", "size")]
    return any(cls is None or not issubclass(cls, tuple) for cls in walked)


def is_method(x: Any, name: str, function: FunctionType) -> bool:
    """Whether an attribute of an object is the method that a function is."""
    found = getattr(x, name, None)
    return (
        type(found) is MethodType and found.__func__ is function and found.__self__ is x
    )


def reachable(tree: Any) -> list[Any]:
    """Objects inside a tree, itself first: examples of what may stand there."""
    found, seen = [tree], {id(tree)}
    for x in found:
        for part in _parts(x):
            if id(part) not in seen and len(found) < MOST_EXAMPLES:
                seen.add(id(part))
                found.append(part)
    return found


def _parts(x: Any) -> list[Any]:
    if isinstance(x, tuple | list):
        return list(x[:MOST_EXAMPLES])
    if isinstance(x, Value) or not (_is_record(x) or is_tree(x)):
        return []
    slots = [name for c in type(x).__mro__ for name in vars(c).get("__slots__", ())]
    own = [getattr(x, name) for name in slots if hasattr(x, name)]
    return [*own, *getattr(x, "__dict__", {}).values()]
