"""Reports of how far a long derivative has come, there and back again."""

from collections.abc import Callable
from typing import Any

from lantern.control.hooks import hook
from lantern.transforms.arguments import check_function

__all__ = ["Report", "progress"]

# Called with "there" or "back", how many steps are done on that way, and of how many.
Report = Callable[[str, int, int], Any]


def progress(report: Report, x: Any, done: int, total: int) -> Any:
    """x itself, the state of a program after some of its steps; a report is made of it.

    One report is made now, and one on the way back, when the cotangent of x is there:
    then the steps after this one are over. Without a derivative the first is all.

    Args:
        report: is called as ``report(way, done, total)``, the way being "there" or
            "back". What it returns is not looked at. A progress bar's ``update`` is
            called in it; ``lantern.batch`` and ``remat_loop`` take such a function.
        x: numbers, arrays, or a structure of them.
        done: how many steps are over.
        total: how many there are.

    Returns:
        What x was. Use it in place of x.

    Raises:
        ArgumentError: if report is not callable.

    Example:
        >>> import lantern
        >>> def f(x):
        ...     for i in range(2):
        ...         x = progress(print, lantern.sin(x), i + 1, 2)
        ...     return x
        >>> lantern.grad(f)(0.0)
        there 1 2
        there 2 2
        back 0 2
        back 1 2
        1.0
    """
    check_function("progress", report)
    report("there", done, total)

    def back(cotangent: Any) -> None:
        report("back", total - done, total)

    return hook(back, x)
