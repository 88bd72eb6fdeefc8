"""Rules that are started where they may be needed more than once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

__all__ = ["Replayable"]


class Replayable:
    """A started rule that keeps its operands, so that it can be started again.

    Args:
        rule: the generator function.
        operands: its positional arguments.
        statics: its keyword arguments.

    Attributes:
        replays: whether a derivative that starts its rules so may need them again.
    """

    __slots__ = ("operands", "rule", "started", "statics", "value")
    replays: ClassVar[bool] = True

    started: Any
    value: Any

    def __init__(
        self,
        rule: Callable[..., Any],
        operands: Sequence[Any],
        statics: Mapping[str, Any],
    ) -> None:
        self.rule, self.operands, self.statics = rule, operands, statics

    def __next__(self) -> Any:
        """The rule's forward step."""
        self.started = self.rule(*self.operands, **self.statics)
        self.value = next(self.started)
        return self.value

    def send(self, z_bar: Any) -> Any:
        """The rule's next contribution."""
        return self.started.send(z_bar)

    def __iter__(self) -> Iterator[Any]:
        """What is left of the rule."""
        return iter(self.started)

    def throw(self, error: BaseException) -> Any:
        """The rule's next contribution, if it catches an exception."""
        return self.started.throw(error)

    def close(self) -> None:
        """Drop the started rule."""
        self.started.close()

    def again(self, replace: Callable[[int, Any], Any] | None = None) -> Any:
        """The rule afresh, not yet started.

        Args:
            replace: gets the position of each argument and the argument; what it
                returns takes its place.
        """
        operands = self.operands
        if replace is not None:
            operands = [replace(i, x) for i, x in enumerate(operands)]
        return self.rule(*operands, **self.statics)
