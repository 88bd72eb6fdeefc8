"""What layers compute in rare cases: beside PyTorch, each in a few lines."""

import itertools

import numpy as np
import pytest

import lantern.torch as torch

pytorch = pytest.importorskip(
    "torch", reason="the peer that this face is compared with"
)
RNG = np.random.default_rng(0)


def beside(compute, *arrays):
    """Values and gradients of a function under both, compared."""
    found = []
    for library in (torch, pytorch):
        xs = [library.tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]
        z = compute(library, *xs)
        (z * z.detach().cos()).sum().backward()
        found.append([z.detach(), *(x.grad for x in xs if x.requires_grad)])
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("shape", "widths"),
    [
        ((2, 3, 4), (1, 2)),
        ((3, 4), (3, 3)),
        ((2, 3, 4), (-1, 2)),
        ((2, 2, 4, 4), (1, 2, 0, 3)),
        ((1, 2, 3, 4, 5), (1, 1, 1, 1, 2, 0)),
        ((0, 2, 3), (1, 1)),
    ],
)
def test_edges_of_their_own_elements(mode, shape, widths):
    x = RNG.normal(size=shape)
    beside(lambda t, x: t.nn.functional.pad(x, widths, mode=mode), x)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_edges_have_derivatives_of_any_order(mode):
    x = torch.tensor(RNG.normal(size=(1, 2, 4)), requires_grad=True)

    def padded(x):
        return torch.nn.functional.pad(x, (2, 1), mode=mode) ** 3

    assert torch.autograd.gradcheck(padded, [x])
    assert torch.autograd.gradgradcheck(padded, [x])
    assert torch.func.jvp(padded, (x.detach(),), (x.detach(),))[1].shape == (1, 2, 7)


LINEAR = {
    "pad": lambda x: torch.nn.functional.pad(x, (1, 1), mode="reflect"),
    "interpolate": lambda x: torch.nn.functional.interpolate(x, 7, mode="linear"),
    "mean pool": lambda x: torch.nn.functional.avg_pool1d(x, 2),
    "adaptive pool": lambda x: torch.nn.functional.adaptive_avg_pool1d(x, 3),
}


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_keeps_nothing_and_may_be_gone_back_through_twice(name):
    x = torch.tensor(RNG.normal(size=(2, 3, 6)), requires_grad=True)
    z = LINEAR[name](x).sum()
    z.backward()
    once = x.grad.clone()
    z.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * once.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_under_vmap(name):
    x = torch.tensor(RNG.normal(size=(4, 2, 3, 6)))
    one_by_one = torch.stack([LINEAR[name](part) for part in x])
    np.testing.assert_allclose(
        torch.vmap(LINEAR[name])(x).numpy(), one_by_one.numpy(), rtol=1e-12
    )


def test_an_affine_grid_may_be_gone_back_through_twice():
    theta = torch.ones(2, 2, 3, requires_grad=True)
    grid = torch.nn.functional.affine_grid(theta, (2, 1, 3, 4), align_corners=False)
    for _ in range(2):
        grid.sum().backward()
    assert theta.grad[:, :, 2].tolist() == [[24.0, 24.0]] * 2


def test_moments_are_left_alone_where_they_are_not_tracked():
    layer = torch.nn.BatchNorm1d(4)
    layer.track_running_stats = False
    layer(torch.tensor(RNG.normal(size=(8, 4)), dtype=torch.float32))
    assert layer.running_mean.tolist() == [0.0] * 4
    assert int(layer.num_batches_tracked) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.nn.BatchNorm1d(3),
        lambda t: t.nn.GroupNorm(1, 3),
        lambda t: t.nn.LayerNorm(2),
        lambda t: t.nn.LSTM(2, 4, batch_first=True),
        lambda t: t.nn.GRU(2, 4, batch_first=True),
        lambda t: t.nn.Linear(2, 5),
    ],
)
def test_no_examples_have_gradients_of_zeros(make):
    layer = make(torch)
    z = layer(torch.ones(0, 3, 2, requires_grad=True))
    z = z[0] if isinstance(z, tuple) else z
    z.sum().backward()
    theirs = make(pytorch)(pytorch.ones(0, 3, 2))
    assert z.shape == (theirs[0] if isinstance(theirs, tuple) else theirs).shape
    assert not any(p.grad.any() for p in layer.parameters())


MASK = np.array([[True, False, True], [False] * 3, [True] * 3])


@pytest.mark.parametrize("mask", [MASK, np.where(MASK, 0.0, -np.inf)], ids=str)
def test_rows_that_a_mask_hides_are_zeros_without_gradient(mask):
    parts = RNG.normal(size=(3, 2, 2, 3, 4))
    attention = "scaled_dot_product_attention"

    def attended(library, *parts):
        function = getattr(library.nn.functional, attention)
        return function(*parts, attn_mask=library.tensor(mask))

    beside(attended, *parts)


def test_examples_that_a_mask_hides():
    x = RNG.normal(size=(2, 3, 4))
    weights = RNG.normal(size=(4, 12, 4))

    def attended(library, x):
        layer = library.nn.MultiheadAttention(
            4, 2, batch_first=True, dtype=library.float64
        )
        for p, w in zip(layer.parameters(), weights, strict=True):
            flat = library.tensor(w).reshape(-1)[: p.numel()]
            p.data.copy_(flat.reshape(p.shape))
        hidden = library.tensor([[False, False, True], [True, True, True]])
        return layer(x, x, x, key_padding_mask=hidden, need_weights=False)[0]

    beside(attended, x)


def test_cosines_of_short_vectors():
    x = np.array([[1e-5, 0.0], [0.0, 0.0], [3.0, 4.0]])
    y, target = np.roll(x, 1, axis=1), np.array([1, -1, 1])
    beside(lambda t, *a: t.nn.functional.cosine_embedding_loss(*a), x, y, target)


def test_cosines_of_numbers_of_several_types():
    for kind in ("int8", "float16", "float64"):
        found = [
            library.nn.functional.cosine_similarity(
                library.tensor(12).to(getattr(library, kind)), library.tensor(12.0), -1
            )
            for library in (torch, pytorch)
        ]
        assert float(found[0]) == pytest.approx(float(found[1]))
        assert str(found[0].dtype) == str(found[1].dtype)


def test_entropies_of_no_classes():
    for kind, shape in itertools.product(("mean", "sum", "none"), ((5, 0), (0, 5))):
        found = [
            library.nn.functional.cross_entropy(
                library.ones(shape), library.ones(shape), reduction=kind
            ).numpy()
            for library in (torch, pytorch)
        ]
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    "name", ["softplus", "softshrink", "logsigmoid", "hardshrink", "gelu"]
)
def test_results_that_are_written_elsewhere(name):
    x, out = torch.tensor([-1.0, 0.25, 2.0]), torch.empty(0)
    function = getattr(torch.nn.functional, name)
    assert function(x, out=out) is out
    assert out.tolist() == function(x).tolist()
    half = x.half()
    assert function(half, out=torch.empty(0).half()).dtype is torch.float16


@pytest.mark.parametrize("name", ["celu_", "hardtanh_", "selu_", "rrelu_"])
def test_functions_that_write_in_place(name):
    function = getattr(torch.nn.functional, name)
    x = torch.tensor([-2.0, 0.5, 3.0])
    want = getattr(torch.nn.functional, name[:-1])(x)
    assert function(x) is x
    assert x.tolist() == want.tolist()


INNER = {
    "convolution": lambda t, x, w: t.convolution(
        x, w, None, [1], [0], [1], False, [0], 1
    ),
    "its transpose": lambda t, x, w: t.convolution(
        x.transpose(0, 1), w, None, [2], [1], [1], True, [1], 1
    ),
    "kl_div": lambda t, x, w: t.kl_div(x, w.exp(), 2, log_target=False),
    "poisson": lambda t, x, w: t.poisson_nll_loss(x, w.exp(), True, False, 1e-8, 0),
    "ranking": lambda t, x, w: t.margin_ranking_loss(x, w, x.detach().sign(), 0.5),
    "triplets": lambda t, x, w: t.triplet_margin_loss(x[0], w[0], -w[0], reduction=0),
    "bce": lambda t, x, w: t.binary_cross_entropy_with_logits(x, w.sigmoid()),
    "pad": lambda t, x, w: t.constant_pad_nd(x * w, [1, 2], 3.0),
    "feature_dropout": lambda t, x, w: t.feature_dropout(x * w, 0.5, False),
    "adaptive_max_pool1d": lambda t, x, w: t.adaptive_max_pool1d(x * w, 2)[0],
    "gru_cell": lambda t, x, w: t.gru_cell(
        x[0], x[0, :, :2], w.reshape(6, 3)[[*range(6)]], w.reshape(6, 3)[:, :2]
    ),
    "lstm_cell": lambda t, x, w: t.lstm_cell(
        x[0, :, :1],
        (x[0, :, 1:2], x[0, :, 2:]),
        w.reshape(18, 1)[:4],
        w.reshape(18, 1)[4:8],
    )[1],
}


@pytest.mark.parametrize("name", INNER)
def test_functions_of_layers_by_their_names_in_torch(name):
    x, w = RNG.normal(size=(2, 2, 3, 3))
    beside(INNER[name], x, w)


def test_the_moments_of_a_batch_and_those_that_follow():
    x = RNG.normal(size=(4, 3, 2))
    found = []
    for library in (torch, pytorch):
        mean, variance = library.zeros(3).double(), library.ones(3).double()
        rows = library.batch_norm_update_stats(library.tensor(x), mean, variance, 0.1)
        found.append([*rows, mean, variance])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_a_module_is_moved_by_any_form_of_its_arguments():
    forms = [
        (("cpu", torch.float64), {}),
        ((torch.float64,), {}),
        ((torch.float64, True), {}),
        ((torch.ones(1).double(),), {}),
        ((), {"dtype": torch.float64, "non_blocking": True}),
        (("cpu",), {"dtype": torch.float64}),
    ]
    for args, options in forms:
        layer = torch.nn.Linear(2, 3).to(*args, **options)
        assert layer.weight.dtype is torch.float64
    for kind, ndim in itertools.product((torch.float32, torch.float64), (1, 2)):
        assert torch.nn.Linear(2, 3).to(torch.ones([1] * ndim, dtype=kind))


def test_a_buffer_of_nothing_is_empty():
    model = torch.nn.Module()
    model.register_buffer("x", torch.ones(2))
    model.x = torch.nn.Buffer(None)
    assert model.x.shape == (0,)


@pytest.mark.parametrize("of", ["both", "first"])
def test_cosines_of_vectors_of_length_0_have_a_gradient(of):
    found = []
    for library in (pytorch, torch):
        x = library.zeros(2, 3, dtype=library.float64, requires_grad=True)
        y = x * 2 if of == "both" else library.arange(6.0).view(2, 3).double()
        z = library.nn.functional.cosine_similarity(x, y)
        (gradient,) = library.autograd.grad(z.sum(), x)
        found.append((z.tolist(), gradient.tolist()))
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other)


@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False, "bidirectional": True}, {"num_layers": 2, "proj_size": 1}],
)
def test_weights_of_recurrent_layers_go_by_their_names(options):
    ours, theirs = (library.nn.LSTM(3, 2, **options) for library in (torch, pytorch))
    assert ours._flat_weights_names == theirs._flat_weights_names
    assert ours._all_weights == theirs._all_weights
    found = [w for name in ours._flat_weights_names for w in [getattr(ours, name)]]
    assert all(a is b for a, b in zip(found, ours._flat_weights, strict=True))


@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
def test_squares_across_channels_as_an_older_layer_has_them(size, channels):
    x = RNG.normal(size=(2, channels, 3, 2))
    options = size, 0.5, 0.6, 2.0
    ours, theirs = (
        library.nn.CrossMapLRN2d(*options)(library.tensor(x)).numpy()
        for library in (torch, pytorch)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    y = torch.tensor(x, requires_grad=True)
    assert torch.autograd.gradcheck(torch.nn.CrossMapLRN2d(*options), y)


@pytest.mark.parametrize("library", [torch, pytorch], ids=["ours", "pytorch"])
def test_layers_of_a_transformer_ask_attention_by_names(library):
    asked = []

    class Mine(library.nn.Module):
        batch_first = True

        def forward(self, q, k, v, *, attn_mask, key_padding_mask, need_weights, **_):
            asked.append((attn_mask, key_padding_mask, need_weights))
            return q + v, None

    encoder = library.nn.TransformerEncoderLayer(4, 2, 8)
    decoder = library.nn.TransformerDecoderLayer(4, 2, 8)
    encoder.self_attn = decoder.self_attn = decoder.multihead_attn = Mine()
    x = library.ones(2, 3, 4)
    decoder(encoder(x), x)
    assert asked == [(None, None, False)] * 3


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("library", [torch, pytorch], ids=["ours", "pytorch"])
def test_a_transformer_and_cells_begin_by_methods_that_can_be_overridden(library):
    begun = []

    class Mine(library.nn.Transformer):
        def _reset_parameters(self):
            begun.append(len(list(self.parameters())))

    class Cell(library.nn.RNNCellBase):
        def __init__(self):
            super().__init__(2, 3, True, 4)

    model = Mine(4, 2, 1, 1, 8)
    assert begun == [len(list(model.parameters()))]
    shapes = [tuple(p.shape) for p in Cell().parameters()]
    assert shapes == [(12, 2), (12, 3), (12,), (12,)]
