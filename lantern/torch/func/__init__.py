"""Transforms of functions of tensors: ``torch.func``."""

from lantern.torch.func.batch_norms import *
from lantern.torch.func.checks import slice_argnums as _slice_argnums
from lantern.torch.func.jacobians import *
from lantern.torch.func.mapping import *
from lantern.torch.func.stateless import *
from lantern.torch.func.transforms import *
