import ml_dtypes
import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines
from lantern.engines import halves

F = torch.nn.functional
BRAIN = np.dtype(ml_dtypes.bfloat16)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(BRAIN)


def tensor(x):
    return torch.tensor(x.astype("f")).to(torch.bfloat16)


here = halves.product(drawn(64, 64), drawn(64, 64)) is not None
needs_engine = pytest.mark.skipif(
    not here, reason="no oneDNN, or a processor without bf16"
)

# How a matrix lies in memory.
ORDERS = {
    "rows": np.ascontiguousarray,
    "columns": lambda x: np.ascontiguousarray(x.T).T,
    "part of rows": lambda x: np.concatenate([x, x], 1)[:, : x.shape[1]],
    "part of columns": lambda x: np.concatenate([x.T, x.T], 1)[:, : len(x)].T,
}
SHAPES = [(130, 129, 127), (1, 300, 301), (301, 300, 1), (300, 1, 301), (2, 300, 301)]


def near(found, right, size):
    """Rounded once: half of a last digit, and what sums in float32 are off."""
    assert found.dtype == BRAIN
    bound = np.abs(right) * 2.0**-8 + 1e-5 * size
    assert (np.abs(found.astype(float) - right) <= bound).all()


@needs_engine
class TestProduct:
    @pytest.mark.parametrize("one", ORDERS)
    @pytest.mark.parametrize("other", ORDERS)
    @pytest.mark.parametrize("with_bias", [False, True])
    @pytest.mark.parametrize(("n", "k", "m"), SHAPES)
    def test_equals_double_precision(self, n, k, m, with_bias, one, other):
        x, y = ORDERS[one](drawn(n, k)), ORDERS[other](drawn(k, m, seed=1))
        bias = drawn(m, seed=2) if with_bias else None
        right = x.astype(float) @ y.astype(float)
        found = halves.product(x, y, bias)
        near(found, right + bias.astype(float) if with_bias else right, k)

    @pytest.mark.parametrize(
        ("x", "y", "bias"),
        [
            (drawn(130, 129).astype("f"), drawn(129, 127).astype("f"), None),
            (drawn(130, 129).astype("e"), drawn(129, 127).astype("e"), None),
            (drawn(130, 129), drawn(129, 127).astype("f"), None),
            (drawn(130, 258)[:, ::2], drawn(129, 127), None),
            (drawn(130, 129)[::-1], drawn(129, 127), None),
            (drawn(32, 32), drawn(32, 64), None),  # 2 ** 16 products, no more
            (drawn(2, 130, 129), drawn(129, 127), None),
            (drawn(130, 129), drawn(128, 127), None),
            (drawn(130, 129), drawn(129, 127), drawn(127).astype("f")),
            (drawn(130, 129), drawn(129, 127), drawn(1)),
        ],
        ids="single float16 mixed apart backwards few three unlike wide one".split(),
    )
    def test_leaves_the_rest(self, x, y, bias):
        assert halves.product(x, y, bias) is None

    def test_what_is_not_finite_stays_so(self):
        x, y = drawn(130, 129), drawn(129, 127)
        x[3, 4], y[5, 6], y[4, 7] = np.nan, np.inf, 0
        with np.errstate(invalid="ignore"):
            right = x.astype("f") @ y.astype("f")
        found = halves.product(x, y)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(right))
        np.testing.assert_array_equal(np.isposinf(found), np.isposinf(right))

    def test_layers_ask_it_there_and_back(self, monkeypatch):
        layer = torch.nn.Linear(256, 192).to(torch.bfloat16)
        x, asked, product = tensor(drawn(64, 256)), [], halves.product

        def noted(*operands):
            asked.append(product(*operands))
            return asked[-1]

        monkeypatch.setattr(halves, "product", noted)
        (layer(x.requires_grad_()) ** 2).sum().backward()
        assert len(asked) == 3
        assert all(z is not None for z in asked)


def derived(on, *shape):
    """A layer's result with its first and second derivatives."""
    x, w, b = (
        tensor(drawn(*s, seed=i)).requires_grad_()
        for i, s in enumerate([shape, (90, shape[-1]), (90,)])
    )
    with engines.switched(on):
        z = F.linear(x, w, b)
        first = torch.autograd.grad((z * z).sum(), (x, w, b), create_graph=True)
        second = torch.autograd.grad(sum((g * g).sum() for g in first), (x, w))
    return [z, *first, *second]


@needs_engine
class TestLayer:
    @pytest.mark.parametrize("shape", [(300, 70), (2, 30, 70), (2, 3, 10, 70)])
    def test_derivatives_are_those_without_it(self, shape):
        for mine, other in zip(
            derived(True, *shape), derived(False, *shape), strict=True
        ):
            assert mine.dtype is torch.bfloat16
            scale = float(other.float().abs().max())
            assert (mine.float() - other.float()).abs().max() <= scale * 2**-7

    def test_mapped_over_examples(self):
        w, x = tensor(drawn(90, 70)), tensor(drawn(3, 40, 70))

        def loss(w, x):
            return (F.linear(x, w).float() ** 2).sum()

        found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x)
        for each, part in zip(found, x, strict=True):
            right = torch.func.grad(loss)(w, part)
            scale = float(right.float().abs().max())
            assert (each.float() - right.float()).abs().max() <= scale * 2**-7
