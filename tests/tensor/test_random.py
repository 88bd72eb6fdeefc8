"""Random draws: the generator's own, and differentiable in their parameters."""

import numpy as np
import pytest
import scipy.special

import lantern
from lantern import grad, random, vjp
from lantern.errors import ArgumentError, ShapeError
from lantern.testing import check_grads

same, close = np.testing.assert_array_equal, np.testing.assert_allclose
A, B = np.array([[0.7], [2.0]]), np.array([1.5, 0.4, 3.0])


def rng(seed=0):
    return np.random.default_rng(seed)


LOCATED = [
    (name, (A, B)) for name in "normal laplace gumbel logistic lognormal".split()
]
DRAWS = [
    *LOCATED,
    ("uniform", (A, A + B)),
    ("exponential", (B,)),
    ("gamma", (A, B)),
    ("standard_gamma", (A,)),
    ("chisquare", (B,)),
    ("rayleigh", (B,)),
    ("weibull", (B,)),
    ("beta", (A + 0.5, B + 0.6)),
    ("dirichlet", (B,)),
]
IMPLICIT = ("gamma", "standard_gamma", "chisquare", "beta", "dirichlet")
PATHWISE = [case for case in DRAWS if case[0] not in IMPLICIT]


@pytest.mark.parametrize(("name", "parameters"), DRAWS)
class TestDraws:
    def test_are_the_generators_own(self, name, parameters):
        if name != "dirichlet":
            close(
                getattr(random, name)(rng(), *parameters),
                getattr(rng(), name)(*parameters),
                rtol=1e-14,
            )
        numbers = [p if name == "dirichlet" else float(p.flat[0]) for p in parameters]
        for size in (None, 5, (2, 3), ()):
            ours, theirs = rng(), rng()
            got = getattr(random, name)(ours, *numbers, size=size)
            want = getattr(theirs, name)(*numbers, size=size)
            close(got, want, rtol=1e-14)
            assert np.shape(got) == np.shape(want)
            assert ours.bit_generator.state == theirs.bit_generator.state

    def test_are_the_same_when_tracked(self, name, parameters):
        f = getattr(random, name)
        y, pullback = vjp(lambda *p: f(rng(), *p), *parameters)
        same(y, f(rng(), *parameters))
        first, second = (pullback(np.ones_like(y)) for _ in range(2))
        for a, b in zip(first, second, strict=True):
            same(a, b)
            assert np.all(np.isfinite(a))

    def test_stay_single(self, name, parameters):
        single = [p.astype(np.float32) for p in parameters]
        y, pullback = vjp(lambda *p: getattr(random, name)(rng(), *p), *single)
        assert y.dtype == np.float32
        assert {g.dtype for g in pullback(np.ones_like(y))} == {np.dtype(np.float32)}

    def test_of_numbers(self, name, parameters):
        if name == "dirichlet":
            return
        numbers = [float(p.flat[0]) for p in parameters]
        f = getattr(random, name)
        x = grad(lambda *p: f(rng(), *p))(*numbers)
        assert type(x) is float
        assert np.isfinite(x)


@pytest.mark.parametrize(("name", "parameters"), PATHWISE)
def test_derivatives(name, parameters):
    f = getattr(random, name)
    check_grads(lambda *p: f(rng(), *p), parameters, order=2, atol=1e-6)
    check_grads(lambda *p: f(rng(), *p, size=(2, 2, 3)), parameters)


def test_a_gamma_draw_keeps_its_probability():
    """The draw is a quantile: its derivatives are those of the quantile function."""
    a = np.array([0.3, 1.0, 4.0, 60.0])
    x = rng().standard_gamma(a)
    p = scipy.special.gammainc(a, x)

    def quantile(a):
        return scipy.special.gammaincinv(a, p)

    h = 1e-4
    slope = vjp(lambda a: random.standard_gamma(rng(), a), a)[1](np.ones(4))[0]
    close(slope, (quantile(a + h) - quantile(a - h)) / (2 * h), rtol=1e-5)
    jvp = lantern.jvp(lambda a: random.standard_gamma(rng(), a), (a,), (np.ones(4),))
    close(jvp[1], slope, rtol=1e-13)

    def slope_at(a):
        return vjp(lambda b: random.standard_gamma(rng(), b), a)[1](np.ones(4))[0]

    second = grad(lambda a: lantern.sum(slope_at(a)))(a)
    above, below = (lantern.gamma_slope(b, quantile(b)) for b in (a + h, a - h))
    close(second, (above - below) / (2 * h), rtol=1e-5)


def test_gradients_of_expectations():
    """The mean of a gamma draw is its shape; that of a beta draw's log is known."""
    n = 200_000
    mean = grad(lambda a: lantern.mean(random.gamma(rng(), a, 2.0, size=n)))(1.7)
    assert mean == pytest.approx(2.0, rel=2e-2)

    def expected(a):
        return lantern.mean(lantern.log(random.beta(rng(1), a, 2.0, size=n)))

    exact = scipy.special.polygamma(1, 1.5) - scipy.special.polygamma(1, 3.5)
    assert grad(expected)(1.5) == pytest.approx(exact, rel=2e-2)


def test_tiny_shapes_do_not_underflow():
    alpha = np.full((3,), 1e-3)
    draws, pullback = vjp(lambda a: random.dirichlet(rng(), a, 50), alpha)
    close(draws.sum(axis=-1), 1)
    assert np.all(np.isfinite(pullback(rng(1).normal(size=(50, 3)))[0]))
    x = random.standard_gamma(rng(), np.full(50, 1e-3))
    assert np.any(x == 0)
    slopes = vjp(lambda a: random.standard_gamma(rng(), a), np.full(50, 1e-3))[1](
        np.ones(50)
    )[0]
    assert np.all(np.isfinite(slopes))


def test_small_shapes_have_the_right_distribution():
    x = random.beta(rng(), 0.05, 0.07, size=20_000)
    for bound in (1e-9, 0.01, 0.5, 0.99):
        expected = scipy.special.betainc(0.05, 0.07, bound)
        assert np.mean(x < bound) == pytest.approx(expected, abs=0.015)


class TestCategories:
    logits = np.array([0.0, 1.0, -2.0, 0.5])

    def test_frequencies(self):
        draws = random.categorical(rng(), self.logits, size=(20_000,))
        found = np.bincount(draws, minlength=4) / 20_000
        close(found, scipy.special.softmax(self.logits), atol=0.02)

    def test_are_constants_and_take_batches(self):
        batch = np.stack([self.logits, 100 * self.logits])
        seen = []
        grad(lambda x: seen.append(random.categorical(rng(), x)) or lantern.sum(x))(
            batch
        )
        assert type(seen[0]) is np.ndarray
        assert seen[0].shape == (2,)
        assert random.categorical(rng(), batch, size=(5, 2)).shape == (5, 2)
        assert int(random.categorical(rng(), [0.0, 900.0])) == 1

    def test_relaxed(self):
        relaxed = random.gumbel_softmax(rng(), self.logits, 0.01)
        assert np.argmax(relaxed) == random.categorical(rng(), self.logits)
        close(relaxed.sum(), 1)
        check_grads(
            lambda x, t: random.gumbel_softmax(rng(), x, t), (self.logits, 0.8), order=2
        )
        batch = np.stack([self.logits, -self.logits], axis=1)
        close(random.gumbel_softmax(rng(), batch, axis=0).sum(axis=0), 1)


def test_misuse():
    with pytest.raises(ArgumentError, match="default_rng"):
        random.normal(1.0, 2.0)
    with pytest.raises(ArgumentError, match="module"):
        random.normal(np.random)
    with pytest.raises(ShapeError, match="size=\\(2,\\)"):
        random.normal(rng(), A, size=2)
    with pytest.raises(ValueError, match="shape"):
        random.gamma(rng(), -1.0)
    assert random.normal(rng=rng(), scale=2.0) == 2 * rng().standard_normal()
