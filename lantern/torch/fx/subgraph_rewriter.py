"""Parts of a program exchanged for others, wherever they occur in it."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lantern.blocks import between_turns
from lantern.torch.fx.graph import Graph
from lantern.torch.fx.graph_module import GraphModule, _copy_attr, symbolic_trace
from lantern.torch.fx.node import Node, map_arg

__all__ = ["Match", "replace_pattern"]

_Known = dict[Node, Any]


class Match(NamedTuple):
    """An occurrence of a pattern.

    Attributes:
        anchor: the pattern's step, of its result, from which it was found.
        nodes_map: the program's steps by the pattern's.
    """

    anchor: Node
    nodes_map: _Known


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Exchange each occurrence of a pattern for another program of its arguments.

    A pattern's arguments stand for anything. What it computes on the way must not be
    used outside of it. Occurrences do not overlap: the first ones count.

    Args:
        gm: the module that is changed.
        pattern: what is looked for.
        replacement: what comes in its place, of as many arguments and results.

    Returns:
        What was found.

    Example:
        >>> import lantern.torch as torch
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x.neg()) + 1)
        >>> found = torch.fx.replace_pattern(
        ...     traced, lambda y: torch.relu(y.neg()), lambda y: torch.sigmoid(y)
        ... )
        >>> len(found), traced(torch.zeros(1))
        (1, tensor([1.5000]))
    """
    wanted, given = _written(pattern), _written(replacement)
    results = _results(wanted.graph)
    found: list[Match] = []
    taken: set[Any] = set()
    for node in gm.graph.nodes:
        for known in _occurrences(results, [node], gm.graph.nodes, {}):
            inner = {n for p, n in known.items() if p.op != "placeholder"}
            if inner.isdisjoint(taken) and _closed(known, results, inner):
                found.append(Match(results[0], known))
                taken |= inner
                break
    for node in given.graph.nodes if found else ():
        if node.op in ("call_module", "get_attr"):
            _copy_attr(given, gm, node.target)
    now: dict[Any, Any] = {}
    for match in found:
        _exchange(gm.graph, match.nodes_map, wanted.graph, given.graph, now)
    return found


def _written(program: Any) -> GraphModule:
    """A program as steps."""
    if isinstance(program, Graph):
        return GraphModule(program.owning_module or {}, program)
    return program if isinstance(program, GraphModule) else symbolic_trace(program)


def _results(graph: Graph) -> list[Any]:
    """The steps whose results are a program's."""
    return graph.find_nodes(op="output")[0].all_input_nodes


def _occurrences(
    results: list[Any], here: list[Node], nodes: list[Node], known: _Known
) -> Iterator[_Known]:
    """Which steps a pattern's may be, the first of its results among some."""
    if not results:
        yield known
    for node in here if results else ():
        found = _one(results[0], node, known)
        if found is not None:
            yield from _occurrences(results[1:], nodes, nodes, found)


def _one(p: Node, n: Any, known: _Known) -> _Known | None:
    """What is known once a pattern's step, or argument, is taken for a value."""
    if p in known:
        return known if known[p] is n or known[p] == n else None
    if p.op == "placeholder":
        return {**known, p: n}
    if not isinstance(n, Node) or (p.op, p.target) != (n.op, n.target):
        return None
    if any(n is other for q, other in known.items() if q.op != "placeholder"):
        return None
    return _same(_arguments(p), _arguments(n), {**known, p: n})


def _arguments(n: Node) -> Any:
    """A step's arguments, by their names where these are known."""
    if n.op == "call_function":
        try:
            return inspect.signature(n.target).bind(*n.args, **n.kwargs).arguments
        except (TypeError, ValueError):
            pass
    return {"": n.args, **n.kwargs}


def _same(a: Any, b: Any, known: _Known | None) -> _Known | None:
    """What is known once arguments of a pattern are taken for others."""
    if known is None or isinstance(a, Node):
        return known and _one(a, b, known)
    if isinstance(a, slice) and isinstance(b, slice):
        a, b = ((x.start, x.stop, x.step) for x in (a, b))
    if isinstance(a, dict) and isinstance(b, dict) and list(a) == list(b):
        a, b = list(a.values()), list(b.values())
    if isinstance(a, list | tuple) and type(a) is type(b) and len(a) == len(b):
        for x, y in zip(a, b, strict=True):
            known = _same(x, y, known)
        return known
    return known if type(a) is type(b) and a == b else None


def _closed(known: _Known, results: list[Any], inner: set[Any]) -> bool:
    """Whether only a pattern's results are used outside of it."""
    return all(
        inner.issuperset(n.users)
        for p, n in known.items()
        if p.op != "placeholder" and p not in results
    )


@between_turns
def _exchange(
    graph: Graph, known: _Known, wanted: Graph, given: Graph, now: dict[Any, Any]
) -> None:
    """Exchange one occurrence.

    Args:
        graph: the program.
        known: its steps by the pattern's.
        wanted: the pattern.
        given: what comes in its place.
        now: what has come in the place of steps before.
    """
    before, after = (g.find_nodes(op="placeholder") for g in (wanted, given))
    pairs = zip(after, before, strict=True)
    values = {
        a: now.get(n, n) if isinstance(n := known[b], Node) else n for a, b in pairs
    }
    old = [known[p] for p in _results(wanted)]
    inner = {n for p, n in known.items() if p.op != "placeholder"}
    users = {user for n in old for user in n.users} - inner
    place = next((n for n in graph.nodes if n in users), None)
    last = max(old, key=graph.list.index)
    where = graph.inserting_before(place) if place else graph.inserting_after(last)
    new: list[Any] = []
    with where:
        map_arg((graph.graph_copy(given, values),), new.append)
    for x, y in zip(old, new, strict=True):
        x.replace_all_uses_with(y)
        now[x] = y
    for n in reversed(graph.nodes):
        if n in inner:
            graph.erase_node(n)
