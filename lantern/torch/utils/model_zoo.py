"""The older path of ``torch.hub``'s functions."""

from lantern.torch.hub import load_state_dict_from_url as load_url
from lantern.torch.hub import tqdm as tqdm

__all__ = ["load_url", "tqdm"]
