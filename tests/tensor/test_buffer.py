"""A buffer can be written to, and its derivative is exact."""

import copy
import math
import pickle

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    Buffer,
    DetachError,
    EscapedError,
    MutationError,
    ShapeError,
    grad,
    jvp,
    vjp,
)
from lantern.testing import check_grads

pytestmark = pytest.mark.usefixtures("probe")
X = np.array([0.7, -1.3, 0.4, 1.9])
MASK = np.array([True, False, True, True])


def elements(x, b):
    for i in range(4):
        b[i, 1] = x[i] * x[i]


def recurrence(x, b):
    for i in range(1, 4):
        b[i] = b[i - 1] * x[:3] + x[i]


def columns(x, b):
    for j in (2, 0, 2, 1):
        b[:, j] = x * (j + 1.0) + b[:, 2]


def elements_of_rows(x, b):
    for i in range(4):
        b[i] = x[:3] * x[i]
        b[i, 0] += b[i, 1] * 2.0
    b[0, 0] = b[3, 2] * b[2, 1]


def slices(x, b):
    b[1:3] = x[:3]
    b[::2, 1:] *= x[3]
    b[2:0:-1] += b[:2] * x[0]


def negative_steps(x, b):
    b[::-1, 0] = x
    b[3:0:-2] = b[::2] * x[1]


def augmented(x, b):
    b += x[0]
    b *= b * x[1]
    b -= 1.0
    b /= x[2] + 2.0
    b **= 2.0
    b[2] -= x[:3]
    b[...] *= 3.0


def arrays_as_indices(x, b):
    b[[0, 3], 1] = x[:2]
    b[MASK] *= x[:3]
    b[np.array([1, 1]), np.array([0, 2])] += x[2:]
    b[:, [2, 0]] = b[:, [0, 1]] * x[:, None]
    b[b > 1.0] = x[0]


def windows(x, b):
    row, corner = b[1], b[:2, 1:]
    row[1] = x[0]
    corner[...] *= x[1]
    corner[0][0] = row[1] * x[2]
    row += x[:3]
    b[1, 2] = corner[1, 0] * corner[1, 1]


def windows_onto_themselves(x, b):
    b[1:] = b[:-1] * x[:3] + b[1:]
    b[...] = b[::-1]
    b[1:] = b[:-1]
    b[:, :2] += b[:, 1:]


def overwritten_whole(x, b):
    b[0] = x[:3]
    b.fill(2.0)
    b[1] = b[0] * x[:3]
    b[...] = x[:, None] * b
    b[2, 2] = 0.0
    b.fill(x[3] * b[1, 1])
    b[0] = x[:3]


def methods(x, b):
    b[:, 0] = x
    b.sort(axis=0)
    b[1] *= 2.0
    b.put([0, 5, -1], x[1:])
    b.partition(1)


def into_out(x, b):
    np.multiply(x[:, None], b, out=b)
    np.sum(b[:2], axis=0, out=b[3])
    np.add.at(b, (np.array([0, 0]), 1), x[1:3])
    np.multiply.at(b, 2, x[0])
    np.copyto(b[0], x[:3], where=[True, False, True])
    np.fill_diagonal(b, x[:3])
    np.place(b, b > 2.0, x[:2])
    np.putmask(b, b < -1.0, x)
    np.put(b, [1, 13], x[2:], mode="wrap")
    np.put_along_axis(b, np.array([[0], [1], [2], [0]]), x[:, None], axis=1)


def ranges_and_new_axes(x, b):
    b[None, 2] = x[:3]
    b[..., 0] = x
    b[1, ...] = b[..., 2][:3] * x[0]
    b[()] = b * 2.0


PROGRAMS = (
    elements,
    recurrence,
    columns,
    elements_of_rows,
    slices,
    negative_steps,
    augmented,
    arrays_as_indices,
    windows,
    windows_onto_themselves,
    overwritten_whole,
    methods,
    into_out,
    ranges_and_new_axes,
)
START = np.linspace(0.5, 1.6, 12).reshape(4, 3)


def result(program, make):
    """What a program leaves behind, in a buffer or in an array of NumPy."""

    def f(x):
        b = make(START)
        program(x, b)
        return b

    return f


@pytest.mark.parametrize("program", PROGRAMS)
class TestProgram:
    def test_the_values_are_those_of_an_array_of_numpy(self, program):
        by_numpy = result(program, np.array)(X)
        plain = result(program, Buffer)(X)
        tracked, _ = vjp(result(program, Buffer), X)
        np.testing.assert_array_equal(np.asarray(plain), by_numpy)
        np.testing.assert_allclose(tracked, by_numpy, rtol=1e-15)

    def test_the_derivatives_of_both_orders_in_every_mix_of_modes(self, program):
        f = result(program, Buffer)
        check_grads(lambda x: lantern.sin(f(x)), (X,), order=2, rtol=1e-5, atol=1e-5)

    def test_the_start_may_be_tracked_too(self, program):
        def f(start, x):
            b = Buffer(start)
            program(x, b)
            return lantern.sin(b)

        check_grads(f, (START, X), order=2, rtol=1e-5, atol=1e-5)

    def test_the_drivers_agree_and_a_pullback_can_be_called_again(self, program):
        f = lambda x: lantern.sum(result(program, Buffer)(x) ** 2)  # noqa: E731
        g, pullback = grad(f)(X), vjp(f, X)[1]
        np.testing.assert_array_equal(grad(f, driver="switching")(X), g)
        np.testing.assert_array_equal(pullback(1.0)[0], pullback(1.0)[0])
        np.testing.assert_allclose(pullback(1.0)[0], g, rtol=1e-13)
        start = START.copy()
        result(program, lambda _: Buffer(start))(X)
        np.testing.assert_array_equal(start, START)


def powers(x):
    b = Buffer(np.ones(5))
    for i in range(1, 5):
        b[i] = b[i - 1] * x
    return lantern.sum(b)


def test_numbers_and_any_order():
    f = powers
    for want in (31.0, 49.0, 62.0, 54.0, 24.0, 0.0):
        assert f(2.0) == pytest.approx(want, rel=1e-14)
        f = grad(f)
    tower = lambda x: jvp(grad(lambda x: jvp(powers, (x,), (1.0,))[1]), (x,), (1.0,))  # noqa: E731
    assert tower(2.0) == (62.0, 54.0)


def test_the_hessian_through_a_buffer():
    def f(x):
        b = Buffer(np.zeros(3))
        b[0] = x[0] * x[1]
        b[1:] = x[1:] * b[0]
        b[2] *= x[0]
        return lantern.sum(b.freeze())

    x = np.array([2.0, 3.0, 5.0])
    rows = [grad(lambda x, i=i: grad(f)(x)[i])(x) for i in range(3)]
    # x0 x1 + x0 x1² + x0² x1 x2
    a, b, c = x
    expected = [
        [2 * b * c, 1 + 2 * b + 2 * a * c, 2 * a * b],
        [1 + 2 * b + 2 * a * c, 2 * a, a * a],
        [2 * a * b, a * a, 0.0],
    ]
    np.testing.assert_allclose(rows, expected, rtol=1e-14)


def test_a_buffer_shared_by_nested_derivatives():
    def f(x):
        b = Buffer(np.zeros(3))
        b[0] = x

        def inner(y):
            c = Buffer(b)
            c[1] = b[0] * y * y
            c[2] = x * c[1]
            return lantern.sum(c)

        b[1] = grad(inner)(x * 2.0)  # (x + x²) 2y at y = 2x
        b[0] = 0.0  # what the inner derivative has read stays
        return lantern.sum(b)

    assert f(1.5) == pytest.approx(4 * 1.5**2 + 4 * 1.5**3, rel=1e-14)
    assert grad(f)(1.5) == pytest.approx(8 * 1.5 + 12 * 1.5**2, rel=1e-14)
    assert jvp(f, (1.5,), (1.0,))[1] == pytest.approx(39.0, rel=1e-14)


def test_a_constant_of_an_inner_derivative_is_what_the_buffer_was():
    def f(x):
        b = Buffer([1.0, 2.0])
        b[0] = x

        def inner(y):
            z = lantern.sum(b * y * y)
            b[...] = 7.0
            return z

        return grad(inner)(3.0)  # 2 y (x + 2)

    assert f(5.0) == 42.0
    assert grad(f)(5.0) == 6.0


def test_reads_are_frozen_and_windows_are_not():
    def f(x):
        b = Buffer(np.zeros(3))
        b[...] = x
        before, window = b.freeze(), b[1:]
        b[1] = 5.0 * x[0]
        return before, window.freeze(), b[1], lantern.asarray(b), b

    before, window, element, array, b = f(X[:3])
    assert [type(x).__name__ for x in f(X[:3])] == ["Tensor"] * 4 + ["Buffer"]
    np.testing.assert_array_equal(before, X[:3])
    np.testing.assert_array_equal(window, [3.5, 0.4])
    assert element == 3.5
    np.testing.assert_array_equal(array, b)
    slopes = jvp(f, (X[:3],), (np.ones(3),))[1]
    np.testing.assert_array_equal(slopes[0], [1.0, 1.0, 1.0])
    np.testing.assert_array_equal(slopes[1], [5.0, 1.0])
    assert type(slopes[4]) is np.ndarray


def test_what_is_read_from_a_plain_buffer_cannot_be_written_to_by_mistake():
    b = Buffer(np.zeros((2, 2)))
    for read in (b.freeze(), b.T, b.real, b.flat, b.reshape(4)):
        with pytest.raises(MutationError, match="buffer"):
            read[0] = 1.0
        with pytest.raises(MutationError, match="buffer"):
            read += 1.0
    assert not np.asarray(b).any()
    before = b.freeze()
    b[0, 0] = 1.0
    assert not base_sum(before)


def base_sum(x):
    return float(lantern.sum(x))


def test_gradients_are_plain_arrays():
    g = grad(lambda x: lantern.sum(Buffer(x)[0:2] * 2.0))(X)
    assert type(g) is np.ndarray
    inner = []
    grad(lambda x: (inner.append(grad(lambda y: y[0] * y[1] * x[0])(x)), x[0])[1])(X)
    assert type(inner[0]) is lantern.Tensor


COPIES = {
    "copy": lambda b: b.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "Buffer": Buffer,
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_another_buffer(name):
    def f(x):
        b = Buffer(np.zeros(2))
        b[0] = x
        c = COPIES[name](b)
        b[0], c[1] = 0.0, x
        return lantern.sum(c) * x

    assert grad(f)(3.0) == 12.0


def test_pickle():
    b = pickle.loads(pickle.dumps(Buffer([1.0, 2.0])[1:]))
    assert type(b) is Buffer
    assert b.tolist() == [2.0]
    with pytest.raises(DetachError, match="pickle"):
        grad(lambda x: pickle.dumps(Buffer([x])))(1.0)


def test_types_and_shapes_of_what_is_written():
    def write(v, dtype=np.float64, index=0):
        def f(x):
            b = Buffer(np.zeros((2, 3)), dtype=dtype)
            b[index] = v(x)
            return lantern.sum(b)

        return f

    for dtype in (np.float32, np.float64):
        value, pullback = vjp(write(lambda x: x * 2.0, dtype), np.ones(3))
        assert value.dtype == dtype
        assert pullback(dtype(1))[0].dtype == np.float64
    with pytest.raises(ArgumentError, match=r"int64.*astype"):
        grad(write(lambda x: x, np.int64))(1.0)
    with pytest.raises(ArgumentError, match="complex128"):
        grad(lambda x: lantern.real(write(lambda x: x * 1j)(x)))(1.0)
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3,\)"):
        grad(write(lambda x: x[:2]))(np.ones(3))
    with pytest.raises(IndexError, match="out of bounds"):
        grad(write(lambda x: x, index=5))(1.0)
    with pytest.raises(IndexError, match="too many"):
        grad(write(lambda x: x, index=(0, 0, 0)))(1.0)
    value, g = lantern.value_and_grad(write(lambda x: x.reshape(1, 1, 3)))(np.ones(3))
    assert value == 3.0
    np.testing.assert_array_equal(g, np.ones(3))


def test_complex_buffers():
    def f(z):
        b = Buffer(np.zeros(3, dtype=complex))
        b[0] = z
        b[1:] = b[0] * z * 1j
        b[2] *= 2.0
        return lantern.sum(lantern.abs(b) ** 2)

    check_grads(f, (1.2 - 0.7j,), order=2)


def test_a_buffer_without_axes_and_an_empty_one():
    def f(x):
        b = Buffer(0.0)
        b[()] = x
        b *= x
        b[...] += b
        return b.freeze()

    assert grad(f)(3.0) == 12.0
    empty = grad(lambda x: lantern.sum(Buffer(np.zeros((0, 2))) * x))(2.0)
    assert empty == 0.0


def test_a_buffer_from_outside():
    b = Buffer(np.zeros(2))

    def f(x):
        b[...] = x
        b[0] *= 2.0
        return lantern.sum(b)

    for _ in range(2):  # written over as a whole, it can be used again
        np.testing.assert_array_equal(grad(f)(np.ones(2)), [2.0, 1.0])
    with pytest.raises(EscapedError, match="over"):
        b + 1.0
    b[...] = 0.0
    assert b.tolist() == [0.0, 0.0]


def test_a_buffer_as_the_argument_of_an_inner_derivative():
    def f(x):
        b = Buffer(np.ones(2))
        b[0] = x
        g = grad(lambda y: y[0] * y[0] * y[1] * x)(b)  # 2 x², x³
        b[0] = 7.0
        assert type(g) is lantern.Tensor
        return lantern.sum(g) + jvp(lambda y: y * y, (b,), (b,))[1][1]

    assert f(3.0) == 47.0
    assert grad(f)(3.0) == 39.0
    assert jvp(f, (3.0,), (1.0,)) == (47.0, 39.0)


def test_loops_functions_and_arguments():
    def f(b):
        b = Buffer(b)
        for row in b:
            row[0] *= row[1]
        return sum(lantern.sum(row) for row in b) + math.prod(b.shape) + len(b)

    x = np.array([[2.0, 3.0], [4.0, 5.0]])
    np.testing.assert_array_equal(grad(f)(x), [[3.0, 3.0], [5.0, 5.0]])
    np.testing.assert_array_equal(
        grad(lambda x: lantern.sum(x * x))(Buffer(X)), 2.0 * X
    )
    assert lantern.stack([Buffer(X), Buffer(X)]).shape == (2, 4)


def rules_made(f, x):
    """How many operations a derivative of f suspends, by name."""
    level, names = lantern.transforms.reverse.Reverse("test"), []
    suspend = level.suspend

    def count(receiver):
        names.append(receiver.suspended.gi_code.co_name)
        suspend(receiver)

    level.suspend = count
    tracked = lantern.transforms.reverse.track("test", x, level)
    level.run(lambda: f(tracked))
    return names


@pytest.mark.parametrize("n", [50, 200])
def test_n_writes_and_a_freeze_are_one_operation(n):
    def f(x):
        b = Buffer(np.zeros(n))
        for i in range(n):
            b[i] = x
        return b.freeze()

    def chain(x):
        b = Buffer(np.ones(n))
        for i in range(1, n):
            b[i] = b[i - 1] * x  # reads what was just written
        return b.freeze()

    assert rules_made(f, np.float64(2.0)) == ["overwritten"]
    # the first factor is a constant: it makes no operation but the product
    assert rules_made(chain, np.float64(1.0)).count("overwritten") == 1
    assert len(rules_made(chain, np.float64(1.0))) == n


@pytest.mark.parametrize("n", [50, 200])
def test_n_reads_take_a_number_of_operations_that_grows_as_n_in_second_derivatives(n):
    def f(x):
        y = x * x
        return sum(y[i] * y[i] for i in range(n))

    names = rules_made(grad(f), np.ones(n))
    assert names.count("_scatter") == 0
    assert len(names) <= 12 * n
    x = np.linspace(1.0, 2.0, n)
    second = grad(lambda x: lantern.sum(grad(f)(x)))(x)
    np.testing.assert_allclose(second, 12 * x**2, rtol=1e-12)
    again = vjp(grad(f), x)[1](np.ones(n))[0]
    np.testing.assert_allclose(again, 12 * x**2, rtol=1e-12)


def test_on_a_device(backend):
    def f(x):
        b = Buffer(backend.array(np.zeros(4)))
        for i in range(4):
            b[i] = x[i] * x[i - 1]
        b[1:3] *= x[0]
        b[:2] = b[2:] * b[0]
        return lantern.sum(b)

    x = backend.array(X)
    with backend.without_copies():
        g = grad(f)(x)
    np.testing.assert_allclose(
        backend.host(g), grad(lambda x: f_on_host(x))(X), rtol=1e-12
    )


def f_on_host(x):
    b = Buffer(np.zeros(4))
    for i in range(4):
        b[i] = x[i] * x[i - 1]
    b[1:3] *= x[0]
    b[:2] = b[2:] * b[0]
    return lantern.sum(b)
