"""Every public name shows an example, and what an example shows is so.

Those of ``lantern.torch`` are in ``torch/test_examples.py``.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docstring_examples import (
    check_example,
    check_words,
    public_names,
    reference,
    texts,
)

ROOT = Path(__file__).parents[2]
# Where users import from.
MODULES = """
lantern lantern.array_api lantern.batching lantern.cps lantern.debugger
lantern.distributed lantern.effects lantern.engines
lantern.errors lantern.fft lantern.linalg lantern.models lantern.onnx lantern.op
lantern.random
lantern.scipy.integrate lantern.scipy.linalg lantern.scipy.signal lantern.scipy.special
lantern.scipy.stats lantern.staging lantern.testing lantern.viz
""".split()
NAMES = dict(public_names(MODULES))
TEXTS = texts(NAMES)


def test_every_module_of_the_reference_is_tried():
    from tests.torch.test_examples import MODULES as OF_TORCH

    tried = {*MODULES, *(f"lantern.{path}" for path in OF_TORCH)}
    assert {module.__name__ for module in reference.modules() if module} <= tried


@pytest.mark.parametrize(
    "path",
    ["torch/tensor/tensor.py", "torch/nn/functional/linear.py", "onnx/export"],
)
def test_examples_of_a_file_run_alone(path):
    """Where pytest imported it, a package took the place of a function."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    chosen = [f"lantern/{path}", "-k", "item or linear or export"]
    run = subprocess.run([*command, *chosen], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:]


def test_every_name_has_words_and_an_example():
    check_words(NAMES)


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS.values())
def test_an_example_prints_what_it_shows_beside_the_names_of_its_module(text):
    name = TEXTS[text]
    check_example(text, name, vars(sys.modules[NAMES[name].__module__]))
