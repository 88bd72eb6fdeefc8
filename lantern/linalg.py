"""Linear algebra, under the names of ``numpy.linalg`` and the array API standard."""

from lantern.tensor.decomposition import *
from lantern.tensor.spectral import *
from lantern.tensor.solving import *
