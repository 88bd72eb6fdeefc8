import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines

F = torch.nn.functional
# A function of an array, a weight and a bias; shapes of the array and of the weight.
CASES = {
    "batch": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (4, 3, 5, 6), 3),
    "batch, 1d": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (9, 4), 4),
    "batch, 3d": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        (2, 8, 3, 2, 4),
        8,
    ),
    "batch, six axes": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        (2, 3, 2, 2, 2, 2),
        3,
    ),
    "layer": (lambda x, w, b: F.layer_norm(x, (6,), w, b), (4, 5, 6), 6),
    "layer of two axes": (
        lambda x, w, b: F.layer_norm(x, (5, 6), w, b),
        (4, 5, 6),
        (5, 6),
    ),
    "group": (lambda x, w, b: F.group_norm(x, 2, w, b), (3, 8, 5, 4), 8),
    "batch, large images": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        (40, 3, 24, 25),
        3,
    ),
    "group, large images": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        (40, 4, 24, 25),
        4,
    ),
    "group of rows": (lambda x, w, b: F.group_norm(x, 4, w, b), (3, 64), 64),
    "instance": (
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        (3, 4, 5, 4),
        4,
    ),
}
ORDERS = {
    "first": np.ascontiguousarray,
    "last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1),
}


def operands(case):
    rng = np.random.default_rng(11)
    _, shape, parameters = CASES[case]
    return [rng.standard_normal(s) + 0.5 for s in (shape, parameters, parameters)]


def there_and_back(function, arrays, order):
    x = torch.from_numpy(ORDERS[order](arrays[0])).requires_grad_()
    rest = [torch.tensor(a, requires_grad=True) for a in arrays[1:]]
    z = function(x, *rest, *[None] * (2 - len(rest)))
    factors = torch.tensor(np.cos(np.arange(z.numel())).reshape(z.shape), dtype=z.dtype)
    (z * z * factors).sum().backward()
    return [z.detach().numpy(), x.grad.numpy(), *(p.grad.numpy() for p in rest)]


def twice(function, arrays):
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    total = (function(*tensors) ** 3).sum()
    first = torch.autograd.grad(total, tensors, create_graph=True)
    second = torch.autograd.grad(sum((g * g).sum() for g in first), tensors)
    plain = tuple(x.detach() for x in tensors)
    return [
        *(g.numpy() for g in second),
        torch.func.jvp(function, plain, plain)[1].numpy(),
    ]


def check(found, right, close):
    for a, b in zip(found, right, strict=True):
        assert (a.dtype, a.shape) == (np.float32, b.shape)
        np.testing.assert_allclose(a, b, rtol=0, atol=close * max(1, abs(b).max()))


@pytest.mark.parametrize("on", [True, False], ids=["engine", "general"])
class TestNormalisation:
    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("count", [1, 2, 3], ids=["plain", "scaled", "shifted"])
    @pytest.mark.parametrize("case", CASES)
    def test_equals_double_precision_there_and_back(self, case, count, order, on):
        function, arrays = CASES[case][0], operands(case)[:count]
        right = there_and_back(function, arrays, order)
        with engines.switched(on):
            found = there_and_back(function, [a.astype("f") for a in arrays], order)
        check(found, right, 1e-4)

    @pytest.mark.parametrize("case", ["batch", "layer", "group"])
    def test_second_derivatives_and_forward_mode(self, case, on):
        function, arrays = CASES[case][0], operands(case)
        right = twice(function, arrays)
        with engines.switched(on):
            check(twice(function, [a.astype("f") for a in arrays]), right, 1e-3)

    @pytest.mark.parametrize("case", ["batch", "group", "instance", "layer"])
    def test_a_large_mean(self, case, on):
        function, (x, w, b) = CASES[case][0], operands(case)
        arrays = [a.astype("f") for a in (x + 1000, w, b)]
        right = there_and_back(function, [a.astype("d") for a in arrays], "first")
        with engines.switched(on):
            found = there_and_back(function, arrays, "first")
        check(found, right, 2e-3)

    def test_running_moments(self, on):
        x = torch.tensor(np.random.default_rng(2).random((8, 3, 4, 4), np.float32))
        layers = [torch.nn.BatchNorm2d(3) for _ in range(2)]
        with engines.switched(on):
            layers[0](x)
        layers[1].double()(x.double())
        for name in ("running_mean", "running_var"):
            a, b = (getattr(layer, name).numpy() for layer in layers)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    def test_a_weight_of_another_length_is_not_read_beyond_its_end(self, on):
        with engines.switched(on), pytest.raises((RuntimeError, ValueError)):
            F.layer_norm(torch.ones(3, 8), (8,), torch.ones(4), torch.ones(8))

    def test_numpy_keeps_the_buffers_that_it_has(self, on):
        before = np.getbufsize()
        with engines.switched(on):
            case = "group, large images"
            there_and_back(CASES[case][0], operands(case), "first")
        assert np.getbufsize() == before


@pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)
def test_an_array_that_is_written_to_before_the_way_back_is_noticed():
    x = torch.ones(2, 3, 4, 4, requires_grad=True) * 2
    z = F.batch_norm(x, None, None, training=True)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.sum().backward()


@pytest.mark.parametrize("weight", [1, 0])
@pytest.mark.parametrize("case", ["batch, large images", "group, large images"])
@pytest.mark.parametrize("threads", [1, 2])
def test_weights_of_zero_and_two_threads(case, threads, weight):
    function, (x, w, b) = CASES[case][0], operands(case)
    w[1] *= weight
    right = there_and_back(function, [x, w, b], "first")
    engines.set_threads(threads)
    try:
        found = there_and_back(function, [a.astype("f") for a in (x, w, b)], "first")
    finally:
        engines.set_threads(0)
    check(found, right, 1e-4)
