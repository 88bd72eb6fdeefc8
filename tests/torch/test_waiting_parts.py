"""Cotangents of parts of an array wait for one another, and come to the same sum."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.eager import recorder
from lantern.eager.parts import LEAST, Parts, place

SHAPE = 16, 64, 48


def leaf():
    values = np.random.default_rng(0).standard_normal(SHAPE).astype("f")
    return torch.tensor(values, requires_grad=True)


def square(x):
    return (x * x).sum()


def split(y):
    q, k, v = y.split(16, dim=2)
    return (q + k * v).sum()


def one_part(y):
    return square(y.split([20, 20, 8], dim=-1)[1])


def places(y):
    return square(y[-2] * y[0] + y[1])


def turned(y):
    q, k, v = y.view(16, 64, 3, 16).permute(2, 0, 1, 3)
    return (q * k * v).sum()


def apart(y):
    return square(y[:, :20] * y[:, 40:60])


def overlapping(y):
    return square(y[:, :40] * y[:, 10:50])


def twice(y):
    return square(y[..., :30]) + square(y[..., :30])


def along_two_axes(y):
    return square(y[:, :32]) + square(y[..., 24:]) + square(y[2:9, :40])


def and_all(y):
    q, k = y.chunk(2, -1)
    return square(q * k) + square(y)


def through_a_branch(y):
    q, k = y.chunk(2, -1)
    return torch.where(y > 0, y.sqrt(), 0).sum() + square(q * k)


def stepping(y):
    return square(y[:, :40]) + square(y[:, ::2])


PROGRAMS = [
    *(split, one_part, places, turned, apart, overlapping, twice, along_two_axes),
    *(and_all, through_a_branch, stepping),
]


@pytest.fixture(params=PROGRAMS)
def program(request):
    return request.param


def test_the_cases_are_large_enough():
    assert np.prod(SHAPE) / 6 >= LEAST


def test_equals_sums_that_do_not_wait(program, monkeypatch):
    x = leaf()
    (found,) = torch.autograd.grad(program(x * 1), x)
    monkeypatch.setattr(recorder, "LEAST", np.inf)
    (right,) = torch.autograd.grad(program(x * 1), x)
    torch.testing.assert_close(found, right, rtol=1e-6, atol=1e-6)


def test_parts_do_wait(monkeypatch):
    seen = []
    whole = Parts.whole

    def noting(parts):
        seen.append((parts.axis, parts.start, parts.stop))
        return whole(parts)

    monkeypatch.setattr(Parts, "whole", noting)
    split(leaf() * 1).backward()
    assert seen == [(2, 0, 48)]


def test_hooks_and_kept_gradients_see_the_whole(program):
    x, seen = leaf(), []
    y = x * 1
    y.register_hook(lambda grad: seen.append(grad) or grad * 2)
    y.retain_grad()
    program(y).backward()
    (right,) = torch.autograd.grad(program(x * 1), x)
    torch.testing.assert_close(seen[0], right)
    torch.testing.assert_close(y.grad, 2 * right)
    torch.testing.assert_close(x.grad, 2 * right)


def test_what_is_asked_for_is_whole(program):
    x = leaf()
    y = x * 1
    found = torch.autograd.grad(program(y), [y, x])
    for grad in found:
        torch.testing.assert_close(grad, torch.autograd.grad(program(x * 1), x)[0])


def test_a_graph_that_is_kept(program):
    x = leaf()
    z = program(x * 1)
    once = torch.autograd.grad(z, x, retain_graph=True)
    again = torch.autograd.grad(z, x, create_graph=True)
    torch.testing.assert_close(once, again)


@pytest.mark.parametrize(
    ("index", "found"),
    [
        ((slice(None), slice(8, 16), ...), (1, 8, 16)),
        ((..., slice(None, -8)), (2, 0, 40)),
        (3, (0, 3, 4)),
        ((..., -1), (2, 47, 48)),
        ((slice(None), slice(0, 8), 3), None),
        (slice(None, None, 2), None),
        (slice(None, None, -1), None),
        (slice(3, 3), None),
        ((None, 3), None),
        (..., None),
        (slice(None), None),
    ],
)
def test_places(index, found):
    assert place(index, SHAPE) == found
