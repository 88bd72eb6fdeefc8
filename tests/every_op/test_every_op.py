"""Every operation of the registry, in every mode, from the table in cases.py."""

import math

import mpmath
import numpy as np
import pytest

import lantern
import lantern.vectorizing.apart  # two more operations
from lantern.op import registry
from lantern.testing import check_grads, inner, random_like
from tests.cases import ARRAYS, CONSTANT, ELEMENTWISE, Case, call, draw

SHAPES = [(2, 3), (2, 1, 3), (), (0, 3)]
CASES = ARRAYS + [
    Case(name, intervals, {}, (shape,) * len(intervals))
    for name, intervals in ELEMENTWISE.items()
    for shape in SHAPES
]
FIRST_CASES = {case.name: case for case in reversed(CASES) if 0 not in case.shapes[0]}
KINKED = {"abs", "relu", "maximum", "minimum", "max", "min"}
MPMATH_NAMES = {"lgamma": "loggamma", "abs": "fabs"}


def operands(case, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    pairs = zip(case.operands, case.shapes, strict=True)
    return tuple(np.asarray(draw(*p[:1], rng, p[1]), dtype=dtype) for p in pairs)


def numbers(name, seed=0):
    rng = np.random.default_rng(seed)
    return tuple(draw(interval, rng, None) for interval in ELEMENTWISE[name])


@pytest.mark.parametrize("case", CASES, ids=str)
class TestArrays:
    def test_derivatives_of_both_orders_in_every_mix_of_modes(self, case):
        check_grads(call(case), operands(case), order=2, atol=1e-6, rtol=1e-6)

    def test_tracked_value_is_the_plain_value(self, case):
        plain = call(case)(*operands(case))
        seen = []
        lantern.vjp(lambda *x: seen.append(call(case)(*x)) or seen[0], *operands(case))
        np.testing.assert_array_equal(lantern.core.value.base(seen[0]), plain)

    def test_forward_and_reverse_are_transposes(self, case):
        x = operands(case)
        rng = np.random.default_rng(1)
        x_dot = random_like(x, rng)
        y, pullback = lantern.vjp(call(case), *x)
        y_bar = random_like(y, rng)
        y_dot = lantern.jvp(call(case), x, x_dot)[1]
        assert inner(y_bar, y_dot) == pytest.approx(
            inner(pullback(y_bar), x_dot), rel=1e-11, abs=1e-12
        )

    def test_a_second_pullback_repeats_the_first(self, case):
        y, pullback = lantern.vjp(call(case), *operands(case))
        y_bar = random_like(y, np.random.default_rng(1))
        first, second = pullback(y_bar), pullback(y_bar)
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)
            assert not np.shares_memory(a, b)

    def test_float32_stays_float32(self, case):
        x = operands(case, dtype=np.float32)
        y, pullback = lantern.vjp(call(case), *x)
        wide = case.statics.get("dtype") == np.float64
        assert y.real.dtype == (np.float64 if wide else np.float32)
        gradients = pullback(random_like(y, np.random.default_rng(1)))
        assert {g.dtype for g in gradients} == {np.dtype(np.float32)}
        exact = lantern.vjp(call(case), *operands(case))[1](
            random_like(call(case)(*operands(case)), np.random.default_rng(1))
        )
        for a, b in zip(gradients, exact, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)

    def test_inputs_stay_untouched_and_gradients_alias_nothing(self, case):
        x = operands(case)
        before = [a.copy() for a in x]
        y, pullback = lantern.vjp(call(case), *x)
        y_bar = random_like(y, np.random.default_rng(1))
        gradients = pullback(y_bar)
        for a, b in zip(x, before, strict=True):
            np.testing.assert_array_equal(a, b)
        for i, g in enumerate(gradients):
            others = (*gradients[:i], *x, *lantern.tree_leaves(y_bar))
            assert not any(np.shares_memory(g, other) for other in others)

    def test_strided_operands_give_the_same_gradient(self, case):
        x = operands(case)
        strided = tuple(np.repeat(a[..., None], 2, axis=-1)[..., 0] for a in x)
        y = call(case)(*x)
        y_bar = random_like(y, np.random.default_rng(1))
        results = [lantern.vjp(call(case), *form)[1](y_bar) for form in (x, strided)]
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)

    def test_each_operand_alone(self, case):
        x = operands(case)
        y, pullback = lantern.vjp(call(case), *x)
        y_bar = random_like(y, np.random.default_rng(1))
        together = pullback(y_bar)
        for i in range(len(x)):

            def alone(xi, i=i):
                return call(case)(*x[:i], xi, *x[i + 1 :])

            np.testing.assert_array_equal(
                lantern.vjp(alone, x[i])[1](y_bar)[0], together[i]
            )


@pytest.mark.parametrize("case", FIRST_CASES.values(), ids=str)
def test_drivers_agree_to_the_last_bit(case):
    def f(*x):
        return lantern.sum(lantern.real(call(case)(*x)) * 1.5)

    argnums = tuple(range(len(case.operands)))
    results = [
        lantern.value_and_grad(f, argnums, driver=driver)(*operands(case))
        for driver in ("in place", "switching")
    ]
    assert results[0][0] == results[1][0]
    for a, b in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_array_equal(a, b)


BROADCASTS = [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((1, 1, 3), (2, 1))]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("name", [n for n, i in ELEMENTWISE.items() if len(i) == 2])
def test_broadcasting(name, shapes):
    case = Case(name, ELEMENTWISE[name], {}, shapes)
    check_grads(call(case), operands(case), order=2, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ELEMENTWISE)
class TestNumbers:
    def test_derivatives_of_both_orders_in_every_mix_of_modes(self, name):
        check_grads(registry[name].function, numbers(name), order=2, atol=1e-6)

    def test_numbers_and_arrays_agree(self, name):
        f, x = registry[name].function, numbers(name)
        arrays = tuple(np.array([a]) for a in x)
        y, pullback = lantern.vjp(f, *x)
        z, array_pullback = lantern.vjp(f, *arrays)
        assert y == pytest.approx(z[0], rel=1e-14)
        expected = array_pullback(np.ones(1))
        for got, want in zip(pullback(1.0), expected, strict=True):
            assert type(got) is float
            assert got == pytest.approx(want[0], rel=1e-13)

    def test_gradient_to_the_last_digits(self, name):
        """Value and partial derivatives against 40 digits of mpmath."""
        f, x = registry[name].function, numbers(name)
        with mpmath.workdps(40):
            exact = [mpmath.mpf(a) for a in x]
            value = f(*exact)
            partials = lantern.vjp(f, *exact)[1](mpmath.mpf(1))
            checks = [mpmath.diff(f, exact, _unit(i, len(x))) for i in range(len(x))]
        got, pullback = lantern.vjp(f, *x)
        assert got == pytest.approx(float(value), rel=1e-14)
        for partial, check, g in zip(partials, checks, pullback(1.0), strict=True):
            assert float(partial) == pytest.approx(float(check), rel=1e-12, abs=1e-14)
            assert g == pytest.approx(float(check), rel=1e-12, abs=1e-14)


def _unit(i, n):
    return tuple(int(i == j) for j in range(n))


HOLOMORPHIC = (
    "add subtract multiply divide pow negative positive square exp expm1 log log1p "
    "log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
).split()


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_complex_numbers_and_arrays(name):
    f = registry[name].function
    rng = np.random.default_rng(3)
    x = tuple(complex(draw(i, rng, None), 0.3) for i in ELEMENTWISE[name])
    check_grads(f, x, order=2, atol=1e-6)
    check_grads(f, tuple(np.array([a, a + 0.1]) for a in x), order=2, atol=1e-6)
    step = 1e-6
    for i in range(len(x)):
        derivative = lantern.grad(f, argnums=i, holomorphic=True)(*x)
        moved = [a + step * (i == j) for j, a in enumerate(x)]
        back = [a - step * (i == j) for j, a in enumerate(x)]
        assert derivative == pytest.approx(
            (f(*moved) - f(*back)) / (2 * step), rel=1e-7
        )


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_operations_have_zero_derivative_and_say_so(name):
    rng = np.random.default_rng(0)
    f = registry[name].function
    for shape in (None, (2, 3)):
        x = tuple(draw(interval, rng, shape) for interval in CONSTANT[name])
        y, pullback = lantern.vjp(f, *x)
        np.testing.assert_array_equal(y, f(*x))
        for g in pullback(random_like(y, rng)):
            np.testing.assert_array_equal(g, np.zeros(shape or ()))
    assert "derivative" in registry[name].function.__doc__


def test_every_operation_has_a_case():
    covered = (
        {case.name for case in CASES} | set(CONSTANT) | {"imag", "part", "to_device"}
    ) | {"apart", "together"}  # of examples: tests/torch/test_vmap.py
    ours = {
        name
        for name, operation in registry.items()
        if operation.rule.__module__.startswith("lantern.")
        and operation.rule.__module__ != "lantern.op"  # its docstring's example
        and not operation.rule.__module__.startswith("lantern.torch.")  # torch_face
        and name != "custom"  # of custom_rule, or of torch.autograd.Function
    }
    assert ours - {"custom"} == covered  # that one is there when it is imported


def test_imag():
    z = np.array([1 + 2j, 3 - 1j])
    check_grads(lantern.imag, (z,), order=2)
    check_grads(lambda z: lantern.imag(lantern.exp(z)), (z,), order=2, atol=1e-5)
    assert lantern.grad(lambda x: lantern.imag(x))(2.0) == 0.0
    assert math.isclose(lantern.grad(lambda z: lantern.imag(z * z))(1 + 2j).real, 4.0)
