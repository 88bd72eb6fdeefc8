import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines

F = torch.nn.functional


@pytest.mark.parametrize("on", [True, False], ids=["engine", "general"])
class TestGelu:
    @pytest.mark.parametrize("turned", [False, True])
    def test_equals_double_precision_there_and_back(self, turned, on):
        array = np.linspace(-12, 12, 999).reshape(27, 37)

        def there_and_back(array):
            x = torch.from_numpy(array.T if turned else array).requires_grad_()
            z = F.gelu(x)
            (z * z).sum().backward()
            return z.detach().numpy(), x.grad.numpy()

        right = there_and_back(array)
        with engines.switched(on):
            found = there_and_back(array.astype("f"))
        for a, b in zip(found, right, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, b, atol=2e-6 * abs(b).max())

    def test_second_derivatives_and_forward_mode(self, on):
        array = np.linspace(-3, 3, 50)

        def derivatives(array):
            x = torch.tensor(array, requires_grad=True)
            (first,) = torch.autograd.grad(F.gelu(x).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad((first * first).sum(), x)
            pushed = torch.func.jvp(F.gelu, (x.detach(),), (x.detach(),))[1]
            return second.numpy(), pushed.numpy()

        right = derivatives(array)
        with engines.switched(on):
            found = derivatives(array.astype("f"))
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
