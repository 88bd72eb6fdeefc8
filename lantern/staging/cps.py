"""Gradients in continuation-passing style, written as the Lantern paper writes them.

Every operation is a line on the way there, the rest of the program, and its rule's
contributions on the way back, in that order: so the rest of the program is a
continuation, which control flow names and calls.

References:
    Wang et al. (2019), sections 4.1 to 4.4 and figure 14.
"""

from collections.abc import Callable, Sequence

from lantern.staging.activity import Activity
from lantern.staging.ir import Block, Function, Node, building
from lantern.staging.rules import PASSED_ON, dense, operands_of, start
from lantern.staging.staged import node_of, staged

__all__ = ["cps_of"]

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
    "floor_divide": "//",
    "pow": "**",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
Rest = Callable[[], None]


def cps_of(main: Function) -> str:
    """The gradient of a program by its first parameter, as a text."""
    return _Printer(main).text()


class _Printer:
    """The lines of a listing, and the names of nodes and of their cotangents."""

    def __init__(self, main: Function) -> None:
        self.main = main
        self.active = Activity(main, main.body.parameters[:1])
        self.lines: list[str] = []
        self.indent = "  "
        self.names: dict[Node, str] = {}
        self.refs: dict[Node, str] = {}
        self.functions: dict[Function, str] = {}
        self.continuations = self.count = 0

    def text(self) -> str:
        """The whole listing."""
        main = self.main
        parameters = []
        for i, p in enumerate(main.body.parameters):
            kind = p.type.kind
            self.names[p] = "in" if i == 0 else kind if kind == "tree" else f"in{i}"
            parameters.append(self.names[p])
        first = main.body.parameters[0]
        self.refs[first] = "d0"
        self.line(f"def {main.name}({', '.join(parameters)}) = {{", "")
        self.line("d0 = ref 0")

        def end() -> None:
            self.line(f"{self.ref(main.body.results[0])} := 1.0")

        self.block(main.body, end)
        self.line("! d0")
        self.line("}", "")
        return "\n".join(self.lines)

    def line(self, text: str, indent: str | None = None) -> None:
        """One more line."""
        self.lines.append((self.indent if indent is None else indent) + text)

    def inside(self, body: Rest) -> None:
        """The lines of something in braces."""
        before, self.indent = self.indent, self.indent + "  "
        body()
        self.indent = before

    def name(self, node: Node) -> str:
        """A node's name; an expression, of one that has none."""
        if node in self.names:
            return self.names[node]
        return self.expression(node, nested=True)

    def ref(self, node: Node) -> str:
        """The name of a node's cotangent."""
        return self.refs.get(node, "_")

    def new(self, node: Node, letter: str = "v") -> str:
        """Name a node, and its cotangent if it has one."""
        number = self.count = self.count + 1
        self.names[node] = f"{letter}{number}"
        if node in self.active:
            self.refs[node] = f"d{number}"
        return self.names[node]

    def pair(self, node: Node) -> str:
        """A value and, if it has one, its cotangent, as they are handed on."""
        if node in self.active and node in self.refs:
            return f"{self.name(node)}, {self.refs[node]}"
        return self.name(node)

    def expression(self, node: Node, nested: bool = False) -> str:
        """What computes a node, in the notation of arithmetic."""
        if node.op == "constant":
            return f"{node.static.value!r}"
        inputs = [self.name(x) for x in node.inputs]
        if node.op in ("get", "field"):
            return f"{inputs[0]}.{node.static[0]}"
        if node.op == "negative":
            text = f"- {inputs[0]}"
        elif node.op == "is_none":
            text = f"{inputs[0]}.isEmpty"
        elif node.op in _INFIX:
            text = f" {_INFIX[node.op]} ".join(inputs)
        else:
            return f"{node.op}({', '.join(inputs)})"
        return f"({text})" if nested else text

    def block(self, block: Block, end: Rest) -> None:
        """A block's nodes there and back, with what comes behind it in the middle."""
        self.nodes(block.nodes, end)

    def nodes(self, nodes: Sequence[Node], end: Rest) -> None:
        """Nodes there, the rest of the program, and the nodes back."""
        while nodes and nodes[0].op == "constant":
            nodes = nodes[1:]
        if not nodes:
            end()
            return
        node, rest = nodes[0], nodes[1:]
        results = []
        while rest and rest[0].op == "result":
            results.append(rest[0])
            rest = rest[1:]

        def go_on() -> None:
            self.nodes(rest, end)

        if node.op in ("if", "loop", "call"):
            getattr(self, f"print_{node.op}")(node, results, go_on)
        else:
            self.print_operation(node, go_on)

    def print_operation(self, node: Node, rest: Rest) -> None:
        """One operation there, the rest, and its contributions."""
        text = self.expression(node)
        is_active = node in self.active
        name = self.new(node)
        self.line(f"{name} = {text}" + (f"; {self.ref(node)} = ref 0" * is_active))
        rest()
        if is_active:
            for x, x_bar in self.contributions(node):
                self.line(f"{self.ref(x)} += {self.expression(x_bar)}")

    def contributions(self, node: Node) -> list[tuple[Node, Node]]:
        """What the operands of an active node receive, as nodes."""
        scratch = Block("function")
        bar = scratch.parameter(node.type)
        self.names[bar] = f"! {self.ref(node)}"
        found = []
        with building(scratch):
            if node.op in PASSED_ON:
                return [(node.inputs[0], bar)]
            value, rule = start(node, list(node.inputs))
            self.names[node_of(value)] = self.names[node]
            operands = operands_of(node)
            while operands and operands[-1] not in self.active.nodes:
                operands.pop()
            for x in operands:
                x_bar = rule.send(staged(bar))
                if x is not None and x in self.active:
                    found.append((x, node_of(dense(x_bar, x))))
        return found

    def continuation(self, results: list[Node], rest: Rest) -> str:
        """Define the rest of the program as a function of some results; its name."""
        number = self.continuations = self.continuations + 1
        name = f"k{number}"
        self.print_function(f"{name} =", results, [], rest)
        return name

    def print_function(
        self, start: str, parameters: list[Node], more: list[str], body: Rest
    ) -> None:
        """A function of values and their cotangents."""
        for x in parameters:
            self.new(x, "x")
        names = [self.pair(x) for x in parameters] + more
        self.line(f"{start} ({', '.join(names)}) => {{")
        self.inside(body)
        self.line("}")

    def print_if(self, node: Node, results: list[Node], rest: Rest) -> None:
        """A branch: the rest of the program is a function, called from both."""
        k = self.continuation(results, rest)
        condition = self.name(node.inputs[0])
        for word, block in zip(
            (f"if ({condition}) {{", "} else {"), node.blocks, strict=True
        ):
            self.line(word)

            def end(block: Block = block) -> None:
                given = [block.results[x.static] for x in results]
                self.line(f"{k}({', '.join(map(self.pair, given))})")

            self.inside(lambda block=block, end=end: self.block(block, end))  # type: ignore[misc]
        self.line("}")

    def print_loop(self, node: Node, results: list[Node], rest: Rest) -> None:
        """A loop: a function that calls itself, and else the rest of the program."""
        header, body = node.blocks
        number = self.continuations = self.continuations + 1
        name = f"loop{number}"

        def again() -> None:
            self.line(f"{name}({', '.join(map(self.pair, body.results))})")

        def test() -> None:
            self.line(f"if ({self.name(header.results[0])}) {{")
            self.inside(lambda: self.block(body, again))
            self.line("} else {")

            def leave() -> None:
                for x in results:
                    p = header.parameters[x.static]
                    self.names[x] = self.names[p]
                    if p in self.refs:
                        self.refs[x] = self.refs[p]
                rest()

            self.inside(leave)
            self.line("}")

        self.print_function(
            f"def {name} =", header.parameters, [], lambda: self.block(header, test)
        )
        self.line(f"{name}({', '.join(map(self.pair, node.inputs))})")

    def print_call(self, node: Node, results: list[Node], rest: Rest) -> None:
        """A call: the rest of the program is a further argument."""
        f = node.static
        if f not in self.functions:
            self.functions[f] = f"f{len(self.functions) + 1}"

            def end() -> None:
                self.line(f"k0({', '.join(map(self.pair, f.body.results))})")

            self.print_function(
                f"def {self.functions[f]} =",
                f.body.parameters,
                ["k0"],
                lambda: self.block(f.body, end),
            )
        k = self.continuation(results, rest)
        arguments = [*map(self.pair, node.inputs), k]
        self.line(f"{self.functions[f]}({', '.join(arguments)})")
