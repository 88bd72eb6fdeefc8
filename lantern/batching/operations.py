"""Operations that are alike, run as one by the rules of ``vmap``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lantern.batching.calls import Call, Form
from lantern.batching.grouping import Common, is_own, stack_columns
from lantern.batching.own import MARK, Operations, Own
from lantern.batching.row import Kind
from lantern.batching.scheduler import Body, Scheduler, alone
from lantern.core.tree import tree_leaves, tree_map
from lantern.vectorizing.batched import Batched, Examples
from lantern.vectorizing.batching_rules import elementwise

__all__ = ["OperationScheduler"]


class OwnForm(Form):
    """Calls of a batched function; its results are own arrays.

    Attributes:
        level: the level of the batch.
        kinds: for each array of a result what is known of it, and its number.
    """

    level: Operations
    kinds: list[tuple[Kind, int]]

    def learn(self, result: Any, n: int) -> list[Any]:
        """As ``Form.learn``; the kinds of the rows are now known too."""
        stacks = super().learn(result, n)
        self.kinds = [self.level.kind(x, x.shape[1:]) for x in stacks]
        return stacks

    def promise(self, call: Call) -> Any:
        """What a call gives back: own arrays that are not yet computed."""
        rows = super().promise(call)
        if self.is_row:
            return Own(rows, self.level, *self.kinds[0])
        pairs = zip(call.rows, self.kinds, strict=True)
        left = iter([Own(row, self.level, *kind) for row, kind in pairs])
        return tree_map(lambda _: next(left), self.result)


class Operation(OwnForm):
    """Calls of an operation that are alike.

    Attributes:
        operands, statics: its arguments, with marks for arrays and numbers that may be
            others in each call.
        steady: which of these may be the same in all calls.
        parts: which are parts of rows, and the indices of these.
    """

    def __init__(
        self,
        level: Operations,
        form: Any,
        function: Any,
        operands: Sequence[Any],
        statics: Mapping[str, Any],
    ) -> None:
        self.level, self.scheduler = level, level.scheduler
        self.batch = self.scheduler.stores.batch
        self.form, self.function = form, function
        many = form is elementwise
        marked: list[Any] = []
        template = partial(level.template, leaves=marked)
        self.operands = [template(x, many) for x in operands]
        self.statics = {name: template(x, False) for name, x in statics.items()}
        own = [level.owns(x) for x in marked]
        self.own = [i for i, mine in enumerate(own) if mine]
        self.steady = [i for i, mine in enumerate(own) if not mine]
        self.parts = [
            (i, marked[i].kind.parts) for i in self.own if marked[i].kind.parts
        ]
        self.arrays, self.sorting, self.is_apart = [], [], False
        self.result: Any = None
        self.paths: list[Any] = []
        self.is_known = self.is_row = False

    @property
    def name(self) -> str:
        """The name of the operation."""
        function = self.function
        while type(function) is partial:
            function = function.args[0]
        return str(getattr(function, "__name__", function)).lstrip("_")

    def stack(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """The arrays and numbers of some calls, each stacked unless it is common."""
        stores = self.scheduler.stores
        stacks = stack_columns(rows, self.own, self.steady, stores)
        for i, parts in self.parts:
            for index in parts:
                stacks[i] = stacks[i][(slice(None), *index)]
        return stacks

    def part(self, stacks: Sequence[Any], i: int) -> list[Any]:
        """Those of one call, as stacks of one."""
        return [x if type(x) is Common else x[i : i + 1] for x in stacks]

    def run(self, stacks: Sequence[Any]) -> Any:
        """The operation's result for all calls."""
        n = next(len(x) for x in stacks if type(x) is not Common)
        examples = Examples("batch", n)
        left = iter(
            [x.value if type(x) is Common else Batched(x, examples) for x in stacks]
        )
        operands = [_filled(x, left) for x in self.operands]
        statics = {name: _filled(x, left) for name, x in self.statics.items()}
        z = examples.compute(self.form, self.function, operands, statics)
        return tree_map(lambda x: x.stacked, z)


def _filled(x: Any, left: Iterator[Any]) -> Any:
    """An argument with arrays in the place of its marks."""
    kind = type(x)
    if x is MARK:
        return next(left)
    if kind is tuple or kind is list:
        return kind([_filled(y, left) for y in x])
    if kind is dict:
        return {key: _filled(y, left) for key, y in x.items()}
    return x


class OperationScheduler(Scheduler):
    """As ``Scheduler``, where any operation on an example's own arrays waits."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self.operations = Operations(self)

    def run(self, f: Callable[[Any], Any], examples: Iterable[Any]) -> list[Body]:
        """All examples, from beginning to end."""
        level = self.operations
        try:
            return super().run(lambda x: level.leave(f(level.enter(x))), examples)
        finally:
            level.close()

    def put_down_operation(
        self, key: tuple[Any, ...], call: tuple[Any, ...], leaves: list[Any]
    ) -> Any:
        """Put down an operation; what it gives back.

        Args:
            key: what it has in common with others.
            call: its form, function, operands and static arguments.
            leaves: the arrays and numbers in them that others may have instead.
        """
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = Operation(self.operations, *call)
        return self.put_down(form, leaves)

    def call(self, function: Any, args: Sequence[Any], shared: dict[str, Any]) -> Any:
        """Defer a call of a batched function; what it gives back."""
        level = self.operations
        leaves: list[Any] = []
        kinds = [x.number for x in tree_leaves(args) if level.owns(x)]
        rows = level.leave(tuple(args))
        key = (self._key(function, rows, shared, leaves), *kinds)
        form = self.forms.get(key)
        if form is None:
            own = [is_own(x, self.stores.batch) for x in leaves]
            form = OwnForm(self, function, rows, shared, leaves, own)
            form.level = level
            self.forms[key] = form
        if form.is_apart:
            return alone(function, args, shared)
        return self.put_down(form, leaves)
