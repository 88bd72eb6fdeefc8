"""A backward pass that waits before every step: whoever holds it decides when to go on.

The forward pass runs as under ``grad``. What waits for its end is then resumed not in a
loop of ours, but in the user's.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any, NamedTuple

from lantern.blocks import between_turns
from lantern.core.conjugation import is_adjoint
from lantern.core.contribution import Contribution
from lantern.core.tree import tree_leaves, tree_paths
from lantern.core.value import Receiver
from lantern.cps import delimit
from lantern.debugging.source_line import Line, Watched
from lantern.errors import InUseError
from lantern.transforms.arguments import check_function, isolate
from lantern.transforms.reverse import Reverse, gradient, seed, track

__all__ = ["BackwardSteps", "Operation", "Step", "backward_steps"]


class Operation(NamedTuple):
    """What a step of the backward pass is about.

    Attributes:
        name: of the operation; "input" where the gradient of an input is complete.
        cotangent: of the operation's result; of an input, its gradient.
        line: where the user called it; None for an input.
        path: of an input: the keys that lead to it in the structure of the gradient.
        value: the operation's result, where it is kept (``lantern.debugger``).
    """

    name: str
    cotangent: Any
    line: Line | None = None
    path: tuple[Any, ...] | None = None
    value: Any = None

    @property
    def is_input(self) -> bool:
        """Whether the gradient of an input is complete."""
        return self.path is not None

    def __str__(self) -> str:
        if self.path is not None:
            return f"input {''.join(f'[{key!r}]' for key in self.path)}".strip()
        return f"{self.name}, at {self.line}" if self.line else self.name


class Step(NamedTuple):
    """One step: ``op, cotangents = step``.

    Attributes:
        op: the operation.
        cotangents: what each operand has received from it; None for a constant. Of an
            input: its gradient alone. Empty where they are not known (checkpoint).
    """

    op: Operation
    cotangents: tuple[Any, ...]


class Input(NamedTuple):
    """An input of the function, and what it was before it was tracked."""

    path: tuple[Any, ...]
    value: Any
    original: Any


def _one_at_a_time(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a pass, refused while another call of one is under way."""

    @wraps(method)
    def alone(self: "Pass", *args: Any) -> Any:
        busy, self.busy = self.busy, True  # without a call: nobody comes between
        try:
            if busy:
                raise InUseError(
                    f"{self.where}: a step is being taken already (in another thread, "
                    f"in a program that is paused, or further out). Wait until it is "
                    f"over."
                )
            return method(self, *args)
        finally:
            if not busy:
                self.busy = False

    return alone


class Pass:
    """A backward pass that has not yet been made.

    Args:
        where: for messages.
        f, args, kwargs: the function and its arguments.
        argnums: which arguments to differentiate, as in ``grad``.
        begin: how rules are started: a kind of ``Watched``.

    Attributes:
        value: f's value.
        chosen: the arguments that are differentiated.
        keys: their positions or names; None for a single one.
        entries: who waits, newest last.
        born: inputs whose gradients are complete and have not been taken.
        busy: whether one of its methods is being called.
    """

    def __init__(
        self,
        where: str,
        f: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: Any,
        begin: type[Watched] = Watched,
    ) -> None:
        check_function(where, f)
        self.where, self.busy = where, False
        self.level = level = Reverse(where)
        level.begin = begin
        self.chosen, call, self.keys = isolate(where, f, argnums, args, kwargs)
        tracked = [track(where, x, level) for x in self.chosen]
        self.entries: list[Any] = []
        self.inputs = _inputs(self.keys, tracked, self.chosen)

        def body() -> Any:
            y = seed(where, call(*tracked), level, holomorphic=False)
            self.entries, level.waiting[:] = level.waiting[:], []
            return y

        try:
            self.answer = self.value = delimit(body, level.waiting, level)
        except BaseException:
            level.close()
            raise
        self.born = self._find_last_uses()

    def _find_last_uses(self) -> list[Input]:
        """Where each input is used first: then its gradient is complete.

        Whoever does not say which operands it has may have any.
        """
        self.last_of: dict[int, list[Input]] = {}
        first_use: dict[int, int] = {}
        for i, entry in enumerate(self.entries):
            if isinstance(entry, Receiver) and isinstance(entry.suspended, Watched):
                receivers: Any = entry.operands()
            else:
                receivers = [x.value.receiver for x in self.inputs]
            for receiver in receivers:
                first_use.setdefault(id(receiver), i)
        unused = []
        for x in self.inputs:
            place = first_use.get(id(x.value.receiver))
            if place is None:
                unused.append(x)
            else:
                self.last_of.setdefault(place, []).append(x)
        return unused

    @_one_at_a_time
    def peek(self) -> Operation | None:
        """What the next step is about; None when the pass is over."""
        return self._next()

    def _next(self) -> Operation | None:
        if self.born:
            return _complete(self.born[0])
        while self.entries:
            entry = self.entries[-1]
            if not isinstance(entry, Receiver):
                return Operation("shift", None)
            if entry.cotangent is not None:
                return _described(entry)
            self._resume(self.entries.pop())  # nothing has arrived there
            if self.born:
                return self._next()
        return None

    @_one_at_a_time
    def step(self) -> Step | None:
        """Take the next step; None when the pass is over."""
        op = self._next()
        if op is None:
            self.level.close()
            return None
        if op.path is not None:
            x = self.born.pop(0)
            g = gradient(x.value, x.original)
            return Step(op._replace(cotangent=g), (g,))
        entry = self.entries.pop()
        rule = getattr(entry, "suspended", None)
        if not isinstance(rule, Watched):
            self._resume(entry)
            return Step(op, ())
        given: list[Any] = []
        rule.contributions = given
        operands, conjugate = entry.operands(), _conjugates(entry)
        self._resume(entry)
        pairs = zip(operands, given, strict=False)  # fewer, if an error was caught
        return Step(op, tuple(_received(x, x_bar, conjugate) for x, x_bar in pairs))

    @_one_at_a_time
    def replace(self, cotangent: Any) -> None:
        """Let the next step start from another cotangent."""
        op = self._next()
        if op is None:
            return
        receiver = self.entries[-1] if op.path is None else self.born[0].value.receiver
        receiver.cotangent = None
        receiver.accumulate(cotangent)

    def waiting(self, count: int) -> list[Operation]:
        """What the next steps are about, as far as one can tell already."""
        complete = [_complete(x) for x in self.born]
        entries = [x for x in reversed(self.entries) if isinstance(x, Receiver)]
        return [*complete, *map(_described, entries[:count])][:count]

    def _resume(self, entry: Any) -> None:
        place = len(self.entries)
        try:
            self.answer = entry.resume(self.answer)
        except BaseException as error:
            self._recover(error)
        for i in range(place, len(self.entries) - 1, -1):  # an error may skip some
            self.born += self.last_of.pop(i, [])

    @between_turns
    def _recover(self, error: BaseException) -> None:
        """Offer an exception to those who wait; raise it if nobody catches it."""
        while self.entries:
            entry = self.entries.pop()
            try:
                if not entry.catches:
                    entry.close()
                    continue
                self.answer = entry.throw(error)
                return
            except BaseException as raised:
                error = raised
        self._give_up()
        raise error

    @_one_at_a_time
    def close(self) -> None:
        """Give up what has not been done."""
        self._give_up()

    def _give_up(self) -> None:
        while self.entries:
            entry = self.entries.pop()
            if not entry.catches:
                entry.close()
                continue
            with suppress(GeneratorExit):
                entry.throw(GeneratorExit())  # as a generator is told that it is over
        self.born = []
        self.level.close()


def _inputs(
    keys: Sequence[Any] | None, tracked: list[Any], chosen: Sequence[Any]
) -> list[Input]:
    return [
        Input(path if keys is None else (keys[i], *path), x, original)
        for i, tree in enumerate(tracked)
        for (path, x), original in zip(
            tree_paths(tree), tree_leaves(chosen[i]), strict=True
        )
    ]


def _complete(x: Input) -> Operation:
    return Operation("input", x.value.receiver.cotangent, path=x.path)


def _described(entry: Receiver) -> Operation:
    rule = entry.suspended
    name = str(getattr(rule, "name", None) or getattr(rule, "__name__", "op"))
    value = getattr(rule, "value", None)
    return Operation(name, entry.cotangent, getattr(rule, "line", None), None, value)


def _conjugates(entry: Receiver) -> bool:
    return entry.holds_complex() and not is_adjoint(entry.suspended)


def _received(x: Receiver | None, x_bar: Any, conjugate: bool) -> Any:
    """A contribution as its operand has received it."""
    if x is None or x_bar is None:
        return None
    in_form = isinstance(x_bar, Contribution)  # and already conjugated
    x_bar = x.fit(x_bar)
    if isinstance(x_bar, Contribution):  # for one of several results
        x_bar = x_bar.z_bar
    return x_bar.conjugate() if conjugate and not in_form else x_bar


class BackwardSteps:
    """The iterator over a backward pass that ``backward_steps`` returns.

    Attributes:
        value: the value of the function.
    """

    def __init__(self, steps: Pass) -> None:
        self._pass = steps
        self.value = steps.value

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = self._pass.step()
        if step is None:
            raise StopIteration
        return step

    def close(self) -> None:
        """Give up the rest of the pass."""
        self._pass.close()

    def __enter__(self) -> "BackwardSteps":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        op = "at work" if self._pass.busy else self._pass.peek() or "over"
        return f"<BackwardSteps of {self.value!r}: {op}>"


def backward_steps(
    f: Callable[..., Any], *args: Any, argnums: Any = 0, **kwargs: Any
) -> BackwardSteps:
    """The steps of f's backward pass, one by one: gradients as soon as they are ready.

    The forward pass runs at once. Each turn of the loop then resumes one operation, in
    the reverse of the order in which they ran. As soon as nothing that waits can add to
    the gradient of an input, this gradient is a step of its own, whose operation is
    named "input". It is handed over and not kept; and as no rule needs that input any
    more, it may be changed in place. So an optimiser can be fused into the backward
    pass, and no two gradients need exist at once.

    Args:
        f: returns one real number.
        args: its positional arguments.
        argnums: which arguments to differentiate, as in ``grad``.
        kwargs: its other arguments.

    Returns:
        An iterator over pairs ``(op, cotangents)``: see ``Step`` and ``Operation``. Its
        attribute ``value`` is f's value. ``close()`` gives up the rest, as does the end
        of a ``with`` block.

    Raises:
        ArgumentError: if f is no plain function or an argument is not differentiable.
        NotScalarError: if f's result is not one number.

    Example:
        >>> steps = backward_steps(
        ...     lambda p: p["a"] * p["b"] * 2.0, {"a": 3.0, "b": 5.0}
        ... )
        >>> steps.value
        30.0
        >>> for op, cotangents in steps:
        ...     print(op.name, op.path, op.cotangent, cotangents)
        multiply None 1.0 (2.0,)
        multiply None 2.0 (10.0, 6.0)
        input ('a',) 10.0 (10.0,)
        input ('b',) 6.0 (6.0,)
    """
    return BackwardSteps(Pass("backward_steps", f, args, kwargs, argnums))
