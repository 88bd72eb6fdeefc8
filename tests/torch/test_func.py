"""``torch.func`` and ``torch.autograd.functional`` against PyTorch's."""

import numpy as np
import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same, plain

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


def halved(module, torch):
    with torch.no_grad():
        for n, p in enumerate(module.parameters()):
            p.copy_(torch.arange(p.numel()).view(p.shape).cos() / (n + 2))
    return module.double()


def network(torch, n=1):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    return halved(net, torch)


def states(torch):
    """A network, its parameters and buffers as tensors of their own, and inputs."""
    net = network(torch)
    parameters = {k: p.detach() * 2 for k, p in net.named_parameters()}
    buffers = {k: b.clone() for k, b in net.named_buffers()}
    x = torch.arange(15.0, dtype=torch.float64).view(5, 3).sin()
    return net, parameters, buffers, x


def called(torch):
    net, parameters, buffers, x = states(torch)
    z = torch.func.functional_call(net, (parameters, buffers), (x,))
    return z, list(buffers.values()), [p.detach() for p in net.parameters()]


def called_strictly(torch):
    net, parameters, _, x = states(torch)
    return torch.func.functional_call(net, parameters, x, strict=True)


def called_with_a_wrong_name(torch):
    net, parameters, _, x = states(torch)
    return torch.func.functional_call(net, {**parameters, "no.name": x}, x)


def gradient_of_a_call(torch):
    net, parameters, buffers, x = states(torch)

    def loss(p, x):
        return (torch.func.functional_call(net.eval(), (p, buffers), x) ** 2).mean()

    whole = torch.func.grad(loss)(parameters, x)
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(
        parameters, x[:, None]
    )
    return whole, each


def ensemble(torch):
    models = [network(torch, n).eval() for n in range(3)]
    parameters, buffers = torch.func.stack_module_state(models)
    x = torch.ones(2, 3, dtype=torch.float64)

    def one(p, b, x):
        return torch.func.functional_call(models[0], (p, b), (x,))

    z = torch.func.vmap(one, in_dims=(0, 0, None))(parameters, buffers, x)
    z.sum().backward()
    return z, {name: p.grad for name, p in parameters.items()}


class Tied:
    """Makes a module whose two layers share a weight."""

    def __new__(cls, torch):
        class Twice(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
                self.b.weight = self.a.weight

            def forward(self, x):
                return self.b(self.a(x))

        return halved(Twice(), torch)


def tied(torch):
    net, w = Tied(torch), torch.full((2, 2), 2.0, dtype=torch.float64)
    x, call = torch.ones(1, 2, dtype=torch.float64), torch.func.functional_call
    return (
        call(net, {"a.weight": w}, x),
        call(net, {"b.weight": w}, x),
        call(net, {"a.weight": w}, x, tie_weights=False),
    )


def tied_twice(torch):
    net, w = Tied(torch), torch.full((2, 2), 2.0, dtype=torch.float64)
    both = {"a.weight": w, "b.weight": w * 2}
    return torch.func.functional_call(net, both, torch.ones(1, 2, dtype=torch.float64))


class Counts:
    """Makes a module that has a buffer under two names, and sets one."""

    def __new__(cls, torch):
        class Sum(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("a", torch.ones(1))
                self.register_buffer("b", self.a)
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, x):
                self.calls = self.calls + 1
                return x * self.a + self.b + getattr(self, "more", 0)

        return Sum()


def tied_buffers(torch):
    net, x = Counts(torch), torch.full((1,), 3.0)
    return torch.func.functional_call(net, {"a": x}, x), net(x)


def tied_and_strict(torch):
    net, x = Counts(torch), torch.full((1,), 3.0)
    return torch.func.functional_call(net, {"a": x, "calls": x}, x, strict=True)


def an_attribute_for_a_call(torch):
    net, x = Counts(torch), torch.full((1,), 3.0)
    z = torch.func.functional_call(net, {"more": x}, x)
    return z, net(x), hasattr(net, "more")


def what_a_call_sets(torch):
    net, x = Counts(torch), torch.full((1,), 3.0)
    state = {"calls": x}
    z = torch.func.functional_call(net, state, x)
    return z, state["calls"], x, net.calls


def a_module_in_a_circle(torch):
    net, w = Tied(torch), torch.full((2, 2), 2.0, dtype=torch.float64)
    net.a.__dict__["_modules"]["whole"] = net
    x, state = torch.ones(1, 2, dtype=torch.float64), {"a.whole.a.weight": w}
    return torch.func.functional_call(net, state, x, tie_weights=False)


def a_name_in_two_dicts(torch):
    net, x = Counts(torch), torch.full((1,), 3.0)
    return torch.func.functional_call(net, ({"a": x}, {"a": x}), x)


def no_tensor(torch):
    return torch.func.functional_call(Counts(torch), {"a": 1.0}, torch.ones(1))


def no_tensor_before(torch):
    x = torch.ones(1)
    return torch.func.functional_call(Counts(torch), {"training": x}, x)


def mixed_modes(torch):
    return torch.func.stack_module_state([network(torch), network(torch).eval()])


STATELESS = [
    called, called_strictly, called_with_a_wrong_name, gradient_of_a_call, ensemble,
    tied, tied_twice, mixed_modes, tied_buffers, tied_and_strict,
    an_attribute_for_a_call, what_a_call_sets, a_module_in_a_circle,
    a_name_in_two_dicts, no_tensor, no_tensor_before,
]  # fmt: skip


def written_view(t, x):
    y = x * 2
    y[1:].mul_(x[:2])
    y.view(3, 1)[0] += 1
    return (y**2).sum()


def written_base(t, x):
    y = x * 1
    v = y[:2]
    y.mul_(3)
    v[0] = x[2]
    return (v**2).sum() + y.sum()


def written_rows(t, x):
    y = t.zeros(2, 3, dtype=x.dtype)
    y[0].copy_(x)
    y[1] = x * x
    y.t()[2] *= 2
    return (y**2).sum()


def written_quietly(t, x):
    y = x * 1
    with t.no_grad():
        y.mul_(2)
    return (y * y).sum()


def stopped(t, x):
    with t.no_grad():
        c = x * 2
    return (c * x).sum() + (x.detach() * x).sum()


def shifted(t, x):
    with t.no_grad():
        shift = (x**2).sum()
    return (x**3).sum() - shift


def under_no_grad(t, x, y):
    """A function that stops a part, differentiated where all is stopped."""
    w = y.clone().requires_grad_()
    with t.no_grad():
        found, value = t.func.grad_and_value(lambda a: shifted(t, a) + w.sum())(x)
        z, pull = t.func.vjp(lambda a: shifted(t, a) * w, x)
        row = (found, value, z, *pull(y))
    return row, [r.requires_grad for r in row]


def under_no_grad_of_another(t, x, y):
    def outer(a):
        with t.no_grad():
            stopped = t.func.grad(lambda b: shifted(t, b) * a.sum())(a)
        return (stopped * a).sum()

    return t.func.grad(outer)(x)


WRITTEN = [written_view, written_base, written_rows, written_quietly, stopped]
CASES = {
    "grad": lambda t, x, y: t.func.grad(cube)(x),
    "grad twice": lambda t, x, y: t.func.grad(lambda a: t.func.grad(cube)(a).sum())(x),
    "grad of the second": lambda t, x, y: t.func.grad(product, argnums=1)(x, y),
    "under no_grad": under_no_grad,
    "under no_grad of another": under_no_grad_of_another,
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
    **{f.__name__: lambda t, x, y, f=f: f(t) for f in STATELESS},
    **{
        f.__name__: lambda t, x, y, f=f: (
            t.func.grad(lambda x: f(t, x))(x),
            t.func.hessian(lambda x: f(t, x))(x),
            t.func.jvp(lambda x: f(t, x), (x,), (y,)),
        )
        for f in WRITTEN
    },
    "functional.jvp, strict": lambda t, x, y: t.autograd.functional.jvp(
        lambda a: y * 1, x, y, strict=True
    ),
    "functional.jvp of one input, strict": lambda t, x, y: t.autograd.functional.jvp(
        lambda a, b: a * 1, (x, y), (x, y), strict=True
    ),
    "functional.hessian, strict": lambda t, x, y: t.autograd.functional.hessian(
        lambda a: (a * y).sum(), x, strict=True
    ),
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


def test_a_write_does_not_reach_what_a_rule_saved():
    def used_before(x):
        y = x * 1
        z = y * y + y.exp()
        y.mul_(3)
        return z.sum() + y.sum()

    x = ours.tensor([1.0, 2.0], dtype=ours.float64)
    found = ours.func.grad(used_before)(x)
    assert_same(plain(found), plain(2 * x + x.exp() + 3))  # PyTorch refuses
    assert x.tolist() == [1.0, 2.0]


def test_what_a_transform_wrote_to_outside_is_lost_with_it():
    c = ours.ones(2)
    ours.func.grad(lambda x: (c.mul_(x) ** 2).sum())(ours.tensor([1.0, 2.0]))
    with pytest.raises(RuntimeError, match="after the derivative"):
        c + 1


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


X = ours.ones(2)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda f: f.grad(lambda x: [x, x], has_aux=True)(X), "should be a tuple"),
        (lambda f: f.vjp(lambda x: [x, x], X, has_aux=True), "should be a tuple"),
        (lambda f: f.vjp(lambda x: None, X), "non-empty output"),
        (lambda f: f.vjp(lambda x: 1.0, X), "only tensors"),
        (lambda f: f.vjp(ours.sin, X)[1]((X, X)), "Expected pytree structure"),
        (lambda f: f.jvp(ours.sin, X, (X,)), "to be a tuple"),
        (lambda f: f.jvp(ours.sin, (X,), (X, X)), "same python structure"),
        (lambda f: f.jvp(ours.sin, (1.0,), (X,)), "only contain Tensors"),
        (lambda f: f.jvp(ours.sin, (), ()), "at least one Tensor"),
        (lambda f: f.jvp(lambda x: (x, X), (X,), (X,), strict=True), "strict"),
        (lambda f: f.jacfwd(lambda x: ())(X), "non-empty output"),
        (lambda f: f.jacrev(lambda x: "a")(X), "only tensors"),
        (lambda f: f.grad(ours.dot, argnums=2)(X, X), "but only"),
        (lambda f: f.grad(ours.dot, argnums=(0, -2))(X, X), "unique"),
        (lambda f: f.grad(ours.dot, argnums=[0])(X, X), "int or Tuple"),
    ],
)
def test_what_transforms_refuse(call, word):
    with pytest.raises(RuntimeError, match=word):
        call(ours.func)


def test_what_is_strict_computes_as_usual():
    value, along = ours.func.jvp(ours.exp, (X * 0,), (X,), strict=True)
    assert value.tolist() == along.tolist() == [1.0, 1.0]


def test_transforms_have_the_name_of_their_function():
    def energy(x):
        return x.sum()

    for transform in (
        ours.func.grad,
        ours.func.jacrev,
        ours.func.jacfwd,
        ours.vmap,
    ):
        assert transform(energy).__name__ == "energy"
    assert ours.func.grad(energy, argnums=-1)(X).tolist() == [1.0, 1.0]


def test_modules_that_are_stacked_require_gradients_alike():
    models = [ours.nn.Linear(2, 2) for _ in range(2)]
    models[0].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"same \.requires_grad"):
        ours.func.stack_module_state(models)


def put(x, y):
    x[:1] = y[:1] * 2
    return x * y


def changed(torch, call):
    """What becomes of arguments that a function writes to."""
    x = torch.arange(6.0, dtype=torch.float64).view(3, 2)
    y = x + 1
    found = call(torch.func, x, y)
    row = found if isinstance(found, tuple) else (found,)
    return [z.tolist() for z in (*row, x, y)]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize(
    "call",
    [
        lambda f, x, y: f.jvp(put, (x, y), (x * 3, y * 5)),
        lambda f, x, y: f.vmap(lambda a, b: f.jvp(put, (a, b), (b * 1, a * 3)))(x, y),
        lambda f, x, y: f.vmap(put, in_dims=1)(x, y),
        lambda f, x, y: f.jvp(
            lambda a, b: f.jvp(put, (a, b), (b * 3, b))[1], (x, y), (x * 3, y * 5)
        ),
        lambda f, x, y: f.jvp(
            lambda d: put(d["x"], d["y"]),
            ({"x": x, "y": y},),
            ({"x": y * 3, "y": x * 5},),
        ),
    ],
)
def test_what_a_function_writes_stands_in_its_arguments(call):
    assert changed(ours, call) == changed(theirs, call)


EAGER = {  # second derivatives by the older functions, of vectors v, to be summed
    "jacobian": lambda A, f, x, v: A.jacobian(f, x),
    "hessian": lambda A, f, x, v: A.hessian(lambda x: f(x).sum(), x),
    "jvp": lambda A, f, x, v: A.jvp(f, x, v)[1],
    "vjp": lambda A, f, x, v: A.vjp(f, x, v)[1],
    "hvp": lambda A, f, x, v: A.hvp(lambda x: f(x).sum(), x, v)[1],
    "vhp": lambda A, f, x, v: A.vhp(lambda x: f(x).sum(), x, v)[1],
}
INSIDE = {
    "the point": lambda g, x, v: ours.func.grad(lambda x: g(cube_of(1), x, v))(x),
    "a vector": lambda g, x, v: ours.func.grad(lambda v: g(cube_of(1), x, v))(v),
    "captured": lambda g, x, v: ours.func.grad(lambda w: g(cube_of(w), x, v))(v[0]),
    "examples": lambda g, x, v: ours.vmap(
        ours.func.grad(lambda x: g(cube_of(1), x, v)), randomness="same"
    )(ours.stack([x, x])),
}


def cube_of(w):
    return lambda x: x**3 * w


@pytest.mark.parametrize("place", INSIDE)
@pytest.mark.parametrize("name", EAGER)
def test_the_older_functions_lose_no_derivative_around_them(name, place):
    x, v = ours.tensor([1.0, 2.0]), ours.ones(2)
    A = ours.autograd.functional

    def total(f, x, v):
        return EAGER[name](A, f, x, v).sum()

    if place == "a vector" and name in ("jacobian", "hessian"):
        assert INSIDE[place](total, x, v).tolist() == [0, 0]  # they have none
        return
    with pytest.raises(RuntimeError, match=r"transform|being taken around"):
        INSIDE[place](total, x, v)


def test_the_older_functions_have_the_derivatives_that_are_kept():
    x, v = ours.tensor([1.0, 2.0]), ours.ones(2)
    A = ours.autograd.functional
    along = ours.func.grad(
        lambda x: A.jvp(cube_of(1), x, v, create_graph=True)[1].sum()
    )
    assert along(x).tolist() == [6, 12]
    assert ours.vmap(lambda x: A.jvp(cube_of(1), x, x * 0 + 1)[1])(x).tolist() == [
        3,
        12,
    ]
