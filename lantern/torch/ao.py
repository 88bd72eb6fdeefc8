"""Names of quantisation, which models mention that are not quantised."""

from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.nn.module import Module
from lantern.torch.run.aliases import lead, missing

__all__ = ["DeQuantStub", "QuantStub", "fuse_modules"]

__path__: list[str] = []


class QuantStub(Module):
    """Where a model would begin to be quantised: values as they are.

    Args:
        qconfig: has no effect.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """The value."""
        return x


class DeQuantStub(QuantStub):
    """Where it would end to be."""


class FloatFunctional(Module):
    """Operations that are modules, so that they can be quantised."""

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return x + y

    add_scalar = add

    def mul(self, x: Any, y: Any) -> Any:
        """The product."""
        return x * y

    mul_scalar = mul

    def cat(self, x: Any, dim: int = 0) -> Any:
        """The joined values."""
        from lantern.torch.functions.join_repeat import cat

        return cat(x, dim)


def fuse_modules(*args: Any, **options: Any) -> Any:
    """Refused: there are no quantised tensors here."""
    raise MissingRuleError("torch.ao: there are no quantised tensors here.")


prepare = convert = prepare_qat = fuse_modules


def __getattr__(name: str) -> Any:
    """Say that nothing is quantised."""
    if name.startswith("__"):
        raise AttributeError(name)
    error = missing("module 'torch.ao'", name)
    raise AttributeError(f"{error}: there are no quantised tensors here.")


globals().update(lead(__name__, "quantization nn"))
lead(f"{__name__}.nn", "intrinsic quantized qat", __name__)
