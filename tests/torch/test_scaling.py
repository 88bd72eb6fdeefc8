"""Large tensors times and over a number, as small ones are."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.torch.tensor.scaling import LEAST

N = LEAST + 3


def leaf(dtype=torch.float32):
    values = np.random.default_rng(0).standard_normal(N)
    return torch.tensor(values, dtype=dtype, requires_grad=True)


NUMBERS = [0.3, -2.5, 0.0, -0.0, 3, True, 1e-40, 1e39, np.inf, np.nan]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_equals_small_ones(number, dtype):
    x, g = leaf(dtype), torch.linspace(-1, 1, N, dtype=dtype)
    for scale in (lambda x: x * number, lambda x: number * x, lambda x: x / number):
        parts = torch.cat([scale(part) for part in x.split(N // 3)])
        z = scale(x)
        torch.testing.assert_close(z, parts, rtol=0, atol=0, equal_nan=True)
        found, right = (torch.autograd.grad(y, x, g)[0] for y in (z, parts))
        torch.testing.assert_close(found, right, rtol=0, atol=0, equal_nan=True)


def test_names_of_their_nodes():
    x = leaf()
    assert type((x * 0.5).grad_fn).__name__ == "MulBackward0"
    assert type((x / 0.5).grad_fn).__name__ == "DivBackward0"


def test_what_is_saved_and_differentiated_again():
    x = leaf()
    z = x * 0.5 / 0.25
    (once,) = torch.autograd.grad((z * z).sum(), x, create_graph=True)
    (twice,) = torch.autograd.grad(once.sum(), x)
    torch.testing.assert_close(once, 8 * x)
    torch.testing.assert_close(twice, torch.full((N,), 8.0))


@pytest.mark.parametrize("scale", [lambda x: x * 0.5, lambda x: x / 2.0])
def test_forward_mode_and_examples(scale):
    x, v = leaf().detach(), torch.linspace(-1, 1, N)
    found = torch.func.jvp(scale, (x,), (v,))
    torch.testing.assert_close(found, (x * 0.5, v * 0.5))
    slope = torch.func.vmap(torch.func.grad(lambda x: scale(x).sum()))
    torch.testing.assert_close(slope(x[None]), torch.full((1, N), 0.5))


@pytest.mark.parametrize("number", [0.5, 1e39, np.inf])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_passes_a_branch_that_was_not_taken(number):
    x = leaf()
    z = torch.where(x > 0, (x * number / 0.25).sqrt(), 0.0).sum()
    (found,) = torch.autograd.grad(z, x)
    assert not found[x <= 0].any()
    kept = torch.where(x > 0, x * number, 0.0)
    torch.testing.assert_close(
        torch.autograd.grad(kept.sum(), x)[0],
        torch.where(x > 0, torch.tensor(number), torch.tensor(0.0)),
    )
