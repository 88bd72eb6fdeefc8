"""Traces of a program there and back again: what each operation says, and who waits."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lantern.core.dispatch import operand_count
from lantern.core.value import Receiver
from lantern.debugging.backward_steps import Pass, Step
from lantern.debugging.source_line import Line, Shown
from lantern.viz.drawing import Picture, brief, clipped, dot
from lantern.viz.nesting import draw_nesting

__all__ = ["Entry", "Trace", "trace"]

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "pow": "**",
    "matmul": "@",
}


class Recorded(Shown):
    """A started rule that keeps its value and its operands, to be looked at."""

    __slots__ = ()

    def forget(self) -> None:
        """Let go of nothing."""


@dataclass
class Entry:
    """One operation of a program, or one input.

    Attributes:
        name: that the picture gives to the value.
        expression: how it was computed; empty for an input.
        value: what it came to.
        line: where in the program; None for an input.
        cotangent: what the rest of the program has left for it; of an input, its
            gradient. None if nothing depends on it.
        given: the names of the operands, and what each has received.

    Example:
        >>> x, y = trace(lambda x, y: x * y, 3.0, 5.0).inputs
        >>> x.name, x.value, x.cotangent
        ('x', 3.0, 5.0)
    """

    name: str
    expression: str
    value: Any
    line: Line | None = None
    cotangent: Any = None
    given: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def there(self) -> str:
        """What happens on the way there."""
        middle = f" = {self.expression}" if self.expression else ""
        value = "" if self.value is None else f" = {brief(self.value)}"
        return f"{self.name}{middle}{value}"

    @property
    def back(self) -> str:
        """What happens on the way back."""
        if self.cotangent is None:
            return f"{self.name} is not needed"
        shares = ", ".join(f"{name} {brief(x)}" for name, x in self.given)
        arrow = f" → {shares}" if shares else ""
        return f"{self.name}_bar = {brief(self.cotangent)}{arrow}"


class Trace(Picture):
    """The picture that ``trace`` returns.

    Attributes:
        value: the function's value.
        inputs: one ``Entry`` for each input.
        operations: one ``Entry`` for each operation, in the order of the program.
        result: the name of the entry that is the function's value; empty if it depends
            on no input.

    Example:
        >>> picture = trace(lambda x: x * x * x, 3.0)
        >>> picture.value, [entry.expression for entry in picture.operations]
        (27.0, ['x * x', 'a * x'])
    """

    def __init__(
        self,
        value: Any,
        inputs: list[Entry],
        operations: list[Entry],
        result: str,
        most: int,
    ) -> None:
        self.value, self.inputs, self.operations = value, inputs, operations
        self.result, self._most = result, most
        super().__init__(lambda: draw_nesting(self), "\n".join(self._lines()))

    def shown(self) -> list[Entry | None]:
        """The operations to be drawn; None stands for those that are left out."""
        entries: list[Entry | None] = list(self.operations)
        if len(entries) <= self._most:
            return entries
        half = self._most // 2
        return [*entries[: self._most - half], None, *entries[-half:]]

    def _lines(self) -> Iterator[str]:
        rows = [("there", "back again")]
        rows += [(x.there, x.back) for x in self.inputs]
        for depth, entry in enumerate(self.shown(), 1):
            bars = "│ " * min(depth, 12)
            left_out = len(self.operations) - self._most
            there, back = ("…", f"… {left_out} more …")
            if entry is not None:
                there, back = entry.there, entry.back
            rows.append((bars + there, back))
        width = max(len(there) for there, _ in rows)
        for there, back in rows:
            yield f"{there:<{width}}   {back}"

    def to_dot(self) -> str:
        r"""Who tells whom on the way back, in the language of Graphviz.

        Example:
            >>> print(trace(lambda x: 2 * x, 3.0).to_dot())
            digraph {
            graph [ordering="out"]
            node [shape="box"]
            "x" [label="x = 3\nx_bar = 2"]
            "a" [label="a = 2 * x = 6\na_bar = 1"]
            "a" -> "x" [label="2"]
            }
        """
        parts: list[Any] = []
        for entry in (*self.inputs, *self.operations):
            bar = f"{entry.name}_bar = {brief(entry.cotangent)}"
            told = "is not needed" if entry.cotangent is None else bar
            parts.append(((entry.name,), {"label": f"{entry.there}\n{told}"}))
            for name, share in entry.given:
                parts.append(((entry.name, name), {"label": brief(share)}))
        return dot(parts)

    def play(self, seconds: float = 1.0) -> Any:
        """The picture step by step, there and back, with buttons in a notebook.

        Args:
            seconds: how long each step is shown.

        Returns:
            A ``Player``: ``save`` writes it as an animated SVG or GIF.
        """
        from lantern.viz.playing import Player

        return Player(self, seconds)


def trace(
    f: Callable[..., Any], *args: Any, argnums: Any = "*", most: int = 24, **kwargs: Any
) -> Trace:
    """How f and its backward pass run: nested continuations, and who waits where.

    Each operation stands on a line of its own: on the left what it computes on the way
    there, on the right what it passes its operands on the way back. The frame below it
    is the rest of the program, for which it waits.

    Args:
        f: returns one real number; or a module of ``lantern.torch.nn``: its parameters
            are inputs as well, and its result is summed.
        args: its positional arguments.
        argnums: which of them to differentiate: one, several, or "*" for all.
        most: how many operations to show; of more, those in the middle are left out.
        kwargs: its other arguments.

    Raises:
        ArgumentError: if f is no plain function or an argument is not differentiable.
        NotScalarError: if f's result is not one number.

    Example:
        >>> picture = trace(lambda x, y: x * y, 3.0, 5.0)
        >>> print(picture)
        there              back again
        x = 3              x_bar = 5
        y = 5              y_bar = 3
        │ a = x * y = 15   a_bar = 1 → x 5, y 3
        >>> picture.operations[0].cotangent
        1.0

    References:
        Wang et al. (2019), figure 6.
    """
    names = _parameters(getattr(f, "forward", f), len(args))
    every = tuple(range(len(args))) if argnums == "*" else argnums
    chosen = every if isinstance(every, tuple | list) else (every,)
    if hasattr(f, "call_with"):
        f, args, chosen = *_of_module(f, args), (*chosen, len(args))
        names.append("")
    steps = Pass("viz.trace", f, args, kwargs, chosen, Recorded)
    try:
        inputs = {
            x.path: Entry(_path(names, x.path), "", x.original) for x in steps.inputs
        }
        known = {id(x.value.receiver): inputs[x.path].name for x in steps.inputs}
        waiting = list(steps.entries)  # alive, so that no id comes twice
        operations: dict[int, Entry] = {}
        fresh = _fresh_names(len(waiting), set(known.values()))
        for entry in waiting:
            operations[id(entry)] = made = _described(entry, next(fresh), known)
            known[id(entry)] = made.name
        result = _seeded([*(x.value.receiver for x in steps.inputs), *waiting], known)
        _take(steps, inputs, operations)
    except BaseException:
        steps.close()
        raise
    return Trace(
        steps.value, list(inputs.values()), list(operations.values()), result, most
    )


def _seeded(receivers: list[Any], known: dict[int, str]) -> str:
    """The name of what the backward pass begins with."""
    seeded = (x for x in receivers if getattr(x, "cotangent", None) is not None)
    return "".join([known[id(x)] for x in seeded][-1:])


def _take(steps: Pass, inputs: dict[Any, Entry], operations: dict[int, Entry]) -> None:
    """Run the backward pass, and note what each step says."""
    while (op := steps.peek()) is not None:
        waiting = None if op.path is not None else steps.entries[-1]
        step = steps.step()
        assert step is not None  # peek has said that there is one
        if op.path is not None:
            inputs[op.path].cotangent = step.cotangents[0]
        else:
            _note(operations[id(waiting)], step)


def _note(entry: Entry, step: Step) -> None:
    entry.cotangent = step.op.cotangent
    pairs = zip(entry.given, step.cotangents, strict=False)
    entry.given = [(name, x) for (name, _), x in pairs if x is not None]


def _described(entry: Any, name: str, known: dict[int, str]) -> Entry:
    """What is known of a waiting operation before the backward pass."""
    rule = getattr(entry, "suspended", None)
    if not isinstance(entry, Receiver) or not isinstance(rule, Recorded):
        return Entry(name, type(entry).__name__.lower(), None)
    receivers = entry.operands()
    names = [known.get(id(x), "") if x is not None else "" for x in receivers]
    expression = _expression(rule, names)
    made = Entry(name, expression, rule.value, rule.line)
    made.given = [(operand, None) for operand in names]
    return made


def _expression(rule: Recorded, names: list[str]) -> str:
    """An operation as one would write it down."""
    count = operand_count(rule)
    names = [*names, *[""] * (count - len(names))]
    pairs = zip(names, rule.operands, strict=False)
    operands = [operand or brief(x) for operand, x in pairs]
    if len(operands) == 2 and rule.name in _INFIX:
        return f"{operands[0]} {_INFIX[rule.name]} {operands[1]}"
    if rule.name == "negative":
        return f"-{operands[0]}"
    return f"{rule.name}({clipped(', '.join(operands), 24)})"


def _parameters(f: Callable[..., Any], count: int) -> list[str]:
    """The names of a function's positional parameters."""
    try:
        found = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        found = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [x.name for x in found if x.kind in kinds][:count]
    return [*names, *(f"x{i}" for i in range(len(names), count))]


def _of_module(module: Any, args: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A module as a function of its arguments and its parameters."""

    def call(*given: Any, **named: Any) -> Any:
        *inputs, parameters = given
        return module.call_with(parameters, *inputs, **named).sum()

    return call, (*args, {n: p.detach() for n, p in module.named_parameters()})


def _path(names: list[str], path: tuple[Any, ...]) -> str:
    if not names[path[0]]:  # of all parameters of a module, each by its name
        return str(path[1])
    return names[path[0]] + "".join(f"[{key!r}]" for key in path[1:])


def _fresh_names(count: int, taken: set[str]) -> Iterator[str]:
    """Names for values: letters, as long as they suffice."""
    letters = [x for x in "abcdefghijklmnopqrstuvw" if x not in taken]
    if count <= len(letters):
        yield from letters
    number = 0
    while True:
        number += 1
        if f"v{number}" not in taken:
            yield f"v{number}"
