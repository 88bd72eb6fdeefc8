"""Declarations: what a module of LLVM's says of the names that it uses."""

import re

from lantern.staging.native.tables import INTRINSICS, LIBM, LIBM2

__all__ = ["CALLING", "RAISING", "declared"]

RAISING = ("@Py", "_of(", "@got_attribute")
"""What is in a program that calls Python, which may raise."""

CALLING = (*RAISING, "@asked", "@made")
"""What is in one that calls Python, if what is raised is dealt with there."""

_DECLARATIONS = {
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
    "PyDict_GetItem": "declare ptr @PyDict_GetItem(ptr, ptr)",
    "PyList_GetItem": "declare ptr @PyList_GetItem(ptr, i64)",
    "PyErr_ExceptionMatches": "declare i32 @PyErr_ExceptionMatches(ptr)",
    "PyExc_AttributeError": "@PyExc_AttributeError = external global ptr",
    "PyMethod_Type": "@PyMethod_Type = external global ptr",
    "got_attribute": """define internal ptr @got_attribute(ptr %x, ptr %name) #0 {
  %a = call ptr @PyObject_GetAttr(ptr %x, ptr %name)
  %none = icmp eq ptr %a, null
  br i1 %none, label %raised, label %out
raised:
  %error = load ptr, ptr @PyExc_AttributeError
  %matches = call i32 @PyErr_ExceptionMatches(ptr %error)
  %other = icmp eq i32 %matches, 0
  br i1 %other, label %out, label %missing
missing:
  call void @PyErr_Clear()
  br label %out
out:
  ret ptr %a
}""",
    "attribute_of": """define internal ptr @attribute_of(ptr %x, ptr %name) #0 {
  %a = call ptr @got_attribute(ptr %x, ptr %name)
  call void @Py_DecRef(ptr %a)
  ret ptr %a
}""",
    "field_of": """define internal ptr @field_of(ptr %x, ptr %name) #0 {
  %a = call ptr @PyObject_GetAttr(ptr %x, ptr %name)
  %none = icmp eq ptr %a, null
  br i1 %none, label %missing, label %look
missing:
  call void @PyErr_Clear()
  ret ptr null
look:
  %count = load i32, ptr %a
  %fresh = icmp eq i32 %count, 1
  call void @Py_DecRef(ptr %a)
  %r = select i1 %fresh, ptr null, ptr %a
  ret ptr %r
}""",
    "attributes_of": """declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare i64 @PyDict_Size(ptr)
define internal i64 @attributes_of(ptr %x) #0 {
  %d = call ptr @PyObject_GenericGetDict(ptr %x, ptr null)
  %none = icmp eq ptr %d, null
  br i1 %none, label %missing, label %look
missing:
  call void @PyErr_Clear()
  ret i64 -1
look:
  %n = call i64 @PyDict_Size(ptr %d)
  call void @Py_DecRef(ptr %d)
  ret i64 %n
}""",
    "made": """define internal ptr @made(ptr %c, ptr %row, i64 %n, ptr %names) #0 {
  %raised = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %raised, null
  br i1 %none, label %on, label %out
on:
  %x = call ptr @PyObject_Vectorcall(ptr %c, ptr %row, i64 %n, ptr %names)
  ret ptr %x
out:
  ret ptr null
}""",
    "method_of": """define internal ptr @method_of(ptr %x, ptr %name, ptr %bound) #0 {
entry:
  %a = call ptr @got_attribute(ptr %x, ptr %name)
  %none = icmp eq ptr %a, null
  br i1 %none, label %no, label %look
look:
  %c = getelementptr i8, ptr %a, i64 8
  %class = load ptr, ptr %c
  %other = icmp ne ptr %class, @PyMethod_Type
  br i1 %other, label %no, label %method
method:
  %f = getelementptr i8, ptr %a, i64 16
  %function = load ptr, ptr %f
  %s = getelementptr i8, ptr %a, i64 24
  %self = load ptr, ptr %s
  %same = icmp eq ptr %self, %bound
  %kept = select i1 %same, ptr %function, ptr null
  br label %no
no:
  %r = phi ptr [null, %entry], [null, %look], [%kept, %method]
  call void @Py_DecRef(ptr %a)
  ret ptr %r
}""",
    "asked": """declare double @PyFloat_AsDouble(ptr)
define internal double @asked(ptr %f, ptr %x, ptr %y, i64 %n) #0 {
  %row = alloca [2 x ptr]
  %second = getelementptr i8, ptr %row, i64 8
  store ptr %x, ptr %row
  store ptr %y, ptr %second
  %z = call ptr @PyObject_Vectorcall(ptr %f, ptr %row, i64 %n, ptr null)
  call void @Py_DecRef(ptr %x)
  call void @Py_DecRef(ptr %y)
  %none = icmp eq ptr %z, null
  br i1 %none, label %raised, label %value
raised:
  call void @PyErr_Clear()
  ret double 0x7FF8000000000000
value:
  %r = call double @PyFloat_AsDouble(ptr %z)
  call void @Py_DecRef(ptr %z)
  ret double %r
}""",
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

_NAME = re.compile(r"@([\w.]+)")


def declared(text: str) -> str:
    """A module's text, with what it, and that in turn, uses besides."""
    lines: dict[str, str] = {}
    waiting = [text]
    for part in waiting:
        for name in _NAME.findall(part):
            if name in _DECLARATIONS and name not in lines:
                lines[name] = _DECLARATIONS[name]
                waiting.append(lines[name])
    return "\n".join([text, *lines.values()])
