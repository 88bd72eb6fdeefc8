"""Guards of a user's rule: what it reads must be the same on its way back."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from lantern.core.residuals import copied, owners, residual, secured, waits
from lantern.guards.captured import Search, Unchanged

__all__ = ["Reads"]


class Reads:
    """What the functions of a custom operation read, in one use of it.

    Args:
        there: the function of its forward step,
        back: and that of its backward step; None if the first is a generator function,
            which makes both.

    Attributes:
        keep: makes copies for the derivative; None if its rules do not wait.
        restarts: whether that derivative starts its rules again.
        again: what must be as it was whenever the rule is started again: if the forward
            step is repeated, and in any case; None before the first start.
    """

    __slots__ = ("again", "back", "keep", "restarts", "there")

    def __init__(self, there: Any, back: Any = None) -> None:
        self.there, self.back = there, back
        self.again: tuple[Unchanged, Unchanged] | None = None
        self.keep: Callable[[Any], Any] | None = None
        self.restarts = False

    def belong_to(self, level: Any) -> None:
        """Take note of the derivative that the operation belongs to."""
        if waits(level):
            self.keep = partial(residual, level)
            self.restarts = level.begin is not None and level.begin.replays

    def start(
        self, run: Any, rule: Any, leaves: Sequence[Any]
    ) -> tuple[Any, Unchanged | None]:
        """The forward step.

        Args:
            run: the use of the operation.
            rule: the generator.
            leaves: the operands, which nobody writes to.

        Returns:
            The result, in arrays of its own, and what must be as it is now when the
            backward step begins; None for nothing.
        """
        if self.keep is None:
            return next(rule), None
        first = self.restarts and self.again is None
        ahead = self._read(run, self.there) if first else None
        if self.again is not None:
            for unchanged in self.again[run.saved is not None :]:
                unchanged.check()
        made = value = next(rule)
        if self.back is None:
            value = secured(made, self.keep, (*leaves, *run.statics))
        if ahead is not None:
            ahead.forgive()
            self.again = ahead, self._read(run, self.back)
        if self.restarts:
            return value, None
        if self.back is not None:
            return value, self._read(run, self.back)
        ours = owners((*leaves, *run.statics))
        return value, self._read(run, self.there, rule, ours)

    def _read(
        self, run: Any, f: Any, rule: Any = None, ours: Collection[int] = ()
    ) -> Unchanged:
        """What a function reads as it is now; of a suspended rule what it will read."""
        search = Search()
        if rule is None:
            search.read(f)
        else:
            search.read_suspended(f, rule, ours)
        if f is not None:
            search.find_in(run.others(), f)
        return Unchanged(run.name, search.found(), self.keep or copied)
