import numpy as np
import pytest

from lantern import engines
from lantern.engines import sums

pytestmark = pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)


def drawn(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype("f")


@pytest.mark.parametrize("shape", [(2, 1 << 15), (1 << 15, 2), (97, 911)])
def test_sums_of_rows(shape, two_threads):
    x = drawn(*shape)
    right = x.astype("d").sum(axis=1)
    np.testing.assert_allclose(sums.of_rows(x), right, rtol=0, atol=6e-4)


def test_what_is_not_finite(two_threads):
    x = drawn(97, 911)
    x[3, 5], x[4, 6], x[5, 7:9] = np.nan, np.inf, (np.inf, -np.inf)
    found = sums.of_rows(x)
    with np.errstate(invalid="ignore"):
        right = x.sum(axis=1)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(right))
    np.testing.assert_array_equal(found[3:6], right[3:6])


@pytest.mark.parametrize(
    "x", [drawn(97, 911).T, drawn(97, 911).astype("d"), drawn(3, 9)]
)
def test_other_arrays_are_not_for_it(x, two_threads):
    assert sums.of_rows(x) is None


def test_one_thread_adds_up_by_numpy(two_threads):
    x = drawn(97, 911)
    engines.set_threads(1)
    assert sums.of_rows(x) is None
    engines.set_threads(2)
    with engines.switched(False):
        assert sums.of_rows(x) is None


def test_sums_of_all_rows(two_threads):
    x = drawn(1031, 1027)
    right = x.astype("d").sum(axis=0)
    np.testing.assert_allclose(sums.over_rows(x), right, rtol=0, atol=6e-4)


@pytest.mark.parametrize("x", [drawn(1031, 1027).astype("d"), drawn(97, 911)])
def test_all_rows_of_other_arrays_are_not_for_it(x, two_threads):
    assert sums.over_rows(x) is None


def test_one_thread_adds_up_all_rows_by_numpy(two_threads):
    engines.set_threads(1)
    assert sums.over_rows(drawn(1031, 1027)) is None


@pytest.mark.parametrize("shape", [(1025, 2050), (5000, 421)])
def test_sums_with_products_of_rows(shape, two_threads):
    x, y = drawn(*shape), drawn(*shape)[::-1].copy()
    right = x.astype("d").sum(axis=1)
    products = np.vecdot(x, y)
    found = sums.with_products(x, y)
    np.testing.assert_allclose(found[0], right, rtol=0, atol=6e-4)
    np.testing.assert_array_equal(found[1], products)
    x[3, 5], y[4, 6] = np.nan, np.inf
    found = sums.with_products(x, y)
    assert np.flatnonzero(~np.isfinite(found[0])).tolist() == [3]
    assert np.flatnonzero(~np.isfinite(found[1])).tolist() == [3, 4]


@pytest.mark.parametrize(
    "x", [drawn(1023, 2060), drawn(1024, 1000), drawn(2100, 1000).T]
)
def test_other_rows_and_products_are_not_for_it(x, two_threads):
    assert sums.with_products(x, x) is None
    engines.set_threads(1)
    assert sums.with_products(drawn(1025, 2050), drawn(1025, 2050)) is None
