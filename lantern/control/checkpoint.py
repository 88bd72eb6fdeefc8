"""Functions that keep nothing on the way there, and run again on the way back."""

import functools
import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from lantern.blocks import between_turns
from lantern.control.no_grad import keep_nothing, keeps_nothing
from lantern.control.progress import Report, progress
from lantern.core.contribution import Masked, WithMask
from lantern.core.error_propagation import Failed, fail
from lantern.core.namespace import namespace
from lantern.core.residuals import is_array, residual
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.unwrap import frozen, holds, plain
from lantern.core.value import Level, Receiver, Value, base
from lantern.cps import delimit
from lantern.cps.handler import Unwind
from lantern.errors import ArgumentError, MutationError
from lantern.guards.captured import Search, Unchanged
from lantern.guards.environment import Surroundings, reachable
from lantern.rules.multiple_results import Several, part
from lantern.transforms.arguments import check_function
from lantern.transforms.reverse import Reverse

__all__ = ["checkpoint", "remat", "remat_loop"]

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def checkpoint(f: Callable[P, R]) -> Callable[P, R]:
    """The same function, which keeps only its arguments and runs again on the way back.

    Inside reverse mode, the first run keeps nothing; when the rest of the program is
    over, f runs a second time, this time with its operations waiting, and these are
    resumed at once. It finds what the first run found: the same arguments, context
    variables, random states and closed-over variables (those of ``nonlocal`` excepted,
    which f rebinds itself). Checkpoints nest. Values that f closes over are
    differentiated as its arguments are. In forward mode f simply runs.

    Args:
        f: takes and returns any structures. What it returns must be all that it gives:
            a tracked value that it leaves elsewhere is a constant.

    Returns:
        A function of f's arguments. f is called once for the value, and once more for
        each backward pass.

    Raises:
        MutationError: in the backward pass, if an array that f reads was changed in
            between, or the second run gave another result.
        ArgumentError: if f closes over a value of an inner derivative, in a way that
            does not show, and is called with values of an outer one; or if it is left
            early (``early_exit``) with a value that it has computed.

    Example:
        >>> import lantern
        >>> calls = []
        >>> def f(x):
        ...     calls.append(x)
        ...     return lantern.sin(x) * x
        >>> value, pullback = lantern.vjp(checkpoint(f), 2.0)
        >>> len(calls), pullback(1.0) == lantern.vjp(f, 2.0)[1](1.0)
        (1, True)

    References:
        Griewank and Walther (2008), chapter 12; Chen, Xu, Zhang and Guestrin (2016).
    """
    check_function("checkpoint", f)

    @functools.wraps(f)
    def checkpointed(*args: P.args, **kwargs: P.kwargs) -> Any:
        level = _innermost((*tree_leaves((args, kwargs)), *reachable(f)))
        if isinstance(level, Reverse) and level.goes_back and not keeps_nothing(level):
            return _checkpoint(f, frozen(args), frozen(kwargs), level)
        return f(*args, **kwargs)

    return checkpointed


remat = checkpoint


def _innermost(leaves: Any) -> Level | None:
    prompts = {x.level for x in leaves if isinstance(x, Value)}
    return max(prompts, key=lambda level: level.depth, default=None)


@between_turns
def _checkpoint(f: Function, args: Any, kwargs: Any, level: Reverse) -> Any:
    """The first run: its result, tracked by a receiver that will run f again."""
    surroundings = Surroundings(f, (args, kwargs))
    keep = functools.partial(residual, level)
    given = tree_map(lambda x: keep(x) if is_array(x) else x, (args, kwargs))
    unchanged = Unchanged("checkpoint", Search(surroundings.f).found(), keep)
    try:
        with keep_nothing(level):
            y = surroundings.f(*args, **kwargs)
    except Unwind as leaving:
        _check_left_with(leaving.value, (args, kwargs), level)
        raise
    surroundings.end()
    unchanged.forgive()
    own = _own(y, level)
    if not own:
        return y
    whole = Several()
    whole.primal, whole.level = tuple(x.primal for x in own), level
    segment = Segment(surroundings, unchanged, given, level, y)
    whole.receiver = Again(segment)
    level.suspend(whole.receiver)
    parts = (part(whole, i) for i in range(len(own)))
    return tree_map(lambda leaf: next(parts) if _is_own(leaf, level) else leaf, y)


def _check_left_with(value: Any, given: Any, level: Level) -> None:
    """Refuse what a function computed and leaves with past its checkpoint."""
    known = set(map(id, tree_leaves(given)))
    if any(_is_own(x, level) and id(x) not in known for x in tree_leaves(value)):
        raise ArgumentError(
            "checkpoint: f was left early, with a value whose derivative would be lost "
            "(early_exit, or an effect that ended the program). Let f return it, or "
            "put the whole program that is left early inside f."
        ) from None


def _is_own(x: Any, level: Level) -> bool:
    return isinstance(x, Value) and x.level is level


def _own(y: Any, level: Level) -> list[Any]:
    """The leaves of a result that a derivative tracks, and no other inside of it."""
    leaves = list(tree_leaves(y))
    for x in leaves:
        if isinstance(x, Value):
            if x.level.depth > level.depth:
                raise ArgumentError(
                    "checkpoint: f reads a value of an inner derivative that is not "
                    "among its arguments. Pass it as an argument."
                )
        elif holds(x, level):
            raise ArgumentError(
                f"checkpoint: f returned a {type(x).__name__} with tracked values "
                f"inside. Return them in tuples, lists or dicts, or make its class a "
                f"container with lantern.register_tree."
            )
    return [x for x in leaves if _is_own(x, level)]


class Segment:
    """One checkpointed call, in the place of a suspended rule.

    Attributes:
        answer: what the program came to, where that is known.
    """

    __name__ = "checkpoint"
    __slots__ = ("answer", "given", "level", "marks", "surroundings", "unchanged")

    def __init__(
        self,
        surroundings: Surroundings,
        unchanged: Unchanged,
        given: tuple[Any, Any],
        level: Reverse,
        y: Any,
    ) -> None:
        self.surroundings, self.unchanged = surroundings, unchanged
        self.given, self.level = given, level
        self.marks = [_mark(x) for x in _own(y, level)]
        self.answer: Any = None

    def again(self) -> "Segment":
        """Itself: it can be run any number of times."""
        return self

    def __next__(self) -> None:
        """The forward step was the first run."""

    def close(self) -> None:
        """Nothing is suspended."""

    def run(self, y_bars: dict[int, Any], error: Exception | None = None) -> None:
        """The second run, there and back again: the operands receive what is theirs.

        It runs on the same tracked values as the first one, so whatever it reads, an
        argument or not, receives its part.

        Args:
            y_bars: the cotangents of the results that received one.
            error: what the results received instead, if the way back failed.
        """
        self.surroundings.run(lambda: self._there_and_back(y_bars, error))

    def _there_and_back(self, y_bars: dict[int, Any], error: Exception | None) -> None:
        level = self.level
        waiting: list[Receiver] = []
        before = level.waiting, level.suspend, level.begin
        level.waiting, level.suspend, level.begin = waiting, waiting.append, None
        try:
            delimit(lambda: self._seed(y_bars, error), waiting, level)
        finally:
            level.waiting, level.suspend, level.begin = before

    def _seed(self, y_bars: dict[int, Any], error: Exception | None) -> Any:
        self.unchanged.check()
        args, kwargs = self.given
        own = _own(self.surroundings.f(*args, **kwargs), self.level)
        marks = [_mark(y) for y in own]
        if len(marks) != len(self.marks) or not all(map(_agree, marks, self.marks)):
            raise MutationError(
                f"checkpoint: the second run of "
                f"{getattr(self.surroundings.f, '__name__', 'f')} gave another result "
                f"than the first. Do not change what it reads before the backward pass "
                f"is over, and pass it the generators that it draws from."
            )
        if error is not None:
            if not fail((y.receiver for y in own), error):
                raise error
            return self.answer
        for i, y_bar in y_bars.items():
            own[i].receiver.accumulate(y_bar)
        return self.answer


def _mark(y: Any) -> tuple[Any, ...]:
    """What tells one result from another: shape, sum, and the size of its terms.

    Of a number itself; nothing, if its class does not say which are equal.
    """
    y = plain(y)
    if not hasattr(y, "shape"):
        return () if type(y).__eq__ is object.__eq__ else (y,)
    xp = namespace(y)
    with xp.ignore_fp_warnings():
        return y.shape, xp.sum(y), xp.sum(xp.abs(y))


def _agree(new: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    """Whether two results are the same, but for the order of an array's sums."""
    if len(old) < 2 or new[0] != old[0]:
        return bool(new == old or (new[0] != new[0] and old[0] != old[0]))
    size = abs(old[2])
    if not size < math.inf:
        return not abs(new[2]) < math.inf
    return bool(abs(new[1] - old[1]) + abs(new[2] - old[2]) <= 1e-5 * size)


class Again(Receiver):
    """Who waits for the cotangents of a checkpointed call's results."""

    __slots__ = ()

    def __init__(self, segment: Segment) -> None:
        self.suspended, self.left, self.right = segment, None, None
        self.cotangent: dict[int, Any] | None = None

    def accumulate(self, contribution: Any) -> None:
        """Take the cotangent of one result, and where it is to be taken seriously."""
        if isinstance(contribution, WithMask):
            contribution = contribution.z_bar
            both = contribution.z_bar
            xp = namespace(both)
            contribution.z_bar = Masked(base(xp.imag(both)) != 0, xp.real(both))
        if self.cotangent is None:
            self.cotangent = {}
        self.cotangent[contribution.index] = contribution.z_bar

    def fit(self, contribution: Any) -> Any:
        """What comes, as it is."""
        return contribution

    def holds_complex(self) -> bool:
        """Cotangents come as they are."""
        return False

    def resume(self, answer: Any) -> Any:
        """As ``Receiver.resume``; what runs again sees what the program came to."""
        segment = self.suspended
        if type(segment) is Failed:
            segment = segment.rule
        segment.answer = answer
        return super().resume(answer)

    def settle(self, rule: Any, z_bar: Any, operands: Any) -> None:
        """Run the function again."""
        if type(rule) is Failed:
            error, rule.error = rule.error, None
            rule.rule.run(z_bar, error)
        else:
            rule.run(z_bar)


def remat_loop(
    step: Callable[[S, int], S],
    state: S,
    n: int,
    policy: str | int = "sqrt",
    *,
    report: Report | None = None,
) -> S:
    """``for i in range(n): state = step(state, i)``, in little memory.

    The loop is cut into checkpointed pieces, and these again. Reverse mode then keeps
    the states between the pieces, and of one piece at a time what is inside.

    Args:
        step: takes the state and the number of the step, and returns the next state.
        state: numbers, arrays, or a structure of them.
        n: the number of steps.
        policy: "sqrt": pieces of √n steps; memory O(√n), each step runs twice.
            "log": halves, again and again; memory O(log n), each step runs log₂ n
            times more. A whole number d: d levels of checkpoints, n^(1/(d+1)) pieces
            each; 0 keeps everything.
        report: told how many steps are done, there and back (``lantern.progress``).

    Returns:
        The last state.

    Raises:
        ArgumentError: if there is no such policy.

    Example:
        >>> import lantern
        >>> def f(x):
        ...     return remat_loop(lambda y, i: lantern.sin(y) * x, x, 100)
        >>> plain = lambda x: remat_loop(lambda y, i: lantern.sin(y) * x, x, 100, 0)
        >>> lantern.grad(f)(1.5) == lantern.grad(plain)(1.5)
        True

    References:
        Griewank (1992); Chen, Xu, Zhang and Guestrin (2016), sections 4.3 and 4.4.
    """
    check_function("remat_loop", step)
    if not hasattr(n, "__index__") or n < 0:
        raise ArgumentError(
            f"remat_loop: n is {n!r}. Give the number of steps, from 0 on."
        )
    if policy == "sqrt":
        pieces, levels = math.ceil(math.sqrt(n)), 1
    elif policy == "log":
        pieces, levels = 2, max(n - 1, 0).bit_length()
    elif type(policy) is int and policy >= 0:
        pieces, levels = math.ceil(n ** (1 / (policy + 1))), policy
    else:
        raise ArgumentError(
            f"remat_loop: there is no policy {policy!r}. Take 'sqrt', 'log', or the "
            f"number of levels of checkpoints."
        )
    if report is not None:
        step, state = _told(step, n, report), progress(report, state, 0, n)
    return _pieces(step, state, 0, n, pieces, levels)


def _told(step: Function, n: int, report: Report) -> Function:
    """A step that tells how far it is; of a step that runs again, only the way back."""
    furthest = 0

    def onwards(way: str, done: int, total: int) -> None:
        nonlocal furthest
        if way == "back" or done > furthest:
            furthest = max(furthest, done) if way == "there" else furthest
            report(way, done, total)

    return lambda state, i: progress(onwards, step(state, i), i + 1, n)


def _pieces(
    step: Function, state: Any, start: int, stop: int, pieces: int, levels: int
) -> Any:
    """Steps start to stop, in checkpointed pieces of checkpointed pieces."""
    if levels == 0 or stop - start <= 1:
        for i in range(start, stop):
            state = step(state, i)
        return state
    length = -(-(stop - start) // pieces)
    for first in range(start, stop, length):
        last = min(first + length, stop)

        def piece(state: Any, first: int = first, last: int = last) -> Any:
            return _pieces(step, state, first, last, pieces, levels - 1)

        state = checkpoint(piece)(state)
    return state
