"""Functions without free variables: what a body uses from outside becomes a parameter.

The only file that knows which values a function may use: after ``close`` they are its
parameters, its constants, and what it computes.
"""

from lantern.staging.ir import Block, Function, Node, walk

__all__ = ["close", "functions_of", "substitute", "used_in", "walk_all"]


def functions_of(main: Function) -> list[Function]:
    """A function and all those that are called from it."""
    found = [main]
    for function in found:
        for node in walk(function.body):
            if node.op == "call" and node.static not in found:
                found.append(node.static)
    return found


def used_in(block: Block) -> list[Node]:
    """What nodes in a block, and in those inside it, use, and what leaves them."""
    found: list[Node] = []
    for node in block.nodes:
        found += node.inputs
        for inside in node.blocks:
            found += used_in(inside)
    return found + block.results


def substitute(block: Block, new: dict[Node, Node]) -> None:
    """Use other nodes in a block, and in those inside it, in place of some."""
    if not new:
        return
    for node in block.nodes:
        if not new.keys().isdisjoint(node.inputs):
            node.inputs = tuple([new.get(x, x) for x in node.inputs])
        for inside in node.blocks:
            substitute(inside, new)
    block.results = [new.get(x, x) for x in block.results]


def close(main: Function) -> None:
    """Give all functions parameters for what they use from outside."""
    functions = [f for f in functions_of(main)[1:] if not f.is_closed]
    if not functions:
        return
    own = {f: walk_all(f) for f in functions}
    free: dict[Function, dict[Node, None]] = {f: {} for f in functions}
    for f in functions:
        free[f] = {x: None for x in used_in(f.body) if x not in own[f]}
    changed = True
    while changed:
        changed = False
        for f in functions:
            for node in walk(f.body):
                if node.op == "call" and node.static in free:
                    more = [x for x in free[node.static] if x not in own[f]]
                    if any(x not in free[f] for x in more):
                        free[f].update(dict.fromkeys(more))
                        changed = True
    for f in functions:
        _give_parameters(f, list(free[f]), functions)
    for f in (main, *functions):
        _give_arguments(f)


def walk_all(function: Function) -> set[Node]:
    """Everything that is defined in a function: its parameters and its nodes."""
    found = set(walk(function.body)) | set(function.body.parameters)
    for node in walk(function.body):
        for block in node.blocks:
            found.update(block.parameters)
    return found


def _give_parameters(f: Function, free: list[Node], functions: list[Function]) -> None:
    f.captured = free
    f.inside = {}
    for x in free:
        p = f.body.parameter(x.type, x.example)
        p.loose = x.loose
        f.inside[x] = p
    substitute(f.body, f.inside)


def _give_arguments(f: Function) -> None:
    for node in walk(f.body):
        if node.op == "call":
            wanted = node.static.captured
            node.inputs += tuple(f.inside.get(x, x) for x in wanted)
