"""What engines compute on a GPU, beside NumPy in double precision."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.engines.gpu import (
    convolution,
    cudnn,
    elementwise,
    entropy,
    normalisation,
    products,
    softmax,
    steps,
)
from lantern.torch.nn.windows import Form

if not torch.cuda.is_available():
    pytest.skip("there is no GPU, or no CuPy", allow_module_level=True)

import cupy

needs_cudnn = pytest.mark.skipif(not cudnn.is_installed(), reason="cuDNN is missing")
draws = np.random.default_rng(0)

ONES, NONE = (1, 1), ((0, 0), (0, 0))
AROUND, UNEVEN = ((1, 1), (1, 1)), ((1, 2), (0, 1))
FORMS = [
    ((4, 6, 9, 8), (8, 6, 3, 3), Form((9, 8), (3, 3), ONES, AROUND, ONES)),
    ((2, 4, 9, 8), (6, 4, 1, 1), Form((9, 8), ONES, (2, 2), NONE, ONES)),
    ((2, 4, 9, 9), (8, 2, 3, 3), Form((9, 9), (3, 3), (2, 1), UNEVEN, (1, 2), 2)),
    ((3, 5, 20), (4, 5, 4), Form((20,), (4,), (2,), ((1, 1),), (1,))),
    (
        (2, 3, 5, 6, 7),
        (4, 3, 2, 3, 2),
        Form((5, 6, 7), (2, 3, 2), (1, 1, 1), ((0, 0),) * 3, (1, 1, 1)),
    ),
]


def drawn(*shape):
    return draws.normal(size=shape).astype(np.float32)


def near(found, wanted, rtol=1e-5):
    """Whether an array of the GPU is what NumPy has, next to its largest element."""
    assert type(found) is cupy.ndarray
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found.get(), wanted, rtol=0, atol=rtol * scale)


@pytest.fixture
def exact():
    cudnn.allow_tf32(False)
    yield
    cudnn.allow_tf32(True)


@needs_cudnn
@pytest.mark.parametrize(("x", "w", "form"), FORMS, ids=range(len(FORMS)))
def test_convolutions(x, w, form, exact):
    from lantern.torch.nn import windows

    x, w = drawn(*x), drawn(*w)
    bias = drawn(len(w))
    x64, w64 = x.astype(float), w.astype(float)
    wanted = windows._correlated(x64, w64, form, bias.astype(float))
    z = drawn(*wanted.shape)
    z64 = z.astype(float)
    on_device = [cupy.asarray(a) for a in (x, w, z, bias)]
    near(convolution.correlate(on_device[0], on_device[1], form, on_device[3]), wanted)
    near(
        convolution.spread(on_device[2], on_device[1], form),
        windows._spread_out(z64, w64, form),
    )
    near(
        convolution.match(on_device[0], on_device[2], form),
        windows._matched(x64, z64, form),
    )


@needs_cudnn
def test_convolutions_of_fewer_digits_where_they_may():
    x, w = drawn(8, 64, 14, 14), drawn(64, 64, 3, 3)
    a, b = cupy.asarray(x), cupy.asarray(w)
    form = Form((14, 14), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1))
    short = convolution.correlate(a, b, form)
    cudnn.allow_tf32(False)
    whole = convolution.correlate(a, b, form)
    cudnn.allow_tf32(True)
    off = float(abs(short - whole).max() / abs(whole).max())
    assert 0 < off < 2e-3


@needs_cudnn
@pytest.mark.parametrize(
    ("shape", "axes", "form"),
    [
        ((6, 5, 4, 7), (0, 2, 3), (5, 1, 1)),
        ((9, 5), (0,), (5,)),
        ((6, 5, 8), (0, 2), (5, 1)),
        ((3, 4, 16), (-1,), (16,)),
        ((3, 4, 16), (-2, -1), (4, 16)),
        ((7, 13), (-1,), (13,)),
    ],
)
@pytest.mark.parametrize("scaled", [True, False])
def test_normalisation(shape, axes, form, scaled):
    x, z_bar, eps = drawn(*shape) * 3 + 1, drawn(*shape), 1e-5
    weight, bias = (drawn(*form), drawn(*form)) if scaled else (None, None)
    mean = x.astype(float).mean(axes, keepdims=True)
    variance = x.astype(float).var(axes, keepdims=True)
    scale = (variance + eps) ** -0.5
    n = (x - mean) * scale
    given = [None if p is None else cupy.asarray(p) for p in (x, weight, bias)]
    z, *moments = normalisation.normalised(*given, axes, eps, form)
    near(z, n if weight is None else n * weight + bias, 2e-5)
    near(moments[0], mean.reshape(-1), 2e-5)
    near(moments[1], variance.reshape(-1), 2e-5)
    x_bar, weight_bar, bias_bar = normalisation.pulled_back(
        cupy.asarray(z_bar), given[0], moments, given[1], axes, eps, form
    )
    n_bar = z_bar if weight is None else z_bar * weight
    wanted = n_bar - n_bar.mean(axes, keepdims=True)
    wanted = (wanted - n * (n_bar * n).mean(axes, keepdims=True)) * scale
    near(x_bar, wanted, 5e-5)
    over = tuple(
        i for i, m in enumerate(np.broadcast_shapes(form, (1,) * len(shape))) if m == 1
    )
    near(weight_bar, (z_bar * n).sum(over).reshape(-1), 5e-5)
    near(bias_bar, z_bar.sum(over).reshape(-1), 5e-5)


def test_running_moments():
    running, now = (drawn(5), drawn(5)), (drawn(5), drawn(5))
    arrays = [cupy.asarray(a) for a in running]
    assert normalisation.follow(arrays, [cupy.asarray(a) for a in now], 0.1, 1.25)
    for found, x, y, factor in zip(arrays, running, now, (1, 1.25), strict=True):
        near(found, x * 0.9 + 0.1 * y * factor)


SHAPES = [(5, 3, 7), (1, 8, 8), (128, 64, 256), (300, 1, 9)]


@pytest.mark.parametrize(("n", "k", "m"), SHAPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("right", [True, False])
def test_products(n, k, m, left, right):
    x, y = drawn(n, k), drawn(k, m)
    a, b = cupy.asarray(x), cupy.asarray(y)
    a = cupy.ascontiguousarray(a.T).T if left else a
    b = cupy.ascontiguousarray(b.T).T if right else b
    near(products.product(a, b), x.astype(float) @ y.astype(float))


@pytest.mark.parametrize(("n", "k", "m"), [(5, 3, 7), (1, 8, 8), (128, 64, 256)])
def test_products_with_a_bias(n, k, m):
    x, weight = drawn(n, k), drawn(m, k)
    a, w = cupy.asarray(x), cupy.asarray(weight)
    wanted = x.astype(float) @ weight.T.astype(float)
    for bias in (drawn(m), drawn(m)):  # the same way of computing, other addresses
        near(products.affine(a, w, cupy.asarray(bias)), wanted + bias)
    near(products.affine(a, w, None), wanted)


def test_products_of_parts_of_matrices():
    x = cupy.asarray(drawn(20, 30))
    near(products.product(x[:, :8], x[:8, 3:]), x[:, :8].get() @ x[:8, 3:].get())
    near(products.product(x[2:9, :20], x), x[2:9, :20].get() @ x.get())
    assert products.product(x[:, ::2], x[:15]) is None


@needs_cudnn
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 1024), (4, 1)])
def test_softmax(shape):
    x, z_bar = drawn(*shape) * 5, drawn(*shape)
    powers = np.exp(x.astype(float) - x.max(-1, keepdims=True))
    z = powers / powers.sum(-1, keepdims=True)
    found = softmax.softmax(cupy.asarray(x), -1)
    near(found, z)
    wanted = z * (z_bar - (z_bar * z).sum(-1, keepdims=True))
    found = softmax.softmax_back(found, cupy.asarray(z_bar), -1)
    assert float(abs(found - cupy.asarray(wanted)).max()) < 1e-5


@needs_cudnn
def test_softmax_of_what_is_no_number():
    x = np.array([[1.0, np.nan], [-np.inf, 0.0], [-np.inf, -np.inf]], np.float32)
    found = softmax.softmax(cupy.asarray(x), -1).get()
    np.testing.assert_array_equal(np.isnan(found), [[1, 1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(found[1], [0, 1])


@pytest.mark.parametrize("name", ["relu", "gelu"])
@pytest.mark.parametrize("shape", [(4, 8), (3, 5, 4), (1000, 1000)])
def test_functions_of_each_element(name, shape):
    from math import erf

    x, z_bar = drawn(*shape), drawn(*shape)
    chance = 0.5 * (1 + np.vectorize(erf)(x.astype(float) / 2**0.5))
    density = np.exp(-0.5 * x.astype(float) ** 2) / (2 * np.pi) ** 0.5
    z, slope = {
        "relu": (np.maximum(x, 0), x > 0),
        "gelu": (x * chance, chance + x * density),
    }[name]
    a = cupy.asarray(x)
    found = getattr(elementwise, name)(a)
    near(found, z)
    if name == "relu":
        near(elementwise.relu_back(cupy.asarray(z_bar), found), z_bar * slope)
    else:
        near(elementwise.gelu_back(a, cupy.asarray(z_bar)), z_bar * slope)


def test_relu_of_what_is_no_number():
    x = cupy.asarray(np.array([np.nan, np.inf, -np.inf, -0.0], np.float32))
    np.testing.assert_array_equal(elementwise.relu(x).get(), np.maximum(x.get(), 0))


def test_odd_arrays_are_left_to_others():
    assert elementwise.relu(cupy.ones(3, "f")) is None
    assert elementwise.relu(cupy.ones(5, "f")[1:]) is None
    assert elementwise.relu(cupy.ones(4)) is None


@pytest.mark.parametrize(("rows", "width"), [(5, 3), (7, 1000), (2, 50257)])
@pytest.mark.parametrize("each", [True, False])
def test_losses_of_classes(rows, width, each):
    x, targets = drawn(rows, width) * 3, draws.integers(0, width, rows)
    factors = drawn(rows) if each else np.float32(0.5)
    places = targets + np.arange(rows) * width
    x64 = x.astype(float)
    logarithms = np.log(np.exp(x64).sum(1))
    a, p = cupy.asarray(x), cupy.asarray(places)
    losses, found = entropy.entropy(a, p)
    near(losses, logarithms - x64[np.arange(rows), targets])
    near(found, logarithms)
    wanted = np.exp(x64 - logarithms[:, None])
    wanted[np.arange(rows), targets] -= 1
    wanted *= factors[:, None] if each else factors
    near(entropy.entropy_back(a, p, found, cupy.asarray(factors)), wanted, 2e-5)


def test_losses_of_what_is_no_number():
    low = -np.inf
    rows = [[low, 0, 1, low], [low] * 4, [np.nan, 0, 0, 0], [np.inf, 0, 0, 0]]
    x = np.array(rows, np.float32)
    places = np.array([1, 5, 9, 13])
    losses, _ = entropy.entropy(cupy.asarray(x), cupy.asarray(places))
    np.testing.assert_array_equal(np.isnan(losses.get()), [0, 1, 1, 1])
    np.testing.assert_allclose(float(losses[0]), np.log(1 + np.e), rtol=1e-6)


def test_sums_of_rows():
    x = drawn(300, 70)
    near(products.over_rows(cupy.asarray(x)), x.astype(float).sum(0))


SIZES = [(3,), (40, 50), (100, 1000), (1,)]


@pytest.mark.parametrize(("decay", "shrink"), [(0.0, 1.0), (0.1, 1.0), (0.0, 0.99)])
def test_steps_of_adam(decay, shrink):
    arrays = [[drawn(*s) for _ in range(3)] + [abs(drawn(*s))] for s in SIZES]
    numbers = 0.1, 0.999, 0.001, 0.01, 0.5, 1e-8, decay, shrink
    given = [[cupy.asarray(a) for a in four] for four in arrays]
    steps.adam(given, numbers)
    for (x, g, mean, square), found in zip(arrays, given, strict=True):
        x = x * shrink
        g = g + decay * x
        mean = mean + (g - mean) * 0.1
        square = square * 0.999 + g * g * 0.001
        near(found[0], x - 0.01 * mean / (np.sqrt(square) / 0.5 + 1e-8), 1e-4)
        near(found[2], mean)
        near(found[3], square)


@pytest.mark.parametrize("ahead", [0, 1])
def test_steps_with_momentum(ahead):
    arrays = [[drawn(*s) for _ in range(3)] for s in SIZES]
    given = [[cupy.asarray(a) for a in three] for three in arrays]
    steps.descend(given, (0.1, 0.9, 1.0, 0.01, ahead))
    for (x, g, velocity), found in zip(arrays, given, strict=True):
        g = g + 0.01 * x
        velocity = velocity * 0.9 + g
        near(found[0], x - 0.1 * (g + 0.9 * velocity if ahead else velocity))
        near(found[2], velocity)


def test_kernels_reach_beyond_their_blocks():
    x = drawn(6_000_000)
    near(elementwise.relu(cupy.asarray(x)), np.maximum(x, 0))


@pytest.mark.parametrize(
    ("optimiser", "options"),
    [
        ("Adam", {"lr": 0.01}),
        ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
        ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
        ("AdamW", {"lr": 0.01, "maximize": True}),
        ("SGD", {"lr": 0.01, "momentum": 0.9}),
        ("SGD", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}),
        ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
        ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.5}),
    ],
)
def test_training_as_on_the_host(optimiser, options, exact):
    def trained(device):
        torch.manual_seed(0)
        nn = torch.nn
        model = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)),
            nn.ReLU(inplace=True),
            *(nn.Conv2d(8, 8, 3, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
            *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 16), nn.LayerNorm(16)),
            *(nn.GELU(), nn.Linear(16, 4)),
        )
        x, y = torch.randn(16, 3, 14, 14), torch.randint(0, 4, (16,))
        model, x, y = model.to(device), x.to(device), y.to(device)
        optimizer = getattr(torch.optim, optimiser)(model.parameters(), **options)
        losses = []
        for _ in range(4):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, {k: v.cpu().numpy() for k, v in model.state_dict().items()}

    (ours, state), (theirs, wanted) = trained("cuda"), trained("cpu")
    np.testing.assert_allclose(ours, theirs, rtol=2e-4)
    for name, value in wanted.items():
        np.testing.assert_allclose(state[name], value, rtol=0.02, atol=2e-3)


@needs_cudnn
def test_second_derivatives_through_layers(exact):
    def found(device, dtype):
        torch.manual_seed(0)
        conv, norm = torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4)
        layer = torch.nn.LayerNorm(6)
        x = torch.randn(3, 2, 8, 8)
        both = torch.nn.Sequential(conv, norm, torch.nn.GELU(), layer)
        both, x = both.to(device, dtype), x.to(device, dtype).requires_grad_()
        z = torch.softmax(both(x), -1).square().sum()
        (g,) = torch.autograd.grad(z, x, create_graph=True)
        (h,) = torch.autograd.grad(g.square().sum(), x)
        return g.detach().cpu().numpy(), h.cpu().numpy()

    for one, other in zip(
        found("cuda", torch.float32), found("cpu", torch.float64), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-3 * abs(other).max())
