"""cuDNN, by its frontend and by its C interface: the only file that calls it.

Its graphs are compiled when they are made (about 4 ms), so those are kept. The C
interface has what takes one call and no graph.

References:
    cuDNN 9, cudnn_ops.h and cudnn_cnn.h; NVIDIA/cudnn-frontend 1.14 and 1.32, their
    Python API.
"""

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from lantern.engines.arrays import steps
from lantern.engines.gpu.arrays import cupy, device, room
from lantern.errors import EagerError

__all__ = [
    "ONE", "ZERO", "Graph", "allow_tf32", "allows_tf32", "call", "graph",
    "is_installed", "is_on", "is_wanted", "layout", "library", "switch", "tensor",
    "version",
]  # fmt: skip

_chosen = {"on": True, "tf32": True}
_POINTER, _INT, _NUMBER = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
# The factors of what is computed and of what was there before.
ONE, ZERO = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
# Of each function of the C interface, its arguments behind the handle.
_SIGNATURES = {
    "BatchNormalizationForwardTraining": [_INT, *[_POINTER] * 9]
    + 2 * [_NUMBER, _POINTER, _POINTER],
    "BatchNormalizationBackward": [_INT, *[_POINTER] * 14, _NUMBER, _POINTER, _POINTER],
    "SoftmaxForward": [_INT, _INT, *[_POINTER] * 6],
    "SoftmaxBackward": [_INT, _INT, *[_POINTER] * 8],
}


class _Here(threading.local):
    """What a thread has of its own: a handle for each device."""

    def __init__(self) -> None:
        self.handles: dict[int, _Handle] = {}


class _Handle:
    """A handle on a device: the frontend's, that of the C interface, and its stream.

    That of older frontends (1.14) is a number; that of later ones (1.32) has one.
    """

    def __init__(self) -> None:
        self.graphs: Any = library()[0].create_handle()
        self.calls: int = getattr(self.graphs, "backend_handle", self.graphs)
        self.stream: int | None = None


_here = _Here()


@cache
def library() -> Any:
    """The frontend's module and the library's functions; None if not installed."""
    try:
        frontend = import_module("cudnn")  # which loads the library
        functions = ctypes.CDLL("libcudnn.so.9")
    except (ImportError, OSError):
        return None
    for name, kinds in _SIGNATURES.items():
        getattr(functions, f"cudnn{name}").argtypes = [_POINTER, *kinds]
    return frontend, functions


def is_installed() -> bool:
    """Whether the library and its frontend are installed."""
    return library() is not None


def version() -> int:
    """The library's version: 91900 for 9.19.0."""
    number: int = library()[0].backend_version()
    return number


def is_wanted() -> bool:
    """Whether the library is to compute where it is installed."""
    return _chosen["on"]


def is_on() -> bool:
    """Whether the library is installed, and is to compute."""
    return _chosen["on"] and library() is not None


def switch(on: bool) -> None:
    """Say whether the library computes, if it is installed."""
    _chosen["on"] = on


def allows_tf32() -> bool:
    """Whether convolutions may multiply numbers of 11 binary digits."""
    return _chosen["tf32"]


def allow_tf32(allowed: bool) -> None:
    """Say whether convolutions may multiply numbers of 11 binary digits.

    They may at first, as in PyTorch: about four times as fast, and right to 1e-3.
    """
    _chosen["tf32"] = allowed


def _current() -> _Handle:
    """This thread's handle on the current device, set to the current stream."""
    number, stream = device(), cupy().cuda.get_current_stream().ptr
    handle = _here.handles.get(number)
    if handle is None:
        handle = _here.handles[number] = _Handle()
    if handle.stream != stream:
        library()[0].set_stream(handle.graphs, stream)
        handle.stream = stream
    return handle


def _checked(name: str, status: int) -> None:
    if status:
        raise EagerError(
            f"cuDNN: {name} failed with status {status}. Set torch.backends.cudnn."
            f"enabled to False to do without it, and report what was computed."
        )


def call(name: str, *arguments: Any) -> None:
    """Call a function of the C interface; raise if it does not succeed.

    Args:
        name: less ``cudnn``.
        arguments: those behind the handle; of arrays and layouts, their addresses.
    """
    _checked(name, getattr(library()[1], f"cudnn{name}")(_current().calls, *arguments))


@cache
def layout(shape: Any) -> int:
    """The address of what says how an array lies: in the order of its axes.

    It stays as long as the program runs.
    """
    shape = (*shape, *[1] * (4 - len(shape)))
    made, functions, kind = _POINTER(), library()[1], _INT * len(shape)
    create = functions.cudnnCreateTensorDescriptor
    _checked("CreateTensorDescriptor", create(ctypes.byref(made)))
    lies = kind(*shape), kind(*steps(shape))
    status = functions.cudnnSetTensorNdDescriptor(made, 0, len(shape), *lies)
    _checked("SetTensorNdDescriptor", status)
    return made.value or 0


class Graph:
    """A computation of cuDNN's that is ready to run.

    Args:
        built: the frontend's graph, with the code that computes it.
        tensors: its operands and results, in the order in which ``run`` gets them.
        numbers: operands that are numbers, which stay as they are.
    """

    def __init__(self, built: Any, tensors: Any, numbers: Any) -> None:
        self.built, self.size = built, built.get_workspace_size()
        self.names = [x.get_uid() for x in tensors]
        self.kept = [ctypes.c_float(value) for _, value in numbers]
        self.constants = {
            x.get_uid(): ctypes.addressof(kept)
            for (x, _), kept in zip(numbers, self.kept, strict=True)
        }

    def run(self, *arrays: Any) -> None:
        """Compute on arrays, each in the order of its axes, without gaps."""
        places = dict(zip(self.names, [x.data.ptr for x in arrays], strict=True))
        memory = room(self.size) if self.size else None
        address = 0 if memory is None else memory.data.ptr
        self.built.execute(places | self.constants, address, handle=_current().graphs)


def graph(describe: Callable[[Any], Any], exact: bool = True) -> Graph | None:
    """A graph; None if cuDNN has no code for it.

    Args:
        describe: given the frontend's graph, adds operations to it, and returns its
            operands and results, and pairs of operands that are numbers with those.
        exact: whether factors keep all of their digits.
    """
    frontend, _ = library()
    kind = frontend.data_type.FLOAT
    begun = frontend.pygraph(
        handle=_current().graphs,
        io_data_type=kind,
        intermediate_data_type=kind,
        compute_data_type=kind,
    )
    try:
        tensors, numbers = describe(begun)
        begun.validate()
        begun.build_operation_graph()
        modes = frontend.heur_mode
        begun.create_execution_plans([modes.A, modes.FALLBACK])
        if exact:
            begun.deselect_numeric_notes([frontend.numerical_note.TENSOR_CORE])
        begun.check_support()
        begun.build_plans()
    except (frontend.cudnnGraphNotSupportedError, RuntimeError):
        return None
    return Graph(begun, tensors, numbers)


def tensor(begun: Any, shape: Any, result: Any = None, number: bool = False) -> Any:
    """An operand of a graph, or what becomes of one of its results.

    Args:
        begun: the frontend's graph.
        shape: of the array, which lies in the order of its axes.
        result: what an operation has given; None for an operand.
        number: whether it is a number, which lies on the host.
    """
    kind, lengths, lies = library()[0].data_type.FLOAT, list(shape), list(steps(shape))
    if result is None:
        return begun.tensor(
            dim=lengths, stride=lies, data_type=kind, is_pass_by_value=number
        )
    result.set_output(True).set_data_type(kind).set_dim(lengths).set_stride(lies)
    return result
