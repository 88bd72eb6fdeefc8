"""States and hooks of modules: each scenario has one outcome here and in PyTorch."""

import warnings
from collections import OrderedDict, namedtuple

import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same_scenario

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")
Pair = namedtuple("Pair", "first second")


# --- states ---------------------------------------------------------------------------


def keeper(torch, version=1):
    """A module with a list of its own in its state."""

    class Keeper(torch.nn.Module):
        _version = version

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.seen = []

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "seen"] = torch.tensor(self.seen)

        def _load_from_state_dict(
            self,
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing,
            unexpected,
            errors,
        ):
            self.metadata = dict(local_metadata)
            self.seen = state_dict.pop(prefix + "seen").tolist()
            super()._load_from_state_dict(
                state_dict, prefix, local_metadata, strict, missing, unexpected, errors
            )

    return Keeper()


def own_state(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), keeper(torch, 3))
    model[1].seen = [1, 2]
    state = model.state_dict()
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), keeper(torch))
    found = other.load_state_dict(state)
    return list(state), other[1].seen, other[1].metadata, str(found)


def own_state_assigned(torch):
    model, other = keeper(torch), keeper(torch)
    state = model.state_dict()
    other.load_state_dict(state, assign=True)
    return other.metadata, other.weight.data_ptr() == model.weight.data_ptr()


def versions(torch):
    nn = torch.nn
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2), nn.Sequential(nn.PReLU()))
    return {k: dict(v) for k, v in model.state_dict()._metadata.items()}


def old_norm(torch):
    norm = torch.nn.BatchNorm1d(2)
    state = norm.state_dict()
    del state["num_batches_tracked"]
    del state._metadata
    return str(norm.load_state_dict(state))


def new_norm_without_count(torch):
    norm = torch.nn.BatchNorm1d(2)
    state = norm.state_dict()
    del state["num_batches_tracked"]
    return norm.load_state_dict(state)


def nested_override(torch):
    class Named(torch.nn.Linear):
        def state_dict(self, *args, **options):
            found = super().state_dict(*args, **options)
            found[options["prefix"] + "name"] = torch.ones(1)
            return found

    return list(torch.nn.Sequential(Named(1, 1)).state_dict())


def order_of_state_hooks(torch):
    log = []
    inner = torch.nn.Linear(2, 1)
    model = torch.nn.Sequential(inner)
    for m, name in ((model, "outer"), (inner, "inner")):
        m.register_state_dict_pre_hook(
            lambda m, prefix, keep, n=name: log.append((n, "before", prefix, keep))
        )
        m._register_state_dict_hook(
            lambda m, state, prefix, data, n=name: log.append(
                (n, "after", list(state), prefix, dict(data))
            )
        )
        m.register_load_state_dict_pre_hook(
            lambda m, *rest, n=name: log.append((n, len(rest), rest[1], dict(rest[2])))
        )
        m._register_load_state_dict_pre_hook(
            lambda *rest, n=name: log.append((n, len(rest), rest[3]))
        )
        m.register_load_state_dict_post_hook(
            lambda m, keys, n=name: log.append((n, keys.missing_keys))
        )
    model.load_state_dict(model.state_dict(keep_vars=True))
    return [str(x) for x in log]


def state_replaced(torch):
    model = torch.nn.Linear(1, 1)
    model._register_state_dict_hook(lambda m, state, *rest: {"all": torch.ones(1)})
    return list(model.state_dict())


def public_hook_that_returns(torch):
    model = torch.nn.Linear(1, 1)
    model.register_state_dict_post_hook(lambda m, state, *rest: state)
    return model.state_dict()


def key_renamed_by_a_hook(torch):
    model = torch.nn.Sequential(torch.nn.Linear(1, 1))

    def rename(state, prefix, *rest):
        state[prefix + "weight"] = state.pop(prefix + "w")

    model[0]._register_load_state_dict_pre_hook(rename)
    return str(
        model.load_state_dict({"0.w": torch.ones(1, 1), "0.bias": torch.ones(1)})
    )


def missing_forgiven_by_a_hook(torch):
    model = torch.nn.Linear(1, 1)
    model.register_load_state_dict_post_hook(lambda m, keys: keys[0].clear())
    return str(model.load_state_dict({}))


def extra_state(torch):
    class Counted(torch.nn.Linear):
        def get_extra_state(self):
            return {"count": 3}

        def set_extra_state(self, state):
            self.count = state["count"]

    model = torch.nn.Sequential(Counted(1, 1), torch.nn.Linear(1, 1))
    state = model.state_dict()
    found = model.load_state_dict(state, strict=False)
    wrong = {**state, "1._extra_state": 5}
    lost = {k: x for k, x in state.items() if k != "0._extra_state"}
    return (
        list(state), model[0].count, str(found),
        str(model.load_state_dict(wrong, strict=False)),
        str(model.load_state_dict(lost, strict=False)),
    )  # fmt: skip


def all_problems(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    state = {
        "0.weight": torch.ones(3, 2),
        "0.bias": 5,
        "1.bias.x": torch.ones(1),
        "q": 1,
    }
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        return str(error).replace("lantern.", "").replace("EagerError", "RuntimeError")


def one_number(torch):
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.tensor(1.0))
    model.load_state_dict({"scale": torch.tensor([2.0])})
    return model.scale


def assigned(torch):
    model = torch.nn.Linear(2, 2)
    model.weight.requires_grad_(False)
    state = {
        "weight": torch.ones(2, 2).double(),
        "bias": torch.nn.Parameter(torch.ones(2)),
    }
    model.load_state_dict(state, assign=True)
    model.bias.data[0] = 5
    return (
        model.weight, model.weight.requires_grad,
        isinstance(model.weight, torch.nn.Parameter), model.bias is state["bias"],
        state["bias"],
    )  # fmt: skip


def of_positions(torch):
    found = OrderedDict()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.nn.Linear(1, 1)
        return list(model.state_dict(found, "a.", True)), found[
            "a.weight"
        ] is model.weight


def kept_variables(torch):
    model = torch.nn.Linear(1, 1)
    state = model.state_dict(keep_vars=True)
    return state["weight"] is model.weight, model.state_dict()["weight"].requires_grad


def lazy_state(torch):
    layer = torch.nn.LazyLinear(2)
    state = layer.state_dict()
    other = torch.nn.LazyLinear(2)
    other.load_state_dict(state)
    other.load_state_dict(torch.nn.Linear(3, 2).state_dict())
    return str(state), tuple(other.weight.shape), other.has_uninitialized_params()


def lazy_data(torch):
    layer = torch.nn.LazyLinear(2).double()
    layer.weight.data.normal_()
    return layer.weight.data, layer.weight.dtype, str(layer), repr(layer.weight)


def lazy_into_a_layer(torch):
    torch.nn.Linear(2, 2).load_state_dict(torch.nn.LazyLinear(2).state_dict())


def lazy_sum(torch):
    sum(p.numel() for p in torch.nn.LazyLinear(2).parameters())


def lazy_layers(torch):
    found = []
    for name, x in (
        ("LazyLinear", torch.ones(2, 3)), ("LazyConv1d", torch.ones(2, 4, 5)),
        ("LazyConv2d", torch.ones(2, 4, 5, 5)),
        ("LazyConv3d", torch.ones(2, 4, 5, 5, 5)),
        ("LazyConvTranspose1d", torch.ones(2, 4, 5)),
        ("LazyConvTranspose2d", torch.ones(2, 4, 5, 5)),
        ("LazyConvTranspose3d", torch.ones(2, 4, 5, 5, 5)),
        ("LazyBatchNorm1d", torch.ones(2, 4)),
        ("LazyBatchNorm2d", torch.ones(2, 4, 5, 5)),
        ("LazyBatchNorm3d", torch.ones(2, 4, 5, 5, 5)),
        ("LazyInstanceNorm1d", torch.ones(2, 4, 5)),
        ("LazyInstanceNorm2d", torch.ones(2, 4, 5, 5)),
        ("LazyInstanceNorm3d", torch.ones(2, 4, 5, 5, 5)),
    ):  # fmt: skip
        options = {"groups": 2} if "Conv" in name else {}
        args = () if "Norm" in name else (6,) if "Linear" in name else (6, 3)
        layer = getattr(torch.nn, name)(*args, **options)
        found.append(repr(layer))
        found.append(sorted(layer.state_dict()))
        found.append(tuple(layer(x).shape))
        found.append({k: tuple(v.shape) for k, v in layer.state_dict().items()})
        found.append(type(layer).__name__)
        found.append(repr(layer))
        found.append(len(layer._forward_pre_hooks))
    return found


# --- hooks around the call ------------------------------------------------------------


def way_back(torch, forward, *inputs):
    """What full backward hooks of a module with a forward step see."""

    class Model(torch.nn.Module):
        pass

    Model.forward = lambda self, *args, **options: forward(*args, **options)
    log = []
    model = Model()
    model.register_full_backward_pre_hook(
        lambda m, g: log.append(("before", len(g), g))
    )
    model.register_full_backward_hook(
        lambda m, i, o: log.append((type(i).__name__, i, o))
    )
    xs = [torch.tensor(x, requires_grad=True) for x in inputs]
    z = model(*xs)
    return xs, z, log


def named_pair(torch):
    (x,), z, log = way_back(torch, lambda x: Pair(x * 2, x * 3), [1.0, 2.0])
    (z.first.sum() + z.second.sum()).backward()
    return type(z).__name__, z._fields, x.grad, log


def named_pair_in(torch):
    class Model(torch.nn.Module):
        def forward(self, pair):
            return pair.first * pair.second

    model = Model()
    model.register_full_backward_hook(lambda m, i, o: None)
    x = torch.tensor([2.0], requires_grad=True)
    model(Pair(x, x)).sum().backward()
    return x.grad


def list_out(torch):
    (x,), z, log = way_back(torch, lambda x: [x * 2, x * 3], [1.0, 2.0])
    (z[0].sum() + z[1].sum()).backward()
    return type(z).__name__, x.grad, log


def dict_out(torch):
    (x,), z, log = way_back(torch, lambda x: {"a": x * 2, "b": x * 3}, [1.0, 2.0])
    (z["a"].sum() + z["b"].sum()).backward()
    return list(z), x.grad, log


def nothing_out(torch):
    _, z, log = way_back(torch, lambda x: None, [1.0, 2.0])
    return z, log


def constants_among(torch):
    (x,), z, log = way_back(torch, lambda x: (x * 2, torch.ones(1), 3), [1.0, 2.0])
    z[0].sum().backward()
    return x.grad, log


def no_input_tracked(torch):
    w = torch.tensor([2.0], requires_grad=True)
    _, z, log = way_back(torch, lambda: w * 3)
    z.sum().backward()
    return w.grad, log


def too_many_from_a_hook(torch):
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda m, i, o: (i[0], i[0]))
    layer(torch.ones(1, 2, requires_grad=True)).sum().backward()


def too_many_from_an_early_hook(torch):
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_pre_hook(lambda m, o: (o[0], o[0]))
    layer(torch.ones(1, 2, requires_grad=True)).sum().backward()


def replaced_by_hooks(torch):
    model = torch.nn.Tanh()
    model.register_full_backward_pre_hook(lambda m, o: (o[0] * 2,))
    model.register_full_backward_hook(lambda m, i, o: (i[0] + o[0],))
    model.register_full_backward_hook(lambda m, i, o: (i[0] * 10,), prepend=True)
    x = torch.tensor([0.0], requires_grad=True)
    model(x).sum().backward()
    return x.grad


def hooks_with_names(torch):
    class Model(torch.nn.Module):
        def forward(self, x, *, scale):
            return x * scale

    model, log = Model(), []
    model.register_forward_pre_hook(
        lambda m, a, k: (a, {"scale": k["scale"] + 1}), with_kwargs=True
    )
    model.register_forward_hook(lambda m, a, k, z: log.append(k), with_kwargs=True)
    handle = model.register_forward_hook(lambda m, a, z: z * 10, prepend=True)
    z = model(torch.ones(1), scale=2.0)
    handle.remove()
    return z, model(torch.ones(1), scale=2.0), log


def hook_without_pair(torch):
    model = torch.nn.Identity()
    model.register_forward_pre_hook(lambda m, a, k: a, with_kwargs=True)
    return model(torch.ones(1))


def always(torch):
    log = []

    class Model(torch.nn.Module):
        def forward(self, x):
            raise KeyError("lost")

    model = Model()
    model.register_forward_hook(lambda m, a, z: log.append("never"))
    model.register_forward_hook(
        lambda m, a, z: log.append(("always", z)), always_call=True
    )
    model.register_forward_hook(lambda m, a, z: 1 / 0, always_call=True)
    try:
        model(torch.ones(1))
    except KeyError:
        return log


def of_all_modules(torch):
    log, parts = [], torch.nn.modules.module
    handles = [
        parts.register_module_forward_pre_hook(lambda m, a: log.append("before")),
        parts.register_module_forward_hook(
            lambda m, a, z: log.append(type(m).__name__)
        ),
        parts.register_module_full_backward_hook(lambda m, i, o: log.append("back")),
        parts.register_module_full_backward_pre_hook(lambda m, o: log.append("early")),
    ]
    model = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU())
    model[0].register_forward_hook(lambda m, a, z: log.append("own"))
    try:
        model(torch.ones(1, requires_grad=True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    model(torch.ones(1))
    return log


SCENARIOS = [
    own_state, own_state_assigned, versions, old_norm, new_norm_without_count,
    nested_override, order_of_state_hooks, state_replaced, public_hook_that_returns,
    key_renamed_by_a_hook, missing_forgiven_by_a_hook, extra_state, all_problems,
    one_number, assigned, of_positions, kept_variables, lazy_state, lazy_data,
    lazy_into_a_layer, lazy_sum, lazy_layers, named_pair, named_pair_in, list_out,
    dict_out, nothing_out, constants_among, no_input_tracked, too_many_from_a_hook,
    too_many_from_an_early_hook, replaced_by_hooks, hooks_with_names, hook_without_pair,
    always, of_all_modules,
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda f: f.__name__)
def test_has_the_outcome_of_pytorch(scenario):
    assert_same_scenario(scenario)


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_what_full_backward_hooks_watch_stays_in_its_memory(torch):
    shown = []
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    for layer in net:
        layer.register_full_backward_hook(lambda *_: None)
        layer.register_forward_hook(
            lambda _, inputs, z: shown.append((inputs[0].data_ptr(), z.data_ptr()))
        )
    net(torch.ones(4, 3, requires_grad=True)).sum().backward()
    assert shown[0][1] == shown[1][0]


def test_a_layer_that_writes_to_its_input_does_so_under_hooks_too():
    found = []
    for hooked in (False, True):
        layer = ours.nn.Linear(3, 3)
        ours.nn.init.constant_(layer.bias, -1.0)
        layer.weight.data.copy_(ours.arange(9.0).view(3, 3) - 4)
        relu = ours.nn.ReLU(inplace=True)
        if hooked:
            relu.register_full_backward_hook(lambda *_: None)
        x = ours.ones(2, 3, requires_grad=True)
        a = layer(x * 1)
        (relu(a).sum() + (a * a).sum()).backward()
        found.append((a.tolist(), x.grad.tolist(), layer.weight.grad.tolist()))
    assert found[0] == found[1]
