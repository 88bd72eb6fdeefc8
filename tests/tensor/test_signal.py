"""Fourier transforms, convolution, interpolation and polynomials."""

import math
from functools import partial

import numpy as np
import pytest

import lantern
from lantern import grad, vjp
from lantern.errors import ArgumentError, MissingRuleError, ShapeError
from lantern.testing import check_grads

same, close = np.testing.assert_array_equal, np.testing.assert_allclose
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5))
Z = X + 1j * RNG.normal(size=X.shape)
NORMS = (None, "backward", "ortho", "forward")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("n", [None, 4, 7])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_one_axis(name, n, axis, norm):
    for x in (X,) if name in ("rfft", "ihfft") else (X, Z):
        f = partial(getattr(lantern.fft, name), n=n, axis=axis, norm=norm)
        g = partial(getattr(np.fft, name), n=n, axis=axis, norm=norm)
        same(f(x), g(x))
        same(vjp(g, x)[0], g(x))
        check_grads(f, (x,), order=2)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("s", "axes"),
    [(None, None), (None, (1,)), ((4, 3), (0, 2)), ((4, -1), (-1, 0)), (None, (2, 0))],
)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_several_axes(name, s, axes, norm):
    for x in (X,) if name == "rfftn" else (X, Z):
        f = partial(getattr(lantern.fft, name), s=s, axes=axes, norm=norm)
        g = partial(getattr(np.fft, name), s=s, axes=axes, norm=norm)
        same(f(x), g(x))
        same(vjp(g, x)[0], g(x))
        check_grads(f, (x,))


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_transforms_along_two_axes(name):
    x = X if name == "rfft2" else Z
    f, g = getattr(lantern.fft, name), getattr(np.fft, name)
    same(f(x), g(x))
    same(f(x, (2, 6), (0, 1)), g(x, (2, 6), (0, 1)))
    check_grads(f, (x,), order=2)


def test_shifts_and_frequencies():
    for axes in (None, 0, (1, 2), -1):
        for name in ("fftshift", "ifftshift"):
            f, g = getattr(lantern.fft, name), getattr(np.fft, name)
            same(f(Z, axes), g(Z, axes))
            check_grads(lambda x, f=f, a=axes: f(x, a), (Z,))
    for n in (4, 5):
        same(lantern.fft.fftfreq(n, 0.1), np.fft.fftfreq(n, 0.1))
        same(lantern.fft.rfftfreq(n, 0.1), np.fft.rfftfreq(n, 0.1))
    assert grad(lambda d: lantern.fft.fftfreq(4, d)[1])(0.5) == -1.0


def test_every_name_of_numpy_fft_is_here():
    assert set(lantern.fft.__all__) == set(np.fft.__all__)


def test_energy_of_a_real_signal_is_kept():
    """Parseval: the gradient of the energy of a spectrum is that of the signal's."""
    x = X[0, 0]
    spectrum = grad(lambda x: lantern.sum(abs(lantern.fft.fft(x, norm="ortho")) ** 2))
    close(spectrum(x), 2 * x, rtol=1e-13)
    ours = grad(lambda x: lantern.sum(abs(lantern.fft.rfft(x)[1:]) ** 2))
    theirs = grad(lambda x: np.sum(np.abs(np.fft.rfft(x)[1:]) ** 2))
    same(ours(x), theirs(x))


def test_single_precision_stays_single():
    x = X.astype(np.float32)
    for name in ("fft", "rfft", "irfft", "fftn"):
        y, pullback = vjp(getattr(lantern.fft, name), x)
        assert y.real.dtype == np.float32
        assert pullback(np.ones_like(y))[0].dtype == np.float32


def test_transforms_refuse():
    with pytest.raises(MissingRuleError, match="out="):
        lantern.fft.fft(X, out=Z)
    with pytest.raises(ShapeError, match="2 lengths for 1 axis"):
        lantern.fft.fftn(X, (2, 3), (0,))
    with pytest.raises(ValueError, match="norm"):
        grad(lambda x: abs(lantern.fft.fft(x, norm="no such")[0]))(X[0, 0])


SIGNALS = [
    (RNG.normal(size=n) + 1j * c * RNG.normal(size=n), RNG.normal(size=m))
    for n, m, c in [(5, 3, 0), (3, 5, 0), (4, 4, 0), (6, 1, 0), (5, 4, 1), (2, 5, 1)]
]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize(("a", "v"), SIGNALS, ids=np.shape)
def test_convolution(name, a, v, mode):
    a = a if np.any(a.imag) else a.real
    v = v * 1j + v[::-1] if np.iscomplexobj(a) else v
    f, g = getattr(lantern, name), getattr(np, name)
    close(f(a, v, mode), g(a, v, mode), rtol=1e-13, atol=1e-15)
    same(vjp(lambda a: g(a, v, mode), a)[0], f(a, v, mode))
    check_grads(partial(f, mode=mode), (a, v), order=2)


def test_convolution_of_numbers_and_lists_and_of_what_is_none():
    same(lantern.convolve([1.0, 2.0], 3.0), [3.0, 6.0])
    assert grad(lambda x: lantern.convolve([x, 1.0], [x, x])[1])(3.0) == 7.0
    for bad in (np.ones((2, 2)), np.ones(0)):
        with pytest.raises(ShapeError, match="one axis"):
            lantern.convolve(bad, bad)
    with pytest.raises(ArgumentError, match="mode"):
        lantern.convolve([1.0], [1.0], "half")


KNOTS, VALUES = np.array([0.0, 0.5, 2.0, 3.0]), np.array([1.0, -1.0, 3.0, 2.0])


class TestInterpolation:
    x = np.array([[-0.5, 0.2, 0.7], [1.9, 2.6, 3.5]])

    def test_value(self):
        for options in (
            {},
            {"left": -7.0},
            {"right": 9.0, "left": 0.5},
            {"period": 2.5},
            {"period": -2.5},
        ):
            want = np.interp(self.x, KNOTS, VALUES, **options)
            close(lantern.interp(self.x, KNOTS, VALUES, **options), want, rtol=1e-14)
            seen = vjp(lambda x, o=options: np.interp(x, KNOTS, VALUES, **o), self.x)[0]
            close(seen, want, rtol=1e-14)
        same(lantern.interp(self.x, KNOTS, VALUES), np.interp(self.x, KNOTS, VALUES))
        complex_ = VALUES + 1j * VALUES[::-1]
        same(
            lantern.interp(self.x, KNOTS, complex_), np.interp(self.x, KNOTS, complex_)
        )

    def test_derivatives(self):
        check_grads(lantern.interp, (self.x, KNOTS, VALUES), order=2)
        check_grads(lantern.interp, (self.x, KNOTS, VALUES + 1j * KNOTS), order=2)
        check_grads(
            lambda x, xp, fp, a, b: lantern.interp(x, xp, fp, a, b),
            (self.x, KNOTS, VALUES, -0.3, 0.8),
            order=2,
        )
        check_grads(
            lambda x, xp, fp: lantern.interp(x, xp, fp, period=4.0),
            (self.x, KNOTS, VALUES),
            order=2,
        )
        check_grads(lambda x: lantern.interp(x, KNOTS, VALUES), (1.3,), order=2)

    def test_at_the_points(self):
        """The mean of the slopes beside a point; the inner one at the ends."""
        f = partial(lantern.interp, xp=None) if False else lantern.interp
        _, pullback = vjp(f, KNOTS, KNOTS, VALUES)
        x_bar, knots_bar, values_bar = pullback(np.ones(4))
        slopes = np.diff(VALUES) / np.diff(KNOTS)
        means = (slopes[1:] + slopes[:-1]) / 2
        close(x_bar, [slopes[0], *means, slopes[-1]])
        close(knots_bar, -x_bar)
        same(values_bar, np.ones(4))

    def test_beyond_the_points(self):
        x_bar, knots_bar, values_bar = vjp(
            lantern.interp, np.array([-9.0, 9.0, 9.0]), KNOTS, VALUES
        )[1](np.ones(3))
        same(x_bar, np.zeros(3))
        same(knots_bar, np.zeros(4))
        same(values_bar, [1.0, 0, 0, 2.0])

    def test_of_one_point(self):
        results = vjp(lantern.interp, self.x, np.ones(1), np.full(1, 3.0))
        same(results[0], np.full((2, 3), 3.0))
        for got, want in zip(results[1](np.ones((2, 3))), (0, 0, 6), strict=True):
            same(got, np.full(got.shape, want))

    def test_types(self):
        x32 = [a.astype(np.float32) for a in (self.x, KNOTS, VALUES)]
        assert lantern.interp(*x32).dtype == np.float32
        assert lantern.interp(1, [0, 2], [4, 8]) == 6.0

    def test_bad_input(self):
        with pytest.raises(ShapeError, match="do not fit"):
            lantern.interp(self.x, KNOTS, VALUES[:2])
        with pytest.raises(ShapeError, match="period"):
            lantern.interp(self.x, KNOTS, VALUES, period=0.0)


class TestPolynomials:
    p = np.array([2.0, -1.0, 0.0, 3.0])
    x = np.array([-1.5, 0.0, 0.7])

    def test_like_numpy(self):
        for name, args in (
            ("polyval", (self.p, self.x)),
            ("polyval", ([1, 2, 3], 2)),
            ("polyder", (self.p,)),
            ("polyder", (self.p, 2)),
            ("polyint", (self.p,)),
            ("polyint", (self.p, 2, [1.0, 5.0])),
            ("polyint", (self.p, 2, 7.0)),
            ("polyadd", (self.p, self.x)),
            ("polysub", (self.x, self.p)),
            ("vander", (self.x,)),
            ("vander", (self.x, 5, True)),
            ("vander", (self.x, 0)),
        ):
            want = getattr(np, name)(*args)
            same(getattr(lantern, name)(*args), want)

    def test_derivatives(self):
        check_grads(lantern.polyval, (self.p, self.x), order=2)
        check_grads(lantern.polyval, (self.p, 0.7), order=2)
        check_grads(lambda p: lantern.polyder(p, 2), (self.p,))
        check_grads(lambda p, k: lantern.polyint(p, 2, k), (self.p, self.x[:2]))
        check_grads(lantern.polyadd, (self.p, self.x))
        check_grads(lantern.polysub, (self.x, self.p))
        check_grads(lambda x: lantern.vander(x, 4), (self.x,), order=2)


def test_unwrapped_angles():
    p = np.cumsum(RNG.normal(size=(2, 9)) * 2, axis=1)
    wrapped = np.angle(np.exp(1j * p))
    for options in ({}, {"axis": 0}, {"discont": 4.0}, {"period": 3.0}):
        f = partial(lantern.unwrap, **options)
        same(f(wrapped), np.unwrap(wrapped, **options))
        same(vjp(f, wrapped)[1](p)[0], p)
    assert grad(lambda x: lantern.unwrap([x, 7.0])[0])(0.5) == 1.0
    with pytest.raises(MissingRuleError, match="period"):
        grad(lambda t: lantern.unwrap(wrapped, period=t)[0, 0])(2 * math.pi)
