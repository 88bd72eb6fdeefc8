import threading

import numpy as np
import pytest

from lantern import engines
from lantern.engines import copies, team
from lantern.tensor.backend.numpy_namespace import numpy_namespace as xp

pytestmark = pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)

SHAPE = 5, 3, 260, 271  # no whole number of parts
CONDITIONS = [(260, 271), (3, 1, 271), (5, 1, 260, 1), SHAPE]


def drawn(*shape):
    x = np.random.default_rng(4).standard_normal(shape).astype("f")
    x.reshape(-1)[::101] = np.nan
    return x


@pytest.mark.parametrize("shape", CONDITIONS)
class TestWhere:
    def test_a_number_where_a_condition_holds(self, shape, two_threads):
        x, condition, number = drawn(*SHAPE), drawn(*shape) > 0.5, np.float32(-np.inf)
        right = np.where(condition, number, x)
        np.testing.assert_array_equal(copies.filled(x, condition, number), right)
        np.testing.assert_array_equal(xp.where(condition, number, x), right)

    def test_nothing_where_it_does_not(self, shape, two_threads):
        x, condition = drawn(*SHAPE), drawn(*shape) > 0.5
        bits = np.negative(condition.view(np.int8), dtype=np.int32)
        right = np.where(condition, x, 0)
        np.testing.assert_array_equal(copies.kept(x, bits), right)
        np.testing.assert_array_equal(xp.where(condition, x, 0), right)


@pytest.mark.parametrize(
    ("x", "condition"),
    [
        (drawn(*SHAPE).astype("d"), drawn(260, 271) > 0),
        (drawn(*SHAPE)[:, :, ::-1], drawn(260, 271) > 0),
        (drawn(*SHAPE[1:]), drawn(260, 271) > 0),
        (drawn(5, 1, 460, 471), drawn(3, 1, 471) > 0),  # of another result
    ],
)
def test_other_arrays_are_not_for_it(x, condition, two_threads):
    number = x.dtype.type(2)
    assert copies.filled(x, condition, number) is None
    right = np.where(condition, number, x)
    np.testing.assert_array_equal(xp.where(condition, number, x), right)


class TestTeam:
    def test_each_turn_is_taken_once_by_several_threads(self, two_threads):
        taken, both = [], threading.Barrier(2, timeout=60)

        def work(turn):
            if turn < 2:  # neither can take both
                both.wait()
            taken.append((turn, threading.get_ident()))

        assert team.share(work, 7)
        assert sorted(turn for turn, _ in taken) == list(range(7))
        assert len({who for _, who in taken}) == 2

    def test_what_is_raised_comes_back(self, two_threads):
        def work(turn):
            raise KeyboardInterrupt(turn)

        with pytest.raises(KeyboardInterrupt):
            team.share(work, 3)

    def test_one_thread_does_nothing(self, two_threads):
        engines.set_threads(1)
        assert not team.share(pytest.fail, 3)
