"""Functions of the representation in LLVM's language: control flow and what is saved.

Each function returns a status beside its results: 1, if the program was left. What a
forward pass saves lies on an arena that grows as long as a call takes: a record is one
block, a tape a list of turns (``turns.py``).
"""

import sys
from collections import namedtuple
from functools import cached_property
from typing import Any

from lantern.staging.closures import functions_of, used_in
from lantern.staging.ir import Block, Function, Node, walk
from lantern.staging.native.layout import slot_offset, tuple_items
from lantern.staging.native.matrices import Matrix, Multiplied, matrices
from lantern.staging.native.scalars import Scalars, unsupported
from lantern.staging.native.tapes import Origins, rows
from lantern.staging.native.text import Text, Words, literal, llvm_type
from lantern.staging.native.turns import Turns
from lantern.staging.objects import HEAP_TYPE
from lantern.staging.trees import is_plain
from lantern.staging.types import FLOAT, Type

__all__ = [
    "emit_body",
    "emit_program",
    "is_recursive",
    "most_slots",
    "returned",
    "saves",
]

_ItemName: Any = type(vars(namedtuple("_Item", "x"))["x"])  # in a named tuple's class


def returned(function: Function) -> str:
    """The type of what a function returns: a status and its results."""
    kinds = [llvm_type(x.type) for x in function.body.results]
    return "{" + ", ".join(["i1", *kinds]) + "}"


def emit_program(main: Function, words: Words) -> str:
    """All functions of a program that calls itself; the first is ``@f0``."""
    names = _names(main)
    recursive = {f for f in names if f in functions_of_calls(f)}
    deep = {f for f in recursive if not f.is_thin}
    emitters = [
        _Emitter(f, names, f in deep, not recursive, Text(words)) for f in names
    ]
    return "\n".join(emitter.function() for emitter in emitters)


def emit_body(
    main: Function, arguments: list[str], text: Text
) -> tuple[list[str], list[str]]:
    """A program that does not call itself, as lines of the function that runs it.

    Returns:
        The names of its results, and the functions that it calls.
    """
    names = _names(main)
    emitter = _Emitter(main, names, False, True, text)
    emitter.values.update(zip(main.body.parameters, arguments, strict=True))
    emitter.block(main.body)
    others = [
        _Emitter(f, names, False, True, Text(text.words)) for f in names if f != main
    ]
    results = [emitter.value(x) for x in main.body.results]
    return results, [other.function() for other in others]


def _names(main: Function) -> dict[Function, str]:
    return {f: f"@f{i}" for i, f in enumerate(functions_of(main))}


def saves(main: Function) -> bool:
    """Whether a program puts something on the arena."""
    every = [x for f in functions_of(main) for x in walk(f.body)]
    moves = ("loop", "back")
    return any(x.op == "pack" or (x.op in moves and x.static.written) for x in every)


def most_slots(main: Function) -> int:
    """The most values that stand side by side on a tape or in a record."""
    nodes = [node for f in functions_of(main) for node in walk(f.body)]
    counts = [n for x in nodes if x.op == "back" for n in x.static.read]
    counts += [len(x.static.types) for x in nodes if x.op == "unpack"]
    return max(counts, default=0)


def functions_of_calls(f: Function) -> set[Function]:
    """The functions that are reached by calls from one; itself, if it recurs."""
    found: set[Function] = set()
    for node in _calls(f.body):
        found.update(functions_of(node.static))
    return found


def is_recursive(main: Function) -> bool:
    """Whether a function of a program calls itself, if only by way of others."""
    return any(f in functions_of_calls(f) for f in functions_of(main))


def _calls(block: Block) -> list[Node]:
    return [x for x in walk(block) if x.op == "call"]


class _Emitter:
    """The text of one function."""

    def __init__(
        self,
        f: Function,
        names: dict[Function, str],
        recursive: bool,
        stackless: bool,
        text: Text,
    ) -> None:
        self.f, self.names, self.recursive = f, names, recursive
        # What a signal's handler runs may be this program, on the stack of its own.
        self.interruptible = stackless
        self.text, self.scalars = text, Scalars(text)
        self.values: dict[Node, str] = {}
        self.multiplied: dict[Node, Multiplied] = {}  # by loops
        self.row_starts: dict[Node, str] = {}  # by loops
        self.used = set(used_in(f.body))
        self.counts: dict[Node, int] = {}  # items of objects that a block asks for

    @cached_property
    def origins(self) -> Origins:
        """Where the tapes of the function come from."""
        return Origins(self.f)

    @cached_property
    def matrices(self) -> dict[Any, Matrix]:
        """By walks, and by the loops and the tapes that they go along."""
        found = [] if self.f.is_exact else matrices(self.f, self.origins)
        by_tape: dict[Any, Matrix] = {(x.loop, x.tape): x for x in found}
        return by_tape | {x.back: x for x in found}

    @cached_property
    def rows(self) -> set[Node]:
        """The loops whose turns lie in a row; not those that save matrices."""
        return {x for x in rows(self.origins) if (x, 0) not in self.matrices}

    def function(self) -> str:
        """The whole function."""
        f, text = self.f, self.text
        parameters = []
        for i, p in enumerate(f.body.parameters):
            self.values[p] = f"%p{i}"
            parameters.append(f"{llvm_type(p.type)} %p{i}")
        kind = returned(f)
        if self.recursive:
            self._check_stack()
        self.block(f.body)
        whole = "undef"
        results = [("i1", "false")]
        results += [(llvm_type(x.type), self.value(x)) for x in f.body.results]
        for i, (k, x) in enumerate(results):
            whole = text.let(f"insertvalue {kind} {whole}, {k} {x}, {i}")
        text.do(f"ret {kind} {whole}")
        text.begin("bail")
        text.do(f"ret {kind} {text.let(f'insertvalue {kind} undef, i1 true, 0')}")
        inline = "" if self.recursive else "alwaysinline "
        head = f"define internal {kind} {self.names[f]}({', '.join(parameters)}) "
        return f"{head}{inline}#0 {{\nentry:\n" + "\n".join(text.lines) + "\n}"

    def _check_stack(self) -> None:
        let = self.text.let
        here = let("call ptr @llvm.frameaddress.p0(i32 0)")
        limit = let("load ptr, ptr @stack_end")
        self.text.bail_if(let(f"icmp ult ptr {here}, {limit}"))

    def value(self, node: Node) -> str:
        """The name of a node's value."""
        if node.op == "constant":
            x = node.static.value
            if type(x) is int and abs(x) >= 2**63:
                raise unsupported(node)
            return literal(x)
        return self.values[node]

    def typed(self, node: Node) -> str:
        """A value with its type."""
        return f"{llvm_type(node.type)} {self.value(node)}"

    def block(self, block: Block) -> None:
        """The nodes of a block."""
        results: dict[Node, dict[int, Node]] = {}
        for node in block.nodes:
            if node.op == "result":
                results.setdefault(node.inputs[0], {})[node.static] = node
        sure: list[str] = []
        around, self.counts = self.counts, _counts(block)
        for node in block.nodes:
            if node.op in ("constant", "result"):
                continue
            if node.op == "sure" and node.type is FLOAT:
                self.values[node] = self.value(node.inputs[0])
                sure.append(self.values[node])
                continue
            if sure:
                self.scalars.all_sure(sure)
                sure = []
            special = _SPECIAL.get(node.op)
            if special is not None:
                special(self, node, results.get(node, {}))
            else:
                inputs = [self.value(x) for x in node.inputs]
                is_used = node in self.used
                self.values[node] = self.scalars.compute(node, inputs, is_used)
        self.scalars.all_sure(sure)
        self.counts = around

    # Control flow.

    def emit_stop(self, node: Node, results: dict[int, Node]) -> None:
        """Leave the program; what stands behind is never reached."""
        self.text.jump("bail")
        self.text.begin(self.text.fresh("never"))

    def emit_if(self, node: Node, results: dict[int, Node]) -> None:
        """Two blocks, and the results of the one that was taken."""
        text = self.text
        names = [text.fresh(x) for x in ("then", "else", "end")]
        text.fork(self.value(node.inputs[0]), names[0], names[1])
        ways = []
        for label, block in zip(names, node.blocks, strict=False):
            text.begin(label)
            known = {*self.scalars.known}
            self.block(block)
            self.scalars.known = known
            ways.append(([self.value(x) for x in block.results], text.label))
            text.jump(names[2])
        text.begin(names[2])
        for i, z in results.items():
            pairs = ", ".join(f"[{found[i]}, %{label}]" for found, label in ways)
            self.values[z] = text.let(f"phi {llvm_type(z.type)} {pairs}")

    def emit_turns(self, node: Node, results: dict[int, Node]) -> None:
        """A loop, or a walk along tapes."""
        Turns(self, node).emit(results)

    def place(self, base: str, place: int) -> str:
        """Where a value lies that stands so many places behind another."""
        if not place:
            return base
        return str(self.text.let(f"getelementptr i64, ptr {base}, i64 {place}"))

    def load(self, base: str, place: int, known: Type) -> str:
        """A value in a record, or of a turn."""
        let, at = self.text.let, self.place(base, place)
        if known.kind == "bool":
            return let(f"trunc i64 {let(f'load i64, ptr {at}')} to i1")
        return let(f"load {llvm_type(known)}, ptr {at}")

    def store(self, base: str, place: int, x: Node, value: str) -> None:
        """Put a value into a record, or to those of a turn."""
        text, at = self.text, self.place(base, place)
        if x.type.kind == "bool":
            value = text.let(f"zext i1 {value} to i64")
            text.do(f"store i64 {value}, ptr {at}")
        else:
            text.do(f"store {llvm_type(x.type)} {value}, ptr {at}")

    def look(self, count: int, known: str = "") -> str:
        """Leave, unless there is room for some values on the arena; where it begins."""
        text = self.text
        found = known or text.let("load ptr, ptr @top")
        top = text.let(f"getelementptr i64, ptr {found}, i64 {count}")
        limit = text.let("load ptr, ptr @arena_end")
        text.bail_if(text.let(f"icmp ugt ptr {top}, {limit}"))
        return found

    def room(
        self, count: int, is_sure: bool = False, known: str = "", is_noted: bool = True
    ) -> tuple[str, str]:
        """Room for some values on the arena: from where to where.

        Args:
            count: of 8 bytes each.
            is_sure: whether somebody has looked that there is room.
            known: the arena's top, if a register has it.
            is_noted: whether the new top is written to memory.
        """
        text = self.text
        if not is_sure:
            known = self.look(count, known)
        found = known or text.let("load ptr, ptr @top")
        top = text.let(f"getelementptr i64, ptr {found}, i64 {count}")
        if is_noted:
            text.do(f"store ptr {top}, ptr @top")
        return found, top

    def emit_call(self, node: Node, results: dict[int, Node]) -> None:
        """A call; if it leaves the program, so does the caller."""
        text, f = self.text, node.static
        kind = returned(f)
        args = ", ".join(self.typed(x) for x in node.inputs)
        whole = text.let(f"call {kind} {self.names[f]}({args})")
        text.bail_if(text.let(f"extractvalue {kind} {whole}, 0"))
        for i, z in results.items():
            self.values[z] = text.let(f"extractvalue {kind} {whole}, {i + 1}")

    def emit_pack(self, node: Node, results: dict[int, Node]) -> None:
        """A record."""
        record, _ = self.room(max(len(node.inputs), 1))
        for i, x in enumerate(node.inputs):
            self.store(record, i, x, self.value(x))
        self.values[node] = record

    def emit_unpack(self, node: Node, results: dict[int, Node]) -> None:
        """A value in a record; zero, if there is none."""
        let = self.text.let
        record = self.value(node.inputs[0])
        none = let(f"icmp eq ptr {record}, null")
        record = let(f"select i1 {none}, ptr @zeros, ptr {record}")
        self.values[node] = self.load(record, node.static.place, node.type)

    def emit_nothing(self, node: Node, results: dict[int, Node]) -> None:
        """What stands where the program never comes."""
        self.values[node] = "null"

    def emit_is_nothing(self, node: Node, results: dict[int, Node]) -> None:
        """Whether there is no record."""
        record = self.value(node.inputs[0])
        self.values[node] = self.text.let(f"icmp eq ptr {record}, null")

    # Objects of the caller's.

    def emit_is_none(self, node: Node, results: dict[int, Node]) -> None:
        """Whether an object is None."""
        x = self.value(node.inputs[0])
        none = self.text.object(None)
        self.values[node] = self.text.let(f"icmp eq ptr {x}, {none}")

    def _type_is(self, x: str, cls: type) -> str:
        let = self.text.let
        at = let(f"getelementptr i8, ptr {x}, i64 8")
        known = self.text.object(cls)
        return let(f"icmp eq ptr {let(f'load ptr, ptr {at}')}, {known}")

    def _must_be(self, x: str, cls: type) -> None:
        """Leave, unless an object is of a class.

        It is asked once, unless the handler of a signal may give the object another.
        """
        known = self.scalars.known
        if (x, cls) not in known:
            same = self._type_is(x, cls)
            self.text.bail_if(self.text.let(f"xor i1 {same}, true"))
            if not (self.interruptible and cls.__flags__ & HEAP_TYPE):
                known.add((x, cls))

    def emit_is_exactly(self, node: Node, results: dict[int, Node]) -> None:
        """Whether an object is of a class."""
        self.values[node] = self._type_is(self.value(node.inputs[0]), node.static)

    def emit_is_method(self, node: Node, results: dict[int, Node]) -> None:
        """Whether an attribute of an object is a method of its own."""
        x, (name, function) = self.value(node.inputs[0]), node.static
        let, key = self.text.let, self.text.object(name)
        found = let(f"call ptr @method_of(ptr {x}, ptr {key}, ptr {x})")
        self.values[node] = let(f"icmp eq ptr {found}, {self.text.object(function)}")

    def emit_get(self, node: Node, results: dict[int, Node]) -> None:
        """An item of a tuple or of a list."""
        key, cls = node.static
        if type(key) is not int:
            raise unsupported(node)
        let, count = self.text.let, self.counts.get(node.inputs[0], 0)
        size, items = self._items(node, cls)
        place = str(key) if key >= 0 else let(f"add i64 {size}, {key}")
        if not 0 <= key < count:
            low = f"{size}, {key}" if key >= 0 else f"{place}, -1"
            self.text.bail_if(let(f"icmp sle i64 {low}"))
        elif (fact := (self.value(node.inputs[0]), count)) not in self.scalars.known:
            self.text.bail_if(let(f"icmp slt i64 {size}, {count}"))
            self.scalars.known.add(fact)
        at = let(f"getelementptr ptr, ptr {items}, i64 {place}")
        self.values[node] = self.unboxed(let(f"load ptr, ptr {at}"), node.type)

    def emit_get_at(self, node: Node, results: dict[int, Node]) -> None:
        """An item of a tuple or of a list, at a place that is known here."""
        size, items = self._items(node, node.static)
        let, i = self.text.let, self.value(node.inputs[1])
        less = let(f"icmp slt i64 {i}, 0")
        place = let(f"add i64 {i}, {let(f'select i1 {less}, i64 {size}, i64 0')}")
        self.text.bail_if(let(f"icmp uge i64 {place}, {size}"))
        at = let(f"getelementptr ptr, ptr {items}, i64 {place}")
        self.values[node] = self.unboxed(let(f"load ptr, ptr {at}"), node.type)

    def emit_size(self, node: Node, results: dict[int, Node]) -> None:
        """How many items a tuple or a list has."""
        self.values[node], _ = self._items(node, node.static)

    def _items(self, node: Node, cls: Any) -> tuple[str, str]:
        """The size of a tuple or a list, and where its items are."""
        if cls is None or not issubclass(cls, tuple | list):
            raise unsupported(node)
        if cls.__getitem__ not in (tuple.__getitem__, list.__getitem__):
            raise unsupported(node)
        let, x = self.text.let, self.value(node.inputs[0])
        self._must_be(x, cls)
        size = let(f"load i64, ptr {let(f'getelementptr i8, ptr {x}, i64 16')}")
        if issubclass(cls, list):
            items = let(f"load ptr, ptr {let(f'getelementptr i8, ptr {x}, i64 24')}")
        else:
            items = let(f"getelementptr i8, ptr {x}, i64 {tuple_items()}")
        return size, items

    def emit_field(self, node: Node, results: dict[int, Node]) -> None:
        """A field of a named tuple, a slot, or an attribute of an object's own."""
        key, cls = node.static
        fields = getattr(cls, "_fields", ())
        let, x = self.text.let, self.value(node.inputs[0])
        if key in fields and isinstance(getattr(cls, key), _ItemName):
            self._must_be(x, cls)
            offset = tuple_items() + 8 * fields.index(key)
        else:
            offset = -1 if cls is None else slot_offset(cls, key)
            if offset < 0:
                self.values[node] = self._attribute(node, x, cls, key)
                return
            self._must_be(x, cls)
        at = let(f"getelementptr i8, ptr {x}, i64 {offset}")
        part = let(f"load ptr, ptr {at}")
        self.text.bail_if(let(f"icmp eq ptr {part}, null"))
        self.values[node] = self.unboxed(part, node.type)

    def _attribute(self, node: Node, x: str, cls: Any, name: str) -> str:
        """An attribute that is an object's own: Python is asked for it.

        The reference is given back at once, for the object has one, and nothing else
        runs in between.
        """
        if cls is None or not is_plain(cls) or hasattr(cls, name):
            raise unsupported(node)
        let, text = self.text.let, self.text
        self._must_be(x, cls)
        key = text.object(sys.intern(name))
        part = let(f"call ptr @PyObject_GetAttr(ptr {x}, ptr {key})")
        missing, found = text.fresh("missing"), text.fresh("found")
        text.fork(let(f"icmp eq ptr {part}, null"), missing, found)
        text.begin(missing)
        text.do("call void @PyErr_Clear()")
        text.jump("bail")
        text.begin(found)
        text.do(f"call void @Py_DecRef(ptr {part})")
        return self.unboxed(part, node.type)

    def emit_unbox(self, node: Node, results: dict[int, Node]) -> None:
        """The number that an object is."""
        self.values[node] = self.unboxed(self.value(node.inputs[0]), node.type)

    def unboxed(self, x: str, known: Type) -> str:
        """An object as a value of a type; if it is not of that type, leave."""
        let = self.text.let
        if known.kind == "tree":
            return x
        if known.kind == "float":
            self._must_be(x, float)
            at = let(f"getelementptr i8, ptr {x}, i64 16")
            return let(f"load double, ptr {at}")
        if known.kind == "bool":
            self._must_be(x, bool)
            return let(f"icmp eq ptr {x}, {self.text.object(True)}")
        self._must_be(x, int)
        value = let(f"call i64 @as_int(ptr {x})")
        bad = let(f"icmp eq i64 {value}, {-(2**63)}")
        self.text.bail_if(bad)
        return value


def _counts(block: Block) -> dict[Node, int]:
    """How many items of each tuple a block asks for: all of them, or it is left."""
    found: dict[Node, int] = {}
    for node in block.nodes:
        key, cls = node.static if node.op == "get" else (None, None)
        if type(key) is int and key >= 0 and cls and issubclass(cls, tuple):
            found[node.inputs[0]] = max(found.get(node.inputs[0], 0), key + 1)
    return found


_SPECIAL = {
    "stop": _Emitter.emit_stop,
    "if": _Emitter.emit_if,
    "loop": _Emitter.emit_turns,
    "back": _Emitter.emit_turns,
    "call": _Emitter.emit_call,
    "pack": _Emitter.emit_pack,
    "unpack": _Emitter.emit_unpack,
    "nothing": _Emitter.emit_nothing,
    "is_none": _Emitter.emit_is_none,
    "is_nothing": _Emitter.emit_is_nothing,
    "is_exactly": _Emitter.emit_is_exactly,
    "is_method": _Emitter.emit_is_method,
    "get": _Emitter.emit_get,
    "get_at": _Emitter.emit_get_at,
    "size": _Emitter.emit_size,
    "field": _Emitter.emit_field,
    "unbox": _Emitter.emit_unbox,
}
