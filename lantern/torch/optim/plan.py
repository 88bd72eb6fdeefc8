"""The plan of a step: a list of calls, which are all made or none.

Calls that work element by element go over large arrays in blocks, all of them over one
block before the next.

Signal handlers, as that of Ctrl-C, run between instructions of Python code. So whatever
a step writes is written by functions that are written in C, called one after another by
one of their kind.
"""

from collections import deque
from functools import partial
from itertools import starmap
from operator import call
from typing import Any

import numpy as np

from lantern.tensor.backend.numpy_namespace import REAL

__all__ = ["BLOCK", "Plan", "carry_out"]

# Elements: so many of a parameter, and of what is kept for it, stay in a core's cache.
BLOCK = 1 << 15


class Plan(list[tuple[Any, ...]]):
    """A function, written in C, and its arguments, for each call."""

    joint: dict[Any, list[Any]] | None = None
    known: dict[Any, Any] | None = None

    def numbers(self, x: Any, *values: float) -> Any:
        """Numbers to compute with: NumPy takes arrays without axes in half the time.

        Args:
            x: the array that they are for, whose type they get.
            values: the numbers; the same ones are made once.
        """
        if type(x) is not np.ndarray or x.dtype not in REAL:
            return values
        known = self.known = self.known or {}
        if (found := known.get((x.dtype, values))) is None:
            found = known[x.dtype, values] = [np.asarray(v, x.dtype) for v in values]
        return found

    def together(self, function: Any, arrays: tuple[Any, ...], numbers: Any) -> None:
        """Let a function work on arrays, with all others that have the same numbers."""
        joint = self.joint = self.joint or {}
        if (function, numbers) not in joint:
            joint[function, numbers] = []
            self.append((function, joint[function, numbers], numbers))
        joint[function, numbers].append(arrays)

    def cut(self, start: int, x: Any, scratch: Any) -> None:
        """Let the calls from a place on go over an array and others like it in blocks.

        So it goes through memory once, where each call would take it through. They stay
        as they are if one of them does anything else.

        Args:
            start: the place of the first call.
            x: the array.
            scratch: arrays like it, of which a block is all that is needed.
        """
        calls = self[start:]
        whole = [c for c in calls if not _is_of_numbers(c)]
        if all(_is_elementwise(c, x) for c in whole):
            self[start:] = [c for c in calls if _is_of_numbers(c)]
            self += _in_blocks(whole, x.size, {id(array) for array in scratch})


def _is_of_numbers(call: tuple[Any, ...]) -> bool:
    """Whether a call computes with nothing but arrays without axes."""
    function, *arguments = call
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    return isinstance(function, np.ufunc) and not any(a.ndim for a in arrays)


def _is_elementwise(call: tuple[Any, ...], x: Any) -> bool:
    """Whether a call computes each element from those at its place, all lying as x."""
    function: Any
    function, *arguments = call
    if type(function) is partial and function.keywords.keys() == {"out"}:
        arguments.append(function.keywords["out"])
        function = function.func
    return (
        isinstance(function, np.ufunc)
        and function.signature is None
        and all(
            a.shape == x.shape and a.strides == x.strides and a.flags.forc
            for a in arguments
            if isinstance(a, np.ndarray) and a.ndim
        )
    )


def _in_blocks(calls: list[Any], size: int, scratch: set[int]) -> Any:
    """The calls for each block of arrays of one size, which lie alike."""
    flat: dict[int, Any] = {}

    def part(a: Any, i: int) -> Any:
        if not isinstance(a, np.ndarray) or not a.ndim:
            return a
        if id(a) not in flat:
            flat[id(a)] = a.ravel("K")
        if id(a) in scratch:
            return flat[id(a)][: min(BLOCK, size - i)]
        return flat[id(a)][i : i + BLOCK]

    def cut(function: Any, i: int) -> Any:
        if type(function) is partial:
            return partial(function.func, out=part(function.keywords["out"], i))
        return function

    for i in range(0, size, BLOCK):
        for function, *arguments in calls:
            yield cut(function, i), *(part(a, i) for a in arguments)


_make: Any = deque[None](maxlen=0).extend  # goes through an iterator, and keeps nothing


def carry_out(plan: Plan) -> None:
    """Make all calls of a plan; an interrupt comes before or after all of them."""
    _make(starmap(call, plan))
