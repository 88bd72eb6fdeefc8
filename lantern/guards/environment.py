"""The environment that a function must find as it was, when it is run again.

The only file that knows where randomness and rebinding hide: the states of random
generators, context variables, and the variables that a function closes over.
"""

import sys
from collections.abc import Callable, Iterator
from contextvars import copy_context
from functools import partial
from itertools import islice
from types import CellType, FunctionType, MethodType
from typing import Any

from lantern.core.tree import tree_leaves
from lantern.guards.bytecode import names_in
from lantern.guards.captured import MOST_LEAVES, Search, Unchanged, contents

__all__ = ["Steady", "Surroundings", "reachable"]

Function = Callable[..., Any]


class Surroundings:
    """The surroundings of one call of a function, to be restored for another.

    Random states are those of ``random``, of ``numpy.random`` and of the generators
    that the function can reach: among its arguments, its closed-over variables, its
    defaults, the attributes of the object whose method it is, and the globals that it
    names. What the function rebinds itself (``nonlocal``) is left alone.

    Args:
        f: the function.
        args: its arguments.
    """

    __slots__ = ("context", "drawn", "f", "sources", "states")

    def __init__(self, f: Function, args: Any) -> None:
        self.f = with_own_variables(f)
        self.context = copy_context()
        self.sources = _sources((*reachable(f), *tree_leaves(args)))
        self.states = [read() for read, _ in self.sources]

    def end(self) -> None:
        """The call is over: forget the states of generators that were not used."""
        used = [
            (source, state)
            for source, state in zip(self.sources, self.states, strict=True)
            if _bits(source[0]()) != _bits(state)
        ]
        self.sources = [source for source, _ in used]
        self.states = [state for _, state in used]

    def run(self, body: Callable[[], Any]) -> Any:
        """Run a body in the surroundings of the first call, and leave none behind."""
        now = [read() for read, _ in self.sources]
        try:
            self._set(self.states)
            return self.context.copy().run(body)
        finally:
            self._set(now)

    def _set(self, states: list[Any]) -> None:
        for (_, write), state in zip(self.sources, states, strict=True):
            write(state)


class Steady:
    """A function that is called again later, and must then read what it reads now.

    The variables that it closes over keep their present values.

    Args:
        where: for messages.
        f: the function.

    Attributes:
        unchanged: what it has read, once that matters.
    """

    __slots__ = ("f", "unchanged", "where")

    def __init__(self, where: str, f: Function) -> None:
        self.where, self.f = where, with_own_variables(f)
        self.unchanged: Unchanged | None = None

    def settle(self, body: Callable[[], Any]) -> Any:
        """Run a body that calls the function; from then on, what that reads counts."""
        if self.unchanged is not None:
            return body()
        unchanged = Unchanged(self.where, Search(self.f).found())
        value = body()
        unchanged.forgive()
        self.unchanged = unchanged
        return value

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        if self.unchanged is not None:
            self.unchanged.check()
        return self.f(*args)


def _sources(leaves: Any) -> list[tuple[Function, Function]]:
    """How to read and to write the state of each random generator."""
    found: list[tuple[Function, Function]] = []
    modules = [sys.modules.get(name) for name in ("random", "numpy.random")]
    if modules[0] is not None:
        found.append((modules[0].getstate, modules[0].setstate))
    if modules[1] is not None:
        read = partial(modules[1].get_state, legacy=False)
        found.append((read, modules[1].set_state))
    for x in {id(leaf): leaf for leaf in leaves}.values():
        x = getattr(x, "__self__", x)  # of rng.random
        bits = getattr(x, "bit_generator", None) or getattr(x, "_bit_generator", None)
        if bits is not None and hasattr(bits, "state"):
            found.append((partial(getattr, bits, "state"), partial(_set_state, bits)))
        elif modules[0] is not None and isinstance(x, modules[0].Random):
            found.append((x.getstate, x.setstate))
    return found


def _set_state(bits: Any, state: Any) -> None:
    bits.state = state


def _bits(state: Any) -> Any:
    """A random state in a form that can be compared."""
    if isinstance(state, dict):
        return [_bits(part) for part in state.values()]
    return state.tobytes() if hasattr(state, "tobytes") else state


def reachable(f: Any) -> Iterator[Any]:
    """The first leaves of what a function reads apart from its arguments."""
    return islice(_reachable(f), MOST_LEAVES)


def _reachable(f: Any) -> Iterator[Any]:
    if isinstance(f, partial):
        yield from tree_leaves((f.args, f.keywords))
        yield from _reachable(f.func)
    elif isinstance(f, MethodType):
        yield from _attributes(f.__self__)
        yield from _reachable(f.__func__)
    elif isinstance(f, FunctionType):
        yield from tree_leaves([f.__defaults__ or (), f.__kwdefaults__ or {}])
        for cell in f.__closure__ or ():
            yield from tree_leaves(contents(cell))
        named = f.__code__.co_names
        yield from (f.__globals__[name] for name in named if name in f.__globals__)
    else:
        yield from _attributes(f)


def _attributes(x: Any) -> Iterator[Any]:
    yield from tree_leaves(x)
    yield from tree_leaves(list(getattr(x, "__dict__", {}).values()))


def with_own_variables(f: Any) -> Any:
    """The function with the present values of what it closes over.

    A loop that rebinds a variable would otherwise change what an earlier lambda reads.
    """
    if isinstance(f, partial):
        return partial(with_own_variables(f.func), *f.args, **f.keywords)
    if isinstance(f, MethodType):
        return MethodType(with_own_variables(f.__func__), f.__self__)
    if not isinstance(f, FunctionType) or not f.__closure__:
        return f
    rebound = names_in(f.__code__).bound
    cells = tuple(
        cell if name in rebound else _copy(cell)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__, strict=True)
    )
    own = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, cells)
    own.__kwdefaults__ = f.__kwdefaults__
    return own


def _copy(cell: CellType) -> CellType:
    try:
        return CellType(cell.cell_contents)
    except ValueError:  # not yet bound
        return cell
