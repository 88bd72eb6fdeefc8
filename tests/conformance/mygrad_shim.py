"""MyGrad's test factory with Lantern in MyGrad's place: a pytest plugin for one run.

The factory draws arrays and arguments for a function of NumPy's, and compares MyGrad's
gradient with numerical ones. Here the gradient is Lantern's, of that very function: by
reverse mode, and by forward mode in a random direction. Tests that the factory did not
make are left out.
"""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.extra import numpy as hnp

import lantern
from lantern.testing import inner


def plain(x):
    """An array in place of MyGrad's tensor."""
    return np.array(getattr(x, "data", x), dtype=float)


def draw(factory, shapes, data):
    """The arrays and arguments that a factory asks for."""
    drawn = dict(zip(sorted(factory.missing_shapes), shapes.input_shapes, strict=False))
    factory.index_to_arr_shapes.update(drawn)
    wanted = [i for i in range(factory.num_arrays) if i not in factory.arrs_from_kwargs]
    arrays = [data.draw(factory.arrays(i)) for i in wanted]
    if callable(factory.kwargs):
        kwargs = dict(data.draw(factory.kwargs(*arrays)))
    else:
        kwargs = {
            name: data.draw(value(*arrays)) if callable(value) else value
            for name, value in factory.kwargs.items()
        }
    for i, name in sorted(factory.arrs_from_kwargs.items()):
        arrays.insert(i, plain(kwargs.pop(name)))
    if factory.assumptions is not None:
        assume(factory.assumptions(*arrays, **kwargs))
    for i, values in factory.index_to_no_go.items():
        for value in values:
            assume(np.all(arrays[i] != value))
    return arrays, kwargs


def compare(factory, numerical, arrays, kwargs, data):
    """Lantern's derivatives of the factory's function, and numerical ones."""

    def f(*x):
        return factory.true_func(*x, **kwargs)

    y, pullback = lantern.vjp(f, *(x.copy() for x in arrays))
    elements = st.floats(-10, 10, allow_subnormal=False)
    y_bar = data.draw(hnp.arrays(float, np.shape(y), elements=elements, unique=True))
    gradients = pullback(y_bar)
    expected = numerical(
        factory.true_func,
        *(x.copy() for x in arrays),
        back_grad=y_bar,
        kwargs=kwargs,
    )
    for got, want in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(got, want, **factory.tolerances)
    rng = np.random.default_rng(0)
    v = tuple(rng.normal(size=x.shape) for x in arrays)
    y_dot = lantern.jvp(f, arrays, v)[1]
    size = sum(float(np.sum(np.abs(g * x))) for g, x in zip(gradients, v, strict=True))
    np.testing.assert_allclose(
        inner(y_bar, y_dot), inner(gradients, v), rtol=1e-7, atol=1e-9 + 1e-9 * size
    )


def make(factory, function):
    """The test that a factory makes, of Lantern."""
    from tests.utils import numerical_gradient as numerical

    if factory.use_finite_difference:
        differentiate = numerical.finite_difference
    elif factory.vary_each_element:
        differentiate = numerical.numerical_gradient_full
    else:
        differentiate = numerical.numerical_gradient

    @given(shapes=factory.shapes, data=st.data())
    def test(shapes, data):
        compare(factory, differentiate, *draw(factory, shapes, data), data)

    test.by_factory = True
    return test


def pytest_configure(config):
    """Put Lantern in place before the tests are made."""
    from tests.wrappers import uber

    quick = {"deadline": None, "derandomize": True, "max_examples": 100}
    settings.register_profile("lantern", suppress_health_check=HealthCheck, **quick)
    settings.load_profile("lantern")
    uber.backprop_test_factory.__call__ = make


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Keep what the factory made."""
    items[:] = [
        item
        for item in items
        if getattr(getattr(item, "function", None), "by_factory", False)
    ]
