"""Programs written down as steps, beside PyTorch's own."""

import copy

import numpy as np
import pytest

import lantern.torch as ours
from lantern.torch import asking
from lantern.torch.fx import tracing

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")
pytest.importorskip("torch.fx", reason="a part of the peer")

BOTH = [ours, theirs]


def model(torch, inner=None):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(4, 4)
            self.rest = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(4, 4))
            self.scale = torch.nn.Parameter(torch.ones(4))
            self.register_buffer("shift", torch.ones(4))

        def forward(self, x, factor=2.0):
            y = self.rest(self.first(x)) * self.scale
            a, b = torch.chunk(y, 2, 1)
            z = torch.cat([a, -b], dim=1).view(-1, 4).clamp(min=-1)
            z = torch.nn.functional.relu(1 - z + self.shift) @ z.T[0:4, :]
            return {"z": z / factor, "size": x.shape[0]}

    net = Net()
    draws = np.random.default_rng(0)
    with torch.no_grad():
        for _, p in sorted(net.named_parameters()):
            p.copy_(torch.tensor(draws.normal(size=p.shape)))
    return net


def steps(graph):
    return [
        (n.op, n.name, n.target if isinstance(n.target, str) else n.target.__name__)
        for n in graph.nodes
    ]


def test_steps_and_results_are_pytorchs():
    found = []
    for torch in BOTH:
        net = model(torch)
        traced = torch.fx.symbolic_trace(net)
        x = torch.tensor(np.linspace(-1, 1, 16).reshape(4, 4), dtype=torch.float32)
        mine, plain = traced(x), net(x)
        assert mine["size"] == 4
        assert torch.equal(mine["z"], plain["z"])
        assert torch.equal(traced(x, factor=1.0)["z"], net(x, 1.0)["z"])
        found.append((steps(traced.graph), mine["z"].detach().numpy()))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], 1e-5)


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_operands_of_einsum_in_a_list_are_written_down_one_by_one(torch):
    traced = torch.fx.symbolic_trace(lambda x, y: torch.einsum("i,i->i", (x, y)))
    node = next(n for n in traced.graph.nodes if n.op == "call_function")
    assert [str(x) for x in node.args] == ["i,i->i", "x", "y"]
    assert traced(torch.ones(2), torch.ones(2)).tolist() == [1, 1]


def test_a_traced_module_trains():
    net = model(ours)
    traced = ours.fx.symbolic_trace(net)
    assert {id(p) for p in traced.parameters()} == {id(p) for p in net.parameters()}
    traced(ours.ones(4, 4))["z"].sum().backward()
    assert net.first.weight.grad is not None
    other = copy.deepcopy(traced)
    assert not {id(p) for p in other.parameters()} & {id(p) for p in net.parameters()}
    assert ours.equal(other(ours.ones(4, 4))["z"], traced(ours.ones(4, 4))["z"])


def test_nothing_is_left_behind():
    functions = dict(vars(ours.nn.functional)), ours.nn.Module.__call__
    with pytest.raises(ValueError, match="control flow"):
        ours.fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    assert functions == (dict(vars(ours.nn.functional)), ours.nn.Module.__call__)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda x: list(x), "cannot be iterated"),
        (lambda x: len(x), "'len' is not supported"),
        (lambda x: 1 if x else 2, "control flow"),
    ],
)
@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_what_depends_on_values_cannot_be_written_down(torch, program, words):
    error = (torch.fx.proxy.TraceError, RuntimeError)  # PyTorch's len
    with pytest.raises(error, match=words):
        torch.fx.symbolic_trace(program)


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_steps_can_be_changed(torch):
    traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    for node in traced.graph.nodes:
        if node.target is torch.relu:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.abs, node.args)
            node.replace_all_uses_with(new)
            traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    assert [n.name for n in traced.graph.nodes] == ["x", "abs_1", "neg", "output"]
    assert traced(torch.tensor([-2.0])).item() == -2
    x = next(iter(traced.graph.nodes))
    with pytest.raises(RuntimeError, match="still had 1 users"):
        traced.graph.erase_node(x)
    with traced.graph.inserting_before(new):
        traced.graph.call_function(torch.exp, (x,))
    assert traced.graph.eliminate_dead_code()
    assert len(traced.graph.nodes) == 4


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_who_traces_says_what_is_one_step(torch):
    class Whole(torch.fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, torch.nn.Sequential)

    graph = Whole().trace(model(torch))
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["rest"]
    names = [n.name for n in graph.nodes if n.op == "get_attr"]
    assert "first_weight" in names


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_a_transformer_writes_down_anew(torch):
    class Doubling(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return 2 * super().call_function(target, args, kwargs)

    traced = torch.fx.symbolic_trace(lambda x: torch.neg(x))
    assert Doubling(traced).transform()(torch.tensor([3.0])).item() == -6


def test_the_program_can_be_read(capsys):
    traced = ours.fx.symbolic_trace(model(ours))
    assert "chunk = torch.chunk(mul, 2, 1)" in traced.code
    assert "self.rest.0(first)" in traced.code
    traced.graph.print_tabular()
    assert "call_module" in capsys.readouterr().out
    assert "def forward(self, x, factor = 2.0)" in traced.print_readable(False)


def test_functions_of_a_module_can_be_one_step():
    space = {"__name__": "elsewhere", "torch": ours}
    exec(
        "def odd(x):\n    return x if x.sum() > 0 else -x\ntorch.fx.wrap('odd')\n"
        "def program(x):\n    return odd(x) + 1\n",
        space,
    )
    try:
        traced = ours.fx.symbolic_trace(space["program"])
    finally:
        tracing._wrapped.pop()
    assert traced(ours.tensor([-2.0])).item() == 3
    with pytest.raises(RuntimeError, match="top level"):
        ours.fx.wrap("odd")


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_steps_can_be_moved(torch):
    graph = torch.fx.Graph()
    x, y, z = (graph.placeholder(name) for name in "xyz")
    x.prepend(z)
    z.append(y)
    assert [n.name for n in graph.nodes] == ["z", "y", "x"]


def starred(torch):
    def rest(x, *rest, k=2):
        return torch.cat(rest) + x * k

    def more(x, y=3, **more):
        return x + y

    def named(x, *, k):
        return x * k

    return rest, more, named


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_arguments_with_stars_are_values_behind_all_others(torch):
    x, y, z = torch.ones(2), torch.ones(1), torch.ones(1) * 5
    rest, more, named = map(torch.fx.symbolic_trace, starred(torch))
    targets = [n.target for n in rest.graph.nodes if n.op == "placeholder"]
    assert targets == ["x", "k", "*rest"]
    assert rest(x, 4, y, z).tolist() == [5.0, 9.0]
    assert more(y).item() == 4
    assert named(z, k=3).item() == 15
    with pytest.raises(TypeError, match="unexpected keyword argument 'q'"):
        named(z, k=3, q=4)


LAYERS = """
ReLU() LeakyReLU(0.2) Softmax(-1) GELU() Linear(3,2) Conv1d(2,4,2) LayerNorm(3)
Dropout(0.5) MaxPool1d(2) Flatten() PReLU() Embedding(4,3) Upsample(scale_factor=2)
""".split()


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_a_written_program_takes_what_its_stars_took(torch):
    class Scaled(torch.nn.Module):
        def forward(self, x, *more, **options):
            return x * options["scale"] + options.get("shift", 0)

    traced, x = torch.fx.symbolic_trace(Scaled()), torch.ones(2)
    assert traced(x, scale=3.0).tolist() == [3.0, 3.0]
    assert traced(x, shift=1.0, scale=3.0).tolist() == [4.0, 4.0]
    with pytest.raises(TypeError, match=r"missing (a|1) required"):
        traced(scale=3.0)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_written_down_inside(layer):
    found = []
    for torch in BOTH:
        made = eval(f"torch.nn.{layer}", {"torch": torch}).eval()

        class Inside(torch.fx.Tracer):
            def is_leaf_module(self, m, name):
                return False

        outside = torch.nn.Sequential(made)
        graph = Inside().trace(outside)
        whole = torch.fx.symbolic_trace(made)
        x = torch.ones(1, 2, 3, dtype=torch.long if "Emb" in layer else torch.float32)
        run = torch.fx.GraphModule(outside, graph)
        assert torch.equal(run(x), outside(x))
        assert torch.equal(whole(x), outside(x))
        names = [getattr(n.target, "__name__", "") for n in graph.nodes]
        found.append([n for n in names if n])
    assert found[0] == [n.replace("boolean_dispatch", "max_pool1d") for n in found[1]]
    assert not asking.is_armed()


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_a_graph_is_written_by_functions_of_stand_ins(torch):
    graph = torch.fx.Graph()
    tracer = torch.fx.proxy.GraphAppendingTracer(graph)
    x, y = (torch.fx.Proxy(graph.placeholder(name), tracer) for name in "xy")
    z = torch.add(torch.tanh(torch.cat([x, y])), torch.nn.ReLU()(x).sum(dim=0))
    graph.output((z + torch.ops.aten.neg(z)).node)
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    names = "x y cat tanh relu sum_1 add neg add_1 output".split()
    assert [n.name for n in graph.nodes] == names
    assert module(torch.ones(2), torch.ones(1)).tolist() == [0.0] * 3


@pytest.mark.parametrize("torch", BOTH, ids=["ours", "theirs"])
def test_a_program_is_called_on_stand_ins(torch):
    outer = torch.fx.symbolic_trace(lambda x, y: torch.cat([x, y]))
    inner = torch.fx.symbolic_trace(torch.nn.LeakyReLU(0.5))
    output = next(n for n in outer.graph.nodes if n.op == "output")
    with outer.graph.inserting_before(output):
        z = inner(torch.fx.Proxy(output.args[0]))
    output.args = (z.node,)
    outer.recompile()
    assert outer(torch.ones(1), -torch.ones(1)).tolist() == [1.0, -0.5]


def of_sums(torch):
    def program(x, w1, w2):
        m1 = torch.cat([torch.neg(w1), w2]).sum()
        m2 = torch.cat([torch.neg(w1), w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    def pattern(a, b):
        return torch.cat([torch.neg(a), b]).sum()

    def other(a, b):
        return torch.stack([a, b])

    return program, pattern, other


def of_two_results(torch):
    def program(x):
        y = torch.relu(x)
        return torch.exp(y) * torch.sin(y)

    def pattern(x):
        y = torch.relu(x)
        return torch.exp(y), torch.sin(y)

    def other(x):
        return torch.abs(x), torch.neg(x)

    return program, pattern, other


def of_what_is_used_outside(torch):
    def program(x):
        y = torch.relu(x)
        return torch.exp(y) + y

    return program, lambda x: torch.exp(torch.relu(x)), lambda x: x


def of_options(torch):
    def program(x):
        return torch.sum(x, 0) + torch.sum(x, dim=1) + torch.sum(x.neg(), dim=(0, 1))

    return program, lambda x: torch.sum(x, dim=1), lambda x: x.mean()


def of_one_in_another(torch):
    def program(x):
        return torch.relu(torch.relu(torch.relu(x)))

    return program, lambda x: torch.relu(torch.relu(x)), lambda x: torch.sigmoid(x)


def of_a_step_in_its_place(torch):
    return lambda x: torch.relu(x) + 1, lambda x: torch.relu(x), lambda x: x


@pytest.mark.parametrize(
    "programs",
    [of_sums, of_two_results, of_what_is_used_outside, of_options, of_one_in_another,
     of_a_step_in_its_place],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_a_pattern_is_exchanged(programs):
    found = []
    for torch in BOTH:
        program, pattern, other = programs(torch)
        traced = torch.fx.symbolic_trace(program)
        matches = torch.fx.replace_pattern(traced, pattern, other)
        traced.graph.lint()
        inputs = [torch.eye(3) * k - 1 for k in range(1, 4)]
        count = sum(n.op == "placeholder" for n in traced.graph.nodes)
        steps = sorted(getattr(n.target, "__name__", n.op) for n in traced.graph.nodes)
        anchors = [(m.anchor.name, m.nodes_map[m.anchor].name) for m in matches]
        found.append((anchors, steps, traced(*inputs[:count]).numpy()))
    assert found[0][:2] == found[1][:2]
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-6)


def test_layers_of_a_replacement_become_the_modules_own():
    torch = ours

    class Other(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(x)

    traced, other = torch.fx.symbolic_trace(lambda x: torch.relu(x)), Other()
    assert len(torch.fx.replace_pattern(traced, lambda x: torch.relu(x), other)) == 1
    assert traced.layer is other.layer
    assert torch.equal(traced(torch.ones(3)), other(torch.ones(3)))
