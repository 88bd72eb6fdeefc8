"""The stand-in for CuPy keeps its manners; with ``--backend cupy``, CuPy itself."""

import numpy as np
import pytest

from tests import fake_cupy as standin
from tests.cupy_tables import MISSING_FUNCTIONS


@pytest.fixture
def x(backend):
    return backend.array(np.arange(6.0).reshape(2, 3))


@pytest.fixture
def host():
    return np.ones((2, 3))


# NumPy warns that CuPy's __array__ takes no copy=.
@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_it_is_no_array_of_numpy_and_never_becomes_one(backend, x):
    assert not isinstance(x, np.ndarray)
    for convert in (np.asarray, np.array, np.float64):
        with pytest.raises(TypeError, match="Implicit conversion"):
            convert(x)
    host = np.zeros((2, 3))
    with pytest.raises(TypeError):
        host[...] = x
    np.testing.assert_array_equal(x.get(), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("name", ["add", "multiply", "power", "matmul", "maximum"])
def test_it_does_not_mix_with_arrays_of_numpy(backend, x, host, name):
    for function in (getattr(np, name), getattr(backend.xp, name)):
        with pytest.raises(TypeError):
            function(x, host)
        with pytest.raises(TypeError):
            function(host, x)


def test_operators_do_not_mix_either(x, host):
    for operation in (
        lambda a, b: a + b,
        lambda a, b: a @ b.T,
        lambda a, b: a > b,
        lambda a, b: a**b,
    ):
        for pair in ((x, host), (host, x)):
            with pytest.raises(TypeError):
                operation(*pair)
    with pytest.raises(TypeError):
        x += host
    with pytest.raises((TypeError, ValueError)):
        x[0] = host[0]


# As above.
@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_functions_take_no_arrays_of_numpy(backend, x, host):
    xp = backend.xp
    for call in (
        lambda: xp.concatenate([x, host]),
        lambda: xp.stack([x, 1.0]),
        lambda: xp.where(host > 0, x, 0),
        lambda: xp.where(True, x, 0),
        lambda: np.concatenate([x, host]),
        lambda: np.dot(host, x.T),
    ):
        with pytest.raises((TypeError, AttributeError)):
            call()


def test_scalars_mix(backend, x):
    for scalar in (2, 2.0, np.float64(2), np.int64(2)):
        for z in (x * scalar, scalar * x, x + scalar, scalar - x, scalar > x):
            assert type(z) is backend.kind
            assert z.shape == (2, 3)
    single = x.astype(np.float32)
    assert (single * 2.0).dtype == np.float32
    assert (single * np.float64(2)).dtype == np.float64


def test_results_are_arrays_even_without_axes(backend, x):
    xp = backend.xp
    for z in (xp.sum(x), x.sum(), x[0, 0], xp.max(x), x[0] @ x[0], xp.linalg.norm(x)):
        assert type(z) is backend.kind
        assert z.shape == ()
    assert [type(row) for row in x] == [backend.kind] * 2


def test_functions_of_numpy_are_handed_over(backend, x):
    for z in (np.sin(x), np.sum(x, axis=0), np.where(x > 1, x, 0), np.fft.fft(x)):
        assert type(z) is backend.kind
    for z in np.linalg.svd(x):
        assert type(z) is backend.kind


def test_there_are_no_objects(backend, x):
    with pytest.raises((TypeError, ValueError)):
        x.astype(object)
    with pytest.raises((TypeError, ValueError)):
        backend.xp.array([None, "a"])


def test_repeated_indices_add_up(backend):
    x = backend.array(np.zeros(3))
    backend.xp.add.at(x, backend.array(np.array([1, 1, 2])), 1.0)
    np.testing.assert_array_equal(backend.host(x), [0, 2, 1])


def test_views_know_whose_memory_they_show(x):
    for view in (x[0], x[0][1:], x.T, x.reshape(6), x[..., None]):
        assert view.base is x
    assert x.base is x.copy().base is x[[0]].base is None


def test_what_is_added_at_positions(backend, x):
    backend.xp.add.at(x, backend.array(np.array([0, 0])), 1.0)
    np.testing.assert_array_equal(backend.host(x)[0], [2.0, 3.0, 4.0])
    with pytest.raises(TypeError, match="only supports"):
        backend.xp.add.at(x.astype(complex), backend.array(np.array([0])), 1.0)


def test_reads_are_views(backend, x):
    row, cell = x[1], x[0, 0]
    x += 1
    np.testing.assert_array_equal(backend.host(row), [4, 5, 6])
    assert float(cell) == 1


@pytest.mark.parametrize("name", sorted(MISSING_FUNCTIONS))
def test_what_cupy_lacks(backend, name):
    module = backend.xp
    *parts, name = name.split(".")
    for part in parts:
        module = getattr(module, part)
    if backend.name == "cupy" and hasattr(module, name):
        pytest.skip(f"CuPy {backend.xp.__version__} has it: the stand-in may follow")
    assert not hasattr(module, name)


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x: xp.sum(x, where=x > 1),
        lambda xp, x: xp.max(x, initial=0.0),
        lambda xp, x: x.sum(where=x > 1),
        lambda xp, x: xp.var(x, correction=1),
        lambda xp, x: xp.sort(x, stable=True),
        lambda xp, x: xp.clip(x, min=1.0),
        lambda xp, x: xp.asarray(x, device="cpu"),
        lambda xp, x: xp.maximum.accumulate(x),
        lambda xp, x: xp.minimum.reduce(x),
        lambda xp, x: xp.isin(x, 1.0),
        lambda xp, x: xp.roots(x[1]),
        lambda xp, x: xp.tensordot(x[0, 0], x, ([], [])),
        lambda xp, x: xp.linalg.solve(xp.eye(3), xp.ones((2, 3, 1))),
    ],
)
def test_parameters_methods_and_cases_that_cupy_lacks(backend, x, call):
    refusals = TypeError, NotImplementedError, AttributeError, ValueError
    with pytest.raises(refusals):
        call(backend.xp, x)


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x: x.nonzero(),
        lambda xp, x: x[x > 1],
        lambda xp, x: xp.linspace(x, 2.0, 3),
        lambda xp, x: xp.unique(x),
        lambda xp, x: xp.where(x > 1),
        lambda xp, x: xp.tril_indices(3),
        lambda xp, x: xp.argpartition(x, 1),
        lambda xp, x: xp.linalg.pinv(x),
        lambda xp, x: xp.linalg.lstsq(x, x),
        lambda xp, x: xp.bincount(xp.arange(3)),
    ],
)
def test_what_copies_a_number_to_the_host(backend, x, call):
    with pytest.raises((AssertionError, RuntimeError)), backend.without_copies():
        call(backend.xp, x)


def test_results_of_linear_algebra(backend, x):
    xp = backend.xp
    assert xp.linalg.eigvals(xp.eye(2)).dtype == complex
    assert type(xp.linalg.matrix_rank(x)) is backend.kind


def test_the_stand_in_counts_copies():
    x = standin.wrap(np.ones(3))
    for direction, copy in {
        "to host": [x.get, x.tolist, x[0].item, lambda: float(x[0]), lambda: repr(x)],
        "to device": [
            lambda: standin.xp.asarray(np.ones(3)),
            lambda: standin.xp.array([1.0, 2.0]),
            lambda: x[[0, 1]],
            lambda: x[np.array([0, 1])],
        ],
    }.items():
        for one in copy:
            standin.copies.clear()
            one()
            assert dict(standin.copies) == {direction: 1}
    standin.copies.clear()
    for quiet in (lambda: x + 1, lambda: standin.xp.zeros(3), lambda: x.copy(), x.sum):
        quiet()
    assert dict(standin.copies) == {}


def test_the_stand_in_counts_arrays():
    before = standin.alive["arrays"]
    x = standin.xp.ones(3)
    y = x + x[1:2]
    assert standin.alive["arrays"] == before + 2
    del x, y
    assert standin.alive["arrays"] == before
