"""Modules that put more elements at the ends of axes: one table."""

from typing import Any

from lantern.errors import OptionError
from lantern.torch.nn import functional as F
from lantern.torch.nn.functional.convolution import each
from lantern.torch.nn.module import Module
from lantern.torch.tables import documented
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


class _CircularPad(_Pad):
    mode = "circular"


class _ReflectionPad(_Pad):
    mode = "reflect"


class _ReplicationPad(_Pad):
    mode = "replicate"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """How many elements, and which."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """How many elements."""
        return f"{self.padding}"


def _padding(name: str, kind: Any, axes: int) -> Any:
    attributes = {
        "__doc__": f"More elements at the ends of {axes} axes: {kind.mode}.",
        "__module__": "lantern.torch.nn",
        "axes": axes,
    }
    return type(name, (kind,), attributes)


_TABLE = {
    # name: class, axes, example
    "CircularPad1d": (
        _CircularPad,
        1,
        """
        >>> torch.nn.CircularPad1d(1)(torch.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[3., 1., 2., 3., 1.]]])
        """,
    ),
    "CircularPad2d": (
        _CircularPad,
        2,
        """
        >>> torch.nn.CircularPad2d(1)(torch.ones(1, 1, 2, 3)).shape
        torch.Size([1, 1, 4, 5])
        """,
    ),
    "CircularPad3d": (
        _CircularPad,
        3,
        """
        >>> torch.nn.CircularPad3d(1)(torch.ones(1, 1, 1, 2, 3)).shape
        torch.Size([1, 1, 3, 4, 5])
        """,
    ),
    "ConstantPad1d": (
        _ConstantPad,
        1,
        """
        >>> torch.nn.ConstantPad1d((1, 2), 9.0)(torch.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[9., 1., 2., 3., 9., 9.]]])
        """,
    ),
    "ConstantPad2d": (
        _ConstantPad,
        2,
        """
        >>> torch.nn.ConstantPad2d(1, 9.0)(torch.tensor([[[[1.0]]]]))
        tensor([[[[9., 9., 9.],
                  [9., 1., 9.],
                  [9., 9., 9.]]]])
        """,
    ),
    "ConstantPad3d": (
        _ConstantPad,
        3,
        """
        >>> torch.nn.ConstantPad3d(1, 9.0)(torch.ones(1, 1, 1, 2, 3)).sum()
        tensor(492.)
        """,
    ),
    "ReflectionPad1d": (
        _ReflectionPad,
        1,
        """
        >>> torch.nn.ReflectionPad1d(2)(torch.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[3., 2., 1., 2., 3., 2., 1.]]])
        """,
    ),
    "ReflectionPad2d": (
        _ReflectionPad,
        2,
        """
        >>> torch.nn.ReflectionPad2d((1, 1, 0, 0))(torch.tensor([[[[1.0, 2.0, 3.0]]]]))
        tensor([[[[2., 1., 2., 3., 2.]]]])
        """,
    ),
    "ReflectionPad3d": (
        _ReflectionPad,
        3,
        """
        >>> torch.nn.ReflectionPad3d(1)(torch.ones(1, 1, 2, 2, 3)).shape
        torch.Size([1, 1, 4, 4, 5])
        """,
    ),
    "ReplicationPad1d": (
        _ReplicationPad,
        1,
        """
        >>> torch.nn.ReplicationPad1d(2)(torch.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[1., 1., 1., 2., 3., 3., 3.]]])
        """,
    ),
    "ReplicationPad2d": (
        _ReplicationPad,
        2,
        """
        >>> torch.nn.ReplicationPad2d(1)(torch.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.],
                  [1., 1., 2., 2.]]]])
        """,
    ),
    "ReplicationPad3d": (
        _ReplicationPad,
        3,
        """
        >>> torch.nn.ReplicationPad3d(1)(torch.ones(1, 1, 1, 2, 3)).shape
        torch.Size([1, 1, 3, 4, 5])
        """,
    ),
    "ZeroPad1d": (
        _ZeroPad,
        1,
        """
        >>> torch.nn.ZeroPad1d(2)(torch.tensor([[[1.0, 2.0, 3.0]]]))
        tensor([[[0., 0., 1., 2., 3., 0., 0.]]])
        """,
    ),
    "ZeroPad2d": (
        _ZeroPad,
        2,
        """
        >>> torch.nn.ZeroPad2d(1)(torch.tensor([[[[1.0]]]]))
        tensor([[[[0., 0., 0.],
                  [0., 1., 0.],
                  [0., 0., 0.]]]])
        """,
    ),
    "ZeroPad3d": (
        _ZeroPad,
        3,
        """
        >>> torch.nn.ZeroPad3d(1)(torch.ones(1, 1, 1, 2, 3)).shape
        torch.Size([1, 1, 3, 4, 5])
        """,
    ),
}
MODULES = {
    name: documented(_padding(name, kind, axes), example)
    for name, (kind, axes, example) in _TABLE.items()
}
globals().update(MODULES)
