"""Matrix products."""

from typing import Any

from lantern.op import op
from lantern.value import Rule

__all__ = ["matmul"]


@op
def matmul(x: Any, y: Any, /) -> Rule:
    """The matrix product, over all leading axes together.

    Shapes:
        x: (..., n, k) or (k,); y: (..., k, m) or (k,); result: (..., n, m), without the
        axes that a vector lacks

    Rule:
        x_bar = z_bar @ y.mT, y_bar = x.mT @ z_bar

    Example:
        >>> import numpy as np
        >>> matmul(np.array([[1.0, 2.0]]), np.array([3.0, 4.0]))
        array([11.])
    """
    z_bar = yield x @ y
    if len(x.shape) == len(y.shape) == 1:
        yield lambda: z_bar * y
        yield lambda: z_bar * x
    elif len(y.shape) == 1:
        yield lambda: z_bar[..., None] * y
        yield lambda: (z_bar[..., None, :] @ x)[..., 0, :]
    elif len(x.shape) == 1:
        yield lambda: (y @ z_bar[..., None])[..., 0]
        yield lambda: x[:, None] * z_bar[..., None, :]
    else:
        yield lambda: z_bar @ y.mT
        yield lambda: x.mT @ z_bar
