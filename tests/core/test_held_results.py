"""A result inside of an object that no transform knows is taken, or refused by name."""

from types import SimpleNamespace

import numpy as np
import pytest

import lantern
from lantern.core.unwrap import holds
from lantern.core.value import UNTRACKED
from lantern.errors import ArgumentError, DetachError

REFUSED = (DetachError, ArgumentError)


class Labelled:
    """What an array with names looks like: shape, type, operators; data in slots."""

    __slots__ = ("_inside", "names")
    __array_ufunc__ = None

    def __init__(self, data, names=("i",)):
        self._inside, self.names = {"data": [data]}, names

    @property
    def data(self):
        return self._inside["data"][0]

    @property
    def shape(self):
        return self.data.shape

    @property
    def dtype(self):
        return self.data.dtype

    def __mul__(self, other):
        return Labelled(self.data * other, self.names)

    def __array__(self, *args, **kwargs):
        return np.asarray(self.data)


class Scaled:
    """A number in other units: what is inside is not what it means."""

    shape, dtype = (), np.dtype(float)

    def __init__(self, number):
        self.number = number

    def __mul__(self, other):
        return Scaled(self.number * other)


def objects(x):
    z = np.empty(len(x) if x.shape else 1, object)
    for i in range(len(z)):
        z[i] = x[i] if x.shape else x
    return z.reshape(x.shape)


def of_xarray(x):
    xarray = pytest.importorskip("xarray", reason="the library whose arrays these are")
    return xarray.DataArray(x, dims=["i"][: len(x.shape)])


def set_of_xarray(x):
    xarray = pytest.importorskip("xarray", reason="the library whose arrays these are")
    return xarray.Dataset({"a": of_xarray(x)})


def of_pandas(x):
    pandas = pytest.importorskip("pandas", reason="the library whose series this is")
    return pandas.Series(list(x), dtype=object)


CONTAINERS = {
    "labelled": Labelled,
    "objects": objects,
    "xarray": of_xarray,
    "a set of xarray": set_of_xarray,
    "pandas": of_pandas,
    "an object": Scaled,
    "in an object": lambda x: Scaled([{"deep": Labelled(x)}]),
}
X = np.array([1.0, 2.0])
TRANSFORMS = {
    "vjp": lambda f: lantern.vjp(f, X),
    "jvp": lambda f: lantern.jvp(f, (X,), (X,)),
    "linearize": lambda f: lantern.linearize(f, X),
    "jacobian": lambda f: lantern.jacobian(f)(X),
    "jacfwd": lambda f: lantern.jacfwd(f)(X),
    "jacrev": lambda f: lantern.jacrev(f)(X),
    "hessian": lambda f: lantern.hessian(f)(X),
    "vmap": lambda f: lantern.vmap(f)(np.ones((3, 2))),
    "jet": lambda f: lantern.jet(f, (X,), ([X],)),
    "taylor": lambda f: lantern.taylor(f, X, 2),
    "elementwise_grad": lambda f: lantern.elementwise_grad(f)(X),
    "checkpoint": lambda f: lantern.grad(lambda x: lantern.checkpoint(f)(x).data.sum())(
        X
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_held_array_is_refused(container, transform):
    holder = CONTAINERS[container]
    with pytest.raises(REFUSED, match=r"tracked values? inside.*register_tree"):
        TRANSFORMS[transform](lambda x: holder(x * x))


@pytest.mark.parametrize("container", ["labelled", "objects", "xarray"])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_number_in_an_array_is_the_result(container, checkpointed):
    def f(x):
        return CONTAINERS[container]((x**3).sum())

    if checkpointed:
        with pytest.raises(REFUSED, match=r"tracked values? inside"):
            lantern.grad(lantern.checkpoint(f))(X)
        return
    np.testing.assert_array_equal(lantern.grad(f)(X), 3 * X**2)
    value, gradient = lantern.value_and_grad(f)(X)
    assert value == 9.0
    np.testing.assert_array_equal(gradient, 3 * X**2)


@pytest.mark.parametrize("x", [2.0, np.array(2.0)])
def test_a_number_in_an_object_is_refused(x):
    for transform in (lantern.grad, lantern.value_and_grad):
        with pytest.raises(DetachError, match=r"tracked values? inside"):
            transform(lambda x: Scaled(x * x))(x)
        with pytest.raises(DetachError, match=r"tracked values? inside"):
            transform(lambda x: Scaled([x]))(x)


def test_what_holds_a_value_of_an_outer_derivative_is_a_constant_inside():
    def outer(x):
        held = Labelled(x * x)
        found = lantern.grad(lambda y: (held * 1.0).data.sum() * y)(3.0)
        return found * 2.0

    np.testing.assert_array_equal(lantern.grad(outer)(X), 4 * X)


def test_what_holds_nothing_tracked_stays_a_constant():
    assert lantern.grad(lambda x: np.array(3.0, object))(2.0) == 0.0
    value, _ = lantern.vjp(lambda x: {"a": x, "b": np.ones(2)}, 2.0)
    np.testing.assert_array_equal(value["b"], 1.0)


def test_what_is_in_an_object_of_very_many_parts_is_not_looked_for():
    parts = [float(i) for i in range(20_000)]
    assert not holds(SimpleNamespace(parts=parts), UNTRACKED)
    assert holds(SimpleNamespace(parts=[lantern.Tensor([1.0])]), UNTRACKED)
