"""Rules that users write: one rule over the leaves of any operands, which checks.

What the user's code hands back must be a contribution for each operand, of its
structure and shapes, and no value that slipped in from outside.
"""

import functools
import inspect
from collections.abc import Callable, Generator, Sequence
from operator import attrgetter
from types import FunctionType
from typing import Any, ParamSpec, overload

from lantern.core.dispatch import register_rule, start
from lantern.core.residuals import copied, is_ours, owners, residual
from lantern.core.tree import is_leaf, tree_leaves, tree_map, tree_structure
from lantern.core.unwrap import levels_of, read_only
from lantern.core.value import UNTRACKED, Rule, Value
from lantern.errors import ArgumentError, LanternError, RuleError
from lantern.guards.rule_guard import Reads
from lantern.transforms.arguments import describe, is_number

__all__ = ["Run", "apply", "custom_rule", "numbered", "shown"]

Function = Callable[..., Any]
P = ParamSpec("P")


class Run:
    """One use of a custom operation.

    Attributes:
        name: of the operation, for messages.
        trees: the operands, with the positions of their leaves as leaves.
        simple: whether every operand is a leaf.
        body: takes this and the operands; the generator behind the rule.
        broadcasts: whether contributions may have the shape of the result.
        depth: of the derivative that the operation belongs to; 0 for none.
        wanted: for each leaf, whether that derivative tracks it.
        form: the structure of the result, once it is known.
        first: the identities of the leaves that the rule was first started on.
        residuals: what the body gives from its forward to its backward step.
        saved: what the body keeps for the case that it is started on them again.
        mapped: whether it belongs to a ``vmap``, which starts it once for each example.
        statics: the other arguments, as they were when the operation was used.
        reads: what the user's functions read besides; None for the library's.
    """

    __slots__ = (
        "body",
        "broadcasts",
        "depth",
        "first",
        "form",
        "mapped",
        "name",
        "reads",
        "residuals",
        "saved",
        "simple",
        "statics",
        "trees",
        "wanted",
    )

    first: list[int] | None
    form: Any
    reads: Reads | None
    residuals: Any
    saved: Any

    def __init__(self, name: str, body: Function, trees: Any, broadcasts: bool) -> None:
        self.name, self.body, self.broadcasts = name, body, broadcasts
        self.trees, self.saved, self.first = trees, None, None
        self.simple = all(type(tree) is int for tree in trees)
        self.depth, self.mapped = 0, False
        self.statics: list[Any] = []
        self.residuals, self.reads = (), None
        self.wanted: list[bool] = []

    def on(self, leaves: Sequence[Any]) -> "Run":
        """This, or the same afresh if the leaves are others than at first.

        Whoever starts a rule again has kept its operands, so identities stay true. The
        examples of a ``vmap`` come and go.
        """
        own = list(map(id, leaves))
        if self.first is None and not self.mapped:
            self.first = own
        if self.first == own:
            return self
        other = Run(self.name, self.body, self.trees, self.broadcasts)
        other.wanted, other.first, other.statics = self.wanted, own, self.statics
        other.reads = self.reads
        inside = {level.depth for leaf in leaves for level in levels_of(leaf)}
        if self.depth not in inside:  # else a newer derivative has started it
            other.depth = self.depth
        return other

    def place(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The operands around other leaves."""
        if self.simple:
            return tuple(leaves)
        operands: tuple[Any, ...] = tree_map(leaves.__getitem__, self.trees)
        return operands

    def others(self) -> list[tuple[str, Any]]:
        """What the rule is given besides its operands, with names for messages."""
        residuals = [("a residual", x) for x in tree_leaves(self.residuals)]
        return [("a static argument", x) for x in self.statics] + residuals

    def fail(self, what: str, remedy: str) -> RuleError:
        """The error of a rule that broke the protocol."""
        return RuleError(f"{self.name}: {what}. {remedy}.")

    def flat(self, value: Any, originals: dict[int, Any]) -> Any:
        """The result's leaves, as a rule hands them on: one, or a tuple."""
        if type(value) is float or (is_leaf(value) and is_number(value)):
            self.form = 0
            return originals.get(id(value), value)
        leaves = tuple(originals.get(id(leaf), leaf) for leaf in tree_leaves(value))
        for leaf in leaves:
            if not is_number(leaf):
                raise self.fail(
                    f"the result contains {describe(leaf)}",
                    "Return numbers, arrays or structures of them",
                )
        if not leaves:
            raise self.fail("the result is empty", "Return at least one number")
        self.form = numbered(value)
        return leaves[0] if len(leaves) == 1 else leaves

    def structured(self, flat: Any) -> Any:
        """The result's structure around what a rule hands on."""
        if type(self.form) is int:
            return flat
        single = len(tuple(tree_leaves(self.form))) == 1
        return tree_map([flat].__getitem__ if single else flat.__getitem__, self.form)

    def contribution(self, i: int, shape: Any, x_bar: Any, ours: set[int]) -> Any:
        """A contribution to a leaf, checked; None where nobody wants it."""
        if not self.wanted[i] or x_bar is None:
            return None
        if type(x_bar) is float and not shape:
            return x_bar
        if callable(x_bar):
            x_bar = x_bar()
        if not is_number(x_bar):
            raise self.fail(
                f"the rule contributed {describe(x_bar)}",
                "Give a number or an array of the operand's shape, or None for zero",
            )
        got = getattr(x_bar, "shape", ())
        if shape != got and not self.broadcasts:
            raise self.fail(
                f"the rule contributed shape {tuple(got)} to an operand of shape "
                f"{tuple(shape)}",
                "Bring it to the operand's shape; a rule that broadcasts says "
                "kind='elementwise'",
            )
        if isinstance(x_bar, Value) and self.depth == x_bar.level.depth != 0:
            raise self.leak()
        # A rule of the user's may write to it again.
        return x_bar if self.reads is None or is_ours(x_bar, ours) else copied(x_bar)

    def miscounted(self, how: str) -> RuleError:
        """The error of a rule that yielded too few contributions, or too many."""
        return self.fail(
            f"the rule yielded too {how} values",
            "Yield the result, and then one contribution for each operand",
        )

    def leak(self) -> RuleError:
        """The error of a rule that used a tracked value which is no operand."""
        return self.fail(
            "the rule computed with a tracked value that is not among its operands, "
            "whose derivative would be lost",
            "Pass what it closes over as an operand, or use lantern.stop_gradient",
        )


def numbered(tree: Any) -> Any:
    """A structure with the positions of its leaves as leaves."""
    positions = iter(range(len(tuple(tree_leaves(tree)))))
    return tree_map(lambda _: next(positions), tree)


def shown(leaves: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
    """Leaves as read-only views, for others hold them; which a view is of, by id."""
    views = list(map(read_only, leaves))
    pairs = zip(views, leaves, strict=True)
    return views, {id(view): leaf for view, leaf in pairs if view is not leaf}


def _shared_rule(*leaves: Any, run: Run, tangent: Any = None) -> Rule:
    """What a custom operation does, leaf by leaf."""
    shapes = [getattr(leaf, "shape", ()) for leaf in leaves]
    origin, run = run, run.on(leaves)
    views, originals = shown(leaves)
    body: Generator[Any, Any, Any] = run.body(run, *run.place(views))
    try:
        if run.reads is None:
            value, unchanged = next(body), None
        else:
            value, unchanged = run.reads.start(run, body, leaves)
    except StopIteration:
        raise run.fail("the rule yields nothing", "Yield the result first") from None
    value = run.flat(value, originals)
    del leaves, views, originals  # what the body does not keep is free
    origin.form = run.form
    z_bar = yield (value, value := None)[0]
    if unchanged is not None:
        unchanged.check()
    z_bar = tuple(map(read_only, z_bar)) if type(z_bar) is tuple else read_only(z_bar)
    answer = run.structured(z_bar)
    ours = owners(z_bar if type(z_bar) is tuple else (z_bar,))
    for left, tree in zip(range(len(run.trees), 0, -1), run.trees, strict=True):
        try:
            x_bar, answer = body.send(answer), None
        except StopIteration:
            raise run.miscounted("few") from None
        parts = [(tree, x_bar)] if type(tree) is int else _parts(run, tree, x_bar)
        x_bars = [run.contribution(i, shapes[i], part, ours) for i, part in parts]
        del x_bar, parts
        if left == 1 and next(body, body) is not body:
            raise run.miscounted("many")
        for contribution in x_bars:  # noqa: UP028  # nothing can be sent to a list
            yield contribution


def _parts(run: Run, tree: Any, x_bar: Any) -> list[tuple[int, Any]]:
    """For each leaf of an operand its position and its contribution."""
    if x_bar is None:
        return [(i, None) for i in tree_leaves(tree)]
    parts: list[Any] = []
    try:
        tree_map(lambda i, part: parts.append((i, part)), tree, x_bar)
    except LanternError:
        raise run.fail(
            f"the rule contributed {tree_structure(x_bar)} to an operand of the "
            f"structure {tree_map(lambda _: 'leaf', tree)}",
            "Contribute the operand's structure, or None for zero",
        ) from None
    return parts


def _of_kind(kind: str, registered: str) -> Function:
    """The shared rule under a kind: a function with a code object of its own."""
    code = _shared_rule.__code__.replace(co_name=f"custom_{kind}_rule")
    rule = FunctionType(code, globals(), code.co_name)
    rule.__kwdefaults__ = {"tangent": None}
    adjoint = kind in ("adjoint", "stated")
    return register_rule(rule, registered, own=False, adjoint=adjoint)


# How the registry calls each kind. What a user's elementwise rule yields need not have
# the operand's own type, as the library's have.
_KINDS = {
    kind: _of_kind(kind, registered)
    for kind, registered in {
        "general": "general",
        "elementwise": "partials",
        "linear": "linear",
        "adjoint": "general",
        "stated": "stated",
    }.items()
}


def apply(
    name: str,
    kind: str,
    body: Function,
    operands: Sequence[Any],
    tangent: Function | None = None,
    statics: Sequence[Any] = (),
    reads: Reads | None = None,
) -> Any:
    """Run a custom operation for the innermost derivative among its operands."""
    leaves, trees = list(operands), tuple(range(len(operands)))
    if not all(map(is_leaf, operands)):
        leaves, trees = list(tree_leaves(leaves)), numbered(tuple(operands))
    run = Run(name, body, trees, kind in ("elementwise", "linear"))
    values = [x for x in leaves if isinstance(x, Value)]
    own = max((x.level for x in values), key=attrgetter("depth"), default=UNTRACKED)
    run.wanted = [isinstance(x, Value) and x.level is own for x in leaves]
    if not own.is_derivative:  # each example is differentiated by the levels outside
        outside = {level.depth: level for x in leaves for level in levels_of(x)}
        own = outside[max(outside)] if outside else UNTRACKED
        run.mapped, run.wanted = True, [any(levels_of(x)) for x in leaves]
    run.depth = own.depth
    run.statics = [residual(own, x) if hasattr(x, "dtype") else x for x in statics]
    if reads is not None:
        run.reads = reads
        reads.belong_to(own)
    how: dict[str, Any] = {"run": run}
    if tangent is not None:
        how["tangent"] = functools.partial(tangent, run)
    result = start(_KINDS[kind], leaves, (), how)
    for z in result if type(result) is tuple else (result,):
        if _is_confused(z):
            raise run.leak()
    return run.structured(result)


def _is_confused(z: Any) -> bool:
    """Whether a value has inside one of its own level, or of one inside of it.

    Or moves with one, in forward mode.
    """
    while isinstance(z, Value):
        outer, parts = z.level.depth, (z.inside, getattr(z.receiver, "tangent", None))
        if any(isinstance(x, Value) and x.level.depth >= outer for x in parts):
            return True
        z = z.inside
    return False


@overload
def custom_rule(
    rule: Callable[P, Generator[Any, Any, Any]], *, kind: str = "general"
) -> Callable[P, Any]: ...
@overload
def custom_rule(
    rule: None = None, *, kind: str = "general"
) -> Callable[[Callable[P, Generator[Any, Any, Any]]], Callable[P, Any]]: ...
def custom_rule(rule: Function | None = None, *, kind: str = "general") -> Any:
    """Make a function with a derivative from one generator: forward, yield, backward.

    It works in every mode and at every order; operands and results may be structures.
    What the rule computes with must be among its operands.

    Args:
        rule: its positional-only parameters (those before ``/``) are the differentiable
            operands, the others are static. It yields the result, gets the result's
            cotangent, and yields a contribution for each operand, in their order: of
            the operand's structure and shapes; None for zero; or a thunk, called only
            if the operand is tracked.
        kind: how forward mode reads the rule. "general": by the transpose of its
            backward step. "elementwise": resumed with 1 it yields partial derivatives;
            contributions may have the result's shape. "linear": applied to the
            tangents. "adjoint": as "general", for complex functions that are not
            holomorphic (see ``lantern.op.adjoint``).

    Returns:
        A function of the rule's parameters, for plain and tracked values; without a
        rule, a decorator.

    Raises:
        RuleError: if the rule is no generator function, has no operand, or, when it
            runs, contributes too little, too much or the wrong shapes.
        MutationError: if it reads an array that was changed meanwhile.

    Example:
        >>> import lantern
        >>> @custom_rule
        ... def scaled_norm(x, /, scale=1.0):
        ...     norm = (x @ x) ** 0.5
        ...     z_bar = yield scale * norm
        ...     yield z_bar * scale * x / norm
        >>> import numpy as np
        >>> lantern.grad(scaled_norm)(np.array([3.0, 4.0]), scale=5.0)
        array([3., 4.])
    """
    if rule is None:
        return lambda rule: custom_rule(rule, kind=kind)
    name, signature, count = _checked(rule, kind)

    def function(*args: Any, **statics: Any) -> Any:
        if len(args) == len(signature.parameters) == count:
            return apply(name, kind, lambda run, *x: rule(*x), args, reads=Reads(rule))
        bound = signature.bind(*args, **statics)
        bound.apply_defaults()
        others, names = bound.args[count:], tuple(bound.kwargs)

        def body(run: Run, *operands: Any) -> Any:
            by_name = dict(zip(names, run.statics[len(others) :], strict=True))
            return rule(*operands, *run.statics[: len(others)], **by_name)

        every = (*others, *bound.kwargs.values())
        operands = bound.args[:count]
        return apply(name, kind, body, operands, statics=every, reads=Reads(rule))

    return functools.update_wrapper(function, rule)


def _checked(rule: Function, kind: str) -> tuple[str, inspect.Signature, int]:
    """A rule's name, its signature and how many operands it has."""
    name = getattr(rule, "__name__", "custom_rule")
    if kind not in _KINDS or kind == "stated":
        raise ArgumentError(
            f"custom_rule: there is no kind {kind!r}. Choose one of "
            f"{', '.join(k for k in _KINDS if k != 'stated')}."
        )
    if not inspect.isgeneratorfunction(rule):
        raise RuleError(
            f"{name}: a rule is a generator function. Yield the result to the rest of "
            f"the program, then one contribution for each operand."
        )
    signature = inspect.signature(rule)
    only = inspect.Parameter.POSITIONAL_ONLY
    count = sum(p.kind is only for p in signature.parameters.values())
    if not count:
        raise RuleError(
            f"{name}: the rule has no differentiable operand. Put '/' behind the "
            f"parameters that it differentiates: def {name}(x, /)."
        )
    return name, signature, count
