"""Calls that are put down and answered later: rows that nobody has computed yet."""

from contextvars import ContextVar

import numpy as np
import pytest

import lantern
from lantern import grad
from lantern.errors import ArgumentError, RuleError, ShapeError


@lantern.batched
def double(x):
    return 2 * x


@lantern.batched
def swap(x, y):
    return {"y": y, "x": [x]}


def looking(x):
    """A body that waits at each call."""
    for _ in range(3):
        x = double(x)
        if x > 100:
            break
    return x


def promising(x):
    """A body that waits at the first calls of a kind only."""
    for _ in range(5):
        x = double(x)
    return x


class TestOrder:
    def test_a_body_goes_on_until_it_looks(self):
        log = []

        def body(x):
            x = double(double(x))  # known from here on
            for k in range(3):
                x = double(x)
                log.append(k)
            return x

        @lantern.batched
        def seen(x):
            return x

        results = lantern.batch(body, [1.0, 2.0])
        assert results == [32, 64]
        assert log == [0, 1, 2, 0, 1, 2]
        assert [run.size for run in results.runs] == [2] * 5
        assert [run.depth for run in results.runs] == [0, 1, 2, 3, 4]

    def test_bodies_that_look_and_bodies_that_do_not_meet(self):
        def body(k):
            return looking(np.float64(k)) if k % 2 else promising(np.float64(k))

        results = lantern.batch(body, range(4))
        assert results == [0, 8, 64, 24]
        assert [run.size for run in results.runs] == [4, 4, 4, 2, 2]

    def test_one_tree_needs_no_fork(self):
        def body(tree):
            if isinstance(tree, tuple):
                return join(*map(body, tree))
            return double(tree)

        @lantern.batched
        def join(x, y):
            return x - y

        tree = ((1.0, 2.0), ((3.0, 4.0), (5.0, 6.0)))
        results = lantern.batch(body, [tree])
        assert results == [-2]
        assert len(results.runs) < 11

    def test_structures(self):
        def body(x):
            state = {"y": x, "x": [x + 1]}
            for _ in range(4):
                state = swap(state["y"], state["x"][0])
            return state

        assert lantern.batch(body, [1.0, 5.0]) == [
            {"y": 1, "x": [2]},
            {"y": 5, "x": [6]},
        ]

    def test_rows_of_other_shapes_make_other_groups(self):
        @lantern.batched
        def first(x):
            return x

        def body(n):
            x = first(np.ones(n))
            for _ in range(3):
                x = double(x)
            return x

        results = lantern.batch(body, [2, 3, 2])
        assert [x.tolist() for x in results] == [[8] * 2, [8] * 3, [8] * 2]
        assert sorted(run.size for run in results.runs) == [1] * 4 + [2] * 4

    def test_branches_see_the_variables_of_their_fork(self):
        variable = ContextVar("variable", default=0)

        def waits(x):
            variable.set(1)
            return looking(x)

        def body(x):
            return lantern.fork(lambda: waits(x), variable.get, variable.get)[1:]

        assert lantern.batch(body, [np.float64(1)]) == [(0, 0)]


class TestWhatIsReadLater:
    def test_an_array_that_is_changed_after_the_call(self):
        def body(x):
            buffer, results = np.zeros(2), []
            for k in range(4):
                buffer[:] = k
                results.append(double(buffer))
            return sum(results)

        assert lantern.batch(body, [None])[0].tolist() == [12, 12]

    def test_a_buffer_that_is_changed_after_the_call(self):
        def body(x):
            buffer, results = lantern.Buffer(np.zeros(2)), []
            for k in range(4):
                buffer[:] = k * x
                results.append(double(buffer))
            return sum(results).sum()

        def loss(x):
            return lantern.batch(body, [x])[0]

        assert grad(loss)(3.0) == 24

    def test_a_batched_function_that_looks_at_a_row(self):
        def body(x):
            x = promising(x)
            return outer(1.0, option=x)

        @lantern.batched
        def outer(y, *, option):
            return y + float(option)

        assert lantern.batch(body, [np.float64(1), np.float64(2)]) == [33, 65]

    def test_a_row_in_an_inner_batch(self):
        def body(x):
            x = promising(x)
            return sum(lantern.batch(lambda y: double(x + y) * double(x), [1.0, 2.0]))

        numbers = [np.float64(1), np.float64(2)]
        assert lantern.batch(body, numbers) == list(map(body, numbers))

    def test_a_derivative_that_is_over_when_the_group_runs(self, probe):
        def slope(x):
            def f(y):
                for _ in range(3):
                    double(y)  # which nobody looks at
                    captured(x)
                return y * y

            @lantern.batched
            def captured(z):
                return z * 1

            return grad(f)(x)

        assert lantern.batch(slope, [1.0, 2.0]) == [2, 4]

    def test_a_derivative_that_a_closure_captures(self, probe):
        def slope(x):
            def f(y):
                scale = lantern.batched(lambda z: z * y)
                return sum(scale(float(k)) for k in range(4)) * scale(1.0)

            return grad(f)(x)

        np.testing.assert_allclose(lantern.batch(slope, [1.0, 2.0]), [12, 24])


def quietly(x):
    """A body with calls of which the derivative keeps nothing."""
    y = double(x)
    with lantern.no_grad(x):
        scale = double(y * x)
        scale = double(scale)
    return scale * double(double(y))


def again(x):
    """A body with calls that run again, when the batch is over."""
    return double(lantern.checkpoint(lambda y: double(double(y)) * y)(double(x)))


def derived(x):
    """A body that takes derivatives of calls."""
    y = double(x)
    slope = grad(lambda z: double(z * z) * y)(y)
    (pulled,) = lantern.vjp(lambda z: double(double(z)) * y, y)[1](y)
    pushed = lantern.jvp(lambda z: double(double(z)) * z, (y,), (x,))[1]
    rows = lantern.vmap(lambda z: double(double(z * x)))(np.arange(3.0))
    return slope + pulled + pushed * rows.sum()


def branching(x):
    """A body that forks where it runs again, and inside a derivative of its own."""

    def both(y):
        return sum(lantern.fork(lambda: double(y) * y, lambda: double(double(y))))

    return lantern.checkpoint(both)(double(x)) + grad(both)(x)


@pytest.mark.parametrize("body", [quietly, again, derived, branching])
def test_other_verbs_in_a_body(body, probe):
    def loss(w, run):
        return sum((k + 1) * y for k, y in enumerate(run(body, [w[0], w[1], w[2]])))

    def loop(f, examples):
        return [f(x) for x in examples]

    w = np.array([1.5, -2.0, 3.0])
    for _ in range(2):
        np.testing.assert_allclose(loss(w, lantern.batch), loss(w, loop))
        expected = grad(loss)(w, loop)
        np.testing.assert_allclose(grad(loss)(w, lantern.batch), expected)


@lantern.batched
def inverse(x):
    if (lantern.core.value.base(x) == 0).any():
        raise ZeroDivisionError("of zero")
    return 1 / x


def inverses(numbers):
    """The sum of the inverses, none of which is looked at."""
    return [inverse(x) for x in numbers]


@pytest.mark.parametrize("granularity", ["function", "op"])
def test_parts_in_other_threads(granularity, probe):
    def parts(x):
        each = lantern.parallel_map(
            lambda k: (double(x) * k).sum(), [1.0, 2.0], workers=2
        )
        return sum(each)

    def late(x):
        y = double(double(x))
        return parts(double(y)) + y.sum()

    examples = [np.ones(2), np.zeros(2)]
    results = lantern.batch(parts, examples, granularity=granularity)
    assert results == [12, 0]
    with pytest.raises(ArgumentError, match="needed in another thread"):
        lantern.batch(late, examples, granularity=granularity)


class TestErrors:
    def test_where_nobody_looks(self, probe):
        with pytest.raises(ZeroDivisionError, match="of zero") as caught:
            lantern.batch(lambda x: inverses([1.0, 2.0, x])[0], [1.0, 0.0])
        assert "batch: raised by example 0" in caught.value.__notes__

    def test_reach_the_examples_that_have_called(self, probe):
        def body(x):
            return double(inverse(x)) if x < 5 else double(x)

        results = lantern.batch(body, [1.0, 7.0], on_error="return")
        assert results == [2, 14]
        results = lantern.batch(body, [0.0, 7.0], on_error="return")
        assert isinstance(results[0], ZeroDivisionError)
        assert results[1] == 14

    def test_reach_those_that_need_a_row(self, probe):
        def body(x):
            y = inverse(1.0)
            y = double(double(y))
            y = double(inverse(x))
            return double(double(y))

        results = lantern.batch(body, [0.0], on_error="return")
        assert isinstance(results[0], ZeroDivisionError)

    def test_may_be_caught_by_a_look(self, probe):
        def body(x):
            known = inverse(1.0), double(double(1.0))
            y = inverse(x)
            z = double(double(y))
            try:
                return float(z)
            except ZeroDivisionError:
                return known[1]

        assert lantern.batch(body, [0.0]) == [4]

    def test_a_row_that_has_failed_is_no_argument(self, probe):
        def body(x):
            known = inverse(1.0), double(double(1.0))
            y = inverse(x)
            try:
                float(y)
            except ZeroDivisionError:
                double(y)
            return known

        with pytest.raises(ZeroDivisionError):
            lantern.batch(body, [0.0])

    def test_one_that_hasattr_would_swallow(self, probe):
        @lantern.batched
        def f(x):
            if (x > 1).any():
                raise AttributeError("missing")
            return x

        def body(x):
            return f(1.0), hasattr(f(x), "dtype")

        with pytest.raises(RuleError, match="missing"):
            lantern.batch(body, [2.0])

    def test_another_structure_than_before(self, probe):
        @lantern.batched
        def f(x):
            return (x, x) if (x > 1).any() else x

        with pytest.raises(ShapeError, match="f: it returned a structure"):
            lantern.batch(lambda x: (f(1.0), f(x)), [2.0])

    def test_a_row_of_a_batch_that_did_not_end(self, probe):
        rows = []

        def body(x):
            y = double(double(double(x)))
            rows.append(y)
            raise KeyError("early")

        with pytest.raises(KeyError):
            lantern.batch(body, [np.float64(1)])
        with pytest.raises(ArgumentError, match="will not be computed"):
            rows[0] + 1


def test_many_promises_under_a_small_stack():
    def body(n):
        x = np.float64(0)
        for _ in range(n):
            x = double(x)
        return x

    assert lantern.batch(body, [20_000]) == [0]
