import math

import numpy as np
import pytest

import lantern.torch as torch
from lantern import engines
from lantern.engines import steps
from lantern.torch.optim.plan import Plan, carry_out

pytestmark = pytest.mark.skipif(
    engines.in_use() is None, reason="no oneDNN here: pip install lantern-ad[onednn]"
)

# The shares of what is new and of what is kept, the step length, the root that squares
# are divided by, what is added to it, the decay that joins, and what is left of x.
NUMBERS = (0.1, 0.99, 0.01, 0.02, math.sqrt(1 - 0.99**3), 1e-8, 0.0, 0.999)

ORDERS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "channels last": lambda x: np.ascontiguousarray(x.transpose(0, 2, 1)).swapaxes(
        1, 2
    ),
}


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def parameter(*shape):
    """A parameter, its gradient with some zeros, its mean and its mean of squares."""
    x, g, mean, square = (drawn(*shape, seed=seed) for seed in range(4))
    return x, g * (g > -1), mean, square * square


def moved(x, g, mean, square, numbers=NUMBERS):
    """What Adam makes of a parameter and of what is kept, in double precision."""
    new, kept, new_square, lr, root, eps, _, left = numbers
    x, g, mean, square = (a.astype(float) for a in (x, g, mean, square))
    mean += new * (g - mean)
    square = kept * square + new_square * g * g
    return x * left - lr * mean / (np.sqrt(square) / root + eps), mean, square


def near(found, right):
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=4e-7, atol=2e-7)


class TestAdam:
    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("shape", [(2, 64, 128), (3, 57, 97), (1, 1, 1 << 14)])
    @pytest.mark.parametrize("numbers", [NUMBERS, (*NUMBERS[:-1], 1.0)])
    def test_equals_double_precision(self, order, shape, numbers):
        x, g, mean, square = map(ORDERS[order], parameter(*shape))
        right, before = moved(x, g, mean, square, numbers), g.copy()
        for function, *arguments in steps.adam(x, g, mean, square, numbers):
            function(*arguments)
        near((x, mean, square), right)
        np.testing.assert_array_equal(g, before)

    def test_steps_of_one_size_are_planned_together(self):
        given = [parameter(130, 130 + i % 2) for i in range(5)]
        right = [moved(*arrays) for arrays in given]
        plan = Plan()
        for arrays in given:
            plan += steps.adam(*arrays, NUMBERS)
        for (x, *_), (y, *_) in zip(given, right, strict=True):
            assert abs(x - y).max() > 1e-3  # nothing is done yet
        carry_out(plan)
        for (x, _, mean, square), wanted in zip(given, right, strict=True):
            near((x, mean, square), wanted)

    def test_a_plan_holds_the_gradient(self):
        x, g, mean, square = parameter(130, 130)
        right = moved(x, g, mean, square)
        plan = Plan(steps.adam(x, g.copy(), mean, square, NUMBERS))
        others = [np.full_like(g, np.nan) for _ in range(9)]
        carry_out(plan)
        near((x, mean, square), right)
        assert len(others) == 9

    def test_no_squares_and_no_gradient_leave_the_parameter(self):
        x, (g, mean, square) = drawn(130, 130), np.zeros((3, 130, 130), "f")
        right = x * np.float32(0.999)
        carry_out(Plan(steps.adam(x, g, mean, square, NUMBERS)))
        np.testing.assert_allclose(x, right, rtol=3e-7)

    @pytest.mark.parametrize(
        "change",
        {
            "few": lambda *arrays: [a[:81].copy() for a in arrays],
            "double": lambda *arrays: [a.astype(float) for a in arrays],
            "apart": lambda *arrays: [a[::2] for a in arrays],
            "gradient in columns": lambda x, g, *kept: [x, np.asfortranarray(g), *kept],
            "unlike": lambda x, g, *kept: [x, g[:1], *kept],
        }.items(),
        ids=lambda pair: pair[0],
    )
    def test_leaves_other_arrays(self, change):
        arrays = change[1](*parameter(200, 200))
        assert steps.adam(*arrays, NUMBERS) is None

    @pytest.mark.parametrize("numbers", [(*NUMBERS[:6], 0.1, 1.0), (*NUMBERS[:7], 0.4)])
    def test_leaves_other_decays(self, numbers):
        assert steps.adam(*parameter(130, 130), numbers) is None

    @pytest.mark.parametrize("which", [0, 2, 3], ids=["parameter", "mean", "square"])
    def test_leaves_memory_that_is_only_read(self, which):
        arrays = parameter(130, 130)
        arrays[which].flags.writeable = False
        assert steps.adam(*arrays, NUMBERS) is None

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_what_is_not_finite_stays_so(self, value):
        x, g, mean, square = parameter(130, 130)
        g[3, 4] = value
        with np.errstate(invalid="ignore"):
            right = moved(x, g, mean, square)
        carry_out(Plan(steps.adam(x, g, mean, square, NUMBERS)))
        near((x, mean, square), right)

    def test_leaves_all_if_it_is_switched_off(self):
        with engines.switched(False):
            assert steps.adam(*parameter(130, 130), NUMBERS) is None


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["Adam", "AdamW", "NAdam"])
def test_optimisers_move_parameters_as_without_an_engine(kind, decay, amsgrad):
    def trained(on):
        options = {"amsgrad": amsgrad} if kind != "NAdam" else {}
        p = torch.nn.Parameter(torch.from_numpy(drawn(150, 120)))
        make = getattr(torch.optim, kind)
        optimiser = make([p], lr=0.01, weight_decay=decay, **options)
        with engines.switched(on):
            for seed in range(5):
                p.grad = torch.from_numpy(drawn(150, 120, seed=seed))
                optimiser.step()
        state = [a.numpy() for a in optimiser.state[p].values() if a.ndim]
        return [p.detach().numpy(), *state]

    near(trained(True), trained(False))
