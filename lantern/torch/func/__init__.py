"""Transforms of functions of tensors: ``torch.func``."""

from lantern.torch.func import checks as _checks
from lantern.torch.func.batch_norms import *
from lantern.torch.func.jacobians import *
from lantern.torch.func.mapping import *
from lantern.torch.func.stateless import *
from lantern.torch.func.transforms import *

_slice_argnums = _checks.slice_argnums
