"""Recurrent layers over all times at once: as one example, one time after another."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines
from lantern.torch.nn.sequences import course
from lantern.torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

LENGTHS = {
    "equal": [6, 6, 6],
    "falling": [6, 4, 1],
    "mixed": [2, 6, 5, 2],
    "one": [4],
    "one time": [1, 1],
}


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def layer(bidirectional=False, **options):
    model = torch.nn.LSTM(
        3, 5, bidirectional=bidirectional, dtype=torch.float64, **options
    )
    for i, p in enumerate(model.parameters()):
        p.data = torch.tensor(drawn(*p.shape, seed=i))
    return model


def by_steps(model, x, suffix, h, memory):
    """One example, time by time."""
    names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    weights = [getattr(model, name + suffix, None) for name in names]
    shown = []
    for row in x:
        h, memory = torch.lstm_cell(row[None], (h, memory), *weights)
        shown.append(h)
    return torch.cat(shown), h, memory


@pytest.mark.parametrize("bidirectional", [False, True], ids=["there", "both ways"])
@pytest.mark.parametrize("name", LENGTHS)
def test_packed_examples_are_as_each_by_itself(name, bidirectional):
    lengths, model = LENGTHS[name], layer(bidirectional)
    n, ways = len(lengths), 1 + bidirectional
    x = torch.tensor(drawn(max(lengths), n, 3), requires_grad=True)
    states = [
        torch.tensor(drawn(ways, n, 5, seed=i), requires_grad=True) for i in (1, 2)
    ]
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    z, (h, memory) = model(packed, tuple(states))
    z = pad_packed_sequence(z)[0]
    seeds = drawn(*z.shape), drawn(*h.shape), drawn(*memory.shape)

    right = [np.zeros(a.shape) for a in (z, h, memory)]
    total = 0
    for i, length in enumerate(lengths):
        for way in range(ways):
            order = slice(None, None, -1 if way else 1)
            rows = [x[t, i] for t in range(length)][order]
            suffix = ["_l0", "_l0_reverse"][way]
            a, b, c = by_steps(
                model, rows, suffix, *(s[way, i : i + 1] for s in states)
            )
            part = slice(5 * way, 5 * way + 5)
            right[0][:length, i, part] = a.detach().numpy()[order]
            right[1][way, i], right[2][way, i] = b.detach()[0], c.detach()[0]
            seed = torch.tensor(seeds[0][:length, i, part][order].copy())
            total = total + (a * seed).sum()
            total = total + (b[0] * torch.tensor(seeds[1][way, i])).sum()
            total = total + (c[0] * torch.tensor(seeds[2][way, i])).sum()
    for found, wanted in zip((z, h, memory), right, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12)
    given = [x, *states, *model.parameters()]
    found = sum(
        (a * torch.tensor(b)).sum() for a, b in zip((z, h, memory), seeds, strict=True)
    )
    pairs = zip(
        torch.autograd.grad(found, given),
        torch.autograd.grad(total, given),
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("on", [True, False], ids=["engine", "no engine"])
def test_single_precision_is_near_double(on):
    model = torch.nn.LSTM(16, 256)
    double = torch.nn.LSTM(16, 256, dtype=torch.float64)
    double.load_state_dict(model.state_dict())
    x = drawn(12, 4, 16)
    results = []
    with engines.switched(on):
        for module, kind in ((model, torch.float32), (double, torch.float64)):
            given = torch.tensor(x, dtype=kind, requires_grad=True)
            z, (h, memory) = module(given)
            (z.square().sum() + (h * memory).sum()).backward()
            results.append(
                [z.detach(), given.grad, *(p.grad for p in module.parameters())]
            )
    for single, right in zip(*results, strict=True):
        scale = float(right.abs().max())
        np.testing.assert_allclose(
            single.numpy(), right.numpy(), atol=2e-6 * scale, rtol=0
        )


@pytest.mark.parametrize("which", [0, 1, 2])
def test_results_may_be_written_to(which):
    model, x = layer(), torch.tensor(drawn(6, 2, 3), requires_grad=True)

    def loss(write):
        z, (h, memory) = model(x)
        results = [z, h, memory]
        if write:
            results[which].mul_(3)
        else:
            results[which] = results[which] * 3
        return results[0].sum() + (results[1] * results[2]).sum()

    one, other = (torch.autograd.grad(loss(write), x)[0] for write in (True, False))
    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)


def test_states_of_another_precision():
    model, x = layer(), torch.tensor(drawn(6, 2, 3))
    states = [torch.tensor(drawn(1, 2, 5, seed=i)).float() for i in (1, 2)]
    right = model(x, tuple(s.double() for s in states))[0]
    np.testing.assert_allclose(
        model(x, tuple(states))[0].detach().numpy(), right.detach().numpy(), rtol=1e-12
    )


def test_the_course_of_times():
    there = course((3, 2, 2), False)
    assert [(s.here.start, s.here.stop, s.going) for s in there] == [
        (0, 3, 0), (3, 5, 2), (5, 7, 2),
    ]  # fmt: skip
    back = course((3, 2, 2), True)
    assert [(s.here.start, s.here.stop, s.going) for s in back] == [
        (5, 7, 0), (3, 5, 2), (0, 3, 2),
    ]  # fmt: skip
