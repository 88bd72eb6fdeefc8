"""Layers that are imported, with their engines, when one of them is asked for."""

from lantern.torch.nn import grad as grad
from lantern.torch.nn import utils as utils
from lantern.torch.nn.adaptive import *
from lantern.torch.nn.attention import *
from lantern.torch.nn.cells import *
from lantern.torch.nn.convolution import *
from lantern.torch.nn.embedding import *
from lantern.torch.nn.lazy import LAYERS as _LAYERS
from lantern.torch.nn.normalisation import *
from lantern.torch.nn.padding import MODULES as _PADS
from lantern.torch.nn.parallel import DataParallel as DataParallel
from lantern.torch.nn.parallel import SyncBatchNorm as SyncBatchNorm
from lantern.torch.nn.parameter_containers import *
from lantern.torch.nn.recurrent import *
from lantern.torch.nn.transformer import *

globals().update(_PADS | _LAYERS)
