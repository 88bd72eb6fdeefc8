"""Ways back that are a matrix per turn, which the way there computes while it waits.

The cotangents before a turn are linear in those after it. Where each step of a turn
waits for the one before, a processor has time to spare on the way there, and on the way
back would wait as long again. So, for a state of a few floats, the turn's matrix is
computed on the way there, in vectors, and is what is saved. The way back is then a
product per turn; where it follows at once, the matrices are multiplied on the way
there, and nothing is saved. This adds the same terms up in another order: under
``exact`` it is not done.

References:
    Griewank and Walther (2008), section 10.2: "Preaccumulation".
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from lantern.staging.ir import CONTROL, Block, Function, Node, Tapes, never_raises
from lantern.staging.native.tapes import Origins, saved_on
from lantern.staging.native.text import literal
from lantern.staging.types import FLOAT, TAPE

__all__ = [
    "Columns",
    "Matrix",
    "Multiplied",
    "early",
    "loads",
    "matrices",
    "product",
    "vector_type",
]

MOST = 8
"""Floats of a state that stand side by side."""

FEW = 3
"""Columns of matrices that are multiplied on the way there: more take too long."""

WORTH = 24
"""Cycles that a turn has to become shorter by: else its order stays."""

_DELAYS = {
    **dict.fromkeys(
        (
            "constant result negative abs less less_equal greater greater_equal equal "
            "not_equal and or not xor where to_float loosened"
        ).split(),
        1,
    ),
    **dict.fromkeys(("add", "subtract"), 3),
    "multiply": 4,
    **dict.fromkeys(("divide", "ieee_divide", "sqrt", "math.sqrt"), 14),
}
"""How many cycles an operation takes until its value is there."""

_FUNCTION = 40
"""Cycles of a function, or of control flow."""


class Matrix(NamedTuple):
    """What a turn of a walk does to its state.

    Attributes:
        loop, tape: which tape of which loop the walk goes along.
        back: the walk.
        lanes: places in its state of what goes through the turns: the columns.
        sums: places of what is only added to.
        masks: for each place, the lanes that its row may have something in.
        early: what the loop there needs besides, and nobody has computed before it.
        is_next: whether the walk follows in the loop's block, has its tape alone, and
            has so few columns that the matrices are multiplied on the way there.
    """

    loop: Node
    tape: int
    back: Node
    lanes: tuple[int, ...]
    sums: frozenset[int]
    masks: tuple[frozenset[int], ...]
    early: tuple[Node, ...]
    is_next: bool

    @property
    def width(self) -> int:
        """How many floats a vector has."""
        return 1 << (len(self.masks) - 1).bit_length()

    @property
    def slots(self) -> int:
        """How many floats a turn has on the tape: the last vector may stand out."""
        n = len(self.masks)
        return n * len(self.lanes) + self.width - n


def matrices(f: Function, origins: Origins) -> list[Matrix]:
    """The walks of a function that are best taken as matrices."""
    if any(_leaves(x) for x in origins.nodes) or TAPE in _types(f.body.results):
        return []
    readers: dict[Any, list[Node]] = {}
    for node in origins.nodes:
        if node.op == "back":
            for tape in node.inputs[: len(node.static.read)]:
                readers.setdefault(origins.of_tape(tape), []).append(node)
    if None in readers:
        return []
    found = [
        _matrix(loop, k, walks[0], origins)
        for (loop, k), walks in readers.items()
        if len(walks) == 1
    ]
    return [x for x in found if x is not None]


def _types(nodes: Iterable[Node]) -> list[Any]:
    return [x.type for x in nodes]


def _leaves(node: Node) -> bool:
    """Whether a node takes a tape where no walk of this function is seen."""
    return node.op in ("call", "pack") and TAPE in _types(node.inputs)


def _matrix(loop: Node, tape: int, back: Node, origins: Origins) -> Matrix | None:
    """What a walk's turns are as a matrix, if they are one and it is worth it."""
    block = back.blocks[0]
    read = back.static.read
    state = block.parameters[read[0] :]
    if back.static != Tapes(read[:1]) or {FLOAT} != {
        *_types(state),
        *_types(block.results),
    }:
        return None
    sums = _sums(block, read[0])
    lanes = tuple(i for i in range(len(state)) if i not in sums)
    if not lanes or len(state) > MOST:
        return None
    masks: dict[Node, frozenset[int]] = {state[i]: frozenset() for i in sums}
    masks.update((state[i], frozenset([k])) for k, i in enumerate(lanes))
    if not all(_follow(x, masks) for x in block.nodes):
        return None
    none: frozenset[int] = frozenset()
    ends = [none if _is_zero(x) else masks.get(x) for x in block.results]
    before = _early(loop, block, origins)
    if None in ends or before is None or not _is_worth(loop, back, masks, lanes):
        return None
    every = tuple(x for x in ends if x is not None)
    is_next = len(lanes) <= FEW and _is_next(loop, back, origins)
    return Matrix(loop, tape, back, lanes, sums, every, before, is_next)


def _is_next(loop: Node, back: Node, origins: Origins) -> bool:
    """Whether a walk follows in a loop's block, and nobody else has the loop's tape."""
    if origins.places[loop][0] is not origins.places[back][0]:
        return False
    results = [x for x in origins.nodes if x.op == "result" and x.inputs[0] is loop]
    tapes = [x for x in results if x.type is TAPE]
    return len(loop.static.written) == 1 and origins.users_of(tapes) == [back]


def _sums(block: Block, start: int) -> frozenset[int]:
    """The places of the state that a turn only adds something to."""
    every = [x for node in block.nodes for x in node.inputs]
    uses = Counter(every + block.results)
    found = []
    for i, p in enumerate(block.parameters[start:]):
        x = block.results[i]
        while x is not p and x.op == "add" and uses[x] == 1:
            x = x.inputs[0]
        if x is p and uses[p] == 1:
            found.append(i)
    return frozenset(found)


_LEFT = CONTROL | {"sure", "stop"}
_LINEAR = frozenset({"divide", "ieee_divide", "negative"})


def _follow(node: Node, masks: dict[Node, frozenset[int]]) -> bool:
    """Note which lanes a node's value has; false if it is not linear in the state."""
    op, inputs = node.op, node.inputs
    if op == "constant":
        return True
    if op in _LEFT or not node.type.is_number:
        return False
    own = [masks[x] for x in inputs if x in masks]
    if not own:
        return node.static == () and all(x.type.is_number for x in inputs)
    if op == "add" or op == "subtract":
        linear = len(own) == 2
    elif op == "multiply":
        linear = len(own) == 1
    elif op == "where":
        linear = inputs[0] not in masks
        linear = linear and all(x in masks or _is_zero(x) for x in inputs[1:])
    else:
        linear = op in _LINEAR and inputs[0] in masks and len(own) == 1
    masks[node] = own[0] if len(own) == 1 else own[0].union(*own[1:])
    return linear and node.type is FLOAT


def _is_zero(x: Node) -> bool:
    return x.op == "constant" and x.static.value == 0.0


def _early(loop: Node, block: Block, origins: Origins) -> tuple[Node, ...] | None:
    """What is used from outside and known only after the loop; None if it must be."""
    inside = {*block.parameters, *block.nodes}
    found: dict[Node, None] = {}

    def look(x: Node) -> bool:
        x = origins.seen(loop, x)
        if x in found or origins.sees(loop, x):
            return True
        plain = x.type.is_number and x.static == () and never_raises(x)
        if x.op in CONTROL | {"parameter", "result"} or not plain:
            return False
        if not all(look(y) for y in x.inputs):
            return False
        found[x] = None
        return True

    used = [x for node in block.nodes for x in node.inputs if x not in inside]
    return tuple(found) if all(look(x) for x in used) else None


# What is worth it.


def _is_worth(
    loop: Node, back: Node, masks: dict[Node, frozenset[int]], lanes: tuple[int, ...]
) -> bool:
    """Whether turns become shorter by enough cycles, as far as it can be told."""
    there = [x for block in loop.blocks for x in block.nodes]
    starts = loop.blocks[0].parameters
    slow = _path(there, starts, loop.blocks[-1].results[: len(starts)])
    block = back.blocks[0]
    state = [block.parameters[back.static.read[0] + i] for i in lanes]
    again = _path(block.nodes, state, [block.results[i] for i in lanes])
    vectors = _vectors(block, masks) * (1 + len(lanes) // 5)
    before = max(slow, _work(there)) + max(again, _work(block.nodes))
    product = 4 + 3 * (len(lanes) - 1).bit_length()
    after = max(slow, _work(there) + vectors / 2) + product
    return before - after >= WORTH


def _vectors(block: Block, masks: dict[Node, frozenset[int]]) -> int:
    """The operations on vectors; the numbers that are brought into all lanes count."""
    own = [x for x in block.nodes if x in masks and x.op != "negative"]
    used = {y for x in own for y in x.inputs if y not in masks}
    return len(own) + sum(y.op != "constant" for y in used)


def _work(nodes: Iterable[Node]) -> float:
    """The cycles that operations take if none waits for another: two begin in each."""
    delays = [_DELAYS.get(x.op, _FUNCTION) for x in nodes]
    return sum([1 if x <= 4 else x for x in delays]) / 2


def _path(nodes: Iterable[Node], starts: Iterable[Node], ends: Iterable[Node]) -> int:
    """The most cycles from the state before a turn to the state after it."""
    far = dict.fromkeys(starts, 0)
    for node in nodes:
        own = [far[x] for x in node.inputs if x in far]
        if own:
            far[node] = max(own) + _DELAYS.get(node.op, _FUNCTION)
    return max((far.get(x, 0) for x in ends), default=0)


# The text.


def early(way: Any, matrix: Matrix) -> dict[Node, str]:
    """Before the loop, what its turns need and the program has only after it."""
    found: dict[Node, str] = {}
    for node in matrix.early:
        seen = [way.origins.seen(matrix.loop, x) for x in node.inputs]
        values = [found[x] if x in found else way.value(x) for x in seen]
        found[node] = way.scalars.compute(node, values)
    return found


_SIGNS = {"add": (False, False), "subtract": (False, True), "negative": (True,)}
"""Which operands are taken away."""


class Columns:
    """The columns of a turn's matrix, at the end of the turn there.

    A turn of the walk is linear, so that it can be gone through from its end: what
    becomes of a value, as a vector of the state after the turn, is the sum of what
    becomes of the values that use it. The way there comes to what is taken in the same
    order.

    Args:
        way: what writes the function.
        matrix: of the walk.
        known: what was computed before the loop.

    Attributes:
        needs: from which line on which numbered values of the turn are used.
        constants: vectors, and the names under which they are there before the loop.
    """

    def __init__(self, way: Any, matrix: Matrix, known: dict[Node, str]) -> None:
        self.constants: dict[str, str] = {}
        self.way, self.matrix = way, matrix
        self.let: Callable[[str], str] = way.text.let
        self.kind = vector_type(matrix)
        block = matrix.back.blocks[0]
        self.own, self.known = set(block.nodes), dict(known)
        saved = saved_on(matrix.loop, matrix.tape)
        self.saved = dict(zip(block.parameters, saved, strict=False))
        self.state = block.parameters[len(saved) :]
        self.linear = _dependent(block, self.state)
        self.totals: dict[Node, str] = {}
        self.minus: set[Node] = set()  # whose total stands for its negative
        for x in dict.fromkeys(block.results):
            lanes = [float(x is y) for y in block.results]
            lanes += [0.0] * (matrix.width - len(lanes))
            self.totals[x] = self._constant(lanes)
        self.splats: dict[str, str] = {}
        self.needs = [(0, 0)]
        for node in reversed(block.nodes):
            if node in self.linear and node in self.totals:
                self._hand_on(node, self.totals[node])

    def found(self) -> list[str]:
        """The columns, by their places."""
        columns = []
        for p in [self.state[i] for i in self.matrix.lanes]:
            z = self.totals.get(p, "zeroinitializer")
            columns.append(self._let("fneg", z) if p in self.minus else z)
        return columns

    def _hand_on(self, node: Node, z: str) -> None:
        """Add to what the operands of a node are part of."""
        op, minus = node.op, node in self.minus
        x, y, last = (*node.inputs, node, node)[:3]
        if op in _SIGNS:
            for one, sign in zip(node.inputs, _SIGNS[op], strict=True):
                self._give(one, z, minus != sign)
        elif op == "multiply":
            x, y = (x, y) if x in self.linear else (y, x)
            self._give(x, self._let("fmul", z, self._splat(y)), minus)
        elif op == "where":
            kind, test = self.kind, self._scalar(x)
            z, none = f"{kind} {z}", f"{kind} zeroinitializer"
            for one, ways in ((y, f"{z}, {none}"), (last, f"{none}, {z}")):
                if one in self.linear:
                    self._give(one, self.let(f"select i1 {test}, {ways}"), minus)
        else:
            if op == "divide":
                self.way.scalars.nonzero(self._number(y))
            self._give(x, self._let("fdiv", z, self._splat(y)), minus)

    def _let(self, op: str, *values: str) -> str:
        return self.let(f"{op} {self.kind} {', '.join(values)}")

    def _give(self, x: Any, z: str, minus: bool) -> None:
        total = self.totals.get(x)
        if total is None:
            self.totals[x] = z
            if minus:
                self.minus.add(x)
        elif minus == (x in self.minus):
            self.totals[x] = self._let("fadd", total, z)
        else:
            both = (total, z) if minus else (z, total)
            self.totals[x] = self._let("fsub", *both)
            self.minus.discard(x)

    def _scalar(self, x: Any) -> str:
        """A number that is the same in all lanes."""
        if x.op == "constant":
            return str(self.way.value(x))
        if x not in self.known:
            if x in self.own:
                values = [self._scalar(y) for y in x.inputs]
                self.known[x] = self.way.scalars.compute(x, values)
            else:
                there = self.saved.get(x) or self.way.origins.seen(self.matrix.loop, x)
                self.known[x] = str(self.way.value(there))
                if self.known[x].startswith("%t"):
                    number = int(self.known[x][2:])
                    self.needs.append((len(self.way.text.lines), number))
        return self.known[x]

    def _number(self, x: Any) -> str:
        return str(self.way.scalars.as_float(self._scalar(x), x.type))

    def _constant(self, xs: list[float]) -> str:
        if self.matrix.width == 1:
            return literal(xs[0])
        return self._named([literal(x) for x in xs])

    def _named(self, lanes: list[str]) -> str:
        """A vector of constants by its name: LLVM takes less time for that."""
        vector = f"<{', '.join([f'double {x}' for x in lanes])}>"
        if vector not in self.constants:
            self.constants[vector] = f"%{self.way.text.fresh('c')}"
        return self.constants[vector]

    def _splat(self, x: Any) -> str:
        """A number in all lanes."""
        value, width = self._number(x), self.matrix.width
        if width == 1:
            return value
        if value not in self.splats:
            if value.startswith("0x"):
                self.splats[value] = self._named([value] * width)
            else:
                one = f"insertelement {self.kind} poison, double {value}, i32 0"
                both = f"{self.kind} {self.let(one)}, {self.kind} poison"
                first = f"<{width} x i32> zeroinitializer"
                self.splats[value] = self.let(f"shufflevector {both}, {first}")
        return self.splats[value]


def _dependent(block: Block, state: list[Node]) -> set[Node]:
    """What depends on the state."""
    found = set(state)
    for node in block.nodes:
        if not found.isdisjoint(node.inputs):
            found.add(node)
    return found


def vector_type(matrix: Matrix) -> str:
    """LLVM's type of a column."""
    return "double" if matrix.width == 1 else f"<{matrix.width} x double>"


class Multiplied:
    """The product of the matrices of the turns before, and the last one beside it.

    That one comes into it in the next turn, while that waits: what is multiplied then
    is there from the beginning, and may stand anywhere among the turn's lines.

    Attributes:
        phis: the columns of the product, then those of the last matrix.
        constants: vectors, and the names under which they are there before the loop.
    """

    def __init__(self, way: Any, matrix: Matrix) -> None:
        self.way, self.matrix = way, matrix
        self.let: Callable[[str], str] = way.text.let
        self.kind, self.width = vector_type(matrix), matrix.width
        count = len(matrix.lanes)
        self.phis = [f"%{way.text.fresh('v')}" for _ in range(2 * count)]
        self.columns, self.last = self.phis[:count], self.phis[count:]
        self.constants: dict[str, str] = {}

    def starts(self) -> list[tuple[str, str]]:
        """Before the first turn both are one."""
        found = []
        for lane in self.matrix.lanes:
            ones = [f"double {literal(float(i == lane))}" for i in range(self.width)]
            x = literal(1.0)
            if self.width > 1:
                x = f"%{self.way.text.fresh('c')}"
                self.constants[f"<{', '.join(ones)}>"] = x
            found.append((self.kind, x))
        return found * 2

    def product(self) -> list[str]:
        """The columns of the product with the last matrix."""
        lanes, found = self.matrix.lanes, []
        bits = [f"i1 {str(i in self.matrix.sums).lower()}" for i in range(self.width)]
        kept = f"select <{self.width} x i1> <{', '.join(bits)}>"
        for z in self.last:
            splats = [self.splat(z, i) for i in lanes]
            pairs = zip(self.columns, splats, strict=True)
            terms = [self.let(f"fmul {self.kind} {x}, {y}") for x, y in pairs]
            if self.matrix.sums:
                both = f"{self.kind} {z}, {self.kind} zeroinitializer"
                terms.append(self.let(f"{kept}, {both}"))
            found.append(_added(self.let, self.kind, terms))
        return found

    def splat(self, column: str, i: int) -> str:
        """A number of a column, in all lanes."""
        if self.width == 1:
            return column
        lanes = f"<{self.width} x i32> <{', '.join([f'i32 {i}'] * self.width)}>"
        both = f"{self.kind} {column}, {self.kind} poison"
        return self.let(f"shufflevector {both}, {lanes}")

    def entry(self, column: str, i: int) -> str:
        """A number of a column."""
        if self.width == 1:
            return column
        return self.let(f"extractelement {self.kind} {column}, i32 {i}")

    def applied(self, state: list[str]) -> list[str]:
        """What becomes of a state on the whole way back."""
        for columns in (self.last, self.columns):
            found = []
            for i, x in enumerate(state):
                terms = [x] if i in self.matrix.sums else []
                for k, column in zip(self.matrix.lanes, columns, strict=True):
                    if state[k] != literal(0.0):  # it has received nothing yet
                        entry = self.entry(column, i)
                        terms.append(self.let(f"fmul double {entry}, {state[k]}"))
                found.append(_added(self.let, "double", terms or [literal(0.0)]))
            state = found
        return state


def loads(part: Columns | Multiplied) -> list[str]:
    """The lines before the loop that give constants their names."""
    constant, kind = part.way.text.words.constant, part.kind
    return [
        f"  {name} = load {kind}, ptr {constant(f'{kind} {vector}')}"
        for vector, name in part.constants.items()
    ]


def _added(let: Callable[[str], str], kind: str, terms: list[str]) -> str:
    while len(terms) > 1:
        terms = [*terms[2:], let(f"fadd {kind} {terms[0]}, {terms[1]}")]
    return terms[0]


def product(way: Any, matrix: Matrix, tape: str, state: list[str]) -> list[str]:
    """The state after a turn back."""
    let, found = way.text.let, []
    for i, (x, mask) in enumerate(zip(state, matrix.masks, strict=True)):
        terms = []
        for k in sorted(mask):
            entry = way.load(tape, 1 + k * len(state) + i, FLOAT)
            terms.append(let(f"fmul double {entry}, {state[matrix.lanes[k]]}"))
        terms = [_added(let, "double", terms)] if terms else []
        if i in matrix.sums:
            terms = [let(f"fadd double {x}, {terms[0]}")] if terms else [x]
        found.append(terms[0] if terms else literal(0.0))
    return found
