"""Products for one matrix wait and are settled together: same sums, in every form."""

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp
from lantern.tensor.accumulate import deferred_products
from lantern.tensor.accumulate.accumulator import Accumulator
from lantern.tensor.accumulate.deferred_products import Collector, Product

RNG = np.random.default_rng(0)
W = RNG.standard_normal((6, 6)) * 0.3


@pytest.fixture(params=[0.0, 0.5, 1.0, 100.0])
def share(request, monkeypatch):
    monkeypatch.setattr(Collector, "share", request.param)
    return request.param


def vectors(w):
    h = np.ones(6)
    for k in range(20):
        h = lantern.tanh(h @ w + k / 10)
    return (h * h).sum()


def matrices(w):
    h = np.ones((2, 6))
    for _ in range(9):
        h = lantern.tanh(h @ w)
    return (h * h).sum()


def mixed(w):
    """Products, reads, masks and dense contributions for one weight, in turns."""
    h, total = np.ones((1, 6)), 0
    for k in range(9):
        h = lantern.tanh(h @ w)
        total = total + w[k % 6].sum() + (w * w).sum() + h.sum()
        total = total + lantern.where(w > 0, w, 0).sum()
    return total + (np.ones((2, 3, 6)) @ w).sum() + (np.ones((40, 6)) @ w).sum()


def derived(w):
    """A weight that was computed itself."""
    v = lantern.sin(w) + w.T
    h = np.ones(6)
    for _ in range(9):
        h = lantern.tanh(h @ v)
    return h.sum()


PROGRAMS = [vectors, matrices, mixed, derived]


def differences(f, w, v, eps=1e-6):
    return (f(w + eps * v) - f(w - eps * v)) / (2 * eps)


@pytest.mark.parametrize("program", PROGRAMS)
class TestSameSums:
    def test_gradient(self, program, share, probe):
        v = RNG.standard_normal(W.shape)
        g = grad(program)(W)
        np.testing.assert_allclose((g * v).sum(), differences(program, W, v), rtol=1e-7)

    def test_orders_and_modes(self, program, share):
        v = RNG.standard_normal(W.shape)

        def slope(w):
            return (grad(program)(w) * v).sum()

        expected = differences(lambda w: (grad(program)(w) * v).sum(), W, v)
        np.testing.assert_allclose((grad(slope)(W) * v).sum(), expected, rtol=1e-6)
        np.testing.assert_allclose(jvp(slope, (W,), (v,))[1], expected, rtol=1e-6)

    def test_pullback_twice(self, program, share):
        _, pullback = vjp(program, W)
        np.testing.assert_allclose(pullback(1.0)[0], grad(program)(W), rtol=1e-10)
        np.testing.assert_allclose(pullback(-2.0)[0], -2 * grad(program)(W), rtol=1e-10)

    def test_gradients_share_no_memory(self, program, share):
        one, two = grad(lambda a, b: program(a) + program(b), (0, 1))(W, W)
        assert not np.shares_memory(one, two)
        assert one.flags.writeable


def wait(accumulator, x, z_bar):
    accumulator.accumulate(Product(x, z_bar))


class TestCollector:
    def test_waits_until_someone_looks(self):
        accumulator = Accumulator().prepare((6, 6), W.dtype)
        x, z_bar = RNG.standard_normal((2, 1, 6))
        wait(accumulator, x, z_bar)
        wait(accumulator, z_bar, x)
        assert type(accumulator) is Collector
        np.testing.assert_allclose(accumulator.cotangent, x.T @ z_bar + z_bar.T @ x)
        assert type(accumulator) is Accumulator
        assert accumulator.owned

    def test_what_was_there_stays(self):
        accumulator = Accumulator().prepare((6, 6), W.dtype)
        borrowed = np.ones((6, 6))
        accumulator.accumulate(borrowed)
        wait(accumulator, np.ones((1, 6)), np.ones((1, 6)))
        assert (accumulator.cotangent == 2).all()
        assert (borrowed == 1).all()

    def test_no_more_bytes_than_the_weight(self, monkeypatch):
        monkeypatch.setattr(deferred_products, "LITTLE", 0)
        accumulator = Accumulator().prepare((6, 6), W.dtype)
        wait(accumulator, np.ones((1, 6)), np.ones((1, 6)))
        assert type(accumulator) is Accumulator  # the first one does not wait
        for _ in range(99):
            wait(accumulator, np.ones((1, 6)), np.ones((1, 6)))
            waiting = vars(type(accumulator).__mro__[2])["cotangent"].__get__(
                accumulator
            )
            assert waiting.size <= W.nbytes
        assert (accumulator.cotangent == 100).all()

    def test_large_products_are_not_kept(self):
        accumulator = Accumulator().prepare((6, 6), W.dtype)
        wait(accumulator, np.ones((50, 6)), np.ones((50, 6)))
        assert type(accumulator) is Accumulator
        assert (accumulator.cotangent == 50).all()

    def test_other_types_are_not_kept(self):
        accumulator = Accumulator().prepare((6, 6), W.dtype)
        wait(accumulator, np.ones((1, 6), np.float32), np.ones((1, 6)))
        assert type(accumulator) is Accumulator

    def test_a_new_sum_takes_the_place_of_what_waits(self):
        accumulator = Accumulator().prepare((6, 6), W.dtype)
        wait(accumulator, np.ones((1, 6)), np.ones((1, 6)))
        accumulator.cotangent = None
        assert type(accumulator) is Accumulator
        assert accumulator.cotangent is None


def test_complex_weights_are_right():
    w = W + 1j * W.T
    v = RNG.standard_normal(W.shape) + 1j * RNG.standard_normal(W.shape)

    def program(w):
        h = np.ones((1, 6)) + 0j
        for _ in range(4):
            h = h @ w * 0.5
        return lantern.real(h * lantern.conj(h)).sum()

    g = grad(program)(w)
    np.testing.assert_allclose(
        np.real(np.conj(g) * v).sum(), differences(program, w, v), rtol=1e-6
    )
