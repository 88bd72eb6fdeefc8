"""Functions some of whose arguments are known: ints that say how long lists are.

A program has no list whose length is known only when it runs. Where a function cannot
be staged, and the same small ints come often, there is a program for these ints.
"""

from collections.abc import Callable, Collection
from functools import update_wrapper
from typing import Any

__all__ = ["AGAIN", "MOST", "MOST_STEPS", "Fixed", "ints_of"]

MOST = 64
"""The largest int that a program is made for."""

MOST_STEPS = 500
"""Calls, and turns of unrolled loops, of such a program."""

AGAIN = 8
"""The call with some ints from which on there is a program for them."""

Ints = tuple[tuple[int, int], ...]


def ints_of(args: tuple[Any, ...], but: Collection[int]) -> Ints:
    """The ints among arguments, with their positions; none if one is large.

    Args:
        args: the arguments.
        but: positions of those that have to stay.
    """
    found = [(i, x) for i, x in enumerate(args) if type(x) is int and i not in but]
    return tuple(found) if all(abs(x) <= MOST for _, x in found) else ()


class Fixed:
    """A function of the other arguments.

    Attributes:
        f: the whole function.
        ints: the ints, with their positions among its arguments.
    """

    def __init__(self, f: Callable[..., Any], ints: Ints) -> None:
        update_wrapper(self, f)
        self.f, self.ints = f, ints

    def __call__(self, *rest: Any) -> Any:
        """What the function gives for the others and the ints."""
        return self.f(*self._whole(rest))

    def place(self, i: int) -> int:
        """Where an argument of the whole function stands among the others."""
        return i - sum(k < i for k, _ in self.ints)

    def _whole(self, rest: tuple[Any, ...]) -> tuple[Any, ...]:
        args = list(rest)
        for i, x in self.ints:
            args.insert(i, x)
        return tuple(args)

    def staged(self, session: Any, args: tuple[Any, ...], call: Any) -> Any:
        """The call in a staged program, which may not become too long."""
        session.most_steps = MOST_STEPS
        return call(session, self.f, self._whole(args), {})
