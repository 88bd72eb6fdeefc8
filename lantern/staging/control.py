"""The combinator IF, and how values of two ways are joined.

On plain values they run: IF chooses, WHILE and LOOP loop. On staged values they become
nodes with blocks. Each stages what is handed to it once for each way that the program
may go, and joins what comes out, leaf by leaf.

References:
    Wang et al. (2019), section 4.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import StagingError
from lantern.staging.changes import Changes, Way
from lantern.staging.ir import (
    Block,
    Node,
    building,
    constant,
    current,
    emit,
    results_of,
    stop,
)
from lantern.staging.operations import apply
from lantern.staging.staged import is_staged, node_of, staged
from lantern.staging.structure import (
    Signal,
    describe,
    is_undefined,
    leaves_of,
    note_copied,
    renewed,
    same,
    unknown_of,
)
from lantern.staging.types import BOOL, FLOAT, INT, NOTHING, Type, join, type_of

__all__ = [
    "IF",
    "Signal",
    "StoppedError",
    "UnknownResultError",
    "converted",
    "filler",
    "flag_of",
    "has_staged",
    "joinable",
    "truth",
]


class UnknownResultError(Signal):
    """A function is called whose result is not known yet: it is being staged."""


class StoppedError(Exception):
    """Each way that the program may go ends in an exception."""


_OURS = (StagingError, Signal, RecursionError)


Align = Callable[[list[Any]], None]


def IF(
    condition: Any,
    then: Callable[[], Any],
    otherwise: Callable[[], Any],
    align: Align | None = None,
) -> Any:
    """One of two results.

    Args:
        condition: a plain or a staged truth value, or number.
        then: a function without arguments.
        otherwise: another one.
        align: gets the list of both results, if each has one, before they are joined.

    Returns:
        What the chosen function returns. If the condition is staged, both are staged,
        and their results must have one structure.

    Raises:
        StagingError: if the results are not alike.

    Example:
        >>> from lantern.staging import IF, stage
        >>> f = stage(lambda x: IF(x > 0.0, lambda: x, lambda: -x), 1.0)
        >>> f(2.0), f(-3.0)
        (2.0, 3.0)

    References:
        Wang et al. (2019), section 4.2.
    """
    if not is_staged(condition):
        return then() if condition else otherwise()
    node = truth(condition)
    if node.op == "constant":
        return then() if node.static.value else otherwise()
    ways, results = [], []
    for branch in (then, otherwise):
        way = Way()
        ways.append(way)
        results.append(way.staged(partial(_staged_in, way.block, branch)))
    ended = [x is UnknownResultError or x is StoppedError for x in results]
    if align is not None and not any(ended):
        align(results)
    blocks = [way.block for way in ways]
    if all(ended) or not any(way.changes for way in ways):
        return _joined(node, blocks, results)
    changes = Changes(ways, ended)
    for i in (0, 1):
        results[i] = results[i] if ended[i] else (results[i], changes.values[i])
    found, values = _joined(node, blocks, results)
    changes.put(values)
    return found


def joinable(x: Any, y: Any) -> bool:
    """Whether two values can be the result of one branch."""
    if describe(x) != describe(y):
        return False
    for one, other in zip(leaves_of(x), leaves_of(y), strict=True):
        if not _is_same(one, other):
            try:
                _common_type("if", one, other)
            except StagingError:
                return False
    return True


def truth(condition: Any) -> Node:
    """A staged value as a truth value."""
    node: Node = condition.node
    if node.type is BOOL:
        return node
    if not node.type.is_number:
        raise StagingError(
            f"if: the condition is {node.type}, not a number. Ask for one truth value."
        )
    found: Node = apply("not_equal", (node, node_of(0)))
    return found


def _staged_in(block: Block, branch: Callable[[], Any]) -> Any:
    """What a branch returns; what it cannot know, and whether it raises, is noted."""
    with building(block):
        try:
            return branch()
        except UnknownResultError:
            for function in current.unfinished:
                function.is_incomplete = True
            return UnknownResultError
        except StoppedError:
            stop("no way goes on")
            return StoppedError
        except _OURS:
            raise
        except Exception as error:
            stop(f"{type(error).__name__}: {error}")
            return StoppedError


def _joined(condition: Node, blocks: list[Block], results: list[Any]) -> Any:
    """The results of two branches as those of one node."""
    node = Node("if", (condition,), (), NOTHING, tuple(blocks))
    if results[0] is results[1] is StoppedError:
        _append(node)
        raise StoppedError
    if all(x is UnknownResultError or x is StoppedError for x in results):
        raise UnknownResultError
    for i in (0, 1):
        if results[i] is UnknownResultError or results[i] is StoppedError:
            results[i] = None
            leaves = leaves_of(results[1 - i])
            return _emit_if(node, results[1 - i], [leaves, leaves], missing=i)
    texts = [describe(x) for x in results]
    if texts[0] != texts[1]:
        raise StagingError(
            f"if: one way gives {texts[0]}, the other {texts[1]}. Return the same "
            f"structure on both."
        )
    note_copied(results[1])
    return _emit_if(node, results[0], [leaves_of(x) for x in results])


def _append(node: Node) -> None:
    block = current.blocks[-1]
    node.block, node.line, node.keeps = block, current.line, block.keeps
    block.nodes.append(node)


@between_turns
def _emit_if(
    node: Node, like: Any, leaves: list[list[Any]], missing: int | None = None
) -> Any:
    """Fill the branches' results, and give the node's, in the structure of one."""
    out: list[Any] = []
    places: list[int] = []
    types: list[Type] = []
    for x, y in zip(*leaves, strict=True):
        if is_undefined(x) or is_undefined(y):
            out.append(unknown_of(x, y))
            continue
        if _is_same(x, y) and (missing is None or not is_staged(x)):
            out.append(x)
            continue
        known = _common_type("if", x, y)
        for i, leaf in enumerate((x, y)):
            block = node.blocks[i]
            with building(block):
                is_missing = i == missing and is_staged(leaf)
                value = filler(known) if is_missing else converted(leaf, known)
            block.results.append(value)
        places.append(len(out))
        types.append(known)
        out.append(None)
    loose = [
        i
        for i, known in enumerate(types)
        if known is FLOAT and any(block.results[i].loose for block in node.blocks)
    ]
    for block in node.blocks:
        with building(block):
            block.results += [flag_of(block.results[i]) for i in loose]
    _append(node)
    results = results_of(node, types + [BOOL] * len(loose))
    for k, i in enumerate(loose):
        results[i].loose, results[i].flag = True, results[len(types) + k]
    for place, result in zip(places, results, strict=False):
        i = result.static
        ways = [block.results[i] for block in node.blocks]
        result.example = next((x.example for x in ways if x.example is not None), None)
        out[place] = staged(result)
    return renewed(like, out)


def flag_of(x: Node) -> Node:
    """Whether a number that is staged as a float is an int of Python's."""
    if not x.loose:
        return constant(False, BOOL)
    if x.flag is None:
        raise StagingError(
            "a number is an int on one way and a float on another, and it is not known "
            "which. Write 0.0 for 0."
        )
    return x.flag


def _is_same(x: Any, y: Any) -> bool:
    if is_staged(x) and is_staged(y):
        return x.node is y.node
    return same(x, y)


def filler(known: Type) -> Node:
    """What stands where the program never comes."""
    if known.is_number:
        return constant({"float": 0.0, "int": 0, "bool": False}[known.kind], known)
    return emit("nothing", (), known)


def _common_type(where: str, x: Any, y: Any) -> Type:
    types = [leaf.node.type if is_staged(leaf) else type_of(leaf) for leaf in (x, y)]
    if types[0] is not None and types[1] is not None:
        known = join(types[0], types[1])
        if known is not None:
            return known
    names = [t or type(leaf).__name__ for t, leaf in zip(types, (x, y), strict=True)]
    raise StagingError(
        f"{where}: a value is {names[0]} on one way and {names[1]} on the other. Give "
        f"it one type."
    )


def converted(leaf: Any, known: Type) -> Node:
    """A leaf as a node of a type that it can have."""
    node = leaf.node if is_staged(leaf) and leaf.node.type == known else node_of(leaf)
    if node.type == known:
        return node
    if node.type is INT and known is FLOAT:
        marked = emit("loosened", (node,), FLOAT)
        marked.loose, marked.flag = True, constant(True, BOOL)
        return marked
    raise StagingError(f"a value is {node.type} on one way and {known} on another.")


def has_staged(tree: Any) -> bool:
    """Whether anything in a structure is known only when the program runs."""
    return any(map(is_staged, leaves_of(tree)))
