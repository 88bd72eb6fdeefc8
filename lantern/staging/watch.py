"""What runs while a program is staged: the only file that asks Python what it calls.

Code of the user's runs in its rewritten form, so that whatever it reads is guarded.
Where objects have hooks (``objects.py``), Python might run them as they are: to sort,
to find a key, to write a text. That is seen here, and the program is given up.
"""

import gc
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FrameType
from typing import Any

import lantern
from lantern.errors import StagingError

__all__ = ["is_generated", "is_lanterns", "is_trusted", "watched"]

_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_HOME = os.path.dirname(lantern.__file__) + os.sep
_ASKED = f"{os.sep}optree{os.sep}"  # by ``core/tree``, of any class


def is_lanterns(code: CodeType) -> bool:
    """Whether code stands in Lantern, and not in an example of it."""
    return code.co_filename.startswith(_HOME)


@cache
def _is_librarys(filename: str) -> bool:
    """Whether a file is Lantern's or Python's own."""
    inside = filename.startswith(_LIBRARY) and "site-packages" not in filename
    known = filename.startswith((_HOME, "<frozen ")) or _ASKED in filename
    return inside or known


def is_generated(code: CodeType) -> bool:
    """Whether ``dataclass`` or ``namedtuple`` has written code."""
    return code.co_filename == "<string>" and (
        code.co_qualname.startswith("__create_fn__") or code.co_names == ("_tuple_new",)
    )


def is_trusted(code: CodeType) -> bool:
    """Whether code reads nothing that may change but what it is given."""
    if is_generated(code):
        return code.co_name in ("__init__", "__setattr__", "<lambda>")
    return _is_librarys(code.co_filename)


@contextmanager
def watched(is_ours: Callable[[CodeType], bool]) -> Iterator[None]:
    """Give up what is staged inside if other code runs than is known.

    Raises:
        StagingError: at its end, if it did; or at once, if a profiler is running.
    """
    if sys.getprofile() is not None:
        raise StagingError(
            "a profiler is running, so that it is not seen which functions Python "
            "calls for objects that have operators of their own."
        )
    found: list[CodeType] = []

    def see(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and not is_trusted(code) and not is_ours(code):
            found.append(code)
            if code.co_name.startswith("__") and code.co_name != "__del__":
                raise StagingError("a hook")  # it is not run twice, whatever it does

    is_collecting = gc.isenabled()
    gc.disable()  # it may run anybody's code, as that of a generator that is closed
    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(None)
        if is_collecting:
            gc.enable()
        if found:
            raise StagingError(
                f"{found[0].co_qualname}: Python calls it by itself, so that what it "
                f"reads is not known."
            )
