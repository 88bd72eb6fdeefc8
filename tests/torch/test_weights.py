"""Weights that are computed, normalised or held at 0: against PyTorch's."""

import copy
import importlib
import pickle

import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same, plain, theirs

importlib.import_module("torch.nn.utils.prune")  # PyTorch's own is no attribute before


def layer(torch, kind="Linear", sizes=(4, 2), scale=1.0):
    made = getattr(torch.nn, kind)(*sizes, bias=False)
    n = made.weight.numel()
    with torch.no_grad():
        values = torch.arange(n, dtype=torch.float32).reshape(made.weight.shape)
        made.weight.copy_(values.sin() * scale)
    return made


def symmetric(torch):
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

    return Symmetric()


PROGRAMS = {
    "weight norm": lambda t, u: u.weight_norm(layer(t)),
    "weight norm, whole": lambda t, u: u.weight_norm(layer(t), dim=None),
    "weight norm of windows": lambda t, u: u.weight_norm(layer(t, "Conv1d", (2, 3, 2))),
    "spectral norm": lambda t, u: u.spectral_norm(layer(t), n_power_iterations=60),
    "spectral norm of windows": lambda t, u: u.spectral_norm(
        layer(t, "Conv2d", (2, 3, 2)), n_power_iterations=60
    ),
    "parametrization, weight norm": lambda t, u: u.parametrizations.weight_norm(
        layer(t)
    ),
    "parametrization, spectral norm": lambda t, u: u.parametrizations.spectral_norm(
        layer(t), n_power_iterations=60
    ),
    "parametrization": lambda t, u: u.parametrize.register_parametrization(
        layer(t, sizes=(3, 3)), "weight", symmetric(t)
    ),
    "pruned, smallest": lambda t, u: u.prune.l1_unstructured(layer(t), "weight", 3),
    "pruned, rows": lambda t, u: u.prune.ln_structured(layer(t), "weight", 1, 2, 0),
    "pruned, mask": lambda t, u: u.prune.custom_from_mask(
        layer(t), "weight", t.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1]])
    ),
}


# PyTorch says so of its own.
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_training_is_pytorchs(name):
    found = []
    for torch in (ours, theirs):
        module = PROGRAMS[name](torch, torch.nn.utils)
        shape = {"Conv1d": (1, 2, 5), "Conv2d": (1, 2, 4, 4)}.get(
            type(module).__name__, (3, module.weight.shape[1])
        )
        n = int(torch.ones(shape).numel())
        x = torch.arange(float(n)).reshape(shape).cos()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            loss = (module(x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        state = {k: plain(v) for k, v in module.state_dict().items() if "_u" not in k}
        state = {k: v for k, v in state.items() if "_v" not in k or "norm" not in name}
        names = sorted(module.state_dict())
        found.append([losses, names, state if "spectral" not in name else {}])
    assert_same(*found, rtol=1e-3)


# PyTorch says so of its own.
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def test_what_was_changed_can_be_changed_back():
    results = []
    for torch in (ours, theirs):
        utils = torch.nn.utils
        a = utils.remove_weight_norm(utils.weight_norm(layer(torch)))
        b = utils.remove_spectral_norm(utils.spectral_norm(layer(torch)))
        c = utils.prune.remove(
            utils.prune.l1_unstructured(layer(torch), "weight", 0.5), "weight"
        )
        d = utils.parametrize.register_parametrization(
            layer(torch, sizes=(3, 3)), "weight", symmetric(torch)
        )
        assert utils.parametrize.is_parametrized(d)
        with utils.parametrize.cached():
            assert d.weight is d.weight
        utils.parametrize.remove_parametrizations(d, "weight")
        assert type(d) is torch.nn.Linear
        states = [{k: plain(v) for k, v in m.state_dict().items()} for m in (a, c, d)]
        results.append([states, sorted(b.state_dict())])
    assert_same(*results)


def test_pruning_of_several_compares_them():
    results = []
    for torch in (ours, theirs):
        prune = torch.nn.utils.prune
        a, b = layer(torch), layer(torch, scale=0.1)
        prune.global_unstructured(
            [(a, "weight"), (b, "weight")],
            pruning_method=prune.L1Unstructured,
            amount=0.5,
        )
        assert prune.is_pruned(a)
        prune.l1_unstructured(a, "weight", 2)
        (hook,) = a._forward_pre_hooks.values()
        assert (hook._tensor_name, len(list(hook))) == ("weight", 2)
        results.append([plain(a.weight), plain(b.weight)])
    assert_same(*results)


def test_orthogonal_weights_stay_orthogonal():
    module = ours.nn.utils.parametrizations.orthogonal(ours.nn.Linear(4, 3))
    optimizer = ours.optim.SGD(module.parameters(), lr=0.3)
    x = ours.randn(5, 4)
    for _ in range(3):
        (module(x) ** 2).sum().backward()
        optimizer.step()
    product = module.weight @ module.weight.mT
    ours.testing.assert_close(product, ours.eye(3), atol=1e-5, rtol=0.0)


def test_errors_say_what_is_wrong():
    utils = ours.nn.utils
    with pytest.raises(ValueError, match="not found"):
        utils.remove_weight_norm(ours.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="has to be pruned"):
        utils.prune.remove(ours.nn.Linear(1, 1), "weight")
    with pytest.raises(ValueError, match="does not have a parametrization"):
        utils.parametrize.remove_parametrizations(ours.nn.Linear(1, 1), "weight")
    with pytest.raises(AttributeError, match="Did you mean: 'weight_norm'"):
        _ = utils.weigth_norm


COMPUTED = {
    "weight norm": lambda u, m, name: u.weight_norm(m, name),
    "parametrization": lambda u, m, name: u.parametrizations.weight_norm(m, name),
    "pruned": lambda u, m, name: u.prune.l1_unstructured(m, name, 3),
}


# PyTorch says so of its own.
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell", "LSTM", "GRU"])
@pytest.mark.parametrize("way", COMPUTED)
def test_recurrent_networks_read_computed_weights(kind, way):
    found = []
    for torch in (ours, theirs):
        module = getattr(torch.nn, kind)(3, 2)
        with torch.no_grad():
            for p in module.parameters():
                values = torch.arange(p.numel(), dtype=torch.float32)
                p.copy_(values.reshape(p.shape).sin())
        name = "weight_hh" if "Cell" in kind else "weight_hh_l0"
        module = COMPUTED[way](torch.nn.utils, module, name)
        shape = (4, 3) if "Cell" in kind else (5, 4, 3)
        out = module(torch.ones(shape))
        out = out if kind in ("GRUCell", "RNNCell") else out[0]
        (out**2).sum().backward()
        found.append([plain(p.grad) for _, p in sorted(module.named_parameters())])
    assert_same(*found, rtol=1e-4)


def test_pruning_again_chooses_among_what_is_kept():
    found = []
    for torch in (ours, theirs):
        m, prune = layer(torch), torch.nn.utils.prune
        prune.l1_unstructured(m, "weight", 2)
        prune.ln_structured(m, "weight", 1, n=1, dim=0)
        prune.ln_structured(m, "weight", 1, n=1, dim=0)
        (hook,) = m._forward_pre_hooks.values()
        assert isinstance(hook, prune.PruningContainer)
        assert [type(method).__name__ for method in hook[1:]] == ["LnStructured"] * 2
        mask = hook[0].prune(m.weight_orig.detach(), m.weight_mask)
        found.append([m.weight_mask.tolist(), mask.tolist()])
    assert found[0] == found[1]


def test_pruning_that_is_refused_changes_nothing():
    m, prune = ours.nn.Linear(3, 2), ours.nn.utils.prune
    before = m.weight
    with pytest.raises(ValueError, match="should be smaller"):
        prune.l1_unstructured(m, "weight", 1000)
    assert m.weight is before
    assert not prune.is_pruned(m)
    for amount, error in ((1.5, ValueError), (-1, ValueError), ("all", TypeError)):
        with pytest.raises(error, match="amount"):
            prune.L1Unstructured(amount)
    with pytest.raises(ValueError, match="acting on the parameter"):
        prune.PruningContainer(
            prune.L1Unstructured.apply(m, "weight", 1),
            prune.L1Unstructured.apply(m, "bias", 1),
        )
    optimised = m.weight_orig
    assert prune.remove(m, "weight").weight is optimised


def test_pruned_layers_are_pickled_with_their_results():
    m = ours.nn.utils.prune.l1_unstructured(layer(ours), "weight", 2)
    again = pickle.loads(pickle.dumps(m))
    assert again.weight.tolist() == m.weight.tolist()
    assert again.weight.is_leaf


@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_orthogonal_weights_are_pytorchs(kind, shape):
    """Of the same parameters, without a constant matrix: parts of that are drawn."""
    found = []
    for torch in (ours, theirs):
        m = layer(torch, sizes=shape)
        torch.nn.utils.parametrizations.orthogonal(
            m, "weight", kind, use_trivialization=False
        )
        original = m.parametrizations.weight.original
        before = plain(original)
        with torch.no_grad():
            x = torch.arange(float(original.numel())).reshape(original.shape).cos()
            upright = x.T if shape[0] < shape[1] else x
            upright.diagonal().fill_(-1.0)
            original.copy_(x)
        factors = torch.arange(float(m.weight.numel())).reshape(m.weight.shape)
        (m.weight * factors).sum().backward()
        found.append([before, plain(m.weight), plain(original.grad)])
    assert_same(*found)


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_an_orthogonal_weight_can_be_assigned(kind, shape):
    m = layer(ours, sizes=shape)
    ours.nn.utils.parametrizations.orthogonal(m, "weight", kind)
    kept = m.weight.detach().clone()
    with ours.no_grad():
        m.parametrizations.weight.original.sub_(0.25)
    assert (m.weight - kept).abs().max() > 0.01
    m.weight = kept
    ours.testing.assert_close(m.weight.detach(), kept)


def rule(torch, result, back=None):
    class Rule(torch.nn.Module):
        def forward(self, x):
            return eval(result, {"x": x})

        if back is not None:

            def right_inverse(self, x):
                return eval(back, {"x": x})

    return Rule()


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "theirs"])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("result", "back", "words"),
    [
        ("2.0", None, "must return a tensor"),
        ("x.double()", None, "may not change the dtype"),
        ("x[:1]", None, "may not change the shape"),
        ("x", "None", ("Tensor or a Sequence", "must return a tensor")),
        ("x", "(x, None)", ("of the sequence with type", "must return a tensor")),
        ("x.float()", "x.double()", ("may not change the dtype", "the same dtype")),
        ("x", "x[:1]", (None, "the same shape")),
    ],
)
def test_parametrizations_that_do_not_fit_change_nothing(
    torch, again, result, back, words
):
    if isinstance(words, tuple):
        words = words[again]
    if words is None:
        return  # a first one may change what is kept
    m, register = layer(torch), torch.nn.utils.parametrize.register_parametrization
    if again:
        register(m, "weight", rule(torch, "x"))
    before = m.weight.tolist()
    with pytest.raises(ValueError, match=words):
        register(m, "weight", rule(torch, result, back))
    assert m.weight.tolist() == before
    assert torch.nn.utils.parametrize.is_parametrized(m) is again


def test_parametrized_modules_train_copy_and_are_not_pickled():
    m = layer(ours).eval()
    assert ours.nn.utils.parametrizations.spectral_norm(m).weight is not None
    assert not m.parametrizations.weight[0].training
    again = copy.deepcopy(m)
    assert again.weight.tolist() == m.weight.tolist()
    assert again.parametrizations.weight.original is not m.parametrizations.weight
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(m)
    with pytest.raises(ValueError, match="does not have a parameter"):
        ours.nn.utils.parametrize.register_parametrization(m, "foo", rule(ours, "x"))


def test_weight_norm_takes_what_the_older_one_saved():
    old = ours.nn.utils.weight_norm(layer(ours, scale=3.0))
    new = ours.nn.utils.parametrizations.weight_norm(layer(ours))
    new.load_state_dict(old.state_dict())
    ours.testing.assert_close(new.weight, old.weight)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_spectral_norms_of_other_types(dtype):
    ours.manual_seed(0)  # largest values that lie far enough apart for 200 steps
    m = ours.nn.Linear(3, 3, bias=False, dtype=getattr(ours, dtype))
    with ours.no_grad():
        m.weight = ours.nn.Parameter(ours.diag(ours.diagonal(m.weight)))
    largest = ours.linalg.svdvals(m.weight.detach()).max()
    expected = m.weight.detach() / largest
    ours.nn.utils.parametrizations.spectral_norm(m, n_power_iterations=200)
    assert m.weight.dtype == expected.dtype
    ours.testing.assert_close(m.weight.detach(), expected, rtol=1e-4, atol=1e-5)
