"""Averages of models over their training, and their schedule, beside PyTorch's."""

import importlib

import numpy as np
import pytest

import lantern.torch as ours

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

AVERAGES = [
    "{}",
    "{'avg_fn': u.get_ema_avg_fn(0.9)}",
    "{'avg_fn': u.get_swa_avg_fn()}",
    "{'multi_avg_fn': u.get_ema_multi_avg_fn(0.9)}",
    "{'multi_avg_fn': u.get_swa_multi_avg_fn()}",
    "{'multi_avg_fn': u.get_ema_multi_avg_fn(0.5), 'use_buffers': True}",
]
SCHEDULES = ["0.05, 3", "0.01, 0", "[0.3], 1", "0.05, 4, 'linear'", "0.2, 5, 'cos'"]


def utilities(torch):
    return importlib.import_module(f"{torch.__name__}.optim.swa_utils")


def trained(torch, options, schedule):
    """What 8 steps leave: losses, step lengths, and the averaged model's state."""
    u, nn = utilities(torch), torch.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).double()
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(torch.from_numpy(np.sin(np.arange(p.numel()) + k)).view(p.shape))
    x = torch.from_numpy(np.cos(np.arange(30.0))).view(10, 3)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    mean = u.AveragedModel(model, **eval(options, {"u": u}))
    rates = eval(f"u.SWALR(o, {schedule})", {"u": u, "o": optimiser})
    out = []
    for _ in range(8):
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        mean.update_parameters(model)
        rates.step()
        out += [loss.item(), optimiser.param_groups[0]["lr"]]
    u.update_bn([(x[:6], None), (x[6:], None)], mean)
    state = mean.state_dict()
    assert all(m.momentum == 0.1 for m in mean.modules() if hasattr(m, "momentum"))
    return list(state), out + [v.double().sum().item() for v in state.values()]


@pytest.mark.parametrize("options", AVERAGES)
def test_a_model_is_averaged_as_by_pytorch(options):
    (names, mine), (others, other) = (
        trained(torch, options, "0.05, 3") for torch in (ours, theirs)
    )
    assert names == others
    np.testing.assert_allclose(mine, other, rtol=1e-7)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_goes_as_pytorchs(schedule):
    mine, other = (trained(torch, "{}", schedule)[1] for torch in (ours, theirs))
    np.testing.assert_allclose(mine, other, rtol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        "u.SWALR(o, 0.1, -1)",
        "u.SWALR(o, 0.1, 1, 'other')",
        "u.SWALR(o, [0.1, 0.2])",
        "u.get_ema_avg_fn(2.0)",
        "u.AveragedModel(m, avg_fn=abs, multi_avg_fn=abs)",
    ],
)
def test_what_cannot_be_is_refused(call):
    for torch in (ours, theirs):
        model = torch.nn.Linear(1, 1)
        names = {"m": model, "o": torch.optim.SGD(model.parameters(), lr=0.1)}
        with pytest.raises((ValueError, AssertionError)):
            eval(call, {"u": utilities(torch), **names})
