"""Which ways to run programs belong to the fast subset."""

import pytest

FAST = "O0"
"""Machine code without passes: it meets all guards, and is made at once."""
IN_ALL_MODES = ("test_hooks", "test_guards", "test_derivatives", "test_jit")
"""Files with hundreds of programs in three to five modes: a fifth of the subset."""


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name != "staging" or item.path.stem not in IN_ALL_MODES:
            continue
        callspec = getattr(item, "callspec", None)
        if callspec is not None and callspec.params.get("mode", FAST) != FAST:
            item.add_marker(pytest.mark.slow)
