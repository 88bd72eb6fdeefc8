"""Arrays joined: inside brackets, from lists of numbers, and in others' containers."""

import numpy as np
import pytest

import lantern
from lantern.testing import check_grads

X, C = np.array([1.5, -0.5, 2.0]), np.array([4.0, 5.0, 6.0])
M = np.arange(6.0).reshape(3, 2) / 7
BRACKETS = {
    "one": lambda join, x: join["r_"][x],
    "twice": lambda join, x: join["r_"][x, x],
    "constants and ranges": lambda join, x: join["r_"][x, C, 0.5, 1:4, 0:1:3j],
    "numbers": lambda join, x: join["r_"][x[0], 2.0, x[1:]],
    "matrices": lambda join, x: join["r_"]["1", M, x[:, None] * M],
    "columns": lambda join, x: join["c_"][x, M, x],
    "columns of matrices": lambda join, x: join["c_"][x[:, None] * M, M],
}
NUMPYS = {"r_": np.r_, "c_": np.c_}
OURS = {"r_": lantern.r_, "c_": lantern.c_}


@pytest.mark.parametrize("f", BRACKETS.values(), ids=BRACKETS)
def test_brackets_join_as_numpys(f):
    expected = f(NUMPYS, X)
    value, _ = lantern.vjp(lambda x: f(OURS, x), X)
    for z in (f(OURS, X), value):
        np.testing.assert_array_equal(z, expected)
        assert z.dtype == expected.dtype
    check_grads(lambda x: f(OURS, x), (X,), order=2)


def test_ranges_in_brackets_move_with_their_bounds():
    jacobian = lantern.jvp(lambda x: lantern.r_[x:3.0:3j, 1.0], (1.0,), (1.0,))[1]
    np.testing.assert_allclose(jacobian, [1.0, 0.5, 0.0, 0.0])


LISTS = {
    "norm": (lambda x, y: lantern.linalg.norm([x, y]), [0.6, 0.8]),
    "append": (lambda x, y: lantern.append([x], [y, x]).sum(), [2.0, 1.0]),
    "hstack": (lambda x, y: lantern.hstack([[x, 1.0], y]).sum(), [1.0, 1.0]),
    "flip": (lambda x, y: (lantern.flip([x, y]) * np.array([2.0, 3])).sum(), [3.0, 2]),
    "through numpy": (lambda x, y: np.append(y * C, [x]).sum(), [1.0, 15.0]),
}


@pytest.mark.parametrize(("f", "expected"), LISTS.values(), ids=LISTS)
def test_lists_of_tracked_numbers_are_arrays(f, expected):
    gradient = lantern.grad(f, argnums=(0, 1))(3.0, 4.0)
    np.testing.assert_allclose(gradient, expected)


@pytest.mark.parametrize("name", ["concatenate", "stack", "vstack", "hstack"])
def test_numpys_types_of_joined_arrays(name):
    def join(x, **options):
        return getattr(np, name)([x, x], **options)

    def f(x):
        return join(x, dtype=np.float32, casting="same_kind")

    value, pullback = lantern.vjp(f, X)
    assert value.dtype == np.float32
    np.testing.assert_array_equal(pullback(np.ones_like(value))[0], [2.0, 2.0, 2.0])
    with pytest.raises(TypeError, match="Cannot cast"):
        lantern.vjp(lambda x: join(x, dtype=np.float32, casting="safe"), X)


class Container:
    """An array in a class of its own, as xarray's and pandas' are."""

    def __init__(self, data):
        self.data, self.dtype = data, np.dtype(float)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        inputs = [x.data if isinstance(x, Container) else x for x in inputs]
        return Container(getattr(ufunc, method)(*inputs, **kwargs))

    def __rmul__(self, other):
        return np.multiply(other, self)

    def __mul__(self, other):
        return np.multiply(self, other)


class TestContainers:
    @pytest.mark.parametrize("x", [2.0, X], ids=["number", "array"])
    @pytest.mark.parametrize(
        "multiply",
        [
            lambda x, y: x * y,
            lambda x, y: y * x,
            lambda x, y: np.multiply(x, y),
            lambda x, y: np.multiply(y, x),
        ],
    )
    def test_an_operation_with_a_container_is_the_containers(self, x, multiply):
        def f(x):
            z = multiply(multiply(x, Container(C)), x)
            assert type(z) is Container
            return np.sum(z.data)

        check_grads(f, (x,), order=2)


FORMS = {
    "a range": lambda x: x[range(2), [0, 1]],
    "a range alone": lambda x: x[range(1)],
    "a number for an order of axes": lambda x: np.transpose(x[0], 0),
    "repeats of a number": lambda x: np.repeat(x[0, 0], 3, axis=0),
    "several repeats of a number": lambda x: np.repeat(x[0, 0], (2,), axis=-1),
}


@pytest.mark.parametrize("f", FORMS.values(), ids=FORMS)
def test_numpys_forms_of_arguments(f):
    value, _ = lantern.vjp(f, M)
    np.testing.assert_array_equal(value, f(M))
    check_grads(f, (M,), order=2)
