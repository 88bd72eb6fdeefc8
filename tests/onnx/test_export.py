"""Modules as files: those of five families, read again here and by onnxruntime."""

import io
import sys
from functools import cache

import greenlet
import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason='the extra "onnx" is not installed')

import lantern.onnx  # noqa: E402
import lantern.torch as torch  # noqa: E402
from lantern import models  # noqa: E402
from lantern.errors import ArgumentError, EagerError, MissingRuleError  # noqa: E402
from lantern.onnx.export import table  # noqa: E402
from lantern.onnx.export.builder import Builder  # noqa: E402
from lantern.onnx.export.tracing import traced  # noqa: E402

nn = torch.nn
F = nn.functional


def windows():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Hardtanh(0, 20),
    )  # fmt: skip


def attention():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def letters(*shape):
    return torch.randint(0, 9, shape)


MODULES = {
    "perceptron": (
        lambda: nn.Sequential(
            nn.Linear(5, 8), nn.Tanh(), nn.Dropout(), nn.Linear(8, 3), nn.Softmax(-1)
        ),
        lambda: torch.randn(4, 5),
    ),
    "windows": (windows, lambda: torch.randn(2, 2, 8, 8)),
    "SqueezeNet": (
        lambda: models.squeezenet1_1(num_classes=3), lambda: torch.randn(1, 3, 40, 40)
    ),
    "ResNet": (
        lambda: models.resnet18(num_classes=3), lambda: torch.randn(1, 3, 32, 32)
    ),
    "LSTM": (
        lambda: nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
        lambda: torch.randn(5, 2, 3),
    ),
    "GRU": (lambda: nn.GRU(3, 4, 2), lambda: torch.randn(5, 2, 3)),
    "RNN": (lambda: nn.RNN(3, 4, nonlinearity="relu"), lambda: torch.randn(5, 2, 3)),
    "letters": (lambda: models.CharacterRNN(9), lambda: letters(2, 7)),
    "encoder": (attention, lambda: torch.randn(2, 5, 8)),
    "decoder": (
        lambda: models.GPT2(vocabulary=9, width=16, heads=2, layers=2, context=8),
        lambda: letters(2, 8),
    ),
    "speech": (
        lambda: models.DeepSpeech2(
            classes=9, bands=41, hidden=8, layers=2, channels=4
        ),
        lambda: torch.randn(2, 1, 41, 60),
    ),
    "MobileNet": (
        lambda: models.mobilenet_v2(num_classes=3), lambda: torch.randn(1, 3, 32, 32)
    ),
    "digits": (models.MNISTNet, lambda: torch.randn(2, 1, 28, 28)),
    "letters, LSTM": (
        lambda: models.CharacterRNN(9, cell="lstm", layers=2), lambda: letters(2, 7)
    ),
    "speech, LSTM": (
        lambda: models.DeepSpeech2(
            classes=9, bands=41, hidden=8, layers=2, channels=4, cell="lstm"
        ),
        lambda: torch.randn(2, 1, 41, 60),
    ),
    "LLaMA": (
        lambda: models.Llama(
            vocabulary=9, width=16, inner=24, heads=4, key_heads=2, layers=2
        ),
        lambda: letters(2, 8),
    ),
    "texts": (
        lambda: models.TextEncoder(9, classes=3, width=16, heads=2, layers=2),
        lambda: letters(2, 8),
    ),
    "groups": (
        lambda: nn.Sequential(
            nn.Conv1d(4, 4, 3, groups=2), nn.GroupNorm(2, 4), nn.GELU(),
            nn.Upsample(scale_factor=2), nn.Softplus(),
        ),
        lambda: torch.randn(2, 4, 9),
    ),
}  # fmt: skip
WHERE = torch.tensor([[[0, 1, 2, 0], [2, 2, 0, 1]], [[1, 0, 1, 2], [0, 1, 2, 0]]])


def put(x):
    """Values written in place, at known places."""
    x[:, 0] = 1.0
    x[..., -1] = x[..., 1] * 2
    return x


# Functions of x, of shape (2, 3, 4), that are no layers.
FUNCTIONS = {
    "operators": lambda x: (2 - x) * x / (x * x + 1) - -(x**2) + (1 / (x.abs() + 1)),
    "in place": lambda x: F.relu(x.clone().add_(1.0), inplace=True) * 2,
    "forms": lambda x: (
        x.transpose(1, 2).reshape(2, -1).view(4, 6).unsqueeze(0)[..., 1:]
    ),
    "parts": lambda x: torch.cat([x[:, 0], x[:, -1], x[:, 1, ::2]], dim=-1),
    "rows": lambda x: torch.stack([part * 2 for part in x.chunk(2)], dim=1),
    "splits": lambda x: x.split([1, 2], dim=1)[1] + x.unbind(1)[0].unsqueeze(1),
    "sums": lambda x: x.sum() + x.mean(1, keepdim=True) + x.amax((0, 2)).unsqueeze(1),
    "choices": lambda x: torch.where(x > 0, x.exp(), x * 3).clamp(max=2.0),
    "ends of two": lambda x: torch.maximum(x, x.mT.mT * 2) - torch.minimum(x, x * 3),
    "sums of names": lambda x: torch.add(x, x, alpha=2) - torch.sub(x, 1.0).floor(),
    "masks": lambda x: x.masked_fill(x >= 0.5, -1.0) + (x < 0).float(),
    "products": lambda x: x @ x.mT + torch.matmul(x, x.transpose(-2, -1)),
    "places": lambda x: x.argmax(dim=1),
    "constants": lambda x: x * torch.arange(4) + torch.ones(3, 1),
    "means of parts": lambda x: F.adaptive_avg_pool1d(x, 2),
    "a frame": lambda x: F.pad(x, (1, 2)) + F.pad(x, (1, 2), mode="reflect"),
    "angles": lambda x: x.tanh().asin() + x.tan().atan() + x.sinh() / x.cosh(),
    "areas": lambda x: (x.tanh() / 2).atanh() + x.asinh() + (2 + x * x).acosh(),
    "logarithms": lambda x: x.abs().log1p() + (x * x + 1).log2() - (x * x + 1).log10(),
    "powers": lambda x: torch.exp2(x) + x.expm1() - torch.erfc(x),
    "steps": lambda x: x.sign() + x.round() * x.trunc() + x.clone().relu_(),
    "rests": lambda x: torch.fmod(x, 0.7) + x % 0.7 + x // 0.7,
    "whole rests": lambda x: (x * 9).int() // 4 + (x * 9).int() % -4,
    "logic": lambda x: ((x > 0) & (x < 1) | ~(x > -1) ^ (x > 1)).float(),
    "logic of numbers": lambda x: (x != 0).logical_and(x > 0).logical_not().int() | 2,
    "quantifiers": lambda x: ((x > 1).any(1), (x > -1).all(1)),
    "odd numbers": lambda x: (
        torch.where(x > 0, x, torch.inf).isinf(),
        torch.where(x > 0, x, torch.nan).isnan(),
    ),
    "largest": lambda x: (*x.max(dim=1), *x.min(dim=-1, keepdim=True), x.max()),
    "ends of pairs": lambda x: x.max(x * 2) - x.argmin(1, keepdim=True),
    "moments": lambda x: x.var(1) + x.std(1, correction=0) + x.var(),
    "norms": lambda x: x.norm(dim=1) + x.norm(1, 1) + x.norm(torch.inf),
    "lengths": lambda x: F.normalize(x, dim=1) * x.prod(1, keepdim=True),
    "sums of powers": lambda x: x.logsumexp(1) + torch.einsum("bij,bij->", x, x),
    "triangles": lambda x: x.tril(1) + x.triu() * 2,
    "turned": lambda x: x.flip(1) + x.roll(1, 2) + x.roll((1, 1), (0, 1)),
    "diagonals": lambda x: x.diagonal(dim1=1, dim2=2) + x.rot90(1, (1, 2)).sum(),
    "repeated": lambda x: x.repeat(1, 2, 1) + x.tile(2, 1) + x.repeat_interleave(2, 1),
    "rows of vectors": lambda x: torch.hstack([x, x]) + torch.vstack([x, x])[:2, :1],
    "windows": lambda x: x.unfold(2, 2, 1).sum(-1),
    "lists": lambda x: x[:, [0, 2]] + x[..., torch.tensor([0, 0, 1, 2])][:, 1:],
    "known masks": lambda x: x[:, torch.tensor([True, False, True])],
    "indices of pairs": lambda x: x[torch.arange(2), x.sum(2).argmax(1)],
    "indices behind": lambda x: x[:, x[:, :, 0].argmax(1), torch.tensor([0, 3])],
    "an index between": lambda x: x[:, x.sum((0, 2)).argsort(), 1:3],
    "one place": lambda x: x.select(1, -1) + x.narrow(1, 1, 1).squeeze(1),
    "gathered": lambda x: x.gather(1, WHERE) + x.take_along_dim(WHERE[:1], 1),
    "selected": lambda x: x.index_select(2, torch.tensor([3, 0])),
    "scattered": lambda x: (
        x.scatter(1, WHERE, x * 2)
        + x.scatter(1, WHERE, 5.0)
        + torch.zeros(2, 3, 4).scatter_add_(1, WHERE, x)
        + x.scatter_reduce(1, WHERE, x * 2, "amax")
    ),
    "put along": lambda x: (
        x.index_add(2, torch.tensor([0, 0]), x[..., 2:], alpha=2)
        + x.index_copy(1, torch.tensor([2]), x[:, :1])
        + x.index_fill(0, torch.tensor([1]), 7.0)
    ),
    "put": lambda x: put(x.clone()),
    "filled": lambda x: x.clone().fill_(3.0) + x + torch.empty(4).zero_(),
    "orders": lambda x: (*x.sort(1), x.argsort(2, descending=True), *x.topk(2)),
    "middles": lambda x: (*x.median(2), x.median(), x.kthvalue(2, 1)[0]),
    "pixels": lambda x: F.interpolate(x[None], size=(5, 7), mode="bilinear"),
    "corners": lambda x: F.interpolate(
        x[None], size=(5, 7), mode="bilinear", align_corners=True
    ),
    "factors": lambda x: F.interpolate(x[None], scale_factor=1.5, mode="bicubic"),
    "nearest": lambda x: F.interpolate(x, 7),
    "exactly nearest": lambda x: F.interpolate(x, 7, mode="nearest-exact"),
    "coarse": lambda x: F.interpolate(x[None], size=(2, 3), mode="area"),
    "unequal parts": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    "largest parts": lambda x: F.adaptive_max_pool2d(x, (3, 2)),
    "a grid": lambda x: F.grid_sample(
        x[None], x.tanh().view(1, 3, 4, 2), align_corners=False
    ),
    "each example": lambda x: F.instance_norm(x) + F.logsigmoid(x),
    "losses": lambda x: (
        F.cross_entropy(x.flatten(0, 1), torch.arange(6) % 4)
        + F.cross_entropy(x, WHERE[:, 0] % 3, reduction="sum")
        + F.nll_loss(x.mT, torch.tensor([[0, 1, 2], [3, 0, -100]]))
    ),
    "several": lambda x: {"a": x + 1, "b": [x * 2, x.sum(1)]},
}  # fmt: skip


def outputs(z):
    """The results of a module, in a row."""
    parts = list(z.values()) if isinstance(z, dict) else z
    if isinstance(parts, list | tuple):
        return [x for part in parts for x in outputs(part)]
    return [parts.detach().numpy()]


def assert_close(found, wanted):
    assert len(found) == len(wanted)
    for z, w in zip(found, wanted, strict=True):
        assert z.shape == w.shape
        assert z.dtype == w.dtype
        far = np.abs(z * 1.0 - w).max()
        assert far <= 1e-5 * max(np.abs(w).max(), 1)


def by_runtime(file, x):
    """What onnxruntime makes of a file."""
    runtime = pytest.importorskip("onnxruntime", reason="who else runs such files")
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return session.run(None, {"input": x.numpy()})


@cache
def exported(name):
    """A module, what it is given, and its file."""
    torch.manual_seed(0)
    make, draw = MODULES[name]
    module, x = make().eval(), draw()
    for p in module.parameters():  # away from where a slope jumps
        p.data.add_(0.01 * torch.randn(p.shape))
    return module, x, lantern.onnx.export(module, x).SerializeToString()


@pytest.mark.parametrize("name", MODULES)
def test_modules_give_the_same_when_read_again(name):
    module, x, file = exported(name)
    wanted = outputs(module(x))
    assert_close(outputs(lantern.onnx.load(file)(x)), wanted)
    assert_close(by_runtime(file, x), wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_give_the_same_when_read_again(name):
    torch.manual_seed(1)
    x, y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    file = lantern.onnx.export(FUNCTIONS[name], x)
    model = lantern.onnx.load(file)
    for given in (x, y):
        wanted = outputs(FUNCTIONS[name](given.clone()))
        assert_close(outputs(model(given)), wanted)
        assert_close(by_runtime(file.SerializeToString(), given), wanted)


@pytest.mark.parametrize("name", MODULES)
def test_gradients_are_those_of_the_module(name):
    module, x, file = exported(name)
    x = x.clone().requires_grad_(x.is_floating_point())
    model = lantern.onnx.load(file)
    found = []
    for f in (module, model):
        z = f(x)
        z = z[0] if isinstance(z, tuple) else z
        f.zero_grad()
        x.grad = None
        (z * torch.linspace(-1, 2, z.numel()).view(z.shape)).sum().backward()
        grads = {key: p.grad for key, p in f.named_parameters() if p.grad is not None}
        found.append(grads | ({} if x.grad is None else {"input": x.grad}))
    wanted, again = found
    shared = wanted.keys() & again.keys()
    if any(isinstance(part, nn.RNNBase) for part in module.modules()):
        assert shared  # the weights of its layers lie otherwise in the file
    else:
        assert wanted.keys() == again.keys()
    for key in shared:
        scale = float(wanted[key].abs().max()) + 1e-3
        assert float((again[key] - wanted[key]).abs().max()) < 1e-4 * scale, key


def test_modes_come_back_and_the_file_is_written():
    module = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout()))
    module[1].eval()
    file = io.BytesIO()
    names = {"input_names": ["pixels"], "output_names": ["scores"]}
    proto = lantern.onnx.export(module, torch.ones(1, 2), file, **names)
    assert [part.training for part in module.modules()] == [True, True, False, False]
    assert file.getvalue() == proto.SerializeToString()
    model = lantern.onnx.load(file.getvalue())
    assert (model.input_names, model.output_names) == (["pixels"], ["scores"])


def twice(x):
    """Half of it, twice as large, by a view."""
    x[:3].mul_(2)
    return x


REFUSED = {
    "a value": (
        lambda x: x * 2 if x.sum() > 0 else x * 3,
        EagerError,
        "by values",
    ),
    "an array": (
        lambda x: torch.tensor(np.sin(x.numpy())),
        EagerError,
        "by values",
    ),
    "an option": (lambda x: F.softplus(x, beta=2.0), MissingRuleError, "softplus"),
    "a mask": (lambda x: x[x > 0], MissingRuleError, "a mask"),
    "no operator": (lambda x: x.cumprod(0) + 1, MissingRuleError, ": cumprod is not"),
    "a view": (lambda x: twice(x.clone()), EagerError, "through a view"),
    "no tensor": (lambda x: "text", EagerError, "gives a str"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused(name):
    function, error, words = REFUSED[name]
    x = torch.linspace(0.01, 1.0, 6)
    with pytest.raises(error, match=words):
        lantern.onnx.export(function, x - 0.5)


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="a tensor or a tuple of tensors"):
        lantern.onnx.export(nn.ReLU(), (1.0,))
    with pytest.raises(ArgumentError, match="1 different names"):
        lantern.onnx.export(nn.ReLU(), torch.ones(2), input_names=["a", "b"])


def test_a_profiler_is_left_alone():
    before = sys.getprofile()
    watch = lambda *args: None  # noqa: E731
    sys.setprofile(watch)
    try:
        with pytest.raises(EagerError, match="a profiler"):
            lantern.onnx.export(nn.ReLU(), torch.ones(2))
        assert sys.getprofile() is watch
    finally:
        sys.setprofile(before)


def test_what_is_collected_inside_of_a_call_does_not_end_it(monkeypatch):
    """A greenlet that is waiting returns without having been called."""

    def wait():
        greenlet.getcurrent().parent.switch()

    def known(input):
        waiting.clear()
        return input * 2

    def written(builder, arguments, value):
        seen.append(value)
        return "doubled"

    waiting, seen = [greenlet.greenlet(wait)], []
    waiting[0].switch()
    monkeypatch.setitem(table._CODES, known.__code__, written)
    x = torch.ones(2)
    builder = Builder({})
    builder.bind(x, "input")
    z, unknown = traced(builder, lambda: known(x))
    assert [value is z for value in seen] == [True]
    assert (unknown, builder.name(z)) == ([], "doubled")
