"""Which ways to run programs belong to the fast subset."""

import pytest

FAST = "O0"
"""Machine code without passes: it meets all guards, and is made at once."""


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name != "staging" or not hasattr(item, "callspec"):
            continue
        chosen = {item.callspec.params.get(name, FAST) for name in ("mode", "level")}
        if chosen != {FAST}:
            item.add_marker(pytest.mark.slow)
