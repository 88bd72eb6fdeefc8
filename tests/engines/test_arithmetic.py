import numpy as np
import pytest

from lantern import engines
from lantern.engines import arithmetic

pytestmark = pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, -1.5], "f")
BY = {"multiplied": np.multiply, "divided": np.divide}


def drawn(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype("f")


@pytest.mark.parametrize("name", BY)
@pytest.mark.parametrize("number", [0.3, -7.0, 1e-30])
@pytest.mark.parametrize(
    "x",
    [
        drawn(513, 512),
        drawn(8, 64, 3, 200).transpose(0, 3, 1, 2),
        np.tile(SPECIAL, 1 << 15),
    ],
)
def test_equals_numpy_bit_for_bit(x, number, name, two_threads):
    found = getattr(arithmetic, name)(x, number)
    with np.errstate(all="ignore"):
        right = BY[name](x, number)
    assert found.strides == right.strides
    np.testing.assert_array_equal(found, right)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(right))


@pytest.mark.parametrize(
    "x",
    [
        *(drawn(513, 512).astype("d"), drawn(9, 9)),
        *(drawn(512, 513).T, drawn(513, 1024)[:, ::2]),
    ],
)
def test_other_arrays_are_not_for_it(x, two_threads):
    assert arithmetic.multiplied(x, 0.3) is None


def test_one_thread_multiplies_by_numpy(two_threads):
    engines.set_threads(1)
    assert arithmetic.divided(drawn(513, 512), 0.3) is None
