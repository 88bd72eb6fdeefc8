"""Libraries that compute the values of some operations: how, never what.

A part is imported when it is asked for: ``engines.softmax.softmax(x, axis)``.
"""

from lantern.engines.onednn import in_use, set_threads, switch, switched
from lantern.imported import late_parts

__all__ = ["in_use", "set_threads", "switch", "switched"]

__getattr__ = late_parts(
    __name__, "affine arithmetic copies elementwise normalisation softmax sums"
)
