"""Distributions of matrices, and of vectors by matrices of low rank."""

import math
from typing import Any, ClassVar

from lantern.errors import OptionError
from lantern.torch.distributions import constraints
from lantern.torch.distributions.derived import derived
from lantern.torch.distributions.distribution import Distribution, broadcast_all
from lantern.torch.distributions.positive import Chi2
from lantern.torch.distributions.several import Beta, MultivariateNormal
from lantern.torch.functions.creation import eye
from lantern.torch.functions.ranges import arange
from lantern.torch.linalg import cholesky, slogdet, solve_triangular
from lantern.torch.methods.sampling import randn
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.tensor.tensor import Tensor

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "Wishart"]

_digamma, _lgamma = FUNCTIONS["digamma"], FUNCTIONS["lgamma"]
_mvlgamma = FUNCTIONS["mvlgamma"]


class LowRankMultivariateNormal(Distribution):
    """Normal distributions whose covariance is ``W Wᵀ + D``, of low rank and diagonal.

    Args:
        loc: the mean.
        cov_factor: W, of shape (…, n, rank).
        cov_diag: the diagonal of D.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.LowRankMultivariateNormal(
        ...     torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2)
        ... )
        >>> x.covariance_matrix
        tensor([[2., 0.],
                [0., 1.]])
    """

    has_rsample = True
    arg_constraints: ClassVar[dict[str, Any]] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: Any = None
    ) -> None:
        n = loc.shape[-1] if loc.dim() else 0
        if loc.dim() < 1 or cov_factor.dim() < 2 or cov_factor.shape[-2] != n:
            raise OptionError(
                f"cov_factor must be a batch of matrices with shape {n} x m, loc a "
                f"batch of vectors: got {list(cov_factor.shape)}, {list(loc.shape)}."
            )
        if cov_diag.shape[-1:] != (n,):
            raise OptionError(f"cov_diag must be a batch of vectors with shape {(n,)}")
        batch = FUNCTIONS["broadcast_shapes"](
            loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        )
        self.loc = loc.expand(*batch, n)
        self.cov_diag = cov_diag.expand(*batch, n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        # Of I + Wᵀ D⁻¹ W, by which both inverse and determinant are known.
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        rank = cov_factor.shape[-1]
        inner = scaled @ self.cov_factor + eye(rank, dtype=loc.dtype)
        self._capacitance_tril = cholesky(inner)
        super().__init__(batch, (n,), validate_args)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """The variances of the parts."""
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def scale_tril(self) -> Any:
        """The covariance's Cholesky factor."""
        return cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Any:
        """The covariance's inverse."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        a = solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - a.mT @ a

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters."""
        shape = self._extended_shape(sample_shape)
        rank = self.cov_factor.shape[-1]
        inner = randn((*shape[:-1], rank), dtype=self.loc.dtype).to(self.loc)
        own = randn(shape, dtype=self.loc.dtype).to(self.loc)
        joint = (self.cov_factor @ inner.unsqueeze(-1)).squeeze(-1)
        return self.loc + joint + self.cov_diag.sqrt() * own

    def _log_det(self) -> Any:
        half = self._capacitance_tril.diagonal(0, -2, -1).log().sum(-1)
        return 2 * half + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a value."""
        away = self._checked(value) - self.loc
        scaled = self.cov_factor.mT @ (away / self.cov_diag).unsqueeze(-1)
        factor = self._capacitance_tril
        factor = factor.expand(*scaled.shape[:-2], *factor.shape[-2:])
        inner = solve_triangular(factor, scaled, upper=False)
        distance = (away**2 / self.cov_diag).sum(-1) - (inner**2).sum((-2, -1))
        norm = self.event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + self._log_det() + distance)

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        norm = self.event_shape[0] * (1 + math.log(2 * math.pi))
        return 0.5 * (norm + self._log_det())


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices.

    Args:
        dim: how many rows.
        concentration: 1 for uniform correlations; above it, they are smaller.
        validate_args: see ``Distribution``.

    References:
        Lewandowski, Kurowicka, Joe (2009), "Generating random correlation matrices
        based on vines and extended onion method", section 3.2.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.LKJCholesky(2, torch.tensor(1.0))
        >>> x.log_prob(torch.eye(2)).exp()
        tensor(0.5000)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: Any = None
    ) -> None:
        if dim < 2:
            raise OptionError(
                f"Expected dim to be an integer greater than or equal to 2. Found "
                f"dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _expanded(self, batch_shape: Any, options: dict[str, Any]) -> Any:
        found = self.concentration.expand(batch_shape)
        return LKJCholesky(self.dim, found, validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Factors that are drawn, row by row, by the onion method."""
        n, a = self.dim, self.concentration.detach()
        marginal = a + 0.5 * (n - 2)
        i = arange(n - 1, dtype=a.dtype)
        offset = FUNCTIONS["cat"]([i.new_zeros((1,)), i])
        first = offset + 0.5
        second = marginal.unsqueeze(-1) - 0.5 * offset
        sizes = Beta(first, second).sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normal = randn(shape, dtype=a.dtype).tril(-1)
        length = normal.norm(dim=-1, keepdim=True)
        sphere = normal / length
        sphere[..., 0, :] = 0.0
        w = sizes.sqrt() * sphere
        tiny = 1.2e-38 if a.element_size() == 4 else 2.3e-308
        rest = (1 - (w**2).sum(-1)).clamp(min=tiny).sqrt()
        return w + rest.diag_embed()

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a factor."""
        value, a, n = self._checked(value), self.concentration, self.dim
        diagonal = value.diagonal(0, -2, -1)[..., 1:]
        order = arange(2, n + 1, dtype=a.dtype)
        order = 2 * (a - 1).unsqueeze(-1) + n - order
        kernel = (order * diagonal.log()).sum(-1)
        alpha = a + 0.5 * (n - 1)
        above = _mvlgamma(alpha - 0.5, n - 1)
        norm = 0.5 * (n - 1) * math.log(math.pi) + above - _lgamma(alpha) * (n - 1)
        return kernel - norm


class Wishart(Distribution):
    """Distributions of covariances: sums of squares of normal vectors.

    Args:
        df: the degrees of freedom.
        covariance_matrix: of the vectors.
        precision_matrix: in its place, its inverse.
        scale_tril: in its place, its Cholesky factor.
        validate_args: see ``Distribution``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    has_rsample = True
    support = constraints.positive_definite
    arg_constraints: ClassVar[dict[str, Any]] = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: Any = None,
    ) -> None:
        given = [covariance_matrix, precision_matrix, scale_tril]
        matrices = [m for m in given if m is not None]
        if len(matrices) != 1:
            raise OptionError(
                "Expected exactly one of covariance_matrix or precision_matrix or "
                "scale_tril to be specified."
            )
        (matrix,) = matrices
        if matrix.dim() < 2:
            raise OptionError("scale_tril must be at least two-dimensional")
        df = df if isinstance(df, Tensor) else matrix.new_tensor(df)
        df = df if df.is_floating_point() else df.to(matrix.dtype)
        n = matrix.shape[-1]
        batch = FUNCTIONS["broadcast_shapes"](df.shape, matrix.shape[:-2])
        self.df = df.expand(batch)
        if (self.df <= n - 1).any():
            raise OptionError(f"Value of df must be greater than ndim - 1 = {n - 1}.")
        names = ("covariance_matrix", "precision_matrix", "scale_tril")
        name = next(k for k, m in zip(names, given, strict=True) if m is not None)
        self.__dict__[name] = matrix = matrix.expand(*batch, n, n)
        options: dict[str, Any] = {name: matrix}
        super().__init__(batch, (n, n), validate_args)
        inner = MultivariateNormal(matrix[..., 0] * 0, **options, validate_args=False)
        self._unbroadcasted_scale_tril = inner.scale_tril

    @derived
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril

    @derived
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT

    @derived
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self.covariance_matrix.inverse()

    @property
    def mean(self) -> Any:
        """The expected covariance."""
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """The most likely one; nan where there is none."""
        left = self.df - self.event_shape[-1] - 1
        left = left.masked_fill(left <= 0, math.nan)
        return left[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        """The expected squares of the distances from the mean."""
        v = self.covariance_matrix
        d = v.diagonal(0, -2, -1)
        squares = v**2 + d.unsqueeze(-1) * d.unsqueeze(-2)
        return self.df[..., None, None] * squares

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws with a derivative with respect to the parameters (Bartlett's)."""
        n = self.event_shape[-1]
        shape = self._extended_shape(sample_shape)
        left = self.df.unsqueeze(-1) - arange(n, dtype=self.df.dtype)
        chi = Chi2(left, validate_args=False).rsample(sample_shape)
        lower = randn(shape, dtype=self.df.dtype).to(self.df).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (lower + chi.sqrt().diag_embed())
        return factor @ factor.mT

    def _log_det(self) -> Any:
        return 2 * self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density at a covariance."""
        value, n, df = self._checked(value), self.event_shape[-1], self.df
        batch = FUNCTIONS["broadcast_shapes"](value.shape[:-2], self.batch_shape)
        value = value.expand(*batch, n, n)
        factor = self._unbroadcasted_scale_tril.expand(*batch, n, n)
        half = solve_triangular(factor, value, upper=False)
        whole = solve_triangular(factor, half.mT, upper=False)
        trace = whole.diagonal(0, -2, -1).sum(-1)
        inner = slogdet(value).logabsdet
        norm = df * (n * math.log(2) + self._log_det()) / 2 + _mvlgamma(df / 2, n)
        return (df - n - 1) / 2 * inner - trace / 2 - norm

    def entropy(self) -> Any:
        """The expected value of ``-log_prob``."""
        n, df = self.event_shape[-1], self.df
        parts = df.unsqueeze(-1) / 2 - arange(n, dtype=df.dtype) / 2
        digammas = _digamma(parts).sum(-1)
        return (
            (n + 1) / 2 * (self._log_det() + n * math.log(2))
            + _mvlgamma(df / 2, n)
            - (df - n - 1) / 2 * digammas
            + df * n / 2
        )
