"""Staging: a program becomes nodes, which are differentiated, shown and compiled.

Example:
    >>> from lantern.staging import IF, stage
    >>> program = stage(lambda x: IF(x > 0.0, lambda: -1.0 * x * x, lambda: x * x), 1.0)
    >>> program(3.0), program.grad()(3.0)
    (-9.0, -6.0)
"""

from lantern.staging.ahead import Ahead as Ahead
from lantern.staging.ahead import compile as compile  # as re has one
from lantern.staging.ahead import emit_c as emit_c
from lantern.staging.ahead import emit_python as emit_python
from lantern.staging.ahead import show_llvm as show_llvm
from lantern.staging.control import IF as IF
from lantern.staging.dispatch import explain as explain
from lantern.staging.dispatch import jit as jit
from lantern.staging.functions import FUN as FUN
from lantern.staging.functions import TREE as TREE
from lantern.staging.loops import LOOP as LOOP
from lantern.staging.loops import WHILE as WHILE
from lantern.staging.passes import PASSES as PASSES
from lantern.staging.passes import without as without
from lantern.staging.program import Program as Program
from lantern.staging.program import stage as stage
from lantern.staging.show import show_adjoint as show_adjoint
from lantern.staging.show import show_ir as show_ir

__all__ = [
    "FUN",
    "IF",
    "LOOP",
    "PASSES",
    "TREE",
    "WHILE",
    "Ahead",
    "Program",
    "compile",
    "emit_c",
    "emit_python",
    "explain",
    "jit",
    "show_adjoint",
    "show_ir",
    "show_llvm",
    "stage",
    "without",
]
