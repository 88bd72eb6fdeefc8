"""Blocks that put back what they set, wherever an interrupt comes.

The only file that knows where CPython raises what a signal handler raises: at the first
instruction of a function written in Python, behind a call of one written in C, and at
the end of a turn of a loop. Between these places nobody comes, no other thread either.
"""

from collections.abc import Callable
from contextvars import Context, ContextVar, Token
from functools import update_wrapper
from opcode import opmap
from sys import version_info
from threading import RLock
from types import CodeType, FunctionType
from typing import Any, TypeVar

__all__ = ["Setting", "between_turns", "from_the_start", "mutex"]

F = TypeVar("F", bound=Callable[..., Any])


def from_the_start(method: Callable[..., Any]) -> Any:
    """A function whose first ``try`` begins with its first instruction.

    An interrupt is raised there, at the door, before any line has run: in ``__exit__``
    it would leave behind what ``__enter__`` has set. In the compiler's table of
    handlers (CPython's ``Objects/exception_handling_notes.txt``) the first entry begins
    where the ``try`` does; here it begins at 0.
    """
    first, *others = _entries(method.__code__)
    start, size, *handler = first
    assert handler[1] == 0, f"{method.__qualname__} has no try with nothing before it"
    return _with_entries(method, [[0, start + size, *handler], *others])


def between_turns(function: F) -> F:
    """A function whose ``try`` also guards the way from one turn of a loop to the next.

    From CPython 3.12 on the compiler leaves some of these jumps out of the table of
    handlers, and an interrupt that comes there passes by ``finally``.
    """
    code: CodeType = function.__code__
    entries: list[list[int]] = []
    for entry in _entries(code):
        start, size, *handler = entries[-1] if entries else (0, 0)
        gap = code.co_code[2 * (start + size) : 2 * entry[0] : 2]
        if handler == entry[2:] and _JUMPS.issuperset(gap):
            entries[-1][1] = entry[0] + entry[1] - start
        else:
            entries.append(entry)
    guarded: F = _with_entries(function, entries)
    return guarded


_JUMPS = {
    number
    for name, number in opmap.items()
    if name.startswith(("JUMP", "POP_JUMP", "NOT_TAKEN", "CACHE", "EXTENDED_ARG"))
}


def _entries(code: CodeType) -> list[list[int]]:
    """The table of handlers: start, size, where the handler is, and the stack there."""
    table, at, entries = code.co_exceptiontable, 0, []
    while at < len(table):
        entry = []
        for _ in range(4):
            number, at = _number(table, at)
            entry.append(number)
        entries.append(entry)
    return entries


def _with_entries(function: Any, entries: list[list[int]]) -> Any:
    """The same function with another table of handlers."""
    table = b"".join(
        _numbered(number, first=0x80 * (i == 0))
        for entry in entries
        for i, number in enumerate(entry)
    )
    code = function.__code__.replace(co_exceptiontable=table)
    made: Any = FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return update_wrapper(made, function)


def _number(table: bytes, at: int) -> tuple[int, int]:
    """A number of such a table, six bits to a byte, and where the next one is."""
    value = table[at] & 63
    while table[at] & 64:
        at += 1
        value = value << 6 | table[at] & 63
    return value, at + 1


def _numbered(value: int, first: int = 0) -> bytes:
    """A number as it stands in such a table."""
    digits = [value & 63]
    while value := value >> 6:
        digits.append(value & 63 | 64)
    digits[-1] |= first
    return bytes(reversed(digits))


class _Mutex:
    """A lock whose ``with`` cannot be left with the lock held."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock: Any = RLock()

    def __enter__(self) -> None:
        lock = self.lock
        before = lock._recursion_count()
        try:
            lock.acquire()  # an interrupt is raised behind this call, too
        except BaseException:
            if lock._recursion_count() > before:
                lock.release()
            raise

    @from_the_start
    def __exit__(self, *exception: object) -> None:
        try:
            lock = None  # the compiler leaves an empty block out
        finally:
            lock = self.lock
            lock.release()


def mutex() -> Any:
    """A lock for ``with``, for its holder also twice; no interrupt leaves it locked.

    Up to CPython 3.13 that is an ``RLock``. In 3.14 ``with`` calls ``__enter__`` as any
    function, behind which an interrupt is raised before the block has begun.
    """
    return _Mutex() if version_info >= (3, 14) else RLock()


class Setting:
    """A block in which a context variable has another value.

    Args:
        variable: the context variable.
        value: its value in the block.

    Example:
        >>> from contextvars import ContextVar
        >>> colour = ContextVar("colour", default="white")
        >>> with Setting(colour, "red"):
        ...     colour.get()
        'red'
        >>> colour.get()
        'white'
    """

    __slots__ = ("tokens", "value", "variable")
    tokens: Any  # of the blocks that are open, the innermost first

    def __init__(self, variable: ContextVar[Any], value: Any) -> None:
        self.variable, self.value, self.tokens = variable, value, None

    def __enter__(self) -> Any:
        variable = self.variable
        before = variable.get()
        try:
            self.tokens = variable.set(self.within(before)), self.tokens
        except BaseException:
            variable.set(before)
            raise

    def within(self, before: Any) -> Any:
        """The value in the block, which may depend on the one around it."""
        return self.value

    @from_the_start
    def __exit__(self, *exception: object) -> None:
        try:
            token = None
        finally:
            token, self.tokens = self.tokens  # no call before this one
            try:
                self.variable.reset(token)
            except (ValueError, MemoryError):
                # A generator that has gone on in another context; or no memory for the
                # table of variables, which the second try may find.
                self.variable.set(_before(token))


def _before(token: Token[Any]) -> Any:
    """What a context variable was before it was set."""
    if token.old_value is Token.MISSING:
        return Context().run(token.var.get)
    return token.old_value
