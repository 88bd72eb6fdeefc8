"""Programs as texts: each node a line, each block indented."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lantern.errors import OptionError
from lantern.staging.closures import functions_of
from lantern.staging.cps import cps_of
from lantern.staging.ir import Block, Function, Node
from lantern.staging.operations import Hole, Options
from lantern.staging.program import Program, stage

__all__ = ["Listing", "show_adjoint", "show_ir"]


class Listing(str):
    """A text that is shown as it is, lines and all."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def show_ir(
    f: Callable[..., Any] | Program,
    *args: Any,
    style: str = "blocks",
    trees: Sequence[int] = (),
) -> Listing:
    """The program that a function is, as a text.

    Args:
        f: a function, or a program that is staged already.
        args: example arguments; none for a program.
        style: "blocks", or "cps": its gradient by the first argument in
            continuation-passing style, as the Lantern paper writes it.
        trees: as for ``stage``.

    Example:
        >>> show_ir(lambda x: x * x + 1.0, 3.0)
        def <lambda>(%0: float) -> float
          %1 = multiply %0 %0
          %2 = add %1 1.0
          return %2

    References:
        Wang et al. (2019), section 4.
    """
    program = f if isinstance(f, Program) else stage(f, *args, trees=trees)
    if style == "cps":
        return Listing(cps_of(program.function))
    if style != "blocks":
        raise OptionError(
            f'show_ir: there is no style {style!r}. Choose "blocks" or "cps".'
        )
    return Listing("\n".join(_functions(program.function)))


def show_adjoint(
    f: Callable[..., Any] | Program,
    *args: Any,
    argnums: int | Sequence[int] = 0,
    trees: Sequence[int] = (),
) -> Listing:
    """The program of a gradient, as a text.

    Example:
        >>> import lantern
        >>> show_adjoint(lambda x: lantern.sin(x), 3.0)
        def grad_of_<lambda>(%0: float) -> float
          %1 = sin %0
          %2 = cos %0
          %3 = sure %2
          return %3

    References:
        Innes (2018), "Don't unroll adjoint", section 3.
    """
    program = f if isinstance(f, Program) else stage(f, *args, trees=trees)
    return show_ir(program.grad(argnums))


def _functions(main: Function) -> Iterator[str]:
    for f in functions_of(main):
        names: dict[Node, str] = {}
        yield f"def {f.name}({_parameters(f.body, names)}) -> {_types(f)}"
        yield from _block(f.body, names, "  ", "return")


def _types(f: Function) -> str:
    return ", ".join(str(x.type) for x in f.body.results) or "nothing"


def _parameters(block: Block, names: dict[Node, str]) -> str:
    return ", ".join(f"{_new(x, names)}: {x.type}" for x in block.parameters)


def _new(node: Node, names: dict[Node, str]) -> str:
    names[node] = f"%{len(names)}"
    return names[node]


def _name(node: Node, names: dict[Node, str]) -> str:
    if node.op == "constant":
        x = node.static.value
        return repr(x) if node.type.is_number else str(node.type)
    return names.get(node) or _new(node, names)


def _names(nodes: Sequence[Node], names: dict[Node, str]) -> str:
    return ", ".join(_name(x, names) for x in nodes)


def _block(
    block: Block, names: dict[Node, str], indent: str, end: str
) -> Iterator[str]:
    """The lines of a block; the results of control flow stand before it."""
    results: dict[Node, list[Node]] = {}
    for node in block.nodes:
        if node.op == "result":
            results.setdefault(node.inputs[0], []).append(node)
    for out in results.values():
        out.sort(key=lambda node: node.static)
    for node in block.nodes:
        if node.op not in ("constant", "result"):
            out = results.get(node, [node] if node.type.kind != "nothing" else [])
            yield from _node(node, out, names, indent)
    if block.results and end:
        yield f"{indent}{end} {_names(block.results, names)}"


def _node(
    node: Node, out: list[Node], names: dict[Node, str], indent: str
) -> Iterator[str]:
    inner = indent + "    "
    if node.op == "if":
        yield _left(indent, out, names) + f"if {_name(node.inputs[0], names)}"
        for word, block in zip(("then", "else"), node.blocks, strict=True):
            yield f"{indent}  {word}"
            yield from _block(block, names, inner, "->")
    elif node.op == "loop":
        header, body = node.blocks
        starts = _starts(header.parameters, node.inputs, names)
        yield _left(indent, out, names) + f"loop {starts}"
        yield from _block(header, names, inner, "while")
        yield f"{indent}  do"
        yield from _block(body, names, inner, "->")
    elif node.op == "back":
        tapes = node.inputs[: len(node.static.read)]
        block = node.blocks[0]
        slots = sum(node.static.read)
        read = ", ".join(_new(x, names) for x in block.parameters[:slots])
        state, inits = block.parameters[slots:], node.inputs[len(tapes) :]
        starts = _starts(state, inits, names)
        yield _left(indent, out, names) + (
            f"back {_names(tapes, names)} [{read}] {starts}".rstrip()
        )
        yield from _block(block, names, inner, "->")
    else:
        yield _left(indent, out, names) + _operation(node, names)


def _starts(
    parameters: Sequence[Node], inputs: Sequence[Node], names: dict[Node, str]
) -> str:
    pairs = zip(parameters, inputs, strict=True)
    return ", ".join(f"{_new(p, names)} = {_name(x, names)}" for p, x in pairs)


def _left(indent: str, out: list[Node], names: dict[Node, str]) -> str:
    return f"{indent}{_names(out, names)} = " if out else indent


def _operation(node: Node, names: dict[Node, str]) -> str:
    inputs = [_name(x, names) for x in node.inputs]
    static = node.static
    if type(static) is Options:
        args = [_argument(x, inputs) for x in static.args]
        args += [f"{k}={_argument(x, inputs)}" for k, x in static.kwargs]
        return " ".join([node.op, *args])
    if isinstance(static, Function):
        return " ".join([node.op, static.name, *inputs])
    more = [] if static == () else [_static(node)]
    return " ".join([node.op, *inputs, *more])


def _static(node: Node) -> str:
    if node.op in ("get", "field"):
        return repr(node.static[0])
    if node.op == "unpack":
        return str(node.static.place)
    return str(node.static)


def _argument(x: Any, inputs: list[str]) -> str:
    if type(x) is Hole:
        return inputs[x.place]
    if isinstance(x, list | tuple):
        return f"[{', '.join(_argument(y, inputs) for y in x)}]"
    return repr(x)
