"""Eager tensors' own operations give the bits of the way that all of Lantern's have.

That way is ``dispatch.start``, which asks the tensor's class what emerges, and
``Receiver.settle`` on the way back, which a pass with ``retain_graph`` takes.
"""

import operator
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import lantern.torch as torch
from lantern.core.dispatch import start
from lantern.op import registry
from lantern.torch.nn import rules
from lantern.torch.tensor import gradients
from tests.cases import ELEMENTWISE

RNG = np.random.default_rng(0)
X, Y = (RNG.uniform(0.2, 0.9, (3, 3)) for _ in range(2))


def outcome(f, arrays, retain):
    """A value and its gradients, for a cotangent that is always the same."""
    leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
    z = f(*leaves)
    weights = torch.tensor(np.random.default_rng(1).normal(size=z.shape))
    z.backward(weights, retain_graph=retain)
    return [z.detach().numpy(), *[x.grad.numpy() for x in leaves]], z.receiver


def check(short, general, *arrays):
    expected, theirs = outcome(general, arrays, True)
    for retain in (False, True):
        found, ours = outcome(short, arrays, retain)
        assert ours.aligned == theirs.aligned
        assert ours.function is theirs.function
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def by_start(name, **statics):
    rule = registry[name].rule
    return lambda *x: start(rule, x, (), statics)


def is_short(name):
    """Whether a function of tensors starts an operation's own rule."""
    function = getattr(torch, name, None)
    return "rule" in getattr(getattr(function, "__code__", None), "co_freevars", ())


UNARY = [n for n in ELEMENTWISE if registry[n].arity == 1 and is_short(n)]


def test_there_are_such_functions():
    assert len(UNARY) > 20


@pytest.mark.parametrize("name", UNARY)
def test_of_functions_of_one_tensor(name):
    x = X + 1.0 if name == "acosh" else X
    check(getattr(torch, name), by_start(name), x)


OPERATORS = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
}


@pytest.mark.parametrize("shape", [(3, 3), (3,), (1, 3)], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_of_operators_between_tensors(name, shape):
    if name == "matmul" and shape == (1, 3):
        shape = (3, 1)
    y = Y.ravel()[: int(np.prod(shape))].reshape(shape)
    check(OPERATORS[name], by_start(name), X, y)
    constant = torch.tensor(y)
    general = by_start(name)
    check(
        lambda x: OPERATORS[name](x, constant),
        lambda x: general(x, constant),
        X,
    )
    check(
        lambda x: OPERATORS[name](constant.reshape(shape), x),
        lambda x: general(constant.reshape(shape), x),
        X if name != "matmul" or shape != (3, 1) else X[:1],
    )


@pytest.mark.parametrize("name", [n for n in OPERATORS if n != "matmul"])
def test_of_operators_with_a_number(name):
    general = by_start(name)
    check(lambda x: OPERATORS[name](x, 0.7), lambda x: general(x, 0.7), X)
    check(lambda x: OPERATORS[name](0.7, x), lambda x: general(0.7, x), X)


def test_of_products_with_weights():
    rule = rules._affine.rule
    general = lambda x, w, b: start(rule, (x, w, b), (), {})  # noqa: E731
    check(torch.nn.functional.linear, general, X, Y, X[0])
    with torch.no_grad():
        short = torch.nn.functional.linear(
            *map(torch.nn.Parameter, tensors(X, Y, X[0]))
        )
    expected = general(*tensors(X, Y, X[0]))
    np.testing.assert_array_equal(short.numpy(), expected.numpy())


def tensors(*arrays):
    return [torch.tensor(x) for x in arrays]


WRONG = [((2, 3), (2, 4), (2,)), ((), (2, 3), (2,))]


@pytest.mark.parametrize("shapes", WRONG, ids=str)
def test_of_wrong_products_with_weights(shapes):
    """The short way leaves it to the general one to say what is wrong."""
    x, w, b = (torch.ones(*shape, requires_grad=True) for shape in shapes)
    frozen = [a.detach() for a in (x, w, b)]
    with pytest.raises(RuntimeError) as expected:
        torch.nn.functional.linear(*frozen)
    with pytest.raises(RuntimeError) as found:
        torch.nn.functional.linear(x, w, b)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_of_joined_tensors(name):
    general = by_start(name, axis=0)
    check(lambda *x: getattr(torch, name)(x), general, X, Y, X * Y)


def test_relu_in_memory_is_the_general_way():
    from lantern.torch.methods.inplace import write

    def found(f):
        x = torch.tensor(X - 0.5, requires_grad=True)
        y = x * 2
        row = y[1]
        z = f(y)
        assert z is y
        (first,) = torch.autograd.grad(
            (z**3).sum() + (row**2).sum(), x, create_graph=True
        )
        (second,) = torch.autograd.grad(first.sum(), x)
        return y.detach(), row.detach(), first.detach(), second

    theirs = found(lambda y: write(y, torch.relu))
    for ours, wanted in zip(found(torch.Tensor.relu_), theirs, strict=True):
        np.testing.assert_array_equal(ours.numpy(), wanted.numpy())


def test_relu_in_memory_is_noticed():
    x = torch.tensor(X - 0.5, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x.relu_()
    y = torch.tanh(x)
    y.relu_()  # which tanh has saved
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    z = (x * 2).relu_()
    z.mul_(3.0)  # which the rule of relu_ has saved
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def counted_as_by_newer_pythons(x):
    """``sys.getrefcount`` where names but the first, and arguments, count nothing.

    CPython 3.14 lets arguments of calls borrow what a name holds.
    """
    found, names, frame = sys.getrefcount(x) - 1, 0, sys._getframe(1)
    while frame is not None:
        names += sum(value is x for value in frame.f_locals.values())
        frame = frame.f_back
    return found - names if names else found


@pytest.mark.parametrize("newer", [False, True])
def test_a_gradient_that_someone_holds_is_not_written_to(monkeypatch, newer):
    if newer:
        count = counted_as_by_newer_pythons
        monkeypatch.setattr(gradients, "sys", SimpleNamespace(getrefcount=count))
    given = torch.ones(3)
    for shown in (given, given.view(3, 1)):
        x = torch.zeros(shown.shape, requires_grad=True)
        x.backward(shown)
        x.grad += 1
        assert given.tolist() == [1, 1, 1]


def test_a_gradient_that_nobody_else_holds_is_not_copied(monkeypatch):
    monkeypatch.setattr(gradients, "copied", lambda _: pytest.fail("copied"))
    x = torch.zeros(2, 3, requires_grad=True)
    (x.exp() * torch.ones(2, 3)).sum().backward()
    x.grad = None
    torch.exp(x.reshape(6)).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [1, 1, 1]]
