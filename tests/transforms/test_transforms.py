"""Choosing arguments, linear maps, Hessian products, pairs; every nesting of them."""

import functools
import inspect
import itertools

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    NotScalarError,
    ShapeError,
    backward_steps,
    custom_jvp,
    custom_rule,
    custom_vjp,
    diag_hessian,
    elementwise_grad,
    fixed_point,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jet,
    jvp,
    linearize,
    root,
    taylor,
    value_and_grad,
    vhp,
    vjp,
    wirtinger,
)
from lantern.core.tree import tree_map
from lantern.debugger import Session
from lantern.testing import check_grads


def f(x, y=2.0, *, z=5.0):
    """x y z"""
    return x * y * z


def any_arguments(*args, **kwargs):
    return args[0] * args[1] * kwargs["w"]


# function, argnums, arguments, keyword arguments, gradient
CHOICES = {
    "a name by position": (f, "x", (3.0,), {}, 10.0),
    "a name by keyword": (f, "y", (3.0,), {"y": 4.0}, 15.0),
    "a keyword-only name": (f, "z", (3.0,), {"z": 1.0}, 6.0),
    "a default": (f, "y", (3.0,), {}, 15.0),
    "names in their own order": (f, ("z", "x"), (3.0,), {}, (6.0, 10.0)),
    "one name in a tuple": (f, ("x",), (), {"x": 3.0}, (10.0,)),
    "a list of names": (f, ["x", "y"], (3.0, 1.0), {}, (5.0, 15.0)),
    "all": (f, "*", (3.0, 4.0), {}, (20.0, 15.0)),
    "all of one": (f, "*", (3.0,), {"y": 4.0}, (20.0,)),
    "all of any number": (any_arguments, "*", (3.0, 4.0), {"w": 2.0}, (8.0, 6.0)),
    "a free keyword": (any_arguments, "w", (3.0, 4.0), {"w": 2.0}, 12.0),
    "positions still": (f, (1, 0), (3.0, 4.0), {}, (15.0, 20.0)),
    "from the end": (f, -1, (3.0, 4.0), {}, 15.0),
    "a partial function": (functools.partial(f, z=1.0), "x", (3.0,), {}, 2.0),
    "a structure": (lambda p: p["a"] * p["b"], "p", ({"a": 2.0, "b": 3.0},), {}, None),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_arguments_by_position_by_name_or_all(choice):
    function, argnums, args, kwargs, expected = CHOICES[choice]
    if expected is None:
        expected = {"a": 3.0, "b": 2.0}
    got = grad(function, argnums)(*args, **kwargs)
    assert got == expected
    assert type(got) is type(expected)
    value = function(*args, **kwargs)
    assert value_and_grad(function, argnums)(*args, **kwargs) == (value, got)
    with_aux = lambda *a, **k: (function(*a, **k), "aux")  # noqa: E731
    if not isinstance(argnums, str | list | tuple) or argnums == "*":
        assert grad(with_aux, argnums, has_aux=True)(*args, **kwargs) == (got, "aux")


def by_steps(f, argnums):
    return lambda *args, **kwargs: (
        Session(f, *args, argnums=argnums, **kwargs).proceed().gradient
    )


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(
    "derivative", [jacfwd, jacrev, jacobian, elementwise_grad, by_steps]
)
def test_every_derivative_takes_the_same_choices(derivative, choice):
    function, argnums, args, kwargs, _ = CHOICES[choice]
    expected = grad(function, argnums)(*args, **kwargs)
    got = derivative(function, argnums)(*args, **kwargs)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize("choice", CHOICES)
def test_second_derivatives_take_the_same_choices(choice):
    function, argnums, args, kwargs, _ = CHOICES[choice]
    gradient = grad(function, argnums)
    expected = jacfwd(gradient, argnums)(*args, **kwargs)
    assert hessian(function, argnums)(*args, **kwargs) == expected
    own = diag_hessian(function, argnums)(*args, **kwargs)
    parts = gradient(*args, **kwargs)
    assert tree_map(lambda _: 0.0, parts) == own
    mode = jacobian(function, argnums).mode(*args, **kwargs)
    assert mode == "reverse"


@pytest.mark.parametrize("argnums", ["w", ("w", "z"), "*", (1, 0)])
def test_complex_derivatives_take_the_same_choices(argnums):
    f = lambda z, w: z * w**2  # noqa: E731
    by_z, by_conj = wirtinger(f, argnums)(1j, 2 + 1j)
    assert by_z == grad(f, argnums, holomorphic=True)(1j, 2 + 1j)
    assert by_conj == tree_map(lambda _: 0, by_z)


def test_keys_of_steps_are_what_was_chosen():
    steps = backward_steps(f, 3.0, y=4.0, argnums=("y", "z"))
    paths = {op.path for op, _ in steps if op.is_input}
    assert paths == {("y",), ("z",)}


def test_names_and_aux_together():
    g = grad(lambda x, y: (x * y, x), "y", has_aux=True)
    assert g(2.0, y=3.0) == (2.0, 2.0)


def test_names_survive_nesting():
    assert grad(grad(lambda x, y: x**2 * y**3, "y"), "x")(2.0, y=3.0) == 2 * 2 * 3 * 9.0


def test_a_function_that_does_not_tell_its_parameters():
    with pytest.raises(ArgumentError, match="by position"):
        grad(max, "x")(1.0, 2.0)


def test_a_derivative_by_name_keeps_the_signature():
    assert inspect.signature(grad(f, "x")) == inspect.signature(f)
    assert grad(f, "x").__doc__ == f.__doc__


# argnums, arguments, keyword arguments, what is said
WRONG_CHOICES = {
    "no such parameter": ("q", (3.0,), {}, "no argument 'q'; it has y, z, x"),
    "a name twice": (("x", "x"), (3.0,), {}, "names an argument twice"),
    "a name and a position": (("x", 0), (3.0,), {}, "no argument 0"),
    "a position and a name": ((0, "x"), (3.0,), {}, "argnums must be"),
    "all of nothing": ("*", (), {"x": 3.0}, "called with none"),
    "a float": (1.5, (3.0,), {}, "argnums must be"),
    "not by position": (0, (), {"x": 3.0}, "by position"),
}


@pytest.mark.parametrize("choice", WRONG_CHOICES)
def test_a_wrong_choice_is_named(choice):
    argnums, args, kwargs, message = WRONG_CHOICES[choice]
    with pytest.raises(ArgumentError, match=message):
        grad(f, argnums)(*args, **kwargs)


def program(p, s):
    h = lantern.tanh(p["w"] @ p["b"]) * s
    return {"h": h, "all": (h * p["b"]).sum() ** 2, "one": h[0] / (1 + s)}


POINT = (
    {"w": np.array([[0.3, -0.2], [0.5, 0.1]]), "b": np.array([1.0, -0.5])},
    0.7,
)
DIRECTIONS = [
    ({"w": np.eye(2), "b": np.array([0.3, 0.2])}, 0.5),
    ({"w": np.ones((2, 2)), "b": np.zeros(2)}, -1.0),
]


class TestLinearize:
    @pytest.mark.parametrize("direction", DIRECTIONS)
    def test_it_agrees_with_forward_mode(self, direction):
        value, pushforward = linearize(program, *POINT)
        want, moved = jvp(program, POINT, direction)
        for _ in range(2):
            got = pushforward(*direction)
            for key in want:
                np.testing.assert_array_equal(value[key], want[key])
                np.testing.assert_allclose(got[key], moved[key], rtol=1e-14)

    def test_f_runs_once(self):
        runs = []

        def f(x):
            runs.append(1)
            return lantern.sin(x) * x, "aux"

        value, pushforward, aux = linearize(f, 2.0, has_aux=True)
        a, b = pushforward(1.0), pushforward(3.0)
        assert (value, aux) == (2 * np.sin(2.0), "aux")
        assert b == pytest.approx(3 * a)
        assert len(runs) == 1

    def test_a_pushforward_is_linear_and_can_be_differentiated(self):
        _, pushforward = linearize(lambda x: x**3, 2.0)
        assert grad(pushforward)(5.0) == 12.0
        assert jvp(pushforward, (5.0,), (2.0,)) == (60.0, 24.0)
        assert grad(lambda x: linearize(lambda y: x * y**3, x)[1](x))(2.0) == 96.0

    def test_it_is_the_transpose_of_the_pullback(self):
        _, pushforward = linearize(program, *POINT)
        _, pullback = vjp(program, *POINT)
        y_bar = {"h": np.array([0.3, 1.0]), "all": -0.7, "one": 0.2}
        for v in DIRECTIONS:
            y_dot = pushforward(*v)
            (w_bar, s_bar), inner = pullback(y_bar), 0.0
            for key in y_bar:
                inner += np.sum(y_bar[key] * y_dot[key])
            outer = sum(np.sum(w_bar[k] * v[0][k]) for k in v[0]) + s_bar * v[1]
            assert inner == pytest.approx(outer, rel=1e-13)

    def test_several_results_of_one_rule(self):
        x = np.array([[2.0, 0.3], [0.3, 1.0]])
        _, pushforward = linearize(lambda x: tuple(lantern.linalg.eigh(x)), x)
        for v in (np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])):
            want = jvp(lambda x: tuple(lantern.linalg.eigh(x)), (x,), (v,))[1]
            for a, b in zip(pushforward(v), want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13)

    def test_what_does_not_fit_is_refused(self):
        _, pushforward = linearize(lambda x: x * x, np.ones(2))
        for tangent in (1.0, np.ones(3), np.ones(2) * 1j, [1.0, 1.0]):
            with pytest.raises((ShapeError, ArgumentError), match="pushforward"):
                pushforward(tangent)
        np.testing.assert_array_equal(pushforward(np.ones(2)), [2.0, 2.0])


def cubic(x, y):
    return (x**2 * y).sum() + (y**3).sum()


class TestHessianProducts:
    X, Y = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    V, W = np.array([0.5, 1.0]), np.array([1.0, 2.0])

    @pytest.mark.parametrize("product", [hvp, vhp])
    def test_of_several_arguments(self, product):
        by_x, by_y = product(cubic, (self.X, self.Y), (self.V, self.W))
        np.testing.assert_allclose(by_x, 2 * self.Y * self.V + 2 * self.X * self.W)
        np.testing.assert_allclose(by_y, 2 * self.X * self.V + 6 * self.Y * self.W)

    @pytest.mark.parametrize("product", [hvp, vhp])
    def test_of_one_argument_with_and_without_a_tuple(self, product):
        f = lambda x: (x**3).sum()  # noqa: E731
        for primals, v in (
            (self.X, self.V),
            ((self.X,), (self.V,)),
            ([self.X], [self.V]),
        ):
            np.testing.assert_allclose(product(f, primals, v), 6 * self.X * self.V)
        tree = {"a": 2.0, "b": (3.0,)}
        got = product(lambda t: t["a"] ** 2 * t["b"][0], tree, {"a": 1.0, "b": (0.0,)})
        assert got == {"a": 6.0, "b": (4.0,)}

    @pytest.mark.parametrize("product", [hvp, vhp])
    def test_aux_comes_beside(self, product):
        f = lambda x: (x**3, {"square": x * x})  # noqa: E731
        assert product(f, 2.0, 1.0, has_aux=True) == (12.0, {"square": 4.0})

    @pytest.mark.parametrize("product", [hvp, vhp])
    def test_what_does_not_fit_is_refused(self, product):
        with pytest.raises(ArgumentError, match="both"):
            product(cubic, (self.X, self.Y), self.V)
        with pytest.raises(ShapeError):
            product(cubic, (self.X, self.Y), (self.V, np.ones(3)))
        with pytest.raises(NotScalarError):
            product(lambda x: x, self.X, self.V)


class TestElementwise:
    def test_every_order(self):
        x = np.linspace(-2, 2, 7).reshape(7, 1)
        d = elementwise_grad
        t = np.tanh(x)
        np.testing.assert_allclose(d(lantern.tanh)(x), 1 - t**2, rtol=1e-13)
        np.testing.assert_allclose(
            d(d(lantern.tanh))(x), -2 * t * (1 - t**2), rtol=1e-13
        )
        assert d(d(lambda x: x**3))(2.0) == 12.0

    def test_several_arguments_by_name_and_aux(self):
        x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        g = elementwise_grad(lambda x, y: (x * y**2, "aux"), ("y", "x"), has_aux=True)
        (by_y, by_x), aux = g(x, y=y)
        np.testing.assert_allclose(by_y, 2 * x * y)
        np.testing.assert_allclose(by_x, y**2)
        assert aux == "aux"

    def test_complex_values_only_where_promised(self):
        z = np.array([1 + 2j, 0.5j])
        got = elementwise_grad(lambda z: z**2, holomorphic=True)(z)
        np.testing.assert_allclose(got, 2 * z, rtol=1e-15)
        with pytest.raises(NotScalarError, match="holomorphic"):
            elementwise_grad(lambda z: z**2)(z)
        with pytest.raises(NotScalarError, match="holomorphic"):
            elementwise_grad(lambda x: x**2, holomorphic=True)(z.real)

    def test_a_structure_is_refused(self):
        with pytest.raises(NotScalarError, match="one number or array, got list"):
            elementwise_grad(lambda x: [x])(np.ones(2))

    @pytest.mark.parametrize("f", [lambda x: x.sum(), lambda x: x[:1]])
    def test_a_function_that_changes_the_shape_is_refused(self, f):
        with pytest.raises(ShapeError, match="use jacobian"):
            elementwise_grad(f)(np.ones(2))


class TestWirtinger:
    # f, df/dz and df/dconj(z)
    PAIRS = {  # noqa: RUF012
        "holomorphic": (lambda z: z**3, lambda z: 3 * z**2, lambda z: 0 * z),
        "conjugate": (lambda z: z.conjugate(), lambda z: 0 * z, lambda z: z * 0 + 1),
        "square of the modulus": (
            lambda z: z * z.conjugate(),
            lambda z: z.conjugate(),
            lambda z: z,
        ),
        "real modulus": (
            lambda z: (z * z.conjugate()).real,
            lambda z: z.conjugate(),
            lambda z: z,
        ),
        "mixed": (
            lambda z: z.conjugate() ** 2 * z + 1j * z,
            lambda z: z.conjugate() ** 2 + 1j,
            lambda z: 2 * z.conjugate() * z,
        ),
        "imaginary part": (lambda z: z.imag, lambda z: -0.5j, lambda z: 0.5j),
        "direction": (
            np.sign,
            lambda z: 0.5 / abs(z),
            lambda z: -(z**2) / (2 * abs(z) ** 3),
        ),
    }

    @pytest.mark.parametrize("name", PAIRS)
    def test_of_a_number(self, name):
        f, by_z, by_conj = self.PAIRS[name]
        z = 1.5 - 0.5j
        got = wirtinger(f)(z)
        assert got == pytest.approx((by_z(z), by_conj(z)), rel=1e-14)

    @pytest.mark.parametrize("name", PAIRS)
    def test_of_each_element_of_an_array(self, name):
        f, by_z, by_conj = self.PAIRS[name]
        z = np.array([1.5 - 0.5j, 2j])
        got = wirtinger(lambda z: lantern.sum(f(z)))(z)
        np.testing.assert_allclose(got[0], by_z(z), rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(got[1], by_conj(z), rtol=1e-14, atol=1e-15)

    def test_they_are_half_of_grad_and_the_holomorphic_derivative(self):
        f = lambda z: lantern.sin(z) * z  # noqa: E731
        z = 0.4 + 0.3j
        by_z, by_conj = wirtinger(f)(z)
        assert by_z == pytest.approx(grad(f, holomorphic=True)(z), rel=1e-14)
        assert abs(by_conj) < 1e-16
        g = lambda z: lantern.real(f(z)) ** 2  # noqa: E731
        assert wirtinger(g)(z)[1] == pytest.approx(grad(g)(z) / 2, rel=1e-14)

    def test_several_arguments(self):
        by_z, by_conj = wirtinger(lambda z, w: z * w.conjugate(), (0, 1))(1j, 2 + 1j)
        assert (by_z, by_conj) == ((2 - 1j, 0j), (0j, 1j))

    def test_refusals(self):
        with pytest.raises(ArgumentError, match="expected complex arguments"):
            wirtinger(lambda z: z)(1.0)
        with pytest.raises(NotScalarError, match="one number"):
            wirtinger(lambda z: z)(np.ones(2, complex))


@custom_vjp
def own_identity(x):
    return x * 1.0


own_identity.defvjp(lambda x: (x * 1.0, None), lambda _, g: (g,))


@custom_jvp
def other_identity(x):
    return x * 1.0


other_identity.defjvps(lambda x_dot, z, x: x_dot)


@custom_rule
def third_identity(x, /):
    yield (yield x * 1.0)


# Each is the first derivative of a function of one number, or leaves it as it is.
DERIVATIVES = {
    "grad": grad,
    "switching": functools.partial(grad, driver="switching"),
    "grad by name": lambda f: lambda x: grad(lambda y: f(y), "y")(y=x),
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: linearize(f, x)[1](1.0),
    "elementwise_grad": elementwise_grad,
    "taylor": lambda f: lambda x: taylor(f, x, 2)[1],
    "jet": lambda f: lambda x: jet(f, (x,), ([1.0, 0.5],))[1][0],
    "hvp": lambda f: lambda x: hvp(lambda y: x_times(f, y, x), (x,), (1.0,)) / 2,
    "vhp": lambda f: lambda x: vhp(lambda y: x_times(f, y, x), (x,), (1.0,)) / 2,
}


def x_times(f, y, x):
    """A function of y whose second derivative at y = x is twice the first of f."""
    return (y - x) * f(y)


IDENTITIES = {
    "custom_vjp": lambda f: lambda x: own_identity(f(own_identity(x))),
    "custom_jvp": lambda f: lambda x: other_identity(f(other_identity(x))),
    "custom_rule": lambda f: lambda x: third_identity(f(third_identity(x))),
    "fixed_point": lambda f: (
        lambda x: fixed_point(lambda y, z: (y + z) / 2, 0.0, f(x), tol=1e-15)
    ),
    "root": lambda f: lambda x: root(lambda y, z: 2 * (y - z), 0.0, f(x)),
}
EVERYTHING = {**DERIVATIVES, **IDENTITIES}


def subject(x):
    return lantern.sin(x) * x**2 + lantern.exp(x) / (1 + x * x)


@functools.cache
def expected(order):
    g = subject
    for _ in range(order):
        g = DERIVATIVES["jvp"](g)
    return g(0.7)


@pytest.mark.parametrize("outer", EVERYTHING)
@pytest.mark.parametrize("inner", EVERYTHING)
def test_every_transform_inside_every_other(outer, inner):
    order = (outer in DERIVATIVES) + (inner in DERIVATIVES)
    g = EVERYTHING[outer](EVERYTHING[inner](subject))
    assert g(0.7) == pytest.approx(expected(order), rel=1e-9)


def triples():
    """A part of all triples in which every ordered pair meets every position."""
    names = list(EVERYTHING)
    n = len(names)
    for i, j in itertools.product(range(n), repeat=2):
        yield names[i], names[j], names[(i + 2 * j) % n]


@pytest.mark.parametrize("names", list(triples()), ids="-".join)
def test_three_transforms(names):
    if sum(n in ("hvp", "vhp") for n in names) > 1:
        names = [n if n not in ("hvp", "vhp") else "grad" for n in names]
    g = subject
    for name in names:
        g = EVERYTHING[name](g)
    order = sum(name in DERIVATIVES for name in names)
    assert g(0.7) == pytest.approx(expected(order), rel=1e-8)


def test_products_of_derivatives_of_every_kind():
    def f(x):
        value, pushforward = linearize(lambda y: y**2 * x, x)
        return value * pushforward(x) * hvp(lambda y: x * y**3, x, 1.0)

    check_grads(f, (0.7,), order=2)


ARGNUM_TAKERS = (
    "diag_hessian elementwise_grad grad hessian hvp jacfwd jacobian jacrev "
    "value_and_grad vhp wirtinger"
).split()


def applied(name, f, args, **which):
    """A derivative of f by an argument; a product of its Hessian with that argument."""
    derivative = getattr(lantern, name)
    if name in ("hvp", "vhp"):
        chosen = next(iter(which.values()), (0, 1))
        several = isinstance(chosen, tuple)
        vector = tuple(args[i] for i in chosen) if several else args[int(chosen)]
        return derivative(f, args, vector, **which)
    return derivative(f, **which)(*args)


@pytest.mark.parametrize("name", ARGNUM_TAKERS)
def test_argnums_have_two_names(name):
    args = (2.0 + 1j, 3.0 - 1j) if name == "wirtinger" else (2.0, 3.0)
    f = lambda x, y: x * x * y * y * y  # noqa: E731
    for chosen in (0, 1, -1, (1,), (0, 1)):
        expected = applied(name, f, args, argnums=chosen)
        assert applied(name, f, args, argnum=chosen) == expected
        for other in (0, 1, chosen):
            with pytest.raises(ArgumentError, match=f"{name}: argnums=.* Give one"):
                applied(name, f, args, argnums=chosen, argnum=other)
    first = (0, 1) if name in ("hvp", "vhp") else 0
    expected = applied(name, f, args, argnums=first)
    assert applied(name, f, args) == expected


def test_every_derivative_that_takes_argnums_takes_both_names():
    found = {
        name
        for name in dir(lantern)
        if callable(getattr(lantern, name))
        and "argnums" in parameters(getattr(lantern, name))
        and "args" not in parameters(getattr(lantern, name))
    }
    assert found == set(ARGNUM_TAKERS)


def parameters(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()


@pytest.mark.parametrize("product", [lantern.hvp, lantern.vhp])
def test_products_with_the_hessian_by_some_arguments(product):
    def f(x, y, z):
        return lantern.sum(x * x * y) * z, "aux"

    x, y, z = np.array([1.0, 2.0]), np.array([3.0, 5.0]), 7.0
    by_x = product(lambda x: f(x, y, z)[0], x, x)
    np.testing.assert_array_equal(by_x, 2 * 7 * y * x)
    np.testing.assert_array_equal(
        product(lambda *a: f(*a)[0], (x, y, z), x, argnums=0), by_x
    )
    result, aux = product(f, (x, y, z), (z, x), has_aux=True, argnums=("z", "x"))
    expected = product(lambda z, x: f(x, y, z)[0], (z, x), (z, x))
    for part, other in zip(result, expected, strict=True):
        np.testing.assert_array_equal(part, other)
    assert aux == "aux"
    with pytest.raises(ArgumentError, match="argnums=3"):
        product(f, (x, y, z), x, argnums=3)
