"""Functions of tensors that layers are made of, under PyTorch's names."""

import difflib as _difflib
from typing import Any as _Any

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


def __getattr__(name: str) -> _Any:
    """Say which name there is that comes nearest."""
    known = [n for n in globals() if not n.startswith("_")]
    near = _difflib.get_close_matches(name, known, 1, 0.5)
    hint = f" Did you mean: {near[0]!r}?" if near else ""
    raise AttributeError(
        f"module 'torch.nn.functional' has no attribute {name!r}.{hint}"
    )
