"""Contributions in place of an array, of which the operand chooses the form.

A read of one row need not become an array of zeros with one row in it: the operand's
accumulator scatters it into the buffer that it already has.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from lantern.core.namespace import namespace

__all__ = ["Call", "Contribution", "Masked", "WithMask", "Zeroed"]

Call = tuple[Any, ...]  # a function and its arguments


class Contribution:
    """A contribution in a form of its own.

    Attributes:
        scatters: whether it is added to parts of a buffer.
    """

    __slots__ = ("z_bar",)
    scatters: ClassVar[bool] = True

    z_bar: Any

    def dense(self, shape: tuple[int, ...]) -> Any:
        """The contribution as an array that broadcasts to the operand's shape."""
        raise NotImplementedError

    def has_one_place(self) -> bool:
        """Whether it belongs at the same place for all examples of a ``vmap``."""
        raise NotImplementedError

    def adds_to_buffer(self) -> bool:
        """Whether it costs little to add it to a ``Buffer``, which may be tracked."""
        raise NotImplementedError

    def additions(self, buffer: Any, factor: float = 1.0) -> list[Call]:
        """Calls that add the contribution, times a number, to a buffer, in order.

        The buffer is read when they are made. Of plain arrays each is of a function
        that is written in C, which no interrupt cuts in two, and holds its arguments.
        """
        raise NotImplementedError

    def add_to(self, buffer: Any, factor: float = 1.0) -> None:
        """Add the contribution, times a number, to an array that the operand owns."""
        for function, *arguments in self.additions(buffer, factor):
            function(*arguments)

    def write_to(self, target: Any, factor: Any) -> None:
        """Write the contribution, times a number, into an array of the same shape."""
        z = self.dense(target.shape)
        namespace(target).multiply(z, factor, out=target)

    def each(self, function: Callable[[Any], Any]) -> Any:
        """The contribution, with a function applied to each of its factors."""
        self.z_bar = function(self.z_bar)
        return self

    def ready(self, receiver: Any) -> Any:
        """What to hand to a receiver later: with all computed that would not wait."""
        return self

    def stays(self, size: int, room: float) -> bool:
        """Whether it may be a gradient in its own form, of so many bytes.

        Args:
            size: that it takes.
            room: that it may take, all in all.
        """
        return 4 * size <= room

    def wait_at(self, receiver: Any) -> bool:
        """Be kept by the receiver, to be added later; False to be made dense now."""
        return False


class Masked(Contribution):
    """A cotangent where a condition holds; exactly nothing elsewhere."""

    __slots__ = ("condition",)

    def __init__(self, condition: Any, z_bar: Any) -> None:
        self.condition, self.z_bar = condition, z_bar

    def dense(self, shape: tuple[int, ...]) -> Any:
        """The cotangent with zeros where the condition does not hold."""
        z_bar = self.z_bar
        if isinstance(z_bar, Contribution):  # in a form of its own
            with namespace(self.condition).ignore_fp_warnings():
                z_bar = z_bar.dense(shape)
        return namespace(self.condition, z_bar).where(self.condition, z_bar, 0)


class Zeroed(Masked):
    """A masked cotangent that is nothing already where the condition does not hold."""

    __slots__ = ()

    def dense(self, shape: tuple[int, ...]) -> Any:
        """The cotangent as it is."""
        return self.z_bar


class WithMask(Contribution):
    """What a linear rule made of a cotangent and its mask together.

    They travel as real and imaginary part, so that the mask is moved as the cotangent
    is; the contribution may be in any form.
    """

    __slots__ = ()

    def __init__(self, z_bar: Any) -> None:
        self.z_bar = z_bar

    def dense(self, shape: tuple[int, ...]) -> Any:
        """Both, as a complex array that broadcasts to the operand's shape."""
        inner = self.z_bar() if callable(self.z_bar) else self.z_bar
        return inner.dense(shape) if isinstance(inner, Contribution) else inner
