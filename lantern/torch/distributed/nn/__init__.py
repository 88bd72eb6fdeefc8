"""Collectives that derivatives pass."""

from lantern.torch.distributed.nn import functional as functional
from lantern.torch.distributed.nn.functional import *
