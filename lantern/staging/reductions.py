"""Generators of rewritten code, and what ``sum``, ``max`` or ``any`` make of them.

Over as many items as is known when the program runs each of these is a loop.
"""

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from lantern.staging.access import Access
from lantern.staging.branches import pass_
from lantern.staging.for_while import Loop
from lantern.staging.python_functions import COMPENSATES, Once, StagedRange, itself
from lantern.staging.staged import NeedsPlainError, is_staged
from lantern.staging.trees import StagedTree

__all__ = ["Reductions"]


class Reductions(Access):
    """The constructs that go through items one by one."""

    def once(self, x: Any) -> Once:
        """A generator that the program writes down."""
        return Once(x)

    def known(self, test: Any) -> bool:
        """What a test says that has to be known, as beside a ``yield``."""
        self.session.step()
        test = self.truth(test)
        if is_staged(test) and test.node.op != "constant":
            raise NeedsPlainError(
                "yield, filter: how many items there are is known only when the "
                "program runs. Return a value."
            )
        return bool(test)

    def turns(self, items: Any) -> Iterator[Any]:
        """What a loop with a ``yield`` in it goes through."""
        for x in self.items_of(items):
            self.session.step()
            yield x

    def filtered(self, f: Any, pairs: Iterator[tuple[Any, Callable[[], Any]]]) -> Any:
        """``f(x for ... if test)``, of tests and functions that make the items."""
        if f is sum and (self.session.derivatives or not COMPENSATES):
            total: Any = 0
            for pair in pairs:
                total = self._perhaps_plus(total, pair)
            return total
        if f in (any, all):
            items = (self._asked(f, test, make) for test, make in pairs)
        else:
            items = (make() for test, make in pairs if self.truth(test))
        return self.call(f, self.once(items))

    def reduced(self, f: Any, items: Any, make: Callable[[Any], Any]) -> Any:
        """``f(make(x) for x in items)``."""
        if isinstance(items, StagedTree) and f in _REDUCED:
            return _REDUCED[f](self, self._indices(items), lambda i: make(items[i]))
        if isinstance(items, StagedRange) and f in _REDUCED:
            return _REDUCED[f](self, items, make)
        return self.call(f, self.once(make(x) for x in self.items_of(items)))

    def filtered_of(self, f: Any, items: Any, pair: Callable[[Any], Any]) -> Any:
        """As ``filtered``, of items, and what makes a test and a function of one."""
        if isinstance(items, StagedTree):
            return self.filtered_of(f, self._indices(items), lambda i: pair(items[i]))
        if not isinstance(items, StagedRange) or f not in (sum, any, all):
            return self.filtered(f, (pair(x) for x in self.items_of(items)))
        if f is sum:
            self._check_sum()
            return self._folded(items, pair, 0, self._perhaps_plus)
        return _REDUCED[f](self, items, lambda i: self._asked(f, *pair(i)))

    def _perhaps_plus(self, total: Any, pair: tuple[Any, Callable[[], Any]]) -> Any:
        test, make = pair
        plus = partial(self._plus, total, make)
        return self.choose(test, plus, partial(itself, total))

    def _asked(self, f: Any, test: Any, make: Callable[[], Any]) -> Any:
        """What an item says for ``any`` or ``all``, if a test holds for it."""
        return self.choose(test, lambda: self._told(make()), partial(itself, f is all))

    def _check_sum(self) -> None:
        if COMPENSATES and not self.session.derivatives:
            raise NeedsPlainError("sum: of as many floats as is known when it runs.")

    def _indices(self, items: StagedTree) -> StagedRange:
        return StagedRange(0, items.size(), 1)

    def _folded(
        self, items: StagedRange, make: Callable[[Any], Any], start: Any, plus: Any
    ) -> Any:
        """What is left of a value and items; the program is left if there are none."""
        compare = operator.lt if items.step > 0 else operator.gt
        self.claim(compare(items.start, items.stop), pass_)
        first = make(items.start)
        found = first if start is None else plus(start, first)

        def turn(i: Any) -> None:
            nonlocal found
            found = plus(found, make(i))

        def put(values: tuple[Any, ...]) -> None:
            nonlocal found
            (found,) = values

        rest = StagedRange(items.start + items.step, items.stop, items.step)
        loop = Loop(turn, lambda: False, lambda: (found,), put, ("found",))
        self._count(rest, loop, is_begun=True)
        return found

    def _sum_of(self, items: StagedRange, make: Callable[[Any], Any]) -> Any:
        """``sum``."""
        self._check_sum()
        return self._folded(items, make, 0, partial(self.binary, "Add"))

    def _extreme_of(
        self, op: str, items: StagedRange, make: Callable[[Any], Any]
    ) -> Any:
        """``max``, ``min``."""

        def better(found: Any, x: Any) -> Any:
            test = self._compared(op, x, found)
            return self.choose(test, lambda: x, lambda: found)

        return self._folded(items, make, None, better)

    def _any_of(
        self, stop_at: bool, items: StagedRange, make: Callable[[Any], Any]
    ) -> Any:
        """``any``, ``all``: no item is asked behind the one that tells."""
        is_told: Any = False

        def turn(i: Any) -> None:
            nonlocal is_told
            x = self._told(make(i))
            is_told = x if stop_at else self.not_(x)

        def put(values: tuple[Any, ...]) -> None:
            nonlocal is_told
            (is_told,) = values

        loop = Loop(turn, lambda: is_told, lambda: (is_told,), put, ("is_told",))
        self._count(items, loop)
        return is_told if stop_at else self.not_(is_told)

    def _plus(self, total: Any, make: Callable[[], Any]) -> Any:
        return self.binary("Add", total, make())


_REDUCED: dict[Any, Callable[..., Any]] = {
    sum: Reductions._sum_of,
    max: lambda lt, *args: lt._extreme_of("Gt", *args),
    min: lambda lt, *args: lt._extreme_of("Lt", *args),
    any: lambda lt, *args: lt._any_of(True, *args),
    all: lambda lt, *args: lt._any_of(False, *args),
}
"""What goes through as many items as is known when the program runs."""
