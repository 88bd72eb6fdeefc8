"""A staged program: what ``stage`` returns, to be run, differentiated and shown."""

from collections.abc import Callable, Sequence
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import StagingError
from lantern.staging.adjoint import adjoint
from lantern.staging.closures import close, functions_of
from lantern.staging.control import StoppedError, UnknownResultError, flag_of
from lantern.staging.hoist import hoist
from lantern.staging.interpret import run
from lantern.staging.ir import Function, building, current
from lantern.staging.namespace import met
from lantern.staging.regions import prune
from lantern.staging.staged import is_staged, node_of, staged
from lantern.staging.structure import is_undefined, leaves_of, unflatten
from lantern.staging.trees import reachable
from lantern.staging.types import TREE, type_of

__all__ = ["PLAIN", "Program", "numbers_of", "stage"]

PLAIN = frozenset({str, bytes})
"""Types of arguments that are no parameters: a program is made for one value."""


class Program:
    """A program of nodes, and the structures that it takes and returns.

    Attributes:
        function: the main function; others are called from it.
        like: the example arguments.
        result: the structure of the result, with None for what is computed.
        trees: positions of arguments that are walked when it runs.
        flags: for results that may be ints where the results are that say so.

    Example:
        >>> from lantern.staging import stage
        >>> square = stage(lambda x: x * x, 3.0)
        >>> square(4.0), square.grad()(4.0)
        (16.0, 8.0)
    """

    def __init__(
        self,
        function: Function,
        like: Any,
        result: Any,
        trees: Any,
        flags: dict[int, int] | None = None,
    ) -> None:
        self.function, self.like = function, like
        self.result, self.trees = result, trees
        self.flags = flags or {}

    @property
    def name(self) -> str:
        """The name of the function that was staged."""
        return self.function.name

    def __repr__(self) -> str:
        count = len(self.function.body.parameters)
        return f"<staged {self.name} of {count} numbers>"

    def __call__(self, *args: Any) -> Any:
        """The result for arguments of the types it was staged for, interpreted."""
        return self.put_together(run(self.function, self.take_apart(args)))

    def take_apart(self, args: Sequence[Any]) -> list[Any]:
        """The parameters that arguments stand for."""
        found: list[Any] = []
        for i, x in enumerate(args):
            found += [x] if i in self.trees else numbers_of(x)
        return found

    def put_together(self, values: list[Any]) -> Any:
        """The result that some numbers stand for."""
        like, kept = self.result
        for i, flag in self.flags.items():
            if values[flag]:
                values[i] = int(values[i])
        rest = iter(values)
        return unflatten(like, [next(rest) if is_staged(x) else x for x in kept])

    def grad(self, argnums: int | Sequence[int] = 0) -> "Program":
        """The program of the gradient.

        Args:
            argnums: positions of arguments, as those of ``lantern.grad``.

        Raises:
            StagingError: if the result is not one float.
            MissingRuleError: if there is no rule for an operation.

        Example:
            >>> from lantern.staging import stage
            >>> stage(lambda x: x * x * x, 1.0).grad()(2.0)
            12.0
        """
        return self._differentiated(argnums, with_value=False)

    def value_and_grad(self, argnums: int | Sequence[int] = 0) -> "Program":
        """The program of the value and the gradient, in a pair."""
        return self._differentiated(argnums, with_value=True)

    def _differentiated(
        self, argnums: int | Sequence[int], with_value: bool
    ) -> "Program":
        several = not isinstance(argnums, int)
        chosen = list(argnums) if not isinstance(argnums, int) else [argnums]
        results = self.function.body.results
        if len(results) != 1 or results[0].type.kind != "float":
            raise StagingError(
                f"grad: {self.name} must return one float, got "
                f"{', '.join(str(x.type) for x in results) or 'nothing'}. Return one "
                f"number."
            )
        if len({i % len(self.like) for i in chosen}) < len(chosen):
            raise StagingError(
                f"grad: {argnums=} names an argument twice. Name each once."
            )
        by, shapes = [], []
        starts = self._positions()
        for i in chosen:
            by += starts[i]
            shapes.append(self.like[i])
        found = adjoint(self.function, by, with_value)
        like: Any = tuple(shapes) if several else shapes[0]
        if with_value:
            like = (0.0, like)
        with building(found.body):
            kept = [staged(x) for x in found.body.results]
        return Program(found, self.like, (like, kept), self.trees)

    def _positions(self) -> list[list[int]]:
        """The parameters that each argument stands for."""
        found, start = [], 0
        for i, x in enumerate(self.like):
            n = 1 if i in self.trees else len(numbers_of(x))
            found.append(list(range(start, start + n)))
            start += n
        return found


@between_turns
def stage(
    f: Callable[..., Any], *args: Any, trees: Sequence[int] = (), loose: bool = False
) -> Program:
    """The program that a function is, for arguments of these types.

    Args:
        f: a function of numbers, arrays, and structures of them. Where it goes depends
            on plain values, or goes through ``IF``, ``WHILE``, ``LOOP``, ``FUN`` and
            ``TREE``.
        args: example arguments.
        trees: positions of arguments that the program walks when it runs: not taken
            apart now.
        loose: whether results that are ints on some way are told apart from floats. If
            not, they are floats.

    Raises:
        StagingError: if it asks what is known only when the program runs.

    Example:
        >>> program = stage(lambda x, y: x * y + 1.0, 2.0, 3.0)
        >>> program(4.0, 5.0)
        21.0

    References:
        Wang et al. (2019), section 4.
    """
    function = Function(getattr(f, "__name__", "f"))
    before, is_outermost = current.functions, not current.blocks
    current.functions = {}
    try:
        with building(function.body) as body:
            inputs = [_parameter(body, x, i in trees) for i, x in enumerate(args)]
            result = f(*inputs)
            kept = leaves_of(result)
            kept = [_output(x) for x in kept]
            body.results = [node_of(x) for x in kept if is_staged(x)]
            marked = [x for x in body.results if x.loose] if loose else []
            start = len(body.results)
            body.results += [flag_of(x) for x in marked]
    except (UnknownResultError, StoppedError) as error:
        raise StagingError(
            f"stage: {function.name} never returns: each way through it raises or "
            f"calls itself. Call it as it is."
        ) from error
    finally:
        current.functions, current.line = before, None
        if is_outermost:
            current.copied.clear()
    function.types = [x.type for x in body.results]
    own = [i for i, x in enumerate(body.results[:start]) if x.loose and loose]
    flags = dict(zip(own, range(start, len(body.results)), strict=True))
    close(function)
    for each in functions_of(function):
        prune(each.body)
        hoist(each.body)
    return Program(function, args, (result, kept), frozenset(trees), flags)


def numbers_of(x: Any) -> list[Any]:
    """The leaves of an argument that are parameters of a program."""
    return [leaf for leaf in leaves_of(x) if type(leaf) not in PLAIN]


def _output(x: Any) -> Any:
    if is_undefined(x):
        raise StagingError(
            "stage: the result has a variable that is not assigned to on every way. "
            "Assign it first."
        )
    return x


def _parameter(body: Any, x: Any, is_tree: bool) -> Any:
    if is_tree:
        return staged(body.parameter(TREE, reachable(x)))
    leaves = leaves_of(x)
    for i, leaf in enumerate(leaves):
        if type(leaf) in PLAIN:
            continue
        known = type_of(leaf)
        if known is None:
            raise StagingError(
                f"stage: {leaf!r} of type {type(leaf).__name__} cannot be an argument "
                f"of a staged program. Give numbers, arrays and structures of them, or "
                f"pass it by closure."
            )
        if known.kind == "array":
            met(leaf)
        example = leaf if known.kind == "array" else None
        leaves[i] = staged(body.parameter(known, example))
    return unflatten(x, leaves)
