"""Values and gradients at edges, as PyTorch 2.13 has them, which are written here.

An edge is a tie, a zero, a repeated index, a bound of a parameter, a type that few use.
"""

import math

import numpy as np
import pytest

import lantern.torch as torch

F = torch.nn.functional
inf, nan = math.inf, math.nan


def t(*numbers):
    """A tensor of float32."""
    return torch.tensor(numbers, dtype=torch.float32)


def i(*numbers):
    """A tensor of int64."""
    return torch.tensor(numbers)


pixels = i(0, 100, 200, 255).byte().reshape(1, 1, 2, 2)
many = torch.arange(0, 256, 4).byte().reshape(1, 1, 8, 8)


def slope(function, *numbers):
    """The gradients of the sum of a function's values."""
    operands = [
        x.float().requires_grad_() if isinstance(x, torch.Tensor) else x
        for x in numbers
    ]
    tracked = [x for x in operands if isinstance(x, torch.Tensor)]
    z = function(*operands)
    found = torch.autograd.grad(z, tracked, torch.ones_like(z))
    return [g.tolist() for g in found]


def power(x, y):
    return x**y


# What is evaluated, and behind the arrow what PyTorch has.
EDGES = """
slope(torch.median, t(1, 2, 2, 2, 3))
    -> [[0.0, 0.3333333432674408, 0.3333333432674408, 0.3333333432674408, 0.0]]
slope(torch.median, t(1, nan, 2, nan)) -> [[0.0, 0.5, 0.0, 0.5]]
slope(torch.nanmedian, t(1, nan, 2, 2, 3)) -> [[0.0, 0.0, 0.5, 0.5, 0.0]]
slope(torch.max, t(1, 3, 3)) -> [[0.0, 0.5, 0.5]]
slope(torch.min, t(1, nan, 1, nan)) -> [[0.0, 0.5, 0.0, 0.5]]
slope(lambda x: x.amax(0), t(1, 3, 3)) -> [[0.0, 0.5, 0.5]]
slope(lambda x: x.quantile(0.5), t(1, 2, 2, 2, 3)) -> [[0.0, 0.0, 1.0, 0.0, 0.0]]
slope(power, t(0, 0, 0, 0, 0, 0), t(-2, -0.5, 0, 0.5, 1, 2))
    -> [[-inf, -inf, 0.0, inf, 1.0, 0.0], [-inf, -inf, 0.0, 0.0, 0.0, 0.0]]
slope(power, t(nan, inf, -inf, 1, -1), t(0, 0, 0, 0, 0))
    -> [[0.0, 0.0, 0.0, 0.0, 0.0], [nan, inf, nan, 0.0, nan]]
slope(power, t(-2, -2, 2, inf), t(2, -1, inf, 2))
    -> [[-4.0, -0.25, inf, inf], [nan, nan, inf, inf]]
slope(power, t(nan, 0, inf), 0) -> [[0.0, 0.0, 0.0]]
slope(power, t(0, 0, 4), 0.5) -> [[inf, inf, 0.25]]
slope(power, t(0, 0, 4), -1) -> [[-inf, -inf, -0.0625]]
slope(power, 0, t(-1, 0, 2)) -> [[-inf, 0.0, 0.0]]
slope(power, 0.0, t(-1, 0, 2)) -> [[-inf, 0.0, 0.0]]
slope(power, 2, t(-1, 0, inf, -inf))
    -> [[0.3465735912322998, 0.6931471824645996, inf, 0.0]]
slope(torch.pow, t(0, -0.0), t(-1, -1)) -> [[-inf, -inf], [-inf, inf]]
torch.ones(3).scatter_(0, i(0, 0, 1), t(2, 3, 4), reduce='multiply').tolist()
    -> [6.0, 4.0, 1.0]
torch.ones(3).scatter_(0, i(0, 0, 1), 3.0, reduce='multiply').tolist()
    -> [9.0, 3.0, 1.0]
torch.ones(3).bfloat16().scatter_(0, i(0, 0, 1), 3.0, reduce='add').tolist()
    -> [7.0, 4.0, 1.0]
torch.ones(3).half().scatter_(0, i(0, 0, 1), 3, reduce='add').tolist()
    -> [7.0, 4.0, 1.0]
torch.ones(3).scatter(0, i(0, 0, 1), 3.0, reduce='add').tolist()
    -> [7.0, 4.0, 1.0]
i(1, 2).scatter(0, i(1, 1, 1), i(2, 3, 4), reduce='multiply').tolist()
    -> [1, 48]
torch.ones(2).index_add(0, i(1, 1), t(2, 3)).tolist() -> [1.0, 6.0]
torch.ones(2).index_reduce(0, i(1, 1), t(2, 3), 'prod').tolist()
    -> [1.0, 6.0]
torch.ones(2).index_put((i(1, 1),), t(2, 3), accumulate=True).tolist()
    -> [1.0, 6.0]
torch.ones(2).put(i(1, 1), t(2, 3), accumulate=True).tolist()
    -> [1.0, 6.0]
torch.ones(2).scatter_reduce(0, i(1, 1), t(2, 4), 'mean').tolist()
    -> [1.0, 2.3333332538604736]
F.avg_pool1d(i(7, -8, -3, 2, 5, -5)[None, None], 2).tolist() -> [[[0, 0, 0]]]
F.avg_pool1d(i(7, -8, -3, 2, 5, -5)[None, None], 2, 2, 1, False, False).tolist()
    -> [[[7, -5, 3, -5]]]
F.avg_pool2d(torch.arange(16).reshape(1, 1, 4, 4), 2, divisor_override=3).tolist()
    -> [[[[3, 6], [14, 16]]]]
F.avg_pool3d(torch.arange(-8, 0).reshape(1, 1, 2, 2, 2), 2).tolist() -> [[[[[-4]]]]]
F.interpolate(pixels, 3, mode='bilinear').tolist()
    -> [[[[0, 50, 100], [100, 139, 178], [200, 228, 255]]]]
F.interpolate(pixels, 3, mode='bicubic').tolist()
    -> [[[[0, 35, 96], [98, 139, 182], [212, 243, 255]]]]
F.interpolate(pixels, 4).flatten().tolist()
    -> 2 * [0, 0, 100, 100] + 2 * [200, 200, 255, 255]
F.interpolate(many, 3, mode='bilinear', antialias=True).tolist()
    -> [[[[39, 49, 59], [116, 126, 136], [193, 203, 213]]]]
torch.div(torch.tensor([7, -7, 2**53 + 1]), 2, rounding_mode='trunc').tolist()
    -> [3, -3, 4503599627370496]
torch.distributions.Geometric(t(1, 0.5)).log_prob(t(0, 0)).tolist()
    -> [0.0, -0.6931471824645996]
torch.distributions.Geometric(t(1)).log_prob(t(1)).tolist() -> [-inf]
torch.distributions.NegativeBinomial(2.0, t(0)).log_prob(t(0)).tolist()
    -> [-2.384186643666908e-07]
torch.distributions.Bernoulli(t(0, 1)).entropy().tolist()
    -> [0.0, 1.192093321833454e-07]
slope(lambda x, y: x.clamp(min=y), t(1, 2, 3), t(2, 2, 2))
    -> [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]
slope(lambda x, y: x.clamp(max=y), t(1, 2, 3), t(2, 2, 2))
    -> [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]
slope(torch.clamp, t(1, 2, 3, 2, 1), t(1, 0, 2, 2, 2), t(2, 2, 2, 2, 1))
    -> [[0.5, 0.5, 0.0, 1.0, 0.0], [0.5, 0.0, 0.0, 0.0, 0.0], [0.0, 0.5, 1.0, 0.0, 1.0]]
slope(lambda x: x.clamp(1, 2), t(0, 1, 1.5, 2, nan)) -> [[0.0, 0.0, 1.0, 0.0, 0.0]]
slope(lambda x: torch.clamp_min(x, 1), t(0, 1, 2)) -> [[0.0, 0.0, 1.0]]
slope(torch.fmax, t(1, 2, nan), t(2, 2, 1)) -> [[0.0, 0.5, 0.0], [1.0, 0.5, 1.0]]
slope(torch.fmin, t(1, 2, nan), t(2, 2, 1)) -> [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]
slope(torch.maximum, t(1, 2), t(2, 2)) -> [[0.0, 0.5], [1.0, 0.5]]
slope(lambda x, y: x.div(y, rounding_mode='trunc'), t(1, 0), t(0, 0))
    -> [[0.0, 0.0], [0.0, 0.0]]
torch.lerp(t(0.1), t(inf), 0.75).tolist() -> [nan]
torch.lerp(t(0.1), t(0.7), 1.0).tolist() -> [0.699999988079071]
torch.lerp(t(-inf), t(1), t(0.75)).tolist() -> [-inf]
torch.heaviside(t(nan, 0), t(2)).tolist() -> [0.0, 2.0]
torch.trapezoid(i(200, 100, 50).byte()).tolist() -> 225.0
torch.cumulative_trapezoid(i(3, 4, 6), i(0, 1, 4)).tolist() -> [3.5, 18.5]
torch.arange(end=3).tolist() -> [0, 1, 2]
torch.full((2,), -1, dtype=torch.uint8).tolist() -> [255, 255]
i(-3).scatter(0, i(0), 2.5, reduce='add').tolist() -> [-1]
torch.logsumexp(torch.tensor([3j, 3j, 4j]), 0).imag.item() -> -2.9633123874664307
torch.einsum(i(200, 100).byte()[None], [0, 1], [0]).tolist() -> [300]
"""
CASES = [
    case.split("->") for case in EDGES.replace("\n    ->", "->").split("\n") if case
]


def leaves(z):
    """The numbers in lists, in order."""
    return [x for part in z for x in leaves(part)] if isinstance(z, list) else [z]


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_has_pytorchs_values(source, expected):
    found, wanted = eval(source), eval(expected)
    np.testing.assert_allclose(leaves(found), leaves(wanted), rtol=1e-5, atol=1e-6)


def test_triangles_of_complex_matrices_have_pytorchs_pivots_and_gradient():
    a = torch.tensor([[1 + 1j, 2 - 1j, 0.5j], [3j, 1 + 0j, 1 - 1j]], requires_grad=True)
    p, low, high = torch.linalg.lu(a)
    (low.abs().sum() + (high * (1 + 2j)).real.sum()).backward()
    assert p.real.tolist() == [[0, 1], [1, 0]]
    expected = [
        [(-0.7643 - 1.0976j), (1 - 2j), (1 - 2j)],
        [(0.8889 - 1.3794j), -1.6667j, -1.6667j],
    ]
    np.testing.assert_allclose(a.grad.numpy(), expected, atol=1e-4)


def test_the_direction_of_complex_numbers_has_pytorchs_gradient():
    z = torch.tensor([1 + 2j, 0j, -3j], requires_grad=True)
    (z.sgn() * torch.tensor([1 + 1j, 2 - 1j, 0.5j])).real.sum().backward()
    expected = [0.5367 - 0.2683j, 0, 0]
    np.testing.assert_allclose(z.grad.numpy(), expected, atol=1e-4)


REFUSED = """
ValueError | F.instance_norm(torch.ones(1, 2, 1)) | more than 1 spatial element
ValueError | torch.nn.InstanceNorm2d(2)(torch.ones(1, 2, 1, 1)) | more than 1 spatial
ValueError | torch.nn.GroupNorm(2, 2)(torch.ones(1, 2, 1)) | more than 1 value per
ValueError | F.local_response_norm(torch.ones(2, 3), 2) | 3D or higher
ValueError | torch.distributions.Geometric(t(0)) | to be positive
ValueError | torch.distributions.NegativeBinomial(2.0, t(1)) | HalfOpenInterval
ValueError | torch.distributions.Poisson(t(1)).log_prob(t(inf)) | within the support
NotImplementedError | F.avg_pool2d(torch.ones(1, 1, 2, 2).int(), 2) | for 'Int'
NotImplementedError | F.adaptive_avg_pool1d(torch.ones(1, 1, 2).long(), 2) | 'Long'
NotImplementedError | F.interpolate(pixels[0], 3, mode='linear') | 'Byte'
NotImplementedError | F.interpolate(torch.ones(1, 1, 2).long(), 3) | for 'Long'
NotImplementedError | torch.rand(2, dtype=torch.int64) | not implemented for 'Long'
NotImplementedError | torch.randn_like(torch.arange(2)) | not implemented for 'Long'
NotImplementedError | torch.arange(2).normal_() | not implemented for 'Long'
RuntimeError | torch.randint(0, 300, (3,), dtype=torch.uint8) | out of bounds
RuntimeError | torch.randint_like(torch.ones(2).bool(), high=5) | out of bounds
RuntimeError | torch.zeros(2).byte().random_(300) | out of bounds
RuntimeError | torch.randint(5, 5, (2,)) | to be less than
RuntimeError | torch.full((2,), nan, dtype=torch.int64) | without overflow
RuntimeError | torch.full((2,), 300, dtype=torch.uint8) | without overflow
RuntimeError | F.dropout(torch.arange(3), 0.3) | can't be cast
NotImplementedError | torch.arange(2, dtype=torch.bool) | for 'Bool'
NotImplementedError | F.layer_norm(torch.arange(3), (3,)) | for 'Long'
NotImplementedError | torch.arange(3).logcumsumexp(0) | for 'Long'
RuntimeError | torch.randperm(300, dtype=torch.uint8) | too large
RuntimeError | torch.randperm(-1) | negative dimension
RuntimeError | torch.zeros(2).bernoulli_(1.5) | to be in
RuntimeError | torch.poisson(t(-1)) | non-negative
TypeError | torch.randint_like(t(1), low=5) | high
TypeError | torch.randint(5.0, (2,)) | must be int
"""


@pytest.mark.parametrize("case", [c for c in REFUSED.split("\n") if c])
def test_refuses_what_pytorch_refuses(case):
    error, source, text = case.split(" | ")
    with pytest.raises(eval(error), match=text):
        eval(source)


DRAWS = """
torch.randint_like(x, 5); torch.randint_like(x, high=5); torch.randint_like(x, 2, 5)
torch.randint_like(x, low=2, high=5); torch.randint_like(x, 2, high=5)
torch.randint_like(input=x, high=5); torch.randint(high=5, size=(2, 3))
torch.randint(5, (2, 3)); torch.randint(2, 5, (2, 3)); torch.randint(5, size=(2, 3))
torch.randint(low=2, high=5, size=(2, 3)); torch.randint(2, high=5, size=(2, 3))
torch.randint(5, (2, 3), out=torch.zeros(2, 3, dtype=torch.int64))
x.clone().random_(5); x.clone().random_(2, 5); x.clone().random_(to=5)
"""


@pytest.mark.parametrize("source", DRAWS.strip().replace("\n", "; ").split("; "))
def test_draws_whole_numbers_up_to_a_bound(source):
    torch.manual_seed(0)
    x = torch.full((2, 3), -1.0)
    z = eval(source, {"torch": torch, "x": x})
    assert z.shape == (2, 3)
    assert z.min() >= 0
    assert z.max() < 5


def test_draws_all_numbers_of_a_type():
    torch.manual_seed(0)
    drawn = torch.zeros(4000, dtype=torch.uint8).random_()
    assert (int(drawn.min()), int(drawn.max())) == (0, 255)
    assert torch.zeros(50, dtype=torch.bool).random_().float().mean() not in (0, 1)
    assert torch.zeros(50, dtype=torch.int64).random_(-5, None).max() > 2**50
