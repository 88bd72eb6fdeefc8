"""Optimisations of programs, which can be switched off one by one to see what they do.

All but "hoist" and "dce" happen while a program is staged; LLVM has its own behind
them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lantern.blocks import between_turns
from lantern.errors import OptionError
from lantern.staging.ir import current

__all__ = ["PASSES", "in_order", "without"]

PASSES = {
    "inline": "a call of a function becomes its body, if it does not call itself",
    "fold": "what is computed from constants is a constant; x * 1.0 is x",
    "cse": "what computes the same is computed once",
    "hoist": "what is the same in each turn of a loop is computed once, before it",
    "recompute": "constants are made anew on the way back, and not saved",
    "dce": "what nobody needs, and what raises nothing, is left out",
}
"""Their names, and what each does."""


@between_turns
@contextmanager
def without(*names: str) -> Iterator[None]:
    """What is staged inside of the block is staged without some optimisations.

    Args:
        names: of ``PASSES``: "inline", "fold", "cse", "hoist", "recompute", "dce".

    Raises:
        OptionError: for another name.

    Example:
        >>> from lantern.staging import show_ir, without
        >>> f = lambda x: (x * x) * (x * x)
        >>> show_ir(f, 2.0)
        def <lambda>(%0: float) -> float
          %1 = multiply %0 %0
          %2 = multiply %1 %1
          return %2
        >>> with without("cse"):
        ...     show_ir(f, 2.0)
        def <lambda>(%0: float) -> float
          %1 = multiply %0 %0
          %2 = multiply %0 %0
          %3 = multiply %1 %2
          return %3
    """
    unknown = [x for x in names if x not in PASSES]
    if unknown:
        raise OptionError(
            f"without: there is no optimisation {unknown[0]!r}. Choose among "
            f"{', '.join(PASSES)}."
        )
    before = current.off
    current.off = before | frozenset(names)
    try:
        yield
    finally:
        current.off = before


@between_turns
@contextmanager
def in_order() -> Iterator[None]:
    """What is staged inside of the block adds cotangents up as the plain function does.

    What it computes twice is computed twice, and a derivative that would add up in
    another order is refused.
    """
    before = current.is_ordered
    current.is_ordered = True
    try:
        with without("cse", "hoist"):  # what is computed once gets one cotangent, a sum
            yield
    finally:
        current.is_ordered = before
