"""Derivatives of a user's own in the form of JAX, for programs that are ported."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from lantern.core.residuals import is_array, secured
from lantern.core.tree import tree_leaves, tree_map, tree_structure
from lantern.core.value import base, is_tracked, zeros_like
from lantern.errors import ArgumentError, RuleError, counted
from lantern.guards.rule_guard import Reads
from lantern.transforms.arguments import is_number
from lantern.transforms.custom_rule import Run, apply, numbered, shown
from lantern.transforms.reverse import vjp

__all__ = ["custom_jvp", "custom_vjp"]

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


class _Ported(Generic[P, R]):
    """A function with a derivative of its own, in JAX's form."""

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = ()
    ) -> None:
        where = type(self).__name__
        if not callable(fun):
            raise ArgumentError(
                f"{where}: expected a function, got {type(fun).__name__}. Use it as a "
                f"decorator."
            )
        self.fun: Function = fun
        self.name = getattr(fun, "__name__", where)
        if isinstance(nondiff_argnums, int):
            nondiff_argnums = (nondiff_argnums,)
        self.nondiff_argnums = tuple(nondiff_argnums)
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]  # is callable

    def _arguments(self, args: Any, kwargs: Any) -> tuple[list[Any], list[int]]:
        """All arguments by position, and which of them are differentiated."""
        if kwargs or self.nondiff_argnums:  # positions count defaults too
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise ArgumentError(
                    f"{self.name}: keyword-only argument {next(iter(bound.kwargs))!r}. "
                    f"Make it positional, and name it in nondiff_argnums."
                )
            args = bound.args
        count = len(args)
        static = {i + count if i < 0 else i for i in self.nondiff_argnums}
        for i in static & set(range(count)):
            if any(map(is_tracked, tree_leaves(args[i]))):
                raise ArgumentError(
                    f"{self.name}: argument {i} is tracked, but nondiff_argnums names "
                    f"it. Leave it out of nondiff_argnums, or use "
                    f"lantern.stop_gradient."
                )
        return list(args), [i for i in range(len(args)) if i not in static]

    def _undefined(self, how: str) -> RuleError:
        return RuleError(
            f"{self.name}: it has no derivative yet. Give it one with "
            f"{self.name}.{how}."
        )


def _filled(args: Sequence[Any], chosen: Sequence[int], values: Sequence[Any]) -> Any:
    """The arguments with others in chosen places."""
    filled = list(args)
    for i, x in zip(chosen, values, strict=True):
        filled[i] = x
    return filled


class custom_vjp(_Ported[P, R]):  # noqa: N801  # JAX's name, used as a decorator
    """A function with a backward derivative of its own, in JAX's form.

    Works in every mode: forward mode transposes ``bwd``, higher orders differentiate
    ``fwd`` and ``bwd``. For complex values ``bwd`` is a plain transpose, as in JAX.

    Args:
        fun: the function; it runs where nothing is differentiated.
        nondiff_argnums: the positions of arguments that are never differentiated, as
            functions and options; ``bwd`` gets them first.

    Raises:
        RuleError: at a derivative, if ``defvjp`` was not called, or if ``fwd`` or
            ``bwd`` returns the wrong structure or shapes.

    Example:
        >>> import lantern
        >>> @custom_vjp
        ... def clipped(x):
        ...     return x * x
        >>> clipped.defvjp(lambda x: (x * x, x), lambda x, g: (min(g * 2 * x, 1.0),))
        >>> lantern.grad(clipped)(0.25), lantern.grad(clipped)(3.0)
        (0.5, 1.0)
    """

    fwd: Function | None = None
    bwd: Function | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Give the function its derivative.

        Args:
            fwd: takes fun's arguments; returns ``(result, residuals)``.
            bwd: takes the nondifferentiable arguments, the residuals and the result's
                cotangent; returns a tuple with one cotangent for each differentiable
                argument, None for zero.
        """
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; inside a derivative, by its own rule."""
        args_, chosen = self._arguments(args, kwargs)
        operands = [args_[i] for i in chosen]
        if not any(map(is_tracked, tree_leaves(operands))):
            return self.fun(*args_)
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise self._undefined("defvjp(fwd, bwd)")
        statics = [x for i, x in enumerate(args_) if i not in chosen]

        def body(run: Run, *operands: Any) -> Any:
            given = tuple(tree_leaves(operands))
            if run.saved is None:  # fwd runs once, however often bwd does
                pair = fwd(*_merged(chosen, operands, run.statics))
                if type(pair) is not tuple or len(pair) != 2:
                    raise run.fail(
                        f"fwd returned {type(pair).__name__}",
                        "Return a pair: the result and the residuals for bwd",
                    )
                run.saved = _kept(run, pair, given)
                run.residuals = run.saved[1]
                del pair
            del operands, given  # only the residuals are kept
            value, residuals = run.saved
            z_bar = yield value
            contributions = bwd(*run.statics, residuals, z_bar)
            if _length(contributions) != len(chosen):
                raise run.fail(
                    f"bwd returned {_say(contributions)} for "
                    f"{counted(len(chosen), 'differentiable argument')}",
                    "Return a tuple with one cotangent for each",
                )
            yield from contributions

        reads = Reads(fwd, bwd)
        return apply(self.name, "general", body, operands, statics=statics, reads=reads)


def _kept(run: Run, made: Any, operands: Sequence[Any]) -> Any:
    """What a forward step has made, if the derivative waits: arrays that nobody has.

    A backward step that wrote to them would spoil the next one.
    """
    if run.reads is None or run.reads.keep is None:
        return made
    keep = run.reads.keep

    def locked(x: Any) -> Any:
        copy = keep(x)
        if is_array(copy) and hasattr(copy, "setflags"):
            copy.setflags(write=False)
        return copy

    return secured(made, locked, (*operands, *run.statics))


def _merged(
    chosen: Sequence[int], operands: Sequence[Any], statics: Sequence[Any]
) -> list[Any]:
    """All arguments by position."""
    own, others = iter(operands), iter(statics)
    count = len(operands) + len(statics)
    return [next(own if i in chosen else others) for i in range(count)]


def _length(x: Any) -> int:
    return len(x) if isinstance(x, tuple | list) else -1


def _say(x: Any) -> str:
    return counted(len(x), "value") if _length(x) >= 0 else type(base(x)).__name__


class custom_jvp(_Ported[P, R]):  # noqa: N801  # JAX's name, used as a decorator
    """A function with a forward derivative of its own, in JAX's form.

    Works in every mode: reverse mode transposes the tangent, which must be linear in
    the tangents.

    Args:
        fun: the function.
        nondiff_argnums: the positions of arguments that are never differentiated; the
            derivative gets them first.

    Raises:
        RuleError: at a derivative, if none was given, or if it returns the wrong
            structure or shapes.

    Example:
        >>> import lantern
        >>> @custom_jvp
        ... def cube(x):
        ...     return x**3
        >>> @cube.defjvp
        ... def cube_jvp(primals, tangents):
        ...     (x,), (x_dot,) = primals, tangents
        ...     return cube(x), 3 * x**2 * x_dot
        >>> lantern.jvp(cube, (2.0,), (1.0,)), lantern.grad(cube)(2.0)
        ((8.0, 12.0), 12.0)
    """

    rule: Function | None = None

    def defjvp(self, jvp: Function) -> Function:
        """Give the function its derivative; usable as a decorator.

        Args:
            jvp: takes the nondifferentiable arguments, the tuple of primals and the
                tuple of tangents; returns ``(result, tangent of the result)``.
        """
        self.rule = jvp
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Give the derivative argument by argument.

        Args:
            jvps: for each argument a function of its tangent, the result and all
                arguments, which returns its part of the tangent; None for zero.
        """

        def rule(primals: Any, tangents: Any) -> Any:
            if len(jvps) != len(primals):
                raise RuleError(
                    f"{self.name}: defjvps got "
                    f"{counted(len(jvps), 'function')} for "
                    f"{counted(len(primals), 'argument')}. Give one for each, None "
                    "for zero."
                )
            call: Function = self
            z = call(*primals)
            z_dot = tree_map(zeros_like, z)
            for part, x_dot in zip(jvps, tangents, strict=True):
                if part is not None:
                    added = part(x_dot, z, *primals)
                    z_dot = tree_map(lambda a, b: a + b, z_dot, added)
            return z, z_dot

        if self.nondiff_argnums:
            raise ArgumentError(
                f"{self.name}: defjvps does not go with nondiff_argnums. Use defjvp."
            )
        self.rule = rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; inside a derivative, by its own rule."""
        args_, chosen = self._arguments(args, kwargs)
        operands = [args_[i] for i in chosen]
        if not any(map(is_tracked, tree_leaves(operands))):
            return self.fun(*args_)
        rule = self.rule
        if rule is None:
            raise self._undefined("defjvp(jvp)")
        statics = [x for i, x in enumerate(args_) if i not in chosen]

        def moved(run: Run, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            """The tangent of the result; None as a tangent is zero."""
            full = [
                t if t is not None or not is_number(x) else zeros_like(x)
                for x, t in zip(primals, tangents, strict=True)
            ]
            points, _ = shown(primals)
            ways, originals = shown(full)
            result = rule(*run.statics, run.place(points), run.place(ways))
            if type(result) is not tuple or len(result) != 2:
                raise run.fail(
                    f"the derivative returned {_say(result)}",
                    "Return a pair: the result and its tangent",
                )
            value, tangent = secured(result, given=(*points, *ways))
            return _tangent(run, value, tangent, originals)

        def body(run: Run, *operands: Any) -> Any:
            if run.saved is None:
                given = tuple(tree_leaves(operands))
                value = self.fun(*_merged(chosen, operands, run.statics))
                run.saved = _kept(run, value, given)
                del value
            z_bar = yield run.saved
            leaves = list(tree_leaves(operands))
            wanted = [i for i, w in enumerate(run.wanted) if w]

            def along(*some: Any) -> Any:
                return moved(run, leaves, _filled([None] * len(leaves), wanted, some))

            _, pullback = vjp(along, *(zeros_like(leaves[i]) for i in wanted))
            flat = list(tree_leaves(z_bar))
            x_bars = pullback(flat[0] if len(flat) == 1 else tuple(flat))
            contributions = _filled([None] * len(leaves), wanted, x_bars)
            yield from run.place(contributions)

        reads = Reads(self.fun, rule)
        return apply(self.name, "stated", body, operands, moved, statics, reads)


def _tangent(run: Run, value: Any, tangent: Any, originals: dict[int, Any]) -> Any:
    """The tangent that a derivative returned, leaf by leaf, checked."""
    tangent = tree_map(lambda leaf: originals.get(id(leaf), leaf), tangent)
    expected, got = tree_structure(value), tree_structure(tangent)
    leaves = tuple(tree_leaves(tangent))
    shapes = [
        [getattr(x, "shape", ()) for x in tree_leaves(t)] for t in (value, tangent)
    ]
    if tree_map(str, numbered(value)) != tree_map(str, numbered(tangent)) or (
        shapes[0] != shapes[1]
    ):
        raise run.fail(
            f"the derivative returned a result {expected} of shapes {shapes[0]} and a "
            f"tangent {got} of shapes {shapes[1]}",
            "Give the tangent the result's structure and shapes",
        )
    return leaves[0] if len(leaves) == 1 else leaves
