"""What BLAS adds to an array in place is what NumPy would, rounded once."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.tensor.backend import blas

random = np.random.default_rng(0)
here = blas._axpy("f") is not None
needs_blas = pytest.mark.skipif(not here, reason="NumPy's BLAS has no such name")


@needs_blas
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (70001,)])
def test_a_multiple_is_added(shape, dtype):
    before, x = (random.standard_normal(shape).astype(dtype) for _ in "ab")
    product = np.longdouble(np.asarray(0.1, dtype)) * x
    function, *arguments = blas.adding_multiple(total := before.copy(), x, 0.1)
    function(*arguments)
    # A processor without fused multiplications rounds the product, too.
    bound = np.finfo(dtype).eps * (abs(before) + abs(product))
    assert (abs(total - (before + product)) <= bound).all()


@needs_blas
def test_what_is_not_finite_stays_so():
    total, x = np.ones(4, "f"), np.array([np.inf, -np.inf, np.nan, 1], "f")
    function, *arguments = blas.adding_multiple(total, x, -2.0)
    function(*arguments)
    np.testing.assert_array_equal(total, [-np.inf, np.inf, np.nan, -1])


_READ_ONLY = np.ones(4, "f")
_READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("total", "x", "factor"),
    [
        (np.ones(4, "f"), np.ones(4), 1.0),
        (np.ones(4, "D"), np.ones(4, "D"), 1.0),
        (np.ones(4, "i"), np.ones(4, "i"), 1.0),
        (np.ones((2, 2), "f"), np.ones((2, 2), "f").T, 1.0),
        (np.ones(8, "f")[::2], np.ones(4, "f"), 1.0),
        (np.ones((2, 2), "f"), np.ones(2, "f"), 1.0),
        (np.ones(0, "f"), np.ones(0, "f"), 1.0),
        (np.ones(4, "f"), np.full(4, np.inf, "f"), 0.0),
        (_READ_ONLY, np.ones(4, "f"), 1.0),
    ],
    ids="types complex integers order steps lengths none zero read-only".split(),
)
def test_the_rest_is_numpys(total, x, factor):
    if x.shape == (2, 2):
        assert x.flags.f_contiguous
    assert blas.adding_multiple(total, x, factor) is None


@pytest.mark.parametrize(
    "options", [{}, {"momentum": 0.9}], ids="plain momentum".split()
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_step_of_large_arrays_is_as_of_small_ones(options, order):
    start, slope = (random.standard_normal((300, 200)) for _ in "ab")
    results = []
    for size in (1, 300):
        rows = [
            torch.tensor(start[i : i + size].copy(order), requires_grad=True)
            for i in range(0, 300, size)
        ]
        optimizer = torch.optim.SGD(rows, lr=0.1, **options)
        for _ in range(3):
            for i, row in enumerate(rows):
                part = slope[i * size : (i + 1) * size]
                row.grad = torch.tensor(part.copy(order)) * (1 + row.detach().square())
            optimizer.step()
        results.append(torch.cat(rows).detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-13, atol=1e-15)


def test_a_step_of_no_length_keeps_what_is_not_a_number():
    p = torch.ones(70000, requires_grad=True)
    p.grad = torch.full((70000,), torch.inf)
    with np.errstate(invalid="ignore"):
        torch.optim.SGD([p], lr=0.0).step()
    assert bool(p.isnan().all())


@needs_blas
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("sizes", [(1, 3, 5), (1, 1, 1), (1, 33, 70), (4, 3, 5)])
def test_a_product_is_added(sizes, dtype):
    n, k, m = sizes
    draw = random.standard_normal
    before, x, y = (draw(s).astype(dtype) for s in ((k, m), (n, k), (n, m)))
    function, *arguments = blas.adding_product(total := before.copy(), x, y, -0.5)
    function(*arguments)
    wanted = before - 0.5 * (x.astype("g").T @ y)
    bound = 4 * n * np.finfo(dtype).eps * (abs(before) + abs(x).T @ abs(y))
    assert (abs(total - wanted) <= bound).all()
    assert len(arguments) == (10 if n == 1 else 14)


@needs_blas
def test_a_product_of_rows_keeps_what_is_not_finite():
    x, y = np.array([[0.0, 1.0, np.inf]], "f"), np.array([[np.nan, 0.0, 2.0]], "f")
    function, *arguments = blas.adding_product(total := np.ones((3, 3), "f"), x, y, 1.0)
    function(*arguments)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(total, 1 + x.T * y)
