"""Chances of labels at all times: scaled numbers and logarithms come to the same."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.torch.nn.functional.paths import Paths, between_blanks

# How far apart the chances of labels are: from alike to far below the least number.
SPREADS = [1, 10, 100, 1000]


def drawn(spread, seed, limit=20, n=6, classes=4):
    """Logarithms of chances, and the ways through random labels."""
    random = np.random.default_rng(seed)
    x = spread * random.standard_normal((limit, n, classes))
    logs = x - np.logaddexp.reduce(x, axis=-1, keepdims=True)
    lengths, times = random.integers(0, 7, n), random.integers(1, limit + 1, n)
    targets = random.integers(1, classes, (n, 7))
    labels = between_blanks(targets, lengths.tolist(), 0)
    return logs, Paths(logs, labels, lengths, times, 0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", SPREADS)
def test_both_ways_of_computing_agree(spread, seed):
    logs, paths = drawn(spread, seed)
    here = logs[:, np.arange(len(paths.labels))[:, None], paths.labels]
    right, losses = paths.in_logarithms(here)
    chances, found = paths.passed(logs)
    np.testing.assert_allclose(found, losses, rtol=1e-12, atol=1e-12)
    within = np.arange(len(logs))[:, None] < paths.times
    np.testing.assert_allclose(
        np.where(within[..., None], chances, 0),
        np.where(within[..., None], right, 0),
        atol=1e-9,  # by the logarithms: of large numbers, their last digits
    )


def test_numbers_serve_where_chances_are_usual():
    logs, paths = drawn(1, 0)
    here = logs[:, np.arange(len(paths.labels))[:, None], paths.labels]
    losses = paths.in_logarithms(here)[1]
    with np.errstate(all="ignore"):
        right = paths._scaled(here)[2]
    np.testing.assert_array_equal(right, np.isfinite(losses))


@pytest.mark.parametrize("gap", [100, 800, 5000])
def test_what_is_all_but_impossible(gap):
    """Each time another label is all but certain: the loss is the sum of the gaps."""
    limit = 40
    x = np.zeros((limit, 1, 3))
    x[..., 2] = gap
    x = torch.tensor(x, requires_grad=True)
    lengths = torch.tensor([limit]), torch.tensor([1])
    loss = torch.nn.functional.ctc_loss(
        x.log_softmax(-1), torch.tensor([[1]]), *lengths, reduction="sum"
    )
    # Ways of blanks and one label, once or several times in a row.
    ways = limit * (limit + 1) // 2
    assert float(loss) == pytest.approx(limit * gap - np.log(ways), rel=1e-12)
    (x_bar,) = torch.autograd.grad(loss, x)
    said = x_bar[..., 1].sum()
    longest = sum(n * (limit + 1 - n) for n in range(1, limit + 1)) / ways
    assert float(said) == pytest.approx(-longest, rel=1e-9)
