"""Ahead of time: a function compiled for some arguments, before it is called."""

import time
from collections.abc import Callable
from typing import Any

from lantern.errors import StagingError
from lantern.staging.dispatch import jit, mode, owner_of, staged
from lantern.staging.emit_c import c_of
from lantern.staging.emit_python import python_of
from lantern.staging.native.engine import optimised
from lantern.staging.program import Program
from lantern.staging.show import Listing, show_ir

__all__ = ["Ahead", "compile", "emit_c", "emit_python", "show_llvm"]


class Ahead:
    """A function that is compiled, and what became of it on the way.

    It is called like the function; for other types, structures or closures it does what
    a function of ``jit`` does.

    Attributes:
        program: the nodes.
        ir: the same as a text.
        python: as Python that runs.
        llvm: what LLVM has made of it, as a text; "" without native code.
        time: seconds until it was compiled.

    Example:
        >>> import lantern
        >>> square = lantern.compile(lambda x: x * x, 1.0)
        >>> square(3.0)
        9.0
        >>> square.ir
        def <lambda>(%0: float) -> float
          %1 = multiply %0 %0
          return %1
    """

    def __init__(self, f: Callable[..., Any], program: Program, native: Any) -> None:
        self._f, self.program, self._native = f, program, native
        self.__name__, self.time = program.name, 0.0

    def __repr__(self) -> str:
        return f"<compiled {self.__name__}, {1e3 * self.time:.1f} ms>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result."""
        return self._f(*args, **kwargs)

    @property
    def ir(self) -> Listing:
        """The program, node by node."""
        return show_ir(self.program)

    @property
    def python(self) -> Listing:
        """The program as Python."""
        return Listing(python_of(self.program))

    @property
    def llvm(self) -> Listing:
        """The program in LLVM's language, after its passes."""
        if self._native is None:
            return Listing("")
        return Listing(optimised(self._native.text, self._native.best))


def compile(f: Callable[..., Any], *args: Any) -> Ahead:
    """Compile a function for arguments of these types now, and not when it is called.

    Args:
        f: as for ``jit``; also what ``grad`` and its like have made.
        args: example arguments. f is not called.

    Raises:
        StagingError: if it cannot be compiled; ``jit`` would run it as it is.

    Example:
        >>> import lantern
        >>> slope = lantern.compile(lantern.grad(lambda x: x * x * x), 1.0)
        >>> slope(2.0)
        12.0
    """
    start = time.perf_counter()
    function = jit(f)
    owner = owner_of(function)
    found = owner.specialisation(args)
    if found.program is None:
        raise StagingError(f"compile: {owner.f.__name__}: {found.reason}")
    if found.native is not None and mode() == "tiers":
        owner.improve(found)
    made = Ahead(function, found.program, found.native)
    made.time = time.perf_counter() - start
    return made


def emit_python(f: Callable[..., Any], *args: Any) -> Listing:
    """A function as it is staged, or a derivative of one, as Python that runs.

    Args:
        f: as for ``jit``: ``emit_python(lantern.grad(f), x)`` is the adjoint.
        args: example arguments.

    Raises:
        StagingError: if it cannot be staged.

    Example:
        >>> import lantern
        >>> emit_python(lantern.grad(lambda x: lantern.sin(x) * x), 1.0)
        import math
        <BLANKLINE>
        <BLANKLINE>
        def grad_of_lambda(a0):
            v1 = math.sin(a0)
            v2 = math.cos(a0)
            v3 = a0 * v2
            v4 = v1 + v3
            return v4
    """
    return Listing(python_of(staged(f, args)[0]))


def emit_c(f: Callable[..., Any], *args: Any) -> Listing:
    """A function as it is staged, or a derivative of one, as a file of C.

    Its numbers come one after the other, as they stand in the arguments, then a pointer
    for each number of the result. It returns 1 where Python would raise, or would go on
    with larger integers or with what is not finite.

    Args:
        f: as for ``jit``: ``emit_c(lantern.grad(f), x)`` is the adjoint.
        args: example arguments: numbers and structures of them.

    Raises:
        StagingError: if it cannot be staged, or walks objects of the caller's.

    Example:
        >>> import lantern
        >>> text = str(emit_c(lantern.grad(lambda x: lantern.sin(x) * x), 1.0))
        >>> print(text[text.rindex("static int") : text.rindex("int grad_of")])
        static int run_grad_of_lambda(double x0, double *r0) {
            double v1;
            double v2;
            double v3;
            double v4;
            v1 = sin(x0);
            if (!isfinite(v1)) return 1;
            v2 = cos(x0);
            if (!isfinite(v2)) return 1;
            v3 = x0 * v2;
            v4 = v1 + v3;
            if (isnan(v4)) return 1;
            *r0 = v4;
            return 0;
        }
        <BLANKLINE>
        <BLANKLINE>
    """
    return Listing(c_of(staged(f, args)[0]))


def show_llvm(f: Callable[..., Any], *args: Any) -> Listing:
    """What LLVM has made of a function, as a text.

    Raises:
        StagingError: if it cannot be compiled.

    Example:
        >>> import lantern
        >>> text = show_llvm(lantern.grad(lambda x: x * x), 1.0)
        >>> "fadd double" in text, "call" in text
        (True, True)
    """
    return compile(f, *args).llvm
