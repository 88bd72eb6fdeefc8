import numpy as np
import pytest

from lantern import engines
from lantern.engines import affine

pytestmark = pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)


def drawn(*shape):
    rng = np.random.default_rng(5)
    return rng.standard_normal(shape).astype("f")


class TestRows:
    @pytest.mark.parametrize("shape", [(1, 1 << 14), (1 << 14, 1), (37, 911)])
    def test_scaled_and_shifted(self, shape):
        x, scale, shift = drawn(*shape), drawn(shape[0]), drawn(shape[0])[::-1]
        right = x * scale[:, None] + shift[:, None]
        found = affine.scaled(x, scale, shift)
        np.testing.assert_allclose(found, right, rtol=0, atol=2e-6)

    def test_two_added_up(self):
        x, y = drawn(37, 911), drawn(37, 911)[::-1].copy()
        a, b, c = drawn(3, 37)
        right = x * a[:, None] + y * b[:, None] + c[:, None]
        found = affine.scaled_both(x, a, y, b, c)
        np.testing.assert_allclose(found, right, rtol=0, atol=4e-6)

    def test_two_are_not_added_up_where_a_scale_is_0(self):
        x, (a, b, c) = drawn(37, 911), drawn(3, 37)
        a[5] = 0
        assert affine.scaled_both(x, a, x, b, c) is None

    def test_scales_of_all_sizes(self):
        powers = np.float32(10) ** np.arange(-12, 13, 3, dtype="f")
        a, b = (p.reshape(-1) for p in np.meshgrid(powers, powers))
        x, y, c = drawn(81, 911), drawn(81, 911)[::-1].copy(), np.zeros_like(a)
        terms = np.stack([x.astype("d") * a[:, None], y.astype("d") * b[:, None]])
        error = affine.scaled_both(x, a, y, b, c) - terms.sum(axis=0)
        assert (abs(error) <= 4e-7 * abs(terms).max(axis=0)).all()

    @pytest.mark.parametrize(
        "x", [drawn(37, 911).T, drawn(37, 911).astype("d"), drawn(3, 9)]
    )
    def test_other_arrays_are_not_for_it(self, x):
        numbers = np.ones(len(x), x.dtype)
        assert affine.scaled(x, numbers, numbers) is None

    def test_numbers_of_other_rows_are_not_read(self):
        x = drawn(37, 911)
        assert affine.scaled(x, drawn(36), drawn(37)) is None
        with engines.switched(False):
            assert affine.scaled(x, drawn(37), drawn(37)) is None
