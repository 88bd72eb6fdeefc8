"""Section 4 of the Lantern paper as running code: the rest of the program becomes code.

A function runs once, on a number that is not known yet. What it does is written down,
and so is the way back, by the same rules as everywhere in the library; control flow has
to be asked for, or else it would happen while the code is made. Each listing is the
code of a gradient, with its continuations: k1, k2, ... are the rest of the program.
(Sections 2 and 3, with all their figures, are in `paper.py`.)

References:
    F. Wang, D. Zheng, J. Decker, X. Wu, G. Essertel, T. Rompf: Demystifying
    Differentiable Programming: Shift/Reset the Penultimate Backpropagator.
    Proc. ACM Program. Lang. 3, ICFP, Article 96, 2019. doi:10.1145/3341700
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import lantern
from lantern.staging import IF, TREE, WHILE, show_ir, stage


def square(x: Any) -> Any:
    """Section 4.1: operations, one after the other."""
    return x * x


def conditional(x: Any) -> Any:
    """Section 4.2: the rest of the program is a function, called from both ways."""
    return IF(x > 0.0, lambda: -1.0 * x * x, lambda: x * x)


def halving(x: Any) -> Any:
    """Section 4.3: a loop is a function that calls itself, or else the rest."""
    return WHILE(x, lambda t: t > 1.0, lambda t: t * 0.5)


def product(x: Any, tree: Any) -> Any:
    """Section 4.4: a function takes the rest of the program as an argument."""
    return TREE(x, tree, lambda left, right, t: left * right * t[2])


LEAF = (None, None, 3.0)
LISTINGS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[int]]] = {
    "4.1": (square, (1.5,), []),
    "4.2": (conditional, (1.5,), []),
    "4.3": (halving, (1.5,), []),
    "4.4": (product, (1.5, (LEAF, None, 2.0)), [1]),
}


def listing(section: str) -> str:
    """Return the code of a gradient, in continuation-passing style."""
    f, args, trees = LISTINGS[section]
    return str(show_ir(f, *args, style="cps", trees=trees))


def gradients(section: str) -> tuple[float, float, float]:
    """Return a gradient by the staged program, by machine code, and by the library."""
    f, args, trees = LISTINGS[section]
    program = stage(f, *args, trees=trees).grad()
    return program(*args), lantern.jit(lantern.grad(f))(*args), lantern.grad(f)(*args)


def main() -> int:
    """Print the listings; return 0 if every gradient is right."""
    argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1]).parse_args()
    right = True
    for section, (f, args, _) in LISTINGS.items():
        print(f"# {f.__doc__}\n\n{listing(section)}\n")
        staged, compiled, expected = gradients(section)
        right = right and staged == compiled == expected
        print(f"# at {args[0]}: {staged:g} {'✓' if right else '✗'}\n")
    return 0 if right else 1


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):  # a terminal or a file, not an editor
        sys.stdout.reconfigure(encoding="utf-8")
    sys.exit(main())
