"""Programs as C: what was staged, or its adjoint, as a file that a compiler takes.

A function returns 0, and its results where pointers say; or 1, if it comes to what
Python would raise, or has larger integers for. What the way there saves lies in blocks
of memory that the main function gives back: a turn of a tape is an array whose first
word points to the turn before.
"""

import math
from collections.abc import Callable
from typing import Any

from lantern.errors import StagingError
from lantern.staging.closures import functions_of
from lantern.staging.emit_python import plain_name
from lantern.staging.ir import Block, Function, Node, walk
from lantern.staging.native.tables import (
    FLOAT_TESTS,
    IDENTITIES,
    LIBM,
    ROUNDED,
    SCALED,
    TO_INT,
)
from lantern.staging.program import Program
from lantern.staging.types import BOOL, FLOAT, INT, Type

__all__ = ["c_of"]

_TYPES = {
    "float": "double",
    "int": "int64_t",
    "bool": "bool",
    "tape": "word *",
    "record": "word *",
}
_FIELDS = {"float": "f", "int": "i", "bool": "b", "tape": "p", "record": "p"}
_INFIX = {"add": "+", "subtract": "-", "multiply": "*"}
_TESTS = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
_BITS = {"and": "&", "or": "|", "xor": "^"}
_MAY_LEAVE = frozenset([*LIBM, "sqrt", "atan2", "pow", "fmod", "sigmoid", "softplus"])
_RESERVED = _MAY_LEAVE | frozenset(
    "auto break case char const continue default do double else enum extern float for "
    "goto if inline int long register restrict return short signed sizeof static "
    "struct switch typedef union unsigned void volatile while bool true false main "
    "word room rooms top end take give_back zero_at as_float to_int divided malloc "
    "free abort memset ceil floor trunc rint fabs fmin fmax hypot copysign "
    "divided_floats sign_of largest smallest".split()
)
_HELPERS = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef union word { double f; int64_t i; bool b; union word *p; } word;
typedef struct room { struct room *next; } room;

#pragma STDC FP_CONTRACT OFF

static _Thread_local room *rooms;
static _Thread_local word *top, *end;

/* Room for some words; it is given back with all others. */
static word *take(int64_t count) {
    if (end - top < count) {
        int64_t size = count > 65536 ? count : 65536;
        room *new = malloc(sizeof(room) + size * sizeof(word));
        if (!new) abort();
        new->next = rooms;
        rooms = new;
        top = (word *)(new + 1);
        end = top + size;
    }
    word *found = top;
    top += count;
    return found;
}

static void give_back(void) {
    while (rooms) {
        room *next = rooms->next;
        free(rooms);
        rooms = next;
    }
    top = end = NULL;
}

static inline word zero_at(const word *record, int64_t place) {
    word zero;
    memset(&zero, 0, sizeof zero);
    return record ? record[place] : zero;
}

static inline bool as_float(int64_t x, double *z) {
    *z = (double)x;
    return x < -9007199254740992 || x > 9007199254740992;
}

static inline bool to_int(double x, int64_t *z) {
    if (!(fabs(x) < 9.2e18)) return true;
    *z = (int64_t)x;
    return false;
}

static inline bool divided(int64_t x, int64_t y, int64_t *quotient, int64_t *rest) {
    if (y == 0 || y == -1) return true;
    *quotient = x / y;
    *rest = x % y;
    if (*rest && ((*rest ^ y) < 0)) {
        *quotient -= 1;
        *rest += y;
    }
    return false;
}

static inline bool divided_floats(double x, double y, double *quotient, double *rest) {
    if (y == 0.0) return true;
    double m = fmod(x, y), q = (x - m) / y;
    if (m != 0.0) {
        if ((y < 0.0) != (m < 0.0)) {
            m += y;
            q -= 1.0;
        }
    } else {
        m = copysign(0.0, y);
    }
    if (q != 0.0) {
        double whole = floor(q);
        if (q - whole > 0.5) whole += 1.0;
        q = whole;
    } else {
        q = copysign(0.0, x / y);
    }
    *quotient = q;
    *rest = m;
    return !isfinite(q) || !isfinite(m);
}

static inline bool ieee_pow(double x, double y, double *z) {
    *z = y == 1.0 ? x : pow(x, y);
    if (x == 0.0 && y < 0.0) {
        *z = INFINITY;
        return false;
    }
    return !isfinite(*z);
}

static inline double sign_of(double x) {
    return isnan(x) ? x : (double)((x > 0.0) - (x < 0.0));
}

static inline double largest(double x, double y) {
    return x >= y || isnan(x) ? x : y;
}

static inline double smallest(double x, double y) {
    return x <= y || isnan(x) ? x : y;
}

static inline double sigmoid(double x) {
    double e = exp(-fabs(x));
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}

static inline double softplus(double x) {
    return largest(x, 0.0) + log1p(exp(-fabs(x)));
}
"""
_EXTREMES = {"maximum": "largest", "minimum": "smallest"}


def c_of(program: Program) -> str:
    """The source of a program, with a function of its name."""
    if program.trees:
        raise StagingError(
            "emit_c: an argument is an object that is walked. Give numbers, and "
            "structures of them."
        )
    functions = functions_of(program.function)
    for f in functions:
        for node in (*f.body.parameters, *walk(f.body)):
            if node.type.kind in ("tree", "array"):
                raise StagingError(
                    f"emit_c: {f.name} has a value of the type {node.type}. Give "
                    f"numbers, and structures of them."
                )
    names: dict[Function, str] = {}
    for f in functions:
        name = plain_name(f.name)
        if name in _RESERVED or not name.isascii():
            name = f"f{len(names)}_"
        names[f] = name if f is program.function else f"{name}_{len(names)}"
    writers = [_Writer(f, names) for f in functions]
    heads = [w.head(w.name_of(w.f)) + ";" for w in writers]
    bodies = [w.function() for w in writers]
    main = _main(program.function, writers[0])
    return "\n\n".join([_HELPERS.rstrip(), "\n".join(heads), *bodies, main]) + "\n"


def _main(f: Function, writer: "_Writer") -> str:
    """The function that is called from outside: it gives the memory back."""
    given = [f"x{i}" for i in range(len(f.body.parameters))]
    given += [f"r{i}" for i in range(len(f.body.results))]
    head = writer.head(writer.names[f], static=False)
    call = f"{writer.name_of(f)}({', '.join(given)})"
    return f"{head} {{\n    int left = {call};\n    give_back();\n    return left;\n}}"


class _Writer:
    """The lines of one function."""

    def __init__(self, f: Function, names: dict[Function, str]) -> None:
        self.f, self.names = f, names
        self.values: dict[Node, str] = {}
        self.declared: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0

    def name_of(self, f: Function) -> str:
        """The name of a function that does not give memory back."""
        return f"run_{self.names[f]}"

    def head(self, name: str, static: bool = True) -> str:
        """What stands before a body."""
        parts = [
            f"{_type(p.type)} x{i}".replace("* ", "*")
            for i, p in enumerate(self.f.body.parameters)
        ]
        parts += [
            f"{_type(x.type)} *r{i}".replace("* *", "**")
            for i, x in enumerate(self.f.body.results)
        ]
        return f"{'static ' * static}int {name}({', '.join(parts) or 'void'})"

    def function(self) -> str:
        """The whole function."""
        for i, p in enumerate(self.f.body.parameters):
            self.values[p] = f"x{i}"
        self.block(self.f.body)
        for i, x in enumerate(self.f.body.results):
            self.do(f"*r{i} = {self.value(x)};")
        self.do("return 0;")
        inside = "\n".join([*self.declared, *self.lines])
        return f"{self.head(self.name_of(self.f))} {{\n{inside}\n}}"

    def do(self, line: str) -> None:
        """A line."""
        self.lines.append("    " * self.depth + line)

    def new(self, known: Type, node: Node | None = None) -> str:
        """A variable of a type, for a node."""
        self.count += 1
        name = f"v{self.count}"
        self.declared.append(f"    {_type(known)} {name};".replace("* ", "*"))
        if node is not None:
            self.values[node] = name
        return name

    def leave_if(self, test: str) -> None:
        """Leave the program, if a condition holds."""
        self.do(f"if ({test}) return 1;")

    def value(self, node: Node) -> str:
        """A node's variable; of a constant, the number."""
        if node.op != "constant":
            return self.values[node]
        x = node.static.value
        if type(x) is bool:
            return str(x).lower()
        if type(x) is int:
            if abs(x) >= 2**63:
                raise StagingError(f"emit_c: the integer {x} has more than 64 bits.")
            return f"INT64_C({x})"
        if math.isfinite(x):
            return repr(x)
        return "NAN" if x != x else f"{'-' * (x < 0)}INFINITY"

    def block(self, block: Block) -> None:
        """The lines of a block."""
        results: dict[Node, list[Node]] = {}
        for node in block.nodes:
            if node.op == "result":
                results.setdefault(node.inputs[0], []).append(node)
        for node in block.nodes:
            if node.op in ("constant", "result"):
                continue
            special = getattr(self, f"write_{node.op}", None)
            if special is not None:
                special(node, results.get(node, []))
            else:
                self.compute(node)

    # Control flow.

    def write_stop(self, node: Node, out: list[Node]) -> None:
        """Leave the program."""
        self.do("return 1;")

    def write_if(self, node: Node, out: list[Node]) -> None:
        """A branch."""
        for z in out:
            self.new(z.type, z)
        heads = f"if ({self.value(node.inputs[0])}) {{", "} else {"
        for head, block in zip(heads, node.blocks, strict=True):
            self.do(head)
            self.depth += 1
            self.block(block)
            for z in out:
                self.do(f"{self.values[z]} = {self.value(block.results[z.static])};")
            self.depth -= 1
        self.do("}")

    def write_loop(self, node: Node, out: list[Node]) -> None:
        """A loop, whose turns write tapes."""
        header, body = node.blocks

        def begin() -> None:
            self.block(header)
            self.do(f"if (!{self.value(header.results[0])}) break;")

        inits = [self.value(x) for x in node.inputs]
        self.turns(node, out, header.parameters, inits, begin, body)

    def write_back(self, node: Node, out: list[Node]) -> None:
        """A walk along tapes, from the newest turn to the oldest."""
        (body,) = node.blocks
        read = node.static.read
        given = [self.value(x) for x in node.inputs]
        walked = []
        for tape in given[: len(read)]:
            walked.append(self.new(node.inputs[0].type))
            self.do(f"{walked[-1]} = {tape};")

        def begin() -> None:
            self.do(f"if (!{walked[0]}) break;")
            rest = iter(body.parameters)
            for tape, n in zip(walked, read, strict=True):
                for j in range(n):
                    p = next(rest)
                    x = f"zero_at({tape}, {j + 1}).{_FIELDS[p.type.kind]}"
                    self.do(f"{self.new(p.type, p)} = {x};")
            for tape in walked:
                self.do(f"{tape} = zero_at({tape}, 0).p;")

        state = body.parameters[sum(read) :]
        self.turns(node, out, state, given[len(read) :], begin, body)

    def turns(
        self,
        node: Node,
        out: list[Node],
        state: list[Node],
        inits: list[str],
        begin: Callable[[], None],
        body: Block,
    ) -> None:
        """Turns of a loop."""
        names = [self.new(p.type, p) for p in state]
        for name, x in zip(names, inits, strict=True):
            self.do(f"{name} = {x};")
        tapes = []
        for _ in node.static.written:
            self.count += 1
            tapes.append(f"tape{self.count}")
            self.declared.append(f"    word *{tapes[-1]} = NULL;")
            self.do(f"{tapes[-1]} = NULL;")
        self.do("for (;;) {")
        self.depth += 1
        begin()
        self.block(body)
        saved = body.results[len(state) :]
        for tape, n in zip(tapes, node.static.written, strict=True):
            turn = self.record([(x, i + 1) for i, x in enumerate(saved[:n])], n + 1)
            self.do(f"{turn}[0].p = {tape};")
            self.do(f"{tape} = {turn};")
            saved = saved[n:]
        self.assign_all(state, names, body.results[: len(state)])
        self.depth -= 1
        self.do("}")
        every = [*names, *tapes]
        for z in out:
            self.values[z] = every[z.static]

    def assign_all(self, state: Any, names: list[str], new: list[Node]) -> None:
        """Several variables at once."""
        values = [self.value(x) for x in new]
        pairs = [
            (p, name, x)
            for p, name, x in zip(state, names, values, strict=True)
            if x != name
        ]
        waiting = {name for _, name, _ in pairs}
        for i, (p, name, x) in enumerate(pairs):
            if x in waiting:  # it is assigned to, too
                copy = self.new(p.type)
                self.do(f"{copy} = {x};")
                pairs[i] = p, name, copy
        for _, name, x in pairs:
            self.do(f"{name} = {x};")

    def record(self, parts: list[tuple[Node, int]], size: int) -> str:
        """Values in memory."""
        self.count += 1
        name = f"v{self.count}"
        self.declared.append(f"    word *{name};")
        self.do(f"{name} = take({max(size, 1)});")
        for x, i in parts:
            self.do(f"{name}[{i}].{_FIELDS[x.type.kind]} = {self.value(x)};")
        return name

    def write_call(self, node: Node, out: list[Node]) -> None:
        """A call."""
        f = node.static
        by_place = {z.static: z for z in out}
        given = [self.value(x) for x in node.inputs]
        for i, x in enumerate(f.body.results):
            given.append(f"&{self.new(x.type, by_place.get(i))}")
        self.leave_if(f"{self.name_of(f)}({', '.join(given)})")

    def write_pack(self, node: Node, out: list[Node]) -> None:
        """A record."""
        parts = [(x, i) for i, x in enumerate(node.inputs)]
        self.values[node] = self.record(parts, len(parts))

    def write_unpack(self, node: Node, out: list[Node]) -> None:
        """A value in a record; zero, if there is none."""
        record = self.value(node.inputs[0])
        found = f"zero_at({record}, {node.static.place}).{_FIELDS[node.type.kind]}"
        self.do(f"{self.new(node.type, node)} = {found};")

    def write_nothing(self, node: Node, out: list[Node]) -> None:
        """No record."""
        self.values[node] = "NULL"

    def write_is_nothing(self, node: Node, out: list[Node]) -> None:
        """Whether there is no record."""
        self.do(f"{self.new(BOOL, node)} = !{self.value(node.inputs[0])};")

    # Numbers.

    def compute(self, node: Node) -> None:
        """A node on numbers."""
        if node.static != () or not node.type.is_number:
            raise _unknown(node)
        inputs = list(node.inputs)
        types = [x.type for x in inputs]
        op = node.op
        if op in IDENTITIES:
            self.values[node] = self.converted(inputs[0], node.type)
        elif op == "to_float":
            self.let(node, f"(double){self.value(inputs[0])}")
        elif op in FLOAT_TESTS:
            wide = FLOAT if FLOAT in types else INT
            x, y = (self.converted(x, wide) for x in inputs)
            self.let(node, f"{x} {_TESTS[op]} {y}")
        elif op in _BITS and FLOAT not in types:
            x, y = map(self.value, inputs)
            self.let(node, f"{x} {_BITS[op]} {y}")
        elif op in ("not", "invert"):
            self.let(node, f"{'!' if op == 'not' else '~'}{self.value(inputs[0])}")
        elif op == "where":
            x, y = (self.converted(x, node.type) for x in inputs[1:])
            self.let(node, f"{self.value(inputs[0])} ? {x} : {y}")
        elif op in TO_INT and node.type is INT:
            self.to_int(node, TO_INT[op])
        elif node.type is INT:
            self.on_ints(node, [self.converted(x, INT) for x in inputs])
        elif op == "whole":
            x, flag = map(self.value, inputs)
            self.leave_if(f"{flag} && fabs({x}) > 9007199254740992.0")
            self.let(node, f"{flag} ? {x} + 0.0 : {x}")
        elif op.startswith("math.is") and node.type is BOOL:
            self.let(node, f"{op[5:]}({self.converted(inputs[0], FLOAT)})")
        elif node.type is FLOAT:
            self.on_floats(node, [self.converted(x, FLOAT) for x in inputs])
        else:
            raise _unknown(node)

    def let(self, node: Node, expression: str) -> str:
        """A node is what an expression gives."""
        name = self.new(node.type, node)
        self.do(f"{name} = {expression};")
        return name

    def converted(self, x: Node, wanted: Type) -> str:
        """A number in a wider type."""
        value = self.value(x)
        if wanted is FLOAT and x.type is INT:
            if x.op == "constant" and abs(x.static.value) <= 2**53:
                return repr(float(x.static.value))
            name = self.new(FLOAT)
            self.leave_if(f"as_float({value}, &{name})")
            return name
        return value

    def to_int(self, node: Node, way: str) -> None:
        """A float as an int."""
        (x,) = node.inputs
        if x.type is not FLOAT:
            self.let(node, self.value(x))
            return
        way = "rint" if way == "roundeven" else way
        name = self.new(INT, node)
        self.leave_if(f"to_int({way}({self.value(x)}), &{name})")

    def on_ints(self, node: Node, values: list[str]) -> None:
        """A node on integers; what has more than 64 bits leaves the program."""
        op, name = node.op, self.new(INT, node)
        checked = {"add": "add", "subtract": "sub", "multiply": "mul"}
        if op in checked:
            x, y = values
            self.leave_if(f"__builtin_{checked[op]}_overflow({x}, {y}, &{name})")
        elif op in ("negative", "abs"):
            zero = "INT64_C(0)"
            self.leave_if(f"__builtin_sub_overflow({zero}, {values[0]}, &{name})")
            if op == "abs":
                self.do(f"if ({values[0]} >= 0) {name} = {values[0]};")
        elif op in ("floor_divide", "remainder"):
            places = [f"&{name}", f"&{self.new(INT)}"]
            places = places if op == "floor_divide" else places[::-1]
            self.leave_if(f"divided({values[0]}, {values[1]}, {', '.join(places)})")
        elif op == "left_shift":
            x, y = values
            self.leave_if(f"{y} < 0 || {y} > 62")
            product = f"__builtin_mul_overflow({x}, INT64_C(1) << {y}, &{name})"
            self.leave_if(product)
        elif op == "right_shift":
            x, y = values
            self.leave_if(f"{y} < 0")
            self.do(f"{name} = {x} >> ({y} > 63 ? 63 : {y});")
        elif op == "pow" and node.inputs[1].op == "constant":
            n = node.inputs[1].static.value
            if type(n) is not int or not 0 <= n <= 64:
                raise _unknown(node)
            self.do(f"{name} = 1;")
            for _ in range(n):
                self.leave_if(f"__builtin_mul_overflow({name}, {values[0]}, &{name})")
        else:
            raise _unknown(node)

    def on_floats(self, node: Node, values: list[str]) -> None:
        """A node on floats."""
        op = node.op.removeprefix("math.")
        x, y = values[0], values[-1]
        if op in _INFIX:
            self.let(node, f"{x} {_INFIX[op]} {y}")
        elif op in ("divide", "ieee_divide"):
            if op == "divide":
                self.leave_if(f"{y} == 0.0")
            self.let(node, f"{x} / {y}")
        elif op == "negative":
            self.let(node, f"-{x}" if x[0] != "-" else f"-({x})")
        elif op in ("floor_divide", "remainder"):
            places = [f"&{self.new(FLOAT, node)}", f"&{self.new(FLOAT)}"]
            places = places if op == "floor_divide" else places[::-1]
            self.leave_if(f"divided_floats({x}, {y}, {', '.join(places)})")
        elif op == "ieee_pow":
            self.leave_if(f"ieee_pow({x}, {y}, &{self.new(FLOAT, node)})")
        elif op == "sure":
            self.leave_if(f"isnan({x})")
            self.values[node] = x
        elif op in _MAY_LEAVE:
            z = self.let(node, f"{op}({', '.join(values)})")
            self.leave_if(f"!isfinite({z})")
        elif op in ("abs", "fabs", "copysign"):
            name = "fabs" if op == "abs" else op
            self.let(node, f"{name}({', '.join(values)})")
        elif op in ROUNDED:
            way = "rint" if op == "rint" else ROUNDED[op]
            self.let(node, f"{way}({x}) + 0.0")
        elif op in SCALED:
            self.let(node, f"{x} * {SCALED[op].hex()}")
        elif op in _EXTREMES:
            self.let(node, f"{_EXTREMES[op]}({x}, {y})")
        elif op == "sign":
            self.let(node, f"sign_of({x})")
        elif op == "relu":
            self.let(node, f"{x} > 0.0 || isnan({x}) ? {x} : 0.0")
        else:
            raise _unknown(node)


def _type(known: Type) -> str:
    return _TYPES[known.kind]


def _unknown(node: Node) -> StagingError:
    return StagingError(f"emit_c: {node.op} has no name in C. Use emit_python.")
