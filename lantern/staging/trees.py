"""Staged objects of the caller's: trees that are walked when the program runs.

What an attribute or an item of such an object is, is guessed from the example that the
program was staged with; whether the guess is right is asked when the program runs.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lantern.core.value import Value
from lantern.errors import StagingError
from lantern.staging.ir import Node, emit
from lantern.staging.staged import CLASSES, Staged
from lantern.staging.types import BOOL, FLOAT, INT, TREE, type_of

__all__ = ["StagedTree", "is_changeable", "is_tree", "reachable"]

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

    def __getitem__(self, index: Any) -> Any:
        if type(index) is not int:
            raise StagingError(
                f"item: {index!r} of an object that is known when the program runs. "
                f"Index it with a plain int."
            )
        return self._part("get", index, lambda x: x[index])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
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
        cls = type(self.node.example[0]) if self.node.example else None
        known = {type_of(x) for x in found}
        only = known.pop() if len(known) == 1 else None
        if only in (FLOAT, INT, BOOL):
            return Staged(emit(op, (self.node,), only, (key, cls)))
        return StagedTree(emit(op, (self.node,), TREE, (key, cls), example=found))


CLASSES["tree"] = StagedTree


def is_tree(x: Any) -> bool:
    """Whether an argument is walked when the program runs, and not taken apart before.

    It is, if it is an object of a class that has slots; or if it holds None, as a tree
    does where it ends, or very much.
    """
    if isinstance(x, tuple):
        waiting, seen = list(x), 0
        while waiting and seen < MOST_EXAMPLES:
            part, seen = waiting.pop(), seen + 1
            if part is None:
                return True
            if isinstance(part, tuple):
                waiting += part
        return seen >= MOST_EXAMPLES  # too large to be taken apart
    if isinstance(x, Value):
        return False
    return "__slots__" in type(x).__dict__ and type(x).__module__ != "builtins"


def is_changeable(nodes: Iterable[Node]) -> bool:
    """Whether any of the objects that a program walks may be written to."""
    walked = [x.static[1] for x in nodes if x.op in ("get", "field")]
    return any(cls is None or not issubclass(cls, tuple) for cls in walked)


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
        return list(x)
    names = [*getattr(x, "__dict__", ()), *getattr(type(x), "__slots__", ())]
    if type_of(x) is not None or isinstance(x, Value):
        return []
    return [getattr(x, name) for name in names if hasattr(x, name)]
