"""Optimisers that are imported when one of them is asked for."""

from lantern.torch.optim.adaptive import *
from lantern.torch.optim.lbfgs import *
from lantern.torch.optim.matrices import *
