"""What a program calls, watched by the interpreter: nothing is replaced for it.

Of the functions of ``lantern.torch``, those that the table knows are written down when
they return, with their arguments; what they call inside is passed over. What the table
does not know is looked into, until there is something that it does.
"""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from lantern.errors import EagerError
from lantern.onnx.export.builder import Builder
from lantern.onnx.export.table import IN_PLACE, found
from lantern.torch.tensor.tensor import Tensor

__all__ = ["traced"]


class Watch:
    """The interpreter calls it for each function that begins or ends."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.depth = 0  # of the calls inside of one that is being written down
        self.current: Any = None
        self.open: list[tuple[FrameType, Any]] = []
        self.last: Any = None
        self.error: Exception | None = None

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """A function begins, or ends with a value."""
        if event == "call":
            if self.depth:
                self.depth += 1
                return
            code: CodeType = frame.f_code
            translation = found(code, frame)
            if translation is not None:
                self.depth = 1
                self.current = translation, dict(frame.f_locals)
            elif code in IN_PLACE:
                self.open.append((frame, next(iter(frame.f_locals.values()))))
        elif event == "return":
            if self.depth:
                self.depth -= 1
                if not self.depth:
                    self.write(value)
            elif self.open and self.open[-1][0] is frame:
                _, x = self.open.pop()
                if value is x and self.last is not None:
                    self.builder.bind(x, self.last)

    def write(self, value: Any) -> None:
        """Write down what a function has returned, if that is a tensor."""
        translation, arguments = self.current
        if value is None or value is NotImplemented or self.error is not None:
            return
        try:
            made = translation(self.builder, arguments, value)
        except Exception as error:  # raised when the program is through
            self.error = error
            return
        if isinstance(made, str):
            made, value = [made], [value]
        for x, name in zip(value, made, strict=True):
            if isinstance(x, Tensor):
                self.builder.bind(x, name)
                self.last = name


def traced(builder: Builder, program: Callable[[], Any]) -> Any:
    """Run a program, and write down what it calls.

    Raises:
        EagerError: while something else watches the program, as a profiler.
    """
    if sys.getprofile() is not None:
        raise EagerError(
            "onnx.export: a profiler watches the program. Export without it."
        )
    watch = Watch(builder)
    sys.setprofile(watch)
    try:
        result = program()
    finally:
        sys.setprofile(None)
    if watch.error is not None:
        raise watch.error
    return result
