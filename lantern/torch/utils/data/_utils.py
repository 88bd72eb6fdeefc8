"""What libraries take from the inside of PyTorch's loader."""

from lantern.torch.run.aliases import lead
from lantern.torch.utils.data import collating as collate

__all__ = ["collate"]
__path__: list[str] = []

MP_STATUS_CHECK_INTERVAL = 5.0
HAS_NUMPY = True
lead(__name__, "collate", collate.__name__)
