"""What ``help`` shows of what tables make, and the paths where it is found again."""

import re
import sys
from collections.abc import Mapping
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import Any, TypeVar

__all__ = ["another", "documented", "parameters", "place", "takes"]

T = TypeVar("T")
_EXAMPLE = "\n\nExample:\n    >>> import lantern.torch as torch\n    "
# What the compiler leaves in front of the lines of a function's docstring.
_MARGIN = "\n" if sys.version_info >= (3, 13) else "\n    "


def documented(thing: T, text: str) -> T:
    """What a row makes, with an example, and words in the place of its own.

    Args:
        thing: a function, a class or a property that no ``def`` of its own describes.
        text: what it is, unless that is known, and an example that imports nothing. Its
            last line is as far from the margin as the others.
    """
    words, _, example = text.partition(">>> ")
    words = words.strip() or (thing.__doc__ or "").replace(_MARGIN, "\n").rstrip()
    margin = text[text.rindex("\n") :]
    example = example.rstrip().replace(margin, "\n    ")
    thing.__doc__ = f"{words}{_EXAMPLE}>>> {example}"
    return thing


def in_place_example(name: str, function: Any) -> str:
    """The example of ``x.abs_()``, which is that of ``torch.abs(x)``.

    Args:
        name: of the method.
        function: whose example calls it in its last line but what that prints.
    """
    words = function.__doc__ or ""
    words = words if _EXAMPLE in words else words.replace(_MARGIN, "\n")
    before, _, call = words.rstrip().partition(_EXAMPLE)[2].rpartition(">>> torch.")
    call = call.partition("(x")[2].removeprefix(", ")
    return f"{_EXAMPLE}{before}>>> x.{name}({call}" if call else ""


def takes(thing: T, shown: str) -> T:
    """What a row makes, with the parameters that ``help`` and ``inspect`` show.

    Args:
        thing: a function whose own ``*args`` say less.
        shown: its parameters as they would be written, without annotations.
    """
    thing.__text_signature__ = f"({shown})"  # type: ignore[attr-defined]
    return thing


def parameters(function: Any, first: str = "", out: bool | None = None) -> str:
    """The parameters of a function as they would be written, without annotations.

    Args:
        function: one with ``def``, one around it, or one that ``takes`` has named.
        first: another name for the first one.
        out: whether ``out`` is among them; by default, as it is.
    """
    while not hasattr(function, "__text_signature__") and hasattr(
        function, "__wrapped__"
    ):
        function = function.__wrapped__
    shown = getattr(function, "__text_signature__", "")[1:-1] or _written(function)
    if first:
        shown = re.sub(r"^\w+", first, shown)
    if out is False:
        shown = shown.replace(", *, out=None", "").replace(", out=None", "")
    if out and "out=" not in shown:
        shown += ", out=None" if "*" in shown else ", *, out=None"
    return shown


def _written(function: Any) -> str:
    """The parameters of a ``def``."""
    code, defaults = function.__code__, function.__defaults__ or ()
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = list(code.co_varnames)
    rows = [*names[: count - len(defaults)]]
    rows += map("{}={!r}".format, names[count - len(defaults) : count], defaults)
    if code.co_posonlyargcount:
        rows.insert(code.co_posonlyargcount, "/")
    if code.co_flags & CO_VARARGS:
        rows.append(f"*{names[count + only]}")
    elif only:
        rows.append("*")
    given = function.__kwdefaults__ or {}
    rows += [
        f"{n}={given[n]!r}" if n in given else n for n in names[count : count + only]
    ]
    if code.co_flags & CO_VARKEYWORDS:
        rows.append(f"**{names[count + only + bool(code.co_flags & CO_VARARGS)]}")
    return ", ".join(rows)


def another(function: Any, name: str) -> Any:
    """A function that does the same under another name; what is none as it is.

    Args:
        function: the function.
        name: of the other.
    """
    if type(function) is not FunctionType:
        return function
    code, names = function.__code__, function.__globals__
    made = FunctionType(code, names, name, function.__defaults__, function.__closure__)
    made.__kwdefaults__, made.__module__ = function.__kwdefaults__, function.__module__
    made.__doc__, made.__qualname__ = function.__doc__, name
    made.__annotations__ = function.__annotations__
    made.__dict__.update(function.__dict__)
    return made


def place(module: str, names: Mapping[str, Any], within: str = "") -> None:
    """Let functions be found under the path that programs know them by.

    Args:
        module: where they are found, unless they already are under their own path.
        names: the functions, among other things.
        within: what their names begin with: of methods, the class and a dot.
    """
    for name, thing in names.items():
        if isinstance(thing, FunctionType) and not _is_found(thing):
            thing.__module__, thing.__qualname__ = module, f"{within}{name}"


def _is_found(function: Any) -> bool:
    """Whether a function's module has it under its name."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found is function
