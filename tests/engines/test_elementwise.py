import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines

F = torch.nn.functional
FUNCTIONS = {
    "gelu": F.gelu,
    "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu,
    "leaky_relu, flat": lambda x: F.leaky_relu(x, 0.0),
    "leaky_relu, steep": lambda x: F.leaky_relu(x, -1.5),
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
}


@pytest.mark.parametrize("on", [True, False], ids=["engine", "general"])
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
class TestFunctions:
    @pytest.mark.parametrize("axes", [(0, 1, 2, 3), (3, 2, 1, 0), (0, 3, 1, 2)])
    def test_equals_double_precision_there_and_back(self, axes, f, on):
        array = np.linspace(-12, 12, 5280).reshape(4, 5, 24, 11)

        def there_and_back(array):
            x = torch.from_numpy(array.transpose(axes)).requires_grad_()
            z = f(x)
            assert z.stride() == x.stride()
            (z * z).sum().backward()
            return z.detach().numpy(), x.grad.numpy()

        right = there_and_back(array)
        with engines.switched(on):
            found = there_and_back(array.astype("f"))
        for a, b in zip(found, right, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, b, atol=2e-6 * abs(b).max())

    def test_second_derivatives_and_forward_mode(self, f, on):
        array = np.linspace(-2.9, 2.9, 5000)

        def derivatives(array):
            x = torch.tensor(array, requires_grad=True)
            (first,) = torch.autograd.grad((f(x) ** 2).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad((first * first).sum(), x)
            pushed = torch.func.jvp(f, (x.detach(),), (x.detach(),))[1]
            return second.numpy(), pushed.numpy()

        right = derivatives(array)
        with engines.switched(on):
            found = derivatives(array.astype("f"))
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5 * abs(b).max())

    def test_what_is_no_number_stays_so(self, f, on):
        with engines.switched(on):
            z = f(torch.full((5000,), torch.nan))
        assert z.isnan().all()


@pytest.mark.parametrize("on", [True, False], ids=["engine", "general"])
@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (2, 1, 0)])
@pytest.mark.parametrize("f", [F.relu, lambda x: torch.relu_(x * 1)])
def test_a_large_relu(f, axes, on):
    array, seed = np.random.default_rng(3).standard_normal((2, 60, 50, 70)).astype("f")
    array[0, 0, :3] = np.nan, np.inf, -np.inf
    x, z_bar = (torch.from_numpy(a.transpose(axes)) for a in (array, seed))
    with engines.switched(on):
        z = f(x.requires_grad_())
        z.backward(z_bar)
    x, found = x.detach().numpy(), x.grad.numpy()
    np.testing.assert_array_equal(z.detach().numpy(), np.maximum(x, 0))
    np.testing.assert_array_equal(found, np.where(x <= 0, 0, z_bar.numpy()))
