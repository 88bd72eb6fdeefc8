"""Reductions, running operations, differences and statistics: options and edges."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.special

import lantern
from lantern import grad, vjp
from lantern.errors import DetachError, MissingRuleError, ShapeError
from lantern.testing import check_grads

INF, NAN = math.inf, math.nan
same, close = np.testing.assert_array_equal, np.testing.assert_allclose
X = np.random.default_rng(0).uniform(0.5, 2.0, (2, 3, 4))
HOLES = np.where(np.arange(24).reshape(2, 3, 4) % 5 == 1, NAN, X)
SOME = np.arange(1.0, 5)
MASK = np.arange(24).reshape(2, 3, 4) % 3 != 0
M = np.random.default_rng(1).normal(size=(3, 7))
Z = M + 1j * M[::-1]
W = np.linspace(0.5, 2.0, 7)


def gradient(f, x):
    """The gradient of a function's result, summed."""
    y, pullback = vjp(f, np.asarray(x))
    return pullback(np.ones_like(y))[0]


OPTIONS = [
    {},
    {"axis": 1},
    {"axis": -1, "keepdims": True},
    {"axis": (0, 2)},
    {"axis": (2, 0), "keepdims": True},
    {"axis": ()},
    {"axis": None, "keepdims": True},
]
SUMS = [{"where": MASK}, {"where": MASK[0], "axis": 1}]
TYPES = [{"dtype": np.float32}, {"dtype": np.float32, "axis": 0}]
STARTS = [{"initial": 2.5}, {"initial": 1.1, "where": MASK, "axis": 2}]
REDUCTIONS = {
    "sum": OPTIONS + SUMS + TYPES + STARTS,
    "prod": OPTIONS + SUMS + TYPES + STARTS,
    "mean": OPTIONS + SUMS + TYPES,
    "var": [*OPTIONS, *SUMS, *TYPES, {"ddof": 1}, {"correction": 2, "axis": 1}],
    "std": [*OPTIONS, *SUMS, *TYPES, {"ddof": 1}, {"correction": 2, "axis": 2}],
    "max": OPTIONS + STARTS,
    "min": OPTIONS + STARTS,
    "amax": OPTIONS[:3],
    "amin": OPTIONS[:3],
    "ptp": OPTIONS[:5],
    "median": OPTIONS[:5],
    "average": [*OPTIONS[:5], {"weights": X}, {"weights": SOME, "axis": -1}],
    "cumsum": [{}, {"axis": 1}, {"axis": -1, "dtype": np.float32}],
    "cumprod": [{}, {"axis": 1}, {"axis": -1, "dtype": np.float32}],
    "cumulative_sum": [{"axis": 1}, {"axis": -1, "include_initial": True}],
    "cumulative_prod": [{"axis": 1}, {"axis": 0, "include_initial": True}],
    "diff": [{}, {"n": 2, "axis": 1}, {"axis": 0, "prepend": 1.0}, {"append": X}],
    "ediff1d": [{}, {"to_begin": 1.0, "to_end": [2.0, 3.0]}],
    "gradient": [{}, {"axis": 1}, {"axis": (0, -1)}, {"axis": 2, "edge_order": 2}],
    "trapezoid": [{}, {"dx": 0.5, "axis": 1}, {"x": [0.0, 1.0, 3.0, 4.0]}, {"x": X}],
}  # fmt: skip
HOLED = {
    "nansum": OPTIONS + SUMS + STARTS,
    "nanprod": OPTIONS + SUMS + STARTS,
    "nanmean": OPTIONS[:5] + SUMS,
    "nanvar": [*OPTIONS[:5], {"ddof": 1}, {"correction": 1, "axis": 1}],
    "nanstd": [*OPTIONS[:5], {"ddof": 1}],
    "nanmax": OPTIONS[:5] + STARTS,
    "nanmin": OPTIONS[:5] + STARTS,
    "nanmedian": OPTIONS[:5],
    "nancumsum": [{}, {"axis": 1}],
    "nancumprod": [{}, {"axis": 2}],
}
CALLS = [
    *((name, X, o) for name, options in REDUCTIONS.items() for o in options),
    *((name, HOLES, o) for name, options in HOLED.items() for o in options),
    *((name, M, {"axis": 1}) for name in ("sum", "mean", "prod", "cumsum")),
    *((name, Z, o) for name in ("sum", "mean", "prod", "cumsum", "cumprod", "diff",
                                "var", "std") for o in ({}, {"axis": 0})),
]  # fmt: skip


def name_of(value):
    if isinstance(value, dict):
        return ",".join(f"{k}={np.shape(v) or v}" for k, v in value.items()) or "plain"
    return str(value) if isinstance(value, str) else str(np.shape(value))


@pytest.mark.parametrize(("name", "x", "options"), CALLS, ids=name_of)
class TestLikeNumPy:
    def test_value(self, name, x, options):
        want = getattr(np, name)(x, **options)
        got = getattr(lantern, name)(x, **options)
        parts = zip(got, want, strict=True) if type(want) is tuple else [(got, want)]
        for a, b in parts:
            close(a, b, rtol=1e-5 if b.dtype == np.float32 else 1e-14, atol=1e-15)
            assert a.dtype == b.dtype
            assert a.shape == b.shape

    def test_numpy_hands_it_over(self, name, x, options):
        for module in (np, lantern):
            f = getattr(module, name)
            results = vjp(lambda x, f=f: f(x, **options), x)
            seed = lantern.tree_map(np.ones_like, results[0])
            results = results[0], results[1](seed)
            if module is np:
                expected = results
        for a, b in zip(*map(lantern.tree_leaves, (expected, results)), strict=True):
            same(a, b)

    def test_derivatives(self, name, x, options):
        single = options.get("dtype") == np.float32
        plain = {k: v for k, v in options.items() if k != "dtype"}

        def f(*parts):
            y = np.zeros(x.shape, x.dtype)
            y = lantern.scatter(parts[0], np.nonzero(x == x), x.shape) + np.where(
                x == x, y, NAN
            )
            return getattr(lantern, name)(y, **plain)

        check_grads(f, (x[x == x],), order=1 if single else 2, atol=1e-5, rtol=1e-6)


WHOLE = np.array([[[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]], [[9, 7, 9, 3]] * 3])
ON_INTEGERS = [
    *((name, o) for name, options in REDUCTIONS.items() for o in options),
    *((name, o) for name in HOLED for o in HOLED[name]),
    *(("quantile", {"q": [0.3, 0.9], "method": m}) for m in ("linear", "lower")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), ON_INTEGERS, ids=name_of)
def test_integers_and_bools_like_numpy(name, options):
    options = {k: v for k, v in options.items() if k != "to_begin"}
    if "initial" in options:
        options["initial"] = 3
    if "to_end" in options:
        options["to_end"] = [2]
    for x in (WHOLE, WHOLE > 4) if name in ("mean", "cumsum") else (WHOLE,):
        want = getattr(np, name)(x, **options)
        got = getattr(lantern, name)(x, **options)
        parts = zip(got, want, strict=True) if type(want) is tuple else [(got, want)]
        for a, b in parts:
            close(a, b, rtol=1e-5 if b.dtype == np.float32 else 1e-14)
            assert a.dtype == b.dtype


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("quantile", {"a": X, "q": 0.3, "axis": 1}),
        ("percentile", {"a": X, "q": [30.0]}),
        ("average", {"a": X, "weights": X}),
        ("cov", {"m": M, "y": M}),
        ("trapezoid", {"y": M, "dx": 2.0}),
        ("interp", {"x": [0.5], "xp": [0.0, 1.0], "fp": [2.0, 4.0]}),
        ("convolve", {"a": W, "v": W, "mode": "same"}),
        ("polyval", {"p": W, "x": 2.0}),
        ("clip", {"a": X, "a_min": 0.7, "a_max": 1.0}),
        ("sum", {"a": X, "axis": 1}),
        ("linspace", {"start": 0.0, "stop": 1.0, "num": 3}),
        ("histogram", {"a": X, "bins": 3}),
        ("nan_to_num", {"x": HOLES, "nan": 1.0}),
    ],
)
def test_arguments_by_the_names_that_numpy_gives_them(name, arguments):
    want, got = getattr(np, name)(**arguments), getattr(lantern, name)(**arguments)
    parts = zip(got, want, strict=True) if type(want) is tuple else [(got, want)]
    for a, b in parts:
        close(a, b, rtol=1e-13)


class TestOptions:
    def test_initial_and_weights_are_differentiated(self):
        for name in ("sum", "prod", "max", "min"):
            f = getattr(lantern, name)
            check_grads(lambda x, i, f=f: f(x, axis=1, initial=i), (X, 1.2), atol=1e-6)
        check_grads(lambda x, w: lantern.average(x, weights=w), (X, X[::-1]), order=2)
        check_grads(
            lambda x, w: lantern.average(x, (2, 1), w, returned=True),
            (X, np.arange(1.0, 13).reshape(4, 3)),
        )

    def test_what_is_left_out_has_derivative_zero(self):
        x = np.where(MASK, X, 0.0)
        for name in ("sum", "mean", "prod", "var", "std"):
            f = partial(getattr(lantern, name), where=MASK)
            with np.errstate(divide="ignore"):
                x_bar = gradient(lambda x, f=f: f(lantern.log(x)), x)
            assert np.all(x_bar[~MASK] == 0), name
            assert np.all(np.isfinite(x_bar)), name

    def test_a_target_is_refused(self):
        out = np.zeros(())
        for name in ("sum", "max", "std", "median", "cumsum", "nanmean", "ptp"):
            with pytest.raises(MissingRuleError, match="out="):
                getattr(lantern, name)(X, out=out)
            with pytest.raises((MissingRuleError, DetachError)):
                grad(lambda x, name=name: getattr(np, name)(x, out=out))(X)
        with pytest.raises(MissingRuleError, match="mean="):
            lantern.var(X, mean=1.0)
        with pytest.raises(MissingRuleError, match="weights="):
            lantern.quantile(X, 0.5, method="inverted_cdf", weights=X)

    def test_where_without_an_initial_value(self):
        with pytest.raises(ShapeError, match="initial"):
            lantern.max(X, where=MASK)

    def test_numbers_and_lists(self):
        assert lantern.sum(2.0) == 2.0
        assert grad(lambda x: lantern.sum([x, x * x]))(3.0) == 7.0
        assert grad(lambda x: lantern.max([[x, 1.0], [2.0, x * x]]))(3.0) == 6.0
        assert grad(lambda x: lantern.std([x, 1.0, 5.0]))(3.0) == pytest.approx(0.0)
        assert grad(lantern.mean)(3.0) == 1.0
        assert grad(lambda x: lantern.median([x, 1.0, 5.0]))(3.0) == 1.0

    def test_methods(self):
        for name in "sum mean prod max min ptp var std cumsum cumprod".split():
            f = getattr(lantern, name)
            expected = gradient(lambda x, f=f: f(x, 1), X)
            same(gradient(lambda x, name=name: getattr(x, name)(1), X), expected)
        seen = []
        grad(lambda x: seen.extend([x.argmax(1), x.any(), x.round(1)]) or x.sum())(X)
        for got, want in zip(seen, (X.argmax(1), X.any(), X.round(1)), strict=True):
            same(got, want)


class TestEdges:
    def test_ties_share_equally(self):
        x = np.array([2.0, 1.0, 2.0, 2.0])
        same(gradient(lantern.max, x), np.array([1, 0, 1, 1]) / 3)
        same(gradient(lantern.ptp, x), np.array([1 / 3, -1, 1 / 3, 1 / 3]))
        close(gradient(lantern.cummax, x), [1 + 1 + 1 / 2 + 1 / 3, 0, 5 / 6, 1 / 3])
        close(gradient(lantern.cummin, -x), [1 + 1 + 1 / 2 + 1 / 3, 0, 5 / 6, 1 / 3])
        same(
            gradient(lambda x: lantern.max(x, initial=2.0), np.ones(2) * 2),
            [0.25, 0.25],
        )

    def test_nan_takes_the_derivative_of_what_it_decides(self):
        x = np.array([1.0, NAN, 3.0])
        for name in ("max", "min"):
            same(gradient(getattr(lantern, name), x), [0, 1, 0])
        same(gradient(lantern.cummax, x), [1, 2, 0])
        same(gradient(lantern.median, x), [0, 1, 0])
        assert math.isnan(lantern.median(x))

    def test_products_with_zeros_are_exact(self):
        for x in ([0.0, 2.0, 3.0], [2.0, 0.0, 3.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]):
            for f in (lantern.prod, lantern.cumprod):
                check_grads(f, (np.array(x),), order=2)

    def test_std_of_a_constant(self):
        same(gradient(lantern.std, np.ones(3)), np.zeros(3))
        same(gradient(lantern.nanstd, np.array([1.0, NAN, 1.0])), np.zeros(3))

    def test_variance_of_one_number_with_a_correction_is_no_division_error(self):
        with np.errstate(all="ignore"):
            assert np.all(np.isnan(gradient(lambda x: lantern.var(x, ddof=1), [1.0])))

    def test_empty_arrays(self):
        empty = np.zeros((0, 3))
        for f in (lantern.sum, lantern.prod, lantern.cumsum, lantern.cumprod):
            assert gradient(f, empty).shape == (0, 3)
        assert gradient(lambda x: lantern.max(x, axis=1), empty).shape == (0, 3)
        with pytest.raises(ValueError, match="zero-size"):
            grad(lantern.max)(empty)

    def test_slices_of_nan_only(self):
        x = np.array([[NAN, NAN], [1.0, NAN]])
        for name in ("nanmax", "nanmin", "nanmedian"):
            f = partial(getattr(lantern, name), axis=1)
            same(f(x), [NAN, 1.0])
            y, pullback = vjp(f, x)
            assert pullback(np.ones_like(y))[0][1].tolist() == [1.0, 0.0]
        same(gradient(lambda x: lantern.nansum(x, axis=1), x), [[0, 0], [1, 0]])

    def test_nan_has_derivative_zero(self):
        for name in HOLED:
            x_bar = gradient(getattr(lantern, name), HOLES)
            assert np.all(x_bar[np.isnan(HOLES)] == 0), name
            assert np.all(np.isfinite(x_bar)), name

    def test_running_operations_along_axes_of_any_length(self):
        for n in range(1, 10):
            x = np.random.default_rng(n).normal(size=(2, n))
            for f in (lantern.cumsum, lantern.cumprod, lantern.cummax, lantern.cummin):
                check_grads(lambda x, f=f: f(x, axis=1), (x,), order=2, atol=1e-6)
        for name, ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
            same(getattr(lantern, name)(X, 1), ufunc.accumulate(X, 1))

    def test_running_operations_ask_for_an_axis(self):
        with pytest.raises(ShapeError, match="axis"):
            lantern.cumulative_sum(X)
        with pytest.raises(np.exceptions.AxisError):
            lantern.cumsum(X, axis=3)


class TestExponentials:
    @pytest.mark.parametrize(
        ("shape", "axis", "left"),
        [
            ((0,), None, ()),
            ((2, 0), 1, (2,)),
            ((2, 0), 0, (0,)),
            ((0, 3), 0, (3,)),
            ((0, 3), 1, (0,)),
            ((2, 0), None, ()),
            ((2, 0, 3), (1, 2), (2,)),
        ],
    )
    def test_logsumexp_of_nothing(self, shape, axis, left):
        nothing = np.zeros(shape)
        f = lambda x: lantern.logsumexp(x, axis=axis)  # noqa: E731
        value, pullback = lantern.vjp(f, nothing)
        np.testing.assert_array_equal(value, np.full(left, -np.inf))
        assert pullback(np.ones(left))[0].shape == shape
        value, moved = lantern.jvp(f, (nothing,), (nothing,))
        np.testing.assert_array_equal(value, np.full(left, -np.inf))
        np.testing.assert_array_equal(moved, np.zeros(left))
        assert grad(lambda x: lantern.jvp(f, (x,), (x,))[1].sum())(nothing).size == 0
        with_factors = lantern.logsumexp(nothing, axis=axis, b=nothing)
        np.testing.assert_array_equal(with_factors, value)

    @pytest.mark.parametrize("f", [lantern.softmax, lantern.log_softmax])
    def test_softmax_of_nothing(self, f):
        for shape in ((2, 0), (0, 3)):
            x = np.zeros(shape)
            value, pullback = lantern.vjp(lambda x: f(x, axis=1), x)
            assert value.shape == pullback(x)[0].shape == shape

    def test_logsumexp_with_factors_and_sign(self):
        b = np.where(MASK, 1.5, -0.2)
        for options in ({}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}):
            want = scipy.special.logsumexp(X, b=b, return_sign=True, **options)
            got = lantern.logsumexp(X, b=b, return_sign=True, **options)
            for g, w in zip(got, want, strict=True):
                close(g, w, rtol=1e-14)
                assert np.shape(g) == np.shape(w)
            check_grads(
                lambda x, b, o=options: lantern.logsumexp(x, b=b, **o),
                (X, np.abs(b)),
                order=2,
            )
        assert lantern.logsumexp(1000.0, b=2.0) == pytest.approx(1000 + math.log(2))

    def test_infinities(self):
        x = np.array([-INF, -INF])
        assert lantern.logsumexp(x) == -INF
        same(gradient(lantern.logsumexp, x), [0, 0])
        same(gradient(lantern.logsumexp, [-INF, 1.0]), [0, 1])


METHODS = (
    "linear lower higher midpoint nearest hazen weibull median_unbiased "
    "normal_unbiased interpolated_inverted_cdf inverted_cdf averaged_inverted_cdf "
    "closest_observation"
).split()


class TestQuantiles:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("axis", [None, 1, (0, -1)])
    def test_like_numpy(self, method, axis):
        for q in (0.3, 0.0, 1.0, [0.1, 0.5, 0.77], [[0.2], [0.9]]):
            for keepdims in (False, True):
                options = {"axis": axis, "method": method, "keepdims": keepdims}
                want = np.quantile(X, q, **options)
                same(lantern.quantile(X, q, **options), want)
                got = vjp(lambda x, o=options, q=q: np.quantile(x, q, **o), X)[0]
                same(got, want)
                want = np.percentile(X, np.multiply(q, 100), **options)
                close(
                    np.asarray(lantern.percentile(X, np.multiply(q, 100), **options)),
                    want,
                )
        f = partial(lantern.quantile, axis=axis, method=method)
        check_grads(lambda x: f(x, [0.1, 0.62]), (X,), order=2)

    @pytest.mark.parametrize("method", METHODS)
    def test_without_nan_like_numpy(self, method):
        for axis in (None, 1, (0, 2)):
            options = {"axis": axis, "method": method}
            want = np.nanquantile(HOLES, [0.2, 0.7], **options)
            same(lantern.nanquantile(HOLES, [0.2, 0.7], **options), want)
            want = np.nanpercentile(HOLES, 40, **options)
            close(lantern.nanpercentile(HOLES, 40, **options), want, rtol=1e-15)

    def test_in_q(self):
        x = np.array([3.0, 1.0, 2.0, 7.0])
        check_grads(lambda x, q: lantern.quantile(x, q), (x, 0.4), order=2)
        check_grads(lambda q: lantern.quantile(X, q, axis=1), (np.array([0.1, 0.8]),))
        assert grad(lambda q: lantern.quantile(x, q))(1.0) == 12.0
        assert grad(lambda q: lantern.percentile(x, q))(0.0) == 0.03
        assert grad(lambda q: lantern.quantile(x[:1], q))(0.5) == 0.0
        with pytest.raises(MissingRuleError, match="method='lower'"):
            grad(lambda q: lantern.quantile(x, q, method="lower"))(0.5)

    def test_refuses_what_numpy_refuses(self):
        with pytest.raises(ValueError, match="range"):
            lantern.quantile(X, 1.5)
        with pytest.raises(ValueError, match="method"):
            lantern.quantile(X, 0.5, method="no such")

    def test_infinite_neighbours_do_not_spoil_what_is_not_between(self):
        x = np.array([1.0, 2.0, INF])
        assert lantern.median(x) == 2.0
        assert lantern.quantile(x, 0.5) == 2.0

    def test_float32(self):
        x = X.astype(np.float32)
        for f in (lantern.median, lambda x: lantern.quantile(x, [0.3, 0.6], axis=1)):
            assert f(x).dtype == np.float32
            assert gradient(f, x).dtype == np.float32


class TestCovariances:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"rowvar": False},
            {"bias": True},
            {"ddof": 2},
            {"y": M[::-1] * 2.0},
            {"fweights": np.array([1, 2, 3, 1, 1, 2, 4])},
            {"aweights": W},
            {"aweights": W, "fweights": np.array([1, 2, 3, 1, 1, 2, 4])},
            {"aweights": W, "ddof": 0},
            {"dtype": np.float32},
        ],
        ids=name_of,
    )
    def test_like_numpy(self, options):
        for x in (M, Z, M[0]):
            if (x.ndim == 1 and "y" in options) or (x is Z and "dtype" in options):
                continue
            want = np.cov(x, **options)
            got = lantern.cov(x, **options)
            close(got, want, rtol=1e-6 if "dtype" in options else 1e-13)
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            if "dtype" not in options:
                check_grads(lambda x, o=options: lantern.cov(x, **o), (x,), order=2)

    def test_in_the_weights(self):
        check_grads(lambda w: lantern.cov(M, aweights=w), (W,), order=2)

    def test_correlations(self):
        for x in (M, Z, M[0]):
            close(lantern.corrcoef(x), np.corrcoef(x), rtol=1e-13)
        off = ~np.eye(3, dtype=bool)
        check_grads(lambda x: lantern.corrcoef(x)[off], (M,), order=2)
        close(gradient(lambda x: lantern.corrcoef(x)[0, 0], M), 0, atol=1e-15)
        same(lantern.corrcoef(M.T, rowvar=False), lantern.corrcoef(M))

    def test_bad_input(self):
        with pytest.raises(ShapeError, match="too many axes"):
            lantern.cov(X)
        with pytest.raises(ShapeError, match="sum to zero"):
            lantern.average(M, 1, weights=np.array([1.0, -1, 0, 0, 0, 0, 0]))
        with pytest.raises(ShapeError, match="do not fit"):
            lantern.average(M, 0, weights=W)


class TestDifferences:
    def test_gradient_with_spacings(self):
        x, y = np.array([0.0, 0.3, 1.0]), np.array([0.0, 1.0, 1.5, 4.0])
        even = np.array([0.0, 0.5, 1.0, 1.5])
        for spacing, options in [
            ((0.5,), {}),
            ((2.0, x, y), {"edge_order": 1}),
            ((x, y), {"axis": (1, 2), "edge_order": 2}),
            ((even,), {"axis": 2, "edge_order": 2}),
        ]:
            tall = np.concatenate([X, X[::-1] * 2.0])
            for a, b in zip(
                np.atleast_1d(np.array(np.gradient(tall, *spacing, **options))),
                np.atleast_1d(np.array(lantern.gradient(tall, *spacing, **options))),
                strict=True,
            ):
                close(a, b, rtol=1e-13, atol=1e-13)
            check_grads(
                lambda f, o=options, s=spacing: lantern.gradient(f, *s, **o), (tall,)
            )
        f = partial(lantern.gradient, axis=2, edge_order=2)
        check_grads(f, (X, y), order=2, atol=1e-5)
        check_grads(lambda f, h: lantern.gradient(f, h, axis=2), (X, 0.7), order=2)

    def test_gradient_refuses(self):
        with pytest.raises(ShapeError, match="edge_order"):
            lantern.gradient(X, axis=0, edge_order=2)
        with pytest.raises(ShapeError, match="spacings"):
            lantern.gradient(X, 1.0, 2.0)
        with pytest.raises(ShapeError, match="coordinates"):
            lantern.gradient(X, np.arange(7.0), axis=1)

    def test_integral_in_both(self):
        x = np.sort(M, axis=1)
        check_grads(lambda y, x: lantern.trapezoid(y, x), (M, x), order=2)
        check_grads(lambda y, x: lantern.trapezoid(y, x, axis=0), (M, x[:, 0]), order=2)

    def test_differences_of_bools_and_ends(self):
        flags = np.array([True, False, False])
        same(lantern.diff(flags), np.diff(flags))
        check_grads(lambda x, p: lantern.diff(x, 2, prepend=p), (M, M[:, :1]), order=2)
        with pytest.raises(ShapeError, match="negative"):
            lantern.diff(M, -1)


class TestHistograms:
    x = np.array([0.1, 0.9, 0.35, 0.35, 0.6, 1.4])
    w = np.linspace(0.5, 1.5, 6)

    @pytest.mark.parametrize("density", [None, True])
    @pytest.mark.parametrize(
        ("bins", "limits"),
        [(4, None), (3, (0.2, 1.0)), ([0.0, 0.5, 0.6, 2.0], None), ("auto", None)],
    )
    def test_like_numpy(self, bins, limits, density):
        options = {"bins": bins, "range": limits, "density": density}
        want = np.histogram(self.x, **options)
        for got in (
            lantern.histogram(self.x, **options),
            vjp(lambda x: np.histogram(x, **options)[1], self.x)[0:1],
        ):
            close(got[-1], want[-1], rtol=1e-15)
        close(lantern.histogram(self.x, **options)[0], want[0])
        if bins == "auto":
            return  # NumPy takes no weights then
        want = np.histogram(self.x, weights=self.w, **options)[0]
        close(lantern.histogram(self.x, weights=self.w, **options)[0], want)
        weighed = lambda w: lantern.histogram(self.x, weights=w, **options)[0]  # noqa: E731
        close(vjp(weighed, self.w)[0], want)
        check_grads(weighed, (self.w,), order=2)

    def test_edges_move_with_the_outermost_elements(self):
        check_grads(lambda x: lantern.histogram_bin_edges(x, 4), (self.x,))
        check_grads(lambda x: lantern.histogram(x, 4, density=True), (self.x,), order=2)
        check_grads(
            lambda a, b: lantern.histogram(self.x, 3, (a, b), density=True), (0.2, 1.0)
        )
        same(lantern.histogram_bin_edges(np.ones(3), 2), [0.5, 1.0, 1.5])
        edges = lambda x: lantern.histogram_bin_edges(x, 2)[0]  # noqa: E731
        close(gradient(edges, np.ones(3)), np.full(3, 1 / 3))

    def test_in_several_dimensions(self):
        y = self.x[::-1] ** 2
        for density in (None, True):
            for bins in (3, [2, 3], [[0.0, 0.5, 2.0], 2]):
                want = np.histogram2d(self.x, y, bins, density=density)
                got = lantern.histogram2d(self.x, y, bins, density=density)
                for a, b in zip(got, want, strict=True):
                    close(a, b, rtol=1e-14)
                check_grads(
                    lambda x, y, b=bins, d=density: lantern.histogram2d(
                        x, y, b, density=d
                    )[0],
                    (self.x, y),
                )
        sample = np.stack([self.x, y], axis=1)
        want = np.histogramdd(sample, 3, weights=self.w)
        close(lantern.histogramdd(sample, 3, weights=self.w)[0], want[0])
        with pytest.raises(MissingRuleError, match="weights"):
            grad(lambda w: lantern.histogramdd(sample, 3, weights=w)[0][0, 0])(self.w)

    def test_sums_of_weights(self):
        index, w = np.array([0, 0, 2]), np.array([1.0, 2.0, 3.0])
        same(lantern.bincount(index, w), np.bincount(index, weights=w))
        same(lantern.bincount(index), np.bincount(index))
        f = partial(lantern.bincount, index, minlength=5)
        same(f(w), [3, 0, 3, 0, 0])
        same(grad(lambda w: f(w)[0] ** 2)(w), [6.0, 6.0, 0.0])


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std"])
@pytest.mark.parametrize(
    "where", [[-1.0, 0.0, 2.0], [[3], [0]]], ids=["floats", "ints"]
)
def test_elements_count_where_numbers_are_not_zero(name, where):
    reduce, x = getattr(lantern, name), np.array([[4.0, 1.0, 9.0], [2.0, 3.0, 5.0]])
    where = np.array(where)

    def f(x, where):
        return lantern.sum(reduce(np.sqrt(x), where=where))

    value, gradient = lantern.value_and_grad(f)(x, where)
    expected = lantern.value_and_grad(f)(x, where != 0)
    np.testing.assert_allclose(value, expected[0], rtol=1e-15)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-15)
