"""The public verbs: ``batched`` marks a function, ``batch`` runs examples, ``fork``."""

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

from lantern.batching.policies import Policy, choose_policy
from lantern.batching.report import Results
from lantern.batching.row import Row
from lantern.batching.scheduler import DIRECT, Scheduler, alone, ambient
from lantern.control.progress import Report
from lantern.core.tree import tree_replace
from lantern.core.value import UNTRACKED
from lantern.errors import ArgumentError
from lantern.transforms.arguments import check_function

Function = Callable[..., Any]
P = ParamSpec("P")

__all__ = ["batch", "batched", "fork"]


def batched(function: Callable[P, Any]) -> Callable[P, Any]:
    """Mark a function whose calls, by many examples, are to be run as one.

    Inside ``lantern.batch`` a call stops the example that makes it. When all examples
    have stopped, calls that are alike are stacked, run once, and each example goes on
    with its row. Outside, a call is a batch of one.

    Args:
        function: takes arrays with a first axis more than what it is called with, one
            entry for each call, and returns such arrays, in any structure. Positional
            arguments are stacked: arrays of all kinds and numbers, in any structure;
            what is neither (a string, None) is the same in a group. Keyword arguments
            are the same in a group and come as they are: weights, options.

    Returns:
        A function of one example's arguments.

    Raises:
        ArgumentError: if it is no function.
        ShapeError: by a call, if a result does not have an entry for each call.
        MutationError: by a call, if an array that function closes over or was given by
            name was changed before the call ran.

    Example:
        >>> import lantern
        >>> import numpy as np
        >>> @lantern.batched
        ... def halve(x):
        ...     return x / 2
        >>> def count(x):
        ...     n = 0
        ...     while x > 1:
        ...         x, n = halve(x), n + 1
        ...     return n
        >>> lantern.batch(count, [np.array(9.0), np.array(2.0), np.array(30.0)])
        [4, 1, 5]
    """
    check_function("batched", function)

    @functools.wraps(function)
    def call(*args: P.args, **shared: P.kwargs) -> Any:
        scheduler = ambient.get()
        if scheduler is DIRECT:
            return function(*args, **shared)
        if scheduler is None or scheduler.is_apart():
            return alone(function, args, shared)
        return scheduler.call(function, args, shared)

    return call


def batch(
    f: Callable[[Any], Any],
    examples: Iterable[Any],
    *,
    policy: str | Policy = "largest",
    on_error: str = "raise",
    check: bool = False,
    granularity: str = "function",
    report: Report | None = None,
) -> Results:
    """Run a function on each example, all of them side by side.

    Each example is a body of its own. The results and their derivatives, of any order,
    in both modes, are those of ``[f(x) for x in examples]``, to rounding. What one
    example changes outside of itself the others see in no particular order.

    Args:
        f: takes one example; returns any structure.
        examples: anything to iterate over.
        policy: which group of calls is next: "largest"; "depth", the one with the
            fewest calls behind it; or a function that takes the list of groups (with
            ``size``, ``depth`` and ``name``) and returns one.
        on_error: "raise", where the first exception of an example ends all others,
            whose ``finally`` blocks run; or "return", where the exception stands in
            the place of the result. It has a note that names the example.
        check: run each group row by row as well, and compare.
        granularity: what waits for other examples: "function", calls of ``batched``
            ones; or "op", any operation on the arrays in an example and on what is
            computed of them. Those cannot be written to; others are common to all.
        report: told ``("there", done, total)`` as examples are done.

    Returns:
        A list of results; its ``report()`` says what was run together, and
        ``plot(path)`` draws it.

    Raises:
        ShapeError: by a batched function's call; see there, and ``check``.
        BaseException: what an example raises.

    Example:
        >>> import lantern
        >>> @lantern.batched
        ... def add(x, y):
        ...     return x + y
        >>> def total(numbers):
        ...     result = 0.0
        ...     for x in numbers:
        ...         result = add(result, x)
        ...     return result
        >>> lantern.batch(total, [[1.0, 2.0], [3.0]])
        [np.float64(3.0), np.float64(3.0)]
    """
    check_function("batch", f)
    scheduler = _scheduler(policy, on_error, check, granularity)
    if report is not None:
        f, examples = _told(f, list(examples), report)
    bodies = scheduler.run(f, examples)
    results = [body.value if body.error is None else body.error for body in bodies]
    results = read(results) if scheduler.stores.untracked() else results
    return Results(results, scheduler.log)


def _told(f: Function, examples: list[Any], report: Report) -> tuple[Any, list[Any]]:
    """A function that tells how many times it has come to its end; its examples."""
    done, total = itertools.count(1), len(examples)

    def told(x: Any) -> Any:
        result = f(x)
        report("there", next(done), total)
        return result

    return functools.wraps(f)(told), examples


def _scheduler(
    policy: str | Policy, on_error: str, check: bool, granularity: str
) -> Scheduler:
    """What the options of ``batch`` ask for."""
    if on_error not in ("raise", "return"):
        raise ArgumentError(
            f"batch: on_error is {on_error!r}. Choose 'raise' or 'return'."
        )
    if granularity not in ("function", "op"):
        raise ArgumentError(
            f"batch: granularity is {granularity!r}. Choose 'function' or 'op'."
        )
    options = choose_policy(policy), check, on_error == "return"
    if granularity == "function":
        return Scheduler(*options)
    from lantern.batching.operations import OperationScheduler

    return OperationScheduler(*options)


def fork(*thunks: Callable[[], Any]) -> tuple[Any, ...]:
    """Run independent branches of one example side by side.

    Inside ``lantern.batch`` the calls of all branches of all examples can be run
    together: the two subtrees of a tree, say. Outside, they are run one after another.

    Args:
        thunks: functions of no arguments.

    Returns:
        Their results.

    Raises:
        BaseException: what a branch raises; the others are ended.

    Example:
        >>> import lantern
        >>> lantern.fork(lambda: 1 + 1, lambda: 2 + 2)
        (2, 4)
    """
    for thunk in thunks:
        check_function("fork", thunk)
    scheduler = ambient.get()
    if scheduler is None or scheduler is DIRECT or scheduler.is_apart():
        return tuple([thunk() for thunk in thunks])
    return tuple(scheduler.fork(thunks))


def read(results: Any) -> Any:
    """The results, whose rows that no derivative tracks are plain arrays."""

    def leaf(x: Any) -> Any:
        return x.read() if type(x) is Row and x.level is UNTRACKED else x

    return tree_replace(leaf, results)
