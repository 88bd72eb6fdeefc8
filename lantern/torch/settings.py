"""Settings that programs choose around their work: precision, threads, a device.

What can make a difference here does; what asks for a way of computing that there is not
(other precisions of a product, a compiler) leaves results as they are.
"""

from typing import Any

from lantern import engines
from lantern.errors import EagerError, OptionError
from lantern.torch.tensor import dtypes

__all__ = [
    "are_deterministic_algorithms_enabled",
    "compile",
    "get_default_device",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_default_device",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_warn_always",
    "use_deterministic_algorithms",
]

_chosen: dict[str, Any] = {
    "precision": "highest",
    "deterministic": False,
    "warn_only": False,
}


def compile(model: Any = None, **options: Any) -> Any:
    """A function or a module as it is: nothing is compiled.

    Args:
        model: the function or module; None for a decorator with options.
        options: have no effect.

    Example:
        >>> import lantern.torch as torch
        >>> torch.compile(abs)(-1)
        1
    """
    if model is None:
        return lambda function: function
    if not callable(model):
        raise EagerError(f"compile: expected a callable, got {type(model).__name__}.")
    return model


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of less precision; they are computed in full all the same.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_float32_matmul_precision("high")
        >>> torch.get_float32_matmul_precision()
        'high'
        >>> torch.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise EagerError(
            f"invalid precision {precision!r}: choose 'highest', 'high' or 'medium'"
        )
    _chosen["precision"] = precision


def get_float32_matmul_precision() -> str:
    """What ``set_float32_matmul_precision`` was told last.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_float32_matmul_precision("highest")
        >>> torch.get_float32_matmul_precision()
        'highest'
    """
    precision: str = _chosen["precision"]
    return precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for the same results run after run, which is how it always is here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.use_deterministic_algorithms(False)
    """
    _chosen["deterministic"], _chosen["warn_only"] = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What ``use_deterministic_algorithms`` was told last.

    Example:
        >>> import lantern.torch as torch
        >>> torch.use_deterministic_algorithms(False)
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """
    return bool(_chosen["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ``use_deterministic_algorithms`` was last told to warn only.

    Example:
        >>> import lantern.torch as torch
        >>> torch.use_deterministic_algorithms(False)
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return bool(_chosen["warn_only"])


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """As ``use_deterministic_algorithms``, by a number or a name.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_deterministic_debug_mode("error")
        >>> torch.get_deterministic_debug_mode()
        2
        >>> torch.set_deterministic_debug_mode("default")
    """
    mode, warn_only = debug_mode not in (0, "default"), debug_mode in (1, "warn")
    use_deterministic_algorithms(mode, warn_only=warn_only)


def get_deterministic_debug_mode() -> int:
    """0, 1 (warn) or 2: what ``use_deterministic_algorithms`` was told last.

    Example:
        >>> import lantern.torch as torch
        >>> torch.use_deterministic_algorithms(False)
        >>> torch.get_deterministic_debug_mode()
        0
    """
    return _chosen["deterministic"] * (1 if _chosen["warn_only"] else 2)


def set_num_threads(number: int) -> None:
    """Say how many threads a convolution may use, and a product, with threadpoolctl.

    Without that package, the libraries behind NumPy go by their own variables, such as
    ``OMP_NUM_THREADS``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_num_threads(torch.get_num_threads())
    """
    if number < 1:
        raise EagerError("set_num_threads expects a positive integer")
    _chosen["threads"] = int(number)
    engines.set_threads(int(number))
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return
    threadpool_limits(int(number))


def get_num_threads() -> int:
    """What ``set_num_threads`` was told last; the machine's processors before that.

    Example:
        >>> import lantern.torch as torch
        >>> torch.get_num_threads() >= 1
        True
    """
    import os

    return int(_chosen.get("threads") or os.cpu_count() or 1)


def set_num_interop_threads(number: int) -> None:
    """Has no effect: operations run one after another.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_num_interop_threads(1)
    """


def get_num_interop_threads() -> int:
    """1: operations run one after another.

    Example:
        >>> import lantern.torch as torch
        >>> torch.get_num_interop_threads() >= 1
        True
    """
    return 1


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers can be taken for 0: they cannot.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_flush_denormal(True)
        False
    """
    return False


def set_warn_always(mode: bool) -> None:
    """Has no effect: what is said once is Python's to decide.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_warn_always(False)
    """


def set_default_device(device: Any) -> None:
    """Choose where new tensors lie.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_default_device("cpu")
        >>> torch.get_default_device()
        device(type='cpu')
    """
    dtypes.default_device[0] = dtypes.CPU if device is None else dtypes.device(device)


def get_default_device() -> dtypes.device:
    """Where new tensors lie.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_default_device("cpu")
        >>> torch.get_default_device()
        device(type='cpu')
    """
    return dtypes.default_device[0]


def set_default_tensor_type(t: Any) -> None:
    """Choose the type and the device of new tensors by a class such as FloatTensor.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_default_tensor_type(torch.DoubleTensor)
        >>> torch.tensor(0.5).dtype
        torch.float64
        >>> torch.set_default_tensor_type(torch.FloatTensor)
    """
    name = t if isinstance(t, str) else t.__name__
    word = name.rpartition(".")[2].removesuffix("Tensor").lower()
    if word not in ("float", "double", "half"):
        raise OptionError(
            f"set_default_tensor_type: {name} is no floating-point type. Use "
            "torch.FloatTensor or torch.DoubleTensor."
        )
    dtypes.set_default_dtype(getattr(dtypes, word))
    set_default_device("cuda" if "cuda" in str(t) else "cpu")
