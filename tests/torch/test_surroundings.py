"""What scripts say around their work: harmless things work, impossible ones raise."""

import importlib
import io
import struct
import subprocess
import sys

import numpy as np
import pytest

import lantern.torch as torch


@pytest.mark.parametrize(
    "statement",
    """
    torch.set_float32_matmul_precision('high')
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = True
    assert not torch.backends.mps.is_available()
    assert not torch.backends.cudnn.is_available()
    assert torch.backends.cudnn.flags(enabled=False)(abs)(-1) == 1
    torch.use_deterministic_algorithms(True)
    torch.Future().set_result(1)
    torch.set_default_device('cpu')
    torch.device('cpu').__enter__().__exit__()
    torch.set_num_threads(torch.get_num_threads())
    torch.cuda.manual_seed_all(0)
    torch.cuda.synchronize() if torch.cuda.is_available() else None
    torch.cuda.empty_cache()
    torch.cuda.max_memory_allocated()
    assert torch.__version__ >= '2.10'
    assert torch.compile(len) is len
    assert torch.compile(mode='max-autotune')(len) is len
    assert torch.jit.script(len) is len
    assert torch.jit.ignore(len) is torch.jit.unused()(len)
    assert not torch.jit.is_scripting()
    assert not torch.compiler.is_compiling()
    torch.random.manual_seed(0)
    assert torch.distributed.is_available()
    assert not torch.distributed.is_initialized()
    torch.amp.GradScaler('cuda', enabled=False).scale(torch.ones(1))
    torch.autocast(device_type='cpu', dtype=torch.bfloat16).__enter__()
    torch.cuda.amp.autocast(enabled=False).__enter__()
    torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH).__enter__()
    torch.multiprocessing.set_sharing_strategy('file_system')
    torch.nn.DataParallel(torch.nn.Linear(1, 1))(torch.ones(1, 1))
    torch.nn.Linear(1, 1).compile()
    torch.autograd.profiler.record_function('f').__enter__()
    assert torch.accelerator.current_accelerator() is None or torch.cuda.is_available()
    import lantern.torch.onnx
    from lantern.torch.nn.parallel import DistributedDataParallel as DDP
    from lantern.torch.nn.modules.batchnorm import _BatchNorm
    from lantern.torch.nn.modules.utils import _pair; assert _pair(3) == (3, 3)
    from lantern.torch.optim.sgd import SGD
    from lantern.torch.utils.data.dataloader import default_collate
    from lantern.torch.distributions.normal import Normal
    """.strip().split("\n    "),
)
def test_harmless_things_work(statement):
    deterministic = torch.are_deterministic_algorithms_enabled()
    exec(statement, {"torch": torch})
    torch.use_deterministic_algorithms(deterministic)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_mode_of_determinism_is_told_as_it_was_set(mode):
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode(mode)
    assert torch.get_deterministic_debug_mode() == mode
    assert torch.are_deterministic_algorithms_enabled() == (mode > 0)
    assert torch.is_deterministic_algorithms_warn_only_enabled() == (mode == 1)
    torch.set_deterministic_debug_mode(before)


@pytest.mark.parametrize("shared", [False, True])
def test_the_bytes_of_a_file(tmp_path, shared):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(5)))
    storage = torch.UntypedStorage.from_file(str(path), shared, 5)
    assert storage.tolist() == [0, 1, 2, 3, 4]
    storage[0] = 9
    assert storage[0] == 9
    storage.array.flush()
    assert path.read_bytes()[0] == (9 if shared else 0)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        ("torch.onnx.export(1)", AttributeError, "no ONNX files here"),
        ("torch.hub.load('a', 'b')", ValueError, "nothing is downloaded"),
        ("torch.distributed.get_rank()", ValueError, "has not been initialized"),
        ("torch.nn.parallel.DistributedDataParallel(0)", ValueError, "initialized"),
        ("torch.jit.save(1, 'f')", NotImplementedError, "state_dict"),
        ("torch.jit.load('f')", NotImplementedError, "load_state_dict"),
        ("torch.ones(1, dtype=torch.float8_e5m2)", TypeError, "no tensors of it"),
        ("torch.ones(1).to(torch.complex32)", TypeError, "NumPy has no such type"),
        ("torch.set_float32_matmul_precision('low')", RuntimeError, "'low'"),
        ("torch.set_default_tensor_type('torch.LongTensor')", ValueError, "LongT"),
        ("torch.softmaxx", AttributeError, "Did you mean: 'softmax'"),
        ("torch.nn.modules.linear.Linaer", AttributeError, "'Linear'"),
        ("torch.utils.tensorbord", AttributeError, "torch.utils"),
        ("torch.cuda.NoTensor", AttributeError, "NoTensor"),
    ],
)
def test_impossible_things_raise(call, kind, words):
    with pytest.raises(kind, match=words):
        eval(call, {"torch": torch})


def test_types_of_old_make_tensors_and_know_them():
    assert torch.FloatTensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.LongTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1).double(), torch.FloatTensor)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    assert torch.ones(1).type(torch.LongTensor).dtype is torch.int64
    assert torch.zeros(1, dtype=torch.ByteTensor.dtype).dtype is torch.uint8
    x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    assert x.requires_grad
    assert isinstance(x, torch.autograd.Variable)


def test_the_form_of_a_tensor_changes_in_place():
    x = torch.arange(6.0).reshape(2, 3)
    assert x.unsqueeze_(0).shape == (1, 2, 3)
    assert x.squeeze_(0).t_().shape == (3, 2)
    assert x.transpose_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x[1:].storage_offset() == 3
    y = (torch.ones(2, requires_grad=True) * 2).unsqueeze_(1)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="leaf"):
        torch.ones(2, requires_grad=True).unsqueeze_(0)
    assert x.new([1, 2]).dtype is torch.float32
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert torch.zeros(2, 2).fill_diagonal_(1).tolist() == [[1, 0], [0, 1]]


def test_memory_is_shared_with_processes():
    def work(model):
        with torch.no_grad():
            model.weight.fill_(3.0)

    model = torch.nn.Linear(2, 1)
    model.share_memory()
    assert model.weight.is_shared()
    process = torch.multiprocessing.Process(target=work, args=(model,))
    process.start()
    process.join()
    assert model.weight.tolist() == [[3.0, 3.0]]
    assert not torch.ones(1).is_shared()


def fails(rank, where):
    raise ValueError(f"{rank} of {where}")


def test_spawn_says_who_failed(capfd):
    with pytest.raises(RuntimeError, match="process 0 terminated with exit code 1"):
        torch.multiprocessing.spawn(fails, ("here",), nprocs=1)
    assert "0 of here" in capfd.readouterr().err


class TestLazyLayers:
    def test_become_their_layers(self):
        model = torch.nn.Sequential(
            torch.nn.LazyConv2d(4, 3), torch.nn.LazyBatchNorm2d(), torch.nn.Flatten(),
            torch.nn.LazyLinear(2, bias=False),
        )  # fmt: skip
        model.double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(RuntimeError, match="Call the model once"):
            model[3].weight.sum()
        (model(torch.randn(2, 3, 5, 5).double()) ** 2).sum().backward()
        assert [type(layer).__name__ for layer in model[::3]] == ["Conv2d", "Linear"]
        assert model[3].weight.shape == (2, 36)
        assert model[3].weight.dtype is torch.float64
        before = model[3].weight.clone()
        optimizer.step()
        assert not torch.equal(before, model[3].weight)

    @pytest.mark.parametrize(
        ("options", "on"),
        [((), (True, True)), ((1e-5, 0.1, False), (False, True))],
    )
    def test_a_norm_of_instances_learns_unless_told_otherwise(self, options, on):
        layer = torch.nn.LazyInstanceNorm1d(*options)
        layer(torch.ones(2, 3, 4))
        assert (layer.affine, layer.track_running_stats) == on


class TestSparse:
    def test_products_and_their_derivative(self):
        x = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], [2.0, 3.0, 1.0], (2, 2))
        w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        z = torch.spmm(x, w)
        assert torch.equal(z, x.to_dense() @ w)
        z.sum().backward()
        assert w.grad.tolist() == [[4, 4], [2, 2]]
        assert x.coalesce().values().tolist() == [2, 4]
        assert (x @ w[:, 0]).tolist() == [6, 4]
        assert torch.equal(x.t().to_dense(), x.to_dense().T)

    def test_entries_are_constants(self):
        with pytest.raises(RuntimeError, match="constants"):
            torch.sparse_coo_tensor([[0], [0]], torch.ones(1, requires_grad=True))
        with pytest.raises(RuntimeError, match="inconsistent"):
            torch.sparse_coo_tensor([[3], [0]], [1.0], (2, 2))

    def test_are_made_and_asked_under_their_older_names(self):
        x = torch.sparse.DoubleTensor(torch.tensor([[0], [1]]), torch.ones(1), (2, 3))
        assert (x.dtype, x.ndimension(), x.numel()) == (torch.float64, 2, 6)
        assert x.T.clone().detach().to_dense().tolist() == [[0, 0], [1, 0], [0, 0]]
        z = torch.dsmm(x, torch.arange(3.0).double().view(3, 1))
        assert z.tolist() == [[1.0], [0.0]]


def test_anomalies_are_found_where_they_are_asked_for():
    def run():
        (torch.zeros(1, requires_grad=True).sqrt() * 0).sum().backward()

    run()
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        run()
    run()


def test_assert_close():
    torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    torch.testing.assert_close({"a": [1.0]}, {"a": [1.0]})
    for a, b in (
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), torch.ones(2).double()),
        (torch.ones(2), torch.tensor([1.0, 1.1])),
        ([1.0], [1.0, 2.0]),
        ({"a": 1.0}, {"b": 1.0}),
    ):
        with pytest.raises(AssertionError):
            torch.testing.assert_close(a, b)


def events(data):
    """The records of an event file."""
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield data[12 : 12 + length]
        data = data[16 + length :]


def test_logs_are_event_files(tmp_path):
    log = torch.utils.tensorboard.SummaryWriter(tmp_path)
    log.add_scalar("loss", torch.tensor(0.5), 3)
    log.add_text("note", "hello")
    log.add_histogram("weights", torch.arange(10.0), 1)
    log.add_image("image", torch.zeros(3, 2, 2))
    log.add_images("images", torch.zeros(4, 1, 2, 2))
    with pytest.warns(UserWarning, match="graphs"):
        log.add_graph(torch.nn.Linear(1, 1))
    log.close()
    (file,) = tmp_path.iterdir()
    first, scalar, text, *_ = found = list(events(file.read_bytes()))
    assert len(found) == 6
    assert first.endswith(b"brain.Event:2")
    assert scalar.endswith(b"loss" + bytes([2 << 3 | 5]) + struct.pack("<f", 0.5))
    assert b"hello" in text
    # The checksum of the standard's example, masked as these files have it.
    part = importlib.import_module("lantern.torch.utils.tensorboard")
    crc = 0xE3069283
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert part._checksum(b"123456789") == struct.pack("<I", masked)


def test_default_devices_and_types():
    torch.set_default_tensor_type(torch.DoubleTensor)
    try:
        assert torch.ones(1).dtype is torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert torch.ones(1).dtype is torch.float32
    with torch.device("cpu"):
        assert torch.ones(1).device == torch.get_default_device()


def test_results_are_written_where_they_are_wanted():
    z = torch.empty(2)
    assert torch.add(torch.ones(2), 1, out=z) is z
    assert z.tolist() == [2, 2]
    assert torch.nn.functional.conv1d is torch.conv1d
    np.testing.assert_allclose(torch.svd(torch.eye(2))[1], [1, 1])


def test_unmodified_guards_work_under_the_runner(tmp_path):
    script = tmp_path / "guards.py"
    script.write_text(
        "import torch, torch.nn as nn, torch.onnx\n"
        "import torch.backends.cudnn as cudnn\n"
        "from torch.distributed import init_process_group\n"
        "from torch.utils.tensorboard import SummaryWriter\n"
        "cudnn.benchmark = True\n"
        "device = torch.accelerator.current_accelerator() "
        "if torch.accelerator.is_available() else 'cpu'\n"
        "assert nn.modules.conv.Conv2d is nn.Conv2d\n"
        "try:\n    import torch.nothing\nexcept ImportError as error:\n"
        "    print(error)\n"
    )
    run = [sys.executable, "-m", "lantern.torch", str(script)]
    found = subprocess.run(run, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "'nothing'" in found.stdout


def test_whole_files_of_arguments(tmp_path):
    import argparse

    file = io.BytesIO()
    torch.save({"args": argparse.Namespace(lr=0.1), "raw": b"ab"}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["args"].lr == 0.1
    assert found["raw"] == b"ab"


def test_rows_of_parameters_hold_anything():
    inner = torch.nn.ParameterList([torch.ones(2), torch.zeros(1)])
    row = torch.nn.ParameterList([inner, torch.ones(3), 5])
    assert [name for name, _ in row.named_parameters()] == ["1", "0.0", "0.1"]
    assert row[2] == 5
    assert len(row) == 3
    named = torch.nn.ParameterDict({"a": torch.ones(1), "b": inner})
    assert [len(value) for value in named.values()] == [1, 2]
    del named["b"]
    assert list(named) == ["a"]


def test_the_method_split_has_its_own_name_for_the_lengths():
    x = torch.arange(6).reshape(2, 3)
    assert [part.shape[1] for part in x.split(split_size=[1, 2], dim=1)] == [1, 2]


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_layers_without_channels_can_be_made():
    assert torch.nn.Conv2d(4, 0, 3).weight.shape == (0, 4, 3, 3)
    assert torch.nn.Linear(0, 2).bias.tolist() == [0, 0]


def test_results_of_a_function_show_its_own_memory():
    class Assign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, row, value, i):
            ctx.i = i
            row.data[i] = value
            return row

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar, z_bar[ctx.i], None

    row, x = torch.empty(3, 5000), torch.ones(5000, requires_grad=True)
    first = row.data_ptr()
    for i in range(3):
        row = Assign.apply(row, x * (i + 1), i)
    assert row.data_ptr() == first
    assert repr(row.grad_fn).startswith("<AssignBackward")
    row.sum().backward()
    assert x.grad[0] == 6


@pytest.mark.parametrize(
    "expression",
    """
    torch.tensor([a]); torch.tensor([[a], [a]]); torch.tensor([b, 2]); torch.tensor([c])
    torch.tensor([[1, 2], [3]]); torch.tensor([n.int64(3), 2.5]); torch.Tensor()
    torch.tensor([[n.float32(1)], [2]]); torch.tensor([n.float64(1)]); torch.tensor([])
    torch.tensor([True, 2]); torch.tensor([i, b]); torch.tensor((1, 2.0))
    torch.Tensor(torch.Size([0, 3])); torch.Tensor((2, 3)); torch.Tensor([b, a])
    torch.tensor([1, 2 + 1j]); torch.tensor(range(3)); torch.Tensor(2, 0)
    """.replace("\n", ";").split(";"),
)
def test_numbers_in_lists_become_what_they_become_in_pytorch(expression):
    if not expression.strip():
        return
    results = []
    for side in (torch, pytest.importorskip("torch", reason="the peer")):
        names = {"torch": side, "n": np, "a": side.tensor([1.0]), "c": side.ones(2)}
        names |= {"b": side.tensor(2.0), "i": side.tensor(3)}
        try:
            z = eval(expression.strip(), names)
            empty = z.numel() == 0
            results.append((str(z.dtype), tuple(z.shape), empty or z.tolist()))
        except (ValueError, TypeError, RuntimeError) as error:
            results.append(type(error).__mro__[-4:])
    assert results[0] == results[1]


def test_a_timer_knows_torch_and_takes_indented_statements():
    timer = torch.utils.benchmark.Timer(
        "\n    x = torch.ones(2)\n    x + y", globals={"y": 1}
    )
    assert timer.timeit(3).mean > 0
    assert len(timer.blocked_autorange(min_run_time=0.01).times) > 1


KINDS = "bool uint8 int8 int64 float16 float32 float64 complex64".split()


@pytest.mark.parametrize("kind", KINDS)
def test_make_tensor_keeps_bounds_and_form(kind):
    make = torch.testing.make_tensor
    dtype = getattr(torch, kind)
    x = make((3, 4), dtype=dtype, device="cpu", noncontiguous=True, exclude_zero=True)
    assert (x.shape, x.dtype, x.is_contiguous()) == ((3, 4), dtype, False)
    assert not (x == 0).any()
    if kind not in ("bool", "complex64"):
        y = make(1000, dtype=dtype, device="cpu", low=2, high=5)
        assert 2 <= y.min() < y.max() <= 5
    with pytest.raises(ValueError, match="low"):
        make(1, dtype=dtype, device="cpu", low=3, high=2)


def test_a_class_of_ones_own_is_part_of_a_tree():
    from lantern.torch.utils import _pytree

    class Both:
        def __init__(self, a, b):
            self.a, self.b = a, b

    _pytree.register_pytree_node(
        Both, lambda x: ([x.a, x.b], "kept"), lambda parts, kept: Both(*parts)
    )
    leaves, spec = _pytree.tree_flatten({"x": Both(1, [2]), "y": (3,)})
    assert (leaves, spec.num_leaves) == ([1, 2, 3], 3)
    again = _pytree.tree_map(
        lambda x, y: x + y, {"x": Both(1, [2])}, {"x": Both(4, [5])}
    )
    assert (again["x"].a, again["x"].b) == (5, [7])
    with pytest.raises(ValueError, match="already registered"):
        _pytree.register_pytree_node(Both, None, None)


def test_points_of_sobol_are_pytorchs():
    theirs = pytest.importorskip("torch")
    pytest.importorskip("scipy")
    rows = []
    for make in (torch, theirs):
        engine = make.quasirandom.SobolEngine(3)
        engine.fast_forward(2)
        drawn = engine.draw(5).tolist()
        rows.append(drawn + engine.reset().draw_base2(2).tolist())
    assert rows[0] == rows[1]
