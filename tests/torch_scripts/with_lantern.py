"""``python with_lantern.py SCRIPT``: run a script with this library as its torch.

With ``--device`` it runs on the stand-in for a GPU, where all its tensors lie.
"""

import importlib
import runpy
import sys
from contextlib import ExitStack

PARTS = (
    "autograd cuda linalg nn nn.functional nn.init nn.parameter nn.utils nn.utils.rnn "
    "optim optim.lr_scheduler utils utils.data"
)


def main():
    sys.modules["torch"] = importlib.import_module("lantern.torch")
    for name in PARTS.split():
        part = importlib.import_module(f"lantern.torch.{name}")
        sys.modules[f"torch.{name}"] = part
    with ExitStack() as stack:
        if "--device" in sys.argv:
            from tests.backends import StandIn, as_cuda

            stack.enter_context(as_cuda(StandIn()))
            sys.modules["torch"].set_default_device("cuda")
        runpy.run_path(sys.argv[1], run_name="__main__")


if __name__ == "__main__":
    main()
