"""Rules that users write, in every mode and order, and what is said of bad ones."""

import math
import weakref

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    DetachError,
    EscapedError,
    MutationError,
    RuleError,
    custom_jvp,
    custom_rule,
    custom_vjp,
    grad,
    jacfwd,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)
from lantern.testing import check_grads

# Each of these is x * sin(y) + y * x**3 of numbers or arrays, with its own derivative.


def plain(x, y):
    return x * lantern.sin(y) + y * x**3


@custom_rule
def as_rule(x, y, /):
    z_bar = yield x * lantern.sin(y) + y * x**3
    yield z_bar * (lantern.sin(y) + 3 * y * x**2)
    yield lambda: z_bar * (x * lantern.cos(y) + x**3)


@custom_rule(kind="elementwise")
def as_elementwise_rule(x, y, /):
    z_bar = yield x * lantern.sin(y) + y * x**3
    yield z_bar * (lantern.sin(y) + 3 * y * x**2)
    yield z_bar * (x * lantern.cos(y) + x**3)


@custom_vjp
def as_vjp(x, y):
    return plain(x, y)


as_vjp.defvjp(
    lambda x, y: (plain(x, y), {"x": x, "y": y}),
    lambda saved, g: (
        g * (lantern.sin(saved["y"]) + 3 * saved["y"] * saved["x"] ** 2),
        g * (saved["x"] * lantern.cos(saved["y"]) + saved["x"] ** 3),
    ),
)


@custom_jvp
def as_jvp(x, y):
    return plain(x, y)


@as_jvp.defjvp
def as_jvp_derivative(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    by_x = lantern.sin(y) + 3 * y * x**2
    return as_jvp(x, y), by_x * x_dot + (x * lantern.cos(y) + x**3) * y_dot


@custom_jvp
def as_jvps(x, y):
    return plain(x, y)


as_jvps.defjvps(
    lambda x_dot, z, x, y: (lantern.sin(y) + 3 * y * x**2) * x_dot,
    lambda y_dot, z, x, y: (x * lantern.cos(y) + x**3) * y_dot,
)
FORMS = {
    "rule": as_rule,
    "elementwise rule": as_elementwise_rule,
    "vjp": as_vjp,
    "jvp": as_jvp,
    "jvps": as_jvps,
}
POINTS = {
    "numbers": (0.7, -1.2),
    "arrays": (np.array([0.7, 1.1]), np.array([-1.2, 0.3])),
}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("form", FORMS)
class TestEveryForm:
    def test_three_orders_in_every_mix_of_modes(self, form, point):
        check_grads(FORMS[form], POINTS[point], order=3, atol=1e-4, rtol=1e-5)

    def test_the_same_as_without_a_rule(self, form, point):
        args, f = POINTS[point], FORMS[form]
        seeds = np.cos(args[0])
        for own, library in zip(
            vjp(f, *args)[1](seeds), vjp(plain, *args)[1](seeds), strict=True
        ):
            np.testing.assert_allclose(own, library, rtol=1e-14)
        moved = [jvp(g, args, (seeds, args[0]))[1] for g in (f, plain)]
        np.testing.assert_allclose(*moved, rtol=1e-14)
        pushed = [linearize(g, *args)[1](seeds, args[0]) for g in (f, plain)]
        np.testing.assert_allclose(*pushed, rtol=1e-14)

    def test_plain_values_stay_plain(self, form, point):
        args = POINTS[point]
        assert type(FORMS[form](*args)) is type(args[0])

    def test_one_tracked_operand_among_constants(self, form, point):
        x, y = POINTS[point]
        got = grad(lambda y: lantern.sum(FORMS[form](x, y)))(y)
        np.testing.assert_allclose(got, x * np.cos(y) + x**3, rtol=1e-14)


def test_the_operation_keeps_its_name_and_documentation():
    @custom_rule
    def cube(x, /):
        """The third power."""
        yield 3 * x * x * (yield x**3)

    assert (cube.__name__, cube.__doc__) == ("cube", "The third power.")
    assert as_vjp.__name__ == "as_vjp"


class TestRule:
    def test_operands_and_results_are_structures(self):
        @custom_rule
        def pair(p, /, factor):
            z_bar = yield {
                "sum": p[0] + p[1]["b"],
                "product": factor * p[0] * p[1]["b"],
            }
            each = factor * z_bar["product"]
            yield [
                z_bar["sum"] + each * p[1]["b"],
                {"b": z_bar["sum"] + each * p[0], "c": None},
            ]

        def f(p):
            out = pair(p, factor=2.0)
            return out["sum"] * out["product"]

        # (a + b) 2 a b at 3, 5
        point = [3.0, {"b": 5.0, "c": 1.0}]
        assert grad(f)(point) == [110.0, {"b": 78.0, "c": 0.0}]
        check_grads(f, (point,), order=2, atol=1e-4, rtol=1e-5)

    def test_broadcasting_is_settled_for_an_elementwise_rule(self):
        x, y = np.ones((3, 1)), np.arange(4.0)
        got = grad(lambda x, y: as_elementwise_rule(x, y).sum(), (0, 1))(x, y)
        want = grad(lambda x, y: plain(x, y).sum(), (0, 1))(x, y)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)

    def test_a_linear_rule(self):
        @custom_rule(kind="linear")
        def turned(x, y, /):
            z_bar = yield (x - y, x + y)
            yield z_bar[0] + z_bar[1]
            yield z_bar[1] - z_bar[0]

        check_grads(turned, (np.ones(2), np.arange(2.0)), order=2)
        assert jvp(turned, (1.0, 2.0), (3.0, 4.0)) == ((-1.0, 3.0), (-1.0, 7.0))

    def test_an_adjoint_rule_of_complex_numbers(self):
        @custom_rule(kind="adjoint")
        def energy(z, /):
            z_bar = yield (z * z.conjugate()).real
            yield 2 * z * z_bar

        assert grad(energy)(1 + 2j) == 2 + 4j

    def test_a_float32_operand_receives_float32(self):
        x = np.ones(3, np.float32)
        for form in FORMS.values():
            assert grad(lambda x, f=form: f(x, x).sum())(x).dtype == np.float32

    def test_finally_blocks_span_the_rest_of_the_program(self):
        log = []

        @custom_rule
        def bracket(x, /):
            log.append("in")
            try:
                z_bar = yield x * 1
                yield z_bar
            finally:
                log.append("out")

        grad(lambda x: (bracket(x), log.append("rest"))[0])(2.0)
        assert log == ["in", "rest", "out"]

    def test_rules_made_in_a_loop_leave_nothing_behind(self):
        from lantern.core import operation

        before = len(operation.by_code), len(operation.registry)
        for power in range(2, 6):

            @custom_rule
            def f(x, /, power=power):
                yield power * x ** (power - 1) * (yield x**power)

            assert grad(f)(2.0) == power * 2.0 ** (power - 1)
        assert (len(operation.by_code), len(operation.registry)) == before


class TestPorting:
    def test_functions_and_options_are_not_differentiated(self):
        calls = []

        def app(f, x, mode):
            return f(x)

        def app_bwd(f, mode, residual, g):
            calls.append(mode)
            return (g * residual,)

        own = custom_vjp(app, nondiff_argnums=(0, 2))
        own.defvjp(lambda f, x, mode: (f(x), 7.0), app_bwd)
        assert grad(lambda x: own(lantern.sin, x, "fast"))(1.0) == 7.0
        assert grad(lambda x: own(mode="slow", x=x, f=lantern.sin))(1.0) == 7.0
        assert calls == ["fast", "slow"]
        own = custom_jvp(app, nondiff_argnums=(0, -1))
        own.defjvp(lambda f, mode, x, x_dot: (f(x[0]), 5.0 * x_dot[0]))
        assert grad(lambda x: own(lantern.sin, x, "fast"))(1.0) == 5.0
        assert jvp(lambda x: own(lantern.sin, x, "fast"), (1.0,), (2.0,))[1] == 10.0

    def test_a_default_has_its_position(self):
        own = custom_vjp(lambda x, n=3: x * n, nondiff_argnums=(1,))
        own.defvjp(lambda x, n: (x * n, None), lambda n, _, g: (g * n,))
        assert (own(2.0), grad(own)(2.0), grad(own)(2.0, 5)) == (6.0, 3.0, 5.0)

    def test_fwd_runs_once_for_all_pullbacks_and_not_without_a_derivative(self):
        counts = {"fun": 0, "fwd": 0, "bwd": 0}

        def count(name, result):
            counts[name] += 1
            return result

        own = custom_vjp(lambda x: count("fun", x * x))
        own.defvjp(
            lambda x: count("fwd", (x * x, x)),
            lambda x, g: count("bwd", (2 * x * g,)),
        )
        assert own(3.0) == 9.0
        assert counts == {"fun": 1, "fwd": 0, "bwd": 0}
        _, pullback = vjp(own, 3.0)
        assert pullback(1.0) + pullback(2.0) == (6.0, 12.0)
        assert counts == {"fun": 1, "fwd": 1, "bwd": 2}

    def test_none_is_zero(self):
        own = custom_vjp(lambda x, table: x * table["a"])
        own.defvjp(lambda x, t: (x * t["a"], t), lambda t, g: (g * t["a"], None))
        assert grad(own, (0, 1))(2.0, {"a": 3.0}) == (3.0, {"a": 0.0})
        own = custom_jvp(lambda x, y: x * y)
        own.defjvps(None, lambda y_dot, z, x, y: x * y_dot)
        assert grad(own, (0, 1))(2.0, 3.0) == (0.0, 2.0)

    def test_what_stands_still_moves_nothing(self):
        own = custom_jvp(lambda x, y: x * y)
        own.defjvp(lambda p, dots: (p[0] * p[1], dots[0] * p[1] + p[0] * dots[1]))
        assert jvp(lambda x: own(x, 3.0), (2.0,), (1.0,)) == (6.0, 3.0)
        assert jvp(lambda y: own(2.0, y), (3.0,), (1.0,)) == (6.0, 2.0)

    def test_integers_and_strings_pass_through_as_constants(self):
        def pick(x, i, name):
            return x[i]

        own = custom_vjp(pick)

        def bwd(saved, g):
            x_bar = np.zeros(3)
            x_bar[saved] = g
            return x_bar, None, None

        own.defvjp(lambda x, i, name: (x[i], i), bwd)
        got = grad(lambda x: own(x, 1, "one"))(np.arange(3.0))
        np.testing.assert_array_equal(got, [0, 1, 0])
        own = custom_jvp(pick)
        own.defjvp(lambda primals, dots: (primals[0][1], dots[0][primals[1]]))
        got = grad(lambda x: own(x, 1, "one"))(np.arange(3.0))
        np.testing.assert_array_equal(got, [0, 1, 0])

    def test_complex_cotangents_are_plain_transposes_as_in_jax(self):
        own = custom_vjp(lambda z: z * z)
        own.defvjp(lambda z: (z * z, z), lambda z, g: (g * 2 * z,))
        other = custom_jvp(lambda z: z * z)
        other.defjvps(lambda z_dot, w, z: 2 * z * z_dot)
        for f in (own, other):
            assert grad(f, holomorphic=True)(1 + 2j) == 2 + 4j
            assert grad(lambda z, f=f: f(z).real)(1 + 2j) == 2 - 4j
            assert jvp(f, (1 + 2j,), (1j,))[1] == 1j * (2 + 4j)

    def test_a_stable_function_of_the_jax_manual(self):
        @custom_jvp
        def log1pexp(x):
            return lantern.log(1.0 + lantern.exp(x))

        log1pexp.defjvps(lambda t, ans, x: (1 - 1 / (1 + lantern.exp(x))) * t)
        assert grad(log1pexp)(100.0) == 1.0
        assert grad(grad(log1pexp))(0.0) == pytest.approx(0.25)


def own_vjp(fwd=lambda x: (x * x, x), bwd=lambda x, g: (2 * x * g,)):
    own = custom_vjp(lambda x: x * x)
    own.defvjp(fwd, bwd)
    return own


def own_jvp(derivative):
    own = custom_jvp(lambda x: x * x)
    own.defjvp(derivative)
    return own


def long_rule(x, /):
    z_bar = yield 2.0 * x
    yield 2.0 * z_bar
    yield 5.0 * z_bar


def long_rule_of_two(x, y, /):
    z_bar = yield x[0] * y
    yield None
    for factor in (x[0], 1.0):
        yield factor * z_bar


def short_rule(x, /):
    yield x * x


def wrong_shape_rule(x, /):
    z_bar = yield x * x
    yield lantern.sum(z_bar)


X = np.array([1.0, 2.0])
BAD = {
    "no derivative": (lambda: grad(custom_vjp(lambda x: x))(1.0), "no derivative yet"),
    "no derivative in jvp": (lambda: grad(custom_jvp(abs))(1.0), "defjvp"),
    "fwd without residuals": (
        lambda: grad(own_vjp(fwd=lambda x: x * x))(1.0),
        "fwd returned float",
    ),
    "bwd without a tuple": (
        lambda: grad(own_vjp(bwd=lambda x, g: g))(1.0),
        "bwd returned float for 1",
    ),
    "bwd with too many": (
        lambda: grad(own_vjp(bwd=lambda x, g: (g, g)))(1.0),
        "bwd returned 2 values for 1",
    ),
    "bwd with a wrong structure": (
        lambda: grad(own_vjp(bwd=lambda x, g: ({"a": g},)))(1.0),
        "contributed",
    ),
    "a text as contribution": (
        lambda: grad(own_vjp(bwd=lambda x, g: ("zero",)))(1.0),
        "contributed 'zero'",
    ),
    "bwd with a wrong shape": (
        lambda: vjp(own_vjp(bwd=lambda x, g: (g[:1],)), X)[1](X),
        r"shape \(1,\) to an operand of shape \(2,\)",
    ),
    "a rule that sums": (
        lambda: vjp(custom_rule(wrong_shape_rule), X)[1](X),
        r"shape \(\) to an operand of shape \(2,\)",
    ),
    "a rule that ends too early": (
        lambda: grad(custom_rule(short_rule))(1.0),
        "too few",
    ),
    "a rule that yields too much": (
        lambda: grad(custom_rule(long_rule))(1.0),
        "too many",
    ),
    "one that yields too much for two": (
        lambda: vjp(custom_rule(long_rule_of_two), [1.0], X)[1](X),
        "too many",
    ),
    "a text as result": (
        lambda: grad(own_vjp(fwd=lambda x: ("x", x)))(1.0),
        "result contains 'x'",
    ),
    "an empty result": (
        lambda: grad(own_vjp(fwd=lambda x: ((), x)))(1.0),
        "result is empty",
    ),
    "a jvp without a pair": (
        lambda: jvp(own_jvp(lambda p, t: t[0]), (1.0,), (1.0,)),
        "Return a pair",
    ),
    "a jvp with a wrong shape": (
        lambda: jvp(own_jvp(lambda p, t: (p[0], t[0][:1])), (X,), (X,)),
        "tangent",
    ),
    "defjvps with too few": (
        lambda: grad(_defjvps(lambda x, y: x * y, lambda t, z, x, y: t))(1.0, 2.0),
        "1 function for 2",
    ),
    "a function as rule": (lambda: custom_rule(lambda x: x), "generator function"),
    "a rule without an operand": (
        lambda: custom_rule(lambda x: (yield x)),
        "no differentiable operand",
    ),
}


def _defjvps(fun, *jvps):
    own = custom_jvp(fun)
    own.defjvps(*jvps)
    return own


@pytest.mark.parametrize("case", BAD)
def test_a_bad_rule_is_refused_by_name(case):
    run, message = BAD[case]
    with pytest.raises(RuleError, match=message):
        run()


def _forgetful_rule(x, /):
    shape = x.shape
    z = x.sum()
    del x
    z_bar = yield z
    yield z_bar * np.ones(shape)


def test_an_operand_that_no_one_keeps_is_free_for_the_rest_of_the_program():
    forgetful = custom_vjp(lambda x: x.sum())
    forgetful.defvjp(
        lambda x: (x.sum(), x.shape), lambda shape, g: (g * np.ones(shape),)
    )
    for own in (custom_rule(_forgetful_rule), forgetful):
        alive = []

        def f(x, own=own, alive=alive):
            y = x + 1.0
            seen = weakref.ref(y.primal)
            z = own(y)
            del y
            alive.append(seen() is not None)
            return z

        np.testing.assert_array_equal(grad(f)(X), [1.0, 1.0])
        assert alive == [False]


def test_a_number_made_of_arrays():
    """What a rule yields keeps its type: a Python number of arrays is one."""

    @custom_rule
    def product(x, y, /):
        z = (x * x).sum() * (y * y * y).sum()
        plain = not isinstance(z, lantern.Tensor)
        z_bar = yield float(z) if plain else z
        yield lambda: z_bar * 2.0 * x * (y**3).sum()
        yield lambda: z_bar * (x * x).sum() * 3.0 * y**2

    x, y = np.array([1.0, -2.0, 0.5]), np.array([[0.5, 1.5], [-1.0, 2.0]])
    check_grads(product, (x, y), order=2)
    check_grads(lambda x: product(x, y) * product(x[:1], x[1:]), (x,), order=2)
    own = custom_vjp(lambda x: float(x @ x))
    own.defvjp(lambda x: (float(x @ x), x), lambda x, g: (2 * g * x,))
    for f in (own, lambda x: product(x, y)):
        value, moved = jvp(f, (x,), (x,))
        assert type(value) is float
        assert moved == pytest.approx(vjp(f, x)[1](1.0)[0] @ x, rel=1e-14)
        assert moved == pytest.approx(linearize(f, x)[1](x), rel=1e-14)
    single = x.astype(np.float32)
    value, gradient = value_and_grad(lambda x: (x * own(x)).sum())(single)
    assert value.dtype == gradient.dtype == np.float32


WRITERS = {
    "a cotangent": (lambda x: 2.0 * x, lambda x, g: (np.multiply(g, 2.0, out=g),)),
    "an operand": (lambda x: np.multiply(x, 2.0, out=x), lambda x, g: (2.0 * g,)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_others_hold_cannot_be_written_to(name):
    there, back = WRITERS[name]

    @custom_rule
    def rule(x, /):
        z_bar = yield there(x)
        yield back(x, z_bar)[0]

    own = custom_vjp(there)
    own.defvjp(lambda x: (there(x), x), back)
    pushed = custom_jvp(there)
    pushed.defjvp(lambda p, t: (there(p[0]), *back(p[0], t[0])))
    for f in (rule, own, pushed):
        for derivative in (grad, lambda f: lambda x: jvp(f, (x,), (np.ones(2),))):
            with pytest.raises((ValueError, MutationError), match=r"read-only|never"):
                derivative(lambda x, f=f: lantern.sum(f(x * 3.0) * (x * x)))(X)


def test_what_comes_through_a_rule_can_be_written_to():
    @custom_rule
    def same(x, /):
        yield (yield x)

    own = custom_jvp(lambda x: x)
    own.defjvp(lambda p, t: (p[0], t[0]))
    for f in (same, own):
        assert [array.flags.writeable for array in jvp(f, (X,), (X,))] == [True, True]


def test_static_arguments_that_are_changed_later():
    @custom_rule
    def scaled(x, /, by, *, shift):
        z_bar = yield x * by + shift
        yield z_bar * by + 0 * shift

    own = custom_vjp(lambda x, by: x * by, nondiff_argnums=(1,))
    own.defvjp(lambda x, by: (x * by, None), lambda by, _, g: (g * by,))
    moved = custom_jvp(lambda x, by: x * by, nondiff_argnums=(1,))
    moved.defjvp(lambda by, p, t: (p[0] * by, t[0] * by))
    for f in (lambda x, by: scaled(x, by, shift=by), own, moved):
        for f in (f, lambda x, by, f=f: vmap(lambda x: f(x, by))(x[None])):

            def loss(x, f=f):
                by = np.array([2.0, 3.0])
                z = f(x, by)
                by[:] = np.nan
                return lantern.sum(z)

            np.testing.assert_array_equal(grad(loss)(X), [2.0, 3.0])
            np.testing.assert_array_equal(vjp(loss, X)[1](1.0)[0], [2.0, 3.0])


def test_what_a_rule_closes_over_is_frozen_in_debug():
    by = np.ones(2)

    @custom_rule
    def scaled(x, /):
        z_bar = yield x * by
        yield z_bar * by

    own = custom_vjp(lambda x: x * by)
    own.defvjp(lambda x: (x * by, by), lambda by, g: (g * by,))

    def loss(x, f):
        z = f(x)
        by[:] = 2.0
        return lantern.sum(z)

    for f in (scaled, own):
        with lantern.debug(), pytest.raises(ValueError, match="read-only"):
            grad(loss)(X, f)
        assert by.flags.writeable


class TestTrackedValuesFromOutside:
    def test_a_closure_over_the_differentiated_value_is_refused(self):
        def f(x):
            own = own_vjp(fwd=lambda y: (x * y, y))
            return own(x)

        with pytest.raises(RuleError, match="not among its operands"):
            grad(f)(2.0)

    def test_also_when_only_the_backward_half_uses_it(self):
        with pytest.raises(RuleError, match="not among its operands"):
            grad(lambda x: own_vjp(bwd=lambda y, g: (g * x,))(x))(2.0)

    @pytest.mark.parametrize("kind", ["general", "elementwise", "adjoint", "vjp"])
    @pytest.mark.parametrize("mapped", [False, True])
    def test_in_every_mode_and_for_each_example(self, kind, mapped):
        def loss(w):
            def rule(x, /):
                z_bar = yield 2.0 * x
                yield w * z_bar

            own = own_vjp(lambda x: (2.0 * x, None), lambda _, g: (w * g,))
            own = own if kind == "vjp" else custom_rule(rule, kind=kind)
            return lantern.sum((vmap(own) if mapped else own)(X * w))

        derivatives = (grad(loss), jacfwd(loss), grad(grad(loss)), grad(jacfwd(loss)))
        for derivative in derivatives:
            with pytest.raises(RuleError, match="not among its operands"):
                derivative(3.0)
        with pytest.raises(EscapedError):  # the pullback comes later
            vjp(loss, 3.0)[1](1.0)

    @pytest.mark.parametrize("mapped", [False, True])
    def test_a_value_of_an_outer_one_may_come_in(self, mapped):
        def loss(w):
            own = own_vjp(lambda x: (x * w, None), lambda _, g: (w * g,))
            own = vmap(own) if mapped else own
            return grad(lambda x: lantern.sum(own(x)))(X).sum()

        assert grad(loss)(3.0) == jacfwd(loss)(3.0) == 2.0

    def test_a_value_of_an_inner_derivative_is_refused_too(self):
        def f(x):
            return grad(lambda y: own_vjp(fwd=lambda x: (x * y, x))(x))(3.0)

        with pytest.raises(RuleError, match="not among its operands"):
            grad(f)(2.0)

    def test_a_value_of_an_outer_derivative_is_a_constant_with_its_own_derivative(self):
        def f(x):
            own = own_vjp(lambda y: (x * y * y, y), lambda y, g: (g * 2 * x * y,))
            return grad(own)(3.0)  # 6 x

        assert grad(f)(2.0) == 6.0

    def test_a_tracked_argument_named_as_not_differentiable(self):
        own = custom_vjp(lambda x, n: x * n, nondiff_argnums=1)
        own.defvjp(lambda x, n: (x * n, None), lambda n, _, g: (g * n,))
        assert grad(lambda x: own(x, 3.0))(2.0) == 3.0
        with pytest.raises(ArgumentError, match="argument 1 is tracked"):
            grad(lambda x: own(x, x))(2.0)


def test_numpy_called_by_name_on_a_cotangent_is_never_silent():
    own = own_vjp(bwd=lambda x, g: (math.sin(g),))
    with pytest.raises(DetachError):
        jvp(grad(own), (2.0,), (1.0,)) and jvp(own, (X,), (X,))


@pytest.mark.parametrize("kind", ["constant", "stated", ""])
def test_an_unknown_kind_is_refused(kind):
    with pytest.raises(ArgumentError, match="no kind"):
        custom_rule(short_rule, kind=kind)
