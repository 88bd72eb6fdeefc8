"""Weights of a given size or form, as parametrizations: see ``parametrize``."""

from typing import Any

import numpy as np

from lantern.errors import MissingRuleError, OptionError, ShapeError
from lantern.torch.functions.creation import eye
from lantern.torch.linalg import matrix_exp, qr, solve
from lantern.torch.methods.sampling import randn
from lantern.torch.methods.table import FUNCTIONS
from lantern.torch.nn.module import Module
from lantern.torch.nn.utils.norms import SpectralNorm, WeightNorm, outputs_axis
from lantern.torch.nn.utils.parametrize import register_parametrization
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside, on_host
from lantern.torch.tensor.dtypes import finfo
from lantern.torch.tensor.tensor import fresh

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def weight_norm(module: Any, name: str = "weight", dim: Any = 0) -> Any:
    """Let a module train a weight's length and its direction apart.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        >>> lengths = layer.parametrizations.weight.original0
        >>> torch.allclose(layer.weight.norm(dim=1, keepdim=True), lengths)
        True
    """
    register_parametrization(module, name, WeightNorm(dim), unsafe=True)

    def renamed(state: Any, prefix: str, *rest: Any) -> None:
        """Take what ``torch.nn.utils.weight_norm`` has saved as well."""
        for i, part in enumerate("gv"):
            old = f"{prefix}{name}_{part}"
            if old in state:
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(old)

    module._register_load_state_dict_pre_hook(renamed)
    return module


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: Any = None,
) -> Any:
    """Let a module use a weight over its largest singular value.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 3))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'parametrizations.weight.original']
    """
    if dim is None:
        dim = outputs_axis(module)
    rule = SpectralNorm(getattr(module, name), n_power_iterations, dim, eps)
    return register_parametrization(module, name, rule)


def _orthogonalised(x: Any) -> Any:
    """The orthogonal factor of a tall matrix, beside a positive diagonal."""
    q, r = qr(x)
    return q * r.diagonal(0, -2, -1).sgn().unsqueeze(-2)


def _reflections(x: Any) -> tuple[Any, Any]:
    """The reflections that make a matrix triangular, below it, and their sizes."""
    array = base(x)
    a, tau = np.linalg.qr(on_host(array), mode="raw")
    a = np.ascontiguousarray(a.swapaxes(-1, -2))
    return fresh(beside(a, array)), fresh(beside(tau, array))


def _reflected(a: Any, tau: Any) -> Any:
    """The first columns of a product of reflections, given below their ones."""
    n, k = a.shape[-2:]
    one = eye(n, k, dtype=a.dtype, device=a.device)
    v, z = a + one, one
    for i in reversed(range(k)):
        column = v[..., i : i + 1]
        z = z - tau[..., i, None, None] * (column @ (column.mT @ z))
    return z


def _is_orthogonal(x: Any) -> bool:
    n, k = x.shape[-2:]
    off = x.mH @ x - eye(k, dtype=x.dtype, device=x.device)
    return bool((off.abs() <= 10 * n * finfo(x.dtype).eps).all())


class _Orthogonal(Module):
    """A map of matrices to orthogonal ones, times a constant one if that is kept."""

    def __init__(self, weight: Any, orthogonal_map: str, keeps: bool) -> None:
        super().__init__()
        self.shape, self.map, self.keeps = weight.shape, orthogonal_map, keeps
        self.register_buffer("base", None)  # until a weight is assigned

    def _skew(self, x: Any) -> Any:
        n, k = x.shape[-2:]
        full = x.tril()
        if n != k:
            full = FUNCTIONS["cat"]([full, x.new_zeros(*x.shape[:-2], n, n - k)], -1)
        return full - full.mH

    def forward(self, x: Any) -> Any:
        """A matrix whose columns, or whose rows if they are fewer, are orthonormal."""
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        k = x.shape[-1]
        if self.map == "householder":
            a = x.tril(-1)
            z = _reflected(a, 2 / (1 + (a * a).sum(-2)))
            z = z * x.diagonal(0, -2, -1).int().unsqueeze(-2)
        elif self.map == "matrix_exp":
            z = matrix_exp(self._skew(x))[..., :k]
        else:
            half = self._skew(x) / 2
            one = eye(x.shape[-2], dtype=x.dtype, device=x.device)
            z = solve(one - half, one + half)[..., :k]
        z = z if self.base is None else self.base @ z
        return z.mT if wide else z

    def right_inverse(self, weight: Any) -> Any:
        """What a matrix is computed from; where one is kept, from what gives 1."""
        if weight.shape != self.shape:
            raise OptionError(
                "Expected a matrix or batch of matrices of shape "
                f"{tuple(self.shape)}. Got a tensor of shape {tuple(weight.shape)}."
            )
        wide = weight.shape[-2] < weight.shape[-1]
        q = weight.mT if wide else weight
        if self.keeps:
            self.base = self._whole(q)
            start = weight.new_zeros(weight.shape)
            start.diagonal(0, -2, -1).fill_(-1.0)
            return start
        if self.map != "householder":
            raise MissingRuleError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        a, tau = _reflections(q)
        signs = a.diagonal(0, -2, -1).sign()
        a.diagonal(0, -2, -1).copy_(FUNCTIONS["where"](tau == 0, -signs, signs))
        return a.mT if wide else a

    def _whole(self, q: Any) -> Any:
        """An orthogonal square matrix whose first columns span those of another."""
        n, k = q.shape[-2:]
        if n == k and _is_orthogonal(q):
            return q.clone()
        more = randn(*q.shape[:-1], n - k, dtype=q.dtype, device=q.device)
        return _orthogonalised(FUNCTIONS["cat"]([q, more], -1))


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: Any = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Let a module have a weight with orthonormal rows or columns.

    Args:
        module: the module that has the weight.
        name: its name.
        orthogonal_map: "matrix_exp" or "cayley", of a skew matrix, or "householder", a
            product of reflections; by default the first for square and complex
            matrices, the last for others.
        use_trivialization: whether the weight is what the map gives times a constant
            matrix, so that every orthogonal weight can be assigned.

    Raises:
        ValueError: for a weight that is no matrix, or a map that is not known.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
        >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(3), atol=1e-5)
        True
    """
    weight = getattr(module, name)
    if weight.ndim < 2:
        raise ShapeError(
            "Expected a matrix or batch of matrices. Got a tensor of "
            f"{weight.ndim} dimensions."
        )
    square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
    chosen = orthogonal_map or ("matrix_exp" if square else "householder")
    if chosen not in ("matrix_exp", "cayley", "householder"):
        raise OptionError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    if chosen == "householder" and weight.is_complex():
        raise OptionError(
            "The householder parametrization does not support complex tensors."
        )
    rule = _Orthogonal(weight, chosen, use_trivialization)
    return register_parametrization(module, name, rule, unsafe=True)
