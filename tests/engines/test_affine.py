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
