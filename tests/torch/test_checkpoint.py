"""Parts of a model that are computed again: every derivative is as without that."""

import contextlib

import pytest

import lantern.torch as torch
from tests.torch.compared import assert_same, assert_same_scenario, plain

checkpoint = torch.utils.checkpoint.checkpoint


def test_gradients_are_those_without_it():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(3, 3) for _ in range(4)]
    model = torch.nn.Sequential(*layers, torch.nn.Dropout(0.5))
    x = torch.randn(2, 3, requires_grad=True)
    wanted = [x, *model.parameters()]
    found = []
    for segments in (1, 2, 5):
        torch.manual_seed(1)
        run = torch.utils.checkpoint.checkpoint_sequential
        found.append(torch.autograd.grad(run(model, segments, x).sum(), wanted))
    for row in found[1:]:
        assert all(map(torch.equal, row, found[0]))


def outside(torch, x, w):
    """What a function may close over: leaves, and what was computed from them."""
    y = (w * x).exp()
    _, r = torch.linalg.qr(w.reshape(1, 2).expand(2, 2) + torch.eye(2))
    return y, r * 1


PROGRAMS = {
    "an elementwise function": lambda torch, x, w, y, r: lambda x: (x * x).sin(),
    "a leaf from outside": lambda torch, x, w, y, r: lambda x: (w * x).sin(),
    "a tensor from outside": lambda torch, x, w, y, r: lambda x: y * x.sin(),
    "both": lambda torch, x, w, y, r: lambda x: y * x * w.exp(),
    "a view from outside": lambda torch, x, w, y, r: lambda x: y[0] * x * w[1],
    "several results inside": lambda torch, x, w, y, r: (
        lambda x: torch.linalg.qr(torch.diag(w) + x)[1].sum(0)
    ),
    "one of several results from outside": lambda torch, x, w, y, r: (
        lambda x: r[0] * x * w
    ),
    "a product of matrices": lambda torch, x, w, y, r: (
        lambda x: (x.reshape(2, 1) @ w.reshape(1, 2)).tanh().sum(1)
    ),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_derivative_is_as_without(name, create_graph):
    def run(torch, again):
        x, w = (torch.tensor(v, requires_grad=True) for v in ([0.5, 2.0], [1.5, -0.5]))
        function = PROGRAMS[name](torch, x, w, *outside(torch, x, w))
        h = x.cos()
        z = (
            torch.utils.checkpoint.checkpoint(function, h, **again)
            if again
            else (function(h))
        )
        z = z.square().sum() + h.sum() ** 3 + (w**3).sum()
        found = torch.autograd.grad(z, (x, w), create_graph=create_graph)
        if create_graph:
            penalty = sum(g.square().sum() for g in found)
            found += torch.autograd.grad(penalty, (x, w))
        return [g.detach() for g in found]

    for nested in (False, True):
        again = {"use_reentrant": nested}
        assert_same(plain(run(torch, again)), plain(run(torch, {})))
    assert_same_scenario(lambda torch: run(torch, {"use_reentrant": False}))


def test_an_argument_that_comes_twice():
    def run(torch):
        x = torch.tensor([0.5, 2.0], requires_grad=True)
        h = x.exp()
        z = torch.utils.checkpoint.checkpoint(
            lambda a, b: a * b.sin(), h, h, use_reentrant=False
        )
        (g,) = torch.autograd.grad(z.sum(), x, create_graph=True)
        return g.detach(), torch.autograd.grad(g.sum(), x)

    assert_same_scenario(run)


def test_several_results_and_arguments_of_other_kinds():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y, z = checkpoint(lambda a, n, b: (a * n, a * b), a, 3, b * 2, use_reentrant=False)
    (y.sum() + 2 * z.sum()).backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([7, 7], [4, 4])


def test_hooks_are_called_once():
    def run(torch):
        w, x = (torch.ones(2, requires_grad=True) for _ in range(2))
        seen = []
        w.register_hook(lambda g: seen.append(g.tolist()))
        h = w * x
        h.register_hook(lambda g: seen.append(g.tolist()))
        z = torch.utils.checkpoint.checkpoint(lambda x: w * x, h, use_reentrant=False)
        z.sum().backward()
        return seen, w.grad, x.grad

    assert_same_scenario(run)


def test_results_without_derivative():
    def run(torch):
        module = torch.nn.Linear(2, 2)

        @torch.no_grad()
        def function(x):
            return module(x)

        x = torch.ones(2, 2, requires_grad=True)
        z = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
        (y, _) = torch.utils.checkpoint.checkpoint(
            lambda x: (x * 2, (x > 0)), x, use_reentrant=False
        )
        y.sum().backward()
        return z.requires_grad, y.requires_grad, x.grad

    assert_same_scenario(run)
    x = torch.ones(2, requires_grad=True)
    z = checkpoint(torch.no_grad()(torch.sin), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        z.sum().backward()


WAYS = {
    "the same": (lambda x: x.sin().exp(), lambda x: x.sin().exp()),
    "fewer steps": (lambda x: x.sin().exp().sin(), lambda x: x.sin().exp()),
    "another shape": (
        lambda x: x.sin() * 2,
        lambda x: (x.sin() * torch.tensor([1.0, 2.0]))[:1],
    ),
}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("name", WAYS)
def test_a_function_that_does_something_else(name, debug):
    first, then = WAYS[name]
    ways = [first, then]
    x = torch.ones(1, requires_grad=True)
    z = checkpoint(lambda x: ways.pop(0)(x), x, use_reentrant=False, debug=debug)
    if first.__code__.co_code == then.__code__.co_code:
        z.backward()
        return
    said = "passed `debug=True`" if debug else "different"
    with pytest.raises(torch.utils.checkpoint.CheckpointError, match=said):
        z.backward()


def test_blocks_around_both_calls():
    def run(torch):
        seen = []

        @contextlib.contextmanager
        def block(name):
            seen.append(name)
            try:
                yield
            finally:
                seen.append(f"end of {name}")

        x = torch.ones(1, requires_grad=True)
        torch.utils.checkpoint.checkpoint(
            lambda x: x.sin(),
            x,
            use_reentrant=False,
            context_fn=lambda: (block("first"), block("second")),
        ).backward()
        return seen, x.grad

    assert_same_scenario(run)


def test_transforms_of_functions_go_through():
    def run(torch):
        x, w = torch.tensor([0.5, 2.0]), torch.tensor([1.5, -0.5])

        def at(x, w):
            return torch.utils.checkpoint.checkpoint(
                lambda x: (w * x).sin(), x, use_reentrant=False
            )

        func = torch.func
        return (
            func.grad(lambda x: at(x, w).sum())(x),
            func.grad(lambda w: at(x, w).sum())(w),
            func.grad(func.grad(lambda x: at(x, 3.0)))(x[0]),
            func.jvp(lambda x: at(x, w), (x,), (w,)),
        )

    def without(torch):
        def call(function, *args, **options):
            return function(*args)

        kept, torch.utils.checkpoint.checkpoint = (
            torch.utils.checkpoint.checkpoint,
            call,
        )
        try:
            return run(torch)
        finally:
            torch.utils.checkpoint.checkpoint = kept

    assert_same(plain(run(torch)), plain(without(torch)))


def test_nothing_is_kept():
    import gc
    import weakref

    kept = []

    def function(x):
        y = x.exp()
        kept.append(weakref.ref(y))
        return y.sin()

    x = torch.ones(3, requires_grad=True)
    z = checkpoint(function, x * 2, use_reentrant=False)
    gc.collect()
    assert kept[0]() is None
    z.sum().backward()
    gc.collect()
    assert [ref() for ref in kept] == [None, None]
