"""The library oneDNN, by its C interface: the only file that calls it.

It computes on arrays of single precision, or of bfloat16, in any order of axes, in
several threads, and writes its code when a primitive is made (about 2 ms); so those are
kept.

References:
    oneDNN 3.2, include/oneapi/dnnl/dnnl.h and dnnl_types.h, for functions and numbers.
"""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from lantern.engines.arrays import address, filled, pointers, room
from lantern.engines.openblas import leave_cores, take_cores
from lantern.errors import EagerError, OptionError

__all__ = [
    "BRAIN", "Description", "Joint", "Layout", "Primitive", "described", "dims",
    "has_avx512", "in_use", "is_on", "library", "reorder", "set_threads", "switch",
    "switched", "threads", "workroom",
]  # fmt: skip

# Wheels that hold the library; they differ in what they take threads from.
_WHEELS = ("onednn-cpu-gomp", "onednn-cpu-iomp", "onednn-cpu-tbb")
_F32, _ANY, _CPU, _USER = 3, 1, 1, 1
BRAIN = 2  # the number of bfloat16 among types
_FROM, _TO = 1, 17
_IMPLEMENTATION, _BY_NUMBER, _SCRATCHPAD = 8, 255, 80
_AVX512 = 0x20  # a bit of what ``dnnl_get_effective_cpu_isa`` says
_KEPT = 1 << 25  # bytes of memory to compute in
_Dims = ctypes.c_int64 * 12
_Handle = ctypes.c_void_p


class _Argument(ctypes.Structure):
    """One argument of a primitive: which one it is, and its memory."""

    _fields_ = (("number", ctypes.c_int), ("memory", _Handle))


class _Here(threading.local):
    """What a thread has of its own: memory to compute in, its number of threads."""

    threads = 0

    def __init__(self) -> None:
        self.rooms: dict[int, Any] = {}


_here = _Here()
_chosen = {"threads": 0, "on": 1}


def _path() -> str | None:
    """Where the library is, by the variable or an installed wheel; or None."""
    named = os.environ.get("LANTERN_ONEDNN", "")
    if named in ("0", "off"):
        return None
    if named not in ("", "1", "on"):
        return named
    metadata = import_module("importlib.metadata")  # which takes 15 ms
    for wheel in _WHEELS:
        try:
            files = metadata.files(wheel) or ()
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == "libdnnl.so.3":
                return str(file.locate())
    return None


@cache
def library() -> Any:
    """The library with its engine and its stream; None where it is not installed.

    Raises:
        OptionError: if ``LANTERN_ONEDNN`` names a file that is no oneDNN 3.
    """
    path = _path()
    if path is None:
        return None
    try:
        found = _Library(path)
    except (OSError, AttributeError, EagerError) as error:
        if os.environ.get("LANTERN_ONEDNN"):
            raise OptionError(
                f"LANTERN_ONEDNN: {path!r} is no library oneDNN, version 3: {error}. "
                f"Name its libdnnl.so.3, or set it to 0 to do without."
            ) from error
        return None
    os.register_at_fork(after_in_child=_alone)
    return found


def _alone() -> None:
    """Go on with one thread: a forked process has none of the threads of its parent."""
    _chosen["threads"], _here.threads = 1, 0


class _Library:
    """oneDNN with its functions, an engine and a stream."""

    def __init__(self, path: str) -> None:
        self.functions = functions = ctypes.CDLL(path)
        functions.dnnl_memory_desc_create_with_tag.restype = ctypes.c_int  # since 3.0
        functions.dnnl_version.restype = ctypes.POINTER(ctypes.c_int * 3)
        self.version = tuple(functions.dnnl_version().contents)
        functions.dnnl_primitive_desc_query_md.restype = _Handle
        functions.dnnl_primitive_desc_query_md.argtypes = [
            _Handle, ctypes.c_int, ctypes.c_int,
        ]  # fmt: skip
        functions.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
        functions.dnnl_memory_desc_get_size.argtypes = [_Handle]
        functions.dnnl_memory_desc_equal.argtypes = [_Handle, _Handle]
        functions.dnnl_memory_set_data_handle.argtypes = [_Handle, ctypes.c_void_p]
        functions.dnnl_primitive_execute.argtypes = [
            _Handle, _Handle, ctypes.c_int, ctypes.c_void_p,
        ]  # fmt: skip
        self.most_threads = functions.omp_get_max_threads()
        self.engine = self.made("engine_create", _CPU, ctypes.c_size_t(0))
        self.stream = self.made("stream_create", self.engine, 1)
        self.attributes = self.attributes_with()

    def attributes_with(self, after: Any = ()) -> Any:
        """The attributes of a primitive, with what is done with its result."""
        attributes = self.made("primitive_attr_create")
        self.call("primitive_attr_set_scratchpad_mode", attributes, _USER)
        steps = self.made("post_ops_create")
        for kind, *what in after:
            self.call(f"post_ops_append_{kind}", steps, *what)
        self.call("primitive_attr_set_post_ops", attributes, steps)
        self.call("post_ops_destroy", steps)
        return attributes

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; raise if it does not succeed."""
        status = getattr(self.functions, f"dnnl_{name}")(*arguments)
        if status:
            raise EagerError(
                f"oneDNN: {name} failed with status {status}. Set LANTERN_ONEDNN=0 to "
                f"do without it, and report what was computed."
            )

    def made(self, name: str, *arguments: Any) -> Any:
        """What a function makes, which it leaves in its first argument."""
        made = _Handle()
        self.call(name, ctypes.byref(made), *arguments)
        return made


def in_use() -> str | None:
    """The name and version of the engine that computes now; None for none.

    Example:
        >>> import lantern.engines
        >>> with lantern.engines.switched(False):
        ...     print(lantern.engines.in_use())
        None
    """
    if not _chosen["on"] or library() is None:
        return None
    return "oneDNN " + ".".join(map(str, library().version))


@contextmanager
def switched(on: bool) -> Iterator[None]:
    """A block in which the engine computes, if it is installed, or does not.

    It holds for all threads. The environment variable ``LANTERN_ONEDNN`` says the same
    for a whole program: 0 for no engine, a path for that library.

    Example:
        >>> import lantern.engines
        >>> with lantern.engines.switched(False):
        ...     lantern.engines.in_use() is None
        True
    """
    before = _chosen["on"]
    switch(on)
    try:
        yield
    finally:
        switch(bool(before))


def switch(on: bool) -> None:
    """Say whether the engine computes, if it is installed.

    Example:
        >>> import lantern.engines
        >>> lantern.engines.switch(True)
    """
    _chosen["on"] = int(on)


def is_on() -> bool:
    """Whether there is an engine, and it is to compute."""
    return bool(_chosen["on"]) and library() is not None


@cache
def has_avx512() -> bool:
    """Whether the processor has vectors of 512 bits, and oneDNN may use them."""
    return bool(library().functions.dnnl_get_effective_cpu_isa() & _AVX512)


def set_threads(number: int) -> None:
    """Say how many threads the engine may use; ``OMP_NUM_THREADS`` says so at first.

    Example:
        >>> import lantern.engines
        >>> lantern.engines.set_threads(1)
    """
    _chosen["threads"] = number


def threads() -> int:
    """How many threads a primitive may use, which it is made for."""
    wanted: int = _chosen["threads"] or library().most_threads
    if _here.threads != wanted:
        library().functions.omp_set_num_threads(wanted)
        (leave_cores if wanted > 1 else take_cores)()
        _here.threads = wanted
    return wanted


def dims(numbers: Any) -> Any:
    """A row of integers as oneDNN takes it."""
    return _Dims(*numbers)


class Layout:
    """How an array lies in memory, or, without steps, that oneDNN may choose.

    Attributes:
        shape: the lengths of the axes.
        steps: from one element to the next along each axis; None for any.
    """

    def __init__(self, shape: Any, steps: Any = None, kind: int = _F32) -> None:
        self.shape, self.steps = shape, steps
        form = (len(shape), dims(shape), kind)
        name = "with_tag" if steps is None else "with_strides"
        last = _ANY if steps is None else dims(steps)
        self.handle = library().made(f"memory_desc_create_{name}", *form, last)

    @property
    def _as_parameter_(self) -> Any:
        return self.handle

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            library().functions.dnnl_memory_desc_destroy(self.handle)


def described(function: str, *arguments: Any, after: Any = ()) -> Any:
    """The description of a primitive; None if oneDNN has no fast code for it.

    Args:
        function: its name, less ``dnnl_`` and ``_primitive_desc_create``.
        arguments: those behind the engine; attributes are added.
        after: what is done with a result, as ``chains`` has it.
    """
    here, found = library(), _Handle()
    make = getattr(here.functions, f"dnnl_{function}_primitive_desc_create")
    if function == "reorder":
        source, target = arguments
        arguments = (source, here.engine, target, here.engine)
    else:
        arguments = (here.engine, *arguments)
    attributes = here.attributes_with(after) if after else here.attributes
    status = make(ctypes.byref(found), *arguments, attributes)
    if after:
        here.call("primitive_attr_destroy", attributes)
    if status:
        return None
    description = Description(found)
    slow = description.is_slow() and not function.startswith("lstm")
    return None if slow else description


class Description:
    """What a primitive will do, and how its arguments are to lie in memory."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    @property
    def _as_parameter_(self) -> Any:
        return self.handle

    def layout(self, number: int) -> Any:
        """The handle of the layout that an argument is to have."""
        query = library().functions.dnnl_primitive_desc_query_md
        return _Handle(query(self.handle, _BY_NUMBER, number))

    def size(self, number: int) -> int:
        """How many bytes an argument takes."""
        size: int = library().functions.dnnl_memory_desc_get_size(self.layout(number))
        return size

    def takes(self, number: int, layout: Layout) -> bool:
        """Whether an argument may lie as it does."""
        same = library().functions.dnnl_memory_desc_equal
        return bool(same(self.layout(number), layout.handle))

    def is_slow(self) -> bool:
        """Whether it is oneDNN's reference, which takes a hundred times as long.

        But for layers of long short-term memories, where it multiplies by other code.
        """
        name = ctypes.c_char_p()
        library().call(
            "primitive_desc_query", self.handle, _IMPLEMENTATION, 0, ctypes.byref(name)
        )
        return (name.value or b"").startswith(b"ref")

    def __del__(self) -> None:
        library().functions.dnnl_primitive_desc_destroy(self.handle)


class Primitive:
    """A computation that is ready to run, in any number of threads of the program.

    Args:
        description: what it does.
        numbers: those of its arguments, in the order in which they will come.
    """

    def __init__(self, description: Description, *numbers: int) -> None:
        self.description, self.numbers = description, numbers
        self.handle = library().made("primitive_create", description.handle)
        self.scratch = description.size(_SCRATCHPAD)
        # Sets of arguments that no thread is using, and the memory in each.
        self.free: list[Any] = []
        self.memories: list[Any] = []

    def run(self, *arrays: Any) -> None:
        """Compute on arrays, which lie as the description has it."""
        here = library()
        try:
            arguments, memories = self.free.pop()
        except IndexError:
            arguments, memories = self._arguments()
        place = here.functions.dnnl_memory_set_data_handle
        if self.scratch:  # alive until it has run
            arrays = *arrays, workroom(_SCRATCHPAD, self.scratch)
        for memory, start in zip(memories, pointers(arrays), strict=True):
            place(memory, start)
        status = here.functions.dnnl_primitive_execute(
            self.handle, here.stream, len(arguments), arguments
        )
        self.free.append((arguments, memories))
        if status:
            raise EagerError(
                f"oneDNN: a primitive failed with status {status}. Set "
                f"LANTERN_ONEDNN=0 to do without it, and report what was computed."
            )

    def _arguments(self) -> Any:
        numbers = [*self.numbers, *([_SCRATCHPAD] if self.scratch else [])]
        memories = [_memory(self.description.layout(number)) for number in numbers]
        self.memories += memories
        return _arguments(numbers, memories), memories

    def __del__(self) -> None:
        functions = library().functions
        for memory in getattr(self, "memories", ()):
            functions.dnnl_memory_destroy(memory)
        if hasattr(self, "handle"):
            functions.dnnl_primitive_destroy(self.handle)


def _memory(layout: Any, place: int | None = None) -> Any:
    """The memory of an argument, perhaps where it will stay."""
    here = library()
    return here.made("memory_create", layout, here.engine, _Handle(place))


def _arguments(numbers: Any, memories: Any) -> Any:
    """Arguments as oneDNN takes them."""
    pairs = zip(numbers, memories, strict=True)
    return (_Argument * len(memories))(*[_Argument(n, m.value) for n, m in pairs])


class Joint:
    """Primitives without working memory that run one after another on the same arrays.

    Args:
        layouts: how each array lies.
        count: how many numbers they take beside the arrays, in arrays of one element.
        runs: each primitive, and what it takes, by the places among arrays and numbers.
    """

    def __init__(
        self, layouts: Any, count: int, *runs: tuple[Primitive, tuple[int, ...]]
    ) -> None:
        self.layouts, self.count, self.runs = layouts, count, runs
        # Sets of memories, numbers and calls that no plan has.
        self.free: list[Any] = []
        self.memories: list[Any] = []

    def later(self, arrays: Any, numbers: Any) -> Any:
        """The calls that run them, of functions in C; the last one holds the arrays."""
        try:
            taken = self.free.pop()
        except IndexError:
            taken = self._made()
        memories, row, calls = taken
        row[:] = numbers
        place = library().functions.dnnl_memory_set_data_handle
        for memory, start in zip(memories, pointers(arrays), strict=False):
            place(memory, start)
        *first, (run, handle, stream, count, arguments) = calls
        held = _Held(ctypes.addressof(arguments))
        held.owner, held.taken, held.arrays = self, taken, arrays
        return [*first, (run, handle, stream, count, held)]

    def _made(self) -> Any:
        here, row, one = library(), filled(self.count, 0), Layout((1,), (1,))
        start = address(row)
        memories = [_memory(layout) for layout in self.layouts]
        memories += [_memory(one, start + 4 * i) for i in range(self.count)]
        self.memories += memories
        run, calls = here.functions.dnnl_primitive_execute, []
        for primitive, places in self.runs:
            arguments = _arguments(primitive.numbers, [memories[i] for i in places])
            calls.append((run, primitive.handle, here.stream, len(places), arguments))
        return memories, row, calls

    def __del__(self) -> None:
        for memory in self.memories:
            library().functions.dnnl_memory_destroy(memory)


class _Held(ctypes.c_void_p):
    """Where the arguments of a call are that is still to come."""

    owner: Joint
    taken: Any
    arrays: Any

    def __del__(self) -> None:
        self.owner.free.append(self.taken)


def reorder(source: Any, target: Any) -> Primitive:
    """What brings an array from one layout into another."""
    return Primitive(described("reorder", source, target), _FROM, _TO)


def workroom(number: int, size: int) -> Any:
    """Memory of this thread's own, until something asks for it again.

    Args:
        number: of the argument that it is for, of those that are needed at once.
        size: how many bytes; that of more than 32 MiB is not kept.
    """
    found = _here.rooms.get(number)
    if found is None or found.size < size:
        found = room(size)
        if size <= _KEPT:
            _here.rooms[number] = found
    return found
