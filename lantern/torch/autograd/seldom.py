"""Operations of a program's own, and checks: imported when one is asked for."""

from lantern.torch.autograd.checking import gradcheck as gradcheck
from lantern.torch.autograd.checking import gradgradcheck as gradgradcheck
from lantern.torch.autograd.function import Function as Function
from lantern.torch.autograd.function import once_differentiable as once_differentiable

__all__ = ["Function", "gradcheck", "gradgradcheck", "once_differentiable"]
