"""``vmap``: axes, structures, nesting, and what has no one value."""

from typing import NamedTuple

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    BatchedValueError,
    DetachError,
    EscapedError,
    MutationError,
    ShapeError,
    grad,
    jacfwd,
    jacrev,
    jvp,
    tree_leaves,
    value_and_grad,
    vjp,
    vmap,
)

XS = np.arange(6.0).reshape(3, 2) / 3
W = np.array([0.5, -1.5])


class Layer(NamedTuple):
    weights: np.ndarray
    bias: np.ndarray


def loss(w, x):
    return np.tanh(w @ x) ** 2 + (w * w).sum()


class TestAxes:
    def test_each_argument_has_its_own(self):
        got = vmap(lambda x, y, z: x * y + z, in_axes=(1, None, -1))(XS, 2.0, XS)
        np.testing.assert_array_equal(got, (2 * XS + XS).T)

    def test_a_list_of_axes(self):
        np.testing.assert_array_equal(vmap(np.multiply, [0, None])(XS, W), XS * W)

    def test_structures_of_axes(self):
        layer = Layer(np.ones((3, 2, 2)), np.zeros(2))

        def f(parameters, x):
            layer, scale = parameters["layer"], parameters["scale"]
            return {"y": (layer.weights @ x + layer.bias) * scale}

        axes = ({"layer": Layer(0, None), "scale": None}, 0)
        got = vmap(f, axes)({"layer": layer, "scale": 2.0}, XS)
        want = np.stack([2 * np.ones((2, 2)) @ x for x in XS])
        np.testing.assert_allclose(got["y"], want)

    def test_one_axis_stands_for_a_whole_structure(self):
        got = vmap(lambda tree: tree["a"] + tree["b"][0])({"a": XS, "b": (XS, None)})
        np.testing.assert_array_equal(got, 2 * XS)

    def test_keyword_arguments_are_mapped_over_their_first_axis(self):
        got = vmap(lambda x, y: x @ y, in_axes=(None,))(W, y=XS)
        np.testing.assert_allclose(got, XS @ W)

    def test_axes_by_name(self):
        def f(w, x, *more, scale=1.0, shift):
            return scale * (w @ x) + sum(more) + shift

        common = {"w": None, "shift": None, "scale": 0}
        for args, kwargs in (
            ((W, XS), {"shift": 1.0, "scale": np.arange(3.0)}),
            ((), {"scale": np.arange(3.0), "x": XS, "shift": 1.0, "w": W}),
        ):
            got = vmap(f, common)(*args, **kwargs)
            np.testing.assert_allclose(got, np.arange(3.0) * (XS @ W) + 1.0)
        got = vmap(f, {"w": None, "shift": None})(W, XS, XS[:, 0], shift=1.0)
        np.testing.assert_allclose(got, XS @ W + XS[:, 0] + 1.0)
        got = vmap(lambda p: p["a"] @ p["b"], {"p": {"a": 0, "b": None}})(
            {"a": XS, "b": W}
        )
        np.testing.assert_allclose(got, XS @ W)

    def test_axes_of_results(self):
        def f(x):
            return np.outer(x, x), {"sum": x.sum(), "same": 1.0}

        y, rest = vmap(f, out_axes=(1, {"sum": 0, "same": None}))(XS)
        np.testing.assert_array_equal(y, np.stack([np.outer(x, x) for x in XS], axis=1))
        np.testing.assert_array_equal(rest["sum"], XS.sum(1))
        assert rest["same"] == 1.0
        last = vmap(lambda x: x, out_axes=-1)(XS)
        np.testing.assert_array_equal(last, XS.T)

    def test_a_result_that_all_examples_share_is_repeated(self):
        got = vmap(lambda x: (W, 2.0))(XS)
        np.testing.assert_array_equal(got[0], [W] * 3)
        np.testing.assert_array_equal(got[1], [2.0] * 3)
        assert not np.shares_memory(got[0], W)
        got[0][0] = 7.0
        np.testing.assert_array_equal(got[0][1], W)

    def test_axis_size_where_nothing_is_mapped(self):
        got = vmap(lambda x: 2 * x, in_axes=None, axis_size=4)(W)
        np.testing.assert_array_equal(got, [2 * W] * 4)

    def test_no_examples(self):
        got = vmap(lambda x: np.sin(x).sum())(np.ones((0, 2)))
        assert got.shape == (0,)


class TestErrors:
    @pytest.mark.parametrize(
        ("f", "axes", "args", "error", "words"),
        [
            (3.0, 0, (XS,), ArgumentError, "expected a function"),
            (np.add, "x", (XS, XS), ArgumentError, "in_axes must be"),
            (np.add, (0,), (XS, XS), ArgumentError, "1 entry, .* 2 positional"),
            (np.add, (0, 0.5), (XS, XS), ArgumentError, "an int or None, got 0.5"),
            (lambda p: p, {"a": 0}, ({"a": XS},), ArgumentError, "dict, write in_axes"),
            (np.add, 0, (XS, 2.0), ArgumentError, "argument 1 is 2.0.*None"),
            (np.add, None, (XS, XS), ArgumentError, "give axis_size"),
            (np.add, 0, (XS, W), ShapeError, "3 in argument 0, 2 in argument 1"),
            (np.add, (2, 0), (XS, XS), ShapeError, "argument 0 has 2 axes"),
            (lambda x: x[0], ((0, 0),), ((XS,),), ShapeError, "structure of argument"),
            (lambda x: "text", 0, (XS,), ArgumentError, "must return numbers"),
        ],
    )
    def test_in_the_users_words(self, f, axes, args, error, words):
        with pytest.raises(error, match=f"vmap: .*{words}"):
            vmap(f, axes)(*args)

    def test_axis_size_must_agree(self):
        with pytest.raises(ShapeError, match="5 in axis_size, 3 in argument 0"):
            vmap(np.sin, axis_size=5)(XS)

    def test_an_unmapped_result_must_be_the_same_for_all(self):
        with pytest.raises(ArgumentError, match="differs between the examples"):
            vmap(np.sin, out_axes=None)(XS)
        with pytest.raises(ShapeError, match="no axis 5"):
            vmap(np.sin, out_axes=5)(XS)

    @pytest.mark.parametrize(
        ("f", "words"),
        [
            (lambda x: x if x.sum() > 0 else -x, "lantern.where"),
            (lambda x: x[0] and x, "lantern.where"),
            (lambda x: max(x[0], x[1]), "lantern.where"),
            (lambda x: float(x[0]), "float: inside vmap"),
            (lambda x: int(x[0]), "int: inside vmap"),
            (lambda x: complex(x[0]), "complex: inside vmap"),
            (lambda x: x[0].item(), "item: inside vmap"),
            (lambda x: x.tolist(), "tolist: inside vmap"),
            (lambda x: np.asarray(x), "numpy.array: inside vmap"),
            (lambda x: range(x[0]), "index: inside vmap"),
            (lambda x: x[x > 0], "lantern.where"),
            (lambda x: np.nonzero(x), "lantern.where"),
            (lambda x: np.unique(x), "lantern.where"),
        ],
    )
    @pytest.mark.parametrize("inside", [False, True])
    def test_what_needs_one_value(self, f, words, inside):
        f = (lambda g: grad(lambda x: g(x).sum()))(f) if inside else f
        with pytest.raises(
            (BatchedValueError, DetachError), match="." if inside else words
        ):
            vmap(f)(XS)

    def test_it_is_the_builtin_error_that_people_expect(self):
        for builtin in (TypeError, ValueError):
            with pytest.raises(builtin):
                vmap(lambda x: bool(x[0]))(XS)

    def test_writing_is_refused(self):
        def write(x):
            x[0] = 1.0

        with pytest.raises(MutationError, match="at"):
            vmap(write)(XS)

        def write_into(x):
            y = np.zeros(2)
            y += x

        with pytest.raises(DetachError, match="out="):
            vmap(write_into)(XS)

    def test_a_value_that_escapes(self, probe):
        kept = []
        vmap(lambda x: kept.append(x) or x)(XS)
        with pytest.raises(EscapedError, match="vmap"):
            kept[0] * 2
        with pytest.raises(EscapedError, match="vmap"):
            lantern.sin(kept[0])
        kept.clear()

    def test_the_users_error_passes_and_the_next_call_is_right(self, probe):
        def fail(x):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            vmap(fail)(XS)
        np.testing.assert_array_equal(vmap(lambda x: x + 1)(XS), XS + 1)


class TestNesting:
    def test_gradients_of_each_example(self, probe):
        got = vmap(grad(loss), in_axes=(None, 0))(W, XS)
        np.testing.assert_allclose(got, np.stack([grad(loss)(W, x) for x in XS]))

    def test_values_and_gradients_of_structures(self):
        def f(p, x):
            return np.tanh(x @ p["w"] + p["b"]).sum()

        p = {"w": np.ones((2, 2)), "b": np.zeros(2)}
        value, gradient = vmap(value_and_grad(f), in_axes=(None, 0))(p, XS)
        assert value.shape == (3,)
        for i, x in enumerate(XS):
            want = grad(f)(p, x)
            np.testing.assert_allclose(gradient["w"][i], want["w"])
            np.testing.assert_allclose(gradient["b"][i], want["b"])

    def test_the_gradient_of_a_map_is_the_sum(self):
        total = grad(lambda w: vmap(loss, in_axes=(None, 0))(w, XS).sum())(W)
        np.testing.assert_allclose(total, sum(grad(loss)(W, x) for x in XS))

    def test_python_numbers(self):
        def f(a, x):
            return a**3 * x

        xs = XS[:, 0]
        np.testing.assert_allclose(vmap(f, (None, 0))(2.0, xs), 8 * xs)
        np.testing.assert_allclose(vmap(grad(f), (None, 0))(2.0, xs), 12 * xs)
        total = grad(lambda a: vmap(f, (None, 0))(a, xs).sum())(2.0)
        assert total == pytest.approx(12 * xs.sum())
        assert type(total) is float

    def test_every_mix_of_modes_and_maps(self):
        def f(x):
            return np.sin(x).sum() * x[0]

        def forward(g):
            return lambda x: jvp(g, (x,), (np.ones_like(XS[0]),))[1]

        def reverse(g):
            return lambda x: vjp(g, x)[1](1.0)[0][0]

        for inner in (forward, reverse):
            for outer in (forward, reverse):
                g = outer(inner(f))
                np.testing.assert_allclose(vmap(g)(XS), [g(x) for x in XS])
        np.testing.assert_allclose(
            grad(lambda xs: vmap(forward(f))(xs).sum())(XS),
            [grad(forward(f))(x) for x in XS],
        )

    def test_no_confusion_of_levels(self):
        """Differentiated and mapped values of other levels are constants here."""
        got = vmap(lambda x: x * grad(lambda y: x + y)(1.0))(XS[:, 0])
        np.testing.assert_array_equal(got, XS[:, 0])
        got = grad(lambda x: x * vmap(lambda y: x + y)(np.ones(2)).sum())(3.0)
        assert got == 2 * (2 * 3 + 1)
        table = vmap(lambda x: vmap(lambda y: x - 10 * y)(W))(XS[:, 0])
        np.testing.assert_array_equal(table, XS[:, :1] - 10 * W)
        table = vmap(lambda x: vmap(lambda y: grad(lambda z: x * y * z)(1.0))(W))(W)
        np.testing.assert_array_equal(table, np.outer(W, W))

    def test_a_map_over_the_last_axis_of_tracked_values(self):
        def f(xs):
            return (vmap(np.cumsum, -1, 1)(xs) ** 2).sum()

        want = grad(lambda xs: (lantern.cumsum(xs, axis=0) ** 2).sum())(XS)
        np.testing.assert_allclose(grad(f)(XS), want)


class TestPrograms:
    """Unmodified NumPy code inside, against one example after the other."""

    @pytest.mark.parametrize(
        "f",
        [
            lambda x: np.where(x > 0.5, x * x, -x),
            lambda x: np.where(x[0] > x[1], np.sqrt(x + 1), np.exp(x)),
            lambda x: np.clip(x, 0.2, x[1]),
            lambda x: np.maximum(x, 0.5) * np.sign(x - 0.4),
            lambda x: (
                np.linalg.norm(x - 0.3) + np.linalg.det(np.outer(x, x) + np.eye(2))
            ),
            lambda x: np.linalg.solve(np.outer(x, x) + np.eye(2), W),
            lambda x: np.linalg.solve(np.array([[2.0, 1.0], [0.0, 1.0]]), x),
            lambda x: np.sort(x)[::-1] + np.argmax(x) + np.argsort(x),
            lambda x: np.concatenate([x, [1.0, 2.0], x[:1]]),
            lambda x: np.stack([x, W], axis=1) @ x,
            lambda x: lantern.array([x[0], 2.0, x[1] * x[0]]),
            lambda x: np.zeros_like(x) + np.ones_like(x) + np.full_like(x, 2.0) * x,
            lambda x: lantern.full_like(x, x[0]) * x,
            lambda x: (x > 0.5) & ~(x > 1.0) | (x == 0),
            lambda x: x // 0.4 + x % 0.4 + (-x) ** 2 + abs(-x) + 1 / (1 + x) + 2**x,
            lambda x: np.floor(x) + np.round(x, 1) + np.isfinite(x) + x.round(),
            lambda x: np.all(x > 0.1) * np.any(x > 1) + np.count_nonzero(x),
            lambda x: np.einsum("i,j,jk->ik", x, x, np.ones((2, 2))),
            lambda x: np.fft.fft(x).real + np.abs(np.fft.rfft(x)).sum(),
            lambda x: np.interp(x, [0.0, 1.0, 2.0], [1.0, 3.0, -1.0]),
            lambda x: np.convolve(x, [1.0, 2.0, 0.5]),
            lambda x: np.searchsorted([0.3, 0.9, 1.2], x) * x,
            lambda x: np.var(x) + x.std() + x.mean() + np.ptp(x) + np.median(x),
            lambda x: np.tensordot(np.outer(x, x), np.outer(x, W), axes=((0,), (1,))),
            lambda x: np.dot(np.eye(2), x) + np.vdot(x, W) + np.inner(x, x),
            lambda x: (
                sum(v * i for i, v in enumerate(x)) + len(x) + x.shape[0] + x.size
            ),
            lambda x: lantern.softmax(x) + lantern.logsumexp(x) + lantern.relu(x - 0.5),
            lambda x: x.at[0].set(x[1] * 2).T + x.reshape(1, 2).ravel(),
            lambda x: (
                np.triu(np.outer(x, x))
                + np.diag(np.outer(x, x))
                + np.trace(np.outer(x, x))
            ),
            lambda x: x.astype(np.float32).astype(float) + x.astype(int),
            lambda x: np.broadcast_to(x[:, None], (2, 3)).sum(axis=1, keepdims=True),
        ],
    )
    def test_programs(self, f):
        got, want = (
            vmap(f)(XS),
            np.stack([np.asarray(f(lantern.Tensor(x))) for x in XS]),
        )
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)

        def total(x):
            return (f(x) * 1.0).sum()

        got, want = vmap(grad(total))(XS), np.stack([grad(total)(x) for x in XS])
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
        got = grad(lambda xs: (vmap(f)(xs) * 1.0).sum())(XS)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def untracked(f):
    """f of a table as an array of Lantern's, which takes indices that are batched."""
    return lambda t, i: f(lantern.Tensor(t) if type(t) is np.ndarray else t, i)


class TestIndices:
    """An index of its own for each example."""

    TABLE = np.arange(12.0).reshape(4, 3) ** 2
    ROWS = np.array([2, 0, 2])
    PAIRS = np.array([[0, 3], [1, 1], [2, 0]])

    READS = (
        lambda t, i: t[i],
        lambda t, i: t[i, 1],
        lambda t, i: t[:, i],
        lambda t, i: t[i, ::2],
        lambda t, i: t[None, i],
        lambda t, i: t[[0, 1], i],
        lambda t, i: t[..., i] * i,
        lambda t, i: lantern.take(t, i, axis=1),
        lambda t, i: t[i].sum() * t[:, 1],
        lambda t, i: (
            t.at[i].set(1.0) if hasattr(t, "at") else lantern.at(t)[i].set(1.0)
        ),
        lambda t, i: lantern.at(t)[:, i].add(2.0),
        lambda t, i: lantern.at(t)[i].multiply(t[0]),
    )

    @pytest.mark.parametrize("f", READS)
    @pytest.mark.parametrize("own_table", [False, True])
    def test_reads_and_writes(self, f, own_table):
        table = (
            np.stack([self.TABLE, -self.TABLE, self.TABLE + 1])
            if own_table
            else self.TABLE
        )
        axes = (0 if own_table else None, 0)
        pairs = [
            (table[i] if own_table else table, int(r)) for i, r in enumerate(self.ROWS)
        ]
        got = vmap(untracked(f), axes)(table, self.ROWS)
        want = np.stack([untracked(f)(*pair) for pair in pairs])
        np.testing.assert_allclose(got, want)

        def total(t, i):
            return (f(t, i) ** 2).sum()

        want = np.stack([grad(total)(*pair) for pair in pairs])
        np.testing.assert_allclose(vmap(grad(total), axes)(table, self.ROWS), want)
        got = grad(lambda t: vmap(total, axes)(t, self.ROWS).sum())(table)
        np.testing.assert_allclose(got, want if own_table else want.sum(0))

    @pytest.mark.parametrize(
        "f",
        [
            lambda t, i: t[i],
            lambda t, i: t[:, i % 3],
            lambda t, i: t[i[:, None], i % 3],
            lambda t, i: t[i, 0] + t[1, i % 3],
            lambda t, i: lantern.take_along_axis(t, i[:, None], axis=0),
            lambda t, i: lantern.at(t)[i].add(1.0) + lantern.at(t)[i].set(i[:, None]),
        ],
    )
    def test_arrays_of_positions(self, f):
        def total(t, i):
            return (f(t, i) ** 2).sum()

        got = vmap(untracked(f), (None, 0))(self.TABLE, self.PAIRS)
        np.testing.assert_allclose(got, [f(self.TABLE, p) for p in self.PAIRS])
        want = [grad(total)(self.TABLE, p) for p in self.PAIRS]
        got = vmap(grad(total), (None, 0))(self.TABLE, self.PAIRS)
        np.testing.assert_allclose(got, want)

    def test_a_pullback_of_a_plain_cotangent(self):
        def read(i):
            return vjp(lambda t: t[i], self.TABLE)[1](np.ones(3))[0]

        np.testing.assert_array_equal(
            vmap(read)(self.ROWS), [read(int(i)) for i in self.ROWS]
        )


def test_conditions_of_each_example_choose_between_outer_values():
    def f(w):
        return vmap(lambda x: np.where(x > 0.5, w, w * w))(XS).sum()

    want = grad(lambda w: np.where(XS > 0.5, w, w * w).sum())(W)
    np.testing.assert_array_equal(grad(f)(W), want)


def test_the_branch_not_taken_leaks_no_nan():
    xs = np.array([0.0, 4.0])

    def f(x):
        return np.where(x > 0, np.sqrt(x), 0.0)

    np.testing.assert_array_equal(vmap(grad(f))(xs), [0.0, 0.25])
    np.testing.assert_array_equal(grad(lambda x: vmap(f)(x).sum())(xs), [0.0, 0.25])


def test_types_stay():
    got = vmap(grad(lambda x: (x * x).sum() * 2))(XS.astype(np.float32))
    assert got.dtype == np.float32
    assert vmap(lambda x: x + 1)(np.arange(3)).dtype == np.arange(3).dtype
    z = vmap(lambda z: z.conjugate() * 1j)(XS + 1j)
    np.testing.assert_array_equal(z, (XS - 1j) * 1j)


def test_untracked_tensors_come_back_as_such():
    got = vmap(lambda x: x * 2)(lantern.Tensor(XS))
    assert type(got) is lantern.Tensor
    np.testing.assert_array_equal(np.asarray(got), 2 * XS)


def test_a_rule_of_the_users_own(own_rules):
    from lantern.op import elementwise, op

    @elementwise
    def twice(x, /):
        z_bar = yield 2 * x
        yield 2 * z_bar

    @op
    def spread(x, /):
        total = x.sum()
        z_bar = yield x * total
        yield z_bar * total + (z_bar * x).sum()

    for rule in (twice, spread):
        np.testing.assert_allclose(vmap(rule)(XS), [rule(x) for x in XS])
        g = grad(lambda x, rule=rule: (rule(x) ** 2).sum())
        np.testing.assert_allclose(vmap(g)(XS), [g(x) for x in XS])
        total = grad(lambda xs, rule=rule: (vmap(rule)(xs) ** 2).sum())
        np.testing.assert_allclose(total(XS), [g(x) for x in XS])


def test_inputs_are_not_modified_and_nothing_is_left_behind(probe):
    before = XS.copy()
    result = vmap(grad(loss), (None, 0))(W, XS)
    np.testing.assert_array_equal(XS, before)
    assert all(not np.shares_memory(g, XS) for g in tree_leaves(result))


def test_results_share_memory_with_nothing():
    def f(x):
        return x, x, x[::-1], x.sum(), np.broadcast_to(x, (2, *x.shape)), x.T

    table = np.stack([XS, XS], axis=-1)
    for got in (
        vmap(f)(XS),
        vmap(f, in_axes=-1, out_axes=-1)(table),
        vmap(lambda x: vjp(lambda x, y: x + y, x, x)[1](x))(XS),
        vmap(grad(lambda x, y: (x + y).sum(), (0, 1)))(XS, XS),
    ):
        for i, a in enumerate(got):
            assert a.flags.writeable
            assert not any(np.shares_memory(a, b) for b in (*got[:i], XS, table))


def test_values_tell_what_they_are():
    seen = []
    vmap(lambda x: seen.append(f"{x!r} {x} {x.ndim} {x.dtype}") or x)(XS)
    assert seen[0].startswith("Batched(3 examples of shape (2,), vmap)")
    assert seen[0].endswith("1 float64")


def test_stacked_examples():
    def both(x):
        return lantern.stack([x, 2 * x])

    np.testing.assert_array_equal(lantern.vmap(both)(np.arange(2.0)), [[0, 0], [1, 2]])


INDEXED = {
    "positions": lambda x, i: lantern.getitem(x, i) ** 2,
    "of a table": lambda x, i: lantern.getitem(XS, i)[:, 0] * lantern.getitem(x, i),
    "two": lambda x, i: lantern.getitem(lantern.outer(x, x), (i, [0, 1])),
    "beside a slice": lambda x, i: lantern.getitem(
        lantern.outer(x, x), (slice(None), i)
    ),
    "beside a mask": lambda x, i: lantern.getitem(
        lantern.outer(x, x), (i, np.array([True, False, True]))
    ),
    "taken": lambda x, i: lantern.take(x, i) * x[0],
    "written": lambda x, i: (
        lantern.Tensor(x * 1.0).at[i].set(x[:2] * 3.0)
        if isinstance(x, np.ndarray)
        else (x * 1.0).at[i].set(x[:2] * 3.0)
    ),
    "sorted": lambda x, i: np.sort(x) * np.arange(3.0) * x,
}
AROUND = {
    "pushed": jacfwd,
    "pulled": jacrev,
    "twice": lambda f: jacfwd(jacrev(f)),
    "mapped": lambda f: lambda x, i: vmap(lambda k: f(x * k, i))(np.arange(1.0, 4.0)),
    "mapped over the index": lambda f: (
        lambda x, i: vmap(lambda j: f(x, j))(lantern.stack([i, i[::-1]]))
    ),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", INDEXED)
def test_an_index_of_each_example_inside_another_map(name, around):
    f = AROUND[around](INDEXED[name])
    xs = np.array([[0.5, -1.5, 2.5], [3.0, 1.0, -2.0]])
    indices = np.array([[2, 0], [0, 1]])
    got = lantern.asarray(vmap(f)(xs, indices))
    for found, x, i in zip(got, xs, indices, strict=True):
        np.testing.assert_allclose(found, lantern.stop_gradient(f(x, i)), rtol=1e-13)
