"""What a rule of the user's reads, and what must be the same on its way back."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lantern.names import read_later
from lantern.saving import copied, is_array, kept, waits
from lantern.sharing import IN_FRAME, is_ours, owners, references, secured, variables_of
from lantern.tree import tree_leaves
from lantern.unchanged import FIXED, Search, Unchanged, readings

__all__ = ["NOTHING", "Reads"]

_MANY = 100  # times that a rule may be resumed


class Reads:
    """What the functions of a custom operation read, in one use of it.

    Args:
        rule: the generator function that is its forward and its backward step; or None
        there: and the functions of its forward step,
        back: and those of its backward step.

    Attributes:
        keep: makes copies for the derivative; None if its rules do not wait.
        restarts: whether that derivative starts its rules again.
        again: what must be as it was whenever the rule is started again: if the forward
            step is repeated, and in any case.
    """

    __slots__ = ("again", "back", "keep", "restarts", "rule", "there")

    def __init__(
        self,
        rule: Any = None,
        there: Sequence[Any] = (),
        back: Sequence[Any] = (),
    ) -> None:
        self.rule, self.there, self.back = rule, there, back
        self.again: list[Unchanged] | None = None
        self.keep: Callable[[Any], Any] | None = None
        self.restarts = False

    def belong_to(self, level: Any) -> None:
        """Take note of the derivative that the operation belongs to."""
        if waits(level):
            self.keep = partial(kept, level)
            self.restarts = level.begin is not None and level.begin.replays

    def start(self, run: Any, body: Callable[[], Any]) -> Any:
        """The forward step: of the first start, or of one that finds what that found.

        Args:
            run: the use of the operation.
            body: makes the step.
        """
        if not self.restarts:
            return body()
        if self.again is not None:
            for unchanged in self.again if run.saved is None else self.again[1:]:
                unchanged.check()
            return body()
        keep, functions = self.keep or copied, self._functions()
        again = [
            Unchanged(run.name, readings(functions).found, keep)
            for functions in ((*self.there, self.rule), self.back)
        ]
        value = body()
        for unchanged in again:
            unchanged.forgive()
        search = Search()
        search.find_in(run.others(), functions)
        self.again = [*again, Unchanged(run.name, search.found, keep)]
        return value

    def _functions(self) -> Sequence[Any]:
        return self.back if self.rule is None else (self.rule,)

    def started(
        self, run: Any, pair: list[Any], body: Any, given: Sequence[Any]
    ) -> tuple[list[Any], Unchanged | None]:
        """The rule has made its forward step.

        Args:
            run: the use of the operation.
            pair: a list of the result, which nothing else holds.
            body: the generator.
            given: the operands, which nobody writes to.

        Returns:
            The list with what is the operation's own, and what must be as it is now
            when the backward step begins; None for nothing.
        """
        search = Search()
        if self.rule is None:
            if self.restarts:
                return pair, None
            for f in self.back:
                search.read(f)
        else:
            variables = variables_of(body.gi_frame)
            given = (*given, *run.statics)
            pair = secured(pair, self.keep, given, variables[1])
            if self.restarts:
                return pair, None
            ours = owners((*given, *tree_leaves(pair)))
            _read_after(search, self.rule, body, variables, ours)
        search.find_in(run.others(), self._functions())
        if not search.found:
            return pair, None
        unchanged = Unchanged(run.name, search.found, self.keep or copied)
        return pair, unchanged if unchanged.known else None


def _read_after(
    search: Search,
    f: Any,
    rule: Any,
    variables: tuple[list[str], list[Any]],
    ours: set[int],
) -> None:
    """Find what a suspended generator reads later, and others may write to meanwhile.

    Args:
        search: what has been found.
        f: the generator function; None for a generator that another one runs.
        rule: the generator.
        variables: see ``variables_of``.
        ours: arrays that nobody else writes to.
    """
    frame = rule.gi_frame
    names = read_later(frame.f_code, frame.f_lasti, _MANY)
    outer = names.free if f is not None else ()
    search.read(f, names)
    keys, held = variables
    for key, x, counted in zip(keys, held, references(held), strict=True):
        if key not in names.own or type(x) in FIXED or key in outer:
            continue
        alone = is_array(x) and counted == IN_FRAME and x.flags.owndata
        if alone or (is_array(x) and is_ours(x, ours)):
            continue
        search.find(key, x, names.attributes, f)
    inner = getattr(rule.gi_yieldfrom, "gi_frame", None)
    if inner is not None:
        _read_after(search, None, rule.gi_yieldfrom, variables_of(inner), ours)


NOTHING = Reads()
