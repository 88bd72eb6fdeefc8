"""PyTorch never warns of infinities; pytest would forget the face's own filter."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Let these tests run with the filter that importing the face sets."""
    for item in items:
        if HERE in Path(item.path).parents:
            item.add_marker(
                pytest.mark.filterwarnings(r"ignore::RuntimeWarning:lantern\..*")
            )
