"""The classes of results with names, such as what ``torch.max(x, 0)`` gives."""

from typing import Any

from lantern.torch.run.aliases import missing
from lantern.torch.tensor.named_results import CLASSES

__all__ = ["CLASSES"]


def __getattr__(name: str) -> Any:
    """The class of a function's results."""
    if name in CLASSES:
        return CLASSES[name]
    raise missing("module 'torch.return_types'", name, CLASSES)
