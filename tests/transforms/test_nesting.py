"""Derivatives inside derivatives: levels stay apart, and no value outlives its own."""

import inspect
import itertools
import math
import operator
from functools import partial

import numpy as np
import pytest

import lantern
from lantern import EscapedError, grad, jvp, value_and_grad, vjp
from lantern.testing import check_grads


def forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


MODES = {
    "reverse": grad,
    "switching": partial(grad, driver="switching"),
    "pullback": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "forward": forward,
}


def mixes(depth):
    return [
        pytest.param([MODES[name] for name in mix], id="-".join(mix))
        for mix in itertools.product(MODES, repeat=depth)
    ]


@pytest.mark.parametrize("modes", mixes(2))
class TestPerturbationConfusion:
    """D is the outer derivative, E the inner one."""

    def test_a_sum_with_an_outer_value(self, modes):
        D, E = modes
        assert D(lambda x: x * E(lambda y: x + y)(1.0))(1.0) == 1.0

    def test_a_product_with_an_outer_value(self, modes):
        D, E = modes
        assert D(lambda x: x * E(lambda y: x * y)(1.0))(4.0) == 8.0

    def test_an_outer_value_as_the_point_of_the_inner_derivative(self, modes):
        D, E = modes
        # x * d/dy (x y^2) at y = x is 2 x^3
        assert D(lambda x: x * E(lambda y: x * y * y)(x))(3.0) == 54.0

    def test_an_inner_function_of_the_outer_value_alone(self, modes):
        D, E = modes
        assert D(lambda x: x * E(lambda y: x * x)(2.0))(3.0) == 0.0

    def test_an_inner_derivative_used_twice(self, modes):
        D, E = modes

        def f(x):
            slope = E(lambda y: x * y * y)
            return slope(1.0) * slope(x)  # 2x * 2x^2

        assert D(f)(2.0) == 48.0

    def test_sibling_derivatives_do_not_meet(self, modes):
        D, E = modes

        def f(x):
            first = E(lambda y: x * y**3)(2.0)  # 12 x
            second = E(lambda y: first * y * x)(5.0)  # 12 x^2
            return first * second

        assert D(f)(2.0) == 3 * 144 * 4.0

    def test_an_operation_on_the_outer_value_in_the_inner_body(self, modes):
        D, E = modes

        def f(x):
            made_inside = []
            slope = E(lambda y: made_inside.append(x * x) or x * y)(1.0)
            return made_inside[0] * slope

        assert D(f)(2.0) == 12.0

    def test_the_inner_second_derivative(self, modes):
        D, E = modes
        # d/dx (x * 2x): d2/dy2 (x y^2) is 2x
        assert D(lambda x: x * E(E(lambda y: x * y * y))(7.0))(5.0) == 20.0

    def test_stop_gradient_stops_every_level(self, modes):
        D, E = modes
        stop = lantern.stop_gradient
        assert D(lambda x: x * E(lambda y: stop(x) * y * stop(y))(2.0))(3.0) == 6.0

    @pytest.mark.parametrize(
        "combine",
        [
            operator.add,
            operator.sub,
            operator.mul,
            operator.truediv,
            operator.pow,
            lantern.maximum,
            lantern.hypot,
            lantern.atan2,
        ],
    )
    def test_mixed_partials_on_either_side_of_an_operation(self, modes, combine):
        D, E = modes
        step = 1e-5
        for f in (combine, lambda x, y: combine(y, x)):

            def slope(x, f=f):
                return E(lambda y: f(x, y))(2.5)

            expected = (slope(1.5 + step) - slope(1.5 - step)) / (2 * step)
            assert D(slope)(1.5) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("modes", mixes(3))
def test_three_levels_that_all_use_one_another(modes):
    D, E, F = modes

    def f(x):
        return x * E(lambda y: x * y * F(lambda z: x * y * z * z)(y))(x)

    # F gives 2 x y^2, E of 2 x^2 y^3 is 6 x^2 y^2 = 6 x^4, D of 6 x^5 is 30 x^4
    assert D(f)(2.0) == 480.0


@pytest.mark.parametrize("modes", mixes(4))
class TestFourLevels:
    def test_fourth_derivative(self, modes):
        f = lambda x: x**5 + 2 * x  # noqa: E731
        for mode in modes:
            f = mode(f)
        assert f(-3.0) == -360.0

    def test_four_variables_each_of_its_own_level(self, modes):
        A, B, C, D = modes

        def f(a):
            return B(
                lambda b: C(lambda c: D(lambda d: (a * b * c * d) ** 2)(1.0))(1.0)
            )(1.0)

        assert A(f)(1.0) == 16.0


@pytest.mark.parametrize("modes", mixes(3))
def test_third_derivative_of_the_sine(modes):
    f = lantern.sin
    for mode in modes:
        f = mode(f)
    assert f(math.pi / 2) == pytest.approx(0.0, abs=1e-15)
    assert f(0.0) == -1.0


def test_the_inner_derivative_leaves_the_outer_cotangent_alone():
    """Without the outer product, nothing that the inner one did may reach x."""

    def f(x):
        grad(lambda y: x * y)(2.0)
        vjp(lambda y: x * y, 2.0)[1](1.0)
        forward(lambda y: x * y)(2.0)
        return 3 * x

    assert grad(f)(2.0) == 3.0
    assert forward(f)(2.0) == 3.0


def test_a_pullback_of_the_outer_level_called_inside_an_inner_derivative():
    _, pullback = vjp(lambda x: x * x * x, 2.0)
    assert grad(lambda y: pullback(y * y)[0])(3.0) == 12.0 * 6.0
    assert forward(lambda y: pullback(y * y)[0])(3.0) == 12.0 * 6.0
    assert pullback(1.0) == (12.0,)


def test_derivatives_inside_a_recursion():
    def tower(n, x):
        return x if n == 0 else grad(lambda y: y * tower(n - 1, x) * y)(x)

    # tower(n) is 2 x tower(n - 1), so 2^n x^(n + 1)
    assert tower(3, 2.0) == 128.0
    assert grad(partial(tower, 3))(2.0) == 256.0


ARRAY = np.array([1.0, -2.0, 3.0])
INNER_ON_ARRAYS = {
    "array in number": (lambda x: x * lantern.sum(grad(_cubes)(ARRAY * x)), 2.0, 504.0),
    "number in array": (
        lambda a: lantern.sum(a * grad(lambda x: lantern.sum(a) * x * x)(3.0)),
        ARRAY,
        np.full(3, 24.0),
    ),
    "array in array": (lambda a: lantern.sum(grad(_cubes)(a) * a), ARRAY, 9 * ARRAY**2),
    "element in array": (
        lambda a: grad(lambda x: a[0] * x * a[1])(a[2]),
        ARRAY,
        np.array([-2.0, 1.0, 0.0]),
    ),
    "matrix in array": (
        lambda a: lantern.sum(grad(lambda m: lantern.sum((m @ a) ** 2))(np.eye(3)) @ a),
        ARRAY,
        None,
    ),
}


def _cubes(a):
    return lantern.sum(a**3)


@pytest.mark.parametrize("case", INNER_ON_ARRAYS)
def test_grad_inside_grad_on_arrays(case):
    f, x, expected = INNER_ON_ARRAYS[case]
    if expected is not None:
        np.testing.assert_allclose(grad(f)(x), expected, rtol=1e-14)
    check_grads(f, (x,), order=2, atol=1e-5)


class TestHigherOrderFunctions:
    def test_a_derivative_is_a_function_like_any_other(self):
        assert grad(lambda x: sum(map(grad(lambda y: y**3), [x, 2 * x])))(2.0) == 60.0

    def test_a_function_that_a_derivative_returns_holds_values_that_are_over(self):
        shifted = grad(lambda u: (u, lambda x: x + u), has_aux=True)(1.0)[1]
        with pytest.raises(EscapedError):
            shifted(2.0)

    def test_a_derivative_shows_the_signature_of_its_function(self):
        def area(width, height=2.0):
            """The area of a rectangle."""
            return width * height

        for derivative in (grad(area), value_and_grad(area)):
            assert list(inspect.signature(derivative).parameters) == ["width", "height"]
            assert derivative.__doc__ == area.__doc__
            assert "area" in derivative.__name__

    def test_aux_comes_out_plain_and_keeps_the_outer_level(self):
        def outer(x):
            _, aux = grad(lambda y: (x * y, {"xy": x * y, "x": x}), has_aux=True)(2.0)
            return aux["xy"] * aux["x"]

        assert grad(outer)(3.0) == 12.0
        assert type(grad(lambda x: (x, [x * x]), has_aux=True)(3.0)[1][0]) is float

    def test_the_value_of_value_and_grad_keeps_the_outer_level(self):
        def f(x):
            value, gradient = value_and_grad(lambda y: x * y * y)(3.0)
            return value * gradient  # 9x * 6x

        assert grad(f)(2.0) == 216.0


ENTRIES = {"a number": 3.0, "an array": np.array([1.0, 2.0])}


@pytest.mark.parametrize("inner", [1.0, np.array([1.0, 2.0])], ids=["number", "array"])
@pytest.mark.parametrize("name", ENTRIES)
def test_a_value_of_the_outer_derivative_comes_through_the_inner_one(name, inner):
    def f(y):
        value, slope = value_and_grad(lambda x: lantern.sum(y * y))(inner)
        assert np.all(slope == 0.0)
        return value

    np.testing.assert_array_equal(grad(f)(ENTRIES[name]), 2 * ENTRIES[name])


@pytest.mark.parametrize("name", ENTRIES)
def test_a_value_of_the_inner_derivative_is_no_result_of_the_outer_one(name):
    def f(x):
        left = []
        grad(lambda y: left.append(lantern.sum(y * y)) or lantern.sum(y))(ENTRIES[name])
        return left[0]

    with pytest.raises(EscapedError, match="begun inside of it"):
        grad(f)(ENTRIES[name])


def test_a_derivative_tells_of_what_it_is():
    def energy(x):
        return x * x

    assert grad(energy).__name__ == grad(energy).__qualname__ == "grad_of_energy"
    assert value_and_grad(energy).__name__ == "value_and_grad_of_energy"


@pytest.mark.parametrize("transform", [vjp, jvp, lantern.linearize])
def test_what_is_no_function_is_refused_by_name(transform):
    arguments = ((1.0,), (1.0,)) if transform is jvp else (1.0,)
    with pytest.raises(lantern.ArgumentError, match="expected a function, got int"):
        transform(3, *arguments)


def test_the_gradient_of_a_buffer_is_a_tensor():
    slope = grad(lambda x: lantern.sum(x * x))(lantern.Buffer([1.0, 2.0]))
    assert type(slope) is lantern.Tensor
    np.testing.assert_array_equal(slope.primal, [2.0, 4.0])
