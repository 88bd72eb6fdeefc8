"""Source rewriting: control flow, calls and reads go through the combinators.

A function is found in its source, rewritten (``rewriter.py``), and compiled with its
own name, file and lines, so that tracebacks show what the user wrote. All that is not
rewritten is left alone, and simply runs on staged values.
"""

import ast
import marshal
import sys
from functools import cache
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

from lantern.staging.native.background import later
from lantern.staging.native.disk import folder, key_of, load, save
from lantern.staging.rewriter import new_function
from lantern.staging.source import definition_of
from lantern.staging.syntax import LT, name_of, parameter_list, placed

__all__ = ["rewritten"]


@cache
def _new_code(code: CodeType, holder: "_Holder", is_careful: bool) -> CodeType:
    """Rewritten code; from the disk, if another process has rewritten the same."""
    if folder() is None:
        return _made(code, holder, is_careful)
    text = marshal.dumps(code, 2).hex()  # without references, whose number varies
    key = key_of(["rewritten", sys.version, _rewriter(), str(is_careful), text])
    known = load(key)
    if known is not None:
        found: CodeType = marshal.loads(known)
        return found
    new = _made(code, holder, is_careful)
    later(lambda: save(key, marshal.dumps(new)))
    return new


@cache
def _rewriter() -> str:
    """Which rewriter this is, by its own source."""
    here = Path(__file__).parent
    names = (
        "rewrite rewriter generators syntax desugar expressions lifetimes source"
    ).split()
    files = [here / f"{name}.py" for name in names]
    return key_of(x.read_text("utf-8") for x in files if x.exists())


def _made(code: CodeType, holder: "_Holder", is_careful: bool) -> CodeType:
    definition = definition_of(holder.function)
    body = _as_function(definition, is_careful)
    names = [LT, *code.co_freevars]
    outer = ast.FunctionDef(
        name="_lt_outer",
        args=parameter_list(names, definition),
        body=[body, placed(ast.Return(name_of(body.name, definition)), definition)],
        decorator_list=[],
    )
    module = ast.Module([placed(outer, definition)], [])
    whole = compile(module, code.co_filename, "exec", dont_inherit=True)
    (found,) = (x for x in whole.co_consts if isinstance(x, CodeType))
    new = next(x for x in found.co_consts if isinstance(x, CodeType))
    return new.replace(co_name=code.co_name, co_qualname=code.co_qualname)


class _Holder:
    """A function on its way past a cache whose key is its code alone."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def rewritten(f: FunctionType, lt: Any, is_careful: bool) -> FunctionType:
    """A function like another one whose control flow goes through ``lt``.

    Args:
        f: the function.
        lt: the surface that it calls.
        is_careful: whether its operators go through that, too.
    """
    code = f.__code__
    new = _new_code(code, _Holder(f), is_careful)
    cells = dict(zip(code.co_freevars, f.__closure__ or (), strict=True))
    cells[LT] = CellType(lt)
    closure = tuple(cells[name] for name in new.co_freevars)
    made = FunctionType(new, f.__globals__, f.__name__, f.__defaults__, closure)
    made.__kwdefaults__ = f.__kwdefaults__
    return made


def _as_function(
    definition: ast.FunctionDef | ast.Lambda, is_careful: bool
) -> ast.FunctionDef:
    """A definition as a function whose defaults are given elsewhere."""
    arguments = definition.args
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    if isinstance(definition, ast.Lambda):
        body: list[ast.stmt] = [placed(ast.Return(definition.body), definition.body)]
        name = "_lt_lambda"
    else:
        body, name = definition.body, "_lt_function"
    return new_function(name, arguments, body, definition, is_careful)
