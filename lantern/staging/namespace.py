"""The functions that compute on staged values: the namespace that rules ask for.

This module itself is that namespace. Any function that numbers or arrays have, staged
values have, too: ``sin(x)`` of a staged x is a node. Nothing is listed here that is not
different for staged values.
"""

import sys
from contextlib import nullcontext
from operator import attrgetter
from types import ModuleType
from typing import Any

from lantern.core import scalar_functions
from lantern.core.namespace import namespace, register_tracking
from lantern.core.tree import tree_leaves
from lantern.rules.noncommutative import register_commutative
from lantern.staging.ir import current
from lantern.staging.staged import (
    Staged,
    StagedArray,
    is_staged,
    node_of,
    operate,
    perform,
    staged,
)
from lantern.staging.types import BOOL, type_of

__all__: list[str] = []

ignore_fp_warnings = nullcontext  # warnings are a matter of the program's run
_arrays: list[Any] = [scalar_functions]  # the namespace of the arrays that were met


def met(array: Any) -> None:
    """Take constants and types from the namespace of an array's library."""
    _arrays[0] = namespace(array)


def zeros_like(x: Any) -> Any:
    """Zero in x's type."""
    return perform("zeros_like", (x,), {}) if isinstance(x, StagedArray) else 0.0


def select(condition: Any, z_bar: Any) -> Any:
    """A cotangent where the condition holds; zero elsewhere."""
    return perform("where", (condition, z_bar, 0.0), {})


def logical_not(x: Any) -> Any:
    """Whether it does not hold."""
    return operate("not", x) if type(x) is Staged else perform("logical_not", (x,), {})


def where(condition: Any, /, *branches: Any) -> Any:
    """x where a condition holds, else y; a number holds unless it is zero."""
    if type(condition) is Staged and condition.node.type is not BOOL:
        condition = operate("not_equal", condition, 0)
    return _found("where")(condition, *branches)


class Part:
    """A part of the namespace that has a name of its own, as ``linalg``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return _found(f"{self._name}.{name}")


def _found(name: str) -> Any:
    """What the namespace has under a name: functions for staged values, too."""
    arrays = _arrays[0]
    try:
        plain = attrgetter(name)(arrays)
    except AttributeError:
        plain = attrgetter(name)(scalar_functions)
    if isinstance(plain, ModuleType):
        return Part(name)
    if not callable(plain) or isinstance(plain, type):
        return plain
    return _function(name, plain)


def _function(name: str, plain: Any) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_staged, tree_leaves((args, kwargs)))):
            return perform(name, args, kwargs)
        found = plain(*args, **kwargs)
        if type_of(found) is not None and current.blocks:
            return staged(node_of(found))  # a rule may write to what it makes
        return _applied(found) if callable(found) else found

    function.__name__ = name
    if name == "add":
        function.at = _add_at  # type: ignore[attr-defined]  # as ufuncs have
    return function


def _add_at(buffer: StagedArray, index: Any, x: Any) -> None:
    """As ``numpy.add.at``: the array stands for one with more in it."""
    buffer.node = perform("add_at", (buffer, x, index), {}).node


def _applied(plain: Any) -> Any:
    """A function of another library, as those that SciPy has."""
    return lambda *args, **kwargs: perform("apply", (plain, *args), kwargs)


def __getattr__(name: str) -> Any:
    """A function of numbers or arrays as an operation on staged values."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _found(name)


def _register() -> None:
    for cls in (Staged, StagedArray):
        register_tracking(cls, sys.modules[__name__])


register_commutative(Staged)
_register()
