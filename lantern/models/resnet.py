"""Residual networks: blocks that add what they compute to what they were given."""

from typing import Any

import lantern.torch as torch
from lantern.torch import nn

__all__ = ["ResNet", "resnet18", "resnet34", "resnet50"]


class BasicBlock(nn.Module):
    """Two 3×3 convolutions, and a way around them.

    Args:
        inputs: channels of the input.
        planes: channels of the result.
        stride: of the first convolution.
    """

    expansion = 1

    def __init__(self, inputs: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = shortcut(inputs, planes, stride)

    def forward(self, x: Any) -> Any:
        """x: (n, inputs, h, w); result: (n, planes, h / stride, w / stride)."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """A 3×3 convolution between two of 1×1, and a way around them.

    Args:
        inputs: channels of the input.
        planes: channels between; the result has four times as many.
        stride: of the 3×3 convolution.
    """

    expansion = 4

    def __init__(self, inputs: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        outputs = planes * self.expansion
        self.conv1 = nn.Conv2d(inputs, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = shortcut(inputs, outputs, stride)

    def forward(self, x: Any) -> Any:
        """x: (n, inputs, h, w); result: (n, 4 · planes, h / stride, w / stride)."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


def shortcut(inputs: int, outputs: int, stride: int) -> Any:
    """The way around a block: None where shapes stay as they are."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
    )


class ResNet(nn.Module):
    """Scores of classes for images.

    Args:
        block: ``BasicBlock`` or ``Bottleneck``.
        depths: how many blocks each of the four stages has.
        num_classes: the number of classes.
        stem: ``"imagenet"``, which makes images four times smaller before the first
            stage, or ``"cifar"``, for images of 32×32: one 3×3 convolution.

    Shapes:
        x: (n, 3, h, w); result: (n, num_classes).

    References:
        K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition",
        CVPR 2016. The names of the parameters are torchvision's.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.models import resnet18
        >>> model = resnet18(num_classes=10, stem="cifar")
        >>> model.eval()(torch.zeros(1, 3, 32, 32)).shape
        torch.Size([1, 10])
    """

    def __init__(
        self,
        block: Any,
        depths: tuple[int, ...],
        num_classes: int = 1000,
        stem: str = "imagenet",
    ) -> None:
        super().__init__()
        small = stem == "cifar"
        size, stride, padding = (3, 1, 1) if small else (7, 2, 3)
        self.conv1 = nn.Conv2d(3, 64, size, stride, padding, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, padding=1)
        self.layer1 = stage(block, 64, 64, depths[0], 1)
        self.layer2 = stage(block, 64 * block.expansion, 128, depths[1], 2)
        self.layer3 = stage(block, 128 * block.expansion, 256, depths[2], 2)
        self.layer4 = stage(block, 256 * block.expansion, 512, depths[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(
                    layer.weight, mode="fan_out", nonlinearity="relu"
                )

    def forward(self, x: Any) -> Any:
        """Scores of the classes."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def stage(block: Any, inputs: int, planes: int, depth: int, stride: int) -> Any:
    """Blocks in a row, the first of which may make images smaller."""
    later = [block(planes * block.expansion, planes) for _ in range(depth - 1)]
    return nn.Sequential(block(inputs, planes, stride), *later)


def resnet18(num_classes: int = 1000, stem: str = "imagenet") -> ResNet:
    """ResNet-18: 11.7 million parameters.

    Example:
        >>> from lantern.models import resnet18
        >>> sum(p.numel() for p in resnet18().parameters())
        11689512
    """
    return ResNet(BasicBlock, (2, 2, 2, 2), num_classes, stem)


def resnet34(num_classes: int = 1000, stem: str = "imagenet") -> ResNet:
    """ResNet-34: 21.8 million parameters.

    Example:
        >>> from lantern.models import resnet34
        >>> sum(p.numel() for p in resnet34().parameters())
        21797672
    """
    return ResNet(BasicBlock, (3, 4, 6, 3), num_classes, stem)


def resnet50(num_classes: int = 1000, stem: str = "imagenet") -> ResNet:
    """ResNet-50: 25.6 million parameters.

    Example:
        >>> from lantern.models import resnet50
        >>> sum(p.numel() for p in resnet50().parameters())
        25557032
    """
    return ResNet(Bottleneck, (3, 4, 6, 3), num_classes, stem)
