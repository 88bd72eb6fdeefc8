"""``python -m lantern.torch.distributed.run SCRIPT``: ``torchrun``, on Lantern.

In the script ``torch`` is ``lantern.torch``, as by ``python -m lantern.torch``.
"""

import sys

from lantern.distributed.run import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(
        main(program="lantern.torch.distributed.run", runner=("-m", "lantern.torch"))
    )
