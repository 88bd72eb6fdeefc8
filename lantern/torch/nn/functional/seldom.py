"""Functions of layers that are imported, with their engines, when one is asked for."""

from lantern.torch.nn import grad as grad
from lantern.torch.nn.functional.adapted import adapt as _adapt
from lantern.torch.nn.functional.alignment import *
from lantern.torch.nn.functional.attention import *
from lantern.torch.nn.functional.convolution import *
from lantern.torch.nn.functional.fractional import *
from lantern.torch.nn.functional.margin import *
from lantern.torch.nn.functional.normalisation import *
from lantern.torch.nn.functional.pooling import *
from lantern.torch.nn.functional.sampling import *
from lantern.torch.nn.functional.shaping import *

_adapt(globals())
