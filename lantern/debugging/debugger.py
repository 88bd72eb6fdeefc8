"""A debugger for backward passes: it pauses before each update.

``run`` is for a terminal, ``Session`` for a notebook or a program.

Example:
    >>> import lantern
    >>> session = Session(lambda x: lantern.sin(x * x), 2.0)
    >>> session
    before the backward step of sin, at ...
      primal    -0.7568024953079282
      cotangent 1.0
    >>> session.step()
    before the backward step of multiply, at ...
      primal    4.0
      cotangent -0.6536436208636119
    >>> session.proceed()
    over: the gradient is -2.6145744834544478
"""

import cmd
import html
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from lantern.core.tree import tree_map
from lantern.core.value import base
from lantern.debugging.backward_steps import Operation, Pass, Step
from lantern.debugging.source_line import Shown
from lantern.errors import ArgumentError
from lantern.transforms.arguments import check_like

__all__ = ["Session", "Terminal", "run"]

_SMALL = 12  # elements that are printed one by one


def shown(x: Any) -> str:
    """A value in one line: a small one whole, a large one by its type and range."""
    x = base(x)
    if getattr(x, "size", 1) <= _SMALL or not hasattr(x, "dtype"):
        return " ".join(repr(x).split())
    bounds = "" if x.dtype.kind == "c" else f", from {x.min():.6g} to {x.max():.6g}"
    return f"{x.dtype} of shape {tuple(x.shape)}{bounds}"


class Session:
    """A backward pass that waits before each step, to be looked at.

    Args:
        f: returns one real number.
        args: its positional arguments.
        argnums: which arguments to differentiate, as in ``grad``.
        kwargs: its other arguments.

    Attributes:
        value: f's value.
        done: the steps that were taken, oldest first.
        gradients: the gradients that are complete, by their paths.

    Example:
        >>> session = Session(lambda x: x * x, 3.0)
        >>> session.value, session.primal, session.cotangent
        (9.0, 9.0, 1.0)
        >>> session.proceed().gradients
        {(): 6.0}
    """

    def __init__(
        self, f: Callable[..., Any], *args: Any, argnums: Any = 0, **kwargs: Any
    ) -> None:
        self._pass = Pass("debugger", f, args, kwargs, argnums, Shown)
        self.value = self._pass.value
        self.done: list[Operation] = []
        self.gradients: dict[tuple[Any, ...], Any] = {}

    @property
    def operation(self) -> Operation | None:
        """What the next step is about; None when the pass is over."""
        return self._pass.peek()

    @property
    def primal(self) -> Any:
        """The result of that operation."""
        return None if self.operation is None else self.operation.value

    @property
    def cotangent(self) -> Any:
        """The cotangent of that result; it may be set."""
        return None if self.operation is None else self.operation.cotangent

    @cotangent.setter
    def cotangent(self, new: Any) -> None:
        """Go on with another cotangent."""
        if self.operation is None or self.operation.name == "shift":
            raise ArgumentError("debugger: nothing waits that has a cotangent.")
        check_like("debugger", self.operation.cotangent, new)
        self._pass.replace(new)

    def step(self, count: int = 1) -> "Session":
        """Take one or more steps."""
        for _ in range(count):
            self._take()
        return self

    def proceed(
        self, until: str | Callable[[Operation], bool] | None = None
    ) -> "Session":
        """Go on to the end, or until something comes next.

        Args:
            until: the name of an operation; "input", where a gradient is complete; or a
                function of the ``Operation`` that says where to stop.
        """
        stop = until if callable(until) else lambda op: op.name == until
        while self._take() is not None:
            if self.operation is not None and stop(self.operation):
                break
        return self

    def _take(self) -> Step | None:
        step = self._pass.step()
        if step is not None:
            self.done.append(step.op)
            if step.op.path is not None:
                self.gradients[step.op.path] = step.cotangents[0]
        return step

    @property
    def gradient(self) -> Any:
        """The whole gradient, as of ``grad``; None before the pass is over."""
        if len(self.gradients) < len(self._pass.inputs):
            return None
        leaves = iter([self.gradients[x.path] for x in self._pass.inputs])
        trees = tuple(tree_map(lambda _: next(leaves), x) for x in self._pass.chosen)
        return trees[0] if self._pass.keys is None else trees

    def where(self) -> str:
        """What has been done, and what still waits, around the next step."""
        lines = [f"    done     {op}" for op in self.done[-5:]]
        lines += [
            f"{' -> ' if i == 0 else '    '}waiting  {op}"
            for i, op in enumerate(self._pass.waiting(6))
        ]
        return "\n".join(lines)

    def close(self) -> None:
        """Give up the rest of the pass."""
        self._pass.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _rows(self) -> tuple[str, dict[str, str]]:
        if self._pass.busy:
            return "at work: a step is being taken", {}
        op = self.operation
        if op is None:
            return f"over: the gradient is {_shown_tree(self.gradient)}", {}
        if op.is_input:
            return f"complete: {op}", {"gradient": shown(op.cotangent)}
        rows = {"primal": shown(op.value), "cotangent": shown(op.cotangent)}
        return f"before the backward step of {op}", rows

    def __repr__(self) -> str:
        head, rows = self._rows()
        return "\n".join(
            [head, *(f"  {name:<9} {text}" for name, text in rows.items())]
        )

    def _repr_html_(self) -> str:
        """The same, for notebooks."""
        head, rows = self._rows()
        cells = "".join(
            f"<tr><th>{name}</th><td><code>{html.escape(text)}</code></td></tr>"
            for name, text in rows.items()
        )
        return f"<p>{html.escape(head)}</p><table>{cells}</table>"


def _shown_tree(tree: Any) -> str:
    return (
        tree
        if isinstance(tree, str)
        else str(tree_map(lambda x: _Text(shown(x)), tree))
    )


class _Text(str):
    """A text that is its own representation."""

    __slots__ = ()
    __repr__ = str.__str__


class Terminal(cmd.Cmd):
    """The commands of the debugger in a terminal; ``help`` lists them.

    Args:
        session: the pass.
        stdin, stdout: where commands come from and answers go; by default the
            terminal.

    Example:
        >>> import io
        >>> told = io.StringIO()
        >>> session = Session(lambda x: x * x, 3.0)
        >>> _ = Terminal(session, stdout=told).onecmd("continue")
        >>> session.gradients
        {(): 6.0}
    """

    prompt = "(lantern) "

    def __init__(
        self,
        session: Session,
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
    ) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.session = session
        self.intro = repr(session)

    def say(self, text: Any) -> None:
        """Print an answer."""
        print(text, file=self.stdout)

    def do_step(self, count: str) -> bool:
        """step [n]: take one step, or n of them."""
        if count and not count.isdecimal():
            self.say("step: expected a number of steps.")
            return False
        return self._after(self.session.step(int(count or 1)))

    def do_continue(self, name: str) -> bool:
        """continue [name]: go on to the end, or to the next operation of a name."""
        return self._after(self.session.proceed(name or None))

    def _after(self, session: Session) -> bool:
        self.say(session)
        return session.operation is None

    def do_where(self, _: str) -> None:
        """where: what has been done, and what still waits."""
        self.say(self.session.where())

    def do_list(self, _: str) -> None:
        """list: the program around the line of the next step's operation."""
        op = self.session.operation
        if op is None or op.line is None:
            self.say("list: an operation has a line, and none comes next.")
            return
        lines = linecache.getlines(op.line.file)
        first = max(op.line.number - 6, 0)
        for number, text in enumerate(lines[first : first + 11], first + 1):
            mark = "->" if number == op.line.number else "  "
            self.say(f"{number:4} {mark} {text.rstrip()}".rstrip())

    def do_print(self, expression: str) -> None:
        """print [expression]: of primal, cotangent, value, gradients and session."""
        if not expression:
            self.say(self.session)
            return
        with self._told():
            self.say(self._value(expression))

    def do_set(self, expression: str) -> None:
        """set EXPRESSION: go on with another cotangent, say set 2 * cotangent."""
        with self._told():
            self.session.cotangent = self._value(expression)
            self.say(self.session)

    def _value(self, expression: str) -> Any:
        """What an expression comes to, of what is known of the next step."""
        names = ("primal", "cotangent", "value", "gradients")
        known = {name: getattr(self.session, name) for name in names}
        return eval(expression, {"session": self.session, **known})

    @contextmanager
    def _told(self) -> Iterator[None]:
        """As in any debugger, a slip is told."""
        try:
            yield
        except Exception as error:
            self.say(f"{type(error).__name__}: {error}")

    def do_quit(self, _: str) -> bool:
        """quit: give up the rest of the pass."""
        self.session.close()
        return True

    def do_EOF(self, _: str) -> bool:
        """End of the input: go on to the end."""
        self.session.proceed()
        return True

    def emptyline(self) -> bool:
        """An empty line is a step."""
        return self.do_step("")

    def default(self, line: str) -> None:
        """Whatever is no command."""
        self.say(f"{line!r} is no command. Type help.")

    do_s, do_c, do_w, do_p, do_q = do_step, do_continue, do_where, do_print, do_quit
    do_l = do_list


def run(
    f: Callable[..., Any],
    *args: Any,
    argnums: Any = 0,
    stdin: IO[str] | None = None,
    stdout: IO[str] | None = None,
    **kwargs: Any,
) -> Any:
    """Debug the backward pass of f in a terminal.

    It pauses before each update. ``step`` takes it, ``continue`` goes on, ``where``
    says where one is, ``list`` shows the program there, ``print`` evaluates an
    expression, ``set`` changes the cotangent, ``quit`` gives up.

    Args:
        f: returns one real number.
        args: its positional arguments.
        argnums: which arguments to differentiate, as in ``grad``.
        stdin, stdout: where commands come from, and answers go.
        kwargs: f's other arguments.

    Returns:
        The gradient; None if the pass was given up.

    Example:
        >>> import io
        >>> import sys
        >>> run(
        ...     lambda x: x * x * 3.0,
        ...     2.0,
        ...     stdin=io.StringIO("c input"),
        ...     stdout=sys.stdout,
        ... )
        before the backward step of multiply, at ...
          primal    12.0
          cotangent 1.0
        (lantern) complete: input
          gradient  12.0
        (lantern) 12.0
    """
    session = Session(f, *args, argnums=argnums, **kwargs)
    Terminal(session, stdin, stdout).cmdloop()
    return session.gradient
