"""What a program calls, watched by the interpreter: nothing is replaced for it.

Of the functions of ``lantern.torch``, those that the table knows are written down when
they return, with their arguments; what they call inside is passed over. What the table
does not know is looked into, until there is something that it does.
"""

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

import lantern.torch
from lantern.core.value import base
from lantern.errors import EagerError
from lantern.onnx.export.builder import Builder
from lantern.onnx.export.table import IN_PLACE, WRITES, called, found
from lantern.torch.tensor.tensor import Tensor

__all__ = ["traced"]

_ROOT = os.path.dirname(lantern.torch.__file__)
# Where the functions of tensors stand.
_FUNCTIONS = tuple(
    os.path.join(_ROOT, *path.split("/"), "")
    for path in "functions methods linalg special signal tensor nn/functional".split()
)


class Watch:
    """The interpreter calls it for each function that begins or ends."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        # The call that is being written down. Its end is known by its frame: calls and
        # returns inside do not match, once a greenlet is collected there.
        self.inside: FrameType | None = None
        self.current: Any = None
        self.open: list[tuple[FrameType, Any]] = []
        self.last: Any = None
        self.outer: tuple[FrameType, str] | None = None
        self.unknown: list[str] = []  # functions whose results nobody wrote down
        self.error: Exception | None = None

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """A function begins, or ends with a value."""
        if self.inside is not None:
            if event == "return" and frame is self.inside:
                self.inside = None
                self.write(value)
        elif event == "call":
            code: CodeType = frame.f_code
            translation = found(code, frame)
            if translation is not None:
                self.inside = frame
                self.current = translation, dict(frame.f_locals)
            elif code in IN_PLACE:
                self.open.append((frame, next(iter(frame.f_locals.values()))))
            elif (
                self.outer is None
                and code.co_filename.startswith(_FUNCTIONS)
                and any(map(self.comes, frame.f_locals.values()))
            ):
                self.outer = frame, called(frame)
        elif event == "return":
            if self.open and self.open[-1][0] is frame:
                _, x = self.open.pop()
                if value is x and self.last is not None:
                    self.builder.bind(x, self.last)
            if self.outer is not None and self.outer[0] is frame:
                self.miss(self.outer[1], value)
                self.outer = None

    def comes(self, x: Any) -> bool:
        """Whether a tensor comes from what goes in, or some in a sequence do."""
        if isinstance(x, tuple | list):
            return any(map(self.comes, x))
        return isinstance(x, Tensor) and self.builder.depends(x)

    def miss(self, name: str, value: Any) -> None:
        """Note a function whose result nobody has written down."""
        parts = value if isinstance(value, tuple | list) else [value]
        tensors = [x for x in parts if isinstance(x, Tensor)]
        if any(id(base(x)) not in self.builder.names for x in tensors):
            self.unknown.append(name)

    def write(self, value: Any) -> None:
        """Write down what a function has returned, if that is a tensor."""
        translation, arguments = self.current
        if self.error is not None or value is NotImplemented:
            return
        if value is None and translation not in WRITES:
            return
        try:
            made = translation(self.builder, arguments, value)
        except Exception as error:  # raised when the program is through
            self.error = error
            return
        if made is None:
            return
        if isinstance(made, str):
            made, value = [made], [value]
        for x, name in zip(value, made, strict=True):
            if isinstance(x, Tensor | np.ndarray):
                self.builder.bind(x, name)
                self.last = name


def traced(builder: Builder, program: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Run a program, and write down what it calls.

    Returns:
        What it gives, and the functions of tensors that the table does not know.

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
    return result, watch.unknown
