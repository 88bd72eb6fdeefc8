"""Names: Python's operations on numbers, and what LLVM and the C library call them."""

__all__ = [
    "ARITHMETIC",
    "BITS",
    "DECLARATIONS",
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
INTRINSICS = "sqrt fabs floor ceil trunc roundeven".split()
DECLARATIONS = {
    **{name: f"declare double @{name}(double) #2" for name in LIBM},
    **{name: f"declare double @{name}(double, double) #2" for name in LIBM2},
    **{
        f"llvm.{name}.f64": f"declare double @llvm.{name}.f64(double)"
        for name in INTRINSICS
    },
    "llvm.copysign.f64": "declare double @llvm.copysign.f64(double, double)",
    "llvm.fma.f64": "declare double @llvm.fma.f64(double, double, double)",
    **{
        f"llvm.s{op}.with.overflow.i64": (
            f"declare {{i64, i1}} @llvm.s{op}.with.overflow.i64(i64, i64)"
        )
        for op in ("add", "sub", "mul")
    },
    "llvm.frameaddress.p0": "declare ptr @llvm.frameaddress.p0(i32)",
    "PyFloat_FromDouble": "declare ptr @PyFloat_FromDouble(double)",
    "PyLong_FromLongLong": "declare ptr @PyLong_FromLongLong(i64)",
    "PyTuple_New": "declare ptr @PyTuple_New(i64)",
    "PyList_New": "declare ptr @PyList_New(i64)",
    "Py_IncRef": "declare void @Py_IncRef(ptr)",
    "Py_DecRef": "declare void @Py_DecRef(ptr)",
    "PyErr_Clear": "declare void @PyErr_Clear()",
    "PyErr_CheckSignals": "declare i32 @PyErr_CheckSignals()",
    "PyErr_Occurred": "declare ptr @PyErr_Occurred()",
    "PyObject_GetAttr": "declare ptr @PyObject_GetAttr(ptr, ptr)",
    "PyType_GenericAlloc": "declare ptr @PyType_GenericAlloc(ptr, i64)",
    "PyObject_Vectorcall": "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
    "as_int": """declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
define internal i64 @as_int(ptr %x) #0 {
  %o = alloca i32
  %v = call i64 @PyLong_AsLongLongAndOverflow(ptr %x, ptr %o)
  %f = load i32, ptr %o
  %z = icmp eq i32 %f, 0
  %r = select i1 %z, i64 %v, i64 -9223372036854775808
  ret i64 %r
}""",
}
"""What a module that uses a name has to say of it: each function more takes time."""
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
