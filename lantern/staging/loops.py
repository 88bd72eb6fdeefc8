"""The combinators WHILE and LOOP: loops that stay loops, or are unrolled.

References:
    Wang et al. (2019), section 4.3.
"""

from collections.abc import Callable
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import StagingError
from lantern.staging.control import (
    converted,
    flag_of,
    has_staged,
    truth,
)
from lantern.staging.ir import (
    Block,
    Node,
    Tapes,
    building,
    current,
    emit,
    results_of,
)
from lantern.staging.staged import NeedsPlainError, Staged, is_staged, node_of, staged
from lantern.staging.structure import (
    describe,
    is_number,
    is_undefined,
    leaves_of,
    note_copied,
    renewed,
    same,
    unflatten,
)
from lantern.staging.types import BOOL, NOTHING, Type, join, type_of

__all__ = ["LOOP", "MOST_UNROLLED", "UNROLLED", "WHILE", "staged_loop"]

UNROLLED = 4
"""Turns of a loop whose number is known that are staged one by one."""

MOST_UNROLLED = 20_000
_ATTEMPTS = 6


def WHILE(
    init: Any, condition: Callable[[Any], Any], body: Callable[[Any], Any]
) -> Any:
    """The state that a loop ends with.

    Args:
        init: the first state: a number, or a structure.
        condition: says of a state whether there is another turn.
        body: makes a state of the same structure from it.

    Example:
        >>> from lantern.staging import WHILE, stage
        >>> f = stage(lambda x: WHILE(x, lambda t: t > 1.0, lambda t: t * 0.5), 1.0)
        >>> f(6.0)
        0.75

    References:
        Wang et al. (2019), section 4.3.
    """
    state = init
    if not current.blocks:
        while condition(state):
            state = body(state)
        return state
    for turn in range(MOST_UNROLLED):
        with building(Block("branch", current.blocks[-1])):
            goes_on = condition(
                state
            )  # once more in the loop's header, if it is staged
        if not is_staged(goes_on):
            if not goes_on:
                return state
            if turn < UNROLLED or not has_staged(state):
                state = body(state)
                continue
        try:
            return staged_loop(state, condition, body)
        except NeedsPlainError:
            if is_staged(goes_on):
                raise
            state = body(state)
    raise StagingError(
        f"while: the loop has more than {MOST_UNROLLED} turns that have to be staged "
        f"one by one. Let its state be numbers and arrays alone."
    )


def LOOP(n: Any, init: Any, body: Callable[[Any, Any], Any]) -> Any:
    """The state after n turns: as WHILE, with the number of the turn for the body.

    Example:
        >>> from lantern.staging import LOOP, stage
        >>> stage(lambda x: LOOP(100, 1.0, lambda i, y: y * x), 1.0)(0.5) == 0.5**100
        True
    """
    start = 0
    if not is_staged(n):
        while start < n and (start == 0 or n <= UNROLLED or not has_staged(init)):
            init = body(start, init)  # the first turn: numbers find their types in it
            start += 1
        if start >= n:
            return init
    try:
        state = staged_loop(
            (start, init),
            lambda state: state[0] < n,
            lambda state: (state[0] + 1, body(*state)),
        )
    except NeedsPlainError:
        if is_staged(n) or n > MOST_UNROLLED:
            raise
        for i in range(start, n):
            init = body(i, init)
        return init
    return state[1]


def staged_loop(
    init: Any,
    condition: Callable[..., Any],
    body: Callable[..., Any],
    is_settled: bool = False,
) -> Any:
    """A loop node: its numbers find their types by iteration.

    If they have to be settled, another type after a turn is an error.
    """
    leaves, text = leaves_of(init), describe(init)
    places = [i for i, x in enumerate(leaves) if is_staged(x) or is_number(x)]
    types = [
        x.node.type if is_staged(x) else node_of(x).type
        for x in map(leaves.__getitem__, places)
    ]
    loose: list[int] = []
    for _ in range(_ATTEMPTS):
        found = _attempt(init, leaves, text, places, types, loose, condition, body)
        if found is None:
            if is_settled:
                raise StagingError("loop: a number changes its type.")
            continue
        node, header = found
        every = results_of(node, types + [BOOL] * len(loose))
        results = every[: len(types)]
        for k, i in enumerate(loose):
            results[i].loose, results[i].flag = True, every[len(types) + k]
        for i, z in zip(places, results, strict=True):
            z.example = header.parameters[z.static].example
            leaves[i] = staged(z)
        return renewed(init, leaves)
    raise StagingError(
        f"loop: the types of its state do not settle: {', '.join(map(str, types))}. "
        f"Start with floats: 0.0 for 0."
    )


@between_turns
def _attempt(
    init: Any,
    leaves: list[Any],
    text: str,
    places: list[int],
    types: list[Type],
    loose: list[int],
    condition: Callable[..., Any],
    body: Callable[..., Any],
) -> tuple[Node, Block] | None:
    """A loop whose state has some types, and some floats that may be ints.

    None, if a turn has shown that the state has other types: the lists have these then.
    """
    inputs = [converted(leaves[i], t) for i, t in zip(places, types, strict=True)]
    loose += [i for i, x in enumerate(inputs) if x.loose and i not in loose]
    flags = [flag_of(inputs[i]) for i in loose]
    header = Block("header", current.blocks[-1])
    state = list(leaves)
    for i, x in zip(places, inputs, strict=True):
        state[i] = staged(header.parameter(x.type, x.example))
    for i in loose:
        p = header.parameters[i]
        p.loose, p.flag = True, header.parameter(BOOL)
    turns = Block("body", header)
    with building(header):
        goes_on = condition(unflatten(init, state))
        if not is_staged(goes_on):
            goes_on = Staged(node_of(bool(goes_on)))
        header.results = [truth(goes_on)]
        with building(turns):
            after = body(unflatten(init, state))
            note_copied(after)
            if describe(after) != text:
                raise StagingError(
                    f"loop: the state is {text} at first and {describe(after)} after "
                    f"a turn. Keep its structure."
                )
            found = _after_a_turn(leaves, leaves_of(after), places, types)
            if found != types:
                types[:] = found
                return None
            new = [leaves_of(after)[i] for i in places]
            turns.results = [converted(x, t) for x, t in zip(new, types, strict=True)]
            more = [i for i, x in enumerate(turns.results) if x.loose]
            if not set(more) <= set(loose):
                loose += [i for i in more if i not in loose]
                return None
            turns.results += [flag_of(turns.results[i]) for i in loose]
    node = emit("loop", [*inputs, *flags], NOTHING, Tapes(), (header, turns))
    return node, header


def _after_a_turn(
    before: list[Any], after: list[Any], places: list[int], types: list[Type]
) -> list[Type]:
    for i, (x, y) in enumerate(zip(before, after, strict=True)):
        if i not in places and not same(x, y):
            raise StagingError(
                f"loop: {x!r} becomes {y!r} in a turn. The state of a loop is made of "
                f"numbers and arrays; all else must stay as it is."
            )
    found = []
    for i, known in zip(places, types, strict=True):
        leaf = after[i]
        if is_undefined(leaf):
            raise StagingError("loop: a variable is not assigned to in every turn.")
        now = leaf.node.type if is_staged(leaf) else type_of(leaf)
        both = None if now is None else join(known, now)
        if both is None:
            raise StagingError(
                f"loop: a number is {known} at first and {now or leaf!r} after a turn. "
                f"Keep its type and shape."
            )
        found.append(both)
    return found
