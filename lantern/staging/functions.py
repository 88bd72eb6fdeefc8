"""Functions of the representation: FUN, which may call itself, and TREE made of it.

References:
    Wang et al. (2019), section 4.4.
"""

from collections.abc import Callable, Sequence
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import StagingError
from lantern.staging.control import (
    IF,
    UnknownResultError,
    flag_of,
    has_staged,
)
from lantern.staging.ir import (
    Block,
    Function,
    Node,
    building,
    current,
    emit,
    results_of,
)
from lantern.staging.staged import is_staged, node_of, staged
from lantern.staging.structure import (
    contents_of,
    describe,
    is_number,
    leaves_of,
    note_copied,
    renewed,
)
from lantern.staging.trees import StagedTree
from lantern.staging.types import BOOL, NOTHING

__all__ = ["FUN", "TREE", "call"]

_ATTEMPTS = 4


def FUN(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that stays one when it is staged, and may call itself.

    Args:
        f: takes and returns numbers, trees and structures of them.

    Returns:
        A function of the same arguments. Called with staged ones it is a node; its body
        is staged once for each choice of their types.

    Example:
        >>> from lantern.staging import FUN, IF, stage
        >>> @FUN
        ... def power(x, n):
        ...     return IF(n > 0, lambda: x * power(x, n - 1), lambda: 1.0)
        >>> stage(power, 2.0, 3)(2.0, 10)
        1024.0

    References:
        Wang et al. (2019), section 4.4.
    """

    def function(*args: Any) -> Any:
        if not current.blocks or not any(map(has_staged, args)):
            return f(*args)
        return call(f, f, args)

    function.__name__ = getattr(f, "__name__", "f")
    function.__wrapped__ = f  # type: ignore[attr-defined]  # as functools.wraps
    return function


def call(key: Any, f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """A call of a function of the representation, staged when it is first called."""
    note_copied(args)
    leaves, text = leaves_of(args), describe(args)
    places = [
        i for i, x in enumerate(leaves) if is_staged(x) or type(x) in (float, int)
    ]
    inputs = [
        x.node if is_staged(x) else node_of(x) for x in map(leaves.__getitem__, places)
    ]
    rest = tuple(repr(x) for i, x in enumerate(leaves) if i not in places)
    whole = key, text, tuple((x.type, x.loose) for x in inputs), rest
    inside = [x for x in current.unfinished if x.made_of == whole]
    if inside:  # it calls itself, and changes nothing that it has not made
        function = inside[-1]
    else:
        others = [x for i, x in enumerate(leaves) if i not in places]
        now = whole, contents_of([key, *others])
        function = current.functions.get(now) or _defined(now, f, args, places, inputs)
    if function.types is None:
        raise UnknownResultError
    flags = [flag_of(x) for x in inputs if x.loose]
    node = emit("call", [*inputs, *flags], NOTHING, static=function)
    values = iter(results_of(node, function.types))
    out = [staged(next(values)) if x is None else x for x in function.structure[1]]
    return renewed(function.structure[0], out)


@between_turns
def _defined(
    whole: Any,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    places: list[int],
    inputs: list[Node],
) -> Function:
    """A function; its body is staged again if a call of itself had to be left out.

    If that was a call of another unfinished function, it is forgotten again, to be
    staged anew with the other one.
    """
    function = Function(getattr(f, "__name__", "f"))
    function.made_of = whole[0]
    current.functions[whole] = function
    current.unfinished.append(function)
    try:
        for _ in range(_ATTEMPTS):
            function.is_incomplete = False
            function.body = Block("function")
            _define_body(function, f, args, places, inputs)
            if not function.is_incomplete:
                return function
        if len(current.unfinished) > 1:
            del current.functions[whole]
            return function
    except BaseException:
        del current.functions[whole]
        raise
    finally:
        current.unfinished.remove(function)
    raise StagingError(
        f"{function.name}: no type can be found for what it returns. Let one way "
        f"through it return without calling itself."
    )


@between_turns
def _define_body(
    function: Function,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    places: list[int],
    inputs: list[Node],
) -> None:
    leaves = leaves_of(args)
    for i, x in zip(places, inputs, strict=True):
        leaves[i] = staged(function.body.parameter(x.type, x.example))
    for i, x in zip(places, inputs, strict=True):
        if x.loose:
            p = leaves[i].node
            p.loose, p.flag = True, function.body.parameter(BOOL)
    with building(function.body):
        z = f(*renewed(args, leaves))
        note_copied(z)
        out = leaves_of(z)
        kept: list[Any] = [None if is_staged(x) or is_number(x) else x for x in out]
        results = [
            x.node if is_staged(x) else node_of(x)
            for x, k in zip(out, kept, strict=True)
            if k is None
        ]
    types = [node.type for node in results]
    if function.types is not None and types != function.types:
        function.is_incomplete = True
        results = _widened(function, results)
        types = [node.type for node in results]
    function.body.results, function.types = results, types
    function.structure = z, kept


def _widened(function: Function, results: list[Node]) -> list[Node]:
    raise StagingError(
        f"{function.name}: it returns {', '.join(str(x.type) for x in results)} on one "
        f"way and {', '.join(map(str, function.types or ()))} on another. Return one "
        f"type: 0.0 for 0."
    )


def TREE(init: Any, tree: Any, combine: Callable[[Any, Any, Any], Any]) -> Any:
    """A value computed over a tree, from its leaves to its root.

    Args:
        init: the value of an empty tree.
        tree: None, or a node: an object with ``left`` and ``right``, or a tuple that
            begins with them.
        combine: makes a node's value from its left child's, its right child's, and the
            node.

    Example:
        >>> from lantern.staging import TREE, stage
        >>> leaf = (None, None, 3.0)
        >>> TREE(1.0, (leaf, leaf, 2.0), lambda left, right, t: left * right * t[2])
        18.0

    References:
        Wang et al. (2019), section 4.4.
    """

    def value(node: Any) -> Any:
        def inner() -> Any:
            left, right = children(node)
            return combine(go(left), go(right), node)

        return IF(is_empty(node), lambda: init, inner)

    go = FUN(value)
    return go(tree)


def is_empty(node: Any) -> Any:
    """Whether a tree is None."""
    return node.is_none() if isinstance(node, StagedTree) else node is None


def children(node: Any) -> Sequence[Any]:
    """The two subtrees of a node."""
    if hasattr(node, "left"):
        return node.left, node.right
    return node[0], node[1]
