"""Distributions against PyTorch's: densities, moments, shapes; draws by their means."""

import numpy as np
import pytest

import lantern.torch as ours
from tests.torch.compared import theirs

# A distribution d, of x: numbers as a tensor of double precision; and a value of it.
DISTRIBUTIONS = """
Normal(x(0, 1), x(1, 2)) | x(0.3, 0.5)
Normal(0.0, 1.0) | x(0.3)
Laplace(x(0, 1), x(1, 2)) | x(0.3, 0.5)
Cauchy(x(0, 1), x(1, 2)) | x(0.3, 0.5)
Gumbel(x(0, 1), x(1, 2)) | x(0.3, 0.5)
HalfNormal(x(1, 2)) | x(0.3, 0.5)
StudentT(x(3, 4), x(0, 1), x(1, 2)) | x(0.3, 0.5)
Uniform(x(0, -1), x(1, 2)) | x(0.3, 0.5)
Exponential(x(1, 2)) | x(0.3, 0.5)
Gamma(x(1, 2), x(2, 0.5)) | x(0.3, 0.5)
Chi2(x(3, 2)) | x(0.3, 0.5)
Beta(x(1, 2), x(2, 0.5)) | x(0.3, 0.5)
Dirichlet(x(1, 2, 3)) | x(0.2, 0.5, 0.3)
MultivariateNormal(x(0, 1), m) | x(0.3, 0.5)
MultivariateNormal(x(0, 1), precision_matrix=m) | x(0.3, 0.5)
MultivariateNormal(x(0, 1), scale_tril=m.tril()) | x(0.3, 0.5)
Bernoulli(x(0.2, 0.7)) | x(1, 0)
Bernoulli(logits=x(0.2, 0.7)) | x(1, 0)
Geometric(x(0.2, 0.7)) | x(1, 0)
Poisson(x(0.2, 0.7)) | x(1, 2)
Binomial(5, x(0.2, 0.7)) | x(1, 2)
NegativeBinomial(5, logits=x(0.2, 0.7)) | x(1, 2)
Categorical(x(0.2, 0.7, 0.4)) | x(1, 2)
Categorical(logits=x(0.2, 0.7, 0.4)) | x(1, 2)
OneHotCategorical(x(0.2, 0.7, 0.4)) | x(0, 1, 0)
Multinomial(3, x(0.2, 0.7, 0.1)) | x(0, 2, 1)
Independent(d.Normal(x(0, 1), x(1, 2)), 1) | x(0.3, 0.5)
LogNormal(x(0, 1), x(1, 2)) | x(0.3, 0.5)
TransformedDistribution(d.Normal(x(0, 1), x(1, 2)), [d.AffineTransform(1.0, 2.0), \
d.TanhTransform()]) | x(0.3, 0.5)
TransformedDistribution(d.Uniform(x(0, 0), x(1, 1)), [d.SigmoidTransform().inv, \
d.AffineTransform(x(0, 1), x(2, 3))]) | x(0.3, 0.5)
MixtureSameFamily(d.Categorical(x(0.3, 0.7)), d.Normal(x(0, 1), x(1, 2))) | x(0.3, 0.5)
"""
ASKED = """
d.log_prob(v); d.entropy(); d.perplexity(); d.mean; d.variance; d.stddev; d.mode
d.cdf(v); d.icdf(v); d.batch_shape; d.event_shape; d.has_rsample
d.sample((4, 3)).shape; d.rsample((4,)).shape; d.expand((5, *d.batch_shape)).mean
d.enumerate_support(); torch.distributions.kl_divergence(d, d); d.probs; d.logits
"""
CASES = DISTRIBUTIONS.replace("\\\n", "").strip().splitlines()


def made(torch, case):
    def x(*numbers):
        return torch.tensor([float(n) for n in numbers], dtype=torch.float64)

    m = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    names = {"d": torch.distributions, "x": x, "m": m}
    call, value = case.split(" | ")
    return eval(f"d.{call}", names), eval(value, names)


def asked(torch, case, question):
    """What a distribution says; None for what it does not know."""
    d, v = made(torch, case)
    try:
        z = eval(question, {"torch": torch, "d": d, "v": v})
    except (NotImplementedError, AttributeError):
        return None
    return np.asarray(z.detach() if hasattr(z, "detach") else z)


@pytest.mark.parametrize("case", CASES)
def test_says_what_pytorchs_says(case):
    known = 0
    for question in ASKED.replace("\n", ";").split(";"):
        if question.strip():
            mine = asked(ours, case, question.strip())
            if mine is not None:
                other = asked(theirs, case, question.strip())
                assert other is not None, question
                np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)
                known += 1
    assert known > 6


@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_mean_and_the_spread(case):
    ours.manual_seed(0)
    d, _ = made(ours, case)
    try:
        mean, variance = d.mean, d.variance
    except NotImplementedError:
        return
    drawn = d.sample((20_000,)).double()
    assert not drawn.requires_grad
    if not mean.isfinite().all() or not variance.isfinite().all():
        return
    off = ((drawn.mean(0) - mean) / (variance / 20_000).sqrt()).nan_to_num(0).abs()
    assert (off < 5).all(), off


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Gamma", "Beta", "Uniform"])
def test_draws_have_the_derivative_of_their_mean(name):
    ours.manual_seed(1)
    a = ours.tensor(1.5, dtype=ours.float64, requires_grad=True)
    b = ours.tensor(2.5, dtype=ours.float64, requires_grad=True)
    d = getattr(ours.distributions, name)(a, b)
    (along,) = ours.autograd.grad(d.rsample((40_000,)).mean(), a)
    (exact,) = ours.autograd.grad(d.mean, a)
    assert float(along) == pytest.approx(float(exact), rel=0.05)


@pytest.mark.parametrize(
    "call",
    [
        "Normal(t([0.0]), t([-1.0]))",
        "Bernoulli(t([1.5]))",
        "Categorical(t([-0.5, 1.0]))",
        "Categorical()",
        "Uniform(t([1.0]), t([0.0]))",
        "Exponential(t([1.0])).log_prob(t([-1.0]))",
        "Bernoulli(t([0.5])).log_prob(t([0.5]))",
        "MultivariateNormal(t([0.0]))",
    ],
)
def test_what_cannot_be_is_a_value_error(call):
    for torch in (ours, theirs):
        with pytest.raises(ValueError):
            eval(f"d.{call}", {"d": torch.distributions, "t": torch.tensor})
    ours.distributions.Normal(0.0, ours.tensor([-1.0]), validate_args=False)


def test_unknown_divergences_and_names_say_so():
    d = ours.distributions
    with pytest.raises(NotImplementedError, match="Normal and Poisson"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0))
    with pytest.raises(AttributeError, match="Did you mean: 'Normal'"):
        _ = d.Norml
