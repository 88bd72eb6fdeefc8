"""Arrays with more of their own elements around them, and what goes back to these.

Two rules, each the other's transpose.
"""

from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base
from lantern.op import linear
from lantern.torch.nn.starting import fused

__all__ = ["surrounded"]


@linear
def _surrounded(x: Any, /, widths: Any, mode: str) -> Rule:
    """An array with its own elements around it.

    Args:
        widths: how many before and behind, for each axis.
        mode: which they are: "edge", "reflect" or "wrap", as ``numpy.pad`` has it.

    Shapes:
        x: (n, ...); result: (before + n + after, ...)

    Rule:
        x_bar = the middle of z_bar, and what is around it added to what it repeats
    """
    if base(x) is x:
        z = namespace(x).pad(x, widths, mode)
    else:
        z = surrounded_any(x, widths=widths, mode=mode)
    z_bar = yield (z, z := None, x := None)[0]
    yield folded_any(z_bar, widths=widths, mode=mode)


@linear
def _folded(z: Any, /, widths: Any, mode: str) -> Rule:
    """The transpose of ``surrounded``.

    Shapes:
        z: (before + n + after, ...); result: (n, ...)

    Rule:
        z_bar = surrounded(x_bar)
    """
    if base(z) is z:
        x = _folded_array(z, widths, mode)
    else:
        x = folded_any(z, widths=widths, mode=mode)
    x_bar = yield (x, x := None, z := None)[0]
    yield surrounded_any(x_bar, widths=widths, mode=mode)


def _folded_array(z: Any, widths: Any, mode: Any) -> Any:
    """The middle of an array, with what is around it added."""
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        lead, n = (slice(None),) * axis, z.shape[axis] - before - after
        where = np.pad(np.arange(n), (before, after), mode).tolist()
        x = z[(*lead, slice(before, before + n))].copy()
        for i in (*range(before), *range(before + n, before + n + after)):
            x[(*lead, where[i])] += z[(*lead, i)]
        z = x
    return z


surrounded_any: Any
surrounded_any, folded_any = _surrounded, _folded
surrounded = fused(_surrounded)
