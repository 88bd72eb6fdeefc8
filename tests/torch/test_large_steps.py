"""Large parameters are moved in blocks, to where small ones would be."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.torch.optim.plan import BLOCK, Plan, carry_out
from tests.torch.test_interrupted_steps import OPTIMISERS

ROWS, WIDTH = 5, BLOCK // 2 + 3  # no whole number of blocks


def values(seed):
    draws = np.random.default_rng(seed).standard_normal((ROWS, WIDTH))
    return draws.astype(np.float32)


def moved(make, parameters, gradients):
    """Parameters after steps by gradients, and what is kept for them."""
    optimiser = make(parameters)
    for grads in gradients:
        for p, grad in zip(parameters, grads, strict=True):
            p.grad = grad
        optimiser.step()
    kept = [
        [value for value in optimiser.state[p].values() if np.ndim(value)]
        for p in parameters
    ]
    return parameters, kept


@pytest.mark.parametrize("name", [n for n in OPTIMISERS if n != "SparseAdam"])
@pytest.mark.parametrize("in_columns", [False, True])
def test_a_large_parameter_is_moved_as_its_rows_are(name, in_columns):
    def tensor(array):
        array = np.asfortranarray(array) if in_columns else array.copy()
        return torch.from_numpy(array)

    steps = [values(seed) for seed in (1, 2, 3)]
    whole = torch.nn.Parameter(tensor(values(0)))
    (z,), (kept,) = moved(OPTIMISERS[name], [whole], [[tensor(g)] for g in steps])
    rows = [torch.nn.Parameter(torch.from_numpy(row)) for row in values(0)]
    parts, each = moved(
        OPTIMISERS[name], rows, [[torch.from_numpy(r) for r in g] for g in steps]
    )
    tolerance = {"rtol": 2e-7, "atol": 1e-7}  # a sum by BLAS is rounded once
    np.testing.assert_allclose(
        z.detach().numpy(), [p.detach().numpy() for p in parts], **tolerance
    )
    for i, state in enumerate(kept):
        others = [row[i].numpy() for row in each]
        np.testing.assert_allclose(state.numpy(), others, **tolerance)


def test_calls_go_over_blocks_and_compute_in_one():
    x, g, out = (np.arange(3.0 * BLOCK) for _ in range(3))
    plan = Plan([(np.multiply, g, 2.0, out), (np.add, x, out, x)])
    plan.cut(0, x, [out])
    assert [call[1].size for call in plan] == [BLOCK] * 6
    out[BLOCK:] = 0
    carry_out(plan)
    np.testing.assert_array_equal(x, 3 * g)
    assert not out[BLOCK:].any()


@pytest.mark.parametrize(
    "other",
    [
        lambda x: (np.cumsum, x, 0, None, x),  # not element by element
        lambda x: (np.add, x, x[::-1], x),  # lies otherwise
        lambda x: (np.vecdot, x, x),
        lambda x: (np.add, x, np.ones(1), x),
    ],
)
def test_what_is_not_elementwise_stays_whole(other):
    x = np.ones(3 * BLOCK)
    calls = [(np.multiply, x, 2.0, x), other(x)]
    plan = Plan(calls)
    plan.cut(0, x, [])
    assert [call[0] for call in plan] == [call[0] for call in calls]


def test_a_gradient_that_lies_otherwise_is_laid_as_its_parameter():
    a, b = (torch.nn.Parameter(torch.from_numpy(values(0))) for _ in range(2))
    a.grad = torch.from_numpy(np.asfortranarray(values(1)))
    b.grad = torch.from_numpy(values(1))
    for p in (a, b):
        torch.optim.Adam([p]).step()
    assert torch.equal(a, b)


def derivatives(product):
    """A first derivative by a weight, and the second by it and by what it meets."""
    x, w = (torch.from_numpy(values(seed)[:, :8192].astype(float)) for seed in (2, 3))
    x.requires_grad_(), w.requires_grad_()
    (first,) = torch.autograd.grad(
        product(x[:, :64], w).square().sum(), w, create_graph=True, retain_graph=True
    )
    return [first, *torch.autograd.grad(first.square().sum(), [x, w])]


def test_a_weight_that_a_layer_reads_by_columns_has_a_gradient_in_rows():
    weight = torch.nn.Parameter(torch.from_numpy(values(0)))
    x = torch.from_numpy(values(1)[:, :ROWS].copy())
    torch.nn.functional.linear(x, weight.t()).sum().backward()
    assert weight.receiver.grad.flags.c_contiguous
    found = derivatives(lambda x, w: torch.nn.functional.linear(x.t(), w.t()))
    wanted = derivatives(lambda x, w: x.t() @ w)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-9)
