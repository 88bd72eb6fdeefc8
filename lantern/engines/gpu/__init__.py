"""What the engines are on a GPU: cuDNN, and kernels of our own, on CuPy's arrays.

A part is imported when it is asked for, which it is for arrays on a GPU only.
"""

from lantern.imported import late_parts as _late_parts

__getattr__ = _late_parts(
    __name__, "convolution elementwise entropy normalisation products softmax steps"
)
