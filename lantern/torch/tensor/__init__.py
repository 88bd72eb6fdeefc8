"""The tensor of the PyTorch-compatible API: types, views, printing, gradients."""

from lantern.torch.tensor.tensor import Tensor as Tensor
