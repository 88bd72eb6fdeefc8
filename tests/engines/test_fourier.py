import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines
from lantern.engines import fourier
from lantern.torch.nn import windows

needs_engine = pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)

# Lengths of an array, and how windows lie on it: their size, stride and padding.
FORMS = {
    "one": ((5, 6), (1, 1), (1, 1), ((0, 0), (0, 0))),
    "odd": ((9, 7), (5, 3), (1, 1), ((2, 2), (1, 1))),
    "even": ((8, 10), (4, 6), (1, 1), ((2, 1), (3, 2))),
    "none around": ((9, 10), (5, 6), (1, 1), ((0, 0), (0, 0))),
    "as large as the array": ((6, 7), (6, 7), (1, 1), ((0, 0), (0, 0))),
    "larger": ((5, 4), (9, 7), (1, 1), ((4, 4), (3, 4))),
    "in steps": ((12, 11), (5, 4), (2, 3), ((2, 1), (1, 2))),
    "steps that leave a rest": ((13, 14), (3, 5), (4, 3), ((1, 0), (0, 1))),
    "steps beyond windows": ((13, 14), (2, 1), (4, 3), ((1, 0), (0, 1))),
    "Deep Speech 2": ((27, 17), (21, 11), (2, 1), ((10, 10), (5, 5))),
}


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def form_of(name):
    lengths, size, stride, padding = FORMS[name]
    return windows.Form(lengths, size, stride, padding, (1, 1))


@pytest.fixture
def always(monkeypatch):
    """Every convolution is taken, be it ever so small."""
    for name in ("_LEAST", "_GAIN", "_SMALL"):
        monkeypatch.setattr(fourier, name, 0)
    monkeypatch.setattr(fourier, "_WEIGHTS", 1000)
    fourier._axes.cache_clear()
    yield
    fourier._axes.cache_clear()


@pytest.mark.parametrize("name", FORMS)
def test_all_three_equal_the_general_way_in_double_precision(name, always):
    form = form_of(name)
    x, w = drawn(3, 4, *form.lengths), drawn(5, 4, *form.size, seed=1)
    z = drawn(3, 5, *form.steps, seed=2)
    cases = [
        (fourier.correlate, windows._correlated, (x, w)),
        (fourier.spread, windows._spread_out, (z, w)),
        (fourier.match, windows._matched, (x, z)),
    ]
    for ours, general, operands in cases:
        right = general(*(a.astype(float) for a in operands), form)
        found = ours(*operands, form)
        assert found.dtype == np.float32
        assert found.shape == right.shape
        np.testing.assert_allclose(found, right, atol=2e-6 * abs(right).max())


def test_results_have_their_channels_last_and_weights_lie_in_rows(always):
    form = form_of("in steps")
    x, w = drawn(3, 4, *form.lengths), drawn(5, 4, *form.size)
    z = fourier.correlate(x, w, form)
    for images in (z, fourier.spread(z, w, form)):
        assert images.transpose(0, 2, 3, 1).flags.c_contiguous
    assert fourier.match(x, z, form).flags.c_contiguous


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38])
def test_what_is_not_finite_is_left_to_others(value, always):
    form = form_of("odd")
    x, w = drawn(3, 4, *form.lengths), drawn(5, 4, *form.size)
    z = drawn(3, 5, *form.steps)
    x[1, 2, 3, 4] = z[1, 2, 3, 4] = value
    with np.errstate(all="ignore"):
        assert fourier.correlate(x, w, form) is None
        assert fourier.spread(z, w, form) is None
        assert fourier.match(x, z, form) is None


LEFT = {
    "small windows": ((64, 64), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    "groups": ((64, 64), (21, 21), (1, 1), ((9, 9), (9, 9)), (1, 1), 2),
    "dilated": ((64, 64), (21, 21), (1, 1), ((9, 9), (9, 9)), (2, 1), 1),
    "few examples": ((64, 64), (21, 21), (1, 1), ((9, 9), (9, 9)), (1, 1), 1, 2),
    "little work": ((8, 8), (7, 7), (1, 1), ((3, 3), (3, 3)), (1, 1), 1),
    "one axis": ((4096,), (1024,), (1,), ((0, 0),), (1,), 1),
    "much memory": ((512, 512), (31, 31), (1, 1), ((9, 9), (9, 9)), (1, 1), 1),
}


@pytest.mark.parametrize("name", LEFT)
def test_the_rule_leaves_the_rest(name):
    *form, examples = (*LEFT[name], 32)[:7]
    assert fourier._axes_of(windows.Form(*form), examples, 64, 64) is None


def test_the_rule_takes_large_windows():
    form = windows.Form((32, 32), (7, 7), (1, 1), ((3, 3), (3, 3)), (1, 1))
    assert fourier._axes_of(form, 32, 64, 64) is not None


@needs_engine
def test_layers_ask_it(monkeypatch):
    asked = []
    for name in ("correlate", "spread", "match"):
        ours = getattr(fourier, name)

        def noted(*operands, ours=ours):
            asked.append(ours(*operands))
            return asked[-1]

        monkeypatch.setattr(fourier, name, noted)
    x = torch.from_numpy(drawn(32, 32, 20, 20)).requires_grad_()
    layer = torch.nn.Conv2d(32, 48, 11, padding=5)
    layer(x).square().sum().backward()
    assert len(asked) == 3
    assert not any(found is None for found in asked)
    right = [x.grad.numpy(), layer.weight.grad.numpy(), layer.bias.grad.numpy()]
    x.grad = None
    layer.zero_grad()
    with engines.switched(False):
        layer(x).square().sum().backward()
    found = [x.grad.numpy(), layer.weight.grad.numpy(), layer.bias.grad.numpy()]
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * abs(b).max())


@needs_engine
def test_an_image_that_is_not_finite_spoils_no_other():
    x = drawn(32, 32, 24, 24)
    x[2, 3, 12, 12] = np.nan
    w = torch.from_numpy(drawn(48, 32, 11, 11))
    z = torch.nn.functional.conv2d(torch.from_numpy(x), w, padding=5).numpy()
    assert np.isnan(z[2]).any(axis=0).sum() == 11 * 11
    assert not np.isnan(z[[0, 1, 3, 7]]).any()
