"""Linear algebra: ``torch.linalg``."""

from lantern.torch.linalg.matrices import *
from lantern.torch.linalg.solutions import *
