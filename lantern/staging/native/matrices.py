"""Ways back that are a matrix per turn, which the way there computes while it waits.

The cotangents before a turn are linear in those after it. Where each step of a turn
waits for the one before, a processor has time to spare on the way there, and on the way
back would wait as long again. So, for a state of a few floats, the turn's matrix is
computed on the way there, in vectors, and is what is saved. The way back is then a
product per turn. Where it follows at once, each turn's columns begin with those of all
turns before, as in forward mode, and nothing is saved. This adds the same terms up in
another order and rounds fewer products: under ``exact`` it is not done.

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
    "matrices",
    "product",
    "vector_type",
]

MOST = 8
"""Floats of a state that stand side by side."""

WORTH = 22
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
        is_next: whether the walk follows in the loop's block, and has its tape alone:
            then the matrices are multiplied on the way there.
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
    if None in ends or before is None:
        return None
    every = tuple(x for x in ends if x is not None)
    is_next = _is_next(loop, back, origins)
    if not _is_worth(loop, back, masks, lanes, is_next):
        return None
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
    loop: Node,
    back: Node,
    masks: dict[Node, frozenset[int]],
    lanes: tuple[int, ...],
    is_next: bool,
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
    after = _work(there) + vectors / 2
    if is_next:  # the columns' chain, as long as the way back, goes on beside
        after = max(slow, again, after)
    else:
        after = max(slow, after) + 4 + 3 * (len(lanes) - 1).bit_length()
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


class _Vectors:
    """What writes columns.

    Args:
        way: what writes the function.
        matrix: which columns.
    """

    def __init__(self, way: Any, matrix: Matrix) -> None:
        self.way, self.matrix = way, matrix
        self.let: Callable[[str], str] = way.text.let
        self.kind, self.width = vector_type(matrix), matrix.width
        self._constants: dict[str, str] = {}

    def unit(self, i: int) -> str:
        """One in the i-th lane, else zeros."""
        return self.constant([literal(float(i == k)) for k in range(self.width)])

    def constant(self, lanes: list[str]) -> str:
        """A vector of constants by its name: LLVM takes less time for that."""
        if self.width == 1:
            return lanes[0]
        vector = f"<{', '.join([f'double {x}' for x in lanes])}>"
        if vector not in self._constants:
            self._constants[vector] = f"%{self.way.text.fresh('c')}"
        return self._constants[vector]

    def loads(self) -> list[str]:
        """The lines before the loop that give constants their names."""
        constant, kind = self.way.text.words.constant, self.kind
        return [
            f"  {name} = load {kind}, ptr {constant(f'{kind} {vector}')}"
            for vector, name in self._constants.items()
        ]


class _Term(NamedTuple):
    """A vector, perhaps times another: when it is there, whether it is taken away."""

    ready: int
    is_minus: bool
    value: str
    factor: str = ""


class Columns(_Vectors):
    """The columns of a turn's matrix, at the end of the turn there.

    A turn of the walk is linear, so that it can be gone through from its end: what
    becomes of a value, as a vector of the state after the turn, is the sum of what
    becomes of the values that use it. The way there comes to what is taken in the same
    order.

    Args:
        way: what writes the function.
        matrix: of the walk.
        known: what was computed before the loop.
        before: the columns of the turns before, if they are multiplied with.

    Attributes:
        needs: from which line on which numbered values of the turn are used.
    """

    def __init__(
        self,
        way: Any,
        matrix: Matrix,
        known: dict[Node, str],
        before: list[str] | None = None,
    ) -> None:
        super().__init__(way, matrix)
        block = matrix.back.blocks[0]
        self.own, self.known = set(block.nodes), dict(known)
        saved = saved_on(matrix.loop, matrix.tape)
        self.saved = dict(zip(block.parameters, saved, strict=False))
        self.state = block.parameters[len(saved) :]
        self.linear = _dependent(block, self.state)
        self.terms: dict[Node, list[_Term]] = {}
        self.splats: dict[str, str] = {}
        self.needs = [(0, 0)]
        columns = dict(zip(matrix.lanes, before or [], strict=False))
        for i, x in enumerate(block.results):
            self._give(x, _Term(0, False, columns.get(i) or self.unit(i)))
        for node in reversed(block.nodes):
            if node in self.linear and node in self.terms:
                self._hand_on(node)

    def found(self) -> list[str]:
        """The columns, by their places."""
        columns = []
        for p in [self.state[i] for i in self.matrix.lanes]:
            _, minus, z, _ = self._total(p)
            columns.append(self._let("fneg", z) if minus else z)
        return columns

    def _hand_on(self, node: Node) -> None:
        """Add to what the operands of a node are part of."""
        op = node.op
        if op == "negative":  # what is not yet added up need not wait for each other
            for term in self.terms[node]:
                self._give(node.inputs[0], term._replace(is_minus=not term.is_minus))
            return
        ready, minus, z, _ = total = self._total(node)
        x, y = node.inputs[:2]
        if op in ("add", "subtract"):
            self._give(x, total)
            self._give(y, total._replace(is_minus=minus != (op == "subtract")))
        elif op == "multiply":
            x, y = (x, y) if x in self.linear else (y, x)
            self._give(x, _Term(ready, minus, z, self._splat(y)))
        elif op == "where":
            test, none = self._scalar(x), f"{self.kind} zeroinitializer"
            z = f"{self.kind} {z}"
            for one, ways in ((y, f"{z}, {none}"), (node.inputs[2], f"{none}, {z}")):
                if one in self.linear:
                    chosen = self.let(f"select i1 {test}, {ways}")
                    self._give(one, _Term(ready + 1, minus, chosen))
        else:
            if op == "divide":
                self.way.scalars.nonzero(self._number(y))
            z = self._let("fdiv", z, self._splat(y))
            self._give(x, _Term(ready + _DELAYS["divide"], minus, z))

    def _give(self, x: Any, term: _Term) -> None:
        self.terms.setdefault(x, []).append(term)

    def _total(self, x: Any) -> _Term:
        """The sum of what a value has been given: first of what is there first."""
        terms = self.terms.get(x, [_Term(0, False, "zeroinitializer")])
        while len(terms) > 1:
            first, then, *rest = sorted(terms, key=lambda z: (z.ready, z.factor != ""))
            terms = [self._sum(self._product(first), then), *rest]
        return self._product(terms[0])

    def _product(self, term: _Term) -> _Term:
        """A term that is multiplied with nothing any more."""
        if not term.factor:
            return term
        z = self._let("fmul", term.value, term.factor)
        return _Term(term.ready + _DELAYS["multiply"], term.is_minus, z)

    def _sum(self, first: _Term, then: _Term) -> _Term:
        """A sum; the second, if it is a product, is added without being rounded.

        That takes a processor that can as long as the product alone.
        """
        ready, minus, z, factor = then
        if factor:
            z = self._let("fmul contract", z, factor)
        ready = max(ready, first.ready) + _DELAYS["multiply" if factor else "add"]
        if minus == first.is_minus:
            z = self._let("fadd contract", first.value, z)
        elif minus:
            z = self._let("fsub contract", first.value, z)
        else:
            z = self._let("fsub contract", z, first.value)
        return _Term(ready, minus and first.is_minus, z)

    def _let(self, op: str, *values: str) -> str:
        return self.let(f"{op} {self.kind} {', '.join(values)}")

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

    def _splat(self, x: Any) -> str:
        """A number in all lanes."""
        value, width = self._number(x), self.width
        if width == 1:
            return value
        if value not in self.splats:
            if value.startswith("0x"):
                self.splats[value] = self.constant([value] * width)
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


class Multiplied(_Vectors):
    """The product of the matrices of all turns so far.

    Attributes:
        columns: of it, as the turns hand them on.
    """

    def __init__(self, way: Any, matrix: Matrix) -> None:
        super().__init__(way, matrix)
        self.columns = [f"%{way.text.fresh('v')}" for _ in matrix.lanes]

    def starts(self) -> list[tuple[str, str]]:
        """Before the first turn it is one."""
        return [(self.kind, self.unit(i)) for i in self.matrix.lanes]

    def applied(self, state: list[str]) -> list[str]:
        """What becomes of a state on the whole way back."""
        found = []
        for i, x in enumerate(state):
            terms = [x] if i in self.matrix.sums else []
            for k, column in zip(self.matrix.lanes, self.columns, strict=True):
                if state[k] != literal(0.0):  # it has received nothing yet
                    entry = self._entry(column, i)
                    terms.append(self.let(f"fmul double {entry}, {state[k]}"))
            found.append(_added(self.let, terms or [literal(0.0)]))
        return found

    def _entry(self, column: str, i: int) -> str:
        if self.width == 1:
            return column
        return self.let(f"extractelement {self.kind} {column}, i32 {i}")


def _added(let: Callable[[str], str], terms: list[str]) -> str:
    while len(terms) > 1:
        terms = [*terms[2:], let(f"fadd double {terms[0]}, {terms[1]}")]
    return terms[0]


def product(way: Any, matrix: Matrix, tape: str, state: list[str]) -> list[str]:
    """The state after a turn back."""
    let, found = way.text.let, []
    for i, (x, mask) in enumerate(zip(state, matrix.masks, strict=True)):
        terms = []
        for k in sorted(mask):
            entry = way.load(tape, 1 + k * len(state) + i, FLOAT)
            terms.append(let(f"fmul double {entry}, {state[matrix.lanes[k]]}"))
        terms = [_added(let, terms)] if terms else []
        if i in matrix.sums:
            terms = [let(f"fadd double {x}, {terms[0]}")] if terms else [x]
        found.append(terms[0] if terms else literal(0.0))
    return found
