"""Reports of how far a derivative is: each step once there, once back, in order."""

import numpy as np
import pytest

import lantern

STEPS = 10
THERE = [("there", i, STEPS) for i in range(STEPS + 1)]
BACK = [("back", i, STEPS) for i in range(STEPS + 1)]


def loop(x, seen, policy="sqrt"):
    def step(y, i):
        return {"a": lantern.sin(y["a"]) * x, "b": y["b"] + 1}

    def report(*told):
        seen.append(told)

    state = {"a": x, "b": 0}
    return lantern.remat_loop(step, state, STEPS, policy, report=report)["a"]


@pytest.mark.parametrize("policy", ["sqrt", "log", 0, 2])
def test_each_step_is_reported_once_on_each_way(policy):
    """Also where steps run again on the way back."""
    seen, silent = [], lantern.grad(lambda x: loop(x, [], policy))(1.5)
    assert lantern.grad(lambda x: loop(x, seen, policy))(1.5) == silent
    assert seen[: STEPS + 1] == THERE
    assert seen[STEPS + 1 :] == BACK


def test_without_a_derivative_there_is_one_way():
    seen = []
    loop(1.5, seen)
    assert seen == THERE


def test_examples_are_counted():
    seen = []

    @lantern.batched
    def double(x):
        return 2 * x

    found = lantern.batch(
        double, (x for x in np.arange(3.0)), report=lambda *told: seen.append(told)
    )
    assert found == [0.0, 2.0, 4.0]
    assert seen == [("there", i, 3) for i in (1, 2, 3)]


def test_what_is_no_function_is_refused():
    with pytest.raises(lantern.ArgumentError, match="progress"):
        lantern.progress(None, 1.0, 0, 1)


def test_an_error_of_a_report_passes_through():
    def report(way, done, total):
        if way == "back":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lantern.grad(lambda x: lantern.progress(report, x * x, 1, 1))(1.0)
    assert lantern.grad(lambda x: x * x * x)(3.0) == 27
