"""A call is deferred and answered later: its rows stand for what will be computed.

A call needs the rows that it is given, and may come before they are there. So it knows
how many of them are missing, and each call knows who follows it. What structure comes
back is known from the second call of a kind on: only the first must be waited for. The
next batch knows nothing of it, so that it makes the same groups, to the last bit.
"""

from collections.abc import Sequence
from typing import Any

from lantern.batching.constants import Constants
from lantern.batching.grouping import (
    NUMBERS,
    check_rows,
    is_own,
    stack_columns,
    stack_leaves,
)
from lantern.batching.row import Row
from lantern.core.tree import is_leaf, tree_leaves, tree_map, tree_paths
from lantern.core.value import Value
from lantern.errors import ShapeError
from lantern.guards.captured import Search, Unchanged

__all__ = ["Call", "Form"]


class Form:
    """What calls have in common that look alike when they are made.

    Attributes:
        scheduler: of the batch.
        function, args, shared: the batched function; the arguments of the first call.
        is_plain: whether the arguments are rows of the batch and numbers, no more.
        types, items: the types of the arguments by position; those by name.
        own: which of the arrays and numbers in the arguments are rows of the batch.
        sorting: those of them whose kinds may be others in each call.
        arrays: which others are arrays, that their owner may change.
        is_apart: whether there are values of a derivative or a ``vmap`` that a body
            takes: it will not wait for the results.
        is_known, is_row: whether it is known what comes back; whether it is one row.
        unchanged: the arrays that the function reads, but not by position.
        result: what comes back, its leaves standing for rows.
        paths: where in it they are.
    """

    def __init__(
        self,
        scheduler: Any,
        function: Any,
        args: Sequence[Any],
        shared: dict[str, Any],
        leaves: Sequence[Any],
        own: Sequence[bool],
    ) -> None:
        self.scheduler, self.batch = scheduler, scheduler.stores.batch
        self.function, self.args, self.shared = function, args, shared
        self.own = [i for i, mine in enumerate(own) if mine]
        self.sorting = self.own
        self.arrays = [
            i
            for i, (x, mine) in enumerate(zip(leaves, own, strict=True))
            if not mine and hasattr(x, "dtype") and type(x) is not Row
        ]
        values = [leaves[i] for i in self.arrays]
        self.is_apart = any(
            isinstance(x, Value) and x.level.depth > scheduler.depth
            for x in (*values, *tree_leaves(shared))
        )
        self.types, self.items = [type(x) for x in args], list(shared.items())
        self.is_plain = all(is_own(x, self.batch) or type(x) in NUMBERS for x in args)
        self.result: Any = None
        self.paths: list[Any] = []
        self.is_known = self.is_row = False
        search = Search(function)
        for name, x in shared.items():
            search.find(name, x, "")
        self.unchanged = Unchanged(self.name, search.found(), Constants().now)

    def fits(self, args: Sequence[Any], shared: dict[str, Any]) -> bool:
        """Whether a call is of this form, which is plain, as can be seen at once."""
        if len(args) != len(self.types) or len(shared) != len(self.items):
            return False
        for name, x in self.items:
            if shared.get(name, self) is not x:
                return False
        for i, cls in enumerate(self.types):  # ``zip`` takes twice as long
            x = args[i]
            if type(x) is not cls:
                return False
            if cls is Row:
                call = x.call
                if (x.store if call is None else call.form).batch is not self.batch:
                    return False
        return True

    def know(self, result: Any, paths: list[Any]) -> None:
        """Be told what comes back."""
        self.result, self.paths = result, paths
        self.is_known, self.is_row = True, paths == [()]

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(self.function.__name__)

    def stack(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """The arrays and numbers of some calls, each stacked."""
        return stack_columns(rows, self.own)

    def part(self, stacks: Sequence[Any], i: int) -> list[Any]:
        """Those of one call, as stacks of one."""
        return [x[i : i + 1] for x in stacks]

    def run(self, stacks: Sequence[Any]) -> Any:
        """The function's result, for these arrays in the place of the arguments'.

        Raises:
            MutationError: if an array was changed that it reads by name.
        """
        self.unchanged.check()
        stacked = iter(stacks)
        args = [stack_leaves(x, stacked) for x in self.args]
        result = self.function(*args, **self.shared)
        if not self.is_known:
            self.unchanged.forgive()
        return result

    def learn(self, result: Any, n: int) -> list[Any]:
        """The arrays in a result for n calls; what it looks like is now known.

        Raises:
            ShapeError: if it was known, and was another; if one does not have n rows.
        """
        stacks = list(tree_leaves(result))
        for stack in stacks:
            check_rows(self.name, stack, n)
        paths = [()] if is_leaf(result) else [path for path, _ in tree_paths(result)]
        if not self.is_known:
            self.know(tree_map(lambda _: 0, result), paths)
        elif paths != self.paths:
            raise ShapeError(
                f"{self.name}: it returned a structure with arrays at {paths}, where "
                f"it has returned one at {self.paths} before. A batched function "
                f"returns the same structure for arguments of the same kinds."
            )
        return stacks

    def promise(self, call: "Call") -> Any:
        """What a call gives back: rows that are not yet computed."""
        if self.is_row:
            row = call.rows = new(Row)
            row.call = call
            return row
        rows = call.rows = [new(Row) for _ in self.paths]
        for row in rows:
            row.call = call
        left = iter(rows)
        return tree_map(lambda _: next(left), self.result)


class Call:
    """One call of a batched function.

    Attributes:
        form: what it has in common with others.
        leaves: the arrays and numbers in its arguments.
        body: who has made it.
        depth: how many calls lie behind it, one after another.
        missing: how many of its rows are not yet computed.
        follower: the first call or body that waits for it. Most have one, and a list
            for each call would have the garbage collector look at it.
        others: the others that do; None for nobody.
        over: whether its rows are there, or will never be.
        rows: what it has promised: a row, or a list of them; None for nothing yet.
        result: what it gives back, if a body has waited for that.
        error: what its function has raised.
    """

    __slots__ = (
        "body",
        "depth",
        "error",
        "follower",
        "form",
        "leaves",
        "missing",
        "others",
        "over",
        "result",
        "rows",
    )

    follower: Any
    others: list[Any] | None
    leaves: Any
    result: Any
    rows: Any
    error: BaseException | None

    def __init__(self, form: Form, leaves: list[Any], body: Any, depth: int) -> None:
        self.form, self.leaves, self.body, self.depth = form, leaves, body, depth
        self.missing, self.over = 0, False
        self.follower = self.others = self.rows = self.error = None

    def add(self, follower: Any) -> None:
        """Have one more call or body wait."""
        if self.follower is None:
            self.follower = follower
        elif self.others is None:
            self.others = [follower]
        else:
            self.others.append(follower)

    def followers(self) -> Sequence[Any]:
        """The calls and the bodies that wait for it."""
        if self.others is None:
            return () if self.follower is None else (self.follower,)
        return (self.follower, *self.others)

    def finish(self) -> Sequence[Any]:
        """Be over; who has waited for that."""
        followers, self.over = self.followers(), True
        self.follower = self.others = self.rows = self.leaves = None
        return followers

    def wait(self) -> None:
        """Let whoever looks at a row wait until it is computed."""
        self.form.scheduler.wait_for(self)


new = object.__new__
