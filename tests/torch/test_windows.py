import numpy as np
import pytest

from lantern import engines
from lantern.torch.nn.windows import Form, correlate_any, spread_any

# Forms, channels and filters: where there are no more filters than channels, and no
# strides, the transpose is a convolution of results, else it adds up windows.
CASES = {
    "as many filters": (Form((5, 6), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)), 3, 3),
    "padding on one side": (
        Form((5, 6), (3, 2), (1, 1), ((2, 0), (0, 1)), (1, 1)),
        4,
        2,
    ),
    "dilation": (Form((9, 8), (3, 2), (1, 1), ((1, 3), (0, 2)), (2, 3)), 3, 2),
    "too much padding": (Form((5, 6), (2, 3), (1, 1), ((2, 0), (1, 1)), (1, 1)), 3, 2),
    "one axis": (Form((7,), (4,), (1,), ((2, 1),), (1,)), 2, 1),
    "three axes": (Form((4, 5, 3), (2, 3, 2), (1,) * 3, ((1, 0),) * 3, (1,) * 3), 3, 2),
    "few elements": (Form((3, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)), 3, 2),
    "more filters": (Form((5, 6), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)), 2, 3),
    "strides": (Form((5, 6), (3, 3), (2, 1), ((1, 1), (1, 1)), (1, 1)), 3, 3),
    "groups": (Form((5, 6), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 2), 4, 2),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("examples", [1, 2])
def test_spread_is_the_transpose_of_correlate(case, examples):
    form, channels, filters = case
    rng = np.random.default_rng(8)
    x = rng.standard_normal((examples, channels, *form.lengths))
    w = rng.standard_normal((filters, channels // form.groups, *form.size))
    z = rng.standard_normal((examples, filters, *form.steps))
    with engines.switched(False):
        x_bar = spread_any(z, w, form=form)
        assert x_bar.shape == x.shape
        there = (correlate_any(x, w, form=form) * z).sum()
        np.testing.assert_allclose((x * x_bar).sum(), there, rtol=1e-12)
