"""What all comparisons with PyTorch need: its silence about infinities."""

import os
import sys

import pytest

HERE = os.path.join(os.path.dirname(__file__), "")
# Without PyTorch, its import says why the tests are skipped: each of them shall say so.
collect_ignore = ["compared.py"]


def pytest_collection_modifyitems(items):
    """Let these tests run with the filter that importing lantern.torch sets."""
    quiet = pytest.mark.filterwarnings(r"ignore::RuntimeWarning:lantern\..*")
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(quiet)


@pytest.fixture(autouse=True)
def _nobody_is_asked():
    """Let no test find functions that ask because one before it had whom to ask."""
    disarm = getattr(sys.modules.get("lantern.torch.asking"), "disarm", bool)
    disarm()
    yield
    disarm()
