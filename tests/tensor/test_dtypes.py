"""A computation keeps its floating-point type, there and back, on every backend."""

import numpy as np
import pytest

import lantern as L  # noqa: N812  # short, in a table of functions
from lantern import grad, jvp, vjp
from lantern.op import elementwise, registry

REAL = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
# The relative accuracy that a few operations leave.
ACCURACY = {"float16": 2e-2, "float32": 1e-5, "complex64": 1e-5, "bfloat16": 5e-2}

# Functions of a (3, 3) matrix of any floating-point type; ANY of complex ones too.
ANY = {
    "operators": lambda x: (2.0 * x + 1) / (x * x + 3) - x,
    "reflected": lambda x: 1 / x + (1 - x) + 2 * x,
    "power": lambda x: x**2 + x**3,
    "square root": lambda x: L.sqrt(x) * L.square(x),
    "exponentials": lambda x: L.exp(-x) * L.log(x) + L.expm1(x / 8),
    "trigonometry": lambda x: L.sin(x) + L.cos(x) * L.tanh(x),
    "sum": lambda x: L.sum(x, axis=0) * L.sum(x),
    "mean": lambda x: L.mean(x, axis=1) + L.mean(x),
    "prod": lambda x: L.prod(x, axis=0),
    "matmul": lambda x: x @ x.mT @ x[0],
    "broadcasting": lambda x: x + x[0] * x[:, :1],
    "indexing": lambda x: x[:, 0] * x[1] + x[::-1, 2],
    "shapes": lambda x: L.reshape(x.T, (9,)) * L.reshape(x, (-1,)),
    "joining": lambda x: L.concat([x, x * x], axis=1) * 0.5,
    "stacking": lambda x: L.stack([x, x[:, ::-1]]) * x,
    "where": lambda x: L.where(L.real(x) > 1.0, x, 0.5 * x),
    "absolute": lambda x: L.abs(x) * L.abs(x) + L.real(x),
    "constants": lambda x: x * L.ones_like(x) + L.zeros_like(x),
    "second derivative": lambda x: L.sum(x) * x,
}
REAL_ALONE = {
    "maximum": lambda x: L.maximum(x, 1.0) + L.minimum(x, x[0]),
    "extremes": lambda x: L.max(x, axis=0) + L.min(x),
    "clip": lambda x: L.clip(x, 0.75, 1.5) * x,
    "statistics": lambda x: L.std(x, axis=0) + L.var(x),
    "softmax": lambda x: L.softmax(x) + L.log_softmax(x, axis=0),
    "logsumexp": lambda x: L.logsumexp(x, axis=1),
    "logistic": lambda x: L.sigmoid(x) + L.softplus(x) + L.relu(x),
    "angles": lambda x: L.atan2(x, 2 * x) + L.hypot(x, x),
    "remainder": lambda x: x % 4.0 + L.floor(x) * x,
}
CASES = [(name, f, dtype) for name, f in ANY.items() for dtype in REAL + COMPLEX] + [
    (name, f, dtype) for name, f in REAL_ALONE.items() for dtype in REAL
]
IDS = [f"{name}-{dtype}" for name, _, dtype in CASES]


def matrix(dtype):
    x = np.array([[0.6, 1.2, 0.9], [1.4, 0.7, 1.1], [0.8, 1.3, 1.6]])
    return (x + 0.25j * x.T if dtype in COMPLEX else x).astype(dtype)


def real_type(dtype):
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def loss(f):
    return lambda x: L.sum(L.real(f(x)) ** 2)


@pytest.mark.parametrize(("name", "f", "dtype"), CASES, ids=IDS)
def test_results_gradients_and_tangents_keep_the_type(name, f, dtype):
    x = matrix(dtype)
    y, y_dot = jvp(f, (x,), (x,))
    assert f(x).dtype == y.dtype == y_dot.dtype
    assert y.dtype in (dtype, real_type(dtype))
    gradient = grad(loss(f))(x)
    second = jvp(grad(loss(f)), (x,), (x,))[1]
    assert gradient.dtype == second.dtype == dtype
    exact = matrix("complex128" if dtype in COMPLEX else "float64")
    scale = np.max(np.abs(grad(loss(f))(exact)))
    accuracy = ACCURACY.get(dtype, 1e-12)
    np.testing.assert_allclose(
        gradient, grad(loss(f))(exact), rtol=accuracy, atol=accuracy * scale
    )


@pytest.mark.parametrize(("name", "f", "dtype"), CASES, ids=IDS)
def test_and_so_on_the_device(backend, name, f, dtype):
    x = matrix(dtype)
    there = backend.array(x)
    y, _ = vjp(f, there)
    assert type(y) is backend.kind
    assert y.dtype == f(x).dtype
    gradient = grad(loss(f))(there)
    assert type(gradient) is backend.kind
    assert gradient.dtype == dtype
    accuracy = ACCURACY.get(dtype, 1e-12)
    want = grad(loss(f))(x)
    np.testing.assert_allclose(backend.host(gradient), want, rtol=accuracy)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_scalars_of_numpy_widen_the_result_and_not_the_gradient(dtype):
    x = matrix(dtype)
    y, pullback = vjp(lambda x: x * np.float64(2), x)
    assert y.dtype == (x * np.float64(2)).dtype
    (x_bar,) = pullback(np.ones_like(y))
    assert x_bar.dtype == dtype
    np.testing.assert_array_equal(x_bar, np.full((3, 3), 2, dtype))


@pytest.mark.parametrize("dtype", REAL)
def test_a_real_array_beside_a_complex_one_gets_a_real_gradient(dtype):
    x, z = matrix(dtype), matrix("complex64")
    gradients = grad(lambda x, z: L.sum(L.abs(x * z)), (0, 1))(x, z)
    assert gradients[0].dtype == dtype
    assert gradients[1].dtype == np.complex64


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_arrays_of_no_axes_and_scalars(dtype):
    for x in (matrix(dtype)[0, 1], np.asarray(matrix(dtype)[0, 1])):
        gradient = grad(lambda x: L.real(x * x * 2.0 + L.sin(x)))(x)
        assert gradient.dtype == dtype
        assert gradient.shape == ()


def test_an_outer_number_does_not_widen_an_inner_array():
    x = matrix("float32")

    def outer(a):
        inner = grad(lambda x: L.sum(L.sin(x * a)))(x)
        assert inner.dtype == np.float32
        return L.sum(inner)

    assert grad(outer)(0.5) == pytest.approx(
        np.sum(np.cos(0.5 * x) - 0.5 * x * np.sin(0.5 * x)), rel=1e-5
    )


class TestBfloat16:
    """A type for storage: NumPy computes with it, at times in wider ones."""

    @pytest.fixture
    def x(self):
        dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
        return matrix("float32").astype(dtypes.bfloat16)

    @pytest.mark.parametrize("name", [*ANY, *REAL_ALONE])
    def test_gradients_stay_bfloat16(self, x, name):
        f = {**ANY, **REAL_ALONE}[name]
        y, pullback = vjp(f, x)
        assert y.dtype == f(x).dtype
        (x_bar,) = pullback(np.ones_like(y))
        assert x_bar.dtype == x.dtype
        _, exact = vjp(f, x.astype("float64"))
        (want,) = exact(np.ones(y.shape))
        error = np.abs(x_bar.astype("float64") - want)
        assert np.max(error) <= ACCURACY["bfloat16"] * np.max(np.abs(want))

    def test_a_loss_in_bfloat16(self, x):
        gradient = grad(lambda x: L.sum(x * x))(x)
        assert gradient.dtype == x.dtype
        np.testing.assert_array_equal(gradient, x + x)

    def test_casts_are_differentiable(self, x):
        w = x.astype("float32")
        gradient = grad(lambda w: L.sum(L.astype(w, x.dtype) * 3))(w)
        assert gradient.dtype == np.float32
        np.testing.assert_array_equal(gradient, np.full((3, 3), 3.0))


def takes_one(op):
    code = op.rule.__code__
    return code.co_argcount + code.co_kwonlyargcount == 1


SHORT = [
    op
    for op in registry.values()
    if op.kind == "elementwise" and op.arity == 1 and takes_one(op)
    if op.rule.__module__.startswith("lantern.")
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", SHORT, ids=lambda op: op.name)
def test_elementwise_rules_keep_shape_and_type(op, dtype):
    """The short way of a tracked array does not look at what such a rule yields."""
    for shape in ((3,), (2, 1), (0,)):
        with np.errstate(all="ignore"):
            z = op.function(np.full(shape, 0.5, dtype))
        assert (z.shape, z.dtype) == (shape, dtype)


def test_an_elementwise_rule_of_a_user_may_change_the_type():
    @elementwise
    def halved(x, /):
        z_bar = yield (x / 2).astype(np.float32)
        yield z_bar / 2

    def seen(x):
        z = halved(x)
        assert z.dtype == np.float32
        return L.sum(halved(x) * z * z)

    x = np.array([2.0, 4.0])
    gradient = grad(seen)(x)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, 3 * x * x / 8)
