"""Shares by an engine: as in double precision, and as without it where it has none."""

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern import engines
from lantern.engines import softmax as engine

ROWS, WIDTH = 70, 251  # more elements than the fewest that it takes, there and back
assert ROWS * WIDTH >= engine.LEAST_BACK


def draws(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("on", [True, False], ids=["engine", "general"])
class TestSoftmax:
    @pytest.mark.parametrize(
        ("shape", "axis"),
        [
            ((ROWS, WIDTH), -1),
            ((2, 7, 5, WIDTH), 3),
            ((20000,), 0),
            ((3, WIDTH, 5, 7), 1),
            ((ROWS, WIDTH, 2), -2),
            ((8, 3, 700), 1),
        ],
    )
    @pytest.mark.parametrize("scale", [1, 100])
    def test_equals_double_precision_there_and_back(self, shape, axis, scale, on):
        x, z_bar = scale * draws(0, *shape), draws(1, *shape)

        def there_and_back(x, z_bar):
            z, pullback = lantern.vjp(lambda x: lantern.softmax(x, axis), x)
            return z, *pullback(z_bar), *pullback(2 * z_bar)

        right = there_and_back(x, z_bar)
        with engines.switched(on):
            found = there_and_back(x.astype("f"), z_bar.astype("f"))
        for a, b in zip(found, right, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, b, atol=1e-5)  # of numbers up to 10

    def test_second_derivatives_and_forward_mode(self, on):
        x, x_dot = draws(0, ROWS, WIDTH), draws(1, ROWS, WIDTH)

        def derivatives(x, x_dot):
            def shares(x):
                return (lantern.softmax(x) ** 2 * np.arange(WIDTH)).sum()

            slope = lantern.jvp(lantern.softmax, (x,), (x_dot,))[1]
            first, pullback = lantern.vjp(lantern.grad(shares), x)
            return slope, first, *pullback(x_dot)

        right = derivatives(x, x_dot)
        with engines.switched(on):
            found = derivatives(x.astype("f"), x_dot.astype("f"))
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5 * abs(b).max())

    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
    def test_numbers_that_are_none(self, odd, on):
        x = draws(0, ROWS, WIDTH).astype("f")
        x[3, 5], x[4] = odd, -np.inf
        with engines.switched(on), np.errstate(invalid="ignore"):
            found = torch.tensor(x).softmax(-1).numpy()
            wanted = lantern.softmax(x.astype(float))
        np.testing.assert_allclose(found, wanted, atol=1e-6)

    def test_other_axes_and_orders(self, on):
        x = draws(0, ROWS, WIDTH)
        with engines.switched(on):
            for array in (x.astype("f"), np.asfortranarray(x.astype("f"))):
                for axis in (0, 1, -1):
                    np.testing.assert_allclose(
                        lantern.softmax(array, axis=axis),
                        lantern.softmax(x, axis=axis),
                        atol=1e-6,
                    )
