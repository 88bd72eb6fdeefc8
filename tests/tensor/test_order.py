"""Padding and order: every mode, ties, nan, positions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lantern
from lantern import grad, vjp
from lantern.errors import MissingRuleError, ShapeError
from lantern.testing import check_grads, random_like


def array(*shape, seed=0):
    """Different numbers, of both signs, none near another or zero."""
    size = int(np.prod(shape))
    numbers = np.random.default_rng(seed).permutation(size) - size // 2
    return (0.2 * (numbers + 0.3 + 0.11 * seed)).reshape(shape)


PAD_MODES = [
    ("constant", {}),
    ("constant", {"constant_values": [[0, 0]]}),
    ("constant", {"constant_values": ((1.0, 2.0), (3.0, 4.0))}),
    ("edge", {}),
    ("reflect", {}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {}),
    ("symmetric", {"reflect_type": "odd"}),
    ("wrap", {}),
    ("linear_ramp", {}),
    ("linear_ramp", {"end_values": (1.0, -2.0)}),
    ("mean", {}),
    ("mean", {"stat_length": 2}),
    ("maximum", {}),
    ("minimum", {"stat_length": ((1, 2), (2, 9))}),
    ("median", {}),
]


class TestPad:
    @pytest.mark.parametrize("width", [0, 1, (0, 2), ((1, 0), (7, 4)), {-1: (1, 5)}])
    @pytest.mark.parametrize(("mode", "options"), PAD_MODES, ids=repr)
    def test_every_mode(self, mode, options, width):
        if isinstance(width, dict) and np.lib.NumpyVersion(np.__version__) < "2.4.0":
            pytest.skip("NumPy takes a dict of widths from 2.4 on")
        x = array(2, 3)

        def f(x):
            return np.pad(x, width, mode, **options)

        try:
            value, pullback = vjp(f, x)
        except MissingRuleError:
            assert mode == "median"
            assert not hasattr(lantern, "median")
            return
        np.testing.assert_allclose(value, f(x), rtol=1e-15, atol=1e-15)
        assert not np.shares_memory(pullback(np.ones_like(value))[0], value)
        check_grads(f, (x,), order=2, atol=1e-6)
        small = vjp(f, x.astype(np.float32))[0]
        assert small.dtype == f(x.astype(np.float32)).dtype == np.float32

    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def test_any_width(self, data):
        shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        width = [data.draw(st.tuples(*2 * [st.integers(0, 9)])) for _ in shape]
        mode, options = data.draw(
            st.sampled_from([m for m in PAD_MODES[3:] if m[0] != "median"])
        )
        if "stat_length" in options:
            options = {"stat_length": data.draw(st.integers(1, 5))}
        x = array(*shape)
        value, pullback = vjp(lambda x: np.pad(x, width, mode, **options), x)
        np.testing.assert_allclose(
            value, np.pad(x, width, mode, **options), rtol=1e-13, atol=1e-13
        )
        y_bar = random_like(value, np.random.default_rng(0))
        x_dot = random_like(x, np.random.default_rng(1))
        y_dot = lantern.jvp(lambda x: np.pad(x, width, mode, **options), (x,), (x_dot,))
        np.testing.assert_allclose(
            np.vdot(pullback(y_bar)[0], x_dot), np.vdot(y_bar, y_dot[1]), rtol=1e-10
        )

    def test_tracked_constants_and_ends(self):
        x, v = array(2, 3), array(2, seed=1)
        for f in (
            lambda x, v: np.pad(x, 2, constant_values=v),
            lambda x, v: np.pad(x, (2, 0), constant_values=[(v[0], v[1])]),
            lambda x, v: np.pad(x, 1, constant_values=((v[0], 1.0), (0, v[1]))),
            lambda x, v: np.pad(x, 2, "linear_ramp", end_values=(v[0] * v[1], 0)),
        ):
            value = vjp(f, x, v)[0]
            np.testing.assert_allclose(value, f(x, v), rtol=1e-15)
            check_grads(f, (x, v), order=2, atol=1e-6)
        f = grad(lambda c: lantern.pad(np.ones(2), 1, constant_values=c).sum())
        assert f(3.0) == 2.0

    def test_what_has_no_rule_and_what_is_wrong(self):
        def pad(*args, **options):
            return grad(lambda x: lantern.pad(x, *args, **options).sum())(np.ones(2))

        for mode in ("empty", lambda *args: None):
            with pytest.raises(MissingRuleError, match="mode"):
                pad(1, mode)
        for args in ((-1,), (1.5,), ((1, 2, 3),), (1, "other")):
            with pytest.raises(ValueError):
                pad(*args)
        with pytest.raises(ValueError, match="unsupported keyword"):
            pad(1, "edge", end_values=1)
        with pytest.raises(ShapeError, match="empty"):
            grad(lambda x: lantern.pad(x[:0], 1, "edge").sum())(np.ones(2))
        assert pad(0, "edge").sum() == 2


class TestOrder:
    def test_equal_elements_keep_their_order(self):
        x = np.array([2.0, 1.0, 2.0, 1.0])
        w = np.arange(1.0, 5.0)
        for descending, expected in ((False, [3, 1, 4, 2]), (True, [1, 3, 2, 4])):
            gradient = grad(
                lambda x, d=descending: lantern.sum(lantern.sort(x, descending=d) * w)
            )(x)
            np.testing.assert_array_equal(gradient, expected)
        np.testing.assert_array_equal(lantern.argsort(x, descending=True), [0, 2, 1, 3])
        gradient = grad(lambda x: lantern.sum(np.unique(x) * w[:2]))(x)
        np.testing.assert_array_equal(gradient, [2, 1, 0, 0])

    def test_nan_is_last(self):
        x = np.array([np.nan, 1.0, 0.0])
        value, pullback = vjp(lantern.sort, x)
        np.testing.assert_array_equal(value, [0.0, 1.0, np.nan])
        np.testing.assert_array_equal(pullback(np.array([1.0, 2.0, 3.0]))[0], [3, 2, 1])

    @pytest.mark.parametrize("kind", ["distinct", "equal", "nan", "infinite", "whole"])
    @pytest.mark.parametrize("largest", [True, False])
    @pytest.mark.parametrize("axis", [0, 1])
    def test_few_of_many_are_those_of_a_sort(self, axis, largest, kind):
        rng = np.random.default_rng(3)
        x = rng.normal(size=(40, 50))
        if kind in ("equal", "whole"):
            x = np.round(x, 0 if kind == "equal" else 1)
        if kind == "whole":
            x = (10 * x).astype(int)
        if kind in ("nan", "infinite"):
            x[rng.random(x.shape) < 0.05] = np.nan if kind == "nan" else -np.inf
        order = lantern.argsort(x, axis, descending=largest)
        for k in (1, 3, 5):
            values, positions = lantern.topk(x, k, axis, largest=largest)
            expected = np.take(order, np.arange(k), axis)
            np.testing.assert_array_equal(positions, expected)
            np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))

    @pytest.mark.parametrize("largest", [True, False])
    @pytest.mark.parametrize("axis", [0, -1])
    def test_topk(self, axis, largest):
        x = array(4, 3)
        ordered = np.sort(x, axis)
        ordered = np.flip(ordered, axis) if largest else ordered
        values, positions = lantern.topk(x, 2, axis, largest=largest)
        np.testing.assert_array_equal(values, np.take(ordered, [0, 1], axis))
        np.testing.assert_array_equal(np.take_along_axis(x, positions, axis), values)
        check_grads(
            lambda x: lantern.topk(x, 2, axis)[0] ** 2, (x,), order=2, atol=1e-6
        )
        with pytest.raises(ShapeError, match="k=5"):
            lantern.topk(x, 5, axis)

    def test_unique_with_all_that_comes_with_it(self):
        x = np.array([[3.0, 1.0], [3.0, 2.0]])
        expected = np.unique(x, True, True, True)

        def f(x):
            return np.unique(x, True, True, True)

        seen = grad(lambda x: ((y := f(x))[0][-1] * 2, y[1:]), has_aux=True)(x)
        np.testing.assert_array_equal(seen[0], [[2, 0], [0, 0]])
        for a, b in zip(seen[1], expected[1:], strict=True):
            np.testing.assert_array_equal(a, b)
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
            ours, numpy = getattr(lantern, name), getattr(np, name)
            for a, b in zip(ours(x), numpy(x), strict=True):
                np.testing.assert_array_equal(a, b)
            assert type(ours(x)) is type(numpy(x))
            gradient = grad(lambda x, f=ours: _values(f(x)).sum())(x)
            np.testing.assert_array_equal(gradient, [[1, 1], [0, 1]])

    def test_positions_are_plain_constants(self):
        plain = array(2, 3)

        def f(x):
            seen = {
                "argsort": (np.argsort(x, axis=0), x.argsort(0)),
                "nonzero": (np.nonzero(x), x.nonzero(), lantern.nonzero(x)),
                "flatnonzero": (np.flatnonzero(x), lantern.flatnonzero(x)),
                "argwhere": (np.argwhere(x), lantern.argwhere(x)),
            }
            for name, results in seen.items():
                for result in results:
                    expected = getattr(np, name)(plain, *[0] * (name == "argsort"))
                    np.testing.assert_array_equal(result, expected)
            row, ordered = x[0], lantern.sort(x[1])
            for result in (
                np.searchsorted(ordered, row),
                ordered.searchsorted(row),
                lantern.searchsorted(ordered, row),
            ):
                assert type(result) is np.ndarray
            assert row[np.argpartition(row, 1)[0]] == lantern.min(row)
            assert row[row.argpartition(1)[0]] == lantern.min(row)
            np.testing.assert_array_equal(
                lantern.lexsort([row, row]), np.argsort(plain[0])
            )
            return lantern.sum(x)

        np.testing.assert_array_equal(grad(f)(plain), np.ones((2, 3)))

    def test_sorting_by_a_field_has_no_rule(self):
        for f in (lantern.sort, lantern.argsort):
            with pytest.raises(MissingRuleError, match="order"):
                f(np.ones(2), order="field")


def _values(result):
    return getattr(result, "values", result)
