"""Checkpoints: as many runs as promised, the same derivatives, little memory."""

import contextvars
import decimal
import functools
import gc
import itertools
import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import lantern
from lantern import ArgumentError, MutationError, checkpoint, grad, jvp, remat_loop, vjp
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
REVERSE = ("reverse", "switching", "pullback")
MIXES = [mix for order in (1, 2, 3) for mix in itertools.product(MODES, repeat=order)]


class Counted:
    """A function that counts its runs."""

    def __init__(self, f):
        self.f, self.runs = f, 0

    def __call__(self, *args):
        self.runs += 1
        return self.f(*args)


class TestRuns:
    def test_one_for_the_value_and_one_for_each_pullback(self):
        f = Counted(lambda x: lantern.sin(x) * x)
        _, pullback = vjp(checkpoint(f), 2.0)
        counts = [f.runs]
        for _ in range(2):
            pullback(1.0)
            counts.append(f.runs)
        assert counts == [1, 2, 3]

    @pytest.mark.parametrize("mode", REVERSE)
    def test_nested_three_deep(self, mode):
        inner = Counted(lantern.sin)
        middle = Counted(lambda x: checkpoint(inner)(x * x))
        outer = Counted(lambda x: checkpoint(middle)(2.0 * x))
        slope = MODES[mode](checkpoint(outer))(2.0)
        assert slope == grad(lambda x: lantern.sin((2.0 * x) ** 2))(2.0)
        assert (outer.runs, middle.runs, inner.runs) == (2, 3, 4)

    def test_a_counter_that_the_function_rebinds(self):
        runs = 0

        def f(x):
            nonlocal runs
            runs += 1
            return x * x

        assert grad(checkpoint(f))(3.0) == 6.0
        assert runs == 2

    def test_without_a_derivative_it_is_the_function(self):
        f = Counted(lambda x, y=1.0: {"z": x * y})
        assert checkpoint(f)(2.0) == {"z": 2.0}
        assert forward(lambda x: checkpoint(f)(x)["z"])(2.0) == 1.0
        assert f.runs == 2

    def test_no_second_run_where_nothing_arrives(self):
        f = Counted(lambda x: x * x)
        assert grad(lambda x: (checkpoint(f)(x), 3.0 * x)[1])(2.0) == 3.0
        assert f.runs == 1


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
def test_every_mode_and_order(mix):
    def kept(x):
        y = x * x
        return lantern.sin(y * x) * (y * y * x * y) + y

    def recomputed(x):
        inner = checkpoint(lambda z, y: z * z * x * y)
        outer = checkpoint(lambda y: (lantern.sin(y * x) * inner(y, y), y))
        product, y = outer(x * x)
        return product + y

    inner_names = kept, recomputed
    derivatives = []
    for f in inner_names:
        for mode in mix:
            f = MODES[mode](f)
        derivatives.append(f(0.7))
    assert derivatives[1] == pytest.approx(derivatives[0], rel=1e-12)


def test_arrays_and_structures():
    @checkpoint
    def layer(p, x, *, scale):
        h = np.tanh(x @ p["w"] + p["b"][0]) * scale
        return {"h": h, "norm": (lantern.sum(h * h), None), "name": "layer"}

    def loss(p, x):
        out = layer(p, x, scale=0.5)
        assert out["name"] == "layer"
        return lantern.sum(out["h"]) + out["norm"][0]

    rng = np.random.default_rng(0)
    p = {"w": rng.normal(size=(3, 4)), "b": [rng.normal(size=4)]}
    check_grads(loss, (p, rng.normal(size=(2, 3))), order=2, atol=1e-6, rtol=1e-6)


def test_complex_values():
    f = lambda z: lantern.abs(z * z * (1 + 2j)) ** 2  # noqa: E731
    assert grad(checkpoint(f))(1 + 1j) == pytest.approx(grad(f)(1 + 1j))
    g = checkpoint(lambda z: z * z * z)
    assert grad(g, holomorphic=True)(1 + 1j) == pytest.approx(3 * (1 + 1j) ** 2)


@pytest.mark.parametrize("number", [decimal.Decimal(3), np.float32(3)])
def test_other_numbers(number):
    g = grad(checkpoint(lambda x: x * x))(number)
    assert (g, type(g)) == (2 * number, type(number))


def test_an_argument_that_is_returned_as_it_is():
    assert grad(lambda x: sum(checkpoint(lambda y: (y, y * x, 3.0))(x)))(5.0) == 11.0


def test_a_nan_does_not_leak_from_the_branch_not_taken():
    root = checkpoint(lambda x: 2.0 * lantern.sqrt(x))

    def f(x):
        return lantern.sum(lantern.where(x > 0.5, root(x), 0.0))

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(grad(f)(np.array([0.0, 1.0])), [0.0, 1.0])


class Layer:
    """An object that holds a tracked value where nobody looks."""

    def __init__(self, w):
        self.parts = {"deep": [w]}

    def __call__(self, h):
        return h * self.parts["deep"][0]


@pytest.mark.parametrize("mode", REVERSE)
class TestClosures:
    def test_are_differentiated(self, mode):
        f = MODES[mode](lambda w: checkpoint(lambda h: h * w * w)(5.0))
        assert f(3.0) == 30.0

    def test_of_an_argument_too(self, mode):
        f = MODES[mode](lambda w: checkpoint(lambda h: h * w * w)(2.0 * w))
        assert f(3.0) == 54.0

    def test_inside_objects_and_methods(self, mode):
        f = MODES[mode](lambda w: checkpoint(Layer(w).__call__)(w) + Layer(w)(w))
        assert f(3.0) == 12.0
        f = MODES[mode](lambda w: checkpoint(functools.partial(Layer(w)))(w * w))
        assert f(3.0) == 27.0

    def test_inside_other_functions(self, mode):
        def f(w):
            inner = lambda h: h * w  # noqa: E731
            return checkpoint(lambda h: inner(inner(h)))(w)

        assert MODES[mode](f)(2.0) == 12.0

    def test_a_loop_that_rebinds_the_variable(self, mode):
        def f(x):
            y = x
            for factor in (2.0, 3.0, 5.0):
                y = checkpoint(lambda y: y * factor * y)(y)  # noqa: B023
            return y

        def plain(x):
            y = x
            for factor in (2.0, 3.0, 5.0):
                y = y * factor * y
            return y

        assert MODES[mode](f)(1.5) == pytest.approx(grad(plain)(1.5))

    def test_of_an_inner_derivative(self, mode):
        def f(x):
            return grad(lambda w: checkpoint(lambda h: h * w * w)(x))(3.0)

        assert f(2.0) == 12.0
        assert MODES[mode](f)(2.0) == 6.0


def test_a_hidden_value_of_an_inner_derivative_is_refused():
    def f(x):
        def g(w):
            hidden = lambda h: h * w  # noqa: E731
            return checkpoint(lambda h: hidden(h))(x)

        return grad(g)(3.0)

    assert f(2.0) == 2.0
    with pytest.raises(ArgumentError, match="Pass it as an argument"):
        grad(f)(2.0)


def test_tracked_values_in_an_object_that_is_returned_are_refused():
    class Box:
        def __init__(self, content):
            self.content = content

    with pytest.raises(ArgumentError, match="register_tree"):
        grad(lambda x: checkpoint(lambda y: Box([y * 2.0]))(x).content[0])(1.0)
    with pytest.raises(ArgumentError, match="returned a function"):
        grad(lambda x: checkpoint(lambda y: lambda: y * 2.0)(x)())(1.0)


class TestSurroundings:
    def slope_and_factor(self, draw):
        seen = []

        def f(x):
            factor = draw()
            seen.append(factor)
            return x * x * factor

        slope = grad(lambda x: checkpoint(f)(x) + draw() * 0.0)(1.0)
        assert seen[0] == seen[1]
        return slope, 2 * seen[0]

    @pytest.mark.parametrize(
        "draw",
        [
            np.random.random,
            random.random,
            np.random.default_rng(1).random,
            random.Random(1).random,
            np.random.RandomState(1).random_sample,
            lambda: np.random.normal() + random.gauss(),
        ],
    )
    def test_random_states(self, draw):
        slope, expected = self.slope_and_factor(draw)
        assert slope == expected

    def test_what_is_drawn_afterwards_is_not_drawn_again(self):
        rng = np.random.default_rng(3)
        expected = np.random.default_rng(3).random(3)
        drawn = []

        def f(x, rng):
            drawn.append(rng.random())
            return x * drawn[-1]

        def program(x):
            y = checkpoint(f)(x, rng)
            drawn.append(rng.random())
            return y

        grad(program)(1.0)
        drawn.append(rng.random())
        assert drawn == [expected[0], expected[1], expected[0], expected[2]]

    def test_a_generator_that_is_a_global(self):
        expected = np.random.default_rng(5).random()
        assert grad(checkpoint(_draws_from_global))(2.0) == pytest.approx(expected)

    def test_context_variables(self):
        factor = contextvars.ContextVar("factor", default=1.0)

        def program(x):
            token = factor.set(3.0)
            y = checkpoint(lambda x: x * factor.get())(x)
            factor.reset(token)
            return y

        assert grad(program)(2.0) == 3.0

    def test_precision_and_floating_point_errors(self):
        def f(x):
            assert decimal.getcontext().prec == 5
            assert np.geterr()["divide"] == "raise"
            return x * x

        def program(x):
            with decimal.localcontext(prec=5), np.errstate(divide="raise"):
                return checkpoint(f)(x)

        assert grad(program)(2.0) == 4.0


GENERATOR = np.random.default_rng(5)


def _draws_from_global(x):
    return x * x / x * GENERATOR.random()


class TestChangesInBetween:
    def test_an_array_that_was_written_to(self):
        w = np.ones(3)

        def program(x):
            y = checkpoint(lambda x: lantern.sum(x * w))(x)
            w[1] = 7.0
            return y

        with pytest.raises(MutationError, match="w was changed after"):
            grad(program)(np.ones(3))
        w[1] = 1.0

    def test_a_function_that_is_not_deterministic(self):
        values = iter([1.0, 2.0])
        with pytest.raises(MutationError, match="another result"):
            grad(checkpoint(lambda x: x * next(values)))(2.0)

    def test_a_result_of_another_structure(self):
        runs = []

        def f(x):
            runs.append(x)
            return [x * 2.0] * len(runs)

        with pytest.raises(MutationError):
            grad(lambda x: checkpoint(f)(x)[0])(2.0)

    def test_nan_and_infinity_are_results_like_others(self):
        with np.errstate(all="ignore"):
            for x in (np.array([np.nan, 1.0]), np.array([np.inf, 1.0])):
                g = grad(lambda x: lantern.sum(checkpoint(lambda x: x * 2.0)(x)))(x)
                np.testing.assert_array_equal(g, [2.0, 2.0])
        assert grad(checkpoint(lambda x: x * float("nan")))(1.0) != 0.0


class TestErrors:
    def test_in_the_first_and_in_the_second_run(self):
        for fatal in (1, 2):
            f = Counted(lambda x: x * x)

            def failing(x, f=f, fatal=fatal):
                y = f(x)
                return y / 0 if f.runs == fatal else y

            with pytest.raises(ZeroDivisionError):
                grad(lambda x, g=failing: checkpoint(g)(x * 3.0) * 2.0)(2.0)
            again = checkpoint(f)
            value, pullback = vjp(lambda x, g=again: g(x) * x, 2.0)
            assert (value, pullback(1.0)) == (8.0, (12.0,))

    def test_a_pullback_after_a_failed_one(self):
        f = Counted(lambda x: x * x)

        def failing(x):
            y = f(x)
            return y / 0 if f.runs == 2 else y

        _, pullback = vjp(checkpoint(failing), 3.0)
        with pytest.raises(ZeroDivisionError):
            pullback(1.0)
        assert pullback(1.0) == (6.0,)

    def test_no_function(self):
        with pytest.raises(ArgumentError, match="checkpoint"):
            checkpoint(3.0)


def test_threads_have_checkpoints_of_their_own():
    layer = checkpoint(lambda x, i: lantern.sum(np.sin(x) * x) * (i + 1.0))

    def f(x, run):
        return sum(run(lambda i: layer(x, i) + lantern.sum(x), range(8)))

    x = np.linspace(0.0, 1.0, 50)
    with ThreadPoolExecutor(4) as pool:
        found = grad(lambda x: f(x, pool.map))(x)
    np.testing.assert_allclose(found, grad(lambda x: f(x, map))(x), rtol=1e-13)


def test_hooks_inside_are_called_in_the_second_run():
    seen = []
    f = checkpoint(lambda x: lantern.hook(seen.append, x * x) * 3.0)
    _, pullback = vjp(lambda x: f(x) * 2.0, 2.0)
    assert seen == []
    assert [pullback(1.0), pullback(0.5)] == [(24.0,), (12.0,)]
    assert seen == [6.0, 3.0]


@pytest.mark.parametrize("mode", REVERSE)
def test_nothing_is_kept_by_cycles(mode):
    f = MODES[mode](lambda x: checkpoint(lambda y: checkpoint(lantern.sin)(y) * y)(x))
    f(1.0)
    gc.collect()
    gc.disable()
    try:
        f(1.0)
        assert gc.collect() == 0
    finally:
        gc.enable()


def peak(run):
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_inside_of_a_checkpoint_is_not_kept():
    x = np.ones(20_000)

    def block(y):
        for _ in range(20):
            y = lantern.tanh(y * y)
        return y

    def program(block):
        return lambda x: lantern.sum(block(block(block(block(x)))))

    np.testing.assert_array_equal(
        grad(program(block))(x), grad(program(checkpoint(block)))(x)
    )
    kept, recomputed = (
        peak(lambda b=b: grad(program(b))(x)) for b in (block, checkpoint(block))
    )
    assert recomputed < 0.4 * kept


class TestLoop:
    @pytest.mark.parametrize("policy", [0, 1, 2, 3, "sqrt", "log"])
    @pytest.mark.parametrize("n", [0, 1, 2, 7, 16, 33])
    def test_every_policy_gives_the_same(self, policy, n):
        def f(x, policy):
            step = lambda y, i: lantern.sin(y) * x + i  # noqa: E731
            return remat_loop(step, x, n, policy)

        assert vjp(lambda x: f(x, policy), 1.5)[0] == f(1.5, 0)
        assert grad(f)(1.5, policy) == pytest.approx(grad(f)(1.5, 0), rel=1e-12)

    @pytest.mark.parametrize(
        ("policy", "runs"), [(0, 1), ("sqrt", 2), (2, 3), ("log", 6)]
    )
    def test_how_often_each_step_runs(self, policy, runs):
        step = Counted(lambda y, i: lantern.sin(y))
        grad(lambda x: remat_loop(step, x, 32, policy))(1.0)
        assert step.runs == runs * 32

    def test_memory_grows_with_the_root_of_the_length(self):
        def run(n, policy):
            step = lambda y, i: lantern.tanh(y * y)  # noqa: E731
            f = grad(lambda x: lantern.sum(remat_loop(step, x, n, policy)))
            return peak(lambda: f(np.ones(5_000)))

        run(4, "sqrt")
        assert run(256, 0) / run(16, 0) > 10
        assert run(256, "sqrt") / run(16, "sqrt") < 5
        assert run(256, "log") / run(16, "log") < 3

    def test_there_is_no_other_policy(self):
        for policy in ("cube", -1, 1.5):
            with pytest.raises(ArgumentError, match="policy"):
                remat_loop(lambda y, i: y, 1.0, 3, policy)
