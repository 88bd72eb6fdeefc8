"""Behaviours that PyTorch's own test files look at, each in a few lines."""

import itertools

import numpy as np
import pytest

import lantern.torch as torch

pytorch = pytest.importorskip(
    "torch", reason="the peer that this face is compared with"
)
inf, nan = float("inf"), float("nan")


def test_bags_with_a_last_offset_and_empty_bags():
    weight = pytorch.arange(12.0).reshape(4, 3)
    for mode in ("sum", "mean", "max"):
        for offsets, last in (([0, 2, 2], False), ([0, 3, 4], True), ([0, 0, 4], True)):
            z = [
                library.nn.functional.embedding_bag(
                    library.tensor([0, 1, 2, 3]),
                    library.tensor(weight.tolist()),
                    library.tensor(offsets),
                    mode=mode,
                    include_last_offset=last,
                ).tolist()
                for library in (torch, pytorch)
            ]
            assert z[0] == z[1], (mode, offsets)


def test_gradients_of_bags():
    found = []
    for library in (torch, pytorch):
        weight = library.arange(12.0).reshape(4, 3).requires_grad_()
        factors = library.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        z = library.nn.functional.embedding_bag(
            library.tensor([0, 1, 1, 3]),
            weight,
            library.tensor([0, 3]),
            mode="sum",
            per_sample_weights=factors,
            padding_idx=0,
        )
        (z * z).sum().backward()
        found.append((weight.grad.tolist(), factors.grad.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("offsets", [[1, 2], [0, 9]])
def test_bags_that_do_not_fit_are_refused(offsets):
    with pytest.raises(RuntimeError, match="offsets"):
        torch.nn.functional.embedding_bag(
            torch.tensor([0, 1]), torch.ones(3, 2), torch.tensor(offsets)
        )


def test_infinities_in_logcumsumexp_reach_only_what_follows():
    rows = [
        [-inf, -inf, 1.0, inf, 1.0],
        [-inf, -inf],
        [1.0, inf, 2.0],
        [1.0, -inf, 2.0],
    ]
    for row in rows:
        ours = torch.logcumsumexp(torch.tensor(row), 0).tolist()
        theirs = pytorch.logcumsumexp(pytorch.tensor(row), 0).tolist()
        assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("name", ["logsumexp", "logcumsumexp"])
def test_infinities_in_sums_of_complex_exponentials(name):
    kinds = -inf, 1.0, inf, complex(-inf, 1), complex(inf, 1), 2 + 3j, 1 + 0.5j
    for row in itertools.product(kinds, repeat=2):
        ours = getattr(torch, name)(torch.tensor([*map(complex, row)]), 0)
        theirs = getattr(pytorch, name)(pytorch.tensor([*map(complex, row)]), 0)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [(4, 5, 5), (4,), (4, 0, 3), (4, 5, 1), (4, 0, inf), (4, nan, 1), (4, -inf, inf)],
)
def test_limits_of_histc(options):
    for row in ([1.0, 2.0, 1.0], [1.0, 2.0, inf], [nan, 1.0, 2.0], [1.0, 1.0]):
        try:
            theirs = pytorch.histc(pytorch.tensor(row), *options).tolist()
        except RuntimeError:
            with pytest.raises(RuntimeError, match=r"torch\.histc: "):
                torch.histc(torch.tensor(row), *options)
        else:
            assert torch.histc(torch.tensor(row), *options).tolist() == theirs


def test_places_of_a_gradient_keep_their_type():
    found = [
        library.gradient(
            library.tensor([1, 5, 2]),
            spacing=[library.tensor([0.0, 1e-9, 1.0], dtype=library.float64)],
        )[0]
        for library in (torch, pytorch)
    ]
    assert str(found[0].dtype) == str(found[1].dtype)
    assert found[0].tolist() == pytest.approx(found[1].tolist(), rel=1e-12)


@pytest.mark.parametrize(
    "options",
    [{"groups": 0}, {"padding": "foo"}, {"padding": "same", "stride": 2}],
)
def test_convolutions_that_cannot_be_are_refused_at_once(options):
    with pytest.raises(ValueError):
        torch.nn.Conv2d(2, 2, 3, **options)
    with pytest.raises(ValueError):
        pytorch.nn.Conv2d(2, 2, 3, **options)


def test_hooks_after_accumulation_see_the_gradient_and_may_drop_it():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen = []

    def step(leaf):
        seen.append(leaf.grad.tolist())
        leaf.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    for _ in range(2):
        (x * x).sum().backward()
        assert x.grad is None
    handle.remove()
    (x * x).sum().backward()
    assert seen == [[2.0, 4.0]] * 2
    assert x.grad.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * x).register_post_accumulate_grad_hook(step)


def test_versions_count_writes():
    x = torch.ones(3)
    before = x._version
    x.add_(1)
    x[0] = 2
    view = x[1:]
    view.mul_(2)
    assert (x._version - before, view._version) == (3, x._version)


def test_adaptive_softmax_with_shared_weights():
    layers = [
        library.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], 2.0, head_bias=True)
        for library in (torch, pytorch)
    ]
    theirs = layers[1].state_dict()
    layers[0].load_state_dict(
        {name: torch.tensor(x.tolist()) for name, x in theirs.items()}
    )
    x, classes = pytorch.randn(6, 8).tolist(), [0, 7, 19, 4, 10, 9]
    found = []
    for library, layer in zip((torch, pytorch), layers, strict=True):
        z = layer(library.tensor(x), library.tensor(classes))
        z.loss.backward()
        gradients = [p.grad.flatten().tolist() for p in layer.parameters()]
        logs = layer.log_prob(library.tensor(x)).flatten().tolist()
        found.append([z.output.tolist(), logs, *gradients])
    for ours, other in zip(*found, strict=True):
        assert ours == pytest.approx(other, abs=1e-5)
    with pytest.raises(RuntimeError, match="Target values"):
        layers[0](torch.tensor(x), torch.tensor([20] * 6))
    with pytest.raises(ValueError, match="cutoffs"):
        torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 20])


@pytest.mark.parametrize(
    ("name", "options"),
    [("hardshrink", ()), ("softshrink", ()), ("threshold", (0.5, 2.0))],
)
def test_thresholds_keep_nan(name, options):
    found = []
    for library in (torch, pytorch):
        x = library.tensor([float("nan"), -2.0, -0.5, 0.0, 0.5, 3.0])
        x.requires_grad_()
        z = getattr(library.nn.functional, name)(x, *options)
        z.sum().backward()
        found.append((z.tolist(), x.grad.tolist()))
    for ours, theirs in zip(*found, strict=True):
        assert ours == pytest.approx(theirs, nan_ok=True)


@pytest.mark.parametrize(("name", "options"), [("layer_norm", None), ("group_norm", 1)])
def test_normalising_very_long_rows_keeps_digits(name, options):
    x = torch.rand(1, 1, 1 << 22)
    z = getattr(torch.nn.functional, name)(x, options or x.shape[2:]).numpy()
    a = x.numpy().astype("float64")
    right = (a - a.mean()) / (a.var() + 1e-5) ** 0.5
    assert abs(z - right).max() < 2e-6


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize(
    ("length", "size", "steps"), [(9, 2, 4), (13, 3, 5), (20, 4, 1), (8, 2, 5)]
)
def test_fractional_max_pools_take_pytorchs_windows(axes, length, size, steps):
    random, found = np.random.default_rng(0), []
    x = random.normal(size=(2, 3, *range(length, length + axes))).astype("float32")
    samples = random.random((2, 3, axes)).astype("float32")
    for lib in (torch, pytorch):
        a = lib.tensor(x).requires_grad_()
        layer = getattr(lib.nn, f"FractionalMaxPool{axes}d")(
            size, steps, return_indices=True, _random_samples=lib.tensor(samples)
        )
        z, indices = layer(a)
        (z * z).sum().backward()
        found.append([z.tolist(), indices.tolist(), a.grad.tolist()])
    assert found[0] == found[1]


def test_fractional_max_pools_say_what_they_need():
    F, nn = torch.nn.functional, torch.nn
    assert F.fractional_max_pool2d(torch.ones(0, 2, 9, 9), 2, 3).shape == (0, 2, 3, 3)
    assert F.fractional_max_pool2d(torch.ones(2, 9, 9), 2, (0, 3)).shape == (2, 0, 3)
    with pytest.raises(ValueError, match="output_size or an output_ratio"):
        F.fractional_max_pool2d(torch.ones(1, 1, 9, 9), 2)
    layer = nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.4))
    assert layer(torch.ones(1, 1, 9, 10)).shape == (1, 1, 4, 4)
    with pytest.raises(RuntimeError, match="too large relative to input height"):
        F.fractional_max_pool2d(torch.ones(1, 1, 9, 9), 2, 9)
    with pytest.raises(RuntimeError, match="Expect _random_samples"):
        F.fractional_max_pool2d(
            torch.ones(1, 1, 9, 9), 2, 3, _random_samples=torch.ones(2)
        )
    for options in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}):
        with pytest.raises(ValueError, match="output"):
            nn.FractionalMaxPool2d(2, **options)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_cotangents_of_convolutions_alone(axes):
    random, found = np.random.default_rng(0), []
    x = random.normal(size=(2, 4, *[7] * axes))
    w = random.normal(size=(6, 2, *[3] * axes))
    z_bar, how = random.normal(size=(2, 6, *[4] * axes)), (2, 1, 1, 2)
    for lib in (torch, pytorch):
        of_input = getattr(lib.nn.functional.grad, f"conv{axes}d_input")
        of_weight = getattr(lib.nn.grad, f"conv{axes}d_weight")
        a, b, c = (lib.tensor(y) for y in (x, w, z_bar))
        found.append([of_input(x.shape, b, c, *how), of_weight(a, w.shape, c, *how)])
        assert not a.requires_grad
        assert not found[-1][0].requires_grad
        assert of_input(x.shape, b.requires_grad_(), c, *how).requires_grad
    for ours, expected in zip(*found, strict=True):
        assert ours.numpy() == pytest.approx(expected.numpy())


def test_hooks_are_told_of_what_modules_register():
    found = []
    for lib in (torch, pytorch):
        parts, seen = lib.nn.modules.module, []
        twice = lib.nn.Parameter(lib.ones(1) * 2)

        def parameter(module, name, value, seen=seen, twice=twice):
            seen.append((type(module).__name__, name))
            return twice if name == "bias" else None

        def note(module, name, value, seen=seen):
            seen.append((type(module).__name__, name, type(value).__name__))

        handles = [
            parts.register_module_parameter_registration_hook(parameter),
            parts.register_module_buffer_registration_hook(note),
            parts.register_module_module_registration_hook(note),
        ]
        model = lib.nn.Sequential(lib.nn.Linear(1, 1))
        model.register_buffer("mean", lib.ones(1))
        model.more = lib.nn.ReLU()
        for handle in handles:
            handle.remove()
        assert model[0].bias is twice
        assert lib.nn.Linear(1, 1).bias is not twice
        found.append(seen)
    assert found[0] == found[1]


def test_pools_of_no_examples():
    for axes in (1, 2, 3):
        x = torch.ones(0, 2, *[6] * axes)
        pool = getattr(torch.nn, f"AdaptiveMaxPool{axes}d")(2)
        assert pool(x).shape == (0, 2, *[2] * axes)


def test_a_mask_hides_scores_from_a_softmax():
    scores = torch.rand(2, 3, 4, 4, requires_grad=True)
    hidden = torch.tensor([[False, False, True, False], [True, False, False, False]])
    shares = torch._masked_softmax(scores, hidden, None, 1)
    assert (shares[0, ..., 2] == 0).all()
    assert (shares[1, ..., 0] == 0).all()
    torch.testing.assert_close(shares.sum(-1), torch.ones(2, 3, 4))
    shares.square().sum().backward()
    assert (scores.grad[0, ..., 2] == 0).all()
