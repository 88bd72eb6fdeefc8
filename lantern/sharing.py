"""Which arrays of a rule of the user's somebody else may write to while it waits.

Those of its results and residuals are copied, unless nobody else knows them, which the
count of references tells. What it reads elsewhere is compared (``lantern.unchanged``).
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from sys import getrefcount
from typing import Any

from lantern.names import read_later
from lantern.saving import copied, is_array, kept, waits
from lantern.tree import tree_leaves, tree_map
from lantern.unchanged import FIXED, Search, Unchanged, readings

__all__ = ["NOTHING", "Reads", "shared"]

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
            variables = _variables(body.gi_frame)
            given = (*given, *run.statics)
            pair = self.secured(pair, given, variables[1])
            if self.restarts:
                return pair, None
            ours = _owners((*given, *tree_leaves(pair)))
            _read_after(search, self.rule, body, variables, ours)
        search.find_in(run.others(), self._functions())
        if not search.found:
            return pair, None
        unchanged = Unchanged(run.name, search.found, self.keep or copied)
        return pair, unchanged if unchanged.known else None

    def secured(self, pair: Any, given: Sequence[Any], held: Sequence[Any] = ()) -> Any:
        """Something just computed, with copies of the arrays that others may hold.

        Args:
            pair: a list of it, which nothing else holds; or a tuple of two things.
            given: arrays that nobody writes to.
            held: what the variables of the generator hold that has computed it.
        """
        keep, leaves = self.keep, list(tree_leaves(pair))
        if keep is None:
            return pair
        shared = {}
        for i, references in enumerate(_references(leaves)):
            x = leaves[i]
            if not is_array(x) or (references == _ALONE and x.flags.owndata):
                continue
            if not (
                _is_ours(x, _owners(given))
                or _is_known(x, references, pair, leaves, held)
            ):
                shared[i] = keep(x)
        if not shared:
            return pair
        places = count()
        return tree_map(lambda x: shared.get(next(places), x), pair)


def shared(arrays: list[Any]) -> list[Any]:
    """Those of some arrays that somebody else holds than this list and one thing more.

    Or that are views, of what somebody else may hold.
    """
    pairs = zip(arrays, _references(arrays), strict=True)
    return [x for x, n in pairs if n != _ALONE or not x.flags.owndata]


def _owners(arrays: Sequence[Any]) -> set[int]:
    """The identities of arrays, and of the arrays that they are views of."""
    found = set()
    for x in arrays:
        while x is not None:
            found.add(id(x))
            x = getattr(x, "base", None)
    return found


def _is_known(
    x: Any, references: int, pair: Any, leaves: list[Any], held: Sequence[Any]
) -> bool:
    """Whether nobody else holds an array than the results and the variables given."""
    places = sum([leaf is x for leaf in leaves])
    if places > 1 and not (places == 2 and pair[0] is x):
        return False  # in one container, or in several: who knows
    variables = sum([variable is x for variable in held])
    known = _ALONE + 2 * (places - 1) + variables * (1 + _IN_FRAME - _IN_LIST)
    return references <= known and bool(x.flags.owndata)


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
        variables: see ``_variables``.
        ours: arrays that nobody else writes to.
    """
    frame = rule.gi_frame
    names = read_later(frame.f_code, frame.f_lasti, _MANY)
    outer = names.free if f is not None else ()
    search.read(f, names)
    keys, held = variables
    for key, x, references in zip(keys, held, _references(held), strict=True):
        if key not in names.own or type(x) in FIXED or key in outer:
            continue
        alone = is_array(x) and references == _IN_FRAME and x.flags.owndata
        if alone or (is_array(x) and _is_ours(x, ours)):
            continue
        search.find(key, x, names.attributes, f)
    inner = getattr(rule.gi_yieldfrom, "gi_frame", None)
    if inner is not None:
        _read_after(search, None, rule.gi_yieldfrom, _variables(inner), ours)


def _variables(frame: Any) -> tuple[list[str], list[Any]]:
    """The names of a frame's variables, and what they hold."""
    variables = frame.f_locals
    return list(variables), list(variables.values())


def _is_ours(x: Any, ours: set[int]) -> bool:
    """Whether an array is the library's own, or a read-only view of one that is."""
    if id(x) in ours:
        return True
    if getattr(getattr(x, "flags", None), "writeable", True):
        return False
    while getattr(x, "base", None) is not None:
        x = x.base
        if id(x) in ours:
            return True
    return False


def _references(held: list[Any]) -> list[int]:
    return [getrefcount(x) for x in held]


def _measured() -> tuple[int, int]:
    """The references to what only a frame and a list hold, and to what a list holds."""

    def rule() -> Any:
        x = object()
        yield
        del x

    suspended = rule()
    next(suspended)
    _, held = _variables(suspended.gi_frame)
    (in_frame,), (in_list,) = _references(held), _references([object()])
    return in_frame, in_list


_IN_FRAME, _IN_LIST = _measured()
_ALONE = _IN_LIST + 1
NOTHING = Reads()
