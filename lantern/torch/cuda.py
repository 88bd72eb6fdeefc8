"""GPUs, through CuPy: whether there are any, and what they are."""

from contextlib import nullcontext
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from lantern.errors import EagerError, MissingExtraError, MissingRuleError
from lantern.tensor.backend.numpy_namespace import find_device
from lantern.torch import amp as amp
from lantern.torch.methods import sampling
from lantern.torch.run.aliases import absent, lead
from lantern.torch.tensor import dtypes

__path__: list[str] = []  # so that ``torch.cuda.amp`` can be imported
lead(__name__, "amp", amp.__name__)
lead(__name__, "graphs memory random streams")
nvtx = absent(__name__, {"nvtx": "NVTX is not used here. See lantern.viz."})["nvtx"]
_initialized = False  # reversible networks ask before they keep a GPU's random state

__all__ = ["current_device", "device_count", "is_available"]


def device_count() -> int:
    """How many GPUs there are.

    Example:
        >>> import lantern.torch as torch
        >>> (torch.cuda.device_count() > 0) == torch.cuda.is_available()
        True
    """
    try:
        library, _ = find_device("cuda")
        count: int = library.module.cuda.runtime.getDeviceCount()
    except Exception as error:
        if (
            isinstance(error, MissingExtraError)
            or "cuda" in type(error).__name__.lower()
        ):
            return 0
        raise
    return count


def is_available() -> bool:
    """Whether there is a GPU, and CuPy to use it.

    Example:
        >>> import lantern.torch as torch
        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
        >>> torch.ones(2).to(device).sum().item()
        2.0
    """
    return device_count() > 0


def current_device() -> int:
    """The number of the GPU in use.

    Example:
        >>> import lantern.torch as torch
        >>> if torch.cuda.is_available():
        ...     assert torch.cuda.current_device() < torch.cuda.device_count()
    """
    library, _ = find_device("cuda")
    number: int = library.module.cuda.runtime.getDevice()
    return number


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has done all that it was given.

    Example:
        >>> import lantern.torch as torch
        >>> if torch.cuda.is_available():
        ...     torch.cuda.synchronize()
    """
    if is_available():
        find_device("cuda")[0].module.cuda.runtime.deviceSynchronize()


def manual_seed(seed: int) -> None:
    """Has no effect: random numbers are drawn on the CPU."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Let the memory pool of the GPU go."""
    if is_available():
        find_device("cuda")[0].module.get_default_memory_pool().free_all_blocks()


def set_device(device: Any) -> None:
    """Use a GPU: its number, or a device."""
    number = dtypes.device(device).index
    if number is not None and number >= 0:
        _library().cuda.Device(number).use()


class device:
    """A block in which a GPU is used.

    Args:
        device: its number, or a device; None changes nothing.
    """

    def __init__(self, device: Any) -> None:
        self.number = None if device is None else dtypes.device(device).index

    def __enter__(self) -> None:
        if self.number is not None and self.number >= 0:
            self.before = current_device()
            set_device(self.number)

    def __exit__(self, *exception: Any) -> None:
        if self.number is not None and self.number >= 0:
            set_device(self.before)


def _library() -> Any:
    """CuPy; an error that says how to have it."""
    if not is_available():
        raise EagerError(
            "torch.cuda: there is no GPU here, or no CuPy to use it with. Ask "
            "torch.cuda.is_available() first."
        )
    return find_device("cuda")[0].module


def get_device_name(device: Any = None) -> str:
    """What a GPU is called."""
    name: bytes = _properties(device)["name"]
    return name.decode()


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The version of what a GPU can do."""
    found = _properties(device)
    return found["major"], found["minor"]


def get_device_properties(device: Any = None) -> Any:
    """What a GPU is called, and what it has."""
    found = _properties(device)
    return SimpleNamespace(
        name=found["name"].decode(),
        total_memory=found["totalGlobalMem"],
        major=found["major"],
        minor=found["minor"],
        multi_processor_count=found["multiProcessorCount"],
    )


def _properties(device: Any) -> Any:
    library = _library()
    number = current_device() if device is None else dtypes.device(device).index or 0
    return library.cuda.runtime.getDeviceProperties(number)


def memory_allocated(device: Any = None) -> int:
    """How many bytes of the GPU are in use."""
    if not is_available():
        return 0
    used: int = _library().get_default_memory_pool().used_bytes()
    return used


def memory_reserved(device: Any = None) -> int:
    """How many bytes of the GPU the memory pool holds."""
    if not is_available():
        return 0
    held: int = _library().get_default_memory_pool().total_bytes()
    return held


max_memory_reserved = memory_cached = memory_reserved
# The pool keeps what it once had: what it holds is the most that was in use.
max_memory_allocated = memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Has no effect."""


reset_max_memory_allocated = reset_peak_memory_stats


def is_initialized() -> bool:
    """Whether the GPU has been used."""
    return is_available()


def init() -> None:
    """Has no effect."""


def is_bf16_supported() -> bool:
    """Whether there are tensors of bfloat16: no."""
    return False


def get_rng_state_all() -> list[Any]:
    """Nothing: random numbers are drawn on the CPU."""
    return []


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of the generator on the CPU, which draws for GPUs too."""
    return sampling.get_rng_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of the generator on the CPU, which draws for GPUs too."""
    sampling.set_rng_state(new_state)


def set_rng_state_all(new_states: Any) -> None:
    """Has no effect: random numbers are drawn on the CPU."""


class OutOfMemoryError(EagerError):
    """The GPU has no memory left.

    Example:
        >>> import lantern.torch as torch
        >>> issubclass(torch.OutOfMemoryError, RuntimeError)
        True
    """


class AcceleratorError(EagerError):
    """The GPU could not do what it was given.

    Example:
        >>> import lantern.torch as torch
        >>> issubclass(torch.AcceleratorError, RuntimeError)
        True
    """


class Event:
    """A moment, whose distance from another can be measured.

    Args:
        enable_timing: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> first, last = torch.Event(), torch.Event()
        >>> first.record(), last.record()
        (None, None)
        >>> first.elapsed_time(last) >= 0
        True
    """

    def __init__(self, enable_timing: bool = False, **options: Any) -> None:
        self.moment = 0.0

    def record(self, stream: Any = None) -> None:
        """Now, when the GPU has done all that it was given."""
        synchronize()
        self.moment = perf_counter()

    def synchronize(self, stream: Any = None) -> None:
        """Wait for the moment, which is over."""

    wait = synchronize

    def query(self) -> bool:
        """Whether the moment is over: yes."""
        return True

    def elapsed_time(self, end_event: Any) -> float:
        """The milliseconds to another moment."""
        return 1e3 * float(end_event.moment - self.moment)


class Stream:
    """What a GPU does one after another: there is one.

    Example:
        >>> import lantern.torch as torch
        >>> torch.Stream().query()
        True
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        pass

    def synchronize(self, other: Any = None) -> None:
        """Wait until all is done."""
        synchronize()

    wait_stream = wait_event = synchronize

    def record_event(self, event: Any = None) -> Any:
        """The moment when all is done."""
        event = Event() if event is None else event
        event.record()
        return event

    def query(self) -> bool:
        """Whether all is done: after waiting for it."""
        synchronize()
        return True


class CUDAGraph:
    """Work that would be recorded: a name for annotations.

    Raises:
        NotImplementedError: when one is made.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        raise MissingRuleError("torch.cuda.CUDAGraph: work is not recorded here.")


def current_stream(device: Any = None) -> Stream:
    """The only stream."""
    return Stream()


default_stream = current_stream


class StreamContext(nullcontext[None]):
    """A block without effect: there is one stream.

    Args:
        stream: has no effect.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__()


class graph(CUDAGraph):
    """A block whose work would be recorded: a name for annotations."""


stream = StreamContext


def __getattr__(name: str) -> Any:
    """Types such as ``FloatTensor``, when they are asked for."""
    if name.endswith("Tensor"):
        from lantern.torch.methods import typed_constructors

        return typed_constructors.on_gpu(name)
    raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}")
