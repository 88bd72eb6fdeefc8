import threading

import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines
from lantern.engines import recurrent

T, M, K, N = 21, 3, 60, 70


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape) / 4


def operands(t=T, m=M, k=K, n=N, dtype="f"):
    shapes = (t, m, k), (m, n), (m, n), (4 * n, k), (4 * n, n), (4 * n,)
    return [drawn(*s, seed=i).astype(dtype) for i, s in enumerate(shapes)]


here = recurrent.course(operands(), False) is not None
needs_engine = pytest.mark.skipif(not here, reason="no oneDNN here, or no AVX-512")


def layer(dtype, n=N, **options):
    """A layer, its inputs and first states."""
    torch.manual_seed(3)
    ways = 2 if options.get("bidirectional") else 1
    model = torch.nn.LSTM(K, n, **options).to(dtype)
    count = ways * options.get("num_layers", 1)
    shapes = (T, M, K), (count, M, n), (count, M, n)
    given = [torch.tensor(drawn(*s, seed=i)).to(dtype) for i, s in enumerate(shapes)]
    return model, [x.requires_grad_() for x in given]


def both_ways(model, given):
    """What a layer gives, and what all leaves receive."""
    x, *states = given
    z = model(x, tuple(states))
    outs = [z[0], *z[1]]
    sum((out * (i + 1)).square().sum() for i, out in enumerate(outs)).backward()
    leaves = [*given, *model.parameters()]
    return [a.detach().numpy() for a in (*outs, *(leaf.grad for leaf in leaves))]


def near(found, right):
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * np.abs(b).max())


OPTIONS = {
    "plain": {},
    "no bias": {"bias": False},
    "both ways, layers": {"bidirectional": True, "num_layers": 2},
}


@needs_engine
class TestCourse:
    @pytest.mark.parametrize("n", [70, 64, 97])
    @pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
    def test_equals_double_precision(self, options, n):
        found = both_ways(*layer(torch.float32, n, **options))
        near(found, both_ways(*layer(torch.float64, n, **options)))

    @pytest.mark.parametrize("m", [2, 16, 17, 40])
    @pytest.mark.parametrize("backwards", [False, True])
    def test_takes_any_number_of_examples(self, m, backwards):
        given = operands(m=m, n=90)
        past = recurrent.course(tuple(given), backwards)
        z_bar = drawn(*past.z.shape).astype("f")
        bars = past.back(z_bar)
        for i in (0, m - 1):  # each by itself, with another
            two = [a[:, [i, i]] if a.ndim == 3 else a for a in given]
            two[1:3] = [a[[i, i]] for a in given[1:3]]
            alone = recurrent.course(tuple(two), backwards)
            rows = np.arange(T + 1) * m + i
            near([alone.z[::2]], [past.z[rows]])
            back = alone.back(np.repeat(z_bar[rows], 2, axis=0))
            near([back[0][:, 0], back[1][0]], [bars[0][:, i], bars[1][i]])

    def test_goes_twice_through_a_way(self):
        past = recurrent.course(tuple(operands()), False)
        z_bar = drawn(*past.z.shape).astype("f")
        for a, b in zip(past.back(z_bar), past.back(z_bar), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_what_is_not_finite_stays_so(self):
        given = operands()
        given[0][5, 1, 2] = np.nan
        z = recurrent.course(tuple(given), False).z.reshape(T + 1, M, N)
        assert np.isnan(z[5:, 1]).all()
        assert np.isfinite(z[:5]).all()
        assert np.isfinite(z[:, [0, 2]]).all()

    @pytest.mark.parametrize(
        "given",
        [
            operands(dtype="d"),
            operands(t=19),
            operands(m=1),
            operands(n=20),
            [*operands()[:3], operands(k=61)[3], *operands()[4:]],
            [operands()[0], operands(m=2)[1], *operands()[2:]],
        ],
        ids=["double", "short", "one example", "small", "weight", "states"],
    )
    def test_leaves_the_rest(self, given):
        assert recurrent.course(tuple(given), False) is None

    def test_is_off_with_the_engine(self):
        past = recurrent.course(tuple(operands()), False)
        with engines.switched(False):
            assert recurrent.course(tuple(operands()), False) is None
            assert past.back(past.z) is None

    def test_threads_at_once(self):
        given, wrong = tuple(operands()), []
        right = recurrent.course(given, True)
        bars = right.back(right.z)

        def work():
            for _ in range(5):
                past = recurrent.course(given, True)
                found = past.z, *past.back(past.z)
                pairs = zip(found, (right.z, *bars), strict=True)
                wrong.extend(1 for a, b in pairs if not np.array_equal(a, b))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


@pytest.mark.parametrize("on", [True, False], ids=["engine", "none"])
class TestLayer:
    def test_second_derivatives_equal_double_precision(self, on):
        found = []
        for dtype in (torch.float32, torch.float64):
            model, given = layer(dtype)
            leaves = [*given, *model.parameters()]
            with engines.switched(on):
                z = model(given[0], tuple(given[1:]))[0].square().sum()
                firsts = torch.autograd.grad(z, leaves, create_graph=True)
                total = sum(first.square().sum() for first in firsts)
                seconds = torch.autograd.grad(total, leaves)
            found.append([a.detach().numpy() for a in (*firsts, *seconds)])
        near(*found)

    def test_pushes_forward(self, on):
        found = []
        for dtype in (torch.float32, torch.float64):
            model, given = layer(dtype)
            direction = torch.tensor(drawn(T, M, K, seed=9)).to(dtype)

            def shown(x, model=model, given=given):
                return model(x, tuple(given[1:]))[0]

            with engines.switched(on):
                pair = torch.func.jvp(shown, (given[0],), (direction,))
            found.append([a.detach().numpy() for a in pair])
        near(*found)

    def test_a_step_of_a_graph_may_be_taken_again(self, on):
        model, given = layer(torch.float32)
        with engines.switched(on):
            z = model(given[0], tuple(given[1:]))[0].sum()
            one = torch.autograd.grad(z, given, retain_graph=True)
            other = torch.autograd.grad(z, given)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())

    def test_part_of_the_leaves(self, on):
        model, given = layer(torch.float32)
        with engines.switched(on):
            right = both_ways(model, given)
            model, given = layer(torch.float32)
            given = [x.detach() for x in given]
            model.weight_hh_l0.requires_grad_(False)
            z = model(given[0], tuple(given[1:]))
            sum(
                (a * (i + 1)).square().sum() for i, a in enumerate((z[0], *z[1]))
            ).backward()
        assert model.weight_hh_l0.grad is None
        np.testing.assert_allclose(
            model.weight_ih_l0.grad.numpy(),
            right[6],
            atol=1e-5 * np.abs(right[6]).max(),
        )
