"""The PyTorch-compatible API: ``import lantern.torch as torch``.

Example:
    >>> import lantern.torch as torch
    >>> x = torch.ones(2, 2, requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([[2., 2.],
            [2., 2.]])
"""

import importlib as _importlib
import math as _math
import sys as _sys
import warnings as _warnings
from typing import Any as _Any

from lantern.torch.tensor.dtypes import *  # isort: skip
from lantern.eager.grad_mode import *
from lantern.torch import autograd as autograd
from lantern.torch.einops_backend import watch as _watch
from lantern.torch.functions.creation import *
from lantern.torch.functions.queries import *
from lantern.torch.functions.ranges import *
from lantern.torch.functions.table import names_with as _names_with
from lantern.torch.methods.sampling import *
from lantern.torch.methods.table import FUNCTIONS as _FUNCTIONS
from lantern.torch.methods.table import clone as clone
from lantern.torch.methods.table import numel as numel
from lantern.torch.methods.typed_constructors import TYPES as _TYPES
from lantern.torch.run.absent_parts import NAMES as _NAMES
from lantern.torch.run.absent_parts import REASONS as _REASONS
from lantern.torch.run.aliases import absent as _absent
from lantern.torch.run.aliases import lead as _lead
from lantern.torch.run.aliases import missing as _missing
from lantern.torch.settings import *
from lantern.torch.tables import another as _another
from lantern.torch.tables import place as _place
from lantern.torch.tables import takes as _takes
from lantern.torch.tensor.dtypes import named as _named
from lantern.torch.tensor.layouts import FORMATS as _FORMATS
from lantern.torch.tensor.layouts import LAYOUTS as _LAYOUTS
from lantern.torch.tensor.layouts import layout as layout
from lantern.torch.tensor.layouts import memory_format as memory_format
from lantern.torch.tensor.named_results import with_out as _with_out
from lantern.torch.tensor.printing import set_printoptions as set_printoptions
from lantern.torch.tensor.tensor import *
from lantern.torch.version import __version__ as __version__

globals().update({name: _with_out(f) for name, f in _FUNCTIONS.items()} | _TYPES)

# What is written in place has a function as well: ``torch.relu_(x)``.
globals().update(
    {
        n: _another(vars(Tensor)[n], n)
        for n in map("{}_".format, _names_with("function_"))
    }
)

# The logarithm of 0 is -inf; PyTorch says no more about it.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"lantern\.")

pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None
legacy_contiguous_format = _FORMATS["contiguous_format"]
globals().update(_LAYOUTS | _FORMATS)

_place(__name__, globals())
_place(Tensor.__module__, vars(Tensor), "Tensor.")

# What is imported when it is asked for.
_LAZY = (
    "accelerator amp backends compiler cuda distributed distributions fft func fx jit "
    "linalg multiprocessing nn optim profiler quasirandom random "
    "return_types serialization signal sparse special testing utils version"
).split()
# Likewise, what is there for libraries, whose programs seldom name it.
_FOR_LIBRARIES = (
    "_C _VF __config__ __future__ _dynamo _tensor_str _utils ao cpu functorch futures "
    "hub library onnx ops overrides storage torch_version types"
).split()
_LAZY_FUNCTIONS = (
    dict.fromkeys(
        (
            "bartlett_window blackman_window hamming_window hann_window istft "
            "kaiser_window stft"
        ).split(),
        "signal.frames",
    )
    | {
        "AcceleratorError": "cuda",
        "Event": "cuda",
        "Future": "futures",
        "OutOfMemoryError": "cuda",
        "Stream": "cuda",
        "GradScaler": "amp",
        "_amp_foreach_non_finite_check_and_unscale_": "amp.grad_scaler",
        "_amp_update_scale_": "amp.grad_scaler",
        "PyTorchFileReader": "file_reader",
        "PyTorchFileWriter": "file_reader",
        "ScriptFunction": "jit",
        "ScriptModule": "jit",
        "_assert": "_utils",
        "_disable_dynamo": "compiler",
        "TypedStorage": "storage",
        "UntypedStorage": "storage",
        "autocast": "amp",
        "default_generator": "random",
        "from_file": "storage",
        "get_device_module": "accelerator",
        "get_autocast_cpu_dtype": "amp",
        "get_autocast_dtype": "amp",
        "get_autocast_gpu_dtype": "amp",
        "is_autocast_cpu_enabled": "amp",
        "_sample_dirichlet": "distributions.several",
        "_standard_gamma": "distributions.positive",
        "_softmax_backward_data": "nn.inner",
        "range": "functions.queries",
        "is_autocast_enabled": "amp",
        "load": "saving",
        "save": "saving",
        "sparse_coo_tensor": "sparse",
        "dsmm": "sparse",
        "spmm": "sparse",
    }
    | {
        f"{word}Storage": "storage"
        for word in (
            "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int "
            "Long Short"
        ).split()
    }
)
_LAZY_FUNCTIONS |= dict.fromkeys(_named, "tensor.dtypes")
_LAZY_FUNCTIONS["TensorType"] = "_C"
# Types of TorchScript's, which libraries name in annotations.
_TYPES = (
    "AnyType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType "
    "FunctionSchema FutureType Graph IntType InterfaceType ListType NoneType "
    "NumberType OptionalType StreamObjType StringType TupleType Type UnionType Value"
).split()
# What programs check of themselves.
_LAZY_FUNCTIONS |= dict.fromkeys(
    (
        "_assert_async _check _check_index _check_is_size _check_not_implemented "
        "_check_tensor_all _check_tensor_all_with _check_type _check_value _check_with "
        "_debug_has_internal_overlap"
    ).split(),
    "checking",
)
# Sizes that could be symbols in PyTorch.
_LAZY_FUNCTIONS |= dict.fromkeys(
    (
        "SymBool SymFloat SymInt _sym_sqrt sym_float sym_int sym_ite sym_max sym_min "
        "sym_not sym_sqrt sym_sum"
    ).split(),
    "symbols",
)
# Functions of layers that have a name in ``torch`` as well.
_LAYER_FUNCTIONS = (
    "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu celu_ channel_shuffle "
    "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d "
    "cosine_similarity ctc_loss feature_alpha_dropout group_norm hardshrink layer_norm "
    "max_pool1d max_pool1d_with_indices max_pool2d max_pool3d pairwise_distance pdist "
    "pixel_shuffle pixel_unshuffle prelu rms_norm rrelu rrelu_ selu selu_ threshold "
    "threshold_"
).split()
_INNER_FUNCTIONS = (
    "adaptive_max_pool1d affine_grid_generator batch_norm_update_stats "
    "binary_cross_entropy_with_logits constant_pad_nd convolution "
    "cosine_embedding_loss feature_dropout grid_sampler grid_sampler_2d "
    "grid_sampler_3d gru_cell hinge_embedding_loss _add_relu "
    "_grid_sampler_2d_cpu_fallback _log_softmax _masked_softmax _softmax "
    "kl_div lstm_cell margin_ranking_loss native_channel_shuffle native_dropout "
    "poisson_nll_loss rnn_relu_cell rnn_tanh_cell triplet_margin_loss"
).split()
globals().update(_absent(__name__, _REASONS, _NAMES))


_lead(__name__, "_tensor functional tensor")
_lead(__name__, "_compile", f"{__name__}.compiler")
_lead(f"{__name__}._functorch", "apis eager_transforms", f"{__name__}.func")
globals()["torch"] = _sys.modules[__name__]  # as in PyTorch, by accident
_watch()
globals()["_subclasses"].fake_tensor.is_fake = lambda x: False
for _name in ("mps", "mtia", "xpu"):  # devices that are never there
    vars(globals()[_name]).update(
        is_available=lambda: False,
        is_initialized=lambda: False,
        is_bf16_supported=lambda *args, **options: False,
        device_count=lambda: 0,
        empty_cache=lambda: None,
        manual_seed=lambda seed: None,
        manual_seed_all=lambda seed: None,
    )


def is_floating_point(input: _Any) -> _Any:
    """Whether a tensor holds real floating-point numbers.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_floating_point(torch.tensor([1.0]))
        True
    """
    return input.is_floating_point()


def is_complex(input: _Any) -> _Any:
    """Whether a tensor holds complex numbers.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_complex(torch.tensor([1j]))
        True
    """
    return input.is_complex()


def is_nonzero(input: _Any) -> _Any:
    """Whether the only element is not 0.

    Example:
        >>> import lantern.torch as torch
        >>> torch.is_nonzero(torch.tensor([0.0]))
        False
    """
    return input.__bool__()


def result_type(*tensors: _Any, **named: _Any) -> _Any:
    """The type of a result of two tensors or numbers.

    Example:
        >>> import lantern.torch as torch
        >>> torch.result_type(torch.tensor([1]), 1.5)
        torch.float32
    """
    from lantern.torch.tensor.dtypes import as_dtype
    from lantern.torch.tensor.operators import result_dtype

    return as_dtype(result_dtype(*tensors, *named.values()))


_takes(result_type, "tensor1, tensor2")


def detach(input: _Any) -> _Any:
    """The same memory, without derivative.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> torch.detach(x * 3)
        tensor([3.])
    """
    return input.detach()


def vmap(
    func: _Any,
    in_dims: _Any = 0,
    out_dims: _Any = 0,
    randomness: _Any = "error",
    *,
    chunk_size: _Any = None,
) -> _Any:
    """As ``func.vmap``.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> torch.vmap(torch.dot)(x, x)
        tensor([ 5, 25])
    """
    return _importlib.import_module("lantern.torch.func").vmap(
        func, in_dims, out_dims, randomness, chunk_size=chunk_size
    )


def __getattr__(name: str) -> _Any:
    """A part that is imported when it is asked for; else the nearest name there is."""
    if name == "torch":  # PyTorch's module has itself among its names
        return _importlib.import_module(__name__)
    if name.startswith("_foreach_"):
        part = _importlib.import_module("lantern.torch.functions.foreach")
        return globals().setdefault(name, getattr(part, name))
    if name in _LAZY_FUNCTIONS:
        part = _importlib.import_module(f"lantern.torch.{_LAZY_FUNCTIONS[name]}")
        return getattr(part, name)
    if name in _TYPES:
        return getattr(_importlib.import_module("lantern.torch._C"), name)
    if name in _LAZY or name in _FOR_LIBRARIES:
        return _importlib.import_module(f"lantern.torch.{name}")
    if name in _LAYER_FUNCTIONS:
        return getattr(_importlib.import_module("lantern.torch.nn.functional"), name)
    if name in _INNER_FUNCTIONS:
        return getattr(_importlib.import_module("lantern.torch.nn.inner"), name)
    raise _missing("module 'torch'", name, globals(), _LAZY, _LAYER_FUNCTIONS)
