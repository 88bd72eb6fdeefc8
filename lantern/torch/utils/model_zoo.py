"""The older path of ``torch.hub``'s functions."""

from collections.abc import Iterable
from typing import Any

from lantern.torch.hub import load_state_dict_from_url as load_url

__all__ = ["load_url", "tqdm"]

try:
    from tqdm import tqdm
except ImportError:

    def tqdm(iterable: Iterable[Any], *args: Any, **options: Any) -> Any:
        """What is iterated over, without a bar."""
        return iterable
