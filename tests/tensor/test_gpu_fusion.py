"""Rules of two kernels, by a stand-in for CuPy's compiler, which compiles nothing."""

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern import grad
from lantern.core.operation import registry
from lantern.tensor.backend.gpu_fusion import Fuser, fusers
from lantern.tensor.backend.numpy_namespace import REAL

NAMES = "tanh sigmoid softplus exp log sqrt square sin atan relu reciprocal".split()


class Compiler:
    """Notes what it is given, and how often that runs."""

    def __init__(self):
        self.ran = []

    def __call__(self, kernel_name):
        def compiled(function):
            def kernel(*arrays):
                assert {type(x) for x in arrays} == {np.ndarray}
                self.ran.append(kernel_name)
                return function(*arrays)

            return kernel

        return compiled


@pytest.fixture
def compiler():
    compiler = Compiler()
    fusers[np.ndarray] = Fuser(compiler, REAL)
    yield compiler
    del fusers[np.ndarray]


def first_and_second(f, x):
    def once(x):
        return grad(lambda x: lantern.sum(f(x) * x))(x)

    return once(x), grad(lambda x: lantern.sum(once(x) * x))(x)


@pytest.mark.parametrize("name", NAMES)
def test_same_derivatives_from_two_kernels(name, compiler):
    f, x = registry[name].function, np.linspace(0.1, 0.9, 6).reshape(2, 3)
    fused = first_and_second(f, x)
    assert set(compiler.ran) >= {f"{name}_there", f"{name}_back"}
    del fusers[np.ndarray]
    plain = first_and_second(f, x)
    fusers[np.ndarray] = Fuser(compiler, REAL)
    for one, other in zip(fused, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_one_kernel_there_and_one_back(compiler):
    grad(lambda x: lantern.sum(lantern.tanh(x)))(np.ones(3))
    assert compiler.ran == ["tanh_there", "tanh_back"]


@pytest.mark.parametrize(
    "x", [np.ones(()), np.ones((0, 2)), np.ones(3, np.float16), np.ones(3, complex)]
)
def test_what_is_not_fused(x, compiler):
    if x.dtype.kind == "c":
        grad(lambda x: lantern.sum(lantern.abs(lantern.tanh(x))))(x)
    else:
        grad(lambda x: lantern.sum(lantern.tanh(x)))(x)
    assert compiler.ran == []


def test_rules_that_keep_nothing_stay_as_they_are(compiler):
    grad(lambda x: lantern.sum(-x + lantern.lgamma(x)))(np.ones(3))
    assert compiler.ran == []


def test_debug_and_errors_know_the_rule_by_its_name(compiler):
    with pytest.raises(lantern.AnomalyError, match="sqrt"), lantern.debug():
        grad(lambda x: lantern.sum(lantern.sqrt(x)))(np.zeros(2))


def test_the_eager_face_fuses_what_keeps_the_operand(compiler):
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.sin(x).sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x)
    np.testing.assert_allclose(slope.detach().numpy(), np.cos([0.5, 1.0]))
    np.testing.assert_allclose(bend.numpy(), -np.sin([0.5, 1.0]))
    assert "sin_there" in compiler.ran


def test_the_eager_face_keeps_what_pytorch_keeps(compiler):
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    for write in (lambda x, y: x.detach().mul_(2), None):
        y = torch.exp(x * 1)
        if write is None:
            y.detach().mul_(2)
            with pytest.raises(RuntimeError, match="inplace"):
                y.sum().backward()
        else:
            write(x, y)
            y.sum().backward()
    assert not any("exp" in name for name in compiler.ran)
