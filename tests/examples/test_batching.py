"""examples/batching.py: what is batched is what the plain loop gives."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lantern
from lantern.testing import check_grads

PROGRAM = Path(__file__).parents[2] / "examples" / "batching.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("batching_example", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["text_loss", "thought_loss"])
def test_gradients_are_those_of_the_loop(example, name):
    loss, w = getattr(example, name), example.begin()
    alone = lantern.value_and_grad(loss)(w, example.loop)
    assert example.close(lantern.value_and_grad(loss)(w, lantern.batch), alone)


def test_the_texts_gradient_is_that_of_differences(example):
    w = example.begin()

    def loss(hidden):
        return example.text_loss(w | {"hidden": hidden}, lantern.batch)

    check_grads(loss, (w["hidden"],))


def test_expressions(example):
    def expected(x):
        return x * (x + 1) + x * x + x**3 + 3 + 3 * x * 2.5 * x

    for run in (example.loop, lantern.batch):
        value = lantern.grad(example.expression_sum)(1.5, run)
        np.testing.assert_allclose(value, lantern.grad(expected)(1.5))


def test_beam_search(example):
    w = example.begin()
    found = example.beam_search(w, lantern.batch)
    assert found == example.beam_search(w, example.loop)
    assert [text[:1] for text in found] == ["a", "t", "q", "w", "z"]
    assert all(text.endswith(".") for text in found)


def test_plain_operations_wait(example):
    w, reports = example.begin_wide(), []

    def batch(f, examples):
        results = lantern.batch(f, examples, granularity="op")
        reports.append(results)
        return results

    alone = lantern.value_and_grad(example.plain_loss)(w, example.loop)
    assert example.close(lantern.value_and_grad(example.plain_loss)(w, batch), alone)
    assert max(run.size for run in reports[0].runs) == example.MANY


def test_the_command():
    result = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={"PYTHONPATH": str(PROGRAM.parents[1])},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("same results") == 5
