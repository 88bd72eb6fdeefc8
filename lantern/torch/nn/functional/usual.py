"""Functions of layers that are imported with the first of them: most programs' own."""

from lantern.torch.nn.functional.activation import *
from lantern.torch.nn.functional.adapted import adapt as _adapt
from lantern.torch.nn.functional.classes import *
from lantern.torch.nn.functional.linear import *
from lantern.torch.nn.functional.loss import *
from lantern.torch.nn.functional.shares import *

_adapt(globals())
