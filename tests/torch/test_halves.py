"""Float16 adds up in single precision: every sum against the same in double precision.

The bound is a few units of float16's last place; a sum that is rounded at every step is
off by hundreds.
"""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.torch.functions.table import names_with
from lantern.torch.nn.functional import adapted

F = torch.nn.functional

# a: many rows, b: many columns, v, w: long, u: near 1, i: images, q: a small matrix,
# y: classes.
SUMS = """
a.sum(); a.sum(0); b.sum(1); b.sum((0, 1)); a.mean(); a.mean(0); b.mean(-1)
torch.nansum(a, 0); torch.nanmean(a, 0); a.var(); a.var(0); b.var(1, correction=0)
a.std(0); torch.var_mean(a, 0); torch.std_mean(b, 1); a.norm(); a.norm(1, 0)
b.norm(3, 1); torch.dist(a, b.T); v.cumsum(0); b.cumsum(1); u.prod(); u.cumprod(0)
v.logcumsumexp(0); v.logsumexp(0); a.logsumexp(0)
v.softmax(0); a.softmax(0); v.log_softmax(0); F.softmin(v, 0); v.cummax(0); v.cummin(0)
torch.trapezoid(v); torch.trapz(v); torch.cumulative_trapezoid(v); a.renorm(2, 1, 3.0)
torch.corrcoef(b); torch.cov(b); v @ w; b @ a; v.dot(w); torch.mv(b, v); b.mm(a)
torch.vdot(v, w); torch.inner(b, b); torch.tensordot(b, a, 1); v.tile(9).reshape(-1)
torch.einsum('ij,jk->ik', b, a); torch.trace(q); torch.chain_matmul(q, b, a)
torch.addmm(q, b, a); torch.addmv(v[:3], b, v); torch.addr(q, v[:3], w[:3])
torch.baddbmm(q, b[None], a[None]); torch.addbmm(q, b[None], a[None]); v.repeat(9, 1)
torch.addcmul(v, v, w); torch.addcdiv(v, v, w); torch.lerp(v, w, 0.3); v.sinc()
torch.kron(q, q); torch.cdist(b, b + 1); q.matrix_power(3); v.erf(); v.erfc()
(v * 0.125).erfinv()
v.lgamma(); v.mvlgamma(1); torch.igamma(v, w).detach(); torch.igammac(v, w).detach()
torch.xlogy(v, w); torch.linalg.vecdot(v, w); torch.linalg.vector_norm(a, 2, 0)
torch.linalg.norm(v); torch.linalg.matrix_norm(a); torch.linalg.multi_dot([q, b, a])
torch.special.erfcx(v); torch.special.i1e(v); torch.special.xlog1py(v, w)
v + q.sum(); v * q[0, 0]; a * q[0]; a / q[0]; q[0].expand(1200, 3) * 1; v[:1] * v
F.layer_norm(v, (1200,)); F.layer_norm(b, (1200,), v, w); F.rms_norm(b, (1200,), v)
F.batch_norm(a, None, None, q[0], q[1], True); F.group_norm(i, 1, q[0], q[1])
F.instance_norm(i); F.local_response_norm(i, 2); F.linear(b, a.T, q[0]); F.gelu(v)
F.bilinear(a, a, q.expand(2, 3, 3)); F.kl_div(v, w)
F.conv1d(b, a.T[:, :, None][:, :3] * 1); F.conv2d(i, q.expand(3, 3, 3, 3), q[0])
F.conv3d(i[None], q.expand(3, 2, 1, 3, 3), q[0]); F.conv1d(b, q[None] * 1, q[0, :1])
F.conv_transpose1d(b, q[:, :, None], q[0]); F.conv_transpose2d(i, q.expand(3, 3, 3, 3))
F.conv_transpose3d(i[None], q.expand(2, 1, 1, 3, 3)); F.cosine_similarity(v, w, 0)
F.conv_tbc(a[:, None], q[None].expand(9, 3, 3), q[0])
F.conv_tbc(b[None], b.T[None, :, :2], v[:2])
F.fold(a[None, :, :1].expand(4, 1200, 4).reshape(4, 1200, 4)[:, :4], (3, 3), 2)
F.cross_entropy(a, y); F.cross_entropy(a, y, q[0].abs()); F.nll_loss(a, y)
F.nll_loss(a, y, q[0].abs()); F.normalize(b); F.normalize(a, dim=0)
F.adaptive_avg_pool1d(b, 1)
F.adaptive_avg_pool2d(i, 2); F.adaptive_avg_pool3d(i[None], 1); F.avg_pool1d(b, 600)
F.avg_pool2d(i, 20); F.avg_pool3d(i[None], (2, 20, 20)); F.lp_pool1d(b, 2, 600)
F.lp_pool2d(i, 2, 20); F.lp_pool3d(i[None], 2, (2, 20, 20)); F.tanhshrink(v)
v.sigmoid(); v.tanh(); F.glu(v); F.prelu(v, q[0, :1]); F.softplus(v); F.softshrink(v)
F.interpolate(i, (7, 7), mode='bilinear'); F.interpolate(i, (2, 2), mode='area')
F.upsample(i, (7, 7), mode='bilinear'); F.upsample_bilinear(i, 7)
F.grid_sample(i, torch.zeros(2, 50, 50, 2, dtype=v.dtype), align_corners=False)
F.pairwise_distance(b, b + 1); F.pdist(b); F.mse_loss(v, w); F.l1_loss(v, w)
F.smooth_l1_loss(v, w); F.huber_loss(v, w); F.poisson_nll_loss(v, w, reduction='sum')
F.soft_margin_loss(v, w)
torch.gradient(v)[0]; torch.ldexp(v, y); torch.frexp(v)
F.scaled_dot_product_attention(q, a, a); F.embedding_bag(y[None], a)
F.embedding_bag(y[None], a, mode='sum')
"""
EXPRESSIONS = [e.strip() for e in SUMS.replace("\n", ";").split(";") if e.strip()]
STEP = 2.0**-11  # float16's rounding


def inputs(kind):
    """The same numbers, of which float16 has all, in a type."""
    random = np.random.default_rng(0)
    sizes = {
        "a": (1200, 3), "b": (3, 1200), "v": 1200, "w": 1200, "q": (3, 3),
        "i": (2, 3, 40, 40),
    }  # fmt: skip
    made = {
        name: torch.tensor(
            random.uniform(0.5, 2, size).astype(np.float16).astype(kind)
        ).requires_grad_()
        for name, size in sizes.items()
    }
    near_one = (1 + random.integers(-4, 5, 1200) / 1024).astype(kind)
    made["u"] = torch.tensor(near_one).requires_grad_()
    return made | {"y": torch.arange(1200) % 3}


def outcome(source, kind):
    """The results and gradients of an expression of one type."""
    names = inputs(kind)
    z = eval(source, {"torch": torch, "F": F, **names})
    parts = [x for x in (z if isinstance(z, tuple) else (z,)) if x.is_floating_point()]
    assert all(str(x.dtype) == f"torch.{kind}" for x in parts)
    tracked = [x for x in parts if x.requires_grad]
    operands = [x for name, x in names.items() if name != "y"]
    weights = [
        torch.tensor(
            np.array(np.cos(np.arange(x.numel())).reshape(x.shape) + 1.5)
            .astype(np.float16)
            .astype(kind)
        )
        for x in tracked
    ]
    found = (
        torch.autograd.grad(tracked, operands, weights, allow_unused=True)
        if tracked
        else ()
    )
    return [x.detach().numpy() for x in (*parts, *found) if x is not None]


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_adds_up_in_single_precision(source):
    for half, exact in zip(
        outcome(source, "float16"), outcome(source, "float64"), strict=True
    ):
        assert half.shape == exact.shape
        near = np.abs(exact) < 60_000  # float16 ends at 65,504
        size = np.abs(exact) + np.abs(exact[near]).max(initial=1e-3) / 4
        error = np.abs(half.astype(np.float64) - exact) / size
        assert error[near].max(initial=0) < 6 * STEP


def test_every_function_that_adds_up_is_in_the_table():
    for name in {
        *names_with("single"),
        *adapted._ADDING,
        *adapted._NORMALISING,
        *torch.linalg._ADDING,
    }:
        assert any(f"{name}(" in source for source in EXPRESSIONS), name


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("torch.ones(4000).half().cumsum(0)[-1]", 4000.0),
        ("torch.ones(4000, 2).half().sum(0)[0]", 4000.0),
        ("torch.ones(70_000).half().mean()", 1.0),
        ("torch.full((4000,), 3.0).half().norm()", 189.75),
        ("torch.full((300,), 300.0).half().norm(4)", 1249.0),
        ("torch.arange(2048).half().var()", float("inf")),
        ("torch.arange(2048).half().std()", 591.5),
        ("torch.ones(70_000).sum(dtype=torch.float16)", float("inf")),
        ("torch.ones(70_000).half().sum(dtype=torch.float32)", 70_000.0),
    ],
)
def test_values_are_pytorchs(source, value):
    assert eval(source).item() == value


def test_normalises_large_numbers():
    x = (torch.arange(1024) * 32 % 1024 + 60_000).half()
    z = F.layer_norm(x, (1024,))
    assert z.std().item() == pytest.approx(1, abs=2e-3)
    z = F.batch_norm(x[:, None], None, None, training=True)
    assert z.std().item() == pytest.approx(1, abs=2e-3)


def test_layers_of_halves_with_wider_weights_keep_halves():
    x, one = torch.ones(2, 4).half(), torch.ones(4)
    for z in (
        F.layer_norm(x, (4,), one, one),
        F.rms_norm(x, (4,), one),
        F.batch_norm(x, one * 0, one * 1, one, one),
        F.group_norm(x, 2, one, one),
    ):
        assert z.dtype == torch.float16
    with pytest.raises(RuntimeError, match="same dtype"):
        F.linear(x, torch.ones(3, 4))


def test_a_mean_over_halves_of_a_table_in_a_layer_matches_float32():
    torch.manual_seed(0)
    layer = torch.nn.Linear(2000, 3)
    x = torch.rand(64, 2000)
    half = torch.nn.Linear(2000, 3).half()
    half.load_state_dict(layer.state_dict())
    half(x.half()).sum().backward()
    layer(x).sum().backward()
    np.testing.assert_allclose(half.bias.grad.numpy(), 64)
    np.testing.assert_allclose(
        half.weight.grad.float().numpy(), layer.weight.grad.numpy(), rtol=2e-3
    )


ACTIVATIONS = """celu elu gelu glu hardsigmoid hardswish leaky_relu logsigmoid mish selu
sigmoid silu softplus softshrink tanh tanhshrink""".split()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_rounded_once(name, kind):
    function = getattr(F, name)
    x = (torch.arange(-400, 400) / 50).to(kind).requires_grad_()
    wide = x.detach().float().requires_grad_()
    for z in (function(x), function(wide)):
        z.sum().backward()
    assert torch.equal(function(x), function(wide).to(kind))
    assert torch.equal(x.grad, wide.grad.to(kind))


def test_activations_of_halves_write_in_place():
    x = torch.tensor([-1.0, 2.0]).half()
    assert F.silu(x, inplace=True) is x
    assert torch.equal(x, F.silu(torch.tensor([-1.0, 2.0])).half())


class TestRowsOfATable:
    @pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
    def test_repeated_ones_add_up_in_single_precision(self, kind):
        table = torch.ones(5, 3).to(kind).requires_grad_()
        index = torch.tensor([[1, 4, 4] * 500])
        F.embedding(index, table).sum().backward()
        assert table.grad.dtype is kind
        assert table.grad[:, 0].tolist() == [0, 500, 0, 0, 1000]

    def test_the_table_stays_as_it_is(self, monkeypatch):
        def widened(*args, **options):
            raise AssertionError("the whole table became float32")

        monkeypatch.setattr("lantern.torch.nn.starting.in_single", widened)
        table = torch.randn(50, 3).half()
        assert torch.equal(F.embedding(torch.tensor([4, 7]), table), table[[4, 7]])

    def test_second_derivatives_and_maps(self):
        table, index = torch.randn(9, 3).half(), torch.tensor([[1, 4, 4], [8, 8, 8]])

        def loss(table, index):
            return (F.embedding(index, table).float() ** 2).sum()

        found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(table, index)
        for each, row in zip(found, index, strict=True):
            right = torch.func.grad(loss)(table.float(), row)
            np.testing.assert_allclose(each.float(), right, rtol=2e-3)
        table.requires_grad_()
        (first,) = torch.autograd.grad(loss(table, index), table, create_graph=True)
        (second,) = torch.autograd.grad(first.float().sum(), table)
        assert second[:, 0].tolist() == [0, 2, 0, 0, 4, 0, 0, 0, 6]
