"""Products for one matrix wait and are settled together: same sums, in every form."""

import math

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, value_and_grad, vjp
from lantern.core.value import Receiver
from lantern.tensor.accumulate import deferred_products
from lantern.tensor.accumulate.accumulator import LARGE, Accumulator
from lantern.tensor.accumulate.deferred_products import Collector, DeferredSum
from lantern.tensor.ops.indexing import Scatter
from lantern.tensor.ops.products import Product

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


class Stacked(Product):
    """A kind of product of its own, which is joined with its like alone."""

    __slots__ = ()


def factors(n, lead=()):
    return RNG.standard_normal((*lead, n, 2)), RNG.standard_normal((*lead, n, 3))


def product(n, kind=Product, lead=()):
    return kind(*factors(n, lead))


WAITING = {
    "one": [product(3)],
    "one, of its own": [Product(RNG.random((2, 2)), RNG.random((2, 3)), True)],
    "several": [product(1), product(3), product(2)],
    "a stack": [product(2, lead=(4,)), product(3)],
    "of another kind": [product(2, Stacked), product(1, Stacked)],
    "of two kinds": [product(2), product(2, Stacked), product(1)],
    "a read": [Scatter((0, slice(None)), RNG.random(3))],
    "a read and products": [
        Scatter((1, slice(None)), RNG.random(3)),
        product(2),
        product(1),
    ],
}
ENDS = {
    "a look": lambda waiting: waiting.settle(),
    "two looks": lambda waiting: (waiting.settle(), waiting.settle())[1],
    "into an array": lambda waiting: into(waiting, 1.0),
    "a third of it into an array": lambda waiting: 3.0 * into(waiting, 1.0 / 3.0),
    "a sum": lambda waiting: (waiting + np.ones((2, 3))) - 1.0,
}


def into(waiting, factor):
    target = np.full((2, 3), np.nan)
    waiting.settle_into(target, factor)
    return target


@pytest.mark.parametrize("total", ["nothing", "its own", "somebody's"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", WAITING)
def test_all_that_waits_is_in_the_sum(name, end, total):
    given = None if total == "nothing" else RNG.standard_normal((2, 3))
    before = 0.0 if given is None else given.copy()
    waiting = DeferredSum(given, total == "its own", (2, 3))
    for contribution in WAITING[name]:
        waiting.take(contribution, 8, np.inf)
    dense = [contribution.dense((2, 3)) for contribution in WAITING[name]]
    expected = before + sum(dense)
    np.testing.assert_allclose(ENDS[end](waiting), expected, rtol=1e-12, atol=1e-12)
    if total == "somebody's":
        np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("total", ["nothing", "its own", "somebody's"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_does_not_wait_is_added_to_what_does(total, times):
    given = None if total == "nothing" else RNG.standard_normal((2, 3))
    before = 0.0 if given is None else given.copy()
    waiting, one = DeferredSum(given, total == "its own", (2, 3)), product(2)
    waiting.take(one, 8, np.inf)
    others = [RNG.standard_normal((2, 3)) for _ in range(times)]
    copies = [x.copy() for x in others]
    for x in others:
        waiting += x
    expected = before + sum(copies) + one.dense((2, 3))
    np.testing.assert_allclose(waiting.settle(), expected, rtol=1e-12)
    if total == "somebody's":
        np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("factor", [1.0, -0.5])
@pytest.mark.parametrize("lead", [(), (1,), (4,)], ids=["matrices", "one", "stacks"])
def test_a_product_is_added_to_a_buffer(lead, factor, n):
    one, buffer = product(n, lead=lead), np.ones((2, 3))
    one.add_to(buffer, factor)
    expected = (one.x.mT @ one.z_bar).reshape(-1, 2, 3).sum(axis=0)
    np.testing.assert_allclose(one.dense((2, 3)), expected, rtol=1e-12)
    np.testing.assert_allclose(buffer, 1 + factor * expected, rtol=1e-12)


def test_products_that_wait_keep_arrays_of_their_own():
    one, two = product(2), product(3)
    for products in ([one], [one, two]):
        joined = Product.joined(products, (2, 3))
        assert joined.own
        for array in (joined.x, joined.z_bar):
            for given in (one.x, one.z_bar, two.x, two.z_bar):
                assert not np.shares_memory(array, given)
        again = Product.joined([joined], (2, 3))
        assert again is joined  # nobody else has its arrays


def test_a_product_stays_where_it_is_little_beside_a_large_weight():
    one, size = product(2), LARGE * 8
    assert one.stays(size // 2, size)
    assert not one.stays(size // 2 + 1, size)  # half of the weight at most
    assert one.stays(0, size)
    assert not one.stays(0, size - 1)  # of a small weight never
    assert not Product(lantern.Tensor(one.x), one.z_bar).stays(0, size)
    rows = Scatter((0, slice(None)), one.z_bar)
    assert rows.stays(25, 100)
    assert not rows.stays(26, 100)  # a quarter


def receiver(shape=(2, 3)):
    return Accumulator().prepare(shape, np.dtype(float), math.prod(shape))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_a_product_may_wait_if_it_takes_no_more_than_the_weight(rows, monkeypatch):
    """A weight of two by three; of a product each row takes five numbers."""
    for share in (0.9, 2.5, 10 / 3):  # of the weight's six numbers
        monkeypatch.setattr(Collector, "share", share)
        one = product(rows)
        ready = one.ready(receiver())
        if 5 * rows <= 6 * share:
            assert ready is one
        else:
            np.testing.assert_array_equal(ready, one.dense((2, 3)))


def test_what_may_not_wait_is_computed():
    one = product(1)
    single = Product(one.x.astype("float32"), one.z_bar)
    tracked = Product(lantern.Tensor(one.x), one.z_bar)
    for given in (single, tracked):
        assert type(given.ready(receiver())) is not Product


def test_products_are_settled_when_they_take_more_than_the_weight(monkeypatch):
    monkeypatch.setattr(deferred_products, "LITTLE", 0)
    monkeypatch.setattr(Collector, "share", 4.0)
    weight, products = receiver((8, 8)), []
    total = Receiver.__dict__["cotangent"].__get__
    for waiting in (0, 1, 2, 3, 4, 0, 1, 2):  # the first one is computed
        products.append(Product(RNG.random((4, 8)), RNG.random((4, 8))))
        assert products[-1].wait_at(weight)
        if type(weight) is Collector:
            assert len(total(weight).contributions) == waiting
        else:
            assert len(products) == 1
    expected = sum(x.dense((8, 8)) for x in products)
    np.testing.assert_allclose(weight.cotangent, expected, rtol=1e-12)
    assert type(weight) is Accumulator


def test_one_kind_that_is_little_stays_in_its_own_form():
    large = LARGE * 8
    for contributions, size, room in [
        ([product(2), product(1)], 80, large),
        ([product(2)], large, large),
        ([product(2), Stacked(*factors(2))], 80, large),
    ]:
        waiting = DeferredSum(None, False, (2, 3))
        for x in contributions:
            waiting.take(x, 0, np.inf)
        waiting.size, waiting.room = size, room
        alone = waiting.alone()
        if type(contributions[-1]) is Product and size < large:
            expected = sum(x.dense((2, 3)) for x in contributions)
            np.testing.assert_allclose(alone.dense((2, 3)), expected)
            assert alone.own
        else:
            assert alone is None
    waiting = DeferredSum(np.ones((2, 3)), True, (2, 3))
    assert waiting.alone() is None


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("masks", ["first", "last", "between"])
def test_products_count_everywhere_beside_branches(masks, times, share):
    """What comes through a branch leaves a mask, which products take away."""

    def f(w):
        v, h = lantern.sin(w), np.ones(6)
        chosen = lantern.where(v > 0.1, v * v, 0.0)
        total = lantern.sum(chosen) if masks == "last" else 0.0
        for k in range(times):
            h = lantern.tanh(h @ v + k)
            if masks == "between":
                total = total + lantern.sum(lantern.where(v > 0.2, v * k, 0.0))
        total = total + h.sum()
        return total + (lantern.sum(chosen) if masks == "first" else 0.0)

    v = RNG.standard_normal(W.shape)
    np.testing.assert_allclose((grad(f)(W) * v).sum(), differences(f, W, v), rtol=1e-6)


@pytest.mark.parametrize("first", ["products", "tracked"])
def test_products_count_beside_what_an_outer_derivative_tracks(first, share):
    def slope(u):
        def f(w):
            v = w * 1.0
            total = lantern.sum(v * u * v) if first == "tracked" else 0.0
            for k in (1.0, 2.0):
                total = total + lantern.sum((np.ones(6) * k) @ v)
            return total + (lantern.sum(v * u * v) if first == "products" else 0.0)

        return lantern.sum(grad(f)(W) * W)

    value, second = value_and_grad(slope)(W)
    np.testing.assert_allclose([value, slope(W)], (2 * W**3 + 3 * W).sum())
    np.testing.assert_allclose(second, 2 * W * W)


def test_what_waits_takes_no_more_memory_than_it_may():
    waiting = DeferredSum(None, False, (2, 3))
    for _ in range(3):
        waiting.take(product(2), deferred_products.LITTLE // 2, 0)
    assert len(waiting.contributions) == 0  # the third was one too many
    waiting.take(product(2), deferred_products.LITTLE, 0)
    assert len(waiting.contributions) == 1
    waiting.take(product(2), deferred_products.LITTLE, 4 * deferred_products.LITTLE)
    assert len(waiting.contributions) == 2
    assert waiting.size == 2 * deferred_products.LITTLE
