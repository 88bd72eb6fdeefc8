"""Distributions against PyTorch's: densities, moments, shapes; draws by their means."""

import itertools

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
HalfCauchy(x(1, 2)) | x(0.3, 0.5)
InverseGamma(x(3, 4), x(2, 0.5)) | x(0.3, 0.5)
Kumaraswamy(x(1.5, 2), x(2, 3)) | x(0.3, 0.5)
Pareto(x(1, 2), x(3, 4)) | x(1.3, 2.5)
Weibull(x(1, 2), x(3, 4)) | x(0.3, 0.5)
LogisticNormal(x(0, 1), x(1, 2)) | x(0.2, 0.5, 0.3)
RelaxedBernoulli(x(0.5), x(0.2, 0.7)) | x(0.3, 0.5)
RelaxedBernoulli(x(0.5), logits=x(0.2, 0.7)) | x(0.3, 0.5)
RelaxedOneHotCategorical(x(0.5), x(0.2, 0.7, 0.1)) | x(0.2, 0.5, 0.3)
FisherSnedecor(x(3, 4), x(5, 6)) | x(0.3, 0.5)
ContinuousBernoulli(x(0.2, 0.5, 0.9)) | x(0.3, 0.5, 0.6)
VonMises(x(0, 1), x(1, 2)) | x(0.3, 0.5)
GeneralizedPareto(0.5, 1.5, 0.25) | x(1.5).float()
LowRankMultivariateNormal(x(0, 1), m[:, :1], x(1, 2)) | x(0.3, 0.5)
Wishart(x(5, 6), m) | m
LKJCholesky(2, x(1, 2)) | torch.linalg.cholesky(m / 2 + torch.diag(x(0, 0.5)))
TransformedDistribution(d.Normal(x(0, 1, 2), x(1, 2, 1)), \
[d.CorrCholeskyTransform()]) | torch.linalg.cholesky(m3)
TransformedDistribution(d.Independent(d.Normal(x(0, 1), x(1, 2)), 1), \
[d.StickBreakingTransform()]) | x(0.2, 0.5, 0.3)
MixtureSameFamily(d.Categorical(x(0.3, 0.7)), d.Normal(x(0, 1), x(1, 2))) | x(0.3, 0.5)
"""
ASKED = """
d.log_prob(v); d.entropy(); d.perplexity(); d.mean; d.variance; d.stddev; d.mode
d.cdf(v); d.icdf(v); d.batch_shape; d.event_shape; d.has_rsample
d.sample((4, 3)).shape; d.rsample((4,)).shape; d.expand((5, *d.batch_shape)).mean
d.enumerate_support(); torch.distributions.kl_divergence(d, d); d.probs; d.logits
"""
CASES = DISTRIBUTIONS.replace("\\\n", "").strip().splitlines()


@pytest.fixture(autouse=True)
def _checked():
    """Libraries switch checks off when they are imported."""
    for torch in (ours, theirs):
        torch.distributions.Distribution.set_default_validate_args(True)


def made(torch, case):
    def x(*numbers):
        return torch.tensor([float(n) for n in numbers], dtype=torch.float64)

    m = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    m3 = torch.eye(3, dtype=torch.float64) * 0.8 + 0.2
    names = {"d": torch.distributions, "x": x, "m": m, "m3": m3, "torch": torch}
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


@pytest.mark.filterwarnings("ignore:Singular sample")  # PyTorch's, of Wishart
@pytest.mark.parametrize("case", CASES)
def test_says_what_pytorchs_says(case):
    known = 0
    for question in ASKED.replace("\n", ";").split(";"):
        if question.strip():
            mine = asked(ours, case, question.strip())
            if mine is not None:
                other = asked(theirs, case, question.strip())
                assert other is not None, question
                if (question.strip(), case[:5]) == ("d.mode", "Kumar"):
                    continue  # PyTorch's is nan for all parameters
                np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)
                known += 1
    assert known > 4


@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_mean_and_the_spread(case):
    ours.manual_seed(0)
    d, _ = made(ours, case)
    if isinstance(d, ours.distributions.VonMises):
        return  # its variance is one of directions
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


def test_divergences_where_a_probability_is_0():
    pairs = [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.9, 0.1]]
    for p, q in itertools.product(pairs, pairs):
        found = []
        for torch in (ours, theirs):
            d, p_, q_ = torch.distributions, torch.tensor(p), torch.tensor(q)
            one = d.kl_divergence(d.Bernoulli(p_), d.Bernoulli(q_))
            found.append([*one, d.kl_divergence(d.Categorical(p_), d.Categorical(q_))])
        np.testing.assert_allclose(*[[float(x) for x in row] for row in found], 1e-5)


@pytest.mark.parametrize("name", ["probs", "logits"])
def test_continuous_bernoulli_at_its_limits(name):
    limits = [0.0, 1.0, 0.3] if name == "probs" else [-1e38, 1e38, -200.0]
    found = []
    for torch in (ours, theirs):
        p = torch.tensor(limits, requires_grad=True)
        d = torch.distributions.ContinuousBernoulli(**{name: p})
        z = d.log_prob(torch.tensor([0.0, 1.0, 0.5]))
        z.sum().backward()
        row = z, d.entropy(), d.mean, d.variance, p.grad
        found.append([x.detach().tolist() for x in row])
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_of_small_concentrations(dtype):
    """Near 0 or 1, never at them; their gradients are those of the moments."""
    torch = ours
    torch.manual_seed(0)
    a = torch.full((40000,), 0.02, dtype=getattr(torch, dtype), requires_grad=True)
    drawn = torch.distributions.Beta(a, 0.01).rsample()
    assert drawn.min() > 0
    assert drawn.max() < 1
    assert drawn.mean().item() == pytest.approx(2 / 3, abs=0.01)
    drawn.sum().backward()  # of a / (a + b): b / (a + b) ** 2
    assert a.grad.mean().item() == pytest.approx(0.01 / 0.03**2, rel=0.05)


def test_unknown_divergences_and_names_say_so():
    d = ours.distributions
    with pytest.raises(NotImplementedError, match="Normal and Poisson"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0))
    with pytest.raises(AttributeError, match="Did you mean: 'Normal'"):
        _ = d.Norml


# Of a constraint, what makes any numbers values of it.
CONSTRAINTS = """
real positive nonnegative unit_interval simplex lower_cholesky positive_definite
corr_cholesky greater_than(1.0) greater_than_eq(1.0) less_than(2.0) interval(-1.0,3.0)
half_open_interval(0.0,2.0) independent(positive,1) real_vector
cat([positive,real],0,[1,2]) stack([positive,real,unit_interval],0)
""".split()


@pytest.mark.parametrize(
    ("text", "registry"),
    [
        (text, registry)
        for text in CONSTRAINTS
        for registry in ("transform_to", "biject_to")
        if registry == "transform_to"
        or text not in ("lower_cholesky", "positive_definite")
    ],
)
def test_any_numbers_become_values_of_a_constraint(text, registry):
    x = np.array([0.3, -0.7, 1.1])
    if "lower_" in text or "definite" in text:
        x = np.array([[0.3, -0.7], [1.1, 0.2]])
    found = []
    for torch in (ours, theirs):
        d = torch.distributions
        constraint = eval(text, dict(vars(d.constraints)))
        t = getattr(d, registry)(constraint)
        y = t(torch.tensor(x))
        assert bool(constraint.check(y).all())
        row = [y, t.inv(y)]
        if t.bijective:
            row.append(t.log_abs_det_jacobian(torch.tensor(x), y))
            row.append(torch.ones(t.inverse_shape(y.shape)))
        row.append(torch.tensor([t.domain.event_dim, t.codomain.event_dim]))
        found.append([np.asarray(z) for z in row])
    assert len(found[0]) == len(found[1])
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)


def test_a_subclass_is_expanded_and_checked_as_pytorchs():
    for torch in (ours, theirs):

        class Own(torch.distributions.Normal):
            def __init__(self, both):
                super().__init__(both, both)

        with pytest.raises(NotImplementedError, match=r"custom .expand"):
            Own(torch.tensor(1.0)).expand((2,))
        x = torch.distributions.Normal(torch.zeros(3), 1.0)
        assert type(x.expand((2, 3), _instance=Own(torch.tensor(1.0)))) is Own
        for wrong in (torch.zeros(2), torch.zeros(3, 2)):
            with pytest.raises(ValueError, match="not broadcastable"):
                x.log_prob(wrong)


GIVEN = {
    "Bernoulli": "v", "Binomial": "3, v", "Geometric": "v", "NegativeBinomial": "3, v",
    "Categorical": "v", "OneHotCategorical": "v", "Multinomial": "3, v",
    "ContinuousBernoulli": "v", "MultivariateNormal": "v, m", "Wishart": "d, m",
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_parameters_that_follow_are_found_in_the_class(name):
    """So that subclasses can ask ``super()`` for them, as PyTorch's libraries do."""
    rows = []
    for library in (ours, theirs):
        space = {"v": library.tensor([0.5, 0.25]), "d": library.tensor(3.0)}
        space["m"] = library.tensor([[2.0, 0.5], [0.5, 1.0]])
        kind = getattr(library.distributions, name)
        mine = type("Mine", (kind,), {})
        one = eval(f"kind({GIVEN[name]})", space | {"kind": mine})
        follows = "scale_tril" if "m" in GIVEN[name] else "logits"
        rows.append(getattr(super(mine, one), follows).numpy())
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-6, atol=1e-7)


MODES = {
    "Beta": "v * 8, v * 4", "Dirichlet": "v * 8", "Exponential": "v", "Geometric": "v",
    "Binomial": "7, v", "NegativeBinomial": "7, v", "HalfNormal": "v",
    "Uniform": "v - 1, v",
}  # fmt: skip


@pytest.mark.parametrize("name", MODES)
def test_modes_are_pytorchs(name):
    found = [
        eval(f"D.{name}({MODES[name]})", {"D": library.distributions, "v": v}).mode
        for library in (ours, theirs)
        for v in [library.tensor([0.5, 0.05, 0.75])]
    ]
    np.testing.assert_allclose(found[0].numpy(), found[1].numpy())


# Of each family two, in a batch of two.
FAMILIES = """
Beta(x(1, 2.5), x(1.5, 3)) | Beta(x(2, 1.5), x(0.5, 3.5))
ContinuousBernoulli(x(0.1, 0.5)) | ContinuousBernoulli(logits=x(0.3, 2))
Exponential(x(1, 2)) | Exponential(x(0.5, 4))
Gamma(x(1, 2.5), x(1.5, 3.5)) | Gamma(x(3, 0.5), x(0.5, 2))
Chi2(x(1, 2.5)) | Chi2(x(3, 4))
Gumbel(x(-2, 1), x(1, 2)) | Gumbel(x(0.5, 1), x(2, 1.5))
Laplace(x(-2, 1), x(1, 2)) | Laplace(x(0.5, 1), x(2, 1.5))
Normal(x(-2, 1), x(1, 2)) | Normal(x(0.5, 1), x(2, 1.5))
Pareto(x(2, 3), x(2.5, 3)) | Pareto(x(0.5, 3.5), x(1, 2))
Uniform(x(0.1, 0.5), x(0.7, 3)) | Uniform(x(-1, 0.2), x(2, 0.9))
Cauchy(x(-2, 1), x(1, 2)) | Cauchy(x(0.5, 1), x(2, 1.5))
HalfNormal(x(1, 2)) | HalfNormal(x(0.5, 4))
Geometric(x(0.1, 0.5)) | Geometric(logits=x(0.3, 2))
Bernoulli(x(0.1, 0.5)) | Bernoulli(logits=x(0.3, 2))
Binomial(4, x(0.1, 0.5)) | Binomial(x(4, 3), x(0.2, 0.7))
Poisson(x(1, 2)) | Poisson(x(0.5, 4))
LogNormal(x(-2, 1), x(1, 2)) | LogNormal(x(0.5, 1), x(2, 1.5))
InverseGamma(x(1, 2.5), x(1.5, 3.5)) | InverseGamma(x(3, 0.5), x(0.5, 2))
MultivariateNormal(x(0, 1), m) | MultivariateNormal(x(2, 1), m + m)
LowRankMultivariateNormal(x(0, 1), m[:, :1], x(1, 2)) | \
LowRankMultivariateNormal(x(1, 1), m, x(0.5, 1))
Independent(d.Normal(x(0, 1), x(1, 2)), 1) | Independent(d.Normal(x(1, 0), x(2, 2)), 1)
""".replace("\\\n", "")
PAIRS = [line.split(" | ") for line in FAMILIES.strip().splitlines()]


def divergence(torch, one, other):
    """A divergence and its derivatives; None if it is not known."""
    leaves = []

    def x(*numbers):
        leaves.append(torch.tensor(numbers, dtype=torch.float64, requires_grad=True))
        return leaves[-1]

    m = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    p, q = (eval(f"d.{c}", {"d": torch.distributions, "x": x, "m": m}) for c in one)
    try:
        found = torch.distributions.kl_divergence(p, q)
    except NotImplementedError:
        return None
    slopes = []
    if other and found.requires_grad and found.isfinite().all():
        slopes = torch.autograd.grad(found.sum(), leaves, allow_unused=True)
    parts = [found.detach(), *slopes]
    return [0.0 if z is None else np.asarray(z) for z in parts]


@pytest.mark.parametrize("one", [p for p, _ in PAIRS])
def test_divergences_are_pytorchs(one):
    known = 0
    for _, other in PAIRS:
        expected = divergence(theirs, (one, other), True)
        found = divergence(ours, (one, other), True)
        if expected is None:
            continue
        known += 1
        assert found is not None, other
        for mine, its in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-6, atol=1e-9, err_msg=other)
    assert known


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Gumbel(x(-2, 1), x(1, 2))", "Laplace(x(0.5, 1), x(2, 1.5))"),
        ("NegativeBinomial(4, x(0.1, 0.5))", "NegativeBinomial(4, x(0.1, 0.5))"),
        ("Binomial(3, x(0.1, 0.5))", "Binomial(4, x(0.1, 0.5))"),
        ("LogNormal(x(-2, 1), x(1, 2))", "HalfCauchy(x(1, 2))"),
    ],
)
def test_divergences_without_a_formula_say_so(one, other):
    assert divergence(ours, (one, other), False) is None


@pytest.mark.parametrize(
    "name", ["Normal", "Laplace", "Cauchy", "Gumbel", "StudentT", "Gamma", "Uniform"]
)
def test_draws_of_double_precision_have_all_its_digits(name):
    """Draws that were rounded to single precision would equal themselves rounded."""
    one = ours.ones(64, dtype=ours.float64)
    drawn = getattr(ours.distributions, name)(one, one + 1).sample()
    assert drawn.dtype == ours.float64
    inner = (drawn - 1) / 2 if name not in ("Gamma", "Uniform") else drawn
    assert (inner.float().double() != inner).sum() > 56


def test_entropies_and_values_of_counts_of_tries():
    d = ours.distributions
    counts = d.Binomial(ours.tensor([3.0, 3.0]), ours.tensor([0.2, 0.5]))
    assert counts.enumerate_support(False).shape == (4, 1)
    assert counts.enumerate_support()[:, 1].tolist() == [0, 1, 2, 3]
    with pytest.raises(NotImplementedError, match="inhomogeneous total count"):
        d.Binomial(ours.tensor([3.0, 4.0]), ours.tensor([0.2, 0.5])).entropy()
    with pytest.raises(NotImplementedError, match="NegativeBinomial"):
        d.NegativeBinomial(3, ours.tensor([0.2])).entropy()


def test_parameters_that_a_part_holds_are_checked():
    with pytest.raises(ValueError, match="parameter scale"):
        ours.distributions.HalfCauchy(ours.tensor([-1.0]))
    with pytest.raises(ValueError, match="parameter scale"):
        ours.distributions.LogNormal(0.0, ours.tensor([-1.0]), validate_args=True)


def test_a_number_is_a_value_of_a_gamma_distribution():
    d = ours.distributions.Gamma(2, 1)
    assert d.log_prob(1.0).item() == -1.0
    with pytest.raises(ValueError, match="must be a Tensor"):
        ours.distributions.Normal(0.0, 1.0).log_prob(1.0)


def test_wishart_distributions_of_a_whole_number_of_degrees():
    d = ours.distributions.Wishart(ours.tensor(3), ours.eye(2))
    assert d.rsample().shape == (2, 2)
    assert d.rsample().dtype == ours.float32


def test_normal_draws_of_tensors_have_no_derivative():
    m, s = (ours.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    for args in ((m, 0.5), (0.2, s), (m, s)):
        z = ours.normal(*args)
        found = ours.autograd.grad(z.sum(), (m, s), allow_unused=True)
        given = [any(x is a for a in args) for x in (m, s)]
        assert [x is not None for x in found] == given
        assert all(x.tolist() == [0, 0] for x in found if x is not None)
    slope = ours.func.grad(lambda m: ours.normal(m, m).sum())(m.detach())
    assert slope.tolist() == [0, 0]
    z, along = ours.func.jvp(ours.normal, (m.detach(),), (s.detach(),))
    assert along.tolist() == [0, 0]
    assert ours.distributions.Normal(m, s).rsample().requires_grad


def test_wishart_densities_have_pytorchs_derivative_by_each_element():
    found = []
    for library in (theirs, ours):
        m = library.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=library.float64)
        df = library.tensor(3.5, dtype=library.float64)
        x = (m * 3).requires_grad_()
        d = library.distributions.Wishart(df, m)
        (slope,) = library.autograd.grad(d.log_prob(x), x, create_graph=True)
        (second,) = library.autograd.grad((slope * m).sum(), x)
        off = d.support.check(m + 1e-6 * library.eye(2).cumsum(0).triu())
        found.append((slope.tolist(), second.tolist(), off.item()))
    assert found[1][2] is found[0][2] is True
    for mine, other in zip(found[1][:2], found[0][:2], strict=True):
        np.testing.assert_allclose(mine, other)


def test_values_that_cannot_be_are_refused_before_they_are_computed_with():
    d = ours.distributions
    with pytest.raises(ValueError, match="covariance_matrix"):
        d.Wishart(ours.tensor(3.0), -ours.eye(2), validate_args=True)
    parts = d.Normal(ours.zeros(2), ours.ones(2))
    mixture = d.MixtureSameFamily(d.Categorical(ours.ones(2)), parts)
    with pytest.raises(ValueError, match="Tensor"):
        mixture.log_prob(1.0)
    positive = d.MixtureSameFamily(
        d.Categorical(ours.ones(2)), d.Gamma(*[ours.ones(2)] * 2)
    )
    with pytest.raises(ValueError, match="support"):
        positive.log_prob(ours.tensor(-1.0))


def test_chances_of_a_number_under_a_gumbel_distribution():
    d = ours.distributions.Gumbel(1.0, 2.0)
    assert d.cdf(20.0).item() == d.cdf(ours.tensor(20.0)).item()
