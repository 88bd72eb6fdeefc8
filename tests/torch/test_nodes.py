"""Nodes of the graph, as ``grad_fn`` shows them: hooks, edges, what they have saved."""

import contextlib
import gc
import weakref

import pytest

import lantern.torch as torch
from lantern.eager.packed import ever
from tests.torch.compared import assert_same_scenario

graph = torch.autograd.graph


def node_scenario(program):
    """What a program that logs does, under both libraries."""

    def scenario(torch):
        log = []
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        program(torch, x, log)
        return log, None if x.grad is None else x.grad.tolist()

    return scenario


def order_of_hooks(torch, x, log):
    y = x.clone()
    leaf = y.grad_fn.next_functions[0][0]

    def twice(name, factor):
        def pre(grads):
            log.append(name)
            return tuple(g * factor for g in grads)

        return pre

    y.grad_fn.register_prehook(twice("before", 2))
    y.register_hook(lambda g: log.append("tensor") or g * 3)
    leaf.register_prehook(twice("leaf before", 5))
    x.register_hook(lambda g: log.append("leaf tensor") or g * 7)
    leaf.register_hook(lambda gi, go: log.append(("leaf after", len(gi), len(go))))
    x.register_post_accumulate_grad_hook(lambda x: log.append("accumulated"))
    y.grad_fn.register_hook(lambda gi, go: log.append(("after", len(gi), len(go))))
    y.sum().backward()


def replaced_after(torch, x, log):
    y = x * x
    y.grad_fn.register_hook(lambda gi, go: tuple(g * 10 for g in gi))
    y.sum().backward()


def removed_hooks(torch, x, log):
    y = x.exp()
    handles = [y.grad_fn.register_prehook(lambda g: log.append(1)) for _ in range(3)]
    handles[1].remove()
    y.sum().backward()


def hooks_of_several(torch, x, log):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "no tensor", x * 3

        @staticmethod
        def backward(ctx, a, none, b):
            log.append(none)
            return a * 2 + b * 3

    y, _, z = Both.apply(x)
    log.append([y.output_nr, z.output_nr, y.grad_fn is z.grad_fn])
    y.grad_fn.register_prehook(lambda g: (g[0] * 2, None, g[2] * 5))
    (y + z).sum().backward()


def no_hooks_of_what_is_not_resumed(torch, x, log):
    y = x * 2
    z = y * 2
    y.grad_fn.register_prehook(lambda g: log.append("before"))
    y.grad_fn.register_hook(lambda gi, go: log.append("after"))
    y.register_hook(lambda g: log.append("tensor"))
    torch.autograd.grad(z.sum(), y, retain_graph=True)
    log.append("and")
    torch.autograd.grad(z.sum(), (x, y), retain_graph=True)
    log.append("then")
    z.sum().backward(inputs=(y,))
    log.append((y.retains_grad, y.grad.tolist()))


def leaf_hooks_may_write(torch, x, log):
    def step(x):
        x.add_(x.grad, alpha=-1)
        log.append(torch.is_grad_enabled())

    x.register_post_accumulate_grad_hook(step)
    (x * 3).sum().backward()
    log.append(x.tolist())


def callbacks(torch, x, log):
    engine = torch.autograd.Variable._execution_engine

    def later(g):
        engine.queue_callback(lambda: log.append("over") or engine.queue_callback(more))

    def more():
        log.append("more")

    x.register_post_accumulate_grad_hook(lambda x: log.append("left"))
    x.register_hook(later)
    (x * 2).sum().backward()


def what_stays_for_later(torch, x, log):
    y = x.exp()
    torch.autograd.grad((y * 2).sum(), y)
    y.sum().backward()  # the rule behind y has not been resumed before


PROGRAMS = [
    order_of_hooks,
    replaced_after,
    removed_hooks,
    hooks_of_several,
    no_hooks_of_what_is_not_resumed,
    leaf_hooks_may_write,
    callbacks,
    what_stays_for_later,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_hooks_are_called_as_in_pytorch(program):
    assert_same_scenario(node_scenario(program))


def test_a_node_is_one_object_and_knows_its_leaf():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    assert y.grad_fn is y.grad_fn
    assert isinstance(y.grad_fn, graph.Node)
    (leaf, number), constant = y.grad_fn.next_functions
    assert (leaf.name(), number) == ("torch::autograd::AccumulateGrad", 0)
    assert leaf.variable is x
    assert constant == (None, 0)
    y.grad_fn.metadata["a"] = 1
    assert y.grad_fn.metadata == {"a": 1}
    assert type(y.grad_fn).__name__ == "MulBackward0"


def test_edges_stand_for_tensors():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    edge = graph.get_gradient_edge(y)
    z = y.exp().sum()
    (g,) = torch.autograd.grad(z, edge, retain_graph=True)
    assert torch.equal(g, y.exp())
    (whole,) = torch.autograd.grad(z, x, retain_graph=True)
    assert torch.equal(torch.autograd.grad(edge, x, g, retain_graph=True)[0], whole)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        torch.autograd.grad(edge, x)
    other = graph.get_gradient_edge(torch.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match="GradientEdge"):
        torch.autograd.grad(z, other, materialize_grads=True)


def test_an_edge_may_be_one_of_several_results():
    x = torch.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    _, s, _ = torch.linalg.svd(x)
    edge = graph.get_gradient_edge(s)
    (g,) = torch.autograd.grad((s**2).sum(), edge, retain_graph=True)
    assert torch.allclose(g, 2 * s)
    (whole,) = torch.autograd.grad(edge, x, g)
    assert torch.allclose(whole, 2 * x, atol=1e-5)


def test_what_a_rule_has_saved_can_be_read_and_kept_otherwise():
    ever.clear()  # as in a program that has no other hooks
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    assert y.grad_fn._saved_self is x
    assert torch.equal(x.exp().grad_fn._saved_result, x.exp())
    saved = y.grad_fn._raw_saved_other
    saved.register_hooks(lambda x: x * 2, lambda x: x)
    with pytest.raises(RuntimeError, match="already been set"):
        y.grad_fn._raw_saved_other.register_hooks(abs, abs)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="already been freed"):
        y.grad_fn._saved_self
    with pytest.raises(AttributeError, match="_saved_weight"):
        x.exp().grad_fn._saved_weight
    with pytest.raises(RuntimeError, match="forbidden"):
        torch.autograd.SavedTensor()


def test_a_hook_that_holds_its_node_is_collected():
    def make():
        x = torch.ones(1, requires_grad=True).clone()
        node = x.grad_fn
        node.register_hook(lambda gi, go: node)
        return weakref.ref(node)

    found = make()
    gc.collect()
    assert found() is None


def test_operations_of_a_program_are_nodes_with_what_their_context_has():
    class Mine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.word = "hello"
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = torch.tensor([3.0], requires_grad=True)
    y = Mine.apply(x)
    assert type(y.grad_fn) is Mine._backward_cls
    assert (y.grad_fn.name(), y.grad_fn.word) == ("MineBackward", "hello")
    assert y.grad_fn.saved_tensors == (x, None)
    first, second = y.grad_fn._raw_saved_tensors
    first.register_hooks(lambda x: x.detach() * 10, lambda x: x)
    with pytest.raises(RuntimeError, match="None is forbidden"):
        second.register_hooks(abs, abs)
    y.backward()
    assert x.grad == 30
    with pytest.raises(RuntimeError, match="already been freed"):
        y.grad_fn.saved_tensors
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        Mine()(x)


def missing_cotangents(torch):
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, keep):
            ctx.set_materialize_grads(keep)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append([None if g is None else g.tolist() for g in (a, b)])
            return b, None

    x = torch.ones(2, requires_grad=True)
    for keep in (True, False):
        Two.apply(x, keep)[1].sum().backward()
    return seen, x.grad.tolist()


def returned_twice(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 2

    x = torch.ones(2, requires_grad=True)
    a, b = Twice.apply(x)
    (a + b).sum().backward()
    return a is b, x.grad.tolist()


def nothing_twice(torch):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    x = torch.tensor(2.0, requires_grad=True)
    scale = torch.tensor(5.0, requires_grad=True)
    (g,) = torch.autograd.grad(Once.apply(x) * scale, x, create_graph=True)
    value = g.item()
    try:
        g.backward()
    except RuntimeError as error:
        return value, "once_differentiable" in str(error)
    return value, "no error"


@pytest.mark.parametrize(
    "scenario", [missing_cotangents, returned_twice, nothing_twice]
)
def test_functions_do_the_same(scenario):
    assert_same_scenario(scenario)


def test_second_derivatives_pass_operations_of_several_results():
    def scenario(torch):
        x = torch.tensor([[1.0, 0.5], [0.2, 2.0]], dtype=torch.float64)
        x.requires_grad_()
        _, s, _ = torch.linalg.svd(x)
        (g,) = torch.autograd.grad((s**3).sum(), x, create_graph=True)
        return torch.autograd.grad((g * g).sum(), x)[0]

    assert_same_scenario(scenario)


def test_hooks_of_saved_tensors_end_with_the_pass_that_entered_them():
    x = torch.ones(2, requires_grad=True)
    block = graph.saved_tensors_hooks(lambda x: x, lambda x: x)

    def enter(kept):
        block.__enter__()
        return kept

    with graph.saved_tensors_hooks(lambda x: x, enter):
        x.sin().sum().backward()
    saved = []
    with graph.saved_tensors_hooks(lambda x: saved.append(1) or x, lambda x: x):
        x.exp()
    assert saved == [1]
    y, writes = x * 2, graph.saved_tensors_hooks(lambda x: x.mul_(2), lambda x: x)
    with writes, pytest.raises(RuntimeError, match="modifying its input in place"):
        y.exp()


def test_an_anomaly_names_the_step_that_makes_it():
    x = torch.zeros(2, requires_grad=True)
    words = "'LogBackward0' returned nan values in its 0th output"
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match=words):
        (x.log() * 0).sum().backward()
    (x.log() * 0).sum().backward()
    assert x.grad.isnan().all()


MULTIPLE = {
    "all": {},
    "some inputs": {"inputs": (1, 2)},
    "one input": {"inputs": (2,)},
    "an input without": {"inputs": (0,)},
}


@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("name", MULTIPLE)
def test_a_hook_of_several_waits_for_what_its_pass_reaches(name, mode):
    def run(torch):
        xs = [torch.full((2,), float(i), requires_grad=True) for i in range(4)]
        seen = []

        def see(found):
            row = found if mode == "all" else [found]
            seen.append([None if x is None else x.tolist() for x in row])

        handle = torch.autograd.graph.register_multi_grad_hook(xs, see, mode=mode)
        z = (xs[1] * xs[2]).exp().sum() + xs[0].sum() * 0
        options = {k: [xs[i] for i in v] for k, v in MULTIPLE[name].items()}
        for again in (True, True, False):
            z.backward(retain_graph=again, **options)
        handle.remove()
        (xs[1] * xs[3]).sum().backward()
        return [x for x in seen if mode == "all"] or len(seen)

    assert_same_scenario(run)


def test_a_hook_of_several_begins_anew_after_a_pass_that_failed():
    def run(torch):
        x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
        seen, fails = [], [True]

        def fail(z_bar):
            if fails.pop():
                raise ValueError("not this time")
            fails.append(False)

        torch.autograd.graph.register_multi_grad_hook([x, y], seen.append)
        inner = y * 2
        inner.register_hook(fail)
        z = (x.sin() * inner).sum()
        with contextlib.suppress(ValueError):
            z.backward(retain_graph=True)
        fails.append(False)
        z.backward()
        return [[None if g is None else g.tolist() for g in found] for found in seen]

    assert_same_scenario(run)
