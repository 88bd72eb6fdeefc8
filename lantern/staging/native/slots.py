"""Machine code without LLVM, which runs until there is better: each value has a slot.

A slot is eight bytes of a program's frame: a float, an int, a bool as 0 or 1, or where
the newest turn of a tape lies. An operation loads, computes and stores; nothing is kept
in registers. So a program's code is written down in the time in which its nodes are
walked over, and runs in two or three times that of the fastest. It calls the C library
alone, and counts what it does: after so much of it, LLVM's code is worth its time.
"""

import ctypes
import platform
import sys
from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct, error, pack
from typing import Any

from lantern.staging.ir import CONTROL, BailOutError, Block, Function, Node, walk
from lantern.staging.native.counters import most_turns
from lantern.staging.native.emit import is_recursive
from lantern.staging.native.engine import address_of, arena, suspended
from lantern.staging.native.loader import executable
from lantern.staging.native.tables import IDENTITIES, LIBM, LIBM2
from lantern.staging.native.text import SAFE_INT
from lantern.staging.types import BOOL, FLOAT, INT, Type

__all__ = ["Slots", "SpentError", "is_plain", "is_possible", "slots"]

LONG = 1 << 17
"""Bytes of code; no function is written down again behind them."""
MOST_DONE = 1 << 22
"""Operations: some milliseconds. What they save fits into the smallest arena."""

# rbx: the frame; r12: the arena's top; r14: what may be done yet.
_ENTER = bytes.fromhex("53 4154 4156 4889fb 4989f4 4989d6")
_LEAVE = bytes.fromhex("415e 415c 5b c3")
_DONE, _BAIL, _SPENT = range(3)

_LOAD, _STORE = b"\xf2\x0f\x10\x83", b"\xf2\x0f\x11\x83"  # movsd xmm0, slot and back
_MOVE = Struct("<3si3si")
_FROM, _TO = b"\x48\x8b\x83", b"\x48\x89\x83"  # mov rax, slot and back
_ON_FLOATS, _AFTER = Struct("<4si4si4si"), Struct("<4si4si")
_FLOATS = {
    "add": b"\xf2\x0f\x58\x83",
    "subtract": b"\xf2\x0f\x5c\x83",
    "multiply": b"\xf2\x0f\x59\x83",
    "divide": b"\xf2\x0f\x5e\x83",
    "ieee_divide": b"\xf2\x0f\x5e\x83",
}
_COMPARE = b"\x66\x0f\x2e\x83"  # ucomisd xmm0, slot
# Whether operands change places, and what sets al; nothing compares so with a nan.
_FLOAT_TESTS = {
    "less": (True, b"\x0f\x97\xc0"),
    "less_equal": (True, b"\x0f\x93\xc0"),
    "greater": (False, b"\x0f\x97\xc0"),
    "greater_equal": (False, b"\x0f\x93\xc0"),
    "equal": (False, b"\x0f\x9b\xc0\x0f\x94\xc1\x20\xc8"),
    "not_equal": (False, b"\x0f\x9a\xc0\x0f\x95\xc1\x08\xc8"),
}
_INT_TESTS = {
    "less": b"\x0f\x9c\xc0",
    "less_equal": b"\x0f\x9e\xc0",
    "greater": b"\x0f\x9f\xc0",
    "greater_equal": b"\x0f\x9d\xc0",
    "equal": b"\x0f\x94\xc0",
    "not_equal": b"\x0f\x95\xc0",
}
_BOOL = b"\x0f\xb6\xc0"  # movzx eax, al
_INTS = {
    "add": b"\x48\x03\x83",
    "subtract": b"\x48\x2b\x83",
    "multiply": b"\x48\x0f\xaf\x83",
}
_BITS = {"and": b"\x48\x23\x83", "or": b"\x48\x0b\x83", "xor": b"\x48\x33\x83"}
_SIGN = {"negative": b"\x48\x0f\xba\xf8\x3f", "abs": b"\x48\x0f\xba\xf0\x3f"}
_EXTREMES = {"maximum": b"\x48\x0f\x42\x83", "minimum": b"\x48\x0f\x47\x83"}  # cmov
_TEST = b"\x48\x83\xbb%b\x00"  # cmp slot, 0
_IF_OVERFLOW, _IF_NAN = b"\x0f\x80", b"\x0f\x8a"
_IF_ZERO, _IF_NEGATIVE, _IF_BELOW_2 = b"\x0f\x84", b"\x0f\x88", b"\x0f\x86"
_IF_ABOVE, _ALWAYS = b"\x0f\x87", b"\xe9"
_IS_NAN = b"\x66\x0f\x2e\xc0"  # ucomisd xmm0, xmm0
_LESS_ITSELF = b"\xf2\x0f\x5c\xc0"  # subsd xmm0, xmm0
# rax, rdx = rax // rcx, rax % rcx: one less, and so much more, if the signs differ.
_DIVIDE = bytes.fromhex("4899 48f7f9 4885d2 740e 4889d6 4831ce 7906 48ffc8 4801ca")
_FINITE_OF_FINITE = frozenset({"sin", "cos", "tan"})
_OF_FLOATS = frozenset([*LIBM, *LIBM2, "sqrt"])
_OF_TWO = frozenset([*_FLOATS, *LIBM2, *_EXTREMES, "floor_divide", "remainder"])

_PLAIN = _OF_TWO | _OF_FLOATS | IDENTITIES | {*_FLOAT_TESTS, *_SIGN, "sure", "sign"}
_STATIC = CONTROL - {"call"} | {"constant", "result", "nothing", "stop"}


class SpentError(Exception):
    """A program has done more than it should without the fastest code."""


def slots(function: Function) -> "Slots | None":
    """A program's code; None if it has operations that are left to LLVM, or is long."""
    if not is_possible() or _cost(function.body) > MOST_DONE or is_recursive(function):
        return None
    try:
        return Slots(function, _Code(function))
    except (_UnknownError, OSError, ValueError):  # the system may allow no such memory
        return None


def is_plain(function: Function) -> bool:
    """Whether LLVM, too, has code for all operations of a program, as far as known."""
    return all(
        (x.op.removeprefix("math.") in _PLAIN and x.static == ()) or x.op in _STATIC
        for x in walk(function.body)
    )


class _UnknownError(Exception):
    """What has no code here."""


def _cost(block: Block) -> int:
    """Operations of a block; a loop turns once if it is not known how often it does."""
    found = len(block.nodes)
    for node in block.nodes:
        turns = most_turns(node) if node.op == "loop" else 1
        found += sum(map(_cost, node.blocks)) * (1 if turns is None else turns)
    return found


@cache
def is_possible() -> bool:
    """Whether this processor and this system take such code."""
    return platform.machine() == "x86_64" and sys.platform in ("linux", "darwin")


class Slots:
    """A program that runs in its frame.

    Nothing else runs meanwhile: it holds the interpreter's lock, and calls no Python.
    """

    def __init__(self, function: Function, code: "_Code") -> None:
        self._room, at = executable(len(code.bytes))
        self._room.write(code.bytes)
        self._frame = bytearray(code.frame)
        self._run = _prototype()(at)
        self._at = ctypes.addressof(ctypes.c_char.from_buffer(self._frame))
        self._given = Struct(_format(x.type for x in function.body.parameters))
        self._found = Struct(_format(x.type for x in function.body.results))
        self._results = code.results

    def __call__(self, *numbers: Any) -> tuple[Any, ...]:
        """The results for the numbers in the arguments.

        Raises:
            SpentError: if they take so long that the caller should run other code.
            BailOutError: if the program is left.
        """
        if ctypes.c_uint64.from_address(suspended()).value:
            raise BailOutError  # the arena is theirs
        try:
            self._given.pack_into(self._frame, 0, *numbers)
        except error:  # an int beyond 64 bits
            raise BailOutError from None
        end = self._run(self._at, arena()[0], MOST_DONE)
        if end == _DONE:
            return self._found.unpack_from(self._frame, self._results)
        raise SpentError if end == _SPENT else BailOutError


@cache
def _prototype() -> Callable[[int], Callable[[int, int, int], int]]:
    place = ctypes.c_void_p
    return ctypes.PYFUNCTYPE(ctypes.c_int, place, place, ctypes.c_int64)


_LETTERS = {FLOAT: "d", INT: "q", BOOL: "?7x"}


def _format(types: Any) -> str:
    return "<" + "".join(_LETTERS[t] for t in types)


class _Code:
    """The code of one program, and the frame that it begins with.

    Attributes:
        results: where the results stand in the frame.
    """

    def __init__(self, function: Function) -> None:
        body = function.body
        if not all(x.type.is_number for x in (*body.parameters, *body.results)):
            raise _UnknownError
        self.bytes = bytearray(_ENTER)
        self.frame = bytearray(8 * len(body.parameters))
        self.places = {p: 8 * i for i, p in enumerate(body.parameters)}
        self.held: int | None = None  # whose value is in xmm0, too
        self.exits: list[list[int]] = [[], [], []]
        self.known: dict[Block, int] = {}
        self.block(body)
        given = [self.place(x) for x in body.results]
        self.results = len(self.frame)
        for x in given:
            self.move(x, self.new())
        for end, jumps in enumerate(self.exits):
            for at in jumps:
                self.land(at)
            self.bytes += b"\xb8" + pack("<i", end) + _LEAVE

    def new(self, content: bytes = bytes(8)) -> int:
        """Another slot."""
        self.frame += content
        return len(self.frame) - 8

    def place(self, node: Node) -> int:
        """The slot of a value."""
        place = self.places.get(node)
        if place is None:
            if node.op != "constant":
                raise _UnknownError
            x = node.static.value
            try:
                content = pack("<d" if type(x) is float else "<q", x)
            except error:
                raise _UnknownError from None
            place = self.places[node] = self.new(content)
        return place

    def as_float(self, node: Node) -> int:
        """The slot of a number as the float that it is; what is none leaves."""
        if node.type is FLOAT:
            return self.place(node)
        if node.op == "constant" and abs(node.static.value) <= SAFE_INT:
            return self.new(pack("<d", node.static.value))
        if node.type is INT:
            self.mov(self.place(node))
            self.bytes += b"\x48\xb9" + pack("<q", SAFE_INT)  # mov rcx
            self.bytes += b"\x48\x01\xc8\x48\x01\xc9\x48\x39\xc8"  # rax += rcx; twice
            self.jump(_IF_ABOVE, _BAIL)
        return self.widened(node)

    def widened(self, node: Node) -> int:
        """The slot of a number as the float that is nearest to it."""
        at = self.place(node)
        if node.type is not FLOAT:
            self.bytes += b"\xf2\x48\x0f\x2a\x83" + pack("<i", at)  # cvtsi2sd
            at = self.store()
        return at

    # Moves and jumps.

    def load(self, place: int) -> None:
        """A slot to xmm0."""
        if self.held != place:
            self.bytes += _LOAD + pack("<i", place)
            self.held = place

    def store(self) -> int:
        """xmm0 to a slot."""
        self.held = z = self.new()
        self.bytes += _STORE + pack("<i", z)
        return z

    def mov(self, place: int) -> None:
        """A slot to rax."""
        self.bytes += _FROM + pack("<i", place)

    def put(self) -> int:
        """rax to a slot."""
        z = self.new()
        self.bytes += _TO + pack("<i", z)
        return z

    def move(self, one: int, other: int) -> None:
        """A slot to another."""
        self.bytes += _MOVE.pack(_FROM, one, _TO, other)
        if self.held == other:
            self.held = None

    def jump(self, how: bytes, end: int | None = None) -> int:
        """Go to an end, or to where it is told to land."""
        self.bytes += how + bytes(4)
        at = len(self.bytes)
        if end is not None:
            self.exits[end].append(at)
        return at

    def land(self, at: int, place: int | None = None) -> None:
        """Have a jump go here, or to a place before."""
        to = len(self.bytes) if place is None else place
        self.bytes[at - 4 : at] = pack("<i", to - at)
        self.held = None

    # Control flow.

    def block(self, block: Block) -> None:
        """The nodes of a block."""
        results: dict[Node, dict[int, Node]] = {}
        for node in block.nodes:
            if node.op == "result":
                results.setdefault(node.inputs[0], {})[node.static] = node
        floats = [FLOAT, FLOAT]
        for node in block.nodes:
            op = node.op
            if op in ("constant", "result"):
                continue
            kinds = [x.type for x in node.inputs]
            if op in ("add", "subtract", "multiply") and kinds == floats:
                self.places[node] = self.on_floats(op, *map(self.place, node.inputs))
            elif op == "if":
                self.branch(node, results.get(node, {}))
            elif op in ("loop", "back"):
                self.turns(node, results.get(node, {}))
            elif op == "call":
                self.call(node, results.get(node, {}))
            elif op == "nothing":
                self.places[node] = self.new()
            elif op in ("pack", "unpack", "is_nothing"):
                self.places[node] = self.saved(node)
            elif op == "stop":
                self.jump(_ALWAYS, _BAIL)
            elif node.static != () or not all(t.is_number for t in kinds):
                raise _UnknownError
            else:
                self.places[node] = self.compute(node, kinds)

    def branch(self, node: Node, results: dict[int, Node]) -> None:
        """Two blocks; what the one gives that is taken comes to the same slots."""
        places = {i: self.new() for i in results}
        self.places.update((results[i], z) for i, z in places.items())
        self.bytes += _TEST % pack("<i", self.place(node.inputs[0]))
        other, out = self.jump(_IF_ZERO), 0
        for k, block in enumerate(node.blocks):
            self.block(block)
            for i, z in places.items():
                self.move(self.place(block.results[i]), z)
            if k == 0:
                out = self.jump(_ALWAYS)
                self.land(other)
        self.land(out)

    def turns(self, node: Node, results: dict[int, Node]) -> None:
        """A loop, or a walk along tapes; what goes from turn to turn has its slots.

        A turn lies on the arena tape by tape: where the one before lies, its values.
        """
        read, written = node.static
        inputs = [self.place(x) for x in node.inputs]
        parameters = node.blocks[0].parameters
        slots = [self.new() for _ in parameters]
        self.places.update(zip(parameters, slots, strict=True))
        state = slots[sum(read) :]
        walked = [self.new() for _ in read]
        tapes = [self.new() for _ in written]
        for one, other in zip(inputs, walked + state, strict=True):
            self.move(one, other)
        nothing = self.new()
        for tape in tapes:
            self.move(nothing, tape)
        self.held, head = None, len(self.bytes)
        cost = 1 + sum(map(self.work, node.blocks)) + sum(written) + len(written)
        self.bytes += b"\x49\x81\xee" + pack("<i", cost)  # sub r14
        self.jump(_IF_NEGATIVE, _SPENT)
        if node.op == "loop":
            self.block(node.blocks[0])
            test = self.place(node.blocks[0].results[0])
        else:
            test = walked[0]
        self.bytes += _TEST % pack("<i", test)
        out = self.jump(_IF_ZERO)
        self.read(walked, read, iter(slots))
        body = node.blocks[-1]
        self.block(body)
        found = [self.place(x) for x in body.results]
        self.write(tapes, written, iter(found[len(state) :]))
        self.hand_on(found[: len(state)], state)
        self.land(self.jump(_ALWAYS), head)
        self.land(out)
        self.places.update((z, (state + tapes)[i]) for i, z in results.items())

    def hand_on(self, found: list[int], state: list[int]) -> None:
        """All at once: what is read after it is written is put by before."""
        written = set(state)
        for i, (x, z) in enumerate(zip(found, state, strict=True)):
            if x in written and x != z:
                found[i] = self.new()
                self.move(x, found[i])
        for x, z in zip(found, state, strict=True):
            if x != z:
                self.move(x, z)

    def read(self, tapes: list[int], counts: Sequence[int], to: Any) -> None:
        """What a turn has on tapes; where nothing stands for one, zeros."""
        for i, (tape, count) in enumerate(zip(tapes, counts, strict=True)):
            self.mov(tape)
            if i:
                self.or_zeros(count + 1)
            for k in range(count):
                self.bytes += b"\x48\x8b\x88" + pack("<i", 8 * k + 8)  # mov rcx, [rax]
                self.bytes += b"\x48\x89\x8b" + pack("<i", next(to))  # mov slot, rcx
            self.bytes += b"\x48\x8b\x08\x48\x89\x8b" + pack("<i", tape)
        self.held = None

    def write(self, tapes: list[int], counts: Sequence[int], found: Any) -> None:
        """Put a turn on tapes."""
        for tape, count in zip(tapes, counts, strict=True):
            row = [tape, *(next(found) for _ in range(count))]
            for k, x in enumerate(row):
                self.keep(x, k)
            self.take(tape, len(row))

    def work(self, block: Block) -> int:
        """What a block does once, without its loops: operations, and what they save."""
        found = self.known.get(block)
        if found is None:
            found = sum(1 + len(x.inputs) * (x.op == "pack") for x in block.nodes)
            inside = [x.static.body for x in block.nodes if x.op == "call"]
            inside += [y for x in block.nodes if x.op == "if" for y in x.blocks]
            self.known[block] = found = found + sum(map(self.work, inside))
        return found

    def call(self, node: Node, results: dict[int, Node]) -> None:
        """The body of a function, here again."""
        f = node.static
        if len(self.bytes) > LONG:
            raise _UnknownError
        places = list(map(self.place, node.inputs))
        self.places.update(zip(f.body.parameters, places, strict=True))
        self.block(f.body)
        found = {z: self.place(f.body.results[i]) for i, z in results.items()}
        self.places.update(found)

    def saved(self, node: Node) -> int:
        """A record on the arena, what is in one, or whether there is none."""
        inputs = list(map(self.place, node.inputs))
        if node.op == "pack":
            for k, x in enumerate(inputs):
                self.keep(x, k)
            z = self.new()
            self.take(z, max(len(inputs), 1))
            return z
        self.mov(inputs[0])
        if node.op == "unpack":
            k = node.static.place
            self.or_zeros(k + 1)
            self.bytes += b"\x48\x8b\x80" + pack("<i", 8 * k)  # mov rax, [rax]
        else:
            self.bytes += b"\x48\x85\xc0\x0f\x94\xc0" + _BOOL  # test rax; sete al
        return self.put()

    def keep(self, place: int, k: int) -> None:
        """Put a slot on the arena."""
        self.mov(place)
        self.bytes += b"\x49\x89\x84\x24" + pack("<i", 8 * k)  # mov [r12], rax

    def take(self, place: int, count: int) -> None:
        """Note where the arena's top is, and move it."""
        self.bytes += b"\x4c\x89\xa3" + pack("<i", place)  # mov slot, r12
        self.bytes += b"\x49\x81\xc4" + pack("<i", 8 * count)  # add r12

    def or_zeros(self, count: int) -> None:
        """Where zeros are, if rax is nowhere."""
        zeros = self.new(bytes(8 * count)) - 8 * (count - 1)
        self.bytes += b"\x48\x85\xc0\x75\x07\x48\x8d\x83" + pack("<i", zeros)

    # Numbers.

    def compute(self, node: Node, kinds: list[Type]) -> int:
        """The slot of an operation's value."""
        op, inputs = node.op.removeprefix("math."), node.inputs
        if op == "sure" and node.type is FLOAT:
            return self.sure(self.place(inputs[0]))
        if op in IDENTITIES:
            wide = node.type is FLOAT
            return self.as_float(inputs[0]) if wide else self.place(inputs[0])
        if op == "to_float":
            return self.widened(inputs[0])
        if op in _FLOAT_TESTS:
            return self.compare(op, inputs, FLOAT in kinds)
        if op == "where" and kinds[0] is BOOL:
            return self.where(node)
        if op in _BITS and kinds[0] is kinds[1] is not FLOAT:
            self.mov(self.place(inputs[0]))
            self.bytes += _BITS[op] + pack("<i", self.place(inputs[1]))
            return self.put()
        if op == "not" and kinds[0] is BOOL:
            self.mov(self.place(inputs[0]))
            self.bytes += b"\x48\x83\xf0\x01"  # xor rax, 1
            return self.put()
        if op == "to_int" and kinds[0] is FLOAT:
            return self.cut(self.place(inputs[0]))
        if len(inputs) != 1 + (op in _OF_TWO):
            raise _UnknownError
        if node.type is INT and FLOAT not in kinds:
            return self.on_ints(op, *map(self.place, inputs))
        if node.type is not FLOAT:
            raise _UnknownError
        if op in ("negative", "abs") and kinds[0] is FLOAT:
            self.mov(self.place(inputs[0]))
            self.bytes += _SIGN[op]
            return self.put()
        if op == "sign" and kinds[0] is FLOAT:
            return self.sign(self.place(inputs[0]))
        if op in _EXTREMES:
            return self.extreme(op, *map(self.as_float, inputs))
        if op in _FLOATS or op in _OF_FLOATS:
            return self.on_floats(op, *map(self.as_float, inputs))
        raise _UnknownError

    def on_floats(self, op: str, x: int, y: int = 0) -> int:
        """Arithmetic, or a function of the C library."""
        code = _FLOATS.get(op)
        if code is None:
            return self.called(op, x, y)
        if op == "divide":
            self.nonzero(y)
        z = self.new()
        if self.held == x:
            self.bytes += _AFTER.pack(code, y, _STORE, z)
        else:
            self.bytes += _ON_FLOATS.pack(_LOAD, x, code, y, _STORE, z)
        self.held = z
        return z

    def nonzero(self, y: int) -> None:
        """Leave before a division by zero."""
        self.mov(y)
        self.bytes += b"\x48\x01\xc0"  # add rax, rax: without its sign
        self.jump(_IF_ZERO, _BAIL)

    def sure(self, x: int) -> int:
        """A value; the program is left if it is nan."""
        self.load(x)
        self.bytes += _IS_NAN
        self.jump(_IF_NAN, _BAIL)
        return x

    def finite(self, x: int) -> None:
        """Leave the program if a value is infinite or nan."""
        self.load(x)
        self.bytes += _LESS_ITSELF + _IS_NAN
        self.jump(_IF_NAN, _BAIL)
        self.held = None

    def sign(self, x: int) -> int:
        """-1.0, 0.0 or 1.0."""
        self.sure(x)
        self.bytes += b"\x0f\x57\xc9\x66\x0f\x2e\xc1"  # xmm1 = 0; ucomisd xmm0, xmm1
        self.bytes += b"\x0f\x97\xc0\x0f\x92\xc1" + _BOOL + b"\x0f\xb6\xc9\x29\xc8"
        self.bytes += b"\xf2\x0f\x2a\xc0"  # cvtsi2sd xmm0, eax
        return self.store()

    def extreme(self, op: str, x: int, y: int) -> int:
        """The first, unless the other is beyond it; nan leaves."""
        self.load(x)
        self.bytes += _COMPARE + pack("<i", y)
        self.jump(_IF_NAN, _BAIL)
        self.bytes += _FROM + pack("<i", x) + _EXTREMES[op] + pack("<i", y)
        return self.put()

    def called(self, op: str, x: int, y: int) -> int:
        """A function of the C library, or a root."""
        if op == "sqrt":
            self.bytes += b"\xf2\x0f\x51\x83" + pack("<i", x)
        else:
            if op in _FINITE_OF_FINITE:
                self.finite(x)
            self.load(x)
            if op in LIBM2:
                self.bytes += b"\xf2\x0f\x10\x8b" + pack("<i", y)  # movsd xmm1
            self.bytes += b"\x48\xb8" + pack("<Q", _address(op)) + b"\xff\xd0"
        z = self.store()
        if op not in _FINITE_OF_FINITE:
            self.finite(z)
        return z

    def compare(self, op: str, inputs: Sequence[Node], as_floats: bool) -> int:
        """A comparison: a bool."""
        if as_floats:
            places = [self.as_float(x) for x in inputs]
            swaps, test = _FLOAT_TESTS[op]
            x, y = places[::-1] if swaps else places
            self.load(x)
            self.bytes += _COMPARE + pack("<i", y) + test + _BOOL
        else:
            x, y = map(self.place, inputs)
            self.mov(x)
            self.bytes += b"\x48\x3b\x83" + pack("<i", y) + _INT_TESTS[op] + _BOOL
        return self.put()

    def where(self, node: Node) -> int:
        """One of two numbers."""
        test, *ways = node.inputs
        wide = node.type is FLOAT
        x, y = [self.as_float(w) if wide else self.place(w) for w in ways]
        self.mov(x)
        self.bytes += _TEST % pack("<i", self.place(test))
        self.bytes += b"\x48\x0f\x44\x83" + pack("<i", y)  # cmove rax, slot
        return self.put()

    def on_ints(self, op: str, x: int, y: int = 0) -> int:
        """Arithmetic on ints; what does not fit 64 bits leaves."""
        if op in ("floor_divide", "remainder"):
            return self.divided(op, x, y)
        self.mov(x)
        if op in _INTS:
            self.bytes += _INTS[op] + pack("<i", y)
            self.jump(_IF_OVERFLOW, _BAIL)
        elif op == "negative":
            self.bytes += b"\x48\xf7\xd8"  # neg rax
            self.jump(_IF_OVERFLOW, _BAIL)
        elif op == "abs":
            self.bytes += b"\x48\x89\xc1\x48\xf7\xd9"  # mov rcx, rax; neg rcx
            self.jump(_IF_OVERFLOW, _BAIL)
            self.bytes += b"\x48\x0f\x49\xc1"  # cmovns rax, rcx
        elif op != "to_int":
            raise _UnknownError
        return self.put()

    def cut(self, x: int) -> int:
        """A float without what is behind its point, as an int, if that fits 64 bits."""
        self.bytes += b"\xf2\x48\x0f\x2c\x83" + pack("<i", x)  # cvttsd2si rax, slot
        self.bytes += b"\x48\x83\xf8\x01"  # cmp rax, 1
        self.jump(_IF_OVERFLOW, _BAIL)
        return self.put()

    def divided(self, op: str, x: int, y: int) -> int:
        """Division that rounds down; by 0 and -1 leaves."""
        self.bytes += b"\x48\x8b\x8b" + pack("<i", y)  # mov rcx, slot
        self.bytes += b"\x48\x8d\x41\x01\x48\x83\xf8\x01"  # lea rax, [rcx+1]; cmp 1
        self.jump(_IF_BELOW_2, _BAIL)
        self.mov(x)
        self.bytes += _DIVIDE
        if op == "remainder":
            self.bytes += b"\x48\x89\xd0"  # mov rax, rdx
        return self.put()


def _address(name: str) -> int:
    """Where a function of the C library is."""
    found = address_of(name)
    if not found:
        raise _UnknownError
    return found
