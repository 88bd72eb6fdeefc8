"""What surrounds a model: data, so far."""

import difflib as _difflib
from typing import Any as _Any

from lantern.torch.utils import data as data


def __getattr__(name: str) -> _Any:
    """Say which name there is that comes nearest."""
    known = [n for n in globals() if not n.startswith("_")]
    near = _difflib.get_close_matches(name, known, 1, 0.5)
    hint = f" Did you mean: {near[0]!r}?" if near else ""
    raise AttributeError(f"module 'torch.utils' has no attribute {name!r}.{hint}")
