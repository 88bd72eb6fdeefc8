"""Reading and changing parts of arrays: every form of index, repeats, cost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import lantern
from lantern import grad, vjp
from lantern.errors import (
    ArgumentError,
    DetachError,
    MissingRuleError,
    MutationError,
)
from lantern.tensor.backend.numpy_namespace import numpy_namespace
from lantern.tensor.ops.indexing import LONG, Scatter, settled
from lantern.testing import check_grads
from tests.cases.indexing import INDICES


def array(*shape, seed=0):
    """Different numbers, of both signs, none near another or zero."""
    size = int(np.prod(shape))
    numbers = np.random.default_rng(seed).permutation(size) - size // 2
    return (0.2 * (numbers + 0.3 + 0.11 * seed)).reshape(shape)


class TestReading:
    @pytest.mark.parametrize("index", INDICES, ids=repr)
    def test_every_form_of_index(self, index):
        x = array(4, 3)
        w = array(*x[index].shape, seed=1)
        expected = np.zeros((4, 3))
        np.add.at(expected, index, w)
        gradient = grad(lambda x: lantern.sum(x[index] * w))(x)
        np.testing.assert_allclose(gradient, expected, rtol=1e-14)
        check_grads(lambda x: x[index] ** 3, (x,), order=2, atol=1e-5, rtol=1e-5)

    @settings(max_examples=200, deadline=None)
    @given(st.data())
    def test_any_index(self, data):
        shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=4, max_side=4))
        index = data.draw(
            arrays.basic_indices(shape, allow_newaxis=True)
            | arrays.integer_array_indices(shape)
            | arrays.arrays(bool, shape)
        )
        x = array(*shape)
        w = array(*np.shape(x[index]), seed=1)
        expected = np.zeros(shape)
        np.add.at(expected, index, w)
        gradient = grad(lambda x: lantern.sum(x[index] * w))(x)
        np.testing.assert_allclose(gradient, expected, rtol=1e-13, atol=1e-15)

    def test_scalars_read_in_a_loop_cost_what_they_weigh(self, monkeypatch):
        """Elements allocated in the backward pass: n for n reads, not n * n."""
        allocated = []

        def zeros(shape, dtype=float):
            allocated.append(np.prod(shape))
            return np.zeros(shape, dtype)

        monkeypatch.setattr(numpy_namespace, "zeros", zeros)
        monkeypatch.setattr(numpy_namespace, "zeros_like", None)
        for n in (100, 1000):
            x = array(n)
            allocated.clear()
            gradient = grad(lambda x, n=n: sum(x[i] * x[i] for i in range(n)))(x)
            np.testing.assert_array_equal(gradient, 2 * x)
            assert sum(allocated) == n
            allocated.clear()
            grad(lambda x: sum(row * row for row in x))(x)
            assert sum(allocated) == n

    @pytest.mark.parametrize(
        "index",
        [
            np.array([3, 0, -2]),
            np.arange(4) > 1,
            np.arange(12).reshape(4, 3) % 5 == 0,
            (slice(None), np.array([2, 0])),
            (np.arange(4) > 1, 1),
            (..., None, np.arange(3) > 1),
        ],
        ids=repr,
    )
    def test_an_index_without_repeats_takes_the_fast_way(self, index, monkeypatch):
        monkeypatch.setattr(numpy_namespace, "add", None)
        x = array(4, 3)
        expected = np.zeros((4, 3))
        expected[index] = 1
        np.testing.assert_array_equal(grad(lambda x: x[index].sum())(x), expected)

    @pytest.mark.parametrize("layout", ["C", "F"])
    @pytest.mark.parametrize("index", INDICES, ids=repr)
    def test_scatter_into_buffers_of_any_layout(self, index, layout):
        start = array(4, 3)
        buffer = np.array(start, order=layout)
        z_bar = array(*start[index].shape, seed=1)
        np.add.at(start, index, z_bar)
        Scatter(settled(index, start), z_bar).add_to(buffer)
        np.testing.assert_allclose(buffer, start, rtol=1e-14)

    @pytest.mark.parametrize("width", [0, 1, 3, LONG + 1])
    @pytest.mark.parametrize(
        "index",
        [
            np.array([3, 0, -1, 3]),
            np.array([200, 100, 200], np.uint8),
            (slice(None), np.array([0, 2, 0], np.int8)),
            (slice(None), slice(None), np.array([[1, 0], [-1, 1]])),
            (np.array([3, 3]), -1, np.array([[1, 1], [0, 2]])),
            (slice(None), np.array([0, 2, 0]), 1),
            (slice(None), np.arange(3) > 1, np.array([1])),
        ],
        ids=repr,
    )
    def test_scatter_of_short_and_long_rows_named_several_times(self, index, width):
        start = array(201, 3, 3, width)
        buffer, z_bar = start.copy(), array(*start[index].shape, seed=1)
        np.add.at(start, index, z_bar)
        Scatter(settled(index, start), z_bar).add_to(buffer)
        np.testing.assert_allclose(buffer, start, rtol=1e-12)

    def test_halves_that_are_named_often_are_added_up_in_single_precision(self):
        buffer = np.zeros(3, np.float16)
        Scatter(np.zeros(3000, int), np.ones(3000, np.float16)).add_to(buffer)
        assert buffer.tolist() == [3000, 0, 0]
        whole = np.zeros(3, np.int16)
        Scatter(np.zeros(3000, int), np.ones(3000, np.int16)).add_to(whole)
        assert whole.tolist() == [3000, 0, 0]

    def test_an_index_changed_after_use_changes_nothing(self):
        def f(x, index):
            y = x[index], lantern.at(x)[index].set(0.0), lantern.take(x, index)
            index[...] = index[::-1].copy()
            return sum(lantern.sum(part * np.arange(1.0, len(part) + 1)) for part in y)

        first = grad(f)(np.ones(4), np.array([0, 1]))
        np.testing.assert_array_equal(first, [2.0, 4.0, 3.0, 4.0])

    def test_reads_of_reads_of_nested_derivatives(self):
        index = np.array([0, 2, 0])

        def f(x):
            return lantern.sum(lantern.exp(x[1:][index] * x[0]) * x[-1])

        check_grads(f, (array(4),), order=3, atol=1e-3, rtol=1e-3)

    def test_what_numpy_refuses(self):
        for index in (5, (0, 0, 0), 1.0, "a", [[True]], ([0, 1], [0, 1, 2])):
            with pytest.raises((IndexError, ValueError)):
                grad(lambda x, index=index: x[index].sum())(array(2, 2))

    def test_a_tracked_number_in_an_index_is_no_integer(self):
        with pytest.raises(IndexError):
            grad(lambda x: x[x[0]])(np.ones(3))

    def test_iteration_and_length(self):
        rows = grad(lambda x: sum((i + 1) * r.sum() for i, r in enumerate(x)))(
            array(3, 2)
        )
        np.testing.assert_array_equal(rows, [[1, 1], [2, 2], [3, 3]])
        with pytest.raises(TypeError):
            grad(lambda x: len(x))(np.ones(()))


UPDATES = {
    "set": lambda a, i, v: a.__setitem__(i, v),
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "divide": np.divide.at,
    "power": np.power.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}
PLACES = [
    (1, ()),
    (slice(None, None, 2), (2, 3)),
    ([0, 2], (3,)),
    ([0, 2, 0, 0], (4, 1)),
    ((slice(None), [1, 1]), (4, 2)),
    (([0, 1, 0], [2, 2, 2]), (3,)),
    ((None, [0, 0]), (1, 2, 3)),
    (np.arange(12).reshape(4, 3) % 3 == 0, (4,)),
]


class TestUpdates:
    @pytest.mark.parametrize("name", UPDATES)
    @pytest.mark.parametrize(("index", "shape"), PLACES, ids=repr)
    def test_as_numpy_in_place(self, name, index, shape):
        x, v = np.abs(array(4, 3)) + 0.2, np.abs(array(*shape, seed=1)) + 0.3
        expected = x.copy()
        UPDATES[name](expected, index, v)

        def f(x, v):
            return getattr(lantern.at(x)[index], name)(v)

        np.testing.assert_allclose(f(x, v), expected, rtol=1e-15)
        np.testing.assert_allclose(vjp(f, x, v)[0], expected, rtol=1e-15)
        check_grads(f, (x, v), order=2, atol=1e-5, rtol=1e-5)
        check_grads(lambda v: f(x, v), (v,), order=1, atol=1e-6, rtol=1e-6)
        check_grads(lambda x: f(x, v), (x,), order=1, atol=1e-6, rtol=1e-6)

    def test_repeats_of_set_the_last_one_wins(self):
        gradients = grad(
            lambda x, v: (x.at[[0, 0, 1]].set(v) * np.array([2.0, 3.0, 5.0])).sum(),
            argnums=(0, 1),
        )(np.ones(3), np.array([7.0, 8.0, 9.0]))
        np.testing.assert_array_equal(gradients, [[0, 0, 5], [0, 2, 3]])

    def test_repeats_of_add_all_count(self):
        gradients = grad(lambda v: lantern.at(np.zeros(2))[[0, 0]].add(v).sum())(1.5)
        assert gradients == 2.0

    def test_tracked_numbers_and_lists_and_types(self):
        f = grad(lambda x: lantern.at(np.zeros(3, np.float32))[1].set(x).sum())
        assert f(2.0) == 1.0
        assert lantern.at(np.zeros(3, np.float32))[1].add(2.0).dtype == np.float32
        np.testing.assert_array_equal(lantern.at([1.0, 2.0])[:].set([3, 4]), [3, 4])
        for wrong in (np.zeros(3, int), np.zeros(3)):
            with pytest.raises(ArgumentError, match="does not fit"):
                lantern.at(wrong)[0].set(1j)
        with pytest.raises(ArgumentError, match="astype"):
            grad(lambda x: lantern.at(np.zeros(3, int))[0].set(x).sum())(2.0)

    def test_nothing_is_written_to(self):
        x, v = np.ones(3), np.zeros(2)
        y = lantern.at(x)[:2].set(v)
        assert not np.shares_memory(x, y)
        np.testing.assert_array_equal(x, np.ones(3))
        np.testing.assert_array_equal(lantern.at(x)[1:].get(), [1, 1])

    def test_put_along_axis(self):
        x, v, i = array(2, 3), array(2, 2, seed=1), np.array([[0, 2], [1, 1]])
        expected = x.copy()
        np.put_along_axis(expected, i, v, 1)

        def f(x, v, i=i, axis=1):
            return lantern.put_along_axis(x, i, v, axis, inplace=False)

        np.testing.assert_array_equal(f(x, v), expected)
        check_grads(f, (x, v), order=2)
        check_grads(lambda x: f(x, 1.0, np.array([4, 0]), None), (x,), order=2)

    @pytest.mark.parametrize(
        "write",
        [
            lambda x: np.put_along_axis(x, np.array([0]), 1.0, 0),
            lambda x: np.put_along_axis(np.ones(2), np.array([0]), x[:1], 0),
            lambda x: x.sort(),
            lambda x: x.partition(1),
            lambda x: x.fill(0.0),
            lambda x: x.put([0], 1.0),
            lambda x: x.resize((1, 2)),
            lambda x: x.__setitem__(0, 1.0),
            lambda x: x.flat.__setitem__(0, 1.0),
            lambda x: np.put(x, [0], 1.0),
            lambda x: np.copyto(np.ones(2), x),
            lambda x: np.fill_diagonal(x, 1.0),
        ],
    )
    def test_writing_in_place_is_refused(self, write):
        with pytest.raises((MutationError, MissingRuleError, DetachError)):
            grad(lambda x: write(x) or x.sum())(np.ones(2))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.flip(x),
        lambda x: np.roll(x, 1),
        lambda x: np.sort(x),
        lambda x: np.pad(x, 1),
        lambda x: np.pad(x, 2, "reflect"),
        lambda x: np.pad(x, 2, constant_values=1.0),
        lambda x: np.tile(x, 2),
        lambda x: np.repeat(x, 2),
        lambda x: np.diag(x),
        lambda x: np.take(x, [0, 0, 1]),
        lambda x: x[np.array([True, True])],
        lambda x: x.at[0].add(1.0),
        lambda x: x.at[0].set(x[1]),
        lambda x: lantern.scatter(x, [1, 0], (2,)),
        lambda x: np.insert(x, 1, 1.0),
        lambda x: np.split(x, 2)[0],
        lambda x: np.tril(x[None])[0],
    ],
)
def test_a_branch_not_taken_sends_nothing_through(f):
    def masked(x):
        y = f(lantern.sqrt(x))
        return lantern.sum(lantern.where(np.isfinite(y) & (y > 1.5), y, 0.0))

    gradient = grad(masked)(np.array([0.0, 4.0]))
    assert np.isfinite(gradient).all()


def test_flat_reads_like_numpys():
    x = array(2, 3)
    f = grad(lambda x: x.flat[1] * x.flat[-1] + sum(x.flat))
    expected = np.ones((2, 3))
    expected[0, 1] += x[1, 2]
    expected[1, 2] += x[0, 1]
    np.testing.assert_allclose(f(x), expected)
