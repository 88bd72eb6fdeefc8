"""What all comparisons with PyTorch need: its silence about infinities."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Without PyTorch, its import says why the tests are skipped: each of them shall say so.
collect_ignore = ["compared.py"]


def pytest_collection_modifyitems(items):
    """Let these tests run with the filter that importing the face sets."""
    for item in items:
        if HERE in Path(item.path).parents:
            item.add_marker(
                pytest.mark.filterwarnings(r"ignore::RuntimeWarning:lantern\..*")
            )
