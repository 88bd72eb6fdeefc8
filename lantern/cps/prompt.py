"""Prompts name delimiters. One context variable, the only ambient thing, finds them."""

from contextvars import ContextVar
from typing import TYPE_CHECKING, ClassVar

from lantern.errors import ArgumentError

if TYPE_CHECKING:
    from lantern.cps.delimiter import Delimiter

__all__ = ["Prompt", "innermost"]

_DRIVERS = ("in place", "switching")


class Prompt:
    """A name for delimiters, by which nested ones are told apart.

    It holds no state of any run: one prompt serves many threads and many nestings.

    Args:
        name: for messages.
        driver: where the first step of a generator handler runs: "in place", as an
            ordinary call; or "switching", in another greenlet while the body is
            suspended in its own. Results are the same.

    Example:
        >>> from lantern.cps import Prompt, reset, shift
        >>> outer = Prompt("outer")
        >>> reset(lambda: 1 + reset(lambda: 2 + shift(lambda k: 10 * k(3))))
        51
        >>> reset(
        ...     lambda: 1 + reset(lambda: 2 + shift(lambda k: 10 * k(3), prompt=outer)),
        ...     prompt=outer,
        ... )
        60
    """

    __slots__ = ("driver", "name")
    absent: ClassVar[str | None] = None  # what ``shift`` says where no delimiter is

    def __init__(self, name: str | None = None, *, driver: str = "in place") -> None:
        if driver not in _DRIVERS:
            raise ArgumentError(
                f"Prompt: driver is {driver!r}. Take one of {_DRIVERS}."
            )
        self.name = name
        self.driver = driver

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{self.name!r}, "
        return f"<{type(self).__name__} {name}{self.driver}>"


innermost: ContextVar["Delimiter | None"]
innermost = ContextVar("lantern.innermost", default=None)
