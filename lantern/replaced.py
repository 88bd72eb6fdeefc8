"""Exceptions in whose place Python or NumPy puts others, to be raised as they were.

A generator lets no ``StopIteration`` through (PEP 479), also not that of a user's
function which a rule of ours calls; and what an array says of a value that it cannot
hold, as in ``b[i] = x``, takes the place of what the value says.
"""

from typing import Any

from lantern.errors import BatchedValueError, DetachError

__all__ = ["is_replaced", "original", "restore"]


def is_replaced(error: BaseException) -> bool:
    """Whether an exception stands in the place of one that a user should see."""
    cause = error.__cause__
    if type(error) is ValueError:
        return isinstance(cause, DetachError | BatchedValueError)
    if type(error) is not RuntimeError or not isinstance(cause, StopIteration):
        return False
    # A generator of the user's own is subject to Python's law.
    traceback = cause.__traceback__
    frame: Any = traceback and traceback.tb_frame
    return frame is not None and str(frame.f_globals.get("__name__")).startswith(
        "lantern."
    )


def original(error: BaseException) -> BaseException:
    """The exception itself, or the one that it has replaced."""
    if not is_replaced(error):
        return error
    found: Any = error.__cause__
    error.__cause__ = None  # they would refer to each other
    if isinstance(found, DetachError | BatchedValueError):
        found.__traceback__ = error.__traceback__  # which leads to the user's line
    result: BaseException = found
    return result


def restore(error: BaseException) -> None:
    """Raise what an exception has replaced, if it has replaced one."""
    if is_replaced(error):
        raise original(error) from None
