"""The small network for handwritten digits of the Lantern paper's evaluation."""

from typing import Any

import lantern.torch as torch
from lantern.torch import nn

__all__ = ["MNISTNet"]


class MNISTNet(nn.Module):
    """Log-probabilities of the ten digits: two convolutions, two linear layers.

    Args:
        dropout: how much is dropped in training, of channels and of values.

    Shapes:
        x: (n, 1, 28, 28); result: (n, 10).

    References:
        PyTorch's example ``mnist``, which the Lantern paper measures.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import MNISTNet
        >>> MNISTNet()(torch.zeros(2, 1, 28, 28)).detach().exp().sum(1).round()
        tensor([1., 1.])
    """

    def __init__(self, dropout: float = 0.5) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 5)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.conv2_drop = nn.Dropout2d(dropout)
        self.fc1 = nn.Linear(320, 50)
        self.fc1_drop = nn.Dropout(dropout)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x: Any) -> Any:
        """Log-probabilities of the digits."""
        f = nn.functional
        x = f.relu(f.max_pool2d(self.conv1(x), 2))
        x = f.relu(f.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = self.fc1_drop(f.relu(self.fc1(torch.flatten(x, 1))))
        return f.log_softmax(self.fc2(x), 1)
