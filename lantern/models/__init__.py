"""Well-known models on ``lantern.torch``, whose parameters have their published names.

Each file is one family, and reads the same with PyTorch in place of ``lantern.torch``:
that is how the tests compare the two.
"""

from lantern.models.characters import CharacterRNN
from lantern.models.deepspeech import DeepSpeech2
from lantern.models.gpt2 import GPT2
from lantern.models.llama import Llama
from lantern.models.mnist import MNISTNet
from lantern.models.mobilenet import MobileNetV2, mobilenet_v2
from lantern.models.resnet import ResNet, resnet18, resnet34, resnet50
from lantern.models.sampling import generate
from lantern.models.squeezenet import (
    SqueezeNet,
    squeezenet1_0,
    squeezenet1_1,
    squeezenet_cifar,
)
from lantern.models.text_encoder import TextEncoder

__all__ = [
    "GPT2",
    "CharacterRNN",
    "DeepSpeech2",
    "Llama",
    "MNISTNet",
    "MobileNetV2",
    "ResNet",
    "SqueezeNet",
    "TextEncoder",
    "generate",
    "mobilenet_v2",
    "resnet18",
    "resnet34",
    "resnet50",
    "squeezenet1_0",
    "squeezenet1_1",
    "squeezenet_cifar",
]
