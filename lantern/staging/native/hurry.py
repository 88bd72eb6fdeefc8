"""The same module in words for which LLVM has instructions at once.

Without passes it chooses instructions line by line, where it has a short way for each.
For the others, and all that stands before them in their block, it goes its long way,
which takes twice the time. It has no short way for a call in the place of a return, and
for a number in all lanes of a vector. That goes by way of memory which all threads
share: machine code runs while its thread holds the interpreter's lock.
"""

import re

__all__ = ["hurried"]

SHORT = 1 << 16
"""Up to so long a text takes so little of the stack that what it calls may have more.

The function that Python calls leaves by such a call, for which it gives its own back.
"""

_FIRST = re.compile(r"  (%\w+) = insertelement <\d+ x double> poison, double (\S+), .*")
_ALL = re.compile(r"  (%\w+) = shufflevector (<(\d+) x double>) (%\w+), .*initializer")


def hurried(text: str) -> str:
    """A module that does the same, and is compiled sooner without passes."""
    if len(text) < SHORT:
        text = text.replace("musttail call", "call")
    if "= insertelement" not in text:
        return text
    lines: list[str] = []
    numbers: dict[str, str] = {}
    for line in text.split("\n"):
        if "= insertelement" in line and (first := _FIRST.fullmatch(line)):
            numbers[first[1]] = first[2]
        elif "= shufflevector" in line and (every := _ALL.fullmatch(line)):
            name, kind, width, before = every.groups()
            lines += _splat(name, kind, int(width), numbers[before])
        else:
            lines.append(line)
    lines.append("@lanes = internal global [8 x double] zeroinitializer")
    return "\n".join(lines)


def _splat(name: str, kind: str, width: int, number: str) -> list[str]:
    """The lines that bring a number into all lanes."""
    stores = [f"  store double {number}, ptr {_at(i)}" for i in range(width)]
    return [*stores, f"  {name} = load {kind}, ptr @lanes, align 8"]


def _at(i: int) -> str:
    return f"getelementptr (double, ptr @lanes, i64 {i})"
