"""What libraries around PyTorch ask for by its inner paths, beside PyTorch itself."""

import importlib
import sys
from functools import partial
from itertools import count

import numpy as np
import pytest

import lantern.torch as torch
from lantern.errors import LanternError
from lantern.torch.functions.foreach import FOREACH
from tests.torch.compared import theirs

IMPORTS = """
from torch.utils.hooks import RemovableHandle
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
from torch.utils._foreach_utils import _foreach_supported_types
from torch.utils.model_zoo import load_url, tqdm
from torch.utils.dlpack import from_dlpack
from torch.utils.tensorboard.writer import SummaryWriter
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.nn.modules.loss import _Loss, _WeightedLoss
from torch.nn.modules.module import _IncompatibleKeys
from torch.nn.parallel.scatter_gather import scatter
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.autograd.graph import save_on_cpu, register_multi_grad_hook
from torch.autograd.profiler import EventList
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.placement_types import Replicate
from torch.distributed._functional_collectives import wait_tensor
from torch.distributed.constants import default_pg_timeout
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch._C import DispatchKey, DispatchKeySet, _get_tracing_state, _is_tracing
from torch._compile import _disable_dynamo
from torch._vmap_internals import _vmap
from torch.distributions.kl import _KL_REGISTRY
from torch._dynamo.utils import is_compile_supported
from torch._tensor_str import PRINT_OPTS, _tensor_str
from torch.ao.quantization import DeQuantStub, QuantStub
from torch.hub import _get_torch_home, load_state_dict_from_url
from torch.jit.annotations import BroadcastingList2
from torch.onnx import register_custom_op_symbolic, symbolic_opset11
from torch.onnx.symbolic_helper import parse_args
from torch.torch_version import TorchVersion
from torch.types import Device, Number, _size
from torch.overrides import handle_torch_function, is_tensor_like
from functorch import combine_state_for_ensemble, make_functional, vmap
from torch.utils.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary
from torch.utils._contextlib import _DecoratorContextManager, context_decorator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import IterDataPipe, functional_datapipe
from torch.utils.data.datapipes.datapipe import MapDataPipe
from torch.utils.data._utils.collate import collate, default_collate_fn_map
from torch.utils.data.dataloader import _collate_fn_t, _DatasetKind
from torch._subclasses.fake_tensor import is_fake
from torch.distributed import device_mesh
from torch.distributed._tensor.experimental import implicit_replication
from torch import torch
from torch.hub import tqdm
from torch.nn.utils._named_member_accessor import NamedMemberAccessor
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node, map_aggregate
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.proxy import Proxy, TraceError
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tensor.placement_types import Shard
from torch._C import CompilationUnit, _get_accelerator
from torch.nn.init import _calculate_correct_fan, _no_grad_trunc_normal_
from torch import SymInt, sym_max, AcceleratorError, OutOfMemoryError
from torch.nn import _reduction
from torch.nn.common_types import _size_2_t, _size_any_t
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.padding import _ConstantPadNd, _ReflectionPadNd, _ReplicationPadNd
from torch.nn.modules.pooling import _AdaptiveAvgPoolNd, _AvgPoolNd, _MaxPoolNd
from torch.nn.modules.pooling import _AdaptiveMaxPoolNd, _LPPoolNd, _MaxUnpoolNd
from torch.nn.modules.rnn import apply_permutation
from torch.nn.modules.transformer import _get_activation_fn, _get_clones
from torch.nn.modules.utils import _list_with_default, _reverse_repeat_tuple
from torch.nn.parameter import _ParameterMeta
from torch import AnyType, DeviceObjType, ListType
from torch.nn.modules.module import _addindent
from torch.optim.adamax import Adamax
from torch.optim.asgd import ASGD
from torch.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from torch.distributions.multivariate_normal import _precision_to_scale_tril
from torch.distributions.multivariate_normal import Distribution, lazy_property
from torch.distributions.transforms import _clipped_sigmoid
from torch.nn.attention.flex_attention import and_masks, or_masks
from torch.utils.checkpoint import check_backward_validity, detach_variable
from torch.cuda.memory import max_memory_allocated
from torch.cuda.random import get_rng_state, set_rng_state
import torch.cuda.nvtx, torch.cuda.streams
import torch.cpu, torch.xpu, torch.mps, torch.package, torch.futures
import torch.library, torch.ops, torch.storage, torch.__config__
""".strip().splitlines()


@pytest.mark.parametrize("line", IMPORTS)
def test_a_path_of_pytorch_can_be_imported(line):
    names = {}
    line = line.replace("torch.", "lantern.torch.").replace(
        "functorch", "torch.functorch"
    )
    line = line.replace("from torch.", "from lantern.torch.")
    exec(line, names)


def lists(library):
    values = [np.array([1.5, 2.5]), np.array([[0.5]])]
    return [library.tensor(x) for x in values], [library.tensor(x + 1) for x in values]


CALLS = """
add(a, b, alpha=2); add(a, 1.5); add_(a, [1.0, 2.0]); mul_(a, b); sub(a, 0.5)
div_(a, b); pow(a, 2); addcdiv_(a, b, b, value=0.5); addcmul_(a, b, b, [0.5, 2.0])
lerp_(a, b, 0.25); maximum_(a, b); minimum(a, 1.0); clamp_min_(a, 1.0); norm(a)
norm(a, ord=1); sqrt_(a); exp(a); neg_(a); reciprocal(a); sigmoid_(a); zero_(a)
copy_(a, b); abs(a); erf(a); trunc_(a); clone(a); round(a); log1p_(a)
"""


@pytest.mark.parametrize("call", CALLS.replace("\n", ";").strip("; ").split("; "))
def test_a_function_of_lists_is_pytorchs(call):
    for part in filter(None, (c.strip() for c in call.split(";"))):
        outcomes = []
        for library in (torch, theirs):
            a, b = lists(library)
            found = eval(
                f"library._foreach_{part}", {"library": library, "a": a, "b": b}
            )
            outcomes.append([x.numpy() for x in (*(found or ()), *a)])
        for mine, other in zip(*outcomes, strict=True):
            np.testing.assert_allclose(mine, other, 1e-12)


def test_lists_of_different_lengths_are_refused():
    a, b = lists(torch)
    with pytest.raises(RuntimeError, match="same number of tensors"):
        torch._foreach_add(a, b[:1])
    assert len(FOREACH) > 80


@pytest.mark.parametrize(
    "name",
    "float16 float32 float64 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu".split(),
)
def test_limits_of_types_are_pytorchs(name):
    mine, other = (lib.finfo(getattr(lib, name)) for lib in (torch, theirs))
    for what in "bits eps max min tiny smallest_normal resolution".split():
        assert getattr(mine, what) == pytest.approx(getattr(other, what), rel=1e-12)


class TestOperationsOfLibraries:
    def test_one_with_a_derivative(self):
        @torch.library.custom_op("tests::cube", mutates_args=())
        def cube(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.detach().numpy() ** 3)

        def setup(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        cube.register_autograd(
            lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g, setup_context=setup
        )
        x = torch.tensor([2.0], requires_grad=True)
        torch.ops.tests.cube(x).backward()
        assert x.grad.tolist() == [12.0]

    def test_pytorchs_own_by_their_inner_names(self):
        assert torch.ops.aten.add.Tensor(torch.ones(1), torch.ones(1)).item() == 2
        assert torch.ops.aten.native_layer_norm is not None
        with pytest.raises(NotImplementedError, match="aten::_to_copy"):
            torch.ops.aten._to_copy.default(torch.ones(1))

    def test_absent_ones(self):
        with pytest.raises(AttributeError, match="no attribute 'missing'"):
            _ = torch.ops.tests.missing
        with pytest.raises(ImportError, match="for PyTorch itself"):
            torch.ops.load_library("any.so")
        with pytest.raises(ValueError, match="no operation"):
            torch.library.register_autograd("tests::missing", None)


@pytest.mark.parametrize(
    "path", ["export.export", "_C.CompilationUnit", "package.PackageExporter"]
)
def test_what_can_only_be_imported_says_so_when_it_is_called(path):
    part, name = path.split(".")
    found = getattr(importlib.import_module(f"lantern.torch.{part}"), name)
    assert not isinstance(torch.nn.Linear(1, 1), found)
    with pytest.raises(NotImplementedError, match=f"{name}: programs|TorchScript"):
        found()


def test_choices_of_what_is_absent_are_names():
    kind = torch.distributed.fsdp.ShardingStrategy
    assert kind.FULL_SHARD == "ShardingStrategy.FULL_SHARD"
    with pytest.raises(AttributeError, match="no attribute 'later': models are whole"):
        _ = kind.later


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([1, 2], list[int]),
        ([1, "a"], list[int]),
        ({"a": [1]}, dict[str, list[int]]),
        ({"a": ["b"]}, dict[str, list[int]]),
        ((1, "a"), tuple[int, str]),
        ((1, 2), tuple[int, str]),
        (None, int | None),
        ("a", int | None),
        (3, (int, str)),
        (3, int),
    ],
)
def test_types_of_elements_are_pytorchs(value, kind):
    assert torch.jit.isinstance(value, kind) == theirs.jit.isinstance(value, kind)


def test_softmax_backward_is_pytorchs():
    x, z_bar = (np.random.RandomState(i).randn(3, 4) for i in (0, 1))
    found = [
        lib._softmax_backward_data(
            lib.tensor(z_bar), lib.tensor(x).softmax(-1), -1, lib.float64
        )
        for lib in (torch, theirs)
    ]
    np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["qint8", "quint4x2", "int3", "uint7", "bits16"])
def test_types_that_are_names_only(name):
    kind, other = getattr(torch, name), getattr(theirs, name)
    assert repr(kind) == repr(other)
    assert kind.itemsize == other.itemsize
    assert kind.is_floating_point == other.is_floating_point
    with pytest.raises(TypeError, match="no such type"):
        torch.ones(2, dtype=kind)


def test_a_step_of_a_librarys_optimiser_is_not_tracked():
    from lantern.torch.optim.optimizer import _use_grad_for_differentiable

    class Descent(torch.optim.Optimizer):
        @_use_grad_for_differentiable
        def step(self):
            assert torch.is_grad_enabled() == self.defaults["differentiable"]

    x = torch.ones(1, requires_grad=True)
    for way in (True, False):
        Descent([x], {"differentiable": way}).step()
    assert torch.is_grad_enabled()


def test_a_mode_of_inner_operations_cannot_be_entered():
    from lantern.torch.utils._python_dispatch import TorchDispatchMode

    with pytest.raises(NotImplementedError, match="inner ones"), TorchDispatchMode():
        pass


def test_devices_that_are_never_there():
    for name in ("mps", "mtia", "xpu"):
        assert not getattr(torch, name).is_available()
    assert torch.get_device_module("cpu").is_available()
    with pytest.raises(RuntimeError, match="no module"):
        torch.get_device_module("xpu")


def test_tensors_as_keys_are_told_apart_by_identity_and_forgotten():
    from lantern.torch.utils.weak import WeakTensorKeyDictionary

    x, y = torch.ones(2), torch.ones(2)
    known = WeakTensorKeyDictionary({x: 1})
    assert x in known
    assert y not in known
    known[y] = 2
    del x
    assert [*known.values()] == [2]
    del known[y]
    assert not known


@pytest.mark.parametrize("tree", [{"a": [1, (2, None)], "b": {}}, [1, [2]], 3, ()])
def test_paths_of_trees_are_pytorchs(tree):
    from torch.utils import _pytree as other

    from lantern.torch.utils import _pytree as mine

    found = [
        [(m.keystr(path), x) for path, x in m.tree_leaves_with_path(tree)]
        for m in (mine, other)
    ]
    assert found[0] == found[1]
    for path, x in mine.tree_leaves_with_path(tree):
        assert mine.key_get(tree, path) == x
    doubled = mine.tree_map_with_path(lambda path, x: (len(path), x), tree)
    assert doubled == other.tree_map_with_path(lambda path, x: (len(path), x), tree)


def test_classes_of_ones_own_are_joined_as_one_says():
    from lantern.torch.utils.data import default_collate
    from lantern.torch.utils.data._utils import collate as module

    class Word(str):
        pass

    module.default_collate_fn_map[Word] = lambda batch, collate_fn_map: "+".join(batch)
    try:
        assert default_collate([[Word("a"), 1], [Word("b"), 2]])[0] == "a+b"
    finally:
        del module.default_collate_fn_map[Word]
    own = {int: lambda batch, collate_fn_map: max(batch)}
    assert module.collate([{"n": 1}, {"n": 3}], collate_fn_map=own) == {"n": 3}
    with pytest.raises(TypeError, match="found"):
        module.collate([1.0], collate_fn_map=own)


def test_tensors_of_a_module_by_their_names():
    from lantern.torch.nn.utils._named_member_accessor import NamedMemberAccessor

    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Tanh())
    names = NamedMemberAccessor(model)
    kept = names.get_tensor("0.weight")
    former, missing = names.swap_tensors_dict(
        {"0.weight": torch.zeros(1, 1), "1.weight": kept}, allow_missing=True
    )
    assert former["0.weight"] is kept
    assert missing == ["1.weight"]
    assert model(torch.ones(1)).item() == 0
    assert names.check_keys(["0.weight", "9"]) == ([], ["9"])
    with pytest.raises(AttributeError, match="no attribute"):
        names.set_tensor("0.other", kept)
    old = names.swap_submodule("1", torch.nn.Identity())
    assert isinstance(old, torch.nn.Tanh)
    assert isinstance(model[1], torch.nn.Identity)


def test_a_hook_of_several_gradients():
    x, y = (torch.ones(1, requires_grad=True) for _ in range(2))
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook([x, y], seen.append)
    (2 * x * y).backward()
    assert [[g.item() for g in row] for row in seen] == [[2.0, 2.0]]
    handle.remove()
    (x * y).backward()
    assert len(seen) == 1


def test_a_handle_can_be_made_before_its_hook():
    hooks = {}
    handle = torch.utils.hooks.RemovableHandle(hooks)
    hooks[handle.id] = len
    handle.remove()
    assert not hooks
    assert handle.hooks_dict_ref() is hooks


def test_losses_have_pytorchs_bases():
    from lantern.torch.nn.modules.loss import _Loss, _WeightedLoss

    assert isinstance(torch.nn.MSELoss(), _Loss)
    assert isinstance(torch.nn.CrossEntropyLoss(), _WeightedLoss)
    assert not isinstance(torch.nn.ReLU(), _Loss)

    class Own(_WeightedLoss):
        def forward(self, x):
            return (x * self.weight).sum()

    own = Own(torch.ones(2), reduction="sum")
    assert own(torch.ones(2)).item() == 2
    assert own.reduction == "sum"
    assert list(own.state_dict()) == ["weight"]


class Loader:
    """Not PyTorch's, but handed to its iterators: fastai's loader makes batches."""

    def same(self, x, *args):
        return x

    _IterableDataset_len_called, _auto_collation, drop_last = None, False, False
    collate_fn = _get_shared_seed = same
    generator = worker_init_fn = multiprocessing_context = None
    _dataset_kind, timeout, prefetch_factor, in_order = 1, 0, None, True
    pin_memory, pin_memory_device, persistent_workers = False, "", False

    def __init__(self, workers):
        self.num_workers, self.dataset = workers, self
        self._index_sampler = count()

    def __iter__(self):
        return iter([[1, 2], [3]])


@pytest.mark.parametrize("library", [torch, theirs], ids=["ours", "pytorch"])
def test_a_loader_of_a_librarys_own_gives_its_batches(library):
    dataloader = importlib.import_module(f"{library.__name__}.utils.data.dataloader")
    assert list(dataloader._SingleProcessDataLoaderIter(Loader(0))) == [[1, 2], [3]]


def test_a_loader_of_a_librarys_own_has_no_threads():
    from lantern.torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

    assert list(_MultiProcessingDataLoaderIter(Loader(2))) == [[1, 2], [3]]


@pytest.mark.parametrize("library", [torch, theirs], ids=["ours", "pytorch"])
def test_a_transform_may_keep_its_inverse_where_pytorch_does(library):
    """As TorchRL's do."""

    class Own(library.distributions.TanhTransform):
        @property
        def inv(self):
            if self._inv is None:
                self._inv = library.distributions.transforms._InverseTransform(self)
            return self._inv

    own = Own()
    assert own.inv(own(library.tensor(0.5))).item() == pytest.approx(0.5)
    assert own.inv is own.inv


# Layers, and PyTorch's class of all that are like it.
KINDS = """
Dropout dropout._DropoutNd, AlphaDropout dropout._DropoutNd
Dropout2d dropout._DropoutNd, MaxPool2d pooling._MaxPoolNd, AvgPool1d pooling._AvgPoolNd
AdaptiveAvgPool2d pooling._AdaptiveAvgPoolNd, LPPool2d pooling._LPPoolNd
AdaptiveMaxPool3d pooling._AdaptiveMaxPoolNd, MaxUnpool2d pooling._MaxUnpoolNd
ReflectionPad2d padding._ReflectionPadNd, ReplicationPad1d padding._ReplicationPadNd
ConstantPad2d padding._ConstantPadNd, ZeroPad2d padding._ConstantPadNd
CircularPad1d padding._CircularPadNd, ConvTranspose2d conv._ConvTransposeNd
ReLU dropout._DropoutNd, AvgPool2d pooling._MaxPoolNd, Conv2d conv._ConvTransposeNd
FractionalMaxPool2d pooling._MaxPoolNd, ReplicationPad1d padding._ConstantPadNd
"""


@pytest.mark.parametrize("pair", KINDS.strip().replace(",", "\n").splitlines())
def test_layers_are_of_pytorchs_kinds(pair):
    layer, kind = pair.split()
    path, name = kind.split(".")
    found = []
    for library in (torch, theirs):
        cls = getattr(getattr(library.nn.modules, path), name)
        found.append(issubclass(getattr(library.nn, layer), cls))
    assert found[0] == found[1]


def test_a_dropout_of_ones_own_has_its_chance():
    from lantern.torch.nn.modules.dropout import _DropoutNd

    class Own(_DropoutNd):
        def forward(self, x):
            return x * (1 - self.p) if self.training else x

    assert repr(Own(0.25)) == "Own(p=0.25, inplace=False)"
    assert Own(0.25)(torch.ones(1)).item() == 0.75
    with pytest.raises(ValueError, match="between 0 and 1"):
        Own(2.0)


# Helpers of PyTorch's, by their paths, with arguments that both libraries take.
HELPERS = """
nn.modules.utils._reverse_repeat_tuple((1, 2), 2)
nn.modules.utils._list_with_default([None, 3], [7, 8, 9])
nn.modules.module._addindent("a\\nb\\nc", 2)
nn.modules.rnn.apply_permutation(x, i[1:] - i[1:])
len(nn.modules.transformer._get_clones(nn.Linear(1, 1), 3))
nn._reduction.get_enum("mean"); nn._reduction.get_enum("none")
nn._reduction.legacy_get_string(None, False, emit_warning=False)
nn._reduction.legacy_get_enum(True, True, emit_warning=False)
distributions.multivariate_normal._batch_mv(A, x)
distributions.multivariate_normal._batch_mahalanobis(L, x)
distributions.multivariate_normal._batch_mahalanobis(L, x[:1])
distributions.multivariate_normal._precision_to_scale_tril(A)
distributions.transforms._clipped_sigmoid(x * 99)
nn.attention.flex_attention.and_masks(causal, near)(i, i, i[:, None], i)
nn.attention.flex_attention.or_masks(causal, near)(i, i, i[:, None], i)
utils.checkpoint.detach_variable((x, 3))[0].requires_grad
utils._pytree.tree_structure([1, (2, {"a": 3})]).num_nodes
triangular_solve(x.mT, L); triangular_solve(x.mT, A, False, True, True)
triangular_solve(x.mT, L, upper=False).solution
"""


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.filterwarnings("ignore:`apply_permutation` is deprecated")
@pytest.mark.parametrize("call", HELPERS.strip().replace("; ", "\n").splitlines())
def test_a_helper_is_pytorchs(call):
    found = []
    for library in (torch, theirs):
        importlib.import_module(f"{library.__name__}.nn.attention.flex_attention")
        importlib.import_module(f"{library.__name__}.utils.checkpoint")
        space = dict(vars(library), len=len)
        space |= {name: getattr(library, name) for name in ("distributions", "utils")}
        space["i"] = library.tensor([2, 0, 1])
        space["x"] = library.tensor(np.array([[0.5, -2.0, 1.0], [1.0, 3.0, -0.25]]))
        space["L"] = library.tensor(np.array([[2.0, 0, 0], [1, 3, 0], [0.5, -1, 1]]))
        space["A"] = space["L"] @ space["L"].mT
        space["causal"] = lambda b, h, q, k: q >= k
        space["near"] = lambda b, h, q, k: q - k < 2
        value = eval(call, space)
        found.append(value if isinstance(value, tuple) else (value,))
    for mine, other in zip(*found, strict=True):
        if isinstance(mine, torch.Tensor):
            np.testing.assert_allclose(mine.numpy(), other.numpy(), 1e-12)
        else:
            assert mine == other


def test_a_triangular_solution_has_derivatives():
    L = torch.tensor([[2.0, 0.0], [1.0, 4.0]], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([[1.0], [2.0]], dtype=torch.float64, requires_grad=True)
    ways = [(u, t, one) for u in (0, 1) for t in (0, 1) for one in (0, 1)]
    for way in ways:
        solve = partial(lambda way, b, L: torch.triangular_solve(b, L, *way)[0], way)
        assert torch.autograd.gradcheck(solve, (b, L))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("gqa", [False, True])
def test_attention_with_changed_scores_is_pytorchs(gqa):
    random = np.random.default_rng(0)
    q, k, v = (
        random.normal(size=(2, 4 if i == 0 or not gqa else 2, 3, 5)) for i in range(3)
    )
    found = []
    for library in (torch, theirs):
        flex = importlib.import_module(
            ("lantern." if library is torch else "")
            + "torch.nn.attention.flex_attention"
        )
        mask = flex.create_block_mask(
            lambda b, h, q, k: q >= k, None, None, 3, 3, device="cpu"
        )
        z = flex.flex_attention(
            *map(library.tensor, (q, k, v)),
            lambda score, b, h, q, k: score - 0.1 * (q - k) * (h + 1),
            mask,
            enable_gqa=gqa,
        )
        found.append(z.numpy())
    np.testing.assert_allclose(*found, 1e-9)


def test_versions_compare_by_their_numbers():
    assert torch.__version__ >= "2.4"
    assert torch.__version__ > (1, 13)
    assert not torch.__version__ < "2.9.1"
    assert isinstance(torch.__version__, str)


def test_nothing_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(ValueError, match="nothing is downloaded"):
        torch.hub.load_state_dict_from_url("https://a.example/b.pt", tmp_path)
    torch.save({"w": torch.ones(1)}, tmp_path / "b.pt")
    found = torch.hub.load_state_dict_from_url("https://a.example/b.pt", tmp_path)
    assert found["w"].item() == 1
    (tmp_path / "hubconf.py").write_text("def twice(x):\n    return 2 * x\n")
    assert torch.hub.load(str(tmp_path), "twice", 3, source="local") == 6


def test_results_that_come_later():
    later = torch.futures.Future()
    doubled = later.then(lambda done: 2 * done.value())
    failed = later.then(lambda done: 1 / 0)
    later.set_result(4)
    assert torch.futures.wait_all([later, doubled]) == [4, 8]
    with pytest.raises(ZeroDivisionError):
        failed.wait()


def test_memory_as_bytes():
    x = torch.arange(4, dtype=torch.int16)
    memory = x[1:].untyped_storage()
    assert memory.nbytes() == 8
    assert memory.data_ptr() == x.data_ptr()
    memory[0] = 7
    assert x[0].item() == 7
    with pytest.raises(LanternError, match="resize_"):
        memory.resize_(0)


def test_a_module_as_a_function_of_its_parameters():
    from lantern.torch.functorch import make_functional, make_functional_with_buffers

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    x = torch.randn(3, 2)
    function, parameters, buffers = make_functional_with_buffers(model.eval())
    torch.testing.assert_close(function(parameters, buffers, x), model(x))
    function, parameters = make_functional(model[0], True)
    assert not any(p.requires_grad for p in parameters)
    torch.testing.assert_close(function(parameters, x), model[0](x))


OLDER = "grad grad_and_value hessian jacfwd jacrev jvp vjp vmap".split()


@pytest.mark.parametrize("name", OLDER)
def test_names_that_have_moved_say_where_to(name):
    older = getattr(importlib.import_module("lantern.torch.functorch"), name)
    x = torch.tensor(2.0)
    args = {"jvp": (torch.sin, (x,), (x,)), "vjp": (torch.sin, x)}.get(name)
    with pytest.warns(FutureWarning, match=rf"torch\.(func\.)?{name}`"):
        found = older(*(args or (torch.sin,)))
    assert args or callable(found)
    assert getattr(torch.func, name).__name__ == name  # without a warning


def test_the_stateless_call_that_has_moved_says_where_to():
    model, x = torch.nn.Linear(1, 1), torch.ones(1, 1)
    with pytest.warns(FutureWarning, match=r"torch\.func\.functional_call"):
        z = torch.nn.utils.stateless.functional_call(model, {}, x)
    assert z.item() == model(x).item()


def test_arguments_are_chosen_by_their_numbers():
    from lantern.torch._functorch.eager_transforms import _slice_argnums

    args = ("a", "b", "c")
    assert _slice_argnums(args, -1) == ("c",)
    assert _slice_argnums(args, 1, as_tuple=False) == "b"
    assert _slice_argnums(args, (2, 0), as_tuple=False) == ("c", "a")
    for wrong in ((), (0, 0), 3, 0.5, ("a",)):
        with pytest.raises(RuntimeError, match="argnum"):
            _slice_argnums(args, wrong)


def test_what_the_modules_of_layers_are_called_is_known():
    assert sys.modules["lantern.torch.nn.modules.loss"]._Loss is not None


def classes_at(library, path):
    """The names of the layers that a library finds at a path by looking through it."""
    modules = getattr(library.nn.modules, path)
    found = [c for c in vars(modules).values() if isinstance(c, type)]
    layers = {c.__name__ for c in found if issubclass(c, library.nn.Module)}
    return {n for n in layers if n[0] != "_"} & {*modules.__all__, "Module"}


# What is not here, or is called otherwise where it is defined.
ABSENT = {"LinearCrossEntropyLoss", "NLLLoss2d"}


@pytest.mark.parametrize("path", ["activation", "loss", "rnn", "conv", "normalization"])
def test_layers_are_found_by_looking_through_their_module(path):
    mine, others = classes_at(torch, path), classes_at(theirs, path)
    assert mine - {"Module"} == others - ABSENT - {"Module"}
    assert "ReLU" in vars(torch.nn.modules)


def test_what_pytorch_can_be_built_without_says_what_it_has():
    from lantern.torch.distributed import rpc

    assert not hasattr(rpc, "api")  # a library asks, and does without
    assert not rpc.is_available()
    with pytest.raises(AttributeError, match="processes call no functions"):
        rpc.init_rpc("worker")


class Cooperating:
    """A class beside one of PyTorch's, made with it."""

    def __init__(self):
        super().__init__()
        self.made = True


@pytest.mark.parametrize("name", ["Transform", "Distribution"])
def test_classes_beside_pytorchs_are_made_with_them(name):
    base = getattr(torch.distributions, name)
    own = {"arg_constraints": {}}
    assert type("Both", (base, Cooperating), own)().made
    both = type("Layer", (base, torch.nn.Module), own)()
    both.layer = torch.nn.Linear(1, 1)
    assert len(list(both.parameters())) == 2


def matrices(library):
    """Three of them: the second is not positive definite, the third is singular."""
    a = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.5], [2.0, 0.5, 2.0]])
    return library.tensor(np.stack([a, a - 2.5 * np.eye(3), np.diag([1.0, 0.0, 2.0])]))


INFOS = """
cholesky_ex(x); cholesky_ex(x, upper=True); inv_ex(x); solve_ex(x, x[..., 0])
solve_ex(x, x); solve_ex(x, x, left=False); cholesky_ex(x[0]); inv_ex(x[2])
"""


@pytest.mark.parametrize("call", INFOS.replace("\n", ";").strip("; ").split("; "))
def test_a_factorisation_says_where_it_stops(call):
    """A library adds to the diagonal then, as long as there is a number."""
    for part in filter(None, (c.strip() for c in call.split(";"))):
        mine, other = (
            eval(f"library.linalg.{part}", {"library": library, "x": matrices(library)})
            for library in (torch, theirs)
        )
        assert mine.info.tolist() == other.info.tolist()
        good = mine.info.numpy() == 0
        np.testing.assert_allclose(mine[0].numpy()[good], other[0].numpy()[good])
        assert np.isnan(mine[0].numpy()[~good]).all()


def test_a_factorisation_fails_where_it_is_asked_to():
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.cholesky_ex(matrices(torch), check_errors=True)


def test_the_array_of_a_tensor_is_free_where_nothing_is_tracked():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with torch.no_grad():
        assert np.shares_memory(x.numpy(), x.detach().numpy())


def of_low_rank(library):
    draws = np.random.RandomState(0)
    a = library.tensor(draws.randn(9, 3) @ draws.randn(3, 5))
    return a, a.mT @ a + library.eye(5, dtype=library.float64)


LOW_RANK = """
svd_lowrank(a, q=4)[1][:3]; svd_lowrank(a.mT, q=4)[1][:3]; pca_lowrank(a, 3)[1]
svd_lowrank(a, 4, 2, a.mean(0, True))[1][:3]; pca_lowrank(a, 3, False)[1]
lobpcg(b, 1, niter=200)[0]; lobpcg(b, 1, largest=False, niter=200, tol=1e-12)[0]
lobpcg(b, 1, B=b @ b, niter=200)[0]
"""


@pytest.mark.parametrize("call", LOW_RANK.replace("\n", ";").strip("; ").split(";"))
def test_a_few_values_of_a_matrix_are_pytorchs(call):
    mine, other = (
        eval(f"library.{call.strip()}", {"library": library, "a": a, "b": b}).numpy()
        for library in (torch, theirs)
        for a, b in [of_low_rank(library)]
    )
    np.testing.assert_allclose(mine, other, rtol=1e-5)


def test_a_few_vectors_make_the_matrix_and_have_derivatives():
    a, _ = of_low_rank(torch)
    a.requires_grad_()
    for U, S, V in (torch.svd_lowrank(a, 3), torch.svd_lowrank(a.mT, 3)):
        made = U @ S.diag() @ V.mH
        made = made if made.shape == a.shape else made.mT
        np.testing.assert_allclose(made.detach().numpy(), a.detach().numpy())
    S.sum().backward()
    (exact,) = torch.autograd.grad(torch.linalg.svd(a, False)[1][:3].sum(), a)
    np.testing.assert_allclose(a.grad.numpy(), exact.numpy(), atol=1e-7)
