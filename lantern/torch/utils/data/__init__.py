"""Data sets, and how batches are made of them, under PyTorch's names."""

from typing import Any as _Any

from lantern.torch.run.aliases import lead as _lead
from lantern.torch.run.aliases import missing as _missing
from lantern.torch.utils.data import _utils as _utils
from lantern.torch.utils.data import loader as _loader
from lantern.torch.utils.data.collating import *
from lantern.torch.utils.data.datapipes import *
from lantern.torch.utils.data.dataset import *
from lantern.torch.utils.data.loader import *
from lantern.torch.utils.data.sampler import *

_lead(__name__, "dataloader distributed")
_lead(_utils.__name__, "fetch pin_memory worker", _loader.__name__)
_lead(f"{__name__}.datapipes", "datapipe iter map", f"{__name__}.datapipes")


def __getattr__(name: str) -> _Any:
    """What libraries know of the loader; else say which name comes nearest."""
    if name.startswith("_") and not name.startswith("__") and hasattr(_loader, name):
        return getattr(_loader, name)
    raise _missing("module 'torch.utils.data'", name, globals())
