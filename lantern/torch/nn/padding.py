"""Modules that put more elements at the ends of axes: one table."""

from typing import Any

from lantern.errors import OptionError
from lantern.torch.nn import functional as F
from lantern.torch.nn.functional.convolution import each
from lantern.torch.nn.module import Module
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.tensor import Tensor


class _Pad(Module):
    """More elements at the ends."""

    axes: int
    mode: str
    value: Any = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = each(padding, 2 * self.axes)

    def forward(self, input: Tensor) -> Tensor:
        """The padded tensor."""
        n, found = self.axes + 1, base(input).ndim
        if self.mode == "circular" and found not in (n, n + 1):
            raise OptionError(f"expected {n}D or {n + 1}D input (got {found}D input)")
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """How many elements."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """How many elements, and which."""
        return f"padding={self.padding}, value={self.value}"


def _padding(name: str, kind: Any, axes: int, mode: str) -> Any:
    attributes = {
        "__doc__": f"More elements at the ends of {axes} axes: {mode}.",
        "__module__": "lantern.torch.nn",
        "axes": axes,
        "mode": mode,
    }
    return type(name, (kind,), attributes)


MODULES = {
    f"{name}{axes}d": _padding(f"{name}{axes}d", kind, axes, mode)
    for name, kind, mode in (
        ("CircularPad", _Pad, "circular"),
        ("ConstantPad", _ConstantPad, "constant"),
        ("ReflectionPad", _Pad, "reflect"),
        ("ReplicationPad", _Pad, "replicate"),
        ("ZeroPad", _Pad, "constant"),
    )
    for axes in (1, 2, 3)
}
globals().update(MODULES)
