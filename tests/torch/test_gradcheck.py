"""``gradcheck``: what is right passes, and each way to be wrong is found."""

import sys

import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same_scenario


def off(torch, x, error=1e-2):
    """The same value, with a derivative that is a little off."""
    y = x.clone()
    y.register_hook(lambda z_bar: z_bar + error)
    return y


def scaled(torch, factor, tangent=2.0):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar * factor

        @staticmethod
        def jvp(ctx, x_dot):
            return x_dot * tangent

    return Scaled.apply


def jumping(torch, x):
    return torch.cat([x, x]) if bool((x >= 0.5).all()) else x


def changing(torch, x):
    return x.float() if bool((x >= 0.5).all()) else x


def random(torch, x):
    class Random(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar * (1 + 1e-7 * torch.rand_like(z_bar))

    return Random.apply(x)


FORTH = {"check_forward_ad": True, "check_backward_ad": False}
# A function, the kinds of its inputs, and options.
FUNCTIONS = {
    "exp": (lambda torch, x: x.exp(), "r", {}),
    "two inputs": (lambda torch, x, y: (x * y, x + y.sum()), "rr", {}),
    "a number as well": (lambda torch, x, n: x**n, "r3", {}),
    "a constant": (lambda torch, x, y: x * y, "rk", {}),
    "a result without derivative": (
        lambda torch, x: (x * 2, (x > 0).double()),
        "r",
        {},
    ),
    "a tensor of integers": (lambda torch, x: (x * 2, x.argmax()), "r", {}),
    "no results": (lambda torch, x: (), "r", {}),
    "nothing to vary": (lambda torch, x: x, "k", {}),
    "complex": (lambda torch, x: x.exp() * x, "c", {}),
    "complex and real": (lambda torch, x, y: x * y, "cr", {}),
    "to complex": (lambda torch, x: torch.complex(x, x * x), "r", {}),
    "to real": (lambda torch, x: x.abs(), "c", {}),
    "not holomorphic": (lambda torch, x: x.conj() * x.real, "c", {}),
    "off": (lambda torch, x: off(torch, x), "r", {}),
    "off, complex": (lambda torch, x: off(torch, x), "c", {}),
    "off by an imaginary part": (lambda torch, x: off(torch, x, 1e-2j), "c", {}),
    "off, to complex": (lambda torch, x: off(torch, torch.complex(x, x)), "r", {}),
    "off, to real": (lambda torch, x: off(torch, x.real), "c", {}),
    "not linear": (lambda torch, x: off(torch, x), "r", {"atol": 1e-1}),
    "detached": (lambda torch, x: x * x.detach(), "r", {}),
    "wrong": (lambda torch, x: scaled(torch, 2.01)(x), "r", {}),
    "wrong forth, not asked": (lambda torch, x: scaled(torch, 2.0, 2.1)(x), "r", {}),
    "wrong forth": (lambda torch, x: scaled(torch, 2.0, 2.1)(x), "r", FORTH),
    "wrong back, not asked": (lambda torch, x: scaled(torch, 2.1)(x), "r", FORTH),
    "right forth": (lambda torch, x, y: (x * y).exp(), "rr", FORTH),
    "complex forth": (lambda torch, x, y: (x * y).exp(), "cr", FORTH),
    "to real, forth": (lambda torch, x: x.real * x.imag, "c", FORTH),
    "neither": (
        lambda torch, x: x,
        "r",
        {"check_forward_ad": False, "check_backward_ad": False},
    ),
    "many at once": (lambda torch, x: x.exp(), "r", {"check_batched_grad": True}),
    "another shape": (jumping, "1", {}),
    "another type": (changing, "1", {}),
    "by chance": (random, "r", {}),
    "by chance, as allowed": (random, "r", {"nondet_tol": 1e-5}),
    "an element that lies at many places": (lambda torch, x: x * 1, "e", {}),
    "single precision": (lambda torch, x: x * 1, "f", {"atol": 1e-1}),
    "none with a derivative": (lambda torch, x: torch.tensor(x.tolist()), "r", {}),
}


def inputs(torch, kinds):
    made = {
        "r": lambda: torch.tensor([0.3, 1.2], dtype=torch.float64),
        "c": lambda: torch.tensor([0.3 + 1j, 1.2 - 0.5j], dtype=torch.complex128),
        "f": lambda: torch.tensor([0.3, 1.2]),
        "1": lambda: torch.tensor([0.5], dtype=torch.float64),
    }
    for kind in kinds:
        if kind == "k":
            yield made["r"]()
        elif kind == "e":
            yield made["1"]().requires_grad_().expand(2, 2)
        elif kind in made:
            yield made[kind]().requires_grad_()
        else:
            yield int(kind)


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_verdict_is_pytorchs(name, raises):
    function, kinds, options = FUNCTIONS[name]

    def run(torch):
        return torch.autograd.gradcheck(
            lambda *args: function(torch, *args),
            tuple(inputs(torch, kinds)),
            raise_exception=raises,
            **options,
        )

    assert_same_scenario(run)


SECOND = {
    "cube": (lambda torch, x: x**3, "r"),
    "complex": (lambda torch, x: x**3, "c"),
    "two inputs": (lambda torch, x, y: (x * y).sin(), "rr"),
    "linear in one": (lambda torch, x, y: x * 2 + y**2, "rr"),
    "wrong": (lambda torch, x: scaled(torch, 2.0)(x) * x.detach(), "r"),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name):
    function, kinds = SECOND[name]

    def run(torch):
        return torch.autograd.gradgradcheck(
            lambda *args: function(torch, *args),
            tuple(inputs(torch, kinds)),
            raise_exception=False,
        )

    assert_same_scenario(run)


def test_its_path_can_be_called_too():
    path = sys.modules["lantern.torch.autograd.gradcheck"]
    x = ours.ones(1, dtype=ours.float64, requires_grad=True)
    assert path(ours.exp, (x,))
    assert path.gradcheck is ours.autograd.gradcheck
    assert issubclass(path.GradcheckError, RuntimeError)


def test_inputs_without_axes_that_numpy_holds_as_a_number():
    x = ours.tensor(0.5, dtype=ours.float64, requires_grad=True)
    y = (x * 2).detach().requires_grad_()  # NumPy's product of such is a number
    assert ours.autograd.gradcheck(lambda y: y.sin(), (y,))
    assert y.item() == 1.0


@pytest.mark.filterwarnings("ignore:Input #1 requires gradient and is not a double")
@pytest.mark.parametrize("tracked", [True, False])
def test_cotangents_are_varied_where_they_require_gradients(tracked):
    x = ours.rand(3, dtype=ours.float64, requires_grad=True)
    z_bar = ours.rand(3, requires_grad=tracked)  # too coarse to be varied
    found = ours.autograd.gradgradcheck(
        lambda x: x**2, x, z_bar, atol=1e-4, raise_exception=False
    )
    assert found is not tracked


@pytest.mark.parametrize("shape", [(1, 3), (4, 0)])
def test_functions_of_nothing_and_with_nothing_as_result_pass(shape):
    x = ours.rand(shape, dtype=ours.float64, requires_grad=True)
    assert ours.autograd.gradcheck(ours.nn.functional.pdist, (x,))
    assert ours.autograd.gradgradcheck(lambda x: x[:0].exp(), (x,))
