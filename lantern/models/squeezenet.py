"""SqueezeNet: layers that squeeze channels before they expand them, in three forms."""

from typing import Any

import lantern.torch as torch
from lantern.torch import nn

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1", "squeezenet_cifar"]


class Fire(nn.Module):
    """Few channels, then many: half of them from 1×1, half from 3×3 convolutions.

    Args:
        inputs: channels of the input.
        squeezed: channels between.
        expanded: channels of each half of the result.
    """

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        """x: (n, inputs, h, w); result: (n, 2 · expanded, h, w)."""
        x = self.squeeze_activation(self.squeeze(x))
        halves = (
            self.expand1x1_activation(self.expand1x1(x)),
            self.expand3x3_activation(self.expand3x3(x)),
        )
        return torch.cat(halves, 1)


class SqueezeNet(nn.Module):
    """Scores of classes for images.

    Args:
        features: the layers that lead to 512 channels.
        num_classes: the number of classes.
        dropout: how much of the features is dropped in training.

    Shapes:
        x: (n, 3, h, w); result: (n, num_classes).

    References:
        F. N. Iandola and others, "SqueezeNet: AlexNet-level accuracy with 50x fewer
        parameters and <0.5MB model size", arXiv:1602.07360. The names of the parameters
        are torchvision's.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import squeezenet1_1
        >>> model = squeezenet1_1(num_classes=10)
        >>> model(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 10])
    """

    def __init__(
        self, features: Any, num_classes: int = 1000, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.features = features
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Conv2d(512, num_classes, 1),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((1, 1)),
        )
        start(self, last=self.classifier[1])

    def forward(self, x: Any) -> Any:
        """Scores of the classes."""
        return torch.flatten(self.classifier(self.features(x)), 1)


def start(model: Any, last: Any) -> None:
    """Give a model's convolutions their initial values; those of the last are small."""
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            if layer is last:
                nn.init.normal_(layer.weight, 0.0, 0.01)
            else:
                nn.init.kaiming_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)


def smaller() -> Any:
    """A pooling that halves height and width."""
    return nn.MaxPool2d(3, stride=2, ceil_mode=True)


def squeezenet1_0(num_classes: int = 1000, dropout: float = 0.5) -> SqueezeNet:
    """SqueezeNet 1.0, of the paper: 1.2 million parameters.

    Example:
        >>> from lantern.models import squeezenet1_0
        >>> sum(p.numel() for p in squeezenet1_0().parameters())
        1248424
    """
    features = nn.Sequential(
        nn.Conv2d(3, 96, 7, stride=2), nn.ReLU(inplace=True), smaller(),
        Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128), smaller(),
        Fire(256, 32, 128), Fire(256, 48, 192), Fire(384, 48, 192),
        Fire(384, 64, 256), smaller(), Fire(512, 64, 256),
    )  # fmt: skip
    return SqueezeNet(features, num_classes, dropout)


def squeezenet1_1(num_classes: int = 1000, dropout: float = 0.5) -> SqueezeNet:
    """SqueezeNet 1.1: as accurate as 1.0 with 2.4 times less computation.

    Example:
        >>> from lantern.models import squeezenet1_1
        >>> sum(p.numel() for p in squeezenet1_1().parameters())
        1235496
    """
    features = nn.Sequential(
        nn.Conv2d(3, 64, 3, stride=2), nn.ReLU(inplace=True), smaller(),
        Fire(64, 16, 64), Fire(128, 16, 64), smaller(),
        Fire(128, 32, 128), Fire(256, 32, 128), smaller(),
        Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256),
    )  # fmt: skip
    return SqueezeNet(features, num_classes, dropout)


def squeezenet_cifar(num_classes: int = 10) -> Any:
    """SqueezeNet for images of 32×32, as the Lantern paper measures it.

    The last convolution sees what is left of the image, 4×4, as a whole, so that no
    average is taken.

    References:
        F. Wang, J. Decker, X. Wu, G. Essertel, T. Rompf, "Backpropagation with
        Continuation Callbacks", NeurIPS 2018, and its longer version, ICFP 2019,
        section 5.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import squeezenet_cifar
        >>> squeezenet_cifar()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """
    model = nn.Sequential(
        nn.Conv2d(3, 96, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128), nn.MaxPool2d(2),
        Fire(256, 32, 128), Fire(256, 48, 192), Fire(384, 48, 192),
        Fire(384, 64, 256), nn.MaxPool2d(2), Fire(512, 64, 256),
        nn.Conv2d(512, num_classes, 4), nn.Flatten(),
    )  # fmt: skip
    start(model, last=model[13])
    return model
