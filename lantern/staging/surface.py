"""The surface that rewritten code calls: Python's constructs, plain and staged.

On plain values each does what the construct does. They are in parts, each of which adds
to the one before: ``branches.py``, ``for_while.py``, ``access.py``, ``reductions.py``,
and here ``with``, ``match``, and what else is said of variables.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from types import FunctionType
from typing import Any

from lantern.errors import StagingError
from lantern.staging.control import StoppedError
from lantern.staging.reductions import Reductions
from lantern.staging.staged import NeedsPlainError, is_staged, operate
from lantern.staging.structure import UNDEFINED, is_undefined
from lantern.staging.trees import StagedTree

__all__ = ["Surface"]

_WHOLE = (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)


class Surface(Reductions):
    """The constructs of one staging."""

    # What ``with`` asks for.

    def entered(self, context: Any) -> Any:
        """What ``with`` enters."""
        kind: Any = type(context)
        if kind is suppress:
            return None
        if kind is nullcontext:
            return context.enter_result
        if type(getattr(kind, "__exit__", None)) is not FunctionType:
            raise StagingError(
                f"with: of {kind.__name__} it is not known what it does. Enter it "
                f"outside of the function."
            )
        return self.call(kind.__enter__, context)

    def left(self, context: Any) -> Any:
        """The end of ``with``; there is nothing in its variable from then on."""
        kind: Any = type(context)
        if kind not in (suppress, nullcontext):
            self.call(kind.__exit__, context, None, None, None)
        return UNDEFINED

    # What ``match`` asks for.

    def is_row(self, x: Any, count: int | None) -> Any:
        """Whether a pattern of some values, or of any number of them, may match."""
        if is_undefined(x):
            x.refuse()
        if isinstance(x, StagedTree):
            none = x.is_none()
            return self.and_(self.not_(none), lambda: operate("equal", x.size(), count))
        if is_staged(x) or not isinstance(x, Sequence):
            return False
        if not isinstance(x, tuple | list | range | str | bytes):
            raise StagingError(f"match: a row of the type {type(x).__name__}.")
        return not isinstance(x, str | bytes) and count in (None, len(x))

    def is_long_row(self, x: Any, first: int, last: int) -> bool:
        """Whether a pattern of some values, and others between them, may match."""
        if isinstance(x, StagedTree):
            raise NeedsPlainError("match: a star in an object known when it runs.")
        return self.is_row(x, None) and len(x) >= first + last

    def middle(self, x: Any, first: int, last: int) -> Any:
        """What a star in a pattern stands for."""
        return self.session.made(list(x[first : len(x) - last]))

    def has_keys(self, x: Any, keys: tuple[Any, ...]) -> bool:
        """Whether a pattern of a dict may match."""
        if is_undefined(x):
            x.refuse()
        if isinstance(x, StagedTree):
            raise StagingError("match: a dict of an object known when it runs.")
        if is_staged(x) or not isinstance(x, Mapping):
            return False
        if type(x) not in (dict, defaultdict):
            raise StagingError(f"match: a dict of the type {type(x).__name__}.")
        if len(set(keys)) < len(keys):
            raise StoppedError
        return all(key in x for key in keys)

    def without_keys(self, x: Any, keys: tuple[Any, ...]) -> Any:
        """What a pattern of a dict has not named."""
        return self.session.made({k: y for k, y in x.items() if k not in keys})

    def is_of(self, x: Any, cls: Any, count: int) -> Any:
        """Whether a pattern of a class, with so many parts by place, may match."""
        if count > (cls in _WHOLE or len(self.attribute(cls, "__match_args__"))):
            raise StoppedError
        return self.call(isinstance, x, cls)

    def matched(self, x: Any, cls: Any, place: int) -> Any:
        """The part of an object that a pattern of its class has at a place."""
        if cls in _WHOLE:
            return x
        return self.attribute(x, cls.__match_args__[place])

    # Variables.

    def named(self, put: Callable[[Any], None], value: Any) -> Any:
        """``:=``."""
        put(value)
        return value

    def forgotten(self, x: Any) -> Any:
        """What a variable holds behind ``del``."""
        return x.refuse() if is_undefined(x) else UNDEFINED

    def shares(self, names: Any) -> None:
        """Variables of the running function are assigned to by others inside it."""
        self.session.share(names)

    def rebinds(self, names: Any) -> None:
        """``nonlocal``: the running function assigns to variables of one around it."""
        self.session.rebind(names)
