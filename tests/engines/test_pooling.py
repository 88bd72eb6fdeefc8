import math

import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines
from lantern.engines import pooling
from lantern.torch.nn.windows import Form

F = torch.nn.functional
# Shapes, and the options of a pool.
CASES = {
    "2x2": ((2, 3, 8, 6), {"kernel_size": 2}),
    "3x3 in steps": ((2, 16, 9, 8), {"kernel_size": 3, "stride": 2, "padding": 1}),
    "overlapping": ((2, 8, 7, 7), {"kernel_size": 3, "stride": 1}),
    "reaching over": (
        (2, 3, 8, 8),
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    ),
    "uneven": (
        (1, 5, 9, 7),
        {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 0)},
    ),
    "1d": ((2, 3, 11), {"kernel_size": 3, "stride": 2}),
    "3d": ((2, 3, 5, 6, 4), {"kernel_size": 2, "padding": 1}),
    "large": ((1, 2, 40, 40), {"kernel_size": 18, "stride": 5}),
}


def pool(kind, shape):
    return getattr(F, f"{kind}_pool{len(shape) - 2}d")


def there_and_back(function, array, options):
    x = torch.tensor(array, requires_grad=True)
    z = function(x, **options)
    factors = torch.tensor(np.cos(np.arange(z.numel())).reshape(z.shape), dtype=z.dtype)
    (z * z * factors).sum().backward()
    return [z.detach().numpy(), x.grad.numpy()]


@pytest.mark.parametrize("on", [True, False], ids=["engine", "general"])
class TestPools:
    @pytest.mark.parametrize("order", ["first", "last"])
    @pytest.mark.parametrize("kind", ["max", "avg"])
    @pytest.mark.parametrize("name", CASES)
    def test_equals_double_precision_there_and_back(self, name, kind, order, on):
        shape, options = CASES[name]
        array = np.random.default_rng(3).standard_normal(shape)
        if order == "last":
            array = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
        right = there_and_back(pool(kind, shape), array, options)
        with engines.switched(on):
            found = there_and_back(pool(kind, shape), array.astype("f"), options)
        for a, b in zip(found, right, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, b, atol=1e-5)

    def test_the_places_of_the_largest(self, on):
        x = torch.tensor(
            np.random.default_rng(0).standard_normal((2, 3, 9, 8)).astype("f")
        )
        with engines.switched(on):
            z, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
        assert torch.equal(
            x.reshape(2, 3, -1).gather(2, places.reshape(2, 3, -1)), z.reshape(2, 3, -1)
        )

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_what_is_not_finite_is_not_passed_over(self, value, on):
        x = torch.full((1, 1, 4, 4), value, requires_grad=True)
        with engines.switched(on):
            z = F.max_pool2d(x, 3, 1, 1)
            z.sum().backward()
        np.testing.assert_equal(z.detach().numpy(), np.full((1, 1, 4, 4), value))
        assert x.grad.sum() == 16

    def test_the_first_of_equal_elements_receives(self, on):
        x = torch.zeros(1, 1, 4, 4, requires_grad=True)
        with engines.switched(on):
            F.max_pool2d(x, 2).sum().backward()
        assert x.grad[0, 0].tolist() == [[1, 0, 1, 0], [0] * 4] * 2

    def test_second_derivatives_and_forward_mode(self, on):
        array = np.random.default_rng(5).standard_normal((2, 3, 8, 8))

        def derivatives(array):
            x = torch.tensor(array, requires_grad=True)
            f = lambda x: F.max_pool2d(x**2, 3, 2, 1)  # noqa: E731
            (first,) = torch.autograd.grad((f(x) ** 2).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad((first**2).sum(), x)
            return second.numpy(), torch.func.jvp(f, (x.detach(),), (x.detach(),))[
                1
            ].numpy()

        right = derivatives(array)
        with engines.switched(on):
            found = derivatives(array.astype("f"))
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)
def test_the_engine_refuses_what_it_would_read_beyond():
    form = Form((4, 4), (2, 2), (2, 2), ((0, 0),) * 2, (1, 1))
    x = np.ones((1, 1, 4, 4), np.float32)
    z, chosen = pooling.largest(x, form)
    assert z.tolist() == [[[[1, 1], [1, 1]]]]
    assert pooling.spread_largest(z, chosen, form).sum() == 4
    assert pooling.spread_largest(z, chosen[..., :1], form) is None
    assert pooling.spread_largest(z[..., :1], chosen[..., :1], form) is None
    assert pooling.sums(x[..., :3], form) is None
    assert pooling.spread_sums(x, form) is None
    assert pooling.largest(x.astype("d"), form) is None
