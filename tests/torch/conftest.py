"""What all comparisons with PyTorch need: its silence about infinities."""

import os

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
