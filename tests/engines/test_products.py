import math
import threading

import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines
from lantern.engines import products
from lantern.engines.onednn import Primitive

F = torch.nn.functional


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


here = products.product(drawn(128, 128), drawn(128, 129)) is not None
needs_engine = pytest.mark.skipif(not here, reason="no oneDNN here, or no AVX-512")

# How a matrix lies in memory.
ORDERS = {
    "rows": np.ascontiguousarray,
    "columns": lambda x: np.ascontiguousarray(x.T).T,
    "part of rows": lambda x: np.concatenate([x, x], 1)[:, : x.shape[1]],
    "part of columns": lambda x: np.concatenate([x.T, x.T], 1)[:, : len(x)].T,
}
SHAPES = [
    *((130, 129, 127), (2, 1024, 1025), (1025, 2, 1024), (1023, 1027, 1)),
    *((2049, 129, 33), (2049, 33, 129)),
]


def near(found, right, size):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, right, atol=1e-6 * math.sqrt(size) * 8)


def noting(asked, call):
    """A function that also notes what it returns."""

    def noted(*how):
        asked.append(call(*how))
        return asked[-1]

    return noted


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@needs_engine
class TestProduct:
    @pytest.mark.parametrize("one", ORDERS)
    @pytest.mark.parametrize("other", ORDERS)
    @pytest.mark.parametrize(("n", "k", "m"), SHAPES)
    def test_equals_double_precision(self, n, k, m, one, other, threads):
        x, y = ORDERS[one](drawn(n, k)), ORDERS[other](drawn(k, m, seed=1))
        right = x.astype(float) @ y
        near(products.product(x, y), right, k)
        out = np.full((n, m), np.nan, "f")
        assert products.product(x, y, out) is out
        near(out, right, k)

    @pytest.mark.parametrize("one", ORDERS)
    def test_adds(self, one):
        x, y = ORDERS[one](drawn(130, 129)), drawn(129, 127, seed=1)
        total = drawn(130, 127, seed=2)
        right = total + 0.5 * (x.astype(float) @ y)
        function, *arguments = products.adding_product(total, x, y, 0.5)
        function(*arguments)
        near(total, right, 129)

    @pytest.mark.parametrize("one", ["rows", "part of rows"])
    @pytest.mark.parametrize("biased", [True, False], ids=["bias", "none"])
    def test_a_layer_in_one_call(self, one, biased, threads):
        x, weight = ORDERS[one](drawn(130, 129)), drawn(127, 129, seed=1)
        bias = drawn(127, seed=2) if biased else None
        found = products.affine(x, weight, bias)
        if threads == 1 and not biased:
            assert found is None
        else:
            near(found, x.astype(float) @ weight.T + (bias if biased else 0), 129)

    @pytest.mark.parametrize(
        ("x", "weight", "bias"),
        [
            (drawn(130, 129), drawn(127, 129), drawn(1)),
            (drawn(130, 129), drawn(127, 129), drawn(254)[::2]),
            (drawn(130, 129), drawn(127, 129), drawn(127).astype(float)),
            (drawn(130, 129), drawn(127, 128), None),
            (drawn(130, 129), drawn(129, 1027).T, None),
            (drawn(2, 130, 129), drawn(127, 129), None),
        ],
        ids="short apart double unlike columns three".split(),
    )
    def test_leaves_other_layers(self, x, weight, bias, threads):
        assert products.affine(x, weight, bias) is None

    @pytest.mark.parametrize("one", ["rows", "columns", "part of rows"])
    @pytest.mark.parametrize("biased", [True, False], ids=["bias", "none"])
    def test_a_layer_of_many_rows(self, one, biased, threads):
        x, weight = drawn(2049, 129), ORDERS[one](drawn(127, 129, seed=1))
        bias = drawn(127, seed=2) if biased else None
        found = products.affine(x, weight, bias)
        near(found, x.astype(float) @ weight.T + (bias if biased else 0), 129)

    def test_a_layer_of_few_rows_is_left_in_one_thread(self, threads):
        found = products.affine(drawn(64, 129), drawn(257, 129), drawn(257))
        assert (found is None) == (threads == 1)

    def test_what_is_not_finite_stays_so(self):
        x, y = drawn(130, 129), drawn(129, 127)
        x[3, 4], y[5, 6], y[4, 7] = np.nan, np.inf, 0
        with np.errstate(invalid="ignore"):
            right = x @ y
        found = products.product(x, y)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(right))
        np.testing.assert_array_equal(np.isposinf(found), np.isposinf(right))

    @pytest.mark.parametrize(
        ("x", "y"),
        [
            (drawn(130, 129).astype(float), drawn(129, 127).astype(float)),
            (drawn(130, 129), drawn(129, 127).astype(float)),
            (drawn(130, 258)[:, ::2], drawn(129, 127)),
            (drawn(130, 129)[::-1], drawn(129, 127)),
            (np.broadcast_to(drawn(1, 129), (130, 129)), drawn(129, 127)),
            (drawn(64, 128), drawn(128, 128)),  # 2 ** 20 products, no more
            (drawn(2048, 0), drawn(0, 1024)),
            (drawn(2, 130, 129), drawn(129, 127)),
            (drawn(130, 129), drawn(128, 127)),
        ],
        ids="double mixed apart backwards repeated few none three unlike".split(),
    )
    def test_leaves_the_rest(self, x, y):
        assert products.product(x, y) is None
        total = np.zeros((x.shape[-2], y.shape[1]), x.dtype)
        assert products.adding_product(total, x, y, 1.0) is None

    def test_leaves_memory_that_does_not_fit(self):
        x, y = drawn(130, 129), drawn(129, 127)
        for out in (np.empty((130, 128), "f"), np.empty((130, 127))):
            assert products.product(x, y, out) is None
        for out in (np.empty((127, 130), "f").T, np.empty((130, 254), "f")[:, ::2]):
            assert products.product(x, y, out) is None

    def test_gives_the_same_bits_again(self):
        x, y = drawn(512, 300), drawn(300, 257)
        first = products.product(x, y).tobytes()
        assert all(products.product(x, y).tobytes() == first for _ in range(5))

    def test_read_only_memory(self):
        x, y, out = drawn(130, 129), drawn(129, 127), np.zeros((130, 127), "f")
        right = x.astype(float) @ y
        for a in (x, y, out):
            a.flags.writeable = False
        near(products.product(x, y), right, 129)
        assert products.product(x, y, out) is None
        assert products.adding_product(out, x, y, 1.0) is None

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_threads(self, number):
        x, y = drawn(300, 257), drawn(257, 301)
        found = []
        right = x.astype(float) @ y
        before = torch.get_num_threads()
        torch.set_num_threads(number)
        try:
            tasks = [
                threading.Thread(target=lambda: found.append(products.product(x, y)))
                for _ in range(4)
            ]
            for task in tasks:
                task.start()
            for task in tasks:
                task.join()
        finally:
            torch.set_num_threads(before)
        assert len(found) == 4
        for z in found:
            near(z, right, 257)

    def test_layers_ask_it(self, threads, monkeypatch):
        layer, x = torch.nn.Linear(256, 192), torch.from_numpy(drawn(64, 256))
        called, ran = [], []  # of one thread, and of several
        monkeypatch.setattr(products, "_call", noting(called, products._call))
        monkeypatch.setattr(Primitive, "run", noting(ran, Primitive.run))
        (layer(x.requires_grad_()) ** 2).sum().backward()
        assert len(called) + len(ran) == 3
        assert None not in called


class TestSwitchedOff:
    def test_layers_have_the_bits_of_numpy(self):
        x, w = drawn(100, 256), drawn(192, 256, seed=1)
        with engines.switched(False):
            z = F.linear(torch.from_numpy(x), torch.from_numpy(w))
        assert z.numpy().tobytes() == x.dot(w.T).tobytes()

    def test_products_of_tensors_are_numpys(self):
        x, w = drawn(100, 256), drawn(256, 192, seed=1)
        z = torch.from_numpy(x) @ torch.from_numpy(w)
        assert z.numpy().tobytes() == (x @ w).tobytes()


@pytest.mark.parametrize("on", [True, False], ids=["engine", "general"])
class TestLayers:
    def both(self, on, function, *arrays):
        """The results in double precision, and in single precision by an engine."""
        right = function(*arrays)
        with engines.switched(on):
            found = function(*(a.astype("f") for a in arrays))
        for a, b in zip(found, right, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, b, atol=2e-5 * abs(b).max())

    @pytest.mark.parametrize("rows", [(20,), (4, 50), (700,)])
    def test_there_and_back(self, on, rows):
        def there_and_back(x, w, b):
            tensors = [torch.from_numpy(a).requires_grad_() for a in (x, w, b)]
            z = F.linear(*tensors)
            (z * z).sum().backward()
            return [z.detach().numpy(), *(t.grad.numpy() for t in tensors)]

        self.both(on, there_and_back, *map(float_, drawn_layer(rows)))

    def test_a_weight_that_is_used_many_times(self, on):
        def steps(x, w, b):
            tensors = [torch.from_numpy(a).requires_grad_() for a in (x, w, b)]
            total = sum(
                (F.linear(tensors[0] * i, *tensors[1:]) ** 2).sum() for i in range(5)
            )
            total.backward()
            return [t.grad.numpy() for t in tensors]

        self.both(on, steps, *map(float_, drawn_layer((40,))))

    def test_second_derivatives_and_forward_mode(self, on):
        def derivatives(x, w, b):
            x, w, b = (torch.from_numpy(a) for a in (x, w, b))

            def loss(x, w):
                return (F.linear(x, w, b) ** 3).sum()

            leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
            first = torch.autograd.grad(loss(*leaves), leaves, create_graph=True)
            second = torch.autograd.grad(sum((g * g).sum() for g in first), leaves)
            pushed = torch.func.jvp(loss, (x, w), (w.sum() * x, w))[1]
            return [*(g.numpy() for g in second), pushed.numpy()]

        self.both(on, derivatives, *map(float_, drawn_layer((40,))))

    def test_an_lstm(self, on):
        torch.manual_seed(0)
        net = torch.nn.LSTM(96, 160, dtype=torch.float64)
        weights = [p.detach().numpy() for p in net.parameters()]

        def trained(x, *arrays):
            kind = torch.float32 if x.dtype == np.float32 else torch.float64
            net = torch.nn.LSTM(96, 160, dtype=kind)
            with torch.no_grad():
                for p, a in zip(net.parameters(), arrays, strict=True):
                    p.copy_(torch.from_numpy(a))
            (net(torch.from_numpy(x))[0] ** 2).sum().backward()
            return [p.grad.numpy() for p in net.parameters()]

        self.both(on, trained, float_(drawn(6, 24, 96)), *weights)


def float_(array):
    return array.astype(float)


def drawn_layer(rows):
    return drawn(*rows, 256), drawn(192, 256, seed=1) / 16, drawn(192, seed=2)


# How pairs of matrices lie in memory.
MANY = {
    "rows": np.ascontiguousarray,
    "columns": lambda x: np.ascontiguousarray(x.mT).mT,
    "heads": lambda x: np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2),
    "part": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "part of columns": lambda x: (
        np.concatenate([x.mT, x.mT], -1)[..., : x.shape[-2]].mT
    ),
    "apart": lambda x: np.stack([x, x], -1)[..., 0],
    "backwards": lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
}
LEFT = {"apart", "backwards", "repeated"}


@needs_engine
@pytest.mark.usefixtures("threads")
class TestMatmul:
    @pytest.fixture
    def asked(self, monkeypatch):
        asked = []
        monkeypatch.setattr(Primitive, "run", noting(asked, Primitive.run))
        return asked

    @pytest.mark.parametrize("one", MANY)
    @pytest.mark.parametrize("other", MANY)
    def test_equals_double_precision(self, one, other, threads, asked):
        x, y = MANY[one](drawn(6, 7, 40, 39)), MANY[other](drawn(6, 7, 39, 41, seed=1))
        found = products.matmul(x, y)
        near(found, x.astype(float) @ y, 39)
        assert found.flags.c_contiguous
        fit = not LEFT & {one, other}
        assert len(asked) == (fit and (threads > 1 or other == "columns"))

    @pytest.mark.parametrize("order", MANY)
    def test_lies_like_another(self, order, threads, asked):
        x, y = drawn(6, 7, 40, 39), drawn(6, 7, 39, 41, seed=1)
        like = MANY[order](drawn(6, 7, 40, 41))
        found = products.matmul(x, y, like)
        near(found, x.astype(float) @ y, 39)
        if asked and order not in LEFT:
            assert found.strides == np.empty_like(like).strides
        last = np.array(found.shape) - 1
        assert last @ found.strides == 4 * (found.size - 1)  # without gaps

    def test_another_of_another_shape_or_type_does_not_matter(self, asked):
        x, y = drawn(42, 40, 39), drawn(42, 39, 41, seed=1)
        for like in (drawn(1, 40, 41), drawn(41, 40), x.astype(float), 3.0):
            near(products.matmul(x, y, like), x.astype(float) @ y, 39)

    @pytest.mark.parametrize(
        ("x", "y"),
        [
            (drawn(42, 40, 39).astype(float), drawn(42, 39, 41).astype(float)),
            (drawn(42, 40, 39), drawn(39, 41)),
            (drawn(42, 40, 39), drawn(1, 39, 41)),
            (drawn(42, 1, 200), drawn(42, 200, 200)),
            (drawn(42, 16, 16), drawn(42, 16, 16)),
            (drawn(2, 0, 3), drawn(2, 3, 4)),
        ],
        ids="double matrix one rows few none".split(),
    )
    def test_leaves_the_rest(self, x, y, asked):
        found, right = products.matmul(x, y), x @ y
        assert asked == []
        assert found.dtype == right.dtype
        np.testing.assert_array_equal(found, right)

    @pytest.mark.parametrize(
        "x", [drawn(40, 39), drawn(39, 40).T], ids=["rows", "columns"]
    )
    def test_one_matrix_times_each(self, x, threads):
        y = drawn(42, 39, 41, seed=1)
        found = products.times_each(x, y)
        if threads == 1:
            assert found is None
        else:
            near(found, x.astype(float) @ y, 39)
        assert products.times_each(x[::2], MANY["apart"](y)) is None
        assert products.times_each(x.astype(float), y.astype(float)) is None

    def test_refuses_what_does_not_fit(self):
        with pytest.raises(ValueError, match="mismatch"):
            products.matmul(drawn(42, 40, 39), drawn(42, 38, 41))

    def test_products_and_their_gradients_ask_it(self, threads, asked):
        x, y = (torch.from_numpy(drawn(42, 40, 40, seed=i)) for i in range(2))
        x.requires_grad_(), y.requires_grad_()
        z_bar = drawn(42, 40, 40, seed=2)
        (x @ y).backward(torch.from_numpy(z_bar))
        assert len(asked) == (3 if threads > 1 else 1)
        near(x.grad.numpy(), z_bar.astype(float) @ y.detach().numpy().mT, 40)
        near(y.grad.numpy(), x.detach().numpy().mT @ z_bar.astype(float), 40)

    def test_cotangents_of_heads_lie_as_the_heads_do(self, threads):
        (q, k), seen = (drawn(8, 40, 6, 32, seed=i) for i in range(2)), []
        x, y = (torch.from_numpy(a).requires_grad_() for a in (q, k))
        heads, keys = x.transpose(1, 2), y.transpose(1, 2).transpose(2, 3)
        for z in (heads, keys):
            z.register_hook(lambda z_bar: seen.append(z_bar.numpy()))
        z_bar = drawn(8, 6, 40, 40, seed=2)
        (heads @ keys).backward(torch.from_numpy(z_bar))
        q_bar = (z_bar.astype(float) @ k.swapaxes(1, 2)).swapaxes(1, 2)
        k_bar = (z_bar.astype(float).mT @ q.swapaxes(1, 2)).swapaxes(1, 2)
        near(x.grad.numpy(), q_bar, 40)
        near(y.grad.numpy(), k_bar, 40)
        if threads > 1:
            assert {a.strides for a in seen} == {
                heads.detach().numpy().strides,
                keys.detach().numpy().strides,
            }


@needs_engine
class TestRepeated:
    @pytest.mark.parametrize("one", ORDERS)
    @pytest.mark.parametrize(("n", "k", "m"), [(4, 256, 1024), (33, 515, 130)])
    def test_equals_double_precision(self, n, k, m, one):
        y = ORDERS[one](drawn(k, m, seed=1))
        multiply = products.repeated(y, n, 8)
        for seed in range(3):
            x = drawn(n, k, seed=seed)
            near(multiply(x), x.astype(float) @ y, k)

    @pytest.mark.parametrize(
        ("y", "n", "times"),
        [
            (drawn(256, 1024).astype(float), 8, 8),
            (drawn(256, 1024), 1, 50),
            (drawn(256, 1024), 3, 50),  # less than 2 ** 20 products
            (drawn(256, 1024), 8, 7),
            (drawn(256, 2048)[:, ::2], 8, 8),
        ],
        ids="double one few seldom apart".split(),
    )
    def test_leaves_the_rest(self, y, n, times):
        assert products.repeated(y, n, times) is None

    def test_leaves_matrices_of_other_kinds(self):
        multiply = products.repeated(drawn(256, 1024), 8, 8)
        assert multiply(drawn(8, 256).astype(float)) is None
        assert multiply(drawn(8, 512)[:, ::2]) is None

    def test_is_off_with_the_engine(self):
        with engines.switched(False):
            assert products.repeated(drawn(256, 1024), 8, 8) is None

    def test_threads_at_once(self):
        y = drawn(256, 1024)
        multiply, found = products.repeated(y, 8, 8), {}

        def work(seed):
            x = drawn(8, 256, seed=seed)
            found[seed] = all(
                np.array_equal(multiply(x), multiply(x)) for _ in "12345678"
            )
            near(multiply(x), x.astype(float) @ y, 256)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(found.values()) == [True] * 8
