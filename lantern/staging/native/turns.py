"""Loops, and walks along what they have saved, in LLVM's language.

A tape is a list of turns on the arena, newest first: each is a pointer to the one
before and the values of the turn. Where nothing else comes to the arena in a turn,
they lie side by side: there a walk counts its way back. Its processor need not wait for
a pointer to come from memory, which then says only whether there is another turn. Where
all that goes along them is such walks, the pointers are left out: a row of turns.
"""

from typing import Any

from lantern.staging.ir import Block, Node
from lantern.staging.native.counters import ORDERS, most_turns, tests_of
from lantern.staging.native.declarations import CALLING
from lantern.staging.native.engine import suspended
from lantern.staging.native.matrices import (
    Columns,
    Matrix,
    Multiplied,
    early,
    product,
    vector_type,
)
from lantern.staging.native.tapes import is_fixed, state_of
from lantern.staging.native.text import llvm_type
from lantern.staging.types import INT

__all__ = ["Turns"]


SELDOM = 1 << 16
"""Turns of a loop between two looks at signals."""

LAG = 8
"""Lines of a turn between a value and what a matrix makes of it."""


class Turns:
    """The text of one loop or walk.

    Args:
        way: what writes the function that it stands in.
        node: the loop or the walk.
    """

    def __init__(self, way: Any, node: Node) -> None:
        self.way, self.node, self.text = way, node, way.text
        self.header: Block | None = node.blocks[0] if node.op == "loop" else None
        self.body = node.blocks[-1]
        self.state = node.blocks[0].parameters[sum(node.static.read) :]
        self.most, self.has_room = self._most(), False
        self.top = self.moved = ""  # the arena's, if only the tapes move it
        self.is_noted = True  # in each turn, in memory
        self.first, self.straight = 0, ""  # what comes in one piece, and its label
        self.product: Matrix | None = way.matrices.get(node)
        tapes = range(len(node.static.written))
        self.saved = [way.matrices.get((node, k)) for k in tapes]
        self.early = [{} if x is None else early(way, x) for x in self.saved]
        self.loads: list[str] = []  # of what a matrix has that no turn changes
        self.row = self._row()
        self.first_place = ""  # where the first turn of that row lies
        self.multiplied: Multiplied | None = None
        self._products: list[str] = []  # after a turn
        if self.saved and self.saved[0] is not None and self.saved[0].is_next:
            self.multiplied = Multiplied(way, self.saved[0])

    @property
    def _asks(self) -> bool:
        """Whether its turns are counted, to look at signals: unless they are few."""
        is_loop = self.node.op == "loop" and bool(self.way.interruptible)
        return is_loop and self.most is None

    def _most(self) -> int | None:
        """How many turns there are at most, if a counter says so and they are few."""
        most = None if self.header is None else most_turns(self.node)
        return most if most is not None and most < SELDOM else None

    def _row(self) -> tuple[Node, int] | None:
        """Along which loop's row a walk goes, and from which of its tapes on."""
        if self.header is not None:
            return None
        source = self.way.origins.of_tape(self.node.inputs[0], False)
        return source if source is not None and source[0] in self.way.rows else None

    def emit(self, results: dict[int, Node]) -> None:
        """All turns; what they end with are the node's results."""
        way, text, node = self.way, self.text, self.node
        if self.product is not None and self.product.is_next:
            self._end(results, way.multiplied[self.product.loop].applied(self._given()))
            return
        head, turn, end = (text.fresh(x) for x in ("head", "turn", "end"))
        self._look_ahead()
        start = way.row_starts[node] = self._fixed_top()
        if self.row is not None:
            place = self._lie(self.row)[0]
            self.first_place = way.place(way.row_starts[self.row[0]], place)
        before, door = text.label, len(text.lines)
        text.jump(head)
        text.begin(head)
        place = len(text.lines)
        starts = self._starts()
        phis = [f"%{text.fresh('v')}" for _ in starts]
        n, count = len(self.state), len(node.static.written)
        way.values.update(zip(self.state, phis, strict=False))
        out, walked = phis[n : n + count], phis[n + count :]
        walked = self._begin(walked, turn, end)
        if start:
            self.top = f"%{text.fresh('v')}"
        is_saved = any(self.saved) and self.multiplied is None
        base = self._room() if is_saved else ""
        self.first, self.straight = len(text.lines), text.label
        found = self._turn(phis)
        after = [*found[:n], *self._saved(base, out, found[n:]), *walked]
        if self._asks:
            after.append(self._listen(phis[-1]))
        if self.multiplied is not None:
            phis = [*phis, *self.multiplied.columns]
            starts = [*starts, *self.multiplied.starts()]
            after += self._products
            self.loads += self.multiplied.loads()
        if start:
            phis = [*phis, self.top]
            starts = [*starts, ("ptr", start)]
            after.append(self.moved)
        last = text.label
        text.jump(head)
        text.lines[place:place] = [
            f"  {p} = phi {kind} [{x}, %{before}], [{y}, %{last}]"
            for p, (kind, x), y in zip(phis, starts, after, strict=True)
        ]
        text.lines[door:door] = self.loads
        text.begin(end)
        if start and not self.is_noted:
            text.do(f"store ptr {self.top}, ptr @top")
        self._end(results, phis)

    def _end(self, results: dict[int, Node], values: list[str]) -> None:
        """The node's results; what overflows in a matrix need not be inf."""
        self.way.values.update((z, values[i]) for i, z in results.items())
        if self.product is not None:
            self.way.scalars.all_finite([values[i] for i in results])

    def _given(self) -> list[str]:
        """The state before the first turn."""
        read = self.node.static.read
        return [self.way.value(x) for x in self.node.inputs[len(read) :]]

    def _turn(self, phis: list[str]) -> list[str]:
        """The state after a turn, and what it saves."""
        way, n = self.way, len(self.state)
        if self.product is not None:
            return product(way, self.product, phis[n + 1], phis[:n])
        safe, known = way.scalars.safe, way.scalars.known
        way.scalars.safe, way.scalars.known = safe | self._steps(), {*known}
        way.block(self.body)
        way.scalars.safe, way.scalars.known = safe, known
        return [way.value(x) for x in self.body.results]

    def _steps(self) -> set[tuple[str, str]]:
        """What may be added to ints in a turn, for its test has found them less."""
        found = set()
        for x in [] if self.header is None else tests_of(self.node):
            if x.op in ORDERS and all(y.type is INT for y in x.inputs):
                low, high = map(self.way.value, x.inputs[:: ORDERS[x.op]])
                found |= {(low, "1"), (high, "-1")}
        return found

    def _starts(self) -> list[tuple[str, str]]:
        """What goes from turn to turn, as types and first values."""
        read, written = self.node.static
        inputs = [self.way.value(x) for x in self.node.inputs]
        kinds = [llvm_type(p.type) for p in self.state]
        starts = list(zip(kinds, inputs[len(read) :], strict=True))
        starts += [("ptr", "null") for _ in written]
        if self.row is None:
            starts += [("ptr", x) for x in inputs[: len(read)]]
        if read:  # where the turn lies that the first tape's pointer is to
            starts.append(("ptr", inputs[0]))
        if self._asks:
            starts.append(("i64", "0"))
        return starts

    def _begin(self, walked: list[str], turn: str, end: str) -> list[str]:
        """Whether there is another turn; if it reads tapes, what comes from there.

        Returns:
            What is known of the tapes after the turn.
        """
        text = self.text
        if self.header is not None:
            self.way.block(self.header)
            text.fork(self.way.value(self.header.results[0]), turn, end)
            text.begin(turn)
            return []
        if self.row is not None:
            return self._begin_in_row(walked[0], turn, end)
        text.fork(text.let(f"icmp ne ptr {walked[0]}, null"), turn, end)
        text.begin(turn)
        count = len(self.node.static.read)
        older = self._load(walked[:count], walked[count])
        size = self._size()
        lies = f"getelementptr i64, ptr {walked[count]}, i64 -{size}"
        return [*older, text.let(lies) if size else older[0]]

    def _begin_in_row(self, place: str, turn: str, end: str) -> list[str]:
        """Likewise of a walk along a row: it ends before the first turn's place."""
        text = self.text
        text.fork(text.let(f"icmp uge ptr {place}, {self.first_place}"), turn, end)
        text.begin(turn)
        self._load([place] * len(self.node.static.read), place)
        return [text.let(f"getelementptr i64, ptr {place}, i64 -{self._size()}")]

    def _size(self) -> int:
        """How far from each other the turns on the first tape lie; 0 if none knows."""
        source = self.way.origins.of_tape(self.node.inputs[0])
        return 0 if source is None or not is_fixed(source[0]) else self._lie(source)[1]

    def _lie(self, source: tuple[Node, int]) -> tuple[int, int]:
        """Where a tape's part of a turn begins in a loop's, and how long that is."""
        loop, k = source
        slots: list[int] = list(loop.static.written)
        for i in range(len(slots)):
            matrix = self.way.matrices.get((loop, i))
            slots[i] = slots[i] if matrix is None else matrix.slots
            slots[i] += self._link(loop)
        return sum(slots[:k]), sum(slots)

    def _link(self, loop: Node) -> int:
        """Whether a turn has a pointer to the one before."""
        return int(loop not in self.way.rows)

    def _calls_python(self) -> bool:
        """Whether a turn calls Python, which may call programs that save."""
        turn = "\n".join(self.text.lines[self.first :])
        return any(x in turn for x in CALLING)

    def _beside(self, i: int) -> int | None:
        """How far the turns on the i-th tape lie behind the first's; None: unknown."""
        origins, inputs = self.way.origins, self.node.inputs
        one, other = (origins.of_tape(inputs[k], False) for k in (0, i))
        if one is None or other is None or one[0] is not other[0]:
            return None
        return self._lie(other)[0] - self._lie(one)[0]

    def _load(self, tapes: list[str], first: str) -> list[str]:
        """What a turn has on each tape, and the turns before."""
        way, let = self.way, self.text.let
        parameters = iter(self.body.parameters)
        older = []
        for i, (k, tape) in enumerate(zip(self.node.static.read, tapes, strict=True)):
            beside = self._beside(i)
            if i == 0:
                at = first
            elif beside is not None:
                at = let(f"getelementptr i64, ptr {first}, i64 {beside}")
            else:  # nothing stands for a tape of zeros
                none = let(f"icmp eq ptr {tape}, null")
                at = let(f"select i1 {none}, ptr @zeros, ptr {tape}")
            known = self.row is not None or (i > 0 and beside is not None)
            older.append(tape if known else let(f"load ptr, ptr {at}"))
            if self.product is not None:
                break
            for j in range(k):
                p = next(parameters)
                way.values[p] = way.load(at, j + (self.row is None), p.type)
        return older

    def _look_ahead(self) -> None:
        """Look before the first turn whether there is room for all, if they are few."""
        if not self.node.static.written or self.most is None or self.multiplied:
            return
        if is_fixed(self.node):
            self.has_room = True
            self.way.look(self.most * self._lie((self.node, 0))[1])

    def _fixed_top(self) -> str:
        """The arena's top before the first turn, if no one but this loop moves it.

        It is written in each turn, for whoever is called there, but never read back:
        a processor takes up to twice a product's time to forward it through memory.
        """
        if not self.node.static.written or self.multiplied or not is_fixed(self.node):
            return ""
        return str(self.text.let("load ptr, ptr @top"))

    def _room(self) -> str:
        """Room for what a turn saves."""
        size = self._lie((self.node, 0))[1]
        how = self.has_room, self.top, self.is_noted
        base, self.moved = self.way.room(size, *how)
        return str(base)

    def _saved(self, base: str, tapes: list[str], values: list[str]) -> list[str]:
        """The tapes with one turn more; a turn's parts lie side by side."""
        if not tapes:
            return []
        if self.multiplied is not None:
            self._multiply(self.multiplied)
            return tapes
        way, longer = self.way, []
        pairs = zip(self.body.results[state_of(self.node) :], values, strict=True)
        saved, link = iter(list(pairs)), self._link(self.node)
        if not base:
            self.is_noted = not self.top or self._calls_python()
            base = self._room()
        for i, k in enumerate(self.node.static.written):
            own = [next(saved) for _ in range(k)]
            matrix, place = self.saved[i], self._lie((self.node, i))[0]
            turn = way.place(base, place)
            if link:
                self.text.do(f"store ptr {tapes[i]}, ptr {turn}")
            if matrix is None:
                for j, (x, value) in enumerate(own):
                    way.store(turn, j + link, x, value)
            else:
                there = len(self.text.lines)
                columns = Columns(way, matrix, self.early[i])
                self._store(matrix, columns.found(), turn)
                self._mix(there, columns)
            longer.append(turn)
        return longer

    def _multiply(self, multiplied: Multiplied) -> None:
        """The matrix of all turns, this one included."""
        there = len(self.text.lines)
        self.way.multiplied[self.node] = multiplied
        before = multiplied.columns
        columns = Columns(self.way, multiplied.matrix, self.early[0], before)
        self._products = columns.found()
        self._mix(there, columns)

    def _store(self, matrix: Matrix, columns: list[str], turn: str) -> None:
        """Columns side by side: what stands out of one comes under the next."""
        for k, column in enumerate(columns):
            place = 1 + k * len(matrix.masks)
            at = self.text.let(f"getelementptr i64, ptr {turn}, i64 {place}")
            self.text.do(f"store {vector_type(matrix)} {column}, ptr {at}, align 8")

    def _mix(self, there: int, columns: Columns) -> None:
        """Put a line of a matrix behind each line of the turn, as early as it may come.

        A processor looks ahead over so many operations that wait, and no further: where
        the matrix stood behind the turn, the next turn would begin late.

        Args:
            there: where the lines of the matrix begin.
            columns: of the matrix.
        """
        self.loads += columns.loads()
        if len(self.saved) > 1 or self.text.label != self.straight:
            return
        lines, needs = self.text.lines, columns.needs
        own, new = lines[self.first : there], lines[there:]
        places = {line[2 : line.find(" ", 2)]: k for k, line in enumerate(own)}
        earliest, mixed, latest, k = [], [], 0, 0
        for line, after in zip(needs, [*needs[1:], (len(lines), 0)], strict=True):
            latest = max(latest, places.get(f"%t{line[1]}", -LAG) + LAG)
            earliest += [latest] * (after[0] - max(line[0], there))
        for i, line in enumerate(own):
            mixed.append(line)
            if k < len(new) and earliest[k] <= i:
                mixed.append(new[k])
                k += 1
        lines[self.first :] = mixed + new[k:]

    def _listen(self, turns: str) -> str:
        """Count a turn; once in a while ask whether a signal has come, as Ctrl-C.

        Its handler, or a thread that it gives way to, may call other programs.
        """
        text, let = self.text, self.text.let
        count: str = let(f"add i64 {turns}, 1")
        ask, on = text.fresh("ask"), text.fresh("on")
        seldom = let(f"icmp eq i64 {let(f'and i64 {count}, {SELDOM - 1}')}, 0")
        text.do(f"br i1 {seldom}, label %{ask}, label %{on}, !prof !0")
        text.begin(ask)
        waiting = text.address(suspended())
        more = let(f"add i64 {let(f'load i64, ptr {waiting}')}, 1")
        text.do(f"store i64 {more}, ptr {waiting}")
        raised = let("call i32 @PyErr_CheckSignals()")
        less = let(f"sub i64 {let(f'load i64, ptr {waiting}')}, 1")
        text.do(f"store i64 {less}, ptr {waiting}")
        text.fork(let(f"icmp ne i32 {raised}, 0"), "bail", on)
        text.begin(on)
        return count
