"""Scaled losses, beside PyTorch's: scales, steps that are left out, states."""

import pickle

import pytest

import lantern.torch as torch

pytorch = pytest.importorskip("torch", reason="the peer that it is compared with")


def trained(t, infinite, kind="SGD", clip=False):
    """The weights and the scales of some steps, in some of which a loss overflows."""
    w = t.nn.Parameter(t.tensor([1.0, -2.0]))
    optimizer = getattr(t.optim, kind)([w], lr=0.1)
    scaler = t.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scales = []
    for i in range(6):
        optimizer.zero_grad()
        factor = float("inf") if i in infinite else 1.0
        scaler.scale((w * w * factor).sum()).backward()
        if clip:
            scaler.unscale_(optimizer)
            t.nn.utils.clip_grad_norm_([w], 0.5)
        scaler.step(optimizer)
        scaler.update()
        scales.append((scaler.get_scale(), scaler._get_growth_tracker()))
    return w.tolist(), scales, scaler.state_dict()


@pytest.mark.parametrize("infinite", [(), (1,), (0, 1, 2, 3), (5,)])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("clip", [False, True])
def test_a_training_is_that_of_pytorch(infinite, kind, clip):
    mine = trained(torch, infinite, kind, clip)
    theirs = trained(pytorch, infinite, kind, clip)
    assert mine[0] == pytest.approx(theirs[0], rel=1e-6)
    assert mine[1:] == theirs[1:]


def test_an_infinite_gradient_leaves_the_weights_as_they_are():
    w = torch.nn.Parameter(torch.ones(2))
    optimizer, scaler = torch.optim.SGD([w], lr=1.0), torch.amp.GradScaler("cpu")
    for value in (torch.inf, torch.nan):
        w.grad = torch.tensor([1.0, value])
        scaler.scale(torch.ones(1))
        scaler.step(optimizer)
        scaler.update()
    assert w.tolist() == [1, 1]
    assert scaler.get_scale() == 2.0**14


def test_structures_of_losses():
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    one, [two, (three,)] = scaler.scale(
        (torch.ones(1), [torch.ones(2), (torch.ones(1),)])
    )
    assert one.tolist() == three.tolist() == [4]
    assert two.tolist() == [4, 4]
    with pytest.raises(ValueError, match="must be a Tensor or an iterable"):
        scaler.scale(1.0)


def test_half_gradients_are_divided_in_float32():
    x = torch.full((2,), 4096.0).half()
    by = torch.full((1,), 2.0**-26)
    torch._amp_foreach_non_finite_check_and_unscale_([x], torch.zeros(1), by)
    assert x.tolist() == [2.0**-14] * 2


def test_a_state_goes_to_another_one_and_into_files():
    mine, theirs = (t.amp.GradScaler("cpu", init_scale=2.0) for t in (torch, pytorch))
    assert mine.state_dict() == theirs.state_dict()
    other = torch.amp.GradScaler("cpu")
    other.scale(torch.ones(1))
    other.load_state_dict(mine.state_dict())
    assert other.scale(torch.ones(1)).item() == 2
    again = pickle.loads(pickle.dumps(other))
    assert again.state_dict() == mine.state_dict()
    assert again.scale(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})


def test_where_there_is_no_gpu_it_is_disabled(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = torch.amp.GradScaler()
    assert not scaler.is_enabled()
    assert scaler.scale(torch.ones(1)).item() == 1
    assert (scaler.get_scale(), scaler.state_dict()) == (1.0, {})
    w = torch.nn.Parameter(torch.ones(1))
    w.grad = torch.ones(1)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.item() == 0


REFUSALS = RuntimeError, AssertionError  # PyTorch asserts


@pytest.mark.parametrize("t", [torch, pytorch])
def test_what_is_called_out_of_order_is_refused(t):
    w = t.nn.Parameter(t.ones(1))
    optimizer, scaler = t.optim.SGD([w], lr=1.0), t.amp.GradScaler("cpu")
    for call in (scaler.step, scaler.unscale_, lambda _: scaler.update()):
        with pytest.raises(REFUSALS):
            call(optimizer)
    scaler.scale((w * w).sum()).backward()
    with pytest.raises(REFUSALS):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(REFUSALS):
        scaler.unscale_(optimizer)
    with pytest.raises(REFUSALS):
        scaler.step(optimizer, closure=lambda: w.sum())
    with pytest.raises(REFUSALS):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    for call in (scaler.step, scaler.unscale_):
        with pytest.raises(REFUSALS):
            call(optimizer)
    for options in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}):
        with pytest.raises((ValueError, AssertionError)):
            t.amp.GradScaler("cpu", **options)


def test_an_optimiser_that_scales_by_itself():
    seen = []

    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((self.grad_scale.item(), self.found_inf.item()))

    w = torch.nn.Parameter(torch.ones(1))
    optimizer = Own([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for factor in (1.0, torch.inf):
        w.grad = None
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert seen == [(4, 0), (4, 1)]
    assert scaler.get_scale() == 2
