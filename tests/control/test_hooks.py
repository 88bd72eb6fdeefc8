"""Hooks see and change cotangents; blocks without derivatives; how deep one is."""

import itertools
import threading

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    ShapeError,
    grad,
    hook,
    jvp,
    nestlevel,
    no_grad,
    stop_gradient,
    vjp,
)
from lantern.testing import check_grads

pytestmark = pytest.mark.usefixtures("probe")


def forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


MODES = {
    "reverse": grad,
    "switching": lambda f: grad(f, driver="switching"),
    "pullback": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "forward": forward,
}
PAIRS = list(itertools.product(MODES, repeat=2))
REVERSE = ("reverse", "switching", "pullback")


@pytest.mark.parametrize("mode", REVERSE)
class TestHook:
    def test_changes_the_cotangent(self, mode):
        assert MODES[mode](lambda a: hook(lambda g: -g, a) * 3.0)(2.0) == -3.0

    def test_watches_when_it_returns_none(self, mode):
        seen = []
        f = MODES[mode](lambda x: hook(seen.append, x * x) * 3.0)
        assert f(2.0) == 12.0
        assert seen == [3.0]

    def test_sees_the_whole_cotangent_of_a_value_used_twice(self, mode):
        seen = []

        def f(x):
            y = hook(seen.append, x)
            return y * y + 3.0 * y

        assert MODES[mode](f)(2.0) == 7.0
        assert seen == [7.0]

    def test_is_not_called_where_nothing_arrives(self, mode):
        def f(x):
            hook(lambda g: 1 / 0, x * x)
            return x * 2.0

        assert MODES[mode](f)(2.0) == 2.0

    def test_clips_an_array(self, mode):
        def f(x):
            y = hook(lambda g: np.clip(g, -1.0, 1.0), x)
            return lantern.sum(y * np.array([0.5, 3.0, -4.0]))

        np.testing.assert_array_equal(MODES[mode](f)(np.ones(3)), [0.5, 1.0, -1.0])


def test_the_fact_about_products():
    f = grad(lambda a, b: hook(lambda g: -g, a) * b, argnums=(0, 1))
    assert f(2.0, 3.0) == (-3.0, 2.0)


def test_forward_mode_takes_no_notice():
    assert jvp(lambda x: hook(lambda g: 1 / 0, x) * x, (3.0,), (1.0,)) == (9.0, 6.0)


@pytest.mark.parametrize("modes", PAIRS, ids=str)
def test_a_hook_acts_on_one_derivative_and_the_other_goes_through_its_function(modes):
    outer, inner = (MODES[mode] for mode in modes)
    found = outer(inner(lambda x: hook(lambda g: g * g, x) ** 3))(2.0)
    # the slope 3 x^2 becomes its square 9 x^4, whose own slope is 36 x^3; a hook does
    # nothing in forward mode, and there the outer derivative is that of 3 x^2
    assert found == pytest.approx(12.0 if modes[1] == "forward" else 288.0)


def test_a_pullback_calls_the_hook_each_time():
    seen = []
    _, pullback = vjp(lambda x: hook(seen.append, x) * 2.0, 1.0)
    assert [pullback(1.0), pullback(5.0)] == [(2.0,), (10.0,)]
    assert seen == [2.0, 10.0]


def test_a_structure_is_seen_as_a_whole():
    seen = []

    def half(g):
        seen.append(g)
        return lantern.tree_map(lambda leaf: leaf / 2, g)

    def f(p):
        p = hook(half, p)
        return lantern.sum(p["w"]) * 4.0 + p["b"][0] * 6.0

    g = grad(f)({"w": np.ones(2), "b": [1.0, 2.0], "none": None})
    np.testing.assert_array_equal(g["w"], [2.0, 2.0])
    assert (g["b"], g["none"]) == ([3.0, 0.0], None)
    np.testing.assert_array_equal(seen[0]["w"], [4.0, 4.0])
    assert seen[0]["b"] == [6.0, 0.0]


def test_constants_in_a_structure_stay_what_they_are():
    seen = []

    def f(x):
        y, c, name = hook(seen.append, (x, 3.0, "name"))
        assert (c, name) == (3.0, "name")
        return y * c

    assert grad(f)(2.0) == 3.0
    assert seen == [(3.0, None, None)]


@pytest.mark.parametrize("plain", [2.0, "text", None, [1.0, (2.0,)], np.ones(2)])
def test_what_is_not_tracked_comes_back(plain):
    assert hook(print, plain) is plain


def test_of_complex_values_it_sees_the_gradient_itself():
    seen = []
    g = grad(lambda z: lantern.real(hook(seen.append, z) * (1 + 2j)))(1 + 1j)
    assert g == 1 - 2j
    assert seen == [g]


def test_a_nan_does_not_leak_through_a_hook_in_the_branch_not_taken():
    def f(x):
        root = lantern.sqrt(hook(lambda g: 2 * g, x))
        return lantern.sum(lantern.where(x > 0.5, root, 0.0))

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(grad(f)(np.array([0.0, 1.0])), [0.0, 1.0])


def test_float32_stays_float32_in_the_hook():
    seen = []

    def f(x):
        return lantern.sum(lantern.where(x > 0, hook(seen.append, x), 0.0))

    assert grad(f)(np.ones(3, np.float32)).dtype == np.float32
    assert seen[0].dtype == np.float32


def test_a_recorded_cotangent_is_read_only():
    def write(g):
        g[0] = 5.0

    with pytest.raises(ValueError, match="read-only"):
        grad(lambda x: lantern.sum(hook(write, x)))(np.ones(2))


def test_a_wrong_shape_is_refused():
    with pytest.raises(ShapeError, match="hook"):
        grad(lambda x: lantern.sum(hook(lambda g: g[:1], x)))(np.ones(2))
    with pytest.raises(ArgumentError, match="hook"):
        hook(2.0, print)


def test_an_error_in_a_hook_passes_through():
    with pytest.raises(ZeroDivisionError):
        grad(lambda x: hook(lambda g: 1 / 0, x) * x)(2.0)


def test_second_derivatives_through_a_hook_agree_with_differences():
    def slope(x):
        return grad(lambda y: lantern.sum(hook(lambda g: g * g * 0.1, y**3)))(x)

    check_grads(slope, (np.array([0.5, -1.5]),), order=1)


def test_the_backward_order_is_the_reverse_of_the_execution():
    order = []

    def f(x):
        y = x
        for i in range(5):
            y = hook(lambda g, i=i: order.append(i), y * 1.5)
        return y + hook(lambda g: order.append("side"), x * 2.0)

    grad(f)(1.0)
    assert order == ["side", 4, 3, 2, 1, 0]


class TestNestlevel:
    def test_counts_every_mode_through_operands(self):
        for outer, inner in itertools.product(MODES.values(), repeat=2):
            seen = []
            outer(inner(lambda x, s=seen: s.append(nestlevel(x)) or x * x))(1.0)
            assert seen == [2]
        assert nestlevel(1.0, [None]) == 0

    def test_counts_reverse_derivatives_around_the_call(self):
        seen = []
        grad(lambda x: grad(lambda y: seen.append(nestlevel()) or y * x)(1.0))(1.0)
        assert [*seen, nestlevel()] == [2, 0]

    def test_counts_the_levels_of_all_operands(self):
        seen = []

        def outer(x):
            return grad(lambda y: seen.append(nestlevel((x, y))) or y * x)(1.0)

        forward(outer)(1.0)
        assert seen == [2]


@pytest.mark.parametrize("modes", PAIRS, ids=str)
class TestNoGrad:
    def test_results_of_the_block_are_constants(self, modes):
        def f(x):
            with no_grad(x):
                scale = x * x
            return scale * x * x

        outer, inner = (MODES[mode] for mode in modes)
        assert inner(f)(3.0) == 54.0
        assert outer(inner(f))(3.0) == 18.0

    def test_only_the_derivatives_of_the_operands(self, modes):
        outer, inner = (MODES[mode] for mode in modes)

        def f(x):
            def g(y):
                with no_grad(x):
                    z = x * x
                return z * y * y * x

            return inner(g)(5.0)

        assert f(2.0) == 80.0
        assert outer(f)(2.0) == 40.0


class TestNoGradBlock:
    @pytest.mark.parametrize("x", [3.0, np.array([3.0, 4.0])], ids=["number", "array"])
    def test_pullbacks_of_values_that_a_block_has_made(self, x):
        def f(x):
            with no_grad(x):
                scale = x * 1.0
            return scale * x + (scale - stop_gradient(scale)), scale

        _, pullback = vjp(f, x)
        for _ in range(2):  # the first derivative is over then, and its cotangents
            found = grad(lambda t: np.sum(pullback((x * t, x * t))[0]))(1.0)
            assert found == pytest.approx(np.sum(x * x))

    def test_says_what_to_write(self):
        with pytest.raises(ArgumentError, match="with no_grad"), no_grad():
            pass

    def test_plain_operands_need_no_block(self):
        with no_grad(2.0, [None, np.ones(2)]):
            assert grad(lambda x: x * x)(3.0) == 6.0

    def test_blocks_nest(self):
        def f(x):
            with no_grad(x):
                with no_grad(x):
                    a = x * x
                b = x * x
            return a + b + x

        assert grad(f)(3.0) == 1.0

    def test_an_error_inside_ends_the_block(self):
        def f(x):
            with pytest.raises(ZeroDivisionError), no_grad(x):
                x / 0
            return x * x

        assert grad(f)(3.0) == 6.0

    def test_other_threads_are_not_in_the_block(self):
        def f(x):
            results = []
            with no_grad(x):
                thread = threading.Thread(target=lambda: results.append(x * x))
                thread.start()
                thread.join()
            return results[0]

        assert grad(f)(3.0) == 6.0

    def test_memory_of_the_block_is_free_at_once(self):
        kept = []

        def f(x):
            with no_grad(x):
                for _ in range(3):
                    x * x
            kept.append(len(x.level.waiting))
            return x * x

        grad(f)(2.0)
        assert kept == [0]

    def test_a_derivative_may_end_inside_the_block(self):
        blocks = []

        def f(x):
            blocks.append(no_grad(x))
            blocks[0].__enter__()
            return x * 1.0

        assert grad(f)(2.0) == 0.0
        blocks[0].__exit__(None, None, None)


def test_stop_gradient_takes_structures():
    def f(p):
        q = lantern.stop_gradient(p)
        assert type(q["b"][0]) is float
        assert q["none"] is None
        return lantern.sum(p["w"] * q["w"]) * q["b"][0]

    g = grad(f)({"w": np.array([1.0, 2.0]), "b": (3.0,), "none": None})
    np.testing.assert_array_equal(g["w"], [3.0, 6.0])
    assert g["b"] == (0.0,)
