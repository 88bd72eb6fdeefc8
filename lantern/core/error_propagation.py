"""An exception on its way along the chain rule, in the place of a cotangent.

When a backward step fails, its operands will never know their cotangents. Each of them
receives the exception instead: its rule, when its turn comes, sees it raised at the
``yield`` where it waits. A rule that catches it goes on with a cotangent of its own
choice; one that does not hands it on to its own operands. An input of the derivative
has nobody to hand it to: there it is raised, to whoever asked for the derivative.
"""

import linecache
import sys
from collections.abc import Iterable, Iterator
from os.path import basename, dirname
from typing import Any

__all__ = ["Failed", "fail", "note", "plainly"]

_OURS = dirname(dirname(__file__))


def fail(operands: Iterable[Any], error: Exception) -> bool:
    """Let the operands of a rule whose backward step has failed know of it.

    Returns:
        Whether each of them has a rule that may catch it. If not, the caller raises it;
        were it raised here, its traceback would lead to this frame, and that to it.
    """
    told = [x.fail(error) for x in operands if x is not None]  # every one of them
    return all(told)


def note(error: Exception, rule: Any, operands: Iterable[Any]) -> None:
    """Note on what Python's arithmetic has raised: operation, values, user's line.

    The error stays the one that the plain program raises.
    """
    python = type(error) in (ZeroDivisionError, OverflowError, ValueError)
    if python and rule.__module__.startswith("lantern.") and not _is_noted(error):
        _add_note(error, rule.__name__.lstrip("_"), operands)


def plainly(function: Any, *operands: Any) -> Any:
    """What a function of Python's, as ``int``, makes of plain values.

    What it raises is noted as what arithmetic raises.
    """
    try:
        return function(*operands)
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        _add_note(error, function.__name__, operands)
        raise


def _add_note(error: Exception, name: str, operands: Iterable[Any]) -> None:
    frame: Any = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    place = f"{basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    error.add_note(
        f"{name}({', '.join(map(repr, operands))}): it has no value here, at "
        f"{place}{line and ': '}{line}. Keep the operands inside its domain, or use "
        f"NumPy's function, which goes on with nan or inf."
    )


def _is_noted(error: Exception) -> bool:
    return bool(getattr(error, "__notes__", None))


class Failed:
    """A suspended rule, started or ``Replayable``, to be resumed with an exception.

    Args:
        rule: the suspended rule.
        error: what its ``yield`` will raise, once.
    """

    __slots__ = ("error", "rule")

    def __init__(self, rule: Any, error: Exception | None) -> None:
        self.rule, self.error = rule, error

    def send(self, z_bar: Any) -> Any:
        """The rule's first contribution, if it catches the exception; then the next."""
        if self.error is None:
            return self.rule.send(z_bar)
        error, self.error = self.error, None
        traceback = error.__traceback__
        try:
            return self.rule.throw(error)
        except BaseException as raised:
            if raised is error:  # it has only passed through
                error.__traceback__ = traceback
            raise
        finally:
            del error, traceback  # they would lead to this frame, and it to them

    def again(self) -> "Failed":
        """The rule afresh, if it is ``Replayable``; this one will not fail again."""
        error, self.error = self.error, None
        return Failed(self.rule.again(), error)

    def __next__(self) -> Any:
        return next(self.rule)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rule)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rule, name)  # its code, by which its kind is known

    def close(self) -> None:
        """Drop the rule and the exception."""
        self.error = None
        self.rule.close()
