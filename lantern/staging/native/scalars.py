"""Operations on numbers in LLVM's language, with Python's meaning.

Where Python raises, or gives what the type cannot hold, the program is left: an int
beyond 64 bits, a division by zero, a function outside of its domain, whatever is not
finite. The plain function then says what it says.
"""

from collections.abc import Callable, Iterable
from functools import reduce

from lantern.errors import StagingError
from lantern.staging.ir import Node
from lantern.staging.native.layout import tuple_items
from lantern.staging.native.tables import (
    ARITHMETIC,
    ASKED,
    ASKED_OF_ROWS,
    BITS,
    FLOAT_TESTS,
    HALF,
    IDENTITIES,
    INFINITY,
    INT_TESTS,
    LIBM,
    OVERFLOW,
    ROUNDED,
    SCALED,
    TO_INT,
)
from lantern.staging.native.text import SAFE_INT, Text, literal, llvm_type
from lantern.staging.types import BOOL, FLOAT, INT, Type

__all__ = ["Scalars", "boxed", "unsupported"]


# Finite for what is finite, and for nothing else: so the operand is asked, and a call
# whose value nobody needs is left out.
_FINITE_OF_FINITE = frozenset({"sin", "cos", "tan"})


_FLOATS = [FLOAT, FLOAT]


class Scalars:
    """What computes a node on numbers.

    Args:
        text: where the lines go.

    Attributes:
        safe: ints and what may be added to them: the sums are known to fit 64 bits.
        known: what is known where the text has come to: floats that are finite, and
            what there is to know of objects (``emit.py``).
    """

    def __init__(self, text: Text) -> None:
        self.text = text
        self.safe: set[tuple[str, str]] = set()
        self.known: set[object] = set()

    def compute(self, node: Node, values: list[str], is_used: bool = True) -> str:
        """The value of a node; if nobody uses it, what it may leave the program for."""
        op = node.op
        types = [x.type for x in node.inputs]
        if op in ARITHMETIC and types == _FLOATS:
            return self.text.let(f"{ARITHMETIC[op]} double {values[0]}, {values[1]}")
        if node.static != () or not all(t.is_number for t in types):
            raise unsupported(node)
        if op in IDENTITIES:
            return self.converted(values[0], types[0], node.type)
        if op in FLOAT_TESTS:
            return self._compare(op, values, types)
        if op in BITS and types[0] == types[1] and types[0] is not FLOAT:
            kind = llvm_type(types[0])
            return self.text.let(f"{BITS[op]} {kind} {values[0]}, {values[1]}")
        if op == "not" and types[0] is BOOL:
            return self.text.let(f"xor i1 {values[0]}, true")
        if op == "invert" and types[0] is INT:
            return self.text.let(f"xor i64 {values[0]}, -1")
        if op == "to_float":
            return self.widened(values[0], types[0])
        if op in TO_INT:
            return self._to_int(TO_INT[op], values[0], types[0])
        if op == "where" and types[0] is BOOL:
            return self._where(values, types, node.type)
        if op == "whole":
            return self._whole(node, *values)
        if op in ASKED and len(values) <= 2:
            return self._asked(node, values, types)
        if op in ASKED_OF_ROWS:
            return self._asked_of_row(node, values, types)
        if node.type is INT:
            whole = [self.to_i64(v, t) for v, t in zip(values, types, strict=True)]
            return self._on_ints(node, whole)
        if op in _FINITE_OF_FINITE and not is_used:
            return self.finite(self.as_float(values[0], types[0]))
        if node.type is FLOAT:
            floats = [self.as_float(v, t) for v, t in zip(values, types, strict=True)]
            return self._on_floats(node, floats)
        if node.type is BOOL and op.startswith("math.is"):
            return self._test(op, self.as_float(values[0], types[0]))
        raise unsupported(node)

    def _asked(self, node: Node, values: list[str], types: list[Type]) -> str:
        """What a function of Python's gives for one or two numbers."""
        if node.type is not FLOAT or BOOL in types:
            raise unsupported(node)
        boxes = [boxed(self.text, *pair) for pair in zip(values, types, strict=True)]
        return self._answer(ASKED[node.op], boxes)

    def _asked_of_row(self, node: Node, values: list[str], types: list[Type]) -> str:
        """What such a function gives for a tuple of numbers."""
        let = self.text.let
        if BOOL in types:
            raise unsupported(node)
        row = let(f"call ptr @PyTuple_New(i64 {len(values)})")
        for i, pair in enumerate(zip(values, types, strict=True)):
            box = boxed(self.text, *pair)
            at = let(f"getelementptr i8, ptr {row}, i64 {tuple_items() + 8 * i}")
            self.text.do(f"store ptr {box}, ptr {at}")
        return self._answer(ASKED_OF_ROWS[node.op], [row])

    def _answer(self, f: object, boxes: list[str]) -> str:
        """The float that a function of Python's gives for objects, which it takes."""
        x, y = [*boxes, "null"][:2]
        args = f"ptr {self.text.object(f)}, ptr {x}, ptr {y}, i64 {len(boxes)}"
        return self.finite(self.text.let(f"call double @asked({args})"))

    # Conversions.

    def to_i64(self, value: str, known: Type) -> str:
        """A bool or an int as an int."""
        if known is FLOAT:
            raise StagingError("native code: a float is taken for an int.")
        if known is INT:
            return value
        return self.text.let(f"zext i1 {value} to i64")

    def widened(self, value: str, known: Type) -> str:
        """A number as the float that is nearest to it."""
        if known is FLOAT:
            return value
        if known is BOOL:
            return self.text.let(f"uitofp i1 {value} to double")
        return self.text.let(f"sitofp i64 {value} to double")

    def as_float(self, value: str, known: Type) -> str:
        """A number as the float that it is; an int that is none leaves the program."""
        if known is INT:
            if value.lstrip("-").isdigit() and abs(int(value)) <= SAFE_INT:
                return literal(float(int(value)))
            shifted = self.text.let(f"add i64 {value}, {SAFE_INT}")
            self.text.bail_if(self.text.let(f"icmp ugt i64 {shifted}, {2 * SAFE_INT}"))
        return self.widened(value, known)

    def converted(self, value: str, known: Type, wanted: Type) -> str:
        """A number in a wider type."""
        if known == wanted:
            return value
        if wanted is FLOAT:
            return self.as_float(value, known)
        return self.to_i64(value, known)

    def _to_int(self, way: str, value: str, known: Type) -> str:
        if known is not FLOAT:
            return self.to_i64(value, known)
        whole = self.text.let(f"call double @llvm.{way}.f64(double {value})")
        size = self.text.let(f"call double @llvm.fabs.f64(double {whole})")
        limit = literal(9.2e18)
        self.text.bail_if(self.text.let(f"fcmp uge double {size}, {limit}"))
        return self.text.let(f"fptosi double {whole} to i64")

    # Choices.

    def _compare(self, op: str, values: list[str], types: list[Type]) -> str:
        if FLOAT in types:
            x, y = (self.as_float(v, t) for v, t in zip(values, types, strict=True))
            return self.text.let(f"fcmp {FLOAT_TESTS[op]} double {x}, {y}")
        x, y = (self.to_i64(v, t) for v, t in zip(values, types, strict=True))
        return self.text.let(f"icmp {INT_TESTS[op]} i64 {x}, {y}")

    def _where(self, values: list[str], types: list[Type], wanted: Type) -> str:
        x = self.converted(values[1], types[1], wanted)
        y = self.converted(values[2], types[2], wanted)
        kind = llvm_type(wanted)
        return self.text.let(f"select i1 {values[0]}, {kind} {x}, {kind} {y}")

    def _test(self, op: str, x: str) -> str:
        let = self.text.let
        size = let(f"call double @llvm.fabs.f64(double {x})")
        tests = {
            "math.isnan": f"fcmp uno double {x}, {x}",
            "math.isinf": f"fcmp oeq double {size}, {INFINITY}",
            "math.isfinite": f"fcmp olt double {size}, {INFINITY}",
        }
        return let(tests[op])

    # Integers.

    def _on_ints(self, node: Node, values: list[str]) -> str:
        op, text = node.op, self.text
        if op in OVERFLOW:
            return self._checked(OVERFLOW[op], *values)
        if op == "negative":
            return self._checked("sub", "0", values[0])
        if op == "abs":
            minus = self._checked("sub", "0", values[0])
            less = text.let(f"icmp slt i64 {values[0]}, 0")
            return text.let(f"select i1 {less}, i64 {minus}, i64 {values[0]}")
        if op in ("floor_divide", "remainder"):
            return self._divided(op, *values)
        if op in ("left_shift", "right_shift"):
            return self._shifted(op, *values)
        if op == "pow" and node.inputs[1].op == "constant":
            return self._power(values[0], node.inputs[1].static.value)
        raise unsupported(node)

    def _checked(self, op: str, x: str, y: str) -> str:
        if op == "add" and (x, y) in self.safe:
            return self.text.let(f"add i64 {x}, {y}")
        both = f"call {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64 {x}, i64 {y})"
        pair = self.text.let(both)
        self.text.bail_if(self.text.let(f"extractvalue {{i64, i1}} {pair}, 1"))
        return self.text.let(f"extractvalue {{i64, i1}} {pair}, 0")

    def _shifted(self, op: str, x: str, y: str) -> str:
        """A shift; to the right by any number, to the left as long as it fits."""
        let = self.text.let
        if op == "right_shift":
            self.text.bail_if(let(f"icmp slt i64 {y}, 0"))
            far = let(f"icmp sgt i64 {y}, 63")
            return let(f"ashr i64 {x}, {let(f'select i1 {far}, i64 63, i64 {y}')}")
        self.text.bail_if(let(f"icmp ugt i64 {y}, 62"))
        moved = let(f"shl i64 {x}, {y}")
        back = let(f"ashr i64 {moved}, {y}")
        self.text.bail_if(let(f"icmp ne i64 {back}, {x}"))
        return moved

    def _divided(self, op: str, x: str, y: str) -> str:
        """Division that rounds down; the remainder has the divisor's sign."""
        let = self.text.let
        if y.isdigit() and int(y) > 0:
            return self._divided_by(op, x, int(y))
        self.text.bail_if(let(f"icmp eq i64 {y}, 0"))
        self.text.bail_if(let(f"icmp eq i64 {y}, -1"))
        rest = let(f"srem i64 {x}, {y}")
        differs = let(f"icmp slt i64 {let(f'xor i64 {rest}, {y}')}, 0")
        nonzero = let(f"icmp ne i64 {rest}, 0")
        below = let(f"and i1 {differs}, {nonzero}")
        if op == "remainder":
            moved = let(f"add i64 {rest}, {y}")
            return let(f"select i1 {below}, i64 {moved}, i64 {rest}")
        quotient = let(f"sdiv i64 {x}, {y}")
        lower = let(f"sub i64 {quotient}, 1")
        return let(f"select i1 {below}, i64 {lower}, i64 {quotient}")

    def _divided_by(self, op: str, x: str, n: int) -> str:
        """Division by a constant above zero: bits, if it is a power of two."""
        let, is_rest = self.text.let, op == "remainder"
        if n & (n - 1) == 0:
            bits = n.bit_length() - 1
            return let(f"and i64 {x}, {n - 1}" if is_rest else f"ashr i64 {x}, {bits}")
        rest = let(f"srem i64 {x}, {n}")
        below = let(f"icmp slt i64 {rest}, 0")
        z = rest if is_rest else let(f"sdiv i64 {x}, {n}")
        moved = let(f"add i64 {z}, {n if is_rest else -1}")
        return let(f"select i1 {below}, i64 {moved}, i64 {z}")

    def _power(self, x: str, n: int) -> str:
        if type(n) is not int or not 0 <= n <= 64:
            raise StagingError(f"native code: an int to the power of {n}.")
        found = "1"
        for _ in range(n):
            found = self._checked("mul", found, x)
        return found

    # Floats.

    def _on_floats(self, node: Node, values: list[str]) -> str:
        op = node.op.removeprefix("math.")
        text = self.text
        if op in ARITHMETIC:
            return text.let(f"{ARITHMETIC[op]} double {values[0]}, {values[1]}")
        if op == "negative":
            return text.let(f"fneg double {values[0]}")
        if op == "divide":
            self.nonzero(values[1])
            return text.let(f"fdiv double {values[0]}, {values[1]}")
        if op == "ieee_divide":
            return text.let(f"fdiv double {values[0]}, {values[1]}")
        method: Callable[..., str] | None = getattr(self, f"_{op}", None)
        if method is not None:
            return method(node, *values)
        if op in _FINITE_OF_FINITE:
            z = self.call(op, self.finite(values[0]))
            self.known.add(z)
            return z
        if op in LIBM or op in ("atan2", "fmod"):
            return self.finite(self.call(op, *values))
        if op in ("sqrt", "fabs", "abs"):
            name = "fabs" if op == "abs" else op
            z = text.let(f"call double @llvm.{name}.f64(double {values[0]})")
            return self.finite(z) if op == "sqrt" else z
        if op in ROUNDED:
            way = ROUNDED[op]
            z = text.let(f"call double @llvm.{way}.f64(double {values[0]})")
            return text.let(f"fadd double {z}, {literal(0.0)}")
        if op in SCALED:
            return text.let(f"fmul double {values[0]}, {literal(SCALED[op])}")
        raise unsupported(node)

    def call(self, name: str, *values: str) -> str:
        """A function of the C library."""
        args = ", ".join(f"double {v}" for v in values)
        return self.text.let(f"call double @{name}({args})")

    def finite(self, z: str) -> str:
        """A value; the program is left if it is infinite or nan."""
        self.all_finite([z])
        return z

    def all_finite(self, values: Iterable[str]) -> None:
        """Leave the program if one of some values is infinite or nan.

        What is finite less itself is zero, all else nan: without passes, LLVM chooses
        instructions for that faster than for a comparison with infinity.
        """
        let = self.text.let
        new = [z for z in dict.fromkeys(values) if z not in self.known]
        zeros = [let(f"fsub double {z}, {z}") for z in new]
        self._leave_if_nan(zeros)
        self.known.update(new)

    def all_sure(self, values: Iterable[str]) -> None:
        """Leave the program if one of some values is nan."""
        new = [x for x in dict.fromkeys(values) if x not in self.known]
        self._leave_if_nan(new)

    def _leave_if_nan(self, values: list[str]) -> None:
        """One test for all of them, and for each two one comparison."""
        let, tests = self.text.let, []
        for i in range(0, len(values), 2):
            one, other = values[i], values[min(i + 1, len(values) - 1)]
            tests.append(let(f"fcmp uno double {one}, {other}"))
        if tests:
            self.text.bail_if(
                reduce(lambda one, other: let(f"or i1 {one}, {other}"), tests)
            )

    def nonzero(self, x: str) -> None:
        """Leave the program before a division by zero."""
        if x.startswith("0x") and x not in (literal(0.0), literal(-0.0)):
            return
        self.text.bail_if(self.text.let(f"fcmp oeq double {x}, {literal(0.0)}"))

    def _pow(self, node: Node, x: str, y: str) -> str:
        if y == literal(2.0):
            return self._square(x)
        return self.finite(self.call("pow", x, y))

    def _square(self, x: str) -> str:
        """``pow(x, 2)`` to the last bit: x * x, unless that is nearly between floats.

        The C library's function is off by at most 0.02 units in the last place more
        than the nearest float, so that the two agree where the product's own error is
        below 0.475 units.
        """
        text, let = self.text, self.text.let
        z = let(f"fmul double {x}, {x}")
        minus = let(f"fneg double {z}")
        rest = let(f"call double @llvm.fma.f64(double {x}, double {x}, double {minus})")
        size = let(f"call double @llvm.fabs.f64(double {rest})")
        bits = let(f"and i64 {let(f'bitcast double {z} to i64')}, {0x7FF << 52}")
        power = let(f"bitcast i64 {bits} to double")
        limit = let(f"fmul double {power}, {literal(0.475 * 2.0**-52)}")
        near = let(f"fcmp ole double {size}, {limit}")
        small = let(f"fcmp ogt double {z}, {literal(1e-250)}")
        large = let(f"fcmp olt double {z}, {literal(1e300)}")
        normal = let(f"and i1 {small}, {large}")
        slow, squared = text.fresh("slow"), text.fresh("squared")
        before = text.label
        text.fork(let(f"and i1 {near}, {normal}"), squared, slow)
        text.begin(slow)
        exact = self.finite(self.call("pow", x, literal(2.0)))
        last = text.label
        text.jump(squared)
        text.begin(squared)
        return let(f"phi double [{z}, %{before}], [{exact}, %{last}]")

    def _ieee_pow(self, node: Node, x: str, y: str) -> str:
        let = self.text.let
        if y == literal(1.0):
            return x
        if y == literal(2.0):
            return self._square(x)
        z = self.call("pow", x, y)
        zero = let(f"fcmp oeq double {x}, {literal(0.0)}")
        less = let(f"fcmp olt double {y}, {literal(0.0)}")
        pole = let(f"and i1 {zero}, {less}")
        size = let(f"call double @llvm.fabs.f64(double {z})")
        bad = let(f"fcmp uge double {size}, {INFINITY}")
        other = let(f"xor i1 {pole}, true")
        self.text.bail_if(let(f"and i1 {bad}, {other}"))
        return let(f"select i1 {pole}, double {INFINITY}, double {z}")

    def _remainder(self, node: Node, x: str, y: str) -> str:
        return self._whole_and_rest(x, y)[1]

    def _floor_divide(self, node: Node, x: str, y: str) -> str:
        return self._whole_and_rest(x, y)[0]

    def _whole_and_rest(self, x: str, y: str) -> tuple[str, str]:
        """``x // y`` and ``x % y``, step by step as CPython computes them."""
        let, zero = self.text.let, literal(0.0)
        self.text.bail_if(let(f"fcmp oeq double {y}, {zero}"))
        rest = self.finite(self.call("fmod", x, y))
        quotient = let(f"fdiv double {let(f'fsub double {x}, {rest}')}, {y}")
        some = let(f"fcmp une double {rest}, {zero}")
        signs = [let(f"fcmp olt double {v}, {zero}") for v in (rest, y)]
        below = let(f"and i1 {some}, {let(f'xor i1 {signs[0]}, {signs[1]}')}")
        moved, lower = let(f"fadd double {rest}, {y}"), literal(-1.0)
        rest = let(f"select i1 {below}, double {moved}, double {rest}")
        lower = let(f"fadd double {quotient}, {lower}")
        quotient = let(f"select i1 {below}, double {lower}, double {quotient}")
        copy = "call double @llvm.copysign.f64"
        none = let(f"{copy}(double {zero}, double {y})")
        rest = let(f"select i1 {some}, double {rest}, double {none}")
        whole = let(f"call double @llvm.floor.f64(double {quotient})")
        far = let(f"fcmp ogt double {let(f'fsub double {quotient}, {whole}')}, {HALF}")
        up = let(f"fadd double {whole}, {literal(1.0)}")
        whole = let(f"select i1 {far}, double {up}, double {whole}")
        nothing = let(f"fcmp oeq double {quotient}, {zero}")
        ratio = let(f"fdiv double {x}, {y}")
        signed = let(f"{copy}(double {zero}, double {ratio})")
        whole = let(f"select i1 {nothing}, double {signed}, double {whole}")
        return self.finite(whole), self.finite(rest)

    def _copysign(self, node: Node, x: str, y: str) -> str:
        return self.text.let(f"call double @llvm.copysign.f64(double {x}, double {y})")

    def _sign(self, node: Node, x: str) -> str:
        let = self.text.let
        zero = literal(0.0)
        more = let(f"uitofp i1 {let(f'fcmp ogt double {x}, {zero}')} to double")
        less = let(f"uitofp i1 {let(f'fcmp olt double {x}, {zero}')} to double")
        z = let(f"fsub double {more}, {less}")
        nan = let(f"fcmp uno double {x}, {x}")
        return let(f"select i1 {nan}, double {x}, double {z}")

    def _maximum(self, node: Node, x: str, y: str) -> str:
        return self._extreme("uge", x, y)

    def _minimum(self, node: Node, x: str, y: str) -> str:
        return self._extreme("ule", x, y)

    def _extreme(self, test: str, x: str, y: str) -> str:
        """x if it compares so or is nan, else y, which is nan if that one is."""
        let = self.text.let
        ordered = let(f"fcmp {test.replace('u', 'o')} double {x}, {y}")
        nan = let(f"fcmp uno double {x}, {x}")
        first = let(f"or i1 {ordered}, {nan}")
        return let(f"select i1 {first}, double {x}, double {y}")

    def _relu(self, node: Node, x: str) -> str:
        positive = self.text.let(f"fcmp ugt double {x}, {literal(0.0)}")
        return self.text.let(f"select i1 {positive}, double {x}, double {literal(0.0)}")

    def _decay(self, x: str) -> str:
        size = self.text.let(f"call double @llvm.fabs.f64(double {x})")
        return self.finite(self.call("exp", self.text.let(f"fneg double {size}")))

    def _sigmoid(self, node: Node, x: str) -> str:
        let, one = self.text.let, literal(1.0)
        e = self._decay(x)
        positive = let(f"fcmp oge double {x}, {literal(0.0)}")
        top = let(f"select i1 {positive}, double {one}, double {e}")
        return let(f"fdiv double {top}, {let(f'fadd double {one}, {e}')}")

    def _softplus(self, node: Node, x: str) -> str:
        tail = self.call("log1p", self._decay(x))
        top = self._extreme("uge", x, literal(0.0))
        return self.text.let(f"fadd double {top}, {tail}")

    def _whole(self, node: Node, x: str, flag: str) -> str:
        """A float that may stand for an int: then no -0.0, and none that is inexact."""
        let, zero = self.text.let, literal(0.0)
        size = let(f"call double @llvm.fabs.f64(double {x})")
        large = let(f"fcmp ogt double {size}, {literal(float(SAFE_INT))}")
        self.text.bail_if(let(f"and i1 {large}, {flag}"))
        positive = let(f"fadd double {x}, {zero}")
        return let(f"select i1 {flag}, double {positive}, double {x}")

    def _sure(self, node: Node, x: str) -> str:
        self.all_sure([x])
        return x


def boxed(text: Text, value: str, known: Type) -> str:
    """A float or an int as an object of Python's."""
    if known is FLOAT:
        return text.let(f"call ptr @PyFloat_FromDouble(double {value})")
    return text.let(f"call ptr @PyLong_FromLongLong(i64 {value})")


def unsupported(node: Node) -> StagingError:
    """The error for what native code does not do."""
    kinds = ", ".join(str(x.type) for x in node.inputs)
    return StagingError(
        f"native code: {node.op} of ({kinds}) is not among its operations. The plain "
        f"function runs."
    )
