"""Every operation on arrays of a device: as on the host, and nothing leaves the device.

The arrays are those of a stand-in for CuPy (tests/fake_cupy.py); with
``--backend cupy`` they are CuPy's, on a GPU.
"""

import gc

import numpy as np
import pytest

import lantern
from lantern import MissingRuleError, grad, jvp, tree_leaves, vjp
from lantern.op import registry
from lantern.testing import random_like
from tests.backends import check_equal, moved, numpys_own_sums, settled
from tests.cases import CONSTANT, ELEMENTWISE, Case, call, draw
from tests.every_op.test_every_op import BROADCASTS, CASES, FIRST_CASES, operands

# Operations that the device's libraries do not have.
WITHOUT_COUNTERPART = {
    "bessel": "cupyx.scipy.special has Bessel functions of order 0 and 1 alone",
    "iv": "cupyx.scipy.special has Bessel functions of order 0 and 1 alone",
    "solve_banded": "cupyx.scipy.linalg has no such function",
    "sqrtm": "cupyx.scipy.linalg has no such function",
    "stdtr": "cupyx.scipy.special has no such function",
    "sylvester": "cupyx.scipy.linalg has no such function",
}
# Operations that move numbers of their own to the device.
UPLOADING = {
    "gammainc": "nodes and weights of a quadrature",
    "gammaincc": "nodes and weights of a quadrature",
    "gammaincinv": "nodes and weights of a quadrature",
}
# Operations for which the device's libraries copy a number to the host.
LOOKING = {
    "expm": "how often to square depends on the norm",
    "frechet": "how often to square depends on the norm",
    "lstsq": "CuPy counts which singular values are not 0",
    "roots": "how many there are, and of what type, depends on the values",
}


@pytest.fixture(autouse=True)
def _numpys_own_sums():
    with numpys_own_sums():
        yield


def on_device(backend, case):
    """A case's function with the arrays among its arguments on the device."""
    statics = moved(backend, case.statics)
    if isinstance(statics.get("index"), list):
        statics["index"] = backend.array(np.array(statics["index"]))
    return call(case._replace(statics=statics), settled)


def has_mask(case):
    dtypes = [getattr(x, "dtype", None) for x in tree_leaves(case.statics)]
    return np.dtype(bool) in dtypes


def cotangents(f, x):
    return random_like(f(*x), np.random.default_rng(1))


def derivatives(f, x, x_dot, y_bar):
    """The value, both first derivatives, and a Hessian-vector product."""
    y, pullback = vjp(f, *x)
    x_bar = pullback(y_bar)
    y_dot = jvp(f, x, x_dot)[1]
    second = jvp(lambda *x: vjp(f, *x)[1](y_bar), x, x_dot)[1]
    return y, x_bar, y_dot, second


def run(backend, case):
    """All that a case computes, on the device and on the host."""
    if case.name in WITHOUT_COUNTERPART:
        with pytest.raises(MissingRuleError, match="CPU"):
            on_device(backend, case)(*moved(backend, operands(case)))
        pytest.skip(WITHOUT_COUNTERPART[case.name])
    x, f = operands(case), call(case, settled)
    arguments = x, random_like(x, np.random.default_rng(2)), cotangents(f, x)
    there, g = moved(backend, arguments), on_device(backend, case)
    looking = case.name in LOOKING or has_mask(case)
    with backend.without_copies(case.name in UPLOADING, looking):
        got = derivatives(g, *there)
    return got, derivatives(f, *arguments)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives_are_those_of_the_host_and_stay_on_the_device(backend, case):
    got, want = run(backend, case)
    for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
        check_equal(backend, a, b)


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("name", [n for n, i in ELEMENTWISE.items() if len(i) == 2])
def test_broadcasting(backend, name, shapes):
    got, want = run(backend, Case(name, ELEMENTWISE[name], {}, shapes))
    for a, b in zip(tree_leaves(got), tree_leaves(want), strict=True):
        check_equal(backend, a, b)


@pytest.mark.parametrize("case", FIRST_CASES.values(), ids=str)
def test_float32_stays_float32(backend, case):
    if case.name in WITHOUT_COUNTERPART:
        pytest.skip(WITHOUT_COUNTERPART[case.name])
    x, f = operands(case, dtype=np.float32), on_device(backend, case)
    arguments = moved(backend, (x, x, cotangents(call(case), x)))
    y, x_bar, y_dot, second = derivatives(f, *arguments)
    for z in (y, y_dot):
        for a, b in zip(tree_leaves(z), tree_leaves(call(case)(*x)), strict=True):
            assert a.dtype == b.dtype
    for g in tree_leaves((x_bar, second)):
        assert type(g) is backend.kind
        assert g.dtype == np.float32


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_operations(backend, name):
    rng = np.random.default_rng(0)
    x = tuple(draw(interval, rng, (2, 3)) for interval in CONSTANT[name])
    f = registry[name].function
    with backend.without_copies():
        y = f(*moved(backend, x))
    check_equal(backend, y, f(*x))


def test_every_operation_of_the_tables_exists():
    assert {*WITHOUT_COUNTERPART, *UPLOADING, *LOOKING} <= set(registry)


@pytest.fixture
def x(backend):
    return backend.array(np.arange(6.0).reshape(2, 3) / 4 + 0.5)


class TestProgram:
    """What is more than one operation."""

    def test_both_drivers(self, backend, x):
        def f(x):
            return lantern.sum(lantern.tanh(x @ x.mT) * 2.0)

        with backend.without_copies():
            one = grad(f)(x)
            two = grad(f, driver="switching")(x)
        check_equal(backend, one, backend.host(two))
        check_equal(backend, one, grad(f)(backend.host(x)))

    def test_functions_of_numpy(self, backend, x):
        def f(x):
            return np.sum(np.where(x > 1, np.sin(x), x) @ np.ones_like(x).T)

        with backend.without_copies():
            got = grad(f)(x)
        check_equal(backend, got, grad(f)(backend.host(x)))

    def test_plain_arrays_on_either_side(self, backend, x):
        def f(y):
            return lantern.sum((x * y - y / x) ** 2)

        with backend.without_copies():
            got = grad(f)(x)
        x = backend.host(x)
        check_equal(backend, got, grad(f)(x))

    def test_numbers_of_numpy_beside_arrays(self, backend, x):
        two = np.float64(2)
        with backend.without_copies():
            got = grad(lambda x: lantern.sum(lantern.maximum(two, x) * two))(x)
        assert type(got) is backend.kind

    def test_the_gradient_of_a_number_is_a_number(self, backend, x):
        host = backend.host(x)
        for y in (x, host):
            assert grad(lambda a, y=y: lantern.sum(lantern.exp(a * y)))(
                0.5
            ) == pytest.approx(np.sum(host * np.exp(0.5 * host)))

    def test_a_number_moves_an_array(self, backend, x):
        for f in (lambda a: a + x, lambda a: x - a, lambda a: lantern.maximum(a, x)):
            with backend.without_copies():
                y, y_dot = jvp(f, (5.0,), (1.0,))
            assert type(y_dot) is backend.kind
            assert y_dot.shape == y.shape
        np.testing.assert_array_equal(backend.host(y_dot), np.ones((2, 3)))

    def test_numbers_as_seeds_and_tangents(self, backend, x):
        with backend.without_copies():
            total, pullback = vjp(lantern.sum, x)
            gradients = [pullback(1.0)[0], pullback(np.float64(1))[0], pullback(1)[0]]
            tangent = jvp(lambda t: t * x, (total,), (1.0,))[1]
        for g in gradients:
            check_equal(backend, g, np.ones((2, 3)))
        check_equal(backend, tangent, backend.host(x))

    def test_a_gradient_with_respect_to_no_axes(self, backend):
        x = backend.array(np.array(3.0))
        with backend.without_copies():
            got = grad(grad(lambda x: x * x * x))(x)
        check_equal(backend, got, np.array(18.0))

    def test_an_independent_input_gets_zeros(self, backend, x):
        with backend.without_copies():
            got = grad(lambda x, y: lantern.sum(x), argnums=1)(x, x)
        check_equal(backend, got, np.zeros((2, 3)))

    def test_indices_on_the_host(self, backend, x):
        for index in ([1, 1, 0], np.array([1, 1, 0]), (0, [2, 2])):

            def f(x, index=index):
                return lantern.sum(x[index] * x[index])

            check_equal(backend, grad(f)(x), grad(f)(backend.host(x)))

    def test_reads_of_single_elements(self, backend, x):
        def f(x):
            return sum(x[i, j] * (i + j) for i in range(2) for j in range(3))

        with backend.without_copies():
            got = grad(f)(x)
        check_equal(backend, got, grad(f)(backend.host(x)))

    def test_inputs_stay_untouched_and_gradients_are_their_own(self, backend, x):
        before = backend.host(x).copy()
        first, second = grad(lambda x, y: lantern.sum(x + y), (0, 1))(x, x)
        first += 1
        np.testing.assert_array_equal(backend.host(second), np.ones((2, 3)))
        np.testing.assert_array_equal(backend.host(x), before)

    def test_conversion_of_arrays(self, backend, x):
        for convert in (lantern.asarray, lantern.array):
            with backend.without_copies():
                got = convert(x)
            check_equal(backend, got, backend.host(x))

    def test_memory_is_flat(self, backend, x):
        step = grad(lambda w: lantern.mean((lantern.tanh(x @ w) - x[:, :1]) ** 2))
        w = backend.array(np.ones((3, 1)))
        steps = {"standin": 1_000, "cupy": 10_000}[backend.name]
        for i in range(steps):
            w = w - 0.1 * step(w)
            if i == 10:
                used = backend.used()
        assert backend.used() == used

    def test_it_survives_that_memory_runs_out(self, backend, x):
        step = grad(lambda x: lantern.sum(lantern.softmax(x @ x.mT) * 2.0 + x[0, 0]))
        want, failures = backend.host(step(x)), 0
        gc.collect()
        used = backend.used()
        for count in range(1, 60):
            try:
                with backend.room_for(count):
                    step(x)
            except MemoryError:
                failures += 1
            assert backend.used() == used
            check_equal(backend, step(x), want)
        assert 3 < failures < 59
