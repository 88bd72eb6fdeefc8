"""Names: Python's operations on numbers, and what LLVM and the C library call them."""

from math import fsum, gamma, hypot, ldexp, lgamma, remainder

__all__ = [
    "ARITHMETIC",
    "ASKED",
    "ASKED_OF_ROWS",
    "BITS",
    "FLOAT_TESTS",
    "HALF",
    "IDENTITIES",
    "INFINITY",
    "INTRINSICS",
    "INT_TESTS",
    "LIBM",
    "LIBM2",
    "OVERFLOW",
    "ROUNDED",
    "SCALED",
    "TO_INT",
]

LIBM = (
    "exp log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh expm1 log1p "
    "log2 log10 cbrt exp2 erf erfc"
).split()
LIBM2 = ["pow", "atan2", "fmod"]
ASKED = {
    **{f"math.{f.__name__}": f for f in (gamma, lgamma, hypot, ldexp, remainder)},
    "round_to": round,
}
"""Functions that Python has of its own, to the last bit: they are called."""

ASKED_OF_ROWS = {"fsum": fsum, "math.hypot": lambda row: hypot(*row)}
"""Such functions of any number of floats and ints, called with a tuple of them."""

INTRINSICS = "sqrt fabs floor ceil trunc roundeven".split()
ARITHMETIC = {"add": "fadd", "subtract": "fsub", "multiply": "fmul"}
OVERFLOW = {"add": "add", "subtract": "sub", "multiply": "mul"}
FLOAT_TESTS = {
    "less": "olt",
    "less_equal": "ole",
    "greater": "ogt",
    "greater_equal": "oge",
    "equal": "oeq",
    "not_equal": "une",
}
INT_TESTS = {
    "less": "slt",
    "less_equal": "sle",
    "greater": "sgt",
    "greater_equal": "sge",
    "equal": "eq",
    "not_equal": "ne",
}
BITS = {"and": "and", "or": "or", "xor": "xor"}
IDENTITIES = frozenset("loosened plain_float stopped positive".split())
HALF = "0x3FE0000000000000"
INFINITY = "0x7FF0000000000000"
TO_INT = {
    "to_int": "trunc",
    "math.trunc": "trunc",
    "math.floor": "floor",
    "math.ceil": "ceil",
    "round_to_int": "roundeven",
}
ROUNDED = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "roundeven"}
SCALED = {
    "deg2rad": 0.017453292519943295,
    "radians": 0.017453292519943295,
    "rad2deg": 57.29577951308232,
    "degrees": 57.29577951308232,
}
