"""What modules do besides computing: state, hooks, modes, names, clipping, packing."""

import copy
import difflib

import numpy as np
import pytest

import lantern.torch as ours

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")
BOTH = pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])


def small(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))


ACTIONS = {
    "a missing and an unexpected key": lambda m, t: m.load_state_dict({"a": t.ones(2)}),
    "a wrong size": lambda m, t: m.load_state_dict(
        {**m.state_dict(), "0.bias": t.ones(4)}
    ),
    "not a dictionary": lambda m, t: m.load_state_dict([1]),
    "a tensor as a parameter": lambda m, t: setattr(m[0], "weight", t.ones(3, 2)),
    "a number as a module": lambda m, t: setattr(m, "0", 3),
    "a name with a dot": lambda m, t: m.add_module("a.b", t.nn.Identity()),
    "a name that is taken": lambda m, t: m[0].register_buffer("forward", t.ones(1)),
    "no module": lambda m, t: m.add_module("a", 3),
    "an index out of range": lambda m, t: m[7],
    "integers": lambda m, t: m.to(t.int64),
    "a mode that is none": lambda m, t: m.train(3),
    "nothing of that name": lambda m, t: m[0].wieght,
    "a submodule that is not there": lambda m, t: m.get_submodule("9"),
    "a heads that do not divide": lambda m, t: t.nn.MultiheadAttention(5, 2),
    "wrong features": lambda m, t: m(t.ones(4, 5)),
    "wrong channels": lambda m, t: t.nn.Conv2d(3, 2, 3)(t.ones(1, 2, 5, 5)),
    "a window too large": lambda m, t: t.nn.Conv2d(2, 2, 7)(t.ones(1, 2, 5, 5)),
    "a row that is not there": lambda m, t: t.nn.Embedding(3, 2)(t.tensor([3])),
    "wrong types": lambda m, t: m(t.ones(4, 2).double()),
    "one example in a batch": lambda m, t: m(t.ones(1, 2)),
    "a chance above 1": lambda m, t: t.nn.Dropout(2.0),
    "no init": lambda m, t: NoInit.of(t)(),
}


class NoInit:
    @staticmethod
    def of(torch):
        class Forgot(torch.nn.Module):
            def __init__(self):
                self.layer = torch.nn.Linear(1, 1)

        return Forgot


@pytest.mark.parametrize("name", ACTIONS)
def test_errors_are_pytorchs(name):
    with pytest.raises(Exception) as other:  # any class
        ACTIONS[name](small(theirs), theirs)
    with pytest.raises(other.type) as mine:
        ACTIONS[name](small(ours), ours)
    if "key" in name or "size" in name or "parameter" in name:
        assert str(mine.value) == str(other.value)


@BOTH
def test_what_is_in_a_module(torch):
    model = small(torch)
    model.register_buffer("extra", torch.ones(1), persistent=False)
    shared = torch.nn.ModuleDict({"a": model[0], "b": model[0]})
    assert [n for n, _ in model.named_modules()] == ["", "0", "1", "2"]
    assert [n for n, _ in shared.named_modules()] == ["", "a"]
    assert [n for n, _ in shared.named_parameters()] == ["a.weight", "a.bias"]
    assert list(shared.state_dict()) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert [n for n, _ in model.named_buffers()] == [
        "extra",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]
    assert "extra" not in model.state_dict()
    assert len(list(model.children())) == 3
    assert [n for n, _ in model.named_children()] == ["0", "1", "2"]
    assert sum(p.numel() for p in model.parameters()) == 19
    assert len(model[:2]) == 2
    assert model.get_parameter("0.weight") is model[0].weight


@BOTH
def test_values_replace_one_another(torch):
    layer = torch.nn.Linear(2, 2)
    layer.extra = torch.nn.Parameter(torch.ones(1))
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias", "extra"]
    layer.extra = None
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"]
    layer.part = torch.nn.ReLU()
    del layer.part
    assert not hasattr(layer, "part")
    layer.plain = torch.ones(1)
    assert "plain" not in dict(layer.named_buffers())
    layer.register_buffer("kept", torch.zeros(1))
    layer.kept = torch.ones(1)
    assert layer.state_dict()["kept"].item() == 1
    layer.bias = None
    assert layer(torch.ones(2)).shape == (2,)


@BOTH
def test_modes_types_and_gradients(torch):
    model = small(torch)
    assert model.training
    assert not model.eval()[1].training
    model.train()
    model.double()
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    assert model[1].num_batches_tracked.dtype == torch.int64
    first = model[0].weight
    model.float()
    assert model[0].weight is first
    model(torch.ones(4, 2)).sum().backward()
    assert model[0].weight.grad.shape == (3, 2)
    model.zero_grad(set_to_none=False)
    assert model[0].weight.grad.abs().sum() == 0
    model.zero_grad()
    assert model[0].weight.grad is None
    model.requires_grad_(False)
    assert not model(torch.ones(4, 2)).requires_grad
    names = []
    model.apply(lambda m: names.append(type(m).__name__))
    assert names == ["Linear", "BatchNorm1d", "Linear", "Sequential"]


@BOTH
def test_hooks_see_and_replace(torch):
    layer = torch.nn.Linear(2, 2)
    seen = []
    handles = [
        layer.register_forward_pre_hook(lambda m, x: (x[0] * 2,)),
        layer.register_forward_hook(lambda m, x, y: seen.append(x[0].sum().item())),
        layer.register_forward_hook(lambda m, x, y: y * 3),
        layer.register_full_backward_hook(
            lambda m, gi, go: seen.append((len(gi), gi[0].shape, go[0].sum().item()))
        ),
    ]
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [4.0, (1, (1, 2), 2.0)]
    for handle in handles:
        handle.remove()
    layer(x)
    assert len(seen) == 2


@BOTH
def test_a_copy_is_of_its_own(torch):
    model = small(torch)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other[0].weight.zero_()
    assert model[0].weight.abs().sum() > 0
    model.load_state_dict(other.state_dict())
    assert model[0].weight.abs().sum() == 0
    assert str(model.load_state_dict(other.state_dict())) == (
        "<All keys matched successfully>"
    )
    keys = model.load_state_dict({"0.weight": torch.ones(3, 2), "x": 1}, strict=False)
    assert keys.unexpected_keys == ["x"]
    assert "0.bias" in keys.missing_keys


@BOTH
def test_weights_can_be_tied(torch):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(5, 3)
            self.head = torch.nn.Linear(3, 5, bias=False)
            self.head.weight = self.table.weight

        def forward(self, x):
            return self.head(self.table(x))

    model = Tied()
    assert len(list(model.parameters())) == 1
    model(torch.tensor([1, 2])).sum().backward()
    assert model.table.weight.grad is model.head.weight.grad


def gradients(torch):
    params = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))]
    for p in params:
        p.grad = torch.full(tuple(p.shape), 2.0)
    return params


@pytest.mark.parametrize("norm", [2.0, 1.0, float("inf")])
def test_gradients_are_clipped_as_in_pytorch(norm):
    mine, other = gradients(ours), gradients(theirs)
    totals = [
        torch.nn.utils.clip_grad_norm_(p, 1.5, norm).item()
        for torch, p in ((ours, mine), (theirs, other))
    ]
    assert totals[0] == pytest.approx(totals[1])
    for a, b in zip(mine, other, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-6)
    ours.nn.utils.clip_grad_value_(mine, 0.1)
    assert mine[0].grad.max().item() == pytest.approx(0.1)


@BOTH
def test_parameters_in_a_row(torch):
    utils = torch.nn.utils
    params = [torch.nn.Parameter(torch.zeros(2, 2)), torch.nn.Parameter(torch.zeros(3))]
    utils.vector_to_parameters(torch.arange(7.0), params)
    assert utils.parameters_to_vector(params).tolist() == list(range(7))


def packed_outcome(torch, source, sort):
    random = np.random.default_rng(0)
    rnn = torch.nn.utils.rnn
    net = eval(f"nn.{source}", {"nn": torch.nn}).double()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.from_numpy(random.normal(size=tuple(p.shape))))
    x = torch.from_numpy(random.normal(size=(5, 3, 2))).requires_grad_()
    lengths = [5, 3, 1] if sort else [2, 5, 3]
    packed = rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=sort)
    out, state = net(packed)
    z, sizes = rnn.pad_packed_sequence(out)
    states = state if isinstance(state, tuple) else (state,)
    total = (z * z).sum() + sum((s.sum() * 0.5) for s in states)
    total.backward()
    arrays = [z, *states, x.grad, *(p.grad for p in net.parameters())]
    return [a.detach().numpy() for a in arrays], sizes.tolist()


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize(
    "source", ["LSTM(2, 3, 2, bidirectional=True)", "GRU(2, 3)", "RNN(2, 3)"]
)
def test_packed_sequences_are_pytorchs(source, sort):
    mine, sizes = packed_outcome(ours, source, sort)
    other, same = packed_outcome(theirs, source, sort)
    assert sizes == same
    for a, b in zip(mine, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


@BOTH
def test_sequences_are_padded(torch):
    rnn = torch.nn.utils.rnn
    rows = [torch.arange(3.0), torch.arange(1.0), torch.arange(2.0)]
    padded = rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
    assert padded.tolist() == [[0, 1, 2], [0, -1, -1], [0, 1, -1]]
    packed = rnn.pack_sequence(rows, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    again = rnn.unpack_sequence(packed)
    assert [x.tolist() for x in again] == [x.tolist() for x in rows]


INITS = "xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_"


@pytest.mark.parametrize("name", INITS.split())
def test_initial_values_have_the_right_spread(name):
    ours.manual_seed(0)
    mine, other = ours.empty(400, 300), theirs.empty(400, 300)
    getattr(ours.nn.init, name)(mine)
    getattr(theirs.nn.init, name)(other)
    assert mine.std().item() == pytest.approx(other.std().item(), rel=0.02)
    assert abs(mine.mean().item()) < 0.002


def test_dropout_keeps_the_mean():
    ours.manual_seed(0)
    x = ours.ones(100_000, requires_grad=True)
    z = ours.nn.Dropout(0.25)(x)
    assert z.mean().item() == pytest.approx(1, abs=0.01)
    assert set(np.unique(z.detach().numpy()).round(4)) == {0, np.float32(1.3333)}
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), z.detach().numpy())


def test_what_needs_no_gradient_is_not_computed():
    layer = ours.nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    x = ours.ones(4, 3, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad.tolist() == [4, 4]
    assert x.grad.shape == (4, 3)


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        ("nn", "Linaer", "Linear"),
        ("nn.functional", "sofmax", "softmax"),
        ("optim", "Adamm", "Adam"),
        ("optim.lr_scheduler", "StepL", "StepLR"),
    ],
)
def test_what_is_absent_names_the_nearest(module, name, near):
    import importlib

    part = importlib.import_module(f"lantern.torch.{module}")
    with pytest.raises(AttributeError, match=f"{name}.*Did you mean: '{near}'"):
        getattr(part, name)


def test_whoever_asks_for_a_name_waits_for_no_search(monkeypatch):
    """``hasattr`` searched all names: 10 ms for ``torch``, 1 ms for a layer."""
    import pickle

    owners = [ours, ours.nn, ours.nn.functional, ours.optim, ours.nn.Linear(1, 1)]
    errors = []
    with monkeypatch.context() as patch:
        patch.setattr(difflib, "get_close_matches", lambda *_: pytest.fail("looked"))
        for owner in owners:
            assert not hasattr(owner, "no_such_name")
            assert getattr(owner, "no_such_name", 3) == 3
            with pytest.raises(AttributeError) as caught:
                owner.fowrard
            errors.append(caught.value)
    assert "'fowrard'" in errors[0].args[0]  # as in PyTorch, the words are a string
    shown = "'Linear' object has no attribute 'fowrard'. Did you mean: 'forward'?"
    assert str(errors[-1]) == shown
    assert str(pickle.loads(pickle.dumps(errors[-1]))) == shown


@pytest.mark.parametrize(
    "source",
    [
        "Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))",
        "LSTM(3, 4, 2)",
        "TransformerEncoderLayer(4, 2, 8)",
        "Sequential(nn.Unflatten(1, (1, 3)), nn.Conv1d(1, 2, 2), nn.Flatten())",
    ],
)
def test_training_steps_leave_nothing_behind(source):
    import gc
    import tracemalloc

    from lantern.torch.tensor.operators import _forget_dead

    width = 4 if "Transformer" in source else 3
    model = eval(f"nn.{source}", {"nn": ours.nn})
    optimiser = ours.optim.AdamW(model.parameters())
    x = ours.randn(5, width)

    def step():
        z = model(x.unsqueeze(1) if "LSTM" in source or width == 4 else x)
        z = z[0] if isinstance(z, tuple) else z
        loss = (z * z).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def steps():
        """Objects in rings, and the memory in use, after a few more steps."""
        for _ in range(20):
            step()
        rings = gc.collect()  # also empties the interpreter's lists of spare tuples
        _forget_dead()  # else it is done once in 256 views, and what waits is 20 KB
        return rings, tracemalloc.get_traced_memory()[0]

    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        for _ in range(7):  # a base knows its views by identities, which are used again
            _, before = steps()
        rings, after = steps()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert rings == 0
    assert after - before < 5_000


STEPS = """
F.cross_entropy(nn.Linear(3, 2)(x), torch.tensor([0, 1])); nn.Linear(3, 2)(x)
nn.LayerNorm(3)(x); nn.Embedding(3, 2)(torch.tensor([1])); nn.GELU()(nn.Linear(3, 2)(x))
nn.Conv2d(1, 1, 1, bias=False)(torch.ones(1, 1, 2, 2)); F.softmax(nn.Linear(3, 2)(x), 1)
"""


@pytest.mark.parametrize(
    "source", [s.strip() for s in STEPS.replace("\n", ";").split(";") if s.strip()]
)
def test_steps_are_called_as_pytorch_calls_them(source):
    names = []
    for torch in (ours, theirs):
        scope = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
        z = eval(source, {**scope, "x": torch.ones(2, 3)})
        names.append(z.grad_fn.name())
    assert names[0] == names[1]


@BOTH
def test_hooks_of_states(torch):
    module, seen = torch.nn.Linear(1, 1), []
    module.register_state_dict_pre_hook(lambda module, *rest: seen.append(rest))
    module.register_state_dict_post_hook(
        lambda module, state, *rest: state.update(extra=torch.ones(1))
    )
    state = module.state_dict()
    assert list(state) == ["weight", "bias", "extra"]
    module.register_load_state_dict_pre_hook(
        lambda module, state, prefix, *rest: seen.append((prefix, len(rest)))
    )
    module._register_load_state_dict_pre_hook(
        lambda state, *rest: state.pop("extra", None)
    )
    module.register_load_state_dict_post_hook(
        lambda module, keys: seen.append(list(keys.unexpected_keys))
    )
    module.load_state_dict(state)
    assert seen == [("", False), ("", 5), []]


@pytest.mark.parametrize("moved", [lambda m: m.double(), lambda m: m.to(ours.float64)])
def test_a_lazy_layer_takes_a_type_before_it_has_seen_an_input(moved):
    layer = moved(ours.nn.LazyConv2d(4, 3))
    assert layer(ours.zeros(1, 2, 5, 5, dtype=ours.float64)).dtype is ours.float64


def test_names_are_given_without_a_look_for_the_nearest(monkeypatch):
    """A hundred names took a hundred searches, each through all others."""
    monkeypatch.setattr(difflib, "get_close_matches", lambda *_: pytest.fail("looked"))
    model = ours.nn.Module()
    for i in range(3):
        model.register_buffer(f"mean_{i}", ours.zeros(1))
        model.register_parameter(f"weight_{i}", ours.nn.Parameter(ours.zeros(1)))
        model.add_module(f"layer_{i}", ours.nn.ReLU())
    for name in ("forward", "training", "mean_1", "layer_0"):
        with pytest.raises(KeyError, match="already exists"):
            model.register_parameter(name, None)


@pytest.mark.parametrize("torch", [ours, theirs])
def test_a_property_without_a_value_leaves_its_name_free(torch):
    """A ball's curvature is the negative of a parameter that it does not have yet."""

    class Ball(torch.nn.Module):
        @property
        def k(self):
            return -self.c

        @property
        def taken(self):
            return 1

    ball = Ball()
    ball.k = torch.nn.Parameter(torch.tensor(2.0))
    assert [*ball._parameters] == ["k"]
    with pytest.raises(KeyError, match="already exists"):
        ball.taken = torch.nn.Parameter(torch.tensor(2.0))
    ball.c = torch.nn.Parameter(torch.tensor(2.0))
    assert float(ball.k.detach()) == -2


def test_lazy_layers_take_options_of_their_first_call():
    layer = ours.nn.LazyConvTranspose2d(3, 2, stride=2)
    assert layer(ours.ones(1, 2, 4, 4), output_size=(9, 9)).shape == (1, 3, 9, 9)


def test_a_module_takes_an_order_of_memory():
    layer = ours.nn.Conv2d(3, 4, 3)
    x, weight = ours.rand(2, 3, 6, 6), layer.weight
    before = layer(x)
    layer.to(memory_format=ours.channels_last)
    assert layer.weight is weight
    assert weight.stride() == (27, 1, 9, 3)
    np.testing.assert_allclose(layer(x).detach(), before.detach(), rtol=1e-5, atol=1e-6)
    norm = ours.nn.BatchNorm2d(3).to(memory_format=ours.channels_last)
    assert norm.weight.stride() == (1,)


def test_conversions_make_new_parameters_if_that_is_asked_for():
    layer = ours.nn.Linear(2, 1)
    layer(ours.ones(2)).sum().backward()
    weight = layer.weight
    ours.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer.double()
    finally:
        ours.__future__.set_overwrite_module_params_on_conversion(False)
    assert layer.weight is not weight
    assert isinstance(layer.weight, ours.nn.Parameter)
    assert weight.dtype == weight.grad.dtype == ours.float32
    assert layer.weight.dtype == layer.weight.grad.dtype == ours.float64


def test_a_replica_of_a_module_has_tables_of_its_own():
    layer = ours.nn.Sequential(ours.nn.Linear(2, 1))
    replica = layer[0]._replicate_for_data_parallel()
    assert not list(replica.parameters())
    replica.weight, replica.bias = layer[0].weight * 2, None
    assert replica(ours.ones(2)).requires_grad
    assert len(list(layer.parameters())) == 2
