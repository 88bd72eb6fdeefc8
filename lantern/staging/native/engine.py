"""LLVM itself: the only file that imports llvmlite.

Text goes in, and the address of machine code comes out, which a builtin function of
Python's can run.
"""

import ctypes
import mmap
import os
import platform
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from struct import pack
from typing import Any, NamedTuple

from lantern.blocks import mutex
from lantern.errors import StagingError
from lantern.staging.native.disk import folder, key_of, load, save
from lantern.staging.native.hurry import hurried
from lantern.staging.native.layout import is_known
from lantern.staging.native.loader import executable, placed

__all__ = [
    "Builtin",
    "Stack",
    "address_of",
    "arena",
    "compiled",
    "is_available",
    "kept",
    "key_of_code",
    "optimised",
    "stack",
    "suspended",
    "warm_up",
]

_FASTCALL, _KEYWORDS = 0x80, 0x02
_lock = mutex()
_SYMBOLS = (
    "PyFloat_FromDouble PyLong_FromLongLong PyLong_AsLongLongAndOverflow "
    "PyTuple_New PyList_New Py_IncRef Py_DecRef PyObject_Vectorcall PyObject_GetAttr "
    "PyErr_Clear PyErr_CheckSignals PyErr_Occurred PyErr_ExceptionMatches "
    "PyExc_AttributeError PyMethod_Type PyType_GenericAlloc PyDict_GetItem "
    "PyList_GetItem PyFloat_AsDouble"
).split()


@cache
def is_available() -> bool:
    """Whether native code can be made here."""
    try:
        import_module("llvmlite.binding")
    except ImportError:
        return False
    return is_known()


@cache
def _binding() -> Any:
    binding = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def arena() -> tuple[int, int]:
    """Where passes save what they need again: a beginning and an end.

    The room is reserved; the system gives memory for what is touched.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    for size in (1 << 36, 1 << 32, 1 << 28):
        try:
            room = mmap.mmap(-1, size, flags)
        except (OSError, ValueError):
            continue
        _kept.append(room)
        start = ctypes.addressof(ctypes.c_char.from_buffer(room))
        return start, start + size
    raise StagingError(
        "jit: the system reserves no room for what programs save. Set LANTERN_JIT=off."
    )


@cache
def suspended() -> int:
    """The address of how many programs wait while a signal's handler runs.

    The arena is theirs: what would save there meanwhile runs as the plain function.
    """
    count = ctypes.c_uint64(0)
    _kept.append(count)
    return ctypes.addressof(count)


class Stack(NamedTuple):
    """A stack of its own for programs that call themselves.

    Attributes:
        start, end: its addresses; it grows towards its start.
        switch: the address of a function of an end of a stack and of a function, which
            it calls there.
    """

    start: int
    end: int
    switch: int


# push rbx; mov rbx, rsp; mov rsp, rdi; call rsi; mov rsp, rbx; pop rbx; ret
_SWITCH = bytes.fromhex("53 4889e3 4889fc ffd6 4889dc 5b c3")
_STACK = 1 << 33


@cache
def stack() -> Stack | None:
    """The stack; None if this processor or this system has none.

    It is 8 GB of addresses, of which the system backs what is touched.
    """
    if platform.machine() != "x86_64" or sys.platform not in ("linux", "darwin"):
        return None
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        room = mmap.mmap(-1, _STACK, flags | getattr(mmap, "MAP_NORESERVE", 0))
        code, switch = executable(mmap.PAGESIZE)
    except (OSError, ValueError):
        return None
    code.write(_SWITCH)
    _kept.extend((room, code))
    start = ctypes.addressof(ctypes.c_char.from_buffer(room))
    return Stack(start, start + _STACK - mmap.PAGESIZE, switch)


_kept: list[Any] = []


class _Definition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


class Builtin:
    """A builtin function of Python's whose machine code can be replaced.

    At first it calls its owner: to call an object with arguments takes the same four
    arguments as to be called with them.

    Args:
        owner: what it belongs to, and what takes the calls that machine code does not.
        name: of the function.
        documentation: its docstring.
    """

    def __init__(self, owner: Any, name: str, documentation: str | None) -> None:
        self._slow = address_of("PyObject_Vectorcall")
        text = None if documentation is None else documentation.encode()
        flags = _FASTCALL | _KEYWORDS
        self._definition = _Definition(name.encode(), self._slow, flags, text)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        place = ctypes.addressof(self._definition)
        self.function: Callable[..., Any] = make(place, owner, None)
        _kept.append(self._definition)  # the function may outlive this object

    def use(self, address: int | None) -> None:
        """Run other machine code from now on; None: call the owner."""
        self._definition.function = self._slow if address is None else address


@cache
def address_of(name: str) -> int:
    """Where a function or an object is, of CPython's or of C's; 0 if nowhere."""
    function = getattr(ctypes.pythonapi, name, None)
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0) if function else 0


def compiled(text: str, words: Sequence[int], level: int) -> int:
    """The address of ``@wrapper`` in a module of LLVM's.

    Args:
        text: of the module.
        words: the addresses that it finds in its table.
        level: 3 for all passes, 2 for the few that code without recursion has use for,
            1 for none: the result is kept for other processes. 0 for none, in a hurry.
    """
    key = key_of_code(text, level) if level else None
    with _lock:
        found = load(key) if key else None
        if found is None:
            machine = _machine(level > 1)
            found = machine.emit_object(_passed(text, level))
            if key:
                save(key, found)
        return _linked(found, words)


def kept(key: str | None, words: Sequence[int]) -> int | None:
    """The address of ``@wrapper`` in code that another process has kept; else None."""
    found = load(key) if key else None
    if found is None:
        return None
    with _lock:
        return _linked(found, words)


def optimised(text: str, level: int) -> str:
    """What LLVM makes of a module, as a text."""
    with _lock:
        return str(_passed(text, level))


def key_of_code(text: str, level: int) -> str | None:
    """What code is kept under; None if it is kept nowhere."""
    if folder() is None:
        return None
    binding = _binding()
    version = ".".join(map(str, binding.llvm_version_info))
    llvmlite = import_module("llvmlite").__version__
    return key_of([text, str(level), "pic", *_processor(), llvmlite, version])


def _passed(text: str, level: int) -> Any:
    """A module after LLVM's passes."""
    binding = _binding()
    module = binding.parse_assembly(text if level > 1 else hurried(text))
    if level < 2 or (level == 2 and _INLINED not in text):
        return module
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = binding.create_pass_builder(_machine(True), options)
    if level == 3:
        manager = builder.getModulePassManager()
    else:
        manager = binding.create_new_module_pass_manager()
        manager.add_always_inliner_pass()
        manager.add_instruction_combine_pass()
    manager.run(module, builder)
    return module


_INLINED = "alwaysinline"
"""What is said of functions whose body is to stand where they are called."""


def _linked(code: bytes, words: Sequence[int]) -> int:
    """Machine code brought into memory; its table and its arena are filled in."""
    names = placed(code, address_of) or _linked_by_llvm(code)
    start, end = arena()
    for name, numbers in {"top": [start], "arena_end": [end], "words": words}.items():
        table = pack(f"{len(numbers)}Q", *numbers)
        ctypes.memmove(names[name], table, len(table))
    return names["wrapper"]


def _linked_by_llvm(code: bytes) -> dict[str, int]:
    builder = _binding().JITLibraryBuilder()
    builder.add_object_img(code).add_current_process()
    for name in _SYMBOLS:
        builder.import_symbol(name, address_of(name))
    names = "top", "arena_end", "words", "wrapper"
    for name in names:
        builder.export_symbol(name)
    library = builder.link(_linker(), f"lantern.{len(_kept)}")
    _kept.append(library)
    return {name: int(library[name]) for name in names}


@cache
def _linker() -> Any:
    """What brings all code into memory, each module in one piece."""
    return _binding().create_lljit_compiler(_new_machine(False), use_jit_link=True)


@cache
def _machine(is_thorough: bool) -> Any:
    return _new_machine(is_thorough)


@cache
def warm_up() -> None:
    """Compile something in a hurry: the first time takes longer than all others."""
    with _lock:
        module = _binding().parse_assembly(_SMALL)
        _machine(False).emit_object(module)


_SMALL = """
define double @f(double %x, ptr %p) {
entry:
  %y = fmul double %x, %x
  %test = fcmp uno double %y, %y
  br i1 %test, label %left, label %right
left:
  store double %y, ptr %p
  br label %right
right:
  %z = call double @f(double %y, ptr %p)
  ret double %z
}
"""


def _new_machine(is_thorough: bool) -> Any:
    """A machine that a linker may own: one for code whose parts lie near each other.

    Without passes, LLVM chooses instructions fast for such code alone. What it does
    beyond the first level takes it a tenth more time, and gains nothing.
    """
    cpu, features = _processor()
    return (
        _binding()
        .Target.from_default_triple()
        .create_target_machine(
            cpu=cpu,
            features=features,
            opt=int(is_thorough),
            reloc="pic",
            codemodel="small",
            jit=True,
        )
    )


@cache
def _processor() -> tuple[str, str]:
    """The processor's name, and what it lacks that others of the name have.

    What it has besides follows from the name, if it has one; LLVM takes time for each.
    """
    binding = _binding()
    name = binding.get_host_cpu_name()
    features = binding.get_host_cpu_features()
    if name not in _UNKNOWN:
        features = [f"-{x}" for x, is_there in sorted(features.items()) if not is_there]
        return name, ",".join(features)
    return name, features.flatten()


_UNKNOWN = frozenset({"", "generic", "x86-64"})


def _before_fork() -> None:
    _lock.__enter__()


def _after_fork() -> None:
    _lock.__exit__()


if hasattr(os, "register_at_fork"):  # nobody is inside of LLVM when a process forks
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
