"""``torch.func`` and ``torch.autograd.functional`` against PyTorch's."""

import numpy as np
import pytest

import lantern.torch as ours
from tests.torch_face.compared import assert_same, plain

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")


def cube(x):
    return (x**3).sum()


def rows(x):
    return x.sin() * x.sum()


def product(x, y):
    return (x * y).sum() * y[0]


def pair(x, y):
    return x * y, (x.exp() @ y).reshape(1)


def by_name(p, x):
    return ((p["w"] * x + p["b"]) ** 2).sum()


def softened(x):
    return x.softmax(0) @ x.clamp(min=1.5)


CASES = {
    "grad": lambda t, x, y: t.func.grad(cube)(x),
    "grad twice": lambda t, x, y: t.func.grad(lambda a: t.func.grad(cube)(a).sum())(x),
    "grad of the second": lambda t, x, y: t.func.grad(product, argnums=1)(x, y),
    "grad of both": lambda t, x, y: t.func.grad(product, argnums=(0, 1))(x, y),
    "grad, aux": lambda t, x, y: t.func.grad(lambda a: (cube(a), a * 2), has_aux=True)(
        x
    ),
    "grad_and_value": lambda t, x, y: t.func.grad_and_value(softened)(x),
    "grad and value, aux": lambda t, x, y: t.func.grad_and_value(
        lambda a: (cube(a), a * 2), has_aux=True
    )(x),
    "grad of a dict": lambda t, x, y: t.func.grad(by_name)({"w": x, "b": y}, x),
    "vjp": lambda t, x, y: t.func.vjp(rows, x)[1](y),
    "vjp of two": lambda t, x, y: t.func.vjp(pair, x, y)[1]((x, y[:1])),
    "jvp": lambda t, x, y: t.func.jvp(rows, (x,), (y,)),
    "jvp of two": lambda t, x, y: t.func.jvp(pair, (x, y), (y, x)),
    "jvp of softmax": lambda t, x, y: t.func.jvp(softened, (x,), (y,)),
    "jacrev": lambda t, x, y: t.func.jacrev(rows)(x),
    "jacfwd": lambda t, x, y: t.func.jacfwd(rows)(x),
    "jacrev of two": lambda t, x, y: t.func.jacrev(pair, argnums=(0, 1))(x, y),
    "jacfwd of two": lambda t, x, y: t.func.jacfwd(pair, argnums=(0, 1))(x, y),
    "jacrev, aux": lambda t, x, y: t.func.jacrev(lambda a: (rows(a), a), has_aux=True)(
        x
    ),
    "hessian": lambda t, x, y: t.func.hessian(softened)(x),
    "hessian of both": lambda t, x, y: t.func.hessian(product, argnums=(0, 1))(x, y),
    "vmap": lambda t, x, y: t.func.vmap(t.dot)(t.outer(x, y), t.outer(y, x)),
    "vmap over columns": lambda t, x, y: t.func.vmap(
        lambda a, b: a * b, in_dims=(1, None), out_dims=1
    )(t.outer(x, y), x),
    "vmap of grad": lambda t, x, y: t.func.vmap(
        t.func.grad(by_name), in_dims=(None, 0)
    )({"w": x, "b": y}, t.outer(x, y)),
    "vmap, two results": lambda t, x, y: t.vmap(lambda a: (a.sum(), {"z": a * 2}))(
        t.outer(x, y)
    ),
    "linearize": lambda t, x, y: t.func.linearize(rows, x)[1](y),
    "no scalar": lambda t, x, y: t.func.grad(rows)(x),
    "functional.jacobian": lambda t, x, y: t.autograd.functional.jacobian(rows, x),
    "functional.jacobian of two": lambda t, x, y: t.autograd.functional.jacobian(
        pair, (x, y)
    ),
    "functional.hessian": lambda t, x, y: t.autograd.functional.hessian(softened, x),
    "functional.hessian of two": lambda t, x, y: t.autograd.functional.hessian(
        product, (x, y)
    ),
    "functional.vjp": lambda t, x, y: t.autograd.functional.vjp(rows, x, y),
    "functional.jvp": lambda t, x, y: t.autograd.functional.jvp(rows, x, y),
    "functional.hvp": lambda t, x, y: t.autograd.functional.hvp(softened, x, y),
    "functional.vhp of two": lambda t, x, y: t.autograd.functional.vhp(
        product, (x, y), (y, x)
    ),
    "functional.vjp without v": lambda t, x, y: t.autograd.functional.vjp(rows, x),
    "functional.strict": lambda t, x, y: t.autograd.functional.vjp(
        lambda a: y.sum(), x, strict=True
    ),
}


def outcome(torch, program):
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    y = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
    try:
        return plain(program(torch, x, y))
    except Exception as error:
        return type(error)


@pytest.mark.filterwarnings("ignore")  # of what PyTorch imports for it
@pytest.mark.parametrize("program", CASES.values(), ids=list(CASES))
def test_a_transform_means_the_same(program):
    mine, other = outcome(ours, program), outcome(theirs, program)
    if isinstance(other, type):
        assert issubclass(mine, other)
    else:
        assert_same(mine, other)


def test_what_is_tracked_goes_through_a_transform():
    found = []
    for torch in (ours, theirs):
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        z = torch.func.grad(lambda x, w=w: (x**3 * w).sum())(w)
        z.sum().backward()
        found.append(w.grad.tolist())
    assert found[0] == found[1]


def test_create_graph_gives_what_can_be_differentiated():
    found = []
    for torch in (ours, theirs):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        j = torch.autograd.functional.jacobian(rows, x, create_graph=True)
        j.sum().backward()
        found.append(x.grad.tolist())
    np.testing.assert_allclose(*found, rtol=1e-5)
