"""Products by layers of few rows, however they are cut into parts."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines
from lantern.torch.nn import products

F = torch.nn.functional
ROWS = [1, 2, 3, 4, 8, 15, 32, 33, 64, 65]


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def near(found, right):
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-5 * np.abs(right).max())


@pytest.mark.parametrize("on", [True, False], ids=["engine", "none"])
@pytest.mark.parametrize("m", [256, 510, 512, 1023])
@pytest.mark.parametrize("n", ROWS)
class TestProduct:
    def test_equals_double_precision(self, n, m, on):
        x, weight = drawn(n, 259), drawn(m, 259, seed=1)
        single = x.astype("f"), weight.astype("f")
        with engines.switched(on):
            near(products.product(*single), x @ weight.T)
            near(products.product(x, weight), x @ weight.T)

    def test_takes_a_part_of_a_weight(self, n, m, on):
        x, weight = drawn(n, 259), drawn(2 * m, 300, seed=1)[::2, :259]
        with engines.switched(on):
            near(products.product(x, weight), x @ weight.T)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "none"])
@pytest.mark.parametrize("hidden", [130, 256])
@pytest.mark.parametrize("n", ROWS)
def test_a_cell_of_few_rows_equals_one_row_at_a_time(n, hidden, bias):
    cell = torch.nn.LSTMCell(33, hidden, bias=bias)
    x, h, c = (torch.tensor(drawn(n, k, seed=k)).float() for k in (33, hidden, hidden))
    with torch.no_grad():
        found = cell(x, (h, c))
        rows = [cell(x[i : i + 1], (h[i : i + 1], c[i : i + 1])) for i in range(n)]
        for z, parts in zip(found, zip(*rows, strict=True), strict=True):
            near(z.numpy(), torch.cat(parts).numpy())
