"""Batches where any operation waits: plain programs against the plain loop."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp
from lantern.errors import ArgumentError, DetachError, MutationError, ShapeError

RNG = np.random.default_rng(0)
W = RNG.standard_normal((3, 3)) * 0.4


def loop(f, examples):
    return [f(x) for x in examples]


def batch(f, examples, **options):
    return lantern.batch(f, examples, granularity="op", **options)


def sizes(results, name):
    return [run.size for run in results.runs if run.name == name]


def recurrent(w):
    def run(sequence):
        h = np.zeros(3)
        for x in sequence:
            h = lantern.tanh(h @ w + x)
        return h

    return run


def recursive(w):
    def run(tree):
        if not isinstance(tree, tuple):
            return tree
        left, right = map(run, tree)
        return np.tanh(left @ w + right @ w.T) * 0.5

    return run


def branching(w):
    def run(sequence):
        h = sequence[0] * 0
        for x in sequence:
            h = lantern.tanh(h @ w + x)
            if h[0] > 0.3:
                return h * 2
            if (h < -0.2).any():
                h = h + 1.0 / len(sequence)
        return h

    return run


def attending(w):
    """Rows of the examples themselves, of many kinds of operations."""

    def run(sequence):
        keys = sequence @ w
        scores = lantern.softmax(keys @ sequence[-1])
        best = int(scores.argmax())
        z = lantern.einsum("i,ij->j", scores, keys) + sequence[best]
        z = np.where(z > 0, z, 0.1 * z)
        return lantern.concat([z, keys.max(axis=0)])[1:4] / np.sqrt(len(sequence))

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
    pytest.param(attending, SEQUENCES, id="attention"),
]


def total(program, examples, run):
    def loss(w):
        results = run(program(w), examples)
        return sum(((k + 1) * h * h).sum() for k, h in enumerate(results))

    return loss


@pytest.mark.parametrize(("program", "examples"), PROGRAMS)
class TestSameAsTheLoop:
    @pytest.mark.parametrize("policy", ["largest", "depth", lambda groups: groups[-1]])
    def test_results(self, program, examples, policy, probe):
        expected = loop(program(W), examples)
        results = batch(program(W), examples, policy=policy, check=True)
        assert [type(h) for h in results] == [np.ndarray] * len(examples)
        for h, h_alone in zip(results, expected, strict=True):
            np.testing.assert_allclose(h, h_alone, rtol=1e-13)

    @pytest.mark.parametrize("driver", ["in place", "switching"])
    def test_gradient(self, program, examples, driver, probe):
        g = grad(total(program, examples, batch), driver=driver)(W)
        expected = grad(total(program, examples, loop))(W)
        np.testing.assert_allclose(g, expected, rtol=1e-11, atol=1e-13)

    def test_other_modes(self, program, examples, probe):
        v = RNG.standard_normal((3, 3))

        def forward(f):
            return lambda w: jvp(f, (w,), (v,))[1]

        def reverse(f):
            return lambda w: (grad(f)(w) * v).sum()

        def pullback(f):
            return lambda w: (vjp(f, w)[1](1.0)[0] * v).sum()

        together = total(program, examples, batch)
        alone = total(program, examples, loop)
        for outer in (lambda f: f, forward, grad):
            for inner in (forward, reverse, pullback):
                np.testing.assert_allclose(
                    outer(inner(together))(W),
                    outer(inner(alone))(W),
                    rtol=1e-9,
                    atol=1e-11,
                )

    def test_inputs_get_gradients_too(self, program, examples):
        def loss(examples, run):
            return sum((h * h).sum() for h in run(program(W), examples))

        pairs = zip(
            lantern.tree_leaves(grad(loss)(examples, batch)),
            lantern.tree_leaves(grad(loss)(examples, loop)),
            strict=True,
        )
        for g, g_alone in pairs:
            np.testing.assert_allclose(g, g_alone, rtol=1e-11, atol=1e-13)

    def test_single_precision_stays(self, program, examples):
        w = W.astype(np.float32)
        examples = lantern.tree_map(lambda x: x.astype(np.float32), examples)
        for run in (lambda f: f(w), lambda f: grad(f)(w)):
            z = run(total(program, examples, batch))
            expected = run(total(program, examples, loop))
            assert z.dtype == expected.dtype
            np.testing.assert_allclose(z, expected, rtol=1e-4, atol=1e-5)

    def test_many_weights_at_once(self, program, examples):
        if program in (branching, attending):
            pytest.skip("these look at values, of which there are many")
        ws = np.stack([W, 0.5 * W])
        for f in (lambda g: g, grad):
            np.testing.assert_allclose(
                lantern.vmap(f(total(program, examples, batch)))(ws),
                [f(total(program, examples, loop))(w) for w in ws],
                rtol=1e-11,
                atol=1e-13,
            )


STEPS = [
    lambda a, b, w, k: a + b,
    lambda a, b, w, k: a * b,
    lambda a, b, w, k: lantern.tanh(a),
    lambda a, b, w, k: a @ w,
    lambda a, b, w, k: a * (0.3 * k),
    lambda a, b, w, k: a[..., ::-1],
    lambda a, b, w, k: a.sum(-1)[..., None] * lantern.cos(b),
    lambda a, b, w, k: lantern.where(a > 0.1, a, b * 0.3),
    lambda a, b, w, k: lantern.concat([a, b], axis=-1)[..., 1:4],
    lambda a, b, w, k: a - np.arange(3.0),
    lambda a, b, w, k: a if a.reshape(-1)[0] > 0 else b + 1,
    lambda a, b, w, k: lantern.getitem(a, (..., np.array([k, 0, 2]))),
    lambda a, b, w, k: lantern.softmax(a) + b[..., :1],
    lambda a, b, w, k: np.maximum(a, b) ** 2,
    lambda a, b, w, k: a[..., 0, :] * b if len(a.shape) == 2 else a[k] * b,
    lambda a, b, w, k: lantern.einsum("...i,ij->...j", a, w),
    lambda a, b, w, k: lantern.stack([a, b])[k % 2] / (1 + lantern.abs(b)),
    lambda a, b, w, k: grad(lambda t: (lantern.sin(t) * b).sum())(a),
]


@pytest.mark.parametrize("seed", range(40))
def test_any_steps_in_any_order(seed):
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, len(STEPS), 10)
    pairs = rng.integers(0, 2**30, (10, 2))
    shapes = [(3,) if rng.random() < 0.6 else (2, 3) for _ in range(4)]
    examples = [(rng.standard_normal(s), k % 3) for k, s in enumerate(shapes)]

    def body(w):
        def run(example):
            x, k = example
            values = [x, x * 0.5]
            for step, (i, j) in zip(steps, pairs, strict=True):
                a, b = values[i % len(values)], values[j % len(values)]
                values.append(STEPS[step](a, b, w, k))
            return values[-1], values[-4]

        return run

    def loss(w, xs, run):
        some = [(x, k) for x, (_, k) in zip(xs, examples, strict=True)]
        results = run(body(w), some)
        return sum((k + 1) * z.sum() for k, pair in enumerate(results) for z in pair)

    for got, want in zip(
        batch(body(W), examples), loop(body(W), examples), strict=True
    ):
        for a, b in zip(got, want, strict=True):
            assert (type(a), a.shape, a.dtype) == (type(b), b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    xs = [x for x, _ in examples]
    got, want = (grad(loss, argnums=(0, 1))(W, xs, run) for run in (batch, loop))
    for a, b in zip(lantern.tree_leaves(got), lantern.tree_leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


class TestGroups:
    def test_the_same_operation_runs_once_for_all_who_wait(self):
        results = batch(recurrent(W), SEQUENCES)
        assert sizes(results, "tanh") == [4, 3, 3, 2, 1, 1, 1]
        # The first product is of zeros and the weight, and nobody's own.
        assert sizes(results, "matmul") == [3, 3, 2, 1, 1, 1]

    def test_nodes_of_one_tree_meet(self):
        assert max(sizes(batch(recursive(W), TREES[-1:]), "tanh")) > 1

    def test_other_shapes_types_and_statics_do_not_meet(self):
        examples = [np.ones(2), np.ones(3), np.ones(2), np.ones(2, np.float32)]
        assert sizes(batch(lambda x: lantern.exp(x), examples), "exp") == [2, 1, 1]
        pairs = [(np.ones((2, 2)), axis) for axis in (0, 1, 0)]
        assert sizes(batch(lambda p: p[0].sum(p[1]), pairs), "sum") == [2, 1]

    def test_numbers_of_their_own_meet(self):
        pairs = [(np.ones(2, np.float32) * k, 0.1 * k) for k in range(3)]
        results = batch(lambda p: p[1] * p[0] + 2.0, pairs)
        assert sizes(results, "multiply") == sizes(results, "add") == [3]
        for z, (x, k) in zip(results, pairs, strict=True):
            assert z.dtype == np.float32
            np.testing.assert_array_equal(z, k * x + 2.0)

    def test_signs_of_zero_are_kept(self):
        results = batch(lambda p: p[0] * p[1], [(np.ones(1), 0.0), (np.ones(1), -0.0)])
        assert np.signbit(results).ravel().tolist() == [False, True]

    def test_plain_arrays_of_their_own_meet_in_elementwise_operations(self):
        def body(pair):
            x, k = pair
            return x * np.full(3, float(k)) @ W

        pairs = [(np.ones(3), k) for k in range(3)]
        results = batch(body, pairs)
        assert sizes(results, "multiply") == sizes(results, "matmul") == [3]
        np.testing.assert_allclose(results, loop(body, pairs))

    def test_two_weights_of_one_shape_are_two_products(self):
        def body(x):
            return x @ W + x @ W.T

        results = batch(body, list(np.eye(3)))
        assert sizes(results, "matmul") == [3, 3]
        np.testing.assert_allclose(results, W + W.T)

    @pytest.mark.parametrize("side", ["left", "right"])
    def test_one_matrix_is_one_product_there_and_back(self, side):
        """Its copies for 40 examples would take 80 MB."""

        def loss(weight, run):
            def body(x):
                return lantern.tanh(x @ weight if side == "right" else weight @ x).sum()

            return sum(run(body, examples))

        weight = RNG.standard_normal((500, 500)) / 30
        examples = list(RNG.standard_normal((40, 500)))
        expected = grad(loss)(weight, loop)
        tracemalloc.start()
        try:
            got = grad(loss)(weight, batch)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)
        assert peak < 8 * weight.nbytes

    def test_a_large_constant_is_one_while_nobody_changes_it(self):
        weight = np.ones((100, 100))

        def body(x):
            y = x @ weight + x @ weight
            weight[0, 0] += 1
            return y + x @ weight

        examples = list(np.eye(3, 100))
        results = batch(body, examples)
        weight[0, 0] = 1
        np.testing.assert_allclose(results, loop(body, examples))

    def test_positions_of_their_own_read_a_table(self):
        def loss(table, run):
            return sum(
                (k + 1) * lantern.tanh(table[i] * 2).sum()
                for k, i in enumerate(run(lambda i: i * 1, np.array([2, 0, 2])))
            )

        def rows(table, run):
            rows = run(lambda i: lantern.tanh(table[i] @ W).sum(), np.array([2, 0, 2]))
            assert run is loop or sizes(rows, "getitem") == [3]
            return sum((k + 1) * row for k, row in enumerate(rows))

        for f in (loss, rows):
            np.testing.assert_allclose(grad(f)(W, batch), grad(f)(W, loop))

    def test_a_body_stops_only_at_the_first_of_a_kind(self):
        log = []

        def body(x):
            x = lantern.sin(lantern.sin(x))
            for k in range(3):
                x = lantern.sin(x) * 0.1
                log.append((k, x.shape, x.dtype, len(x)))
            return x

        examples = [np.zeros(2), np.ones(2)]
        np.testing.assert_allclose(batch(body, examples), loop(body, examples))
        ks = [k for k, *_ in log]
        assert ks[:6] in ([0, 0, 1, 2, 1, 2], [0, 1, 2, 0, 1, 2])

    def test_a_derivative_of_each_example_is_batched(self):
        def body(x):
            return grad(lambda y: (lantern.tanh(y @ W) ** 2).sum())(x)

        results = batch(body, SEQUENCES[2])
        assert {run.size for run in results.runs} == {7}
        np.testing.assert_allclose(results, loop(body, SEQUENCES[2]))

    def test_parts_are_read_where_they_are_needed(self):
        def body(x):
            y = lantern.tanh(x @ W)
            left, last = y[:2], y[-1]
            for _ in range(3):
                left = left[::-1] * last + y[1:]
            return left[0], left, y[None, 1:][0, 0], y

        def summed(x):
            first, left, one, y = body(x)
            return first * (left * left).sum() * one + y.sum()

        examples = list(np.eye(3))
        results = batch(body, examples)
        assert sizes(results, "multiply") == [3] * 3
        for got, want in zip(results, loop(body, examples), strict=True):
            for a, b in zip(got, want, strict=True):
                assert type(a) is type(b)
                np.testing.assert_allclose(a, b)
        for run in (batch, loop):
            g = grad(lambda x, run=run: sum(run(summed, x)))(examples)
            np.testing.assert_allclose(g, grad(lambda x: sum(map(summed, x)))(examples))
        with pytest.raises(IndexError):
            batch(lambda x: lantern.exp(x)[7], examples)

    def test_names_in_the_report(self):
        results = batch(lambda x: lantern.sin(x) @ W > 0, list(np.eye(3)))
        assert {run.name for run in results.runs} == {"sin", "matmul", "greater"}
        assert "padding avoided" in results.report()


class TestWhatIsOwn:
    def test_examples_of_any_structure(self):
        examples = [{"a": np.ones(2), "b": [k, "text", None]} for k in range(3)]
        results = batch(lambda e: {"z": (e["a"] * e["b"][0], e["b"])}, examples)
        assert results[2]["z"][0].tolist() == [2, 2]
        assert results[2]["z"][1] is examples[2]["b"]

    def test_what_is_looked_at(self):
        def body(x):
            y = lantern.exp(x)
            mask = np.asarray(y) > 1.5
            found = y[y > 1.5].sum(), np.unique(np.floor(y)), np.nonzero(mask)[0]
            return found, y.tolist(), f"{y[0]:.1f}", float(y[1]), bool(y[0] > 1), len(y)

        examples = [np.array([0.0, 1.0]), np.array([2.0, 1.0])]
        for got, want in zip(batch(body, examples), loop(body, examples), strict=True):
            for a, b in zip(
                lantern.tree_leaves(got), lantern.tree_leaves(want), strict=True
            ):
                np.testing.assert_array_equal(a, b)

    def test_a_tracked_row_that_would_become_a_constant(self, probe):
        def loss(w):
            return sum(batch(lambda x: float(x @ w), list(np.eye(3))))

        with pytest.raises(DetachError, match="float"):
            grad(loss)(np.ones(3))

    def test_a_number_where_an_integer_is_needed(self):
        def body(n):
            return np.arange(6.0)[n:] + np.ones(3).sum(axis=n - 3)

        assert [len(z) for z in batch(body, np.array([3, 3]))] == [3, 3]
        pairs = [(np.arange(3.0), np.int64(k)) for k in range(3)]
        ends = batch(lambda pair: pair[0][pair[1] :], pairs)
        assert [len(z) for z in ends] == [3, 2, 1]

    def test_results_of_marked_functions_are_own(self):
        @lantern.batched
        def embed(word, *, table):
            return table[word], {"twice": 2 * table[word]}

        def body(word):
            x, more = embed(word, table=W)
            return lantern.tanh(x @ W) + more["twice"]

        results = batch(body, [2, 0, 2, 1])
        assert sizes(results, "embed") == sizes(results, "tanh") == [4]
        np.testing.assert_allclose(results, loop(body, [2, 0, 2, 1]))

    def test_own_arrays_in_marked_functions(self):
        @lantern.batched
        def cell(state, *, scale):
            return {"h": lantern.tanh(state["h"] @ W) * scale}

        def body(x):
            state = {"h": x * 2}
            for _ in range(3):
                state = cell(state, scale=0.5)
                state = {"h": state["h"] + x}
            return state["h"]

        examples = list(np.eye(3))
        results = batch(body, examples, check=True)
        assert sizes(results, "cell") == sizes(results, "add") == [3] * 3
        np.testing.assert_allclose(results, loop(body, examples))

    def test_they_cannot_be_written_to(self):
        def body(x):
            x[0] = 1.0

        with pytest.raises(MutationError, match="cannot be written to"):
            batch(body, [np.ones(2)])
        results = batch(lambda x: x.at[0].set(x[1] * 3), [np.ones(2), np.zeros(2)])
        assert [x.tolist() for x in results] == [[3, 1], [0, 0]]

    def test_what_escapes_is_an_array(self, probe):
        kept = []
        batch(lambda x: kept.append(lantern.exp(x)), [np.zeros(2), np.ones(2)])
        assert (kept[0] + 1).tolist() == [2, 2]
        assert "of an example of a batch" in repr(kept[1])


class TestWhatIsReadLater:
    def test_constants_that_are_changed_after_the_operation(self):
        def body(x):
            buffer, matrix, h = np.zeros(2), np.zeros((2, 2)), x
            for k in range(4):
                buffer[:], matrix[:] = k, k
                h = (h + buffer) * buffer + x @ matrix
            return h

        examples = [np.ones(2), np.arange(2.0)]
        np.testing.assert_allclose(batch(body, examples), loop(body, examples))

    def test_examples_that_are_changed_by_others(self):
        first = np.ones(2)

        def body(x):
            y = lantern.exp(x)
            for _ in range(2):
                y = lantern.exp(x) + y
                first[:] = 7
            return y

        np.testing.assert_allclose(batch(body, [first, np.ones(2)]), 3 * np.e)

    def test_constants_do_not_pile_up(self):
        alive = []

        def body(x):
            for _ in range(50):
                constant = np.ones(1000)
                alive.append(weakref.ref(constant))
                x = x + constant
                float(x[0])  # waits, so that the addition is over
            return x

        batch(body, [np.zeros(1000)])
        assert sum(x() is not None for x in alive) == 0


def quietly(x):
    y = lantern.exp(x)
    with lantern.no_grad(x):
        scale = lantern.sin(y * x)
    return (scale * lantern.exp(y)).sum()


def again(x):
    return lantern.checkpoint(lambda y: (lantern.sin(y) * y).sum())(lantern.exp(x))


def derived(x):
    y = lantern.sin(x)
    slope = grad(lambda z: (lantern.exp(z * z) * y).sum())(y)
    (pulled,) = vjp(lambda z: z @ W * y, y)[1](y)
    pushed = jvp(lambda z: lantern.exp(z) * z, (y,), (x,))[1]
    rows = lantern.vmap(lambda z: lantern.exp(z * x))(np.arange(3.0))
    second = lantern.hessian(lambda z: (z**3 * y).sum())(x)
    return (slope + pulled + pushed * rows.sum(0) + second @ x).sum()


def forked(x):
    left, right = lantern.fork(lambda: lantern.exp(x) @ W, lambda: lantern.sin(x))
    return (left * right).sum()


def nested(x):
    inner = lantern.batch(lambda y: (x * y).sum(), [x, 2 * x])
    deeper = batch(lambda y: (x * lantern.exp(y)).sum(), [x, np.ones(3)])
    return sum(inner) + sum(deeper)


def branching_on_writes(x):
    buffer = lantern.Buffer(np.zeros(3))
    buffer[:] = x
    buffer[1] += 1.0
    return (buffer * x).sum()


@pytest.mark.parametrize(
    "body", [quietly, again, derived, forked, nested, branching_on_writes]
)
def test_other_verbs_in_a_body(body, probe):
    def loss(w, run):
        examples = [w[0], w[1], w[2]]
        return sum((k + 1) * y for k, y in enumerate(run(body, examples)))

    for _ in range(2):
        np.testing.assert_allclose(loss(W, batch), loss(W, loop), rtol=1e-12)
        expected = grad(loss)(W, loop)
        np.testing.assert_allclose(grad(loss)(W, batch), expected, rtol=1e-9)


def test_inside_a_batch_of_functions():
    def outer(xs):
        return sum(batch(lambda x: lantern.exp(x).sum(), xs))

    examples = [[np.zeros(2), np.ones(2)], [np.ones(3)]]
    np.testing.assert_allclose(lantern.batch(outer, examples), loop(outer, examples))


def test_closures_of_one_rule_are_told_apart(own_rules):
    def scaled(k):
        @lantern.op.op
        def scale(x, /):
            z_bar = yield k * x
            yield k * z_bar

        return scale

    twice, thrice = scaled(2.0), scaled(3.0)

    def body(x):
        return twice(x) - thrice(x)

    examples = [np.ones(2), np.zeros(2)]
    results = batch(body, examples)
    np.testing.assert_array_equal(results, loop(body, examples))
    assert sizes(results, "scale") == [2, 2]
    np.testing.assert_array_equal(lantern.vmap(twice)(np.ones(3)), 2.0)


class TestErrors:
    def test_are_raised_by_the_first_operation_of_a_kind(self, probe):
        def body(x):
            try:
                return x @ np.ones((5, 5))
            except ValueError:
                return x * 2

        assert batch(body, [np.ones(2), np.ones(2)])[1].tolist() == [2, 2]
        with pytest.raises(ValueError, match="matmul") as caught:
            batch(lambda x: x @ np.ones((5, 5)), [np.ones(2), np.ones(2)])
        assert any(
            "matmul, called 2 times at once (examples 0, 1)" in note
            for note in caught.value.__notes__
        )

    def test_others_go_on(self, probe):
        def body(x):
            y = lantern.exp(x)
            if y[0] > 2:
                raise KeyError("too much")
            return y * 2

        examples = [np.zeros(1), np.ones(1)]
        results = batch(body, examples, on_error="return")
        assert results[0].tolist() == [2]
        assert isinstance(results[1], KeyError)
        with pytest.raises(KeyError, match="too much"):
            batch(body, examples)

    def test_granularity(self):
        with pytest.raises(ArgumentError, match="granularity is 'all'"):
            lantern.batch(len, [], granularity="all")

    def test_marked_functions_are_still_checked(self):
        @lantern.batched
        def centre(x):
            return x - x.mean()

        with pytest.raises(ShapeError, match="row 0 of 2 has another result"):
            batch(lambda x: centre(x * 1), [np.zeros(2), np.ones(2)], check=True)


def test_nothing_is_left(probe):
    class Thing:
        pass

    def run():
        thing = Thing()
        loss = total(recursive, TREES, batch)
        grad(lambda w: (loss(w), thing)[0])(W)
        return weakref.ref(thing)

    gc.collect()
    gc.disable()
    try:
        assert run()() is None, "no reference cycles"
    finally:
        gc.enable()


def test_no_cycles():
    def body(x):
        for _ in range(4):
            x = lantern.tanh(x @ W) + weight[:3, 0]
        return x

    weight = np.ones((1000, 1))  # kept as a large constant
    examples = list(np.eye(3))
    batch(body, examples)
    gc.collect()
    gc.disable()
    try:
        batch(body, examples)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_same_bits_run_after_run():
    loss = total(recursive, TREES, batch)
    assert grad(loss)(W).tobytes() == grad(loss)(W).tobytes()


def test_deep():
    def body(x):
        for _ in range(5_000):
            x = x * 0.5 + 1.0
        return x

    np.testing.assert_allclose(batch(body, [np.ones(2), np.zeros(2)]), 2)
