"""Modules against PyTorch's: text, state, results, gradients, errors."""

import numpy as np
import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same, plain

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

# A module, and its inputs: shapes; or expressions with i for integers of a shape.
MODULES = """
Linear(4, 3) | (5, 4)
Linear(4, 3, bias=False) | (2, 5, 4)
Linear(4, 3) | (4,)
Bilinear(3, 4, 2) | (5, 3) (5, 4)
Identity(1, a=2) | (3,)
Flatten() | (2, 3, 4)
Unflatten(1, (2, 3)) | (2, 6)
Embedding(7, 3, padding_idx=2) | i(5, 4)
Embedding(7, 3) | i(6)
EmbeddingBag(7, 3, mode='sum') | i(4, 5)
Conv1d(3, 4, 3, padding=1) | (2, 3, 7)
Conv1d(4, 6, 3, stride=2, groups=2, bias=False) | (2, 4, 9)
Conv1d(2, 3, 2) | (2, 5)
Conv2d(3, 4, 3) | (2, 3, 6, 5)
Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)) | (2, 3, 7, 6)
Conv2d(4, 8, 3, padding='same', groups=4) | (2, 4, 5, 5)
Conv2d(2, 3, 3, padding=1, padding_mode='reflect') | (1, 2, 4, 4)
Conv2d(2, 3, 3, padding=1, padding_mode='circular') | (1, 2, 4, 4)
Conv3d(2, 3, 2) | (1, 2, 3, 4, 3)
ConvTranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1) | (2, 3, 5)
ConvTranspose2d(3, 4, 4, stride=2, padding=1) | (2, 3, 4, 5)
ConvTranspose2d(4, 6, 3, groups=2, dilation=2, bias=False) | (2, 4, 3, 3)
MaxPool1d(2) | (2, 3, 7)
MaxPool2d(3, stride=2, padding=1) | (2, 3, 6, 7)
MaxPool2d(2, ceil_mode=True) | (2, 3, 5, 7)
MaxPool2d(2, return_indices=True) | (2, 3, 4, 4)
AvgPool1d(3, stride=2) | (2, 3, 8)
AvgPool2d(2) | (2, 3, 4, 6)
AvgPool2d(3, stride=2, padding=1, count_include_pad=False) | (2, 3, 5, 6)
AvgPool2d(3, stride=2, padding=1, ceil_mode=True) | (2, 3, 6, 6)
AdaptiveAvgPool1d(3) | (2, 3, 7)
AdaptiveAvgPool2d((2, 3)) | (2, 3, 5, 7)
AdaptiveAvgPool2d(1) | (2, 3, 5, 7)
AdaptiveMaxPool2d(2) | (2, 3, 5, 7)
BatchNorm1d(4) | (6, 4)
BatchNorm1d(4, affine=False) | (6, 4, 3)
BatchNorm2d(3, momentum=None) | (4, 3, 2, 5)
BatchNorm2d(3).eval() | (4, 3, 2, 5)
BatchNorm2d(3, track_running_stats=False) | (4, 3, 2, 5)
LayerNorm(5) | (2, 3, 5)
LayerNorm((3, 5), eps=1e-3) | (2, 3, 5)
LayerNorm(5, elementwise_affine=False) | (3, 5)
LayerNorm(5, bias=False) | (3, 5)
GroupNorm(2, 6) | (3, 6, 4)
GroupNorm(3, 6, affine=False) | (2, 6, 2, 2)
InstanceNorm1d(3, affine=True) | (2, 3, 6)
InstanceNorm2d(3, track_running_stats=True) | (2, 3, 4, 4)
RMSNorm(5) | (2, 5)
LocalResponseNorm(3) | (2, 5, 4, 4)
Dropout(0.3).eval() | (3, 4)
Dropout(0.0) | (3, 4)
Dropout2d(0.5).eval() | (3, 4, 2, 2)
ReLU() | (3, 4)
Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)) | (3, 4)
Sequential(nn.Linear(4, 4), nn.LeakyReLU(0.1, inplace=True), nn.Dropout(0.0)) | (3, 4)
ModuleList([nn.Linear(1, 2), nn.Linear(1, 2), nn.Sequential(nn.Tanh())]) |
ParameterList([nn.Parameter(torch.zeros(2, 3))]) |
ReLU6() | (3, 4)
LeakyReLU(0.2) | (3, 4)
PReLU() | (3, 4)
PReLU(4) | (3, 4, 2)
ELU(0.5) | (3, 4)
CELU(0.5) | (3, 4)
SELU() | (3, 4)
GELU() | (3, 4)
GELU('tanh') | (3, 4)
SiLU() | (3, 4)
Mish() | (3, 4)
Sigmoid() | (3, 4)
Tanh() | (3, 4)
Softplus() | (3, 4)
Softplus(2, 3) | (3, 4)
Softsign() | (3, 4)
LogSigmoid() | (3, 4)
Hardtanh() | (3, 4)
Hardsigmoid() | (3, 4)
Hardswish() | (3, 4)
Hardshrink() | (3, 4)
Softshrink() | (3, 4)
Tanhshrink() | (3, 4)
Threshold(0.1, 20) | (3, 4)
GLU() | (3, 4)
RReLU().eval() | (3, 4)
Softmax(dim=1) | (3, 4)
LogSoftmax(dim=-1) | (2, 3, 4)
Softmin(dim=0) | (3, 4)
Softmax2d() | (2, 3, 4, 4)
CosineSimilarity() | (3, 4) (3, 4)
PairwiseDistance() | (3, 4) (3, 4)
Fold((4, 5), (2, 3)) | (2, 12, 9)
Unfold(2, padding=1) | (2, 3, 3, 4)
PixelShuffle(2) | (1, 8, 2, 3)
PixelUnshuffle(2) | (1, 2, 4, 6)
Upsample(scale_factor=2) | (1, 2, 3, 4)
Upsample(size=(5, 7), mode='bilinear') | (1, 2, 3, 4)
Upsample(scale_factor=2, mode='bilinear', align_corners=True) | (1, 2, 3, 4)
ZeroPad2d((1, 2, 0, 1)) | (1, 2, 3, 4)
ReflectionPad2d(1) | (1, 2, 3, 4)
ReplicationPad1d(2) | (1, 2, 3)
ConstantPad1d(1, 2.5) | (1, 2, 3)
LPPool2d(2, 3, stride=2) | (2, 3, 6, 7)
RNNCell(3, 4) | (2, 3)
RNNCell(3, 4, nonlinearity='relu') | (2, 3) (2, 4)
LSTMCell(3, 4) | (2, 3)
LSTMCell(3, 4, bias=False) | (3,)
LSTMCell(32, 128) | (8, 32)
LSTMCell(32, 128, bias=False) | (8, 32)
GRUCell(3, 4) | (2, 3) (2, 4)
RNN(3, 4) | (5, 2, 3)
RNN(3, 4, nonlinearity='relu', num_layers=2, batch_first=True) | (2, 5, 3)
LSTM(3, 4) | (5, 2, 3)
LSTM(3, 4, 2, batch_first=True, bidirectional=True) | (2, 5, 3)
LSTM(3, 4, bias=False) | (5, 3)
LSTM(32, 128) | (3, 8, 32)
LSTM(3, 4, 2, proj_size=2, bidirectional=True) | (5, 2, 3)
GRU(3, 4, num_layers=2, bidirectional=True) | (5, 2, 3) (4, 2, 4)
GRU(3, 4, batch_first=True) | (2, 5, 3)
MultiheadAttention(6, 2) | (4, 3, 6) (5, 3, 6) (5, 3, 6)
MultiheadAttention(6, 3, batch_first=True, bias=False) | (3, 4, 6) (3, 4, 6) (3, 4, 6)
MultiheadAttention(6, 2, kdim=4, vdim=5) | (4, 3, 6) (5, 3, 4) (5, 3, 5)
MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True) | (4, 6) (5, 6) (5, 6)
TransformerEncoderLayer(6, 2, 8, dropout=0.0) | (4, 3, 6)
TransformerEncoderLayer(6, 2, 8, 0.0, 'gelu', norm_first=True) | (4, 3, 6)
TransformerDecoderLayer(6, 2, 8, 0.0, batch_first=True) | (3, 4, 6) (3, 5, 6)
TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2) | (4, 3, 6)
Transformer(6, 2, 1, 1, 8, 0.0) | (4, 3, 6) (5, 3, 6)
Sequential(nn.Linear(3, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 2))) | (2, 3)
"""
ROWS = [[w.strip() for w in row.split("|")] for row in MODULES.strip().split("\n")]


def made(torch, source):
    expression = source if source.startswith("nn.") else f"nn.{source}"
    return eval(expression, {"nn": torch.nn, "torch": torch})


def arguments(torch, shapes, requires_grad=True):
    random = np.random.default_rng(3)
    given = []
    for word in shapes.replace(") ", ")|").split("|"):
        shape = eval(word.strip().removeprefix("i"))
        if word.startswith("i"):
            given.append(torch.from_numpy(random.integers(0, 7, shape)))
        else:
            x = torch.from_numpy(random.normal(size=shape))
            given.append(x.requires_grad_() if requires_grad else x)
    return given


def set_alike(module, torch):
    """Give all floating-point parameters and buffers the same values on each side."""
    random = np.random.default_rng(5)
    module.double()
    with torch.no_grad():
        for name, x in module.state_dict().items():
            if x.is_floating_point():
                values = random.normal(size=tuple(x.shape)) * 0.5
                if "var" in name:
                    values = abs(values) + 0.5
                x.copy_(torch.from_numpy(values))
    return module


def tensors(z, torch):
    if isinstance(z, torch.Tensor):
        return [z]
    if isinstance(z, tuple | list):
        return [y for part in z for y in tensors(part, torch)]
    return []


def results(torch, source, shapes):
    module = set_alike(made(torch, source), torch)
    inputs = arguments(torch, shapes) if shapes else []
    z = module(*inputs) if shapes else ()
    total = 0
    for n, y in enumerate(tensors(z, torch)):
        if y.requires_grad:
            weights = np.cos(np.arange(y.numel()) + n).reshape(tuple(y.shape))
            total = total + (y * torch.from_numpy(weights)).sum()
    if isinstance(total, torch.Tensor):
        total.backward()
    return {
        "text": repr(module),
        "state": list(module.state_dict()),
        "value": plain(tensors(z, torch)),
        "buffers": plain([x for _, x in module.named_buffers()]),
        "parameters": [(name, plain(p.grad)) for name, p in module.named_parameters()],
        "inputs": [plain(x.grad) for x in inputs],
    }


@pytest.mark.parametrize(("source", "shapes"), ROWS, ids=[r[0] for r in ROWS])
@pytest.mark.filterwarnings("ignore:.*batch_first:UserWarning")
@pytest.mark.filterwarnings("ignore:.*nested:UserWarning")
@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
def test_a_module_is_as_pytorchs(source, shapes):
    mine, other = (results(torch, source, shapes) for torch in (ours, theirs))
    assert mine["text"] == other["text"]
    assert mine["state"] == other["state"]
    for what in ("value", "buffers", "inputs"):
        assert_same(mine[what], other[what], rtol=1e-7, atol=1e-10)
    for (name, a), (same, b) in zip(
        mine["parameters"], other["parameters"], strict=True
    ):
        assert name == same
        assert_same(a, b, rtol=1e-8, atol=1e-9)


# Losses: x, y, z of floating point, p between 0 and 1, t of classes, s of signs.
LOSSES = """
MSELoss()(x, y); MSELoss(reduction='sum')(x, y); MSELoss(reduction='none')(x, y)
L1Loss()(x, y); SmoothL1Loss()(x, y); SmoothL1Loss(beta=0.3)(x, y)
HuberLoss(delta=0.4)(x, y); BCELoss()(p, q); BCELoss(weight=q, reduction='sum')(p, q)
BCEWithLogitsLoss()(x, q); BCEWithLogitsLoss(pos_weight=w * 2)(x, q)
BCEWithLogitsLoss(weight=w, reduction='none')(x, q)
CrossEntropyLoss()(x, t); CrossEntropyLoss(weight=w)(x, t)
CrossEntropyLoss(ignore_index=1)(x, t); CrossEntropyLoss(label_smoothing=0.1)(x, t)
CrossEntropyLoss(weight=w, ignore_index=2, label_smoothing=0.2)(x, t)
CrossEntropyLoss(reduction='sum')(x, t); CrossEntropyLoss(reduction='none')(x, t)
CrossEntropyLoss()(x, q); CrossEntropyLoss(label_smoothing=0.1, weight=w)(x, q)
CrossEntropyLoss()(c, u); CrossEntropyLoss(reduction='none', weight=w[:3])(c, u)
CrossEntropyLoss()(x[0], t[0]); NLLLoss()(x, t); NLLLoss(weight=w)(x, t)
NLLLoss(ignore_index=0, reduction='sum')(x, t); NLLLoss()(c, u)
KLDivLoss(reduction='batchmean')(x, q); KLDivLoss(reduction='sum')(x, q)
KLDivLoss(reduction='sum', log_target=True)(x, y)
CosineEmbeddingLoss(margin=0.1)(x, y, s); MarginRankingLoss(0.2)(x[:, 0], y[:, 0], s)
HingeEmbeddingLoss()(x[:, 0], s); TripletMarginLoss()(x, y, z)
TripletMarginLoss(swap=True, p=1)(x, y, z); SoftMarginLoss()(x[:, 0], s)
MultiMarginLoss()(x, t); MultiLabelSoftMarginLoss()(x, (q > 0.5).double())
PoissonNLLLoss()(x, p); GaussianNLLLoss()(x, y, p); GaussianNLLLoss(full=True)(x, y, p)
CTCLoss()(c.permute(2, 0, 1).log_softmax(2), l, [5, 4], [2, 1])
CTCLoss(reduction='sum')(c.permute(2, 0, 1).log_softmax(2), l, [5, 5], [2, 2])
CTCLoss(zero_infinity=True)(c.permute(2, 0, 1).log_softmax(2), l, [2, 1], [2, 2])
CTCLoss()(c.permute(2, 0, 1), l, [5, 4], [2, 1])
CTCLoss()(c[0], l[0][:0], t[0], t[0] * 0)
CTCLoss(blank=2)(c.permute(2, 0, 1), l[0] % 2, [3, 5], [0, 2])
CTCLoss(reduction='none')(c.permute(2, 0, 1), l, [1, 3], [2, 2])
CTCLoss()(c.permute(2, 0, 1), l, [6, 5], [2, 2])
CTCLoss(5)(c.permute(2, 0, 1), l, [5, 5], [2, 2])
CTCLoss()(c.permute(2, 0, 1), l[0], [5, 5], [2, 1])
CTCLoss()(c.permute(2, 0, 1), l, [5], [2, 1])
MSELoss()(input=x, target=y); CrossEntropyLoss()(x, t[:, None])
CrossEntropyLoss()(x, t.int()); CrossEntropyLoss(ignore_index=3)(x, t * 0 + 3)
MultiLabelMarginLoss()(x[0], t[:4])
CrossEntropyLoss()(x, t[:2]); NLLLoss()(x, t + 9); BCELoss()(x * 9, q); MSELoss()
"""
SOURCES = [e.strip() for e in LOSSES.replace("\n", ";").split(";") if e.strip()]


def loss_outcome(torch, source):
    random = np.random.default_rng(2)
    names = {
        "x": random.normal(size=(6, 4)),
        "y": random.normal(size=(6, 4)),
        "z": random.normal(size=(6, 4)),
        "p": random.uniform(0.1, 0.9, (6, 4)),
        "c": random.normal(size=(2, 3, 5)),
    }
    names = {k: torch.from_numpy(v).requires_grad_() for k, v in names.items()}
    shares = random.uniform(0.1, 0.9, (6, 4))
    constants = {
        "q": shares / shares.sum(1, keepdims=True),
        "w": random.uniform(0.5, 1.5, 4),
        "t": random.integers(0, 4, 6),
        "u": random.integers(0, 3, (2, 5)),
        "s": random.choice([-1.0, 1.0], 6),
        "l": np.array([[1, 2], [2, 2]]),
    }
    scope = {**names, **{k: torch.from_numpy(v) for k, v in constants.items()}}
    try:
        z = eval(f"nn.{source}", {"nn": torch.nn, **scope})
    except Exception as error:
        return type(error)
    if isinstance(z, torch.nn.Module):
        return repr(z)
    z.sum().backward()
    return plain(z), [plain(x.grad) for x in names.values()]


@pytest.mark.parametrize("source", SOURCES)
def test_a_loss_is_as_pytorchs(source):
    mine, other = (loss_outcome(torch, source) for torch in (ours, theirs))
    if isinstance(other, type):
        assert isinstance(mine, type), f"PyTorch raises {other}"
        assert issubclass(mine, other)
        return
    if isinstance(other, str):
        assert mine == other
        return
    assert_same(mine[0], other[0], rtol=1e-9, atol=1e-10)
    assert_same(mine[1], other[1], rtol=1e-9, atol=1e-10)


def test_the_gradient_of_an_alignment_is_not_differentiated_again():
    logs = ours.randn(4, 1, 3).requires_grad_()
    loss = ours.nn.functional.ctc_loss(logs, ours.tensor([[1, 2]]), [4], [2])
    (grad,) = ours.autograd.grad(loss, logs, create_graph=True)
    with pytest.raises(RuntimeError, match="not implemented"):
        grad.sum().backward()


# Modules of which a gradient is differentiated once more, as a penalty does.
TWICE = """
Linear(4, 3) | (5, 4)
Sequential(nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Tanh()) | (2, 2, 5, 6)
Sequential(nn.ConvTranspose2d(2, 3, 3, stride=2), nn.Sigmoid()) | (2, 2, 3, 3)
Sequential(nn.Conv1d(2, 4, 3, groups=2), nn.SiLU(), nn.AvgPool1d(2)) | (2, 2, 8)
Sequential(nn.Conv2d(1, 2, 2), nn.Softplus(), nn.MaxPool2d(2)) | (2, 1, 5, 5)
BatchNorm1d(4) | (6, 4)
LayerNorm(5) | (3, 5)
GroupNorm(2, 4) | (3, 4, 2)
GELU() | (3, 4)
LogSigmoid() | (3, 4)
LSTM(3, 4, 2) | (4, 2, 3)
GRU(3, 4) | (4, 2, 3)
MultiheadAttention(6, 2) | (4, 3, 6) (4, 3, 6) (4, 3, 6)
"""
TWICE_ROWS = [[w.strip() for w in row.split("|")] for row in TWICE.strip().split("\n")]


def penalised(torch, source, shapes):
    module = set_alike(made(torch, source), torch)
    inputs = arguments(torch, shapes)
    z = tensors(module(*inputs), torch)[0]
    gradients = torch.autograd.grad((z * z).sum(), inputs, create_graph=True)
    sum((g * g).sum() for g in gradients).backward()
    leaves = [*inputs, *module.parameters()]
    return plain([gradients[0], *(x.grad for x in leaves)])


@pytest.mark.parametrize(
    ("source", "shapes"), TWICE_ROWS, ids=[r[0] for r in TWICE_ROWS]
)
def test_gradients_have_pytorchs_gradients(source, shapes):
    mine, other = (penalised(torch, source, shapes) for torch in (ours, theirs))
    for a, b in zip(mine, other, strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            np.testing.assert_allclose(a[2], b[2], rtol=1e-6, atol=1e-9)
