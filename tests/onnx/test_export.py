"""Modules as files: those of five families, read again here and by onnxruntime."""

import io
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason='the extra "onnx" is not installed')

import lantern.onnx  # noqa: E402
import lantern.torch as torch  # noqa: E402
from lantern import models  # noqa: E402
from lantern.errors import ArgumentError, EagerError, MissingRuleError  # noqa: E402

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
    "groups": (
        lambda: nn.Sequential(
            nn.Conv1d(4, 4, 3, groups=2), nn.GroupNorm(2, 4), nn.GELU(),
            nn.Upsample(scale_factor=2), nn.Softplus(),
        ),
        lambda: torch.randn(2, 4, 9),
    ),
}  # fmt: skip
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
    "several": lambda x: {"a": x + 1, "b": [x * 2, x.sum(1)]},
}


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
        assert np.abs(z - w).max() <= 1e-5 * max(np.abs(w).max(), 1)


@pytest.mark.parametrize("name", MODULES)
def test_modules_give_the_same_when_read_again(name):
    torch.manual_seed(0)
    make, draw = MODULES[name]
    module, x = make().eval(), draw()
    file = lantern.onnx.export(module, x).SerializeToString()
    wanted = outputs(module(x))
    assert_close(outputs(lantern.onnx.load(file)(x)), wanted)
    runtime = pytest.importorskip("onnxruntime", reason="who else runs such files")
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    assert_close(session.run(None, {"input": x.numpy()}), wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_give_the_same_when_read_again(name):
    torch.manual_seed(1)
    x, y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    file = lantern.onnx.export(FUNCTIONS[name], x)
    model = lantern.onnx.load(file)
    for given in (x, y):
        assert_close(outputs(model(given)), outputs(FUNCTIONS[name](given.clone())))


def test_what_was_read_again_has_the_names_and_gradients_of_the_module():
    torch.manual_seed(0)
    module, x = windows().eval(), torch.randn(2, 2, 8, 8)
    model = lantern.onnx.load(lantern.onnx.export(module, x))
    for f in (module, model):
        (f(x) ** 2).sum().backward()
    wanted = {name: p.grad for name, p in module.named_parameters()}
    for name, p in model.named_parameters():
        assert torch.allclose(p.grad, wanted[name], rtol=1e-4, atol=1e-6), name
    assert len(wanted) == len(list(model.parameters()))


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
    "no operator": (lambda x: F.softplus(x, beta=2.0), MissingRuleError, "softplus"),
    "a mask": (lambda x: x[x > 0], MissingRuleError, "a mask"),
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
