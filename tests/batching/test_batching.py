"""Batched examples against the plain loop: results, derivatives, errors, leftovers."""

import gc
import weakref

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp
from lantern.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
W = RNG.standard_normal((3, 3)) * 0.4


@lantern.batched
def cell(h, x, *, w):
    return lantern.tanh(h @ w + x)


@lantern.batched
def pair(left, right, *, w):
    (h_l, n_l), (h_r, n_r) = left, right
    return lantern.tanh(h_l @ w + h_r @ w.T), n_l + n_r


@lantern.batched
def halve(x):
    return x / 2


def recurrent(w):
    """A loop, as long as its example."""

    def run(sequence):
        h = np.zeros(3)
        for x in sequence:
            h = cell(h, x, w=w)
        return h

    return run


def recursive(w):
    """A recursion along a tree, whose branches are forked."""

    def run(tree):
        if not isinstance(tree, tuple):
            return tree, np.float64(1)
        left, right = lantern.fork(*[lambda t=t: run(t) for t in tree])
        return pair(left, right, w=w)

    return lambda tree: run(tree)[0]


def branching(w):
    """A loop whose end depends on what was computed; an early return."""

    def run(sequence):
        h = np.zeros(3)
        for x in sequence:
            h = cell(h, x, w=w)
            if h[0] > 0.3:
                return h * 2
            if h[1] < -0.2:
                h = cell(h, h, w=w)
        return h

    return run


def reusing(w):
    """Rows that are used twice, by operations of the body, and not at all."""

    def run(sequence):
        first = cell(np.zeros(3), sequence[0], w=w)
        cell(first, first, w=w)
        second = cell(first, first * 2, w=w)
        return first + second * second

    return run


def make_tree(n, rng):
    if n == 1:
        return rng.standard_normal(3)
    return make_tree(n // 3 + (n < 3), rng), make_tree(n - n // 3 - (n < 3), rng)


SEQUENCES = [RNG.standard_normal((n, 3)) for n in (3, 1, 7, 4)]
TREES = [make_tree(n, RNG) for n in (1, 2, 6, 9)]
PROGRAMS = [
    pytest.param(recurrent, SEQUENCES, id="loop"),
    pytest.param(recursive, TREES, id="recursion"),
    pytest.param(branching, SEQUENCES, id="branches"),
    pytest.param(reusing, SEQUENCES, id="reuse"),
]
POLICIES = ["largest", "depth", lambda groups: groups[-1]]


def plain_loop(f, examples):
    return [f(x) for x in examples]


def total(program, examples, run):
    def loss(w):
        results = run(program(w), examples)
        return sum(((k + 1) * h * h).sum() for k, h in enumerate(results))

    return loss


def both(program, examples, **options):
    def run(f, xs):
        return lantern.batch(f, xs, **options)

    return total(program, examples, plain_loop), total(program, examples, run)


@pytest.mark.parametrize(("program", "examples"), PROGRAMS)
class TestSameAsTheLoop:
    @pytest.mark.parametrize("policy", POLICIES)
    def test_results(self, program, examples, policy, probe):
        expected = plain_loop(program(W), examples)
        results = lantern.batch(program(W), examples, policy=policy, check=True)
        assert [type(h) for h in results] == [np.ndarray] * len(examples) or (
            program in (branching, reusing)
        )
        for h, h_alone in zip(results, expected, strict=True):
            np.testing.assert_allclose(lantern.core.value.base(h), h_alone, rtol=1e-13)

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("driver", ["in place", "switching"])
    def test_gradient(self, program, examples, policy, driver, probe):
        loop, batch = both(program, examples, policy=policy)
        np.testing.assert_allclose(
            grad(batch, driver=driver)(W), grad(loop)(W), rtol=1e-11, atol=1e-13
        )

    def test_other_modes(self, program, examples, probe):
        loop, batch = both(program, examples)
        v = RNG.standard_normal((3, 3))

        def forward(f):
            return lambda w: jvp(f, (w,), (v,))[1]

        def reverse(f):
            return lambda w: (grad(f)(w) * v).sum()

        def pullback(f):
            return lambda w: (vjp(f, w)[1](1.0)[0] * v).sum()

        for mode in (forward, pullback):
            np.testing.assert_allclose(mode(batch)(W), mode(loop)(W), rtol=1e-11)
        for outer in (forward, grad):
            for inner in (forward, reverse, pullback):
                np.testing.assert_allclose(
                    outer(inner(batch))(W), outer(inner(loop))(W), rtol=1e-9, atol=1e-11
                )

    def test_pullback_twice(self, program, examples):
        loop, batch = both(program, examples)
        _, pullback = vjp(batch, W)
        _, alone = vjp(loop, W)
        for seed in (1.0, -2.0):
            np.testing.assert_allclose(
                pullback(seed)[0], alone(seed)[0], rtol=1e-11, atol=1e-13
            )

    def test_inputs_get_gradients_too(self, program, examples):
        def loss(examples, run):
            return sum((h * h).sum() for h in run(program(W), examples))

        together = grad(loss)(examples, lantern_batch)
        alone = grad(loss)(examples, plain_loop)
        for g, g_alone in zip(
            lantern.tree_leaves(together), lantern.tree_leaves(alone), strict=True
        ):
            np.testing.assert_allclose(g, g_alone, rtol=1e-11, atol=1e-13)

    def test_single_precision_stays(self, program, examples):
        w = W.astype(np.float32)
        examples = lantern.tree_map(lambda x: x.astype(np.float32), examples)
        loop, batch = both(program, examples)
        g = grad(batch)(w)
        expected = grad(loop)(w)
        assert g.dtype == expected.dtype
        np.testing.assert_allclose(g, expected, rtol=1e-4, atol=1e-5)


def lantern_batch(f, examples):
    return lantern.batch(f, examples)


class TestRows:
    def test_consecutive_rows_are_a_view(self):
        seen = []

        @lantern.batched
        def first(x):
            return x * 2

        @lantern.batched
        def second(x):
            seen.append(x)
            return x

        lantern.batch(lambda x: second(first(x)), np.arange(6.0).reshape(3, 2))
        assert seen[0].shape == (3, 2)
        assert seen[0].base is not None

    def test_structures_of_results(self):
        @lantern.batched
        def f(x):
            return {"a": x, "b": [x + 1, None]}

        results = lantern.batch(f, [1.0, 2.0])
        assert results == [{"a": 1, "b": [2, None]}, {"a": 2, "b": [3, None]}]

    def test_structures_of_arguments(self):
        @lantern.batched
        def f(state):
            return state["a"] + state["b"][0] * state["b"][1]

        examples = [{"a": 1.0, "b": [2, np.float64(k)]} for k in range(3)]
        assert lantern.batch(f, examples) == [1, 3, 5]

    def test_other_shapes_make_other_groups(self):
        results = lantern.batch(halve, [np.ones(2), np.ones(3), np.ones(2)])
        assert [run.size for run in results.runs] == [2, 1]

    def test_other_static_arguments_make_other_groups(self):
        @lantern.batched
        def f(x, mode, *, power):
            return x**power if mode == "power" else -x

        def body(k):
            return f(float(k), "power" if k < 2 else "minus", power=1 + k % 2)

        results = lantern.batch(body, range(4))
        assert results == [0, 1, -2, -3]
        assert sorted(run.size for run in results.runs) == [1, 1, 1, 1]

    def test_calls_are_told_apart_from_the_last_one_of_their_function(self):
        @lantern.batched
        def plus(x, y=0, *, by=0, of=0):
            x = x[0] if isinstance(x, tuple) else x
            return x + y + by * 10 + of * 100

        def nested(x, other):
            late = plus(x)  # computed when the inner batch looks at it

            def body(y):
                y = plus(y)
                return plus(plus(y, y), late)

            return lantern.batch(body, [2.0])[0]

        calls = [
            nested,
            lambda x, other: plus(other, 1),
            lambda x, other: plus(x, 1),
            lambda x, other: plus(x, True),
            lambda x, other: plus(x, 2.0),
            lambda x, other: plus((x,)),
            lambda x, other: plus(x),
            lambda x, other: plus(x, by=1),
            lambda x, other: plus(x, by=2),
            lambda x, other: plus(x, of=1, by=1),
            lambda x, other: plus(x, by=1, of=1),
            lambda x, other: plus(3, x),
            lambda x, other: plus(x, x),
            lambda x, other: plus(x, other),
            lambda x, other: plus(plus(x), plus(other)),
        ]

        def results(w, run):
            (other,) = lantern.batch(halve, [w])  # to the batch below no row of its own

            def body(start):
                x = halve(start * w)
                return [call(x, other) for _ in range(2) for call in calls]

            return lantern.stack([y for ys in run(body, [1.0, 2.0]) for y in ys])

        expected, at_zero = (results(w, plain_loop) for w in (3.0, 0.0))
        v = np.arange(1.0, 1 + len(expected))
        np.testing.assert_array_equal(results(3.0, lantern.batch), expected)
        slope = grad(lambda w: (results(w, lantern.batch) * v).sum())(3.0)
        np.testing.assert_allclose(slope, (expected - at_zero) @ v / 3)  # it is linear

    def test_numbers_take_the_type_of_the_arrays_beside_them(self):
        @lantern.batched
        def f(x, scale):
            return x * scale[:, None]

        (result,) = lantern.batch(lambda x: f(x, 0.5), [np.ones(2, np.float32)])
        assert result.dtype == np.float32

    def test_integers_index(self):
        table = np.arange(10.0)

        @lantern.batched
        def read(i):
            return table[i]

        assert lantern.batch(read, [3, 1, 4]) == [3, 1, 4]

    def test_tracked_numbers(self):
        @lantern.batched
        def f(x):
            return x * x

        def loss(numbers, run):
            return sum(run(f, numbers))

        numbers = [1.0, 2.0, 3.0]
        assert grad(loss)(numbers, lantern_batch) == [2, 4, 6]

    def test_rows_of_another_batch(self):
        @lantern.batched
        def double(x):
            return x * 2

        def loss(w):
            earlier = lantern.batch(double, [w[0], w[1], w[2]])
            alone = double(w[3])
            rows = [*reversed(earlier), alone]
            return sum((k + 1) * double(x) for k, x in enumerate(rows)) + sum(
                (k + 1) * y for k, y in enumerate(lantern.batch(double, rows))
            )

        np.testing.assert_allclose(grad(loss)(np.ones(4)), [24, 16, 8, 32])

    def test_rows_stacked_again(self):
        def loss(w):
            rows = lantern.batch(halve, [w[0], w[1], w[2]])
            return (lantern.stack([rows[2], rows[0], rows[2]]) * np.arange(1, 4)).sum()

        np.testing.assert_allclose(grad(loss)(np.ones(3)), [1, 0, 2])

    def test_a_result_that_nobody_uses_receives_nothing(self):
        @lantern.batched
        def f(x):
            return x, lantern.sqrt(x)

        def loss(x, run):
            return sum(y for y, _ in run(f, [x, x]))

        assert grad(loss)(np.float64(0), lantern_batch) == 2

    @pytest.mark.parametrize("used", [[1], [1, 1], [0, 1], [2, 1]])
    def test_a_row_that_nobody_uses_receives_nothing(self, used):
        @lantern.batched
        def f(x):
            return lantern.sqrt(x * 1)

        def loss(w, run):
            rows = run(f, [w[0], w[1], w[2], w[0] * w[2]])
            return sum(rows[k] for k in used)

        w = np.array([0.0, 4.0, 9.0]) + (0 in used)
        np.testing.assert_array_equal(
            grad(loss)(w, lantern_batch), grad(loss)(w, plain_loop)
        )

    def test_rows_that_meet_a_value_of_an_outer_derivative(self):
        def inner(w, y):
            rows = lantern.batch(lambda x: halve(halve(x) * 1) * y, [w[0], w[1]])
            return rows[0] * rows[1]

        def outer(run):
            return grad(lambda y: (grad(run)(np.array([2.0, 3.0]), y)).sum())

        def alone(w, y):
            return w[0] / 4 * y * w[1] / 4 * y

        np.testing.assert_allclose(outer(inner)(5.0), outer(alone)(5.0))

    def test_rows_of_several_groups_behind_a_branch_that_was_not_taken(self):
        def loss(w, run):
            rows = run(lambda k: halve(halve(w[k]) if k else w[k]), range(3))
            z = lantern.stack([rows[1], rows[0], rows[2]])
            return lantern.where(np.array([True, False, True]), z * z, 0.0).sum()

        w = np.array([0.0, 4.0, 9.0])
        np.testing.assert_allclose(
            grad(loss)(w, lantern_batch), grad(loss)(w, plain_loop)
        )

    def test_structures_that_results_have_in_common_stay_common(self):
        def body(x):
            y = halve(x)
            both = [y, "text"]
            return both, both, {"y": [y]}

        (first, second, third), _ = lantern.batch(body, [np.ones(2), np.zeros(2)])
        assert first is second
        assert first[0].tolist() == third["y"][0].tolist() == [0.5, 0.5]

    def test_what_does_not_change_keeps_its_identity(self):
        examples = [{"x": 1.0}, {"x": 2.0}]
        results = lantern.batch(lambda e: (e, halve(e["x"])), examples)
        assert all(r[0] is e for r, e in zip(results, examples, strict=True))


class TestOutside:
    def test_a_call_is_a_batch_of_one(self):
        assert halve(np.array(3.0)) == 1.5
        assert type(halve(np.ones(2))) is np.ndarray
        assert grad(halve)(3.0) == 0.5

    def test_a_call_in_a_batched_function_is_direct(self):
        shapes = []

        @lantern.batched
        def inner(x):
            shapes.append(x.shape)
            return x + 1

        @lantern.batched
        def outer(x):
            return inner(x) * 2

        assert lantern.batch(outer, [1.0, 2.0]) == [4, 6]
        assert shapes == [(2,)]

    def test_so_is_one_in_a_batched_function_outside(self):
        shapes = []

        @lantern.batched
        def inner(x):
            shapes.append(x.shape)
            return x + 1

        outer = lantern.batched(lambda x: inner(x) * 2)
        assert outer(1.0) == 4
        assert shapes == [(1,)]

    def test_fork(self):
        assert lantern.fork(lambda: 1, lambda: 2) == (1, 2)
        assert lantern.batch(lambda x: lantern.fork(), [1]) == [()]

    def test_no_examples(self):
        assert lantern.batch(halve, []) == []

    def test_examples_that_call_nothing(self):
        assert lantern.batch(lambda x: x + 1, range(3)) == [1, 2, 3]

    def test_nested_batches(self):
        def loss(w, run):
            def outer(xs):
                return sum(run(lambda x: halve(x * w), xs)) * halve(w)

            return sum(run(outer, [[1.0, 2.0], [3.0], []]))

        np.testing.assert_allclose(
            grad(loss)(np.float64(2), lantern_batch),
            grad(loss)(np.float64(2), plain_loop),
        )

    def test_a_derivative_for_each_example(self):
        def slope(x):
            return grad(lambda y: halve(y * y) * y)(x)

        assert lantern.batch(slope, [1.0, 2.0]) == [slope(1.0), slope(2.0)]

    def test_names_are_kept(self):
        assert halve.__name__ == "halve"
        assert lantern.batched(halve).__wrapped__ is halve


def failing(x):
    x = halve(x * 1.0)
    if x == 1:
        raise ValueError("one")
    return halve(x)


class TestErrors:
    def test_the_example_is_named(self, probe):
        with pytest.raises(ValueError, match="one") as caught:
            lantern.batch(failing, [4, 8, 2, 16])
        assert caught.value.__notes__ == ["batch: raised by example 2"]

    def test_the_others_are_unwound(self, probe):
        log = []

        def body(x):
            try:
                return failing(x)
            finally:
                log.append(x)

        with pytest.raises(ValueError, match="one"):
            lantern.batch(body, [4, 8, 2, 16])
        assert sorted(log) == [2, 4, 8, 16]

    def test_or_go_on(self, probe):
        results = lantern.batch(failing, [4, 2, 8], on_error="return")
        assert results[0] == 1
        assert isinstance(results[1], ValueError)
        assert results[2] == 2

    def test_of_a_batched_function(self, probe):
        @lantern.batched
        def f(x):
            raise ZeroDivisionError("here")

        with pytest.raises(ZeroDivisionError) as caught:
            lantern.batch(f, [1.0, 2.0])
        assert any("f, called 2 times" in note for note in caught.value.__notes__)

    def test_of_a_batched_function_may_be_caught(self):
        @lantern.batched
        def f(x):
            raise ZeroDivisionError("here")

        def body(x):
            try:
                return f(x)
            except ZeroDivisionError:
                return halve(x)

        assert lantern.batch(body, [1.0, 2.0]) == [0.5, 1]

    def test_in_a_branch(self, probe):
        log = []

        def branch(x, k):
            try:
                x = float(halve(x))
                if k == 1:
                    raise KeyError("branch")
                return halve(halve(x))
            finally:
                log.append(k)

        def body(x):
            return lantern.fork(*[lambda k=k: branch(x, k) for k in range(4)])

        with pytest.raises(KeyError, match="branch"):
            lantern.batch(body, [1.0, 2.0])
        assert sorted(log) == [0, 0, 1, 1, 2, 2, 3, 3]

    @pytest.mark.parametrize("place", [0, 1])
    def test_in_a_branch_may_be_caught(self, place, probe):
        def branch(x, k):
            x = halve(x)
            if k == place:
                raise KeyError("branch")
            return halve(halve(x))

        def body(x):
            try:
                return lantern.fork(lambda: branch(x, 0), lambda: branch(x, 1))
            except KeyError:
                return halve(x)

        assert lantern.batch(body, [1.0, 2.0]) == [0.5, 1]

    def test_a_branch_that_fails_while_another_waits(self, probe):
        def fails(x):
            raise KeyError("branch")

        @lantern.batched
        def first(x):
            return x

        @lantern.batched
        def unwound(x):
            return x

        def body(x):
            try:
                thunks = lambda: first(x), lambda: unwound(x), lambda: fails(x)
                return lantern.fork(*thunks)
            except KeyError:
                return halve(x)

        results = lantern.batch(body, [1.0])
        assert results == [0.5]
        assert [run.name for run in results.runs] == ["first", "halve"]

    def test_errors_while_unwinding_leave_nobody_behind(self, probe):
        log = []

        def body(x):
            try:
                return failing(x)
            finally:
                log.append(x)
                if x == 4:
                    raise OSError("cleaning up")

        with pytest.raises((ValueError, OSError)):
            lantern.batch(body, [2, 4, 8, 16])
        assert sorted(log) == [2, 4, 8, 16]

    def test_interrupts_end_everything(self, probe):
        log = []

        def body(x):
            try:
                float(halve(x))
                if x == 2:
                    raise KeyboardInterrupt
                float(halve(x))
            finally:
                log.append(x)

        with pytest.raises(KeyboardInterrupt):
            lantern.batch(body, [1.0, 2.0, 3.0])
        assert sorted(log) == [1, 2, 3]

    def test_a_body_that_calls_while_it_is_unwound(self, probe):
        def body(x):
            try:
                return failing(x)
            finally:
                halve(1.0)

        with pytest.raises((ValueError, ArgumentError)):
            lantern.batch(body, [2, 4, 8])

    def test_the_gradient_after_an_error_is_right(self, probe):
        def loss(w):
            return sum(lantern.batch(lambda x: failing(x * w), [1.0, 2.0]))

        with pytest.raises(ValueError, match="one"):
            grad(loss)(2.0)
        assert grad(loss)(3.0) == 0.75

    @pytest.mark.parametrize(
        ("function", "words"),
        [
            (lambda x: x.sum(), r"shape \(\)"),
            (lambda x: x[:1], r"shape \(1,\)"),
            (lambda x: 1.0, "float"),
            (lambda x: "text", "str"),
        ],
    )
    def test_a_wrong_first_axis(self, function, words):
        with pytest.raises(ShapeError, match=f"3 rows at once, it returned {words}"):
            lantern.batch(lantern.batched(function), [1.0, 2.0, 3.0])

    def test_looking_across_the_first_axis(self):
        @lantern.batched
        def centre(x):
            return x - x.mean()

        lantern.batch(centre, [1.0, 2.0])
        with pytest.raises(ShapeError, match="centre: row 0 of 2 has another result"):
            lantern.batch(centre, [1.0, 2.0], check=True)

    def test_state_from_call_to_call(self):
        count = []

        @lantern.batched
        def counted(x):
            count.append(None)
            return x + len(count)

        with pytest.raises(ShapeError, match="no state"):
            lantern.batch(counted, [1.0, 2.0], check=True)

    def test_arguments(self):
        with pytest.raises(ArgumentError, match="expected a function"):
            lantern.batch(3, [])
        with pytest.raises(ArgumentError, match="no policy 'fast'"):
            lantern.batch(halve, [], policy="fast")
        with pytest.raises(ArgumentError, match="on_error is 'stop'"):
            lantern.batch(halve, [], on_error="stop")
        with pytest.raises(ArgumentError, match="expected a function"):
            lantern.fork(3)
        with pytest.raises(ArgumentError, match="expected a function"):
            lantern.batched(3)


class TestReport:
    def test_counts(self):
        results = lantern.batch(recurrent(W), SEQUENCES)
        sizes = [run.size for run in results.runs]
        assert sizes == [4, 3, 3, 2, 1, 1, 1]
        line = results.report().splitlines()[1].split()
        assert line == ["cell", "15", "7", "1", "2.1", "4", "13"]

    def test_branches_of_one_example(self):
        results = lantern.batch(recursive(W), TREES[-1:])
        assert sum(run.size for run in results.runs) == 8
        assert len(results.runs) < 8

    def test_shallowest_first(self):
        def body(n):
            x = np.float64(1)
            for _ in range(n):
                x = halve(x)
            return cell(np.ones(3) * x, np.ones(3), w=W)

        depths = [
            run.depth for run in lantern.batch(body, range(5), policy="depth").runs
        ]
        assert depths == sorted(depths)

    def test_plot(self, tmp_path):
        pytest.importorskip("matplotlib", reason="draws with matplotlib")
        path = tmp_path / "sizes.png"
        lantern.batch(recurrent(W), SEQUENCES).plot(path)
        assert path.read_bytes().startswith(b"\x89PNG")


def test_nothing_is_left(probe):
    class Thing:
        pass

    def run():
        thing = Thing()
        loss = total(recursive, TREES, lantern.batch)
        grad(lambda w: (loss(w), thing)[0])(W)
        return weakref.ref(thing)

    gc.collect()
    gc.disable()
    try:
        assert run()() is None, "no reference cycles"
    finally:
        gc.enable()


def test_same_bits_run_after_run():
    _, batch = both(recursive, TREES)
    assert grad(batch)(W).tobytes() == grad(batch)(W).tobytes()


def test_deep_and_wide():
    def body(n):
        x = np.float64(n)
        for _ in range(n):
            x = halve(x)
        return x

    results = lantern.batch(body, range(600))
    assert results[599] == 599 / 2.0**599
    assert len(results.runs) == 599
