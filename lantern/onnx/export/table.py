"""The table of functions that are written down, found by the code that runs."""

from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from lantern.errors import ArgumentError

__all__ = ["IN_PLACE", "WRITES", "called", "found", "in_place", "translation"]

Translation = Callable[[Any, dict[str, Any], Any], Any]

# By code, how to find the name of a translation, or that itself.
_CODES: dict[CodeType, Any] = {}
_SHARED: dict[tuple[CodeType, str], Translation] = {}
_WHEN: dict[CodeType, Any] = {}
# Translations of functions that give nothing.
WRITES: set[Translation] = set()
# Functions that write into their first argument what another one computes.
IN_PLACE: set[CodeType] = set()


def translation(
    *functions: Any, when: Any = None, writes: bool = False
) -> Callable[[Translation], Translation]:
    """Enter how calls of some functions are written down.

    A translation takes the builder, the arguments by name with whatever else the
    function closes over, and the result. It gives the name of the result in the graph,
    or those of several.

    Args:
        functions: what is called.
        when: of the arguments, whether the call is written down as a whole; otherwise
            what it calls inside is.
        writes: whether it gives nothing, and writes into an argument.
    """

    def enter(translate: Translation) -> Translation:
        for function in functions:
            code, name = _place(function)
            if when is not None:
                _WHEN[code] = when
            if writes:
                WRITES.add(translate)
            if name is None:
                if _CODES.get(code, translate) is not translate:
                    raise ArgumentError(
                        f"onnx.export: {function.__qualname__} shares its code with "
                        f"another function that is written down otherwise."
                    )
                _CODES[code] = translate
            else:
                _CODES.setdefault(code, None)
                _SHARED[code, name] = translate
        return translate

    return enter


def in_place(*functions: Any) -> None:
    """Note functions that may write into their first argument."""
    IN_PLACE.update(function.__code__ for function in functions)


def found(code: CodeType, frame: FrameType) -> Translation | None:
    """The translation of a function that begins; None where there is none."""
    if code not in _CODES:
        return None
    if code in _WHEN and not _WHEN[code](frame.f_locals):
        return None
    translate = _CODES[code]
    if translate is None:
        name = _name(frame.f_locals)
        return None if name is None else _SHARED.get((code, name))
    return translate


def _place(function: Any) -> tuple[CodeType, str | None]:
    """The code behind a function, and its name among those that share the code."""
    while True:
        cells = dict(
            zip(
                function.__code__.co_freevars,
                (cell.cell_contents for cell in function.__closure__ or ()),
                strict=True,
            )
        )
        name = _name(cells)
        if name is not None:
            return function.__code__, name
        inner = cells.get("function", getattr(function, "__wrapped__", None))
        if not isinstance(inner, FunctionType):
            return function.__code__, None
        function = inner


def called(frame: FrameType) -> str:
    """What a program would call a function that begins."""
    known = frame.f_locals
    name = _name(known)
    function = known.get("function")
    if name is None and isinstance(function, FunctionType):
        name = function.__name__
    return (name or frame.f_code.co_name).strip("_")


def _name(known: dict[str, Any]) -> str | None:
    """The name of a function among those that are made alike."""
    rule = known.get("rule")
    if rule is not None and hasattr(rule, "__name__"):
        return rule.__name__.strip("_")
    if "direct" in known:  # of operators that write in place
        return str(known["direct"].__name__)
    function = known.get("function")
    if function is not None and not isinstance(function, FunctionType):
        return str(function.__name__)  # one of NumPy's
    name = known.get("name")
    return name if isinstance(name, str) else None
