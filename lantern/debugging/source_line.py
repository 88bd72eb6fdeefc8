"""Rules that know the user's line from which they were started."""

import linecache
import sys
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from lantern.core.value import Replayable

__all__ = ["Line", "Shown", "Watched", "user_line"]


@cache
def _inside() -> tuple[str, ...]:
    """The folders of this library and of NumPy, through which a user's call comes."""
    modules = (sys.modules["lantern"], sys.modules["numpy"])
    return tuple(str(Path(m.__file__).parent) for m in modules if m.__file__)


class Line(NamedTuple):
    """A line of the user's program."""

    file: str
    number: int
    function: str

    @property
    def text(self) -> str:
        """What stands there, as far as it can be read."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        path = Path(self.file)
        cell = path.parent.name.startswith("ipykernel_")  # a notebook's cell
        place = f"{'cell' if cell else path.name}:{self.number}"
        return f"{place}: {self.text}" if self.text else place


def user_line() -> Line:
    """The innermost line that belongs neither to this library nor to NumPy."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_inside()):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


class Watched(Replayable):
    """A started rule that knows its line, and can tell what it has contributed.

    It does not keep its operands or its value, so it costs no more memory than a line.

    Attributes:
        name: of the operation.
        line: where the user called it.
        contributions: a list that gets what the rule yields to its operands, or None.
    """

    __slots__ = ("contributions", "line", "name")
    replays: ClassVar[bool] = False

    contributions: list[Any] | None

    def __init__(self, rule: Any, operands: Any, statics: Any) -> None:
        super().__init__(rule, operands, statics)
        run = statics.get("run")  # of a rule that all rules of users share
        self.name = str(getattr(run, "name", rule.__name__.lstrip("_")))

    def __next__(self) -> Any:
        """The rule's forward step."""
        value = super().__next__()
        self.line, self.contributions = user_line(), None
        self.forget()
        return value

    def forget(self) -> None:
        """Let go of what will not be needed."""
        self.operands, self.statics, self.value = (), {}, None

    @property
    def gi_code(self) -> Any:
        """The rule's code, as of a generator: the table of operations asks for it."""
        return self.rule.__code__

    def send(self, z_bar: Any) -> Any:
        """The rule's next contribution."""
        x_bar = self.started.send(z_bar)
        if self.contributions is None:
            return x_bar
        self.contributions.append(x_bar)
        if not callable(x_bar):
            return x_bar
        place = len(self.contributions) - 1
        return lambda: self._called(place, x_bar)

    def _called(self, place: int, thunk: Any) -> Any:
        x_bar = thunk()
        if self.contributions is not None:
            self.contributions[place] = x_bar
        return x_bar


class Shown(Watched):
    """A started rule that also keeps its value, to be looked at."""

    __slots__ = ()

    def forget(self) -> None:
        """Let go of what will not be needed: all but the value."""
        self.operands, self.statics = (), {}
