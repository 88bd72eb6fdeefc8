"""MobileNetV2: blocks that compute in many channels and pass few on."""

from typing import Any

from lantern.torch import nn

__all__ = ["MobileNetV2", "mobilenet_v2"]

# Of each group of blocks: expansion, channels, how many, stride of the first.
GROUPS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def activated(inputs: int, outputs: int, size: int, stride: int, groups: int) -> Any:
    """A convolution, its normalisation, and ReLU up to 6."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(inplace=True),
    )


class InvertedResidual(nn.Module):
    """1×1 to many channels, 3×3 in each of them, 1×1 to few; added where shapes stay.

    Args:
        inputs: channels of the input.
        outputs: channels of the result.
        stride: of the 3×3 convolution.
        expansion: how many times more channels are between.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        between = inputs * expansion
        first = [activated(inputs, between, 1, 1, 1)] if expansion > 1 else []
        self.conv = nn.Sequential(
            *first,
            activated(between, between, 3, stride, between),
            nn.Conv2d(between, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.around = stride == 1 and inputs == outputs

    def forward(self, x: Any) -> Any:
        """x: (n, inputs, h, w); result: (n, outputs, h / stride, w / stride)."""
        return x + self.conv(x) if self.around else self.conv(x)


class MobileNetV2(nn.Module):
    """Scores of classes for images.

    Args:
        num_classes: the number of classes.
        dropout: how much of the features is dropped in training.
        groups: of each group of blocks: expansion, channels, how many, stride.

    Shapes:
        x: (n, 3, h, w); result: (n, num_classes).

    References:
        M. Sandler and others, "MobileNetV2: Inverted Residuals and Linear Bottlenecks",
        CVPR 2018. The names of the parameters are torchvision's.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import mobilenet_v2
        >>> model = mobilenet_v2(num_classes=10)
        >>> model.eval()(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 10])
    """

    def __init__(
        self,
        num_classes: int = 1000,
        dropout: float = 0.2,
        groups: tuple[tuple[int, int, int, int], ...] = GROUPS,
    ) -> None:
        super().__init__()
        layers, channels = [activated(3, 32, 3, 2, 1)], 32
        for expansion, outputs, count, first in groups:
            for i in range(count):
                stride = first if i == 0 else 1
                layers.append(InvertedResidual(channels, outputs, stride, expansion))
                channels = outputs
        layers.append(activated(channels, 1280, 1, 1, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(1280, num_classes)
        )
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out")
            elif isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, 0.0, 0.01)
                nn.init.zeros_(layer.bias)

    def forward(self, x: Any) -> Any:
        """Scores of the classes."""
        return self.classifier(self.features(x).mean((2, 3)))


def mobilenet_v2(num_classes: int = 1000, dropout: float = 0.2) -> MobileNetV2:
    """MobileNetV2: 3.5 million parameters.

    Example:
        >>> from lantern.models import mobilenet_v2
        >>> sum(p.numel() for p in mobilenet_v2().parameters())
        3504872
    """
    return MobileNetV2(num_classes, dropout)
