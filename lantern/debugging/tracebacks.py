"""The traceback of an uncaught error, as it is shown: without the library's own frames.

The exception keeps them all: debuggers, loggers and pytest see what happened in full.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from lantern.blocks import between_turns

__all__ = ["full_tracebacks", "install"]

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
VARIABLE = "LANTERN_TRACEBACKS"
_full = os.environ.get(VARIABLE, "") == "full"
NOTE = f"(Lantern's own frames are left out: {VARIABLE}=full shows them.)"


def full_tracebacks(on: bool = True) -> None:
    """Show the library's own frames in the tracebacks of uncaught errors, or none.

    They are left out by default. The environment variable ``LANTERN_TRACEBACKS=full``
    shows them from the start. Only what is printed is shortened, by Python, in its
    threads, and in IPython and notebooks: the exception's traceback is whole.

    Args:
        on: whether to show them.

    Example:
        >>> import lantern
        >>> lantern.full_tracebacks()
        >>> lantern.full_tracebacks(False)
    """
    global _full
    _full = bool(on)


def without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the library's frames; as it is, if there are no others."""
    kept, there = [], traceback
    while there is not None:
        if not there.tb_frame.f_code.co_filename.startswith(_HOME):
            kept.append(there)
        there = there.tb_next
    if not kept:
        return traceback
    shown: TracebackType | None = None
    for one in reversed(kept):
        shown = TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return shown


def _length(traceback: TracebackType | None) -> int:
    count = 0
    while traceback is not None:
        traceback, count = traceback.tb_next, count + 1
    return count


@contextmanager
@between_turns
def shortened(error: BaseException | None) -> Iterator[bool]:
    """Let an exception, its causes and what it came from have short tracebacks.

    Yields:
        Whether anything is left out.
    """
    whole: list[tuple[BaseException, TracebackType | None]] = []
    left_out, waiting = False, [] if _full else [error]
    while waiting:
        one = waiting.pop()
        if one is None or any(one is known for known, _ in whole):
            continue
        whole.append((one, one.__traceback__))
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
        short = without_ours(one.__traceback__)
        left_out |= _length(short) < _length(one.__traceback__)
        one.__traceback__ = short
    try:
        yield left_out
    finally:
        for one, traceback in whole:
            one.__traceback__ = traceback


def install() -> None:
    """Shorten what Python and IPython print of uncaught errors from now on."""
    if sys.excepthook.__module__ == __name__:
        return
    before, in_threads = sys.excepthook, threading.excepthook

    def shown(kind: Any, error: Any, traceback: Any) -> None:
        with shortened(error) as left_out:
            before(kind, error, getattr(error, "__traceback__", traceback))
        if left_out and sys.stderr is not None:
            print(NOTE, file=sys.stderr)

    def shown_in_thread(args: Any) -> None:
        with shortened(args.exc_value) as left_out:
            error = args.exc_value
            short = getattr(error, "__traceback__", args.exc_traceback)
            in_threads(type(args)((args.exc_type, error, short, args.thread)))
        if left_out and sys.stderr is not None:
            print(NOTE, file=sys.stderr)

    sys.excepthook, threading.excepthook = shown, shown_in_thread
    if "IPython" in sys.modules:
        _install_in_ipython(sys.modules["IPython"].get_ipython())


def _install_in_ipython(shell: Any) -> None:
    """Shorten tracebacks in IPython and notebooks, where nobody else shows them."""
    if shell is None or shell.custom_exceptions:
        return

    def shown(shell: Any, kind: Any, error: Any, _: Any, tb_offset: Any) -> None:
        with shortened(error) as left_out:
            what = (kind, error, error.__traceback__)
            shell.showtraceback(what, tb_offset=tb_offset)
        if left_out:
            print(NOTE, file=sys.stderr)

    shell.set_custom_exc((Exception,), shown)
