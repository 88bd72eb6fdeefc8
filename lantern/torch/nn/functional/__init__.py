"""Functions of tensors that layers are made of, under PyTorch's names."""

from typing import Any as _Any

from lantern.torch.documented import document as _document
from lantern.torch.nn.functional.activation import *
from lantern.torch.nn.functional.alignment import *
from lantern.torch.nn.functional.attention import *
from lantern.torch.nn.functional.classes import *
from lantern.torch.nn.functional.convolution import *
from lantern.torch.nn.functional.linear import *
from lantern.torch.nn.functional.loss import *
from lantern.torch.nn.functional.margin import *
from lantern.torch.nn.functional.normalisation import *
from lantern.torch.nn.functional.pooling import *
from lantern.torch.nn.functional.sampling import *
from lantern.torch.nn.functional.shaping import *
from lantern.torch.nn.functional.shares import *
from lantern.torch.paths import missing as _missing

_document("functional", globals())


def __getattr__(name: str) -> _Any:
    """Say which name there is that comes nearest."""
    raise _missing("module 'torch.nn.functional'", name, globals())
