"""The source of a function: the only file that reads source files.

What is found is believed only if it compiles to the function's own code: a file that
was changed since it was imported is not its source any more.
"""

import ast
import linecache
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from inspect import CO_NESTED
from types import CodeType, FunctionType
from typing import Any

from lantern.errors import StagingError

__all__ = ["Definition", "definition_of"]

Definition = ast.FunctionDef | ast.Lambda
_FUTURE = 0x1000000  # from __future__ import annotations


@cache
def _parsed(text: str, filename: str, flags: int) -> tuple[ast.Module, list[CodeType]]:
    tree = ast.parse(text)
    whole = compile(tree, filename, "exec", flags=flags, dont_inherit=True)
    return tree, list(_inside(whole))


def _inside(code: CodeType) -> Iterator[CodeType]:
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield x
            yield from _inside(x)


def definition_of(f: FunctionType) -> Definition:
    """A function's definition, as a tree of its own.

    Raises:
        StagingError: if it has no source, or another one by now.
    """
    code = f.__code__
    lines = linecache.getlines(code.co_filename, f.__globals__)
    alone = _alone(code, lines)
    if alone is not None:
        return alone
    text = "".join(lines)
    if not text:
        raise StagingError(
            f"source: {f.__name__} has none that can be read (it was made by exec, or "
            f"at a prompt). Use lantern.staging.IF, WHILE, LOOP and FUN in it."
        )
    try:
        tree, codes = _parsed(text, code.co_filename, code.co_flags & _FUTURE)
    except (SyntaxError, ValueError):
        codes = []
    if code not in codes:
        raise StagingError(
            f"source: what {code.co_filename} has at line {code.co_firstlineno} is not "
            f"{f.__name__} as it was imported. Import it again."
        )
    found = [node for node in ast.walk(tree) if _is_definition(node, code)]
    if len(found) != 1:
        raise StagingError(
            f"source: line {code.co_firstlineno} of {code.co_filename} has "
            f"{len(found)} functions that could be {f.__name__}. Write each on a line."
        )
    definition = found[0]
    assert isinstance(definition, ast.FunctionDef | ast.Lambda)
    return deepcopy(definition)


def _alone(code: CodeType, lines: list[str]) -> Definition | None:
    """The definition in the lines from where it begins to where others may.

    It takes no time to read a large file that way. None, if that is not the definition.
    """
    start = code.co_firstlineno - 1
    text = "".join(_block(lines, start))
    if not text.lstrip().startswith(("def ", "@")):
        return None
    flags = code.co_flags & _FUTURE
    start -= text[0].isspace()
    head = ""
    if text[0].isspace() and code.co_flags & CO_NESTED:
        head = f"def _outer({', '.join(code.co_freevars)}):\n"
    elif text[0].isspace():
        head = "if 1:\n"
    text = "\n" * start + head + text
    try:
        tree = ast.parse(text)
        whole = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    if code not in _inside(whole):
        return None
    body: Any = tree.body
    (found,) = body[0].body if head else body
    return found if isinstance(found, ast.FunctionDef) else None


def _block(lines: list[str], start: int) -> Iterator[str]:
    """The lines of a definition: more deeply indented ones behind its first."""
    inside = False
    for line in lines[start:]:
        rest = line.lstrip()
        depth = len(line) - len(rest)
        if not inside:
            first = depth
            inside = rest.startswith("def ")
        elif rest and depth <= first and rest[0] not in "#)]}":
            return
        yield line


def _is_definition(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    if not isinstance(node, ast.Lambda) or code.co_name != "<lambda>":
        return False
    if node.lineno != code.co_firstlineno:
        return False
    body = node.body
    places = [p for p in code.co_positions() if p[2] is not None and p[2] != p[3]]
    start = min((p[0] or 0, p[2] or 0) for p in places)
    end = max((p[1] or 0, p[3] or 0) for p in places)
    inside = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return inside == (start, end) or (
        inside[0] <= start
        and end <= inside[1]
        and not _has_lambda_around(node, start, end)
    )


def _has_lambda_around(
    node: ast.Lambda, start: tuple[int, int], end: tuple[int, int]
) -> bool:
    """Whether a lambda inside this one is nearer to a place."""
    for inner in ast.walk(node.body):
        if isinstance(inner, ast.Lambda):
            body = inner.body
            first = body.lineno, body.col_offset
            last = body.end_lineno or 0, body.end_col_offset or 0
            if first <= start and end <= last:
                return True
    return False
