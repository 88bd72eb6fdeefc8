"""The PyTorch-compatible API on a GPU: its results are those on the CPU.

The GPU is played by the stand-in (tests/fake_cupy.py), which takes the place of "cuda";
with ``--backend cupy`` it is one. PyTorch's own records run on the stand-in with
``tests/conformance/torch_operators.py --device``.
"""

import copy
import gc
import io

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern import engines
from lantern.torch.nn import masks
from tests.backends import as_cuda, numpys_own_sums
from tests.torch.compared import floats, inputs
from tests.torch.test_functions import OF_SCIPY, SOURCES, SOURCES_OF_MATRICES
from tests.torch.test_neural_functions import SOURCES as NEURAL

nn, optim = torch.nn, torch.optim
F = nn.functional


@pytest.fixture(autouse=True)
def without_engine():
    """The stand-in's routines are those of the CPU, to the bit: not an engine's."""
    with engines.switched(False), numpys_own_sums():
        yield


@pytest.fixture(autouse=True)
def cuda(backend):
    """The device that "cuda" names."""
    with as_cuda(backend):
        yield backend


@pytest.fixture
def used_by_default(cuda):
    torch.set_default_device("cuda")
    yield cuda
    torch.set_default_device("cpu")


def parts(z):
    """The leaves of a result."""
    if isinstance(z, dict):
        z = [*z.values()]
    return [y for x in z for y in parts(x)] if isinstance(z, list | tuple) else [z]


def largest(tensors):
    """The largest finite number in any of some tensors, and no less than 1."""
    found = [x.detach().numpy() for x in tensors if isinstance(x, torch.Tensor)]
    return max(1.0, *(abs(x[np.isfinite(x)]).max(initial=0) for x in found), 0.0)


def check(cuda, there, here, close=0, rounded=1e-4):
    """Everything that was computed on the device is what the CPU computes, and there.

    Args:
        close: how close; the stand-in's routines are those of the CPU, to the bit.
        rounded: how close in single precision by other routines, which add in other
            orders; and a fifth of it to the largest number there is, since what is 0 by
            theory is the difference of such numbers.
    """
    assert len(parts(there)) == len(parts(here))
    atol = close / 10 if cuda.rtol == 0 else rounded / 5 * largest(parts(here))
    close = close if cuda.rtol == 0 else rounded
    for y, x in zip(parts(there), parts(here), strict=True):
        if not isinstance(x, torch.Tensor):
            assert str(y) == str(x)
            continue
        assert (y.dtype, y.shape, y.device.type) == (x.dtype, x.shape, "cuda")
        assert type(y.detach().primal) is cuda.kind
        got, want = (z.detach().numpy(force=True) for z in (y, x))
        np.testing.assert_allclose(got, want, close, atol)


def seeds(outputs):
    """Weights, for a derivative of outputs."""
    return [
        torch.arange(y.numel()).reshape(y.shape).add(n).cos().to(y.dtype)
        for n, y in enumerate(outputs)
    ]


def outcome(source, names):
    """The value of an expression, its first and its second derivatives."""
    tracked = [x for x in names.values() if isinstance(x, torch.Tensor)]
    tracked = [x for x in tracked if x.requires_grad]
    value = eval(source, dict(names))
    found = [value]
    outputs = floats(value, torch)
    while outputs and len(found) < 3:
        again = len(found) == 1
        found.append(
            torch.autograd.grad(
                outputs, tracked, seeds(outputs), create_graph=again, allow_unused=True
            )
        )
        outputs = [g for g in found[-1] if g is not None and g.requires_grad]
    return found


def compare(cuda, source, make):
    """An expression, on tensors of a device and on the CPU's."""
    torch.manual_seed(0)
    torch.set_default_device("cpu")
    try:
        here = outcome(source, make())
    except Exception as error:
        here = error
    torch.manual_seed(0)
    torch.set_default_device("cuda")
    if not isinstance(here, Exception):
        return check(cuda, outcome(source, make()), here)
    with pytest.raises(type(here)) as raised:
        outcome(source, make())
    if cuda.rtol == 0:
        assert str(raised.value) == str(here)
    return None


# What the device's libraries do not have: Bessel functions of any order.
WITHOUT_COUNTERPART = ("torch.special.i0(a)", "torch.special.bessel_j1(a.detach())")
OF_SPECIAL = [s.strip() for s in OF_SCIPY.replace("\n", ";").split(";") if s.strip()]
# What is on the host wherever tensors are made, in PyTorch as well.
ON_HOST = (
    *("a.to('cpu')", "torch.add(True, True)", "torch.sub(3, 1.5)"),
    *("torch.mul(2, 3)", "torch.div(1, 2)"),
)
ALL = [s for s in SOURCES + SOURCES_OF_MATRICES + OF_SPECIAL if s not in ON_HOST]


@pytest.mark.parametrize("source", ALL)
def test_an_expression_means_the_same(used_by_default, source):
    if source in WITHOUT_COUNTERPART:
        with pytest.raises(lantern.MissingRuleError, match="CPU"):
            outcome(source, inputs(torch))
    else:
        compare(used_by_default, source, lambda: inputs(torch))


def images():
    """Inputs of neural functions."""
    x, y = torch.arange(12.0).view(4, 3).cos(), torch.arange(12.0).view(4, 3).sin()
    i = torch.arange(144.0).view(2, 3, 4, 6).cos()
    names = {n: z.requires_grad_() for n, z in {"x": x, "y": y, "i": i}.items()}
    return names | {"torch": torch, "nn": nn, "F": F, "t": torch.tensor([2, 0, 1, 2])}


@pytest.mark.filterwarnings("ignore")  # of old names
@pytest.mark.parametrize("source", NEURAL.strip().split("\n"))
def test_a_neural_function_means_the_same(used_by_default, source):
    compare(used_by_default, source, images)


# What has to know values: the program waits until they are on the host.
WAITING = """
item tolist allclose equal bool( float( int( format( round( in_a gather index_select
scatter quantile repeat_interleave hermite lstsq (torch.tensor(1) a[torch nll_loss
cross_entropy CrossEntropy max_unpool embedding(q map_ matrix_exp hist bincount unique
masked_select nanmedian nonzero torch.where(m) a[m a[a_>_0]
""".split()


@pytest.mark.filterwarnings("ignore")  # of old names
def test_nothing_is_copied_to_the_host_unasked(used_by_default):
    if used_by_default.name != "standin":
        pytest.skip("CuPy waits where sizes depend on values")
    from tests.fake_cupy import copies

    tables = [(inputs(torch), ALL), (images(), NEURAL.strip().split("\n"))]
    pairs, found = [(names, s) for names, table in tables for s in table], set()
    for names, source in pairs:
        copies.clear()
        try:
            eval(source, dict(names))
        except Exception:
            continue
        if copies["to host"]:
            found.add(source)
    found = {s for s in found if not any(w in s.replace(" ", "_") for w in WAITING)}
    assert found == set()


def sequential(*layers):
    return nn.Sequential(nn.Linear(6, 8), *layers, nn.Linear(8, 3))


def classified(model, *more):
    def loss(m, x, y):
        return F.cross_entropy(m(x), y)

    return model, (torch.randn(5, 6), torch.tensor([0, 2, 1, 1, 0])), loss


def convolutional():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3), nn.GroupNorm(2, 6), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(6, 3),
    )  # fmt: skip
    batch = torch.randn(4, 1, 8, 8), torch.tensor([0, 2, 1, 1])
    return model, batch, lambda m, x, y: F.nll_loss(F.log_softmax(m(x), 1), y)


class Reader(nn.Module):
    """Tokens through a recurrent layer."""

    def __init__(self, layer, width=5):
        super().__init__()
        self.tokens, self.layer = nn.Embedding(11, 6, padding_idx=0), layer
        self.head = nn.Linear(width, 11)

    def forward(self, i):
        return self.head(self.layer(self.tokens(i))[0])


def reading(layer, width=5):
    def loss(m, i):
        return F.cross_entropy(m(i).reshape(-1, 11), i.reshape(-1))

    return Reader(layer, width), (torch.randint(0, 11, (3, 7)),), loss


def packed():
    def loss(m, x):
        row = nn.utils.rnn.pack_padded_sequence(x, [4, 3, 1], batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(m(row)[0])[0].square().sum()

    return nn.LSTM(4, 5, 2, batch_first=True), (torch.randn(3, 4, 4),), loss


class Block(nn.Module):
    """Attention, and a network for each place."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.rest = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        z, n = self.first(x), x.shape[1]
        hidden = torch.triu(torch.ones(n, n, device=x.device), 1).bool()
        x = x + self.attention(z, z, z, attn_mask=hidden, need_weights=False)[0]
        heads = z.view(len(z), n, 2, 4).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        x = x + mixed.transpose(1, 2).reshape(x.shape)
        return x + self.rest(self.second(x))


class Language(nn.Module):
    """A small language model, whose head is its table of tokens."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(13, 8), nn.Embedding(6, 8)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(8, 13, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, i):
        places = self.places(torch.arange(i.shape[1], device=i.device))
        return self.head(self.blocks(self.tokens(i) + places))


def language():
    def loss(m, i):
        options = {"label_smoothing": 0.1, "ignore_index": 3}
        return F.cross_entropy(m(i[:, :-1]).mT, i[:, 1:], **options)

    return Language(), (torch.randint(0, 13, (2, 6)),), loss


def translating():
    model = nn.Transformer(8, 2, 1, 1, 16, 0, batch_first=True)
    batch = torch.randn(2, 3, 8), torch.randn(2, 4, 8)
    return model, batch, lambda m, x, y: (m(x, y) - y).square().mean()


def adam(parameters, kind=optim.Adam):
    """Adam, which would go as far by a gradient that is 0 but for rounding.

    That of a bias before a normalisation is, and that of a bias of attention's keys.
    """
    return kind(parameters, lr=1e-2, eps=1e-3)


OPTIMISERS = {
    "SGD, momentum": lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True, weight_decay=0.1),
    "Adam, amsgrad": lambda p: optim.Adam(p, 0.01, amsgrad=True, maximize=True),
    "RMSprop, centred": lambda p: optim.RMSprop(p, momentum=0.9, centered=True),
    "LBFGS, searching": lambda p: optim.LBFGS(
        p, max_iter=4, line_search_fn="strong_wolfe"
    ),
} | {
    name: lambda p, name=name: getattr(optim, name)(p, lr=1e-2)
    for name in (
        "SGD Adagrad Adadelta Adam AdamW Adamax NAdam RAdam RMSprop Rprop ASGD LBFGS"
    ).split()
}
LAYERS = (
    "Sigmoid() Tanh() LeakyReLU() ELU() PReLU() SiLU() Softplus() Hardtanh() Mish() "
    "GELU() GELU('tanh') Softmax(-1) RMSNorm(8) BatchNorm1d(8) RReLU() "
    "utils.parametrizations.weight_norm(nn.Linear(8,8))"
).split()
PROGRAMS = {
    name: (lambda: classified(sequential(nn.ReLU())), make)
    for name, make in OPTIMISERS.items()
}
PROGRAMS |= {
    name: (lambda name=name: classified(sequential(eval(f"nn.{name}"))), adam)
    for name in LAYERS
}
PROGRAMS |= {
    "convolutional": (convolutional, OPTIMISERS["SGD, momentum"]),
    "RNN": (lambda: reading(nn.RNN(6, 5)), adam),
    "GRU": (lambda: reading(nn.GRU(6, 5, batch_first=True)), adam),
    "LSTM": (
        lambda: reading(nn.LSTM(6, 5, 2, bidirectional=True), 10),
        adam,
    ),
    "packed": (packed, OPTIMISERS["RMSprop"]),
    "language": (language, lambda p: adam(p, optim.AdamW)),
    "translating": (translating, adam),
}


class Training:
    """A program, and what it has come to."""

    def __init__(self, name, device):
        start, self.make = PROGRAMS[name]
        torch.manual_seed(0)
        self.model, self.batch, self.loss = start()
        self.model = self.model.to(device)
        self.batch = [x.to(device) for x in self.batch]
        self.optimizer = self.make(self.model.parameters())
        self.schedule = optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)

    def closure(self):
        self.optimizer.zero_grad()
        loss = self.loss(self.model, *self.batch)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        return loss

    def step(self):
        loss = self.optimizer.step(self.closure)
        self.schedule.step()
        return loss.item()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_trains_as_on_the_cpu(cuda, name):
    there = Training(name, "cuda")
    losses = [[there.step() for _ in range(3)]]
    here = Training(name, "cpu")
    losses.append([here.step() for _ in range(3)])
    # Rows may add up in other orders; LBFGS takes sixty steps, and its products stay on
    # the device, in single precision.
    close = 1e-4 if "LBFGS" in name else 1e-5
    rel, near = (1e-4, 1e-6) if cuda.rtol else (close / 10, 0)
    assert losses[0] == pytest.approx(losses[1], rel=rel, abs=near)
    pairs = zip(there.model.parameters(), here.model.parameters(), strict=True)
    for p, q in pairs:
        check(cuda, [p, p.grad], [q, q.grad], close, 1e-3)
        kept = there.optimizer.state[p].values()
        for x in kept:
            assert not isinstance(x, torch.Tensor) or not x.ndim or x.is_cuda


@pytest.mark.parametrize("name", ["packed", "translating"])
def test_a_step_of_training_copies_nothing(cuda, name):
    if cuda.name != "standin":
        pytest.skip("CuPy does not count copies")
    from tests.fake_cupy import copies

    training = Training(name, "cuda")
    copies.clear()
    training.optimizer.step(training.closure)
    assert not copies


class TestDropout:
    """What is kept is drawn on the device, by a seed that is drawn on the host."""

    x = property(lambda self: torch.ones(100, 200, device="cuda", requires_grad=True))

    def test_it_is_drawn_by_splitmix64(self):
        # The first two numbers of seed 1234567.
        first, second = 6457827717110365317, 3203168211198807973
        numbers, seed = np.arange(1, 3, dtype=np.uint64), np.uint64(1234567)
        for least, expected in [
            (first, [True, False]),
            (first + 1, [False, False]),
            (second, [True, True]),
            (second + 1, [True, False]),
        ]:
            found = masks._at_least(numbers, seed, np.uint64(least), np)
            assert found.tolist() == expected

    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    def test_shares_and_gradients(self, p):
        torch.manual_seed(0)
        z = F.dropout(x := self.x, p)
        z.sum().backward()
        kept = z != 0
        assert abs(kept.float().mean().item() - (1 - p)) < 0.02
        np.testing.assert_allclose(z[kept].tolist(), 1 / (1 - p), 1e-6)
        assert torch.equal(x.grad, z.detach())
        pairs = kept[:, :-1] & kept[:, 1:]
        assert abs(pairs.float().mean().item() - (1 - p) ** 2) < 0.02
        assert (F.dropout(x, 1.0) == 0).all()

    @pytest.mark.parametrize("kind", ["Dropout", "AlphaDropout", "FeatureAlphaDropout"])
    def test_a_seed_and_a_state_give_it_again(self, kind):
        layer, x = getattr(nn, kind)(0.5), self.x
        torch.manual_seed(3)
        first, state = layer(x), torch.get_rng_state()
        second = layer(x)
        assert not torch.equal(first, second)
        torch.set_rng_state(state)
        assert torch.equal(layer(x), second)
        torch.manual_seed(3)
        assert torch.equal(layer(x), first)

    def test_what_is_recomputed_is_dropped_again(self):
        x = self.x
        z = torch.utils.checkpoint.checkpoint(F.dropout, x, use_reentrant=False)
        z.square().sum().backward()
        assert torch.equal(x.grad, 4 * z.detach())


def test_training_takes_no_more_memory_step_by_step(cuda):
    for name in ("Adam", "convolutional", "language"):
        training = Training(name, "cuda")
        for i in range(12):
            training.step()
            if i == 3:
                gc.collect()  # what other tests have left
                used = cuda.used()
        assert cuda.used() <= used, name


def test_a_checkpoint_goes_to_a_file_and_back(cuda):
    first, second = Training("language", "cuda"), Training("language", "cuda")
    first.step()
    file = io.BytesIO()
    parts = {"model": first.model, "optimizer": first.optimizer}
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save(state | {"rng": torch.get_rng_state()}, file)
    file.seek(0)
    on_cpu = torch.load(file)
    file.seek(0)
    found = torch.load(file, map_location="cuda")
    name = "tokens.weight"
    assert on_cpu["model"][name].device.type == "cpu"
    check(cuda, found["model"][name], on_cpu["model"][name])
    for kept in (found, on_cpu):
        second = Training("language", "cuda")
        second.model.load_state_dict(kept["model"])
        second.optimizer.load_state_dict(kept["optimizer"])
        torch.set_rng_state(kept["rng"].cpu())
        assert second.model.head.weight is second.model.tokens.weight
        again = second.step()
        torch.set_rng_state(kept["rng"].cpu())
        assert again == copy.deepcopy(first).step()


def test_a_whole_module_keeps_its_shared_weights(cuda):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to("cuda")
    model[1].weight = model[0].weight
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    found = torch.load(file, weights_only=False)
    assert found[1].weight is found[0].weight


# Given c on the GPU, h on the CPU, z on the CPU without axes, a module m on the GPU.
ANSWERS = """
repr(c) | "tensor([1., 2.], device='cuda:0')"
c.device, torch.device("cuda", 0) == c.device | (device(type='cuda', index=0), True)
torch.cuda.is_available(), torch.cuda.current_device() | (True, 0)
torch.cuda.device_count() > 0, torch.cuda.memory_allocated() > 0 | (True, True)
torch.cuda.synchronize(), torch.cuda.manual_seed(3) | (None, None)
torch.cuda.empty_cache(), torch.cuda.is_initialized() | (None, True)
torch.cuda.get_device_properties(0).total_memory > 0 | True
c.is_cuda, h.is_cuda, c.get_device(), h.get_device() | (True, False, 0, -1)
places(h.to("cuda"), h.to(c), h.to(0), h.cuda(), h.cuda(non_blocking=True)) | {"cuda"}
places(h.to("cuda", torch.float64), h.pin_memory().to("cuda")) | {"cuda"}
places(c.cpu(), c.to("cpu"), c.to(h)) | {"cpu"}
c.to("cuda") is c, c.cuda() is c, c.to("cuda", copy=True) is c | (True, True, False)
places(c.clone(), c.detach(), c.data, c.contiguous(), c[:1], c.view(1, 2)) | {"cuda"}
places(torch.tensor([1.0], device="cuda"), torch.as_tensor(c)) | {"cuda"}
places(torch.from_numpy(np.ones(2)).cuda()) | {"cuda"}
places(torch.zeros(2, device="cuda"), torch.eye(2, device="cuda:0")) | {"cuda"}
places(torch.full((2,), 1.0, device=c.device), torch.arange(3, device=0)) | {"cuda"}
places(torch.full((2,), 1, dtype=torch.int32, device="cuda")) | {"cuda"}
places(torch.randn(2, device="cuda"), torch.randperm(3, device="cuda")) | {"cuda"}
places(torch.zeros_like(c), torch.rand_like(c), c.new_zeros(2)) | {"cuda"}
places(torch.ones_like(h, device="cuda"), torch.empty(2).to(c)) | {"cuda"}
places(torch.zeros_like(c, device="cpu"), torch.tensor(c, device="cpu")) | {"cpu"}
places(torch.randn(2, generator=torch.Generator("cuda"), device="cuda")) | {"cuda"}
places(torch.bernoulli(c / 3), torch.multinomial(c, 1), torch.normal(c, c)) | {"cuda"}
places(torch.poisson(c), c.clone().uniform_(), c.clone().bernoulli_(0.5)) | {"cuda"}
places(nn.Linear(2, 2, device="cuda").weight, nn.LSTM(2, 2, device="cuda")) | {"cuda"}
places(m, m.cuda(), copy.deepcopy(m), nn.BatchNorm1d(2).to("cuda")) | {"cuda"}
places(copy.deepcopy(m).cpu(), nn.Linear(2, 2)) | {"cpu"}
places(m(c), nn.DataParallel(m)(c), torch.compile(m)(c)) | {"cuda"}
places(nn.init.xavier_uniform_(m.weight), nn.init.orthogonal_(m.weight)) | {"cuda"}
places(torch.utils.data.default_collate([c, c])) | {"cuda"}
places(torch.sparse_coo_tensor([[0, 1], [1, 0]], h).to_dense()) | {"cpu"}
c[torch.tensor([1])], c[[1]], c[h > 1], c[c > 1] | (c[1:],)*4
c.tolist(), c.sum().item(), float(c[0]), int(c[1]) | ([1.0, 2.0], 3.0, 1.0, 2)
c * z, z * c, c / z, 2 * c / z | (c * 2, c * 2, c / 2, c)
torch.add(c, z), torch.maximum(c, z), torch.where(c > 1, c, z) | (c + 2, two, two)
c.clone().mul_(z), c.clone().add_(z), c.clone().fill_(z) | (c * 2, c + 2, two)
h.clone().copy_(c), c.clone().copy_(h) | (h, c)
put(c.clone(), 0, z), put(c.clone(), slice(2), h) | (two, c)
put(h.clone(), 0, c[1]), put(c.clone(), [0], h[1:]) | (two.cpu(), two)
torch.testing.assert_close(c, c.clone()), torch.equal(c.cpu(), h) | (None, True)
c.storage_offset(), c[1:].storage_offset(), c.stride() | (0, 1, (1,))
torch.accelerator.current_accelerator() | device(type='cuda')
torch.cuda.FloatTensor([1.0, 2.0]) | c
isinstance(c, torch.cuda.FloatTensor), isinstance(c, torch.FloatTensor) | (True, False)
"""


def names():
    def places(*xs):
        found = [[*x.parameters()] if isinstance(x, nn.Module) else [x] for x in xs]
        return {x.device.type for row in found for x in row}

    def put(x, index, value):
        x[index] = value
        return x

    h = torch.tensor([1.0, 2.0])
    found = {"h": h, "c": h.to("cuda"), "z": torch.tensor(2.0), "device": torch.device}
    found["two"] = torch.full((2,), 2.0, device="cuda")
    found |= {"m": nn.Linear(2, 2).to("cuda"), "places": places, "put": put}
    return found | {"torch": torch, "nn": nn, "F": F, "np": np, "copy": copy}


@pytest.mark.parametrize("line", ANSWERS.strip().split("\n"))
def test_answers(line):
    source, _, expected = line.partition(" | ")
    found = names()
    assert repr(eval(source, found)) == repr(eval(expected, found))


MIXED = """
c + h; h + c; h - c; c @ h; c > h; h == c; torch.maximum(c, h); torch.where(c > 1, c, h)
torch.cat([c, h]); torch.stack([h, c]); torch.add(c, h); torch.dot(c, h); c.add_(h)
h.mul_(c); m(h); F.linear(h, m.weight); F.mse_loss(c, h); torch.allclose(c, h)
F.cross_entropy(m(c[None]), torch.tensor([1])); F.nll_loss(c[None], torch.tensor([1]))
F.embedding(torch.tensor([1]), m.weight); c.gather(0, torch.tensor([1]))
c.index_select(0, torch.tensor([1])); F.layer_norm(c, (2,), h)
torch.einsum('i,i', c, h); c.scatter(0, torch.tensor([1]), c)
torch.searchsorted(c, h); torch.isclose(c, h)
"""


@pytest.mark.parametrize("source", MIXED.replace("\n", ";").strip("; ").split(";"))
def test_tensors_of_two_devices_do_not_meet(source):
    words = (
        "Expected all tensors to be on the same device, but found at least two "
        "devices, cuda:0 and cpu!"
    )
    with pytest.raises(RuntimeError) as raised:
        eval(source.strip(), names())
    assert str(raised.value) == words


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("c.numpy()", TypeError, "can't convert cuda device type tensor to numpy"),
        ("np.asarray(c)", TypeError, "Tensor.cpu"),
        ("h[torch.tensor([1]).cuda()]", RuntimeError, "indices should be either on"),
        ("torch.zeros(2, device='cuda:9')", RuntimeError, "ordinal"),
        ("torch.testing.assert_close(c, h)", AssertionError, "device"),
        ("F.embedding(torch.tensor([5]).cuda(), m.weight)", IndexError, "out of range"),
        ("F.cross_entropy(m(c[None]), torch.tensor([9]).cuda())", IndexError, "bounds"),
        ("c.gather(0, torch.tensor([5]).cuda())", RuntimeError, "out of bounds"),
        (
            "nn.utils.rnn.pack_padded_sequence(c[:, None, None], c.long())",
            RuntimeError,
            "should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor",
        ),
    ],
)
def test_errors(source, kind, words):
    with pytest.raises(kind, match=words):
        eval(source, names())


DISTRIBUTIONS = """
Normal(c, 1.0); Uniform(c, c + 1); Gamma(c, c); Beta(c, 2.0); StudentT(c); Laplace(c, c)
Exponential(c); Cauchy(c, c); Gumbel(c, c); LogNormal(c, c); Dirichlet(c); Poisson(c)
Bernoulli(c / 3); Categorical(logits=c); OneHotCategorical(c); Geometric(c / 3)
Binomial(5, c / 3); Multinomial(4, c); NegativeBinomial(3, c / 3)
MultivariateNormal(c, torch.eye(2).to(c)); Independent(Normal(c, c), 1)
"""


@pytest.mark.parametrize(
    "source", DISTRIBUTIONS.replace("\n", ";").strip("; ").split("; ")
)
def test_distributions(cuda, source):
    def found(c):
        torch.manual_seed(0)
        chosen = vars(torch.distributions) | {"c": c, "torch": torch}
        rows = []
        for part in filter(None, source.split(";")):
            distribution = eval(part, chosen)
            drawn = distribution.sample((3,))
            rows += [drawn, distribution.log_prob(drawn)]
        return rows

    here = torch.tensor([1.0, 2.0])
    check(cuda, found(here.cuda()), found(here))


class TestWriting:
    """Writes in place, and views, are known by the memory of the device."""

    def leaf(self):
        return torch.tensor([1.0, 2.0, 3.0], device="cuda", requires_grad=True)

    def test_what_a_rule_saved_is_noticed(self):
        y = self.leaf().exp()
        y[:1].add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_a_write_to_a_view_goes_to_its_base(self):
        w = self.leaf()
        y = w * 1
        part = y[1:]
        part.mul_(3)
        y[0] = 5.0
        (y * y).sum().backward()
        assert w.grad.tolist() == [0.0, 36.0, 54.0]

    def test_untracked_views_share_memory(self):
        x = self.leaf().detach()
        x.view(3, 1)[1:].add_(10)
        assert x.tolist() == [1.0, 12.0, 13.0]

    def test_a_gradient_is_its_own(self):
        w = self.leaf()
        y = w + 1
        y.backward(seed := torch.ones(3, device="cuda"))
        w.grad.add_(1)
        assert seed.tolist() == [1.0, 1.0, 1.0]


class TestTransfers:
    @pytest.mark.parametrize(("start", "away"), [("cpu", "cuda"), ("cuda", "cpu")])
    def test_derivatives_come_back(self, start, away):
        w = torch.tensor([0.5, 2.0], device=start, requires_grad=True)
        loss = (w.to(away) ** 3).sum()
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), w, retain_graph=True)
        loss.backward()
        assert {x.device.type for x in (g, h, w.grad)} == {start}
        np.testing.assert_allclose(h.tolist(), [3.0, 12.0])

    def test_a_number_on_the_cpu_gets_its_gradient_there(self):
        scale = torch.tensor(2.0, requires_grad=True)
        x = torch.tensor([1.0, 2.0], device="cuda", requires_grad=True)
        ((x * scale).sum() * scale).backward()
        assert (scale.grad.item(), scale.grad.device.type) == (12.0, "cpu")
        assert (x.grad.tolist(), x.grad.device.type) == ([4.0, 4.0], "cuda")

    def test_blocks_choose_where_new_tensors_lie(self):
        with torch.device("cuda"):
            inside = torch.zeros(2), torch.zeros(2, device="cpu"), nn.Linear(2, 2).bias
        assert [x.device.type for x in inside] == ["cuda", "cpu", "cuda"]
        assert torch.zeros(2).device.type == "cpu"

    def test_batches_of_a_loader(self):
        rows = torch.utils.data.TensorDataset(torch.randn(4, 2), torch.arange(4))
        loader = torch.utils.data.DataLoader(rows, 2, pin_memory=True, num_workers=2)
        moved = [[x.to("cuda", non_blocking=True) for x in batch] for batch in loader]
        assert [x.cpu().tolist() for _, x in moved] == [[0, 1], [2, 3]]

    def test_mixed_precision(self, cuda):
        training = Training("Adam", "cuda")
        scaler = torch.amp.GradScaler("cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = training.loss(training.model, *training.batch)
        scaler.scale(loss).backward()
        scaler.unscale_(training.optimizer)
        scaler.step(training.optimizer)
        scaler.update()
        assert loss.is_cuda

    def test_recomputed_parts(self, cuda):
        model = nn.Linear(3, 3).to("cuda")
        x = torch.ones(2, 3, device="cuda", requires_grad=True)
        for function in (
            model,
            lambda x: torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False),
        ):
            x.grad = None
            function(x).square().sum().backward()
            last = x.grad.tolist()
        assert last == x.grad.tolist()

    def test_plain_arrays_of_the_device(self, cuda):
        array = cuda.array(np.ones(2, np.float32))
        for x in (torch.as_tensor(array), torch.tensor(array), torch.ones(2).cuda()):
            assert torch.equal(x, torch.ones(2, device="cuda"))
        assert torch.as_tensor(array).primal is array


TRANSFORMS = {
    "grad": lambda f: lambda x: torch.func.grad(lambda x: f(x).sum())(x),
    "jacrev": torch.func.jacrev,
    "jacfwd": torch.func.jacfwd,
    "hessian": lambda f: torch.func.hessian(lambda x: f(x).sum()),
    "vmap": torch.func.vmap,
    "vjp": lambda f: lambda x: torch.func.vjp(f, x)[1](x)[0],
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (x,))[1],
    "linearize": lambda f: lambda x: torch.func.linearize(f, x)[1](x),
    "jacobian": lambda f: lambda x: torch.autograd.functional.jacobian(f, x),
    "hvp": lambda f: (
        lambda x: torch.autograd.functional.hvp(lambda x: f(x).sum(), x, x)[1]
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_functions(cuda, name):
    transform = TRANSFORMS[name](lambda x: x.sin() * x)
    x = torch.tensor([0.5, 1.0])
    check(cuda, transform(x.cuda()), transform(x))


def test_gradients_are_checked(cuda):
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, device="cuda", requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x**3, (x,))
    assert torch.autograd.gradgradcheck(lambda x: x**3, (x,))
