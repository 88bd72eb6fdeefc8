"""Weights of a given size: by a norm of their own, or by their largest stretch."""

from typing import Any

from lantern.eager.grad_mode import no_grad
from lantern.errors import OptionError
from lantern.torch.methods.sampling import randn
from lantern.torch.nn.functional import normalize
from lantern.torch.nn.module import Module
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor.tensor import Tensor

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


def _norm_except(v: Tensor, dim: Any) -> Any:
    """The norms along all axes but one."""
    if dim is None or dim == -1:
        return v.norm()
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    return v.norm(2, axes, keepdim=True) if axes else v.abs()


class WeightNorm(Module):
    """A weight as a direction and its length: ``g * v / |v|``."""

    def __init__(self, dim: Any = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, g: Any, v: Any) -> Any:
        """The weight."""
        return v * (g / _norm_except(v, self.dim))

    def right_inverse(self, weight: Any) -> Any:
        """Its length, and the weight itself as the direction."""
        return _norm_except(weight, self.dim), weight


class SpectralNorm(Module):
    """A weight over its largest singular value, found by iteration.

    References:
        Miyato et al. (2018), algorithm 1.
    """

    def __init__(
        self, weight: Any, n_power_iterations: int, dim: int, eps: float
    ) -> None:
        super().__init__()
        self.steps, self.dim, self.eps = n_power_iterations, dim, eps
        matrix = self._matrix(weight.detach())
        rows, columns = matrix.shape
        for name, n in (("_u", rows), ("_v", columns)):
            drawn = randn(n, dtype=weight.dtype, device=weight.device)
            self.register_buffer(name, normalize(drawn, dim=0, eps=eps))
        self._iterate(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        if self.dim:
            weight = weight.movedim(self.dim, 0)
        return weight.flatten(1) if weight.ndim > 1 else weight.unsqueeze(1)

    def _iterate(self, matrix: Any, steps: int) -> None:
        with no_grad():
            for _ in range(steps):
                self._u.copy_(normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(normalize(matrix.mH @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        """The weight over its largest singular value."""
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix.detach(), self.steps)
        # Clones: a later iteration must not write to what a rule has saved.
        u, v = self._u.clone(), self._v.clone()
        return weight / (u.conj() * (matrix @ v)).sum()

    def right_inverse(self, value: Any) -> Any:
        """The weight itself."""
        return value


def outputs_axis(module: Any) -> int:
    """Along which axis of a layer's weight its outputs are."""
    return int(getattr(module, "transposed", False))


class _Before:
    """A hook that computes a weight before each call, as PyTorch's of old did."""

    def __init__(self, name: str, computed: Any, parts: tuple[str, ...]) -> None:
        self.name, self.computed, self.parts = name, computed, parts

    def __call__(self, module: Any, inputs: Any) -> None:
        self.computed.training = module.training
        setattr(module, self.name, self.value(module))

    def value(self, module: Any) -> Any:
        """The weight."""
        return self.computed(*(getattr(module, part) for part in self.parts))


def _hooked(module: Any, name: str, computed: Any, parts: dict[str, Any]) -> Any:
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, _Before) and hook.name == name:
            raise OptionError(f"two norms of the same parameter {name}")
    del module._parameters[name]
    for part, value in parts.items():
        module.register_parameter(part, Parameter(value))
    hook = _Before(name, computed, tuple(parts))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def _removed(module: Any, name: str, kind: type) -> Any:
    for key, hook in list(module._forward_pre_hooks.items()):
        found = hook.computed if isinstance(hook, _Before) else None
        if isinstance(found, kind) and hook.name == name:
            with no_grad():
                value = hook.value(module).clone()
            del module._forward_pre_hooks[key]
            module.__dict__.pop(name, None)
            for part in hook.parts:
                del module._parameters[part]
            module.register_parameter(name, Parameter(value))
            return module
    raise OptionError(f"{kind.__name__} of '{name}' not found in {module}")


def weight_norm(module: Any, name: str = "weight", dim: Any = 0) -> Any:
    """Let a module train a weight's length and its direction apart.

    References:
        Salimans and Kingma (2016).

    Example:
        >>> import lantern.torch as torch
        >>> layer = weight_norm(torch.nn.Linear(2, 3))
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight_g', 'weight_v']
    """
    weight, rule = getattr(module, name), WeightNorm(dim)
    with no_grad():
        g, v = rule.right_inverse(weight.detach())
    parts = {f"{name}_g": g.clone(), f"{name}_v": v.clone()}
    return _hooked(module, name, rule, parts)


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Let the weight be one parameter again."""
    return _removed(module, name, WeightNorm)


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: Any = None,
) -> Any:
    """Let a module use a weight over its largest singular value."""
    if dim is None:
        dim = outputs_axis(module)
    weight = getattr(module, name)
    rule = SpectralNorm(weight, n_power_iterations, dim, eps)
    # The module's state has the vectors; they are written to in place.
    for letter, vector in (("u", rule._u), ("v", rule._v)):
        module.register_buffer(f"{name}_{letter}", vector)
    return _hooked(module, name, rule, {f"{name}_orig": weight.detach().clone()})


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Let the weight be used as it is again."""
    removed = _removed(module, name, SpectralNorm)
    del removed._buffers[f"{name}_u"], removed._buffers[f"{name}_v"]
    return removed
