import numpy as np
import pytest

from lantern import engines
from lantern.engines import plan

pytestmark = pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)


def drawn(shape, axes):
    """An array of a shape whose axes lie in memory in some order."""
    rows = np.random.default_rng(3).standard_normal([shape[i] for i in axes])
    return rows.astype("f").transpose(np.argsort(axes))


class TestMoved:
    @pytest.mark.parametrize(
        ("shape", "axes"),
        [
            ((300, 200), (1, 0)),
            ((2, 48, 20, 21), (0, 2, 3, 1)),
            ((50, 1, 400), (2, 1, 0)),
            ((5, 6, 7, 8, 9, 10), (5, 3, 1, 4, 0, 2)),
        ],
    )
    def test_to_rows_and_from_them(self, shape, axes):
        x = drawn(shape, axes)
        rows, back = np.empty(shape, "f"), np.empty_like(x)
        assert plan.moved(x, rows)
        assert plan.moved(rows, back)
        assert np.array_equal(rows, x)
        assert np.array_equal(back, x)

    @pytest.mark.parametrize(
        "x",
        [
            np.zeros((300, 400), "f")[:, ::2],
            np.broadcast_to(np.float32(1), (300, 200)),
            np.zeros((300, 200), "f")[::-1],
            np.zeros((200, 300)).T,
            np.zeros((3, 4), "f").T,
        ],
        ids=["gaps", "repeated", "backwards", "double", "small"],
    )
    def test_other_arrays_are_left_to_numpy(self, x):
        assert not plan.moved(x, np.empty(x.shape, x.dtype))

    def test_an_array_of_another_shape_is_not_written_to(self):
        assert not plan.moved(drawn((300, 200), (1, 0)), np.empty((200, 300), "f"))
