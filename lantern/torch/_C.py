"""The few names of PyTorch's compiled part that libraries ask for."""

import importlib
import sys
from contextlib import nullcontext
from typing import Any
from weakref import ref

from lantern.eager.backward import under_way
from lantern.eager.grad_mode import is_grad_enabled as is_grad_enabled
from lantern.eager.packed import hooks
from lantern.errors import EagerError
from lantern.torch.asking import DisableTorchFunction, is_on, modes
from lantern.torch.autograd import graph
from lantern.torch.autograd.function import Function
from lantern.torch.jit import is_tracing
from lantern.torch.methods.sampling import Generator as Generator
from lantern.torch.nn.moving import parse_to
from lantern.torch.run.aliases import absent, refusing
from lantern.torch.run.aliases import lead as _lead
from lantern.torch.tensor.dtypes import Size as Size
from lantern.torch.tensor.dtypes import device as device
from lantern.torch.tensor.dtypes import dtype as dtype
from lantern.torch.tensor.nodes import Node, SavedTensor, node_class
from lantern.torch.tensor.subclasses import disabled
from lantern.torch.tensor.tensor import Tensor as TensorBase

__all__ = ["Generator", "Size", "TensorBase", "device", "dtype"]

_TensorBase, _TensorMeta, _is_tracing = TensorBase, type(TensorBase), is_tracing
DisableTorchFunctionSubclass = DisableTorchFunction
_disabled_torch_function_impl = _disabled_torch_dispatch_impl = disabled


def _log_api_usage_once(name: str) -> None:
    """Nothing is counted."""


def _get_tracing_state() -> None:
    """None: no program is being written down."""


def _add_docstr(function: Any, text: str) -> Any:
    """A function with a docstring."""
    function.__doc__ = text
    return function


def _get_privateuse1_backend_name() -> str:
    """The name of a backend that there is not."""
    return "privateuseone"


def _len_torch_function_stack() -> int:
    """How many blocks see each function."""
    return len(modes.get())


class _Keys(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """Names of the ways that PyTorch computes an operation in."""


class DispatchKeySet:
    """Several such names.

    Args:
        key: the first one, or several.
    """

    def __init__(self, key: Any) -> None:
        self.keys = set(key) if isinstance(key, set) else {key}

    def __or__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(self.keys | other.keys)

    def has(self, key: str) -> bool:
        """Whether a name is among them."""
        return key in self.keys


def _ExcludeDispatchKeyGuard(keys: Any) -> Any:
    """A block without effect."""
    return nullcontext()


def _has_mkldnn() -> bool:
    """Whether oneDNN is behind it: no."""
    return False


class _WeakTensorRef:
    """A tensor that this does not keep.

    Args:
        tensor: the tensor.
    """

    def __init__(self, tensor: Any) -> None:
        self.weak = ref(tensor)

    def expired(self) -> bool:
        """Whether it is there no longer."""
        return self.weak() is None


def _current_graph_task_id() -> int:
    """The number of the backward pass that is under way; -1 for none."""
    return under_way[-1].number if under_way else -1


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the backward pass that is under way resumes a rule.

    Raises:
        RuntimeError: outside of a pass; of a leaf in ``autograd.grad``.
    """
    if not isinstance(node, Node):
        raise EagerError(
            "_will_engine_execute_node expects an grad_fn, but got "
            f"{type(node).__name__}"
        )
    if not under_way:
        raise EagerError(
            "_get_should_execute_nodes should only be called during the backward pass"
        )
    this, receiver = under_way[-1], getattr(node, "receiver", None)
    leaf = getattr(receiver, "function", 0) is None
    if leaf and not this.leaves and id(receiver) in (this.asked or ()):
        raise EagerError(
            "A leaf node was passed to _will_engine_execute_node but we are currently "
            "running autograd.grad(). This is currently not supported."
        )
    return this.resumes(receiver)


class _autograd:
    """What PyTorch's compiled part knows of derivatives."""

    SavedTensor = SavedTensor

    @staticmethod
    def _saved_tensors_hooks_is_enabled() -> bool:
        """Whether ``saved_tensors_hooks`` may be entered."""
        return graph.hooks_allowed()

    @staticmethod
    def _get_current_graph_task_keep_graph() -> bool:
        """Whether the rules of the pass that is under way may be needed again."""
        return under_way[-1].retain if under_way else True

    @staticmethod
    def _top_saved_tensors_default_hooks(ignore_is_tracing: bool) -> Any:
        """The innermost pair of hooks; None for none."""
        return hooks.get()


class DelayedError:
    """An operation without effect, whose backward step is an error.

    Args:
        text: what the error says.
        number: of how many results.
    """

    def __init__(self, text: Any, number: int) -> None:
        text = text.decode() if isinstance(text, bytes) else text

        def forward(ctx: Any, *args: Any) -> Any:
            found = tuple(x.clone() for x in args)
            return found if len(found) > 1 else found[0]

        def backward(ctx: Any, *z_bars: Any) -> Any:
            raise EagerError(text)

        names = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        self.function: Any = type("DelayedError", (Function,), names)

    def __call__(self, *args: Any) -> Any:
        """The arguments."""
        return self.function.apply(*args)


Node.register(DelayedError)


class _functions:
    """Classes of nodes."""

    AccumulateGrad = node_class("AccumulateGrad")
    DelayedError = DelayedError


def _set_mkldnn_enabled(enabled: bool) -> None:
    """Let oneDNN compute layers where it is installed, or not."""
    importlib.import_module("lantern.torch.backends").mkldnn.enabled = enabled


def _are_functorch_transforms_active() -> bool:
    """Whether PyTorch's own transforms are at work: no."""
    return False


def _is_torch_function_enabled() -> bool:
    """Whether classes say what functions do with them."""
    return is_on()


def _is_torch_function_mode_enabled() -> bool:
    """Whether a block sees each function: no."""
    return False


def _get_default_device() -> str:
    """The device of new tensors."""
    from lantern.torch.settings import get_default_device

    return str(get_default_device())


def _get_accelerator(check: Any = None) -> Any:
    """The fast device, or the processor."""
    from lantern.torch.accelerator import current_accelerator

    return current_accelerator() or device("cpu")


def _is_alias_of(x: Any, y: Any) -> bool:
    """Whether two tensors lie in the same memory."""
    return bool(x.untyped_storage() == y.untyped_storage())


def _no_effect(*args: Any, **options: Any) -> None:
    """Says how TorchScript compiles, which there is not."""


_jit_set_profiling_executor = _jit_set_profiling_mode = _no_effect
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _no_effect
_jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = _no_effect
_jit_set_nvfuser_guard_mode = _jit_set_bailout_depth = _no_effect
_cuda_clearCublasWorkspaces = _no_effect  # noqa: N816  # PyTorch's names
_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = lambda: False
_cuda_isInBadFork = lambda: False  # noqa: E731, N816
_REASON = "TorchScript programs are compiled, and there is no compiler here."
# Classes of TorchScript's, of which nothing is one.
for _name in (
    "AnyType Block BoolType ClassType CompilationUnit ComplexType DeviceObjType "
    "DictType EnumType FloatType FunctionSchema FutureType Graph IntType InterfaceType "
    "ListType NoneType NumberType OptionalType ScriptDict ScriptFunction ScriptList "
    "ScriptModule StreamObjType StringType TensorType TupleType Type UnionType Value"
).split():
    globals()[_name] = refusing(f"torch._C.{_name}", _REASON)
globals()["TensorType"].__doc__ = """The type of tensors in such programs.

Example:
    >>> import lantern.torch as torch
    >>> isinstance(torch.ones(2), torch.TensorType)
    False
"""
__path__: list[str] = []
_lead(__name__, "_nn", importlib.import_module("lantern.torch.nn.functional").__name__)
absent(
    __name__,
    {"_functorch": "transforms are made otherwise here: see torch.func."},
    {
        "_functorch": (
            "_add_batch_dim _unwrap_batched _wrap_for_grad current_level get_unwrapped "
            "is_batchedtensor is_gradtrackingtensor is_functorch_wrapped_tensor "
            "maybe_get_bdim maybe_get_level unwrap_if_dead"
        )
    },
)
_nn: Any = sys.modules[f"{__name__}._nn"]
_nn._parse_to = parse_to
_inner = importlib.import_module("lantern.torch.nn.inner")
_nn.thnn_conv2d = _inner.thnn_conv2d
for _name in "slow_conv3d replication_pad reflection_pad".split():
    for _axes in ("1d", "2d", "3d") if "pad" in _name else ("",):
        setattr(_nn, _name + _axes, getattr(_inner, _name + _axes))
_functorch: Any = sys.modules[f"{__name__}._functorch"]
for _name in ("is_batchedtensor", "is_gradtrackingtensor"):
    vars(_functorch)[_name] = lambda tensor: False
_functorch.is_functorch_wrapped_tensor = lambda tensor: False
