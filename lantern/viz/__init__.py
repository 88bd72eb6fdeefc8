"""Pictures of derivatives: who waits where, gradients, costs, trees.

Each function returns a ``Picture``: it shows itself in a notebook, ``save`` writes it
as PNG or SVG, and ``print`` gives a text for a terminal. Drawing needs the extra
``viz``.

Example:
    >>> from lantern import viz
    >>> print(viz.trace(lambda x: 2 * x + x * x * x, 3.0))
    there                    back again
    x = 3                    x_bar = 29
    │ a = 2 * x = 6          a_bar = 1 → x 2
    │ │ b = x * x = 9        b_bar = 3 → x 9, x 9
    │ │ │ c = b * x = 27     c_bar = 1 → b 3, x 9
    │ │ │ │ d = a + c = 33   d_bar = 1 → a 1, c 1
"""

from lantern.viz.costs import *
from lantern.viz.drawing import *
from lantern.viz.flow import *
from lantern.viz.tracing import *
from lantern.viz.trees import *
