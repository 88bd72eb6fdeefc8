"""Which arrays somebody else holds: the only file that counts references.

A user's rule may hand over arrays that it, or anybody else, writes to again. These are
copied; what nobody else knows is taken as it is.
"""

from collections.abc import Callable, Sequence
from itertools import count
from sys import getrefcount
from typing import Any

from lantern.saving import copied, is_array
from lantern.tree import is_leaf, tree_leaves, tree_map

__all__ = [
    "IN_FRAME",
    "is_ours",
    "owned_by",
    "owners",
    "references",
    "secured",
    "shared",
    "variables_of",
]


def secured(
    pair: Any,
    keep: Callable[[Any], Any] | None = copied,
    given: Sequence[Any] = (),
    held: Sequence[Any] = (),
) -> Any:
    """Something just computed, with copies of the arrays that others may hold.

    Args:
        pair: a list of it, which nothing else holds; or a tuple of two things.
        keep: makes a copy; None for none.
        given: arrays that nobody writes to, also through views that are read-only.
        held: what the variables of the generator hold that has computed it.
    """
    leaves = list(tree_leaves(pair))
    if keep is None:
        return pair
    shared = {}
    for i, known in enumerate(references(leaves)):
        x = leaves[i]
        if not is_array(x) or (known == _ALONE and x.flags.owndata):
            continue
        if not (is_ours(x, owners(given)) or _is_known(x, known, pair, leaves, held)):
            shared[i] = keep(x)
    if not shared:
        return pair
    places = count()
    return tree_map(lambda x: shared.get(next(places), x), pair)


def owned_by(box: list[Any], given: Sequence[Any]) -> Any:
    """What a list alone holds; a copy, where others hold the arrays in it as well.

    Args:
        box: the list, which is emptied.
        given: arrays that nobody writes to, also through views that are read-only.
    """
    (known,) = references(box)
    x = box.pop()
    if not is_array(x):
        return x if is_leaf(x) else secured([x], copied, given)[0]
    alone = known == _IN_LIST and x.flags.owndata
    return x if alone or is_ours(x, owners(given)) else copied(x)


def shared(arrays: list[Any]) -> list[Any]:
    """Those of some arrays that somebody else holds than this list and one thing more.

    Or that are views, of what somebody else may hold.
    """
    pairs = zip(arrays, references(arrays), strict=True)
    return [x for x, n in pairs if n != _ALONE or not x.flags.owndata]


def owners(arrays: Sequence[Any]) -> set[int]:
    """The identities of arrays, and of the arrays that they are views of."""
    found = set()
    for x in arrays:
        while x is not None:
            found.add(id(x))
            x = getattr(x, "base", None)
    return found


def _is_known(
    x: Any, counted: int, pair: Any, leaves: list[Any], held: Sequence[Any]
) -> bool:
    """Whether nobody else holds an array than the results and the variables given."""
    places = sum([leaf is x for leaf in leaves])
    if places > 1 and not (places == 2 and pair[0] is x):
        return False  # in one container, or in several: who knows
    variables = sum([variable is x for variable in held])
    known = _ALONE + 2 * (places - 1) + variables * (1 + IN_FRAME - _IN_LIST)
    return counted <= known and bool(x.flags.owndata)


def variables_of(frame: Any) -> tuple[list[str], list[Any]]:
    """The names of a frame's variables, and what they hold."""
    variables = frame.f_locals
    return list(variables), list(variables.values())


def is_ours(x: Any, ours: set[int]) -> bool:
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


def references(held: list[Any]) -> list[int]:
    """How many references there are to each of the things in a list."""
    return [getrefcount(x) for x in held]


def _measured() -> tuple[int, int]:
    """The references to what only a frame and a list hold, and to what a list holds."""

    def rule() -> Any:
        x = object()
        yield
        del x

    suspended = rule()
    next(suspended)
    _, held = variables_of(suspended.gi_frame)
    (in_frame,), (in_list,) = references(held), references([object()])
    return in_frame, in_list


IN_FRAME, _IN_LIST = _measured()
_ALONE = _IN_LIST + 1
