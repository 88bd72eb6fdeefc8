"""``python with_lantern.py SCRIPT``: run a script with this library as its torch."""

import importlib
import runpy
import sys

PARTS = (
    "autograd cuda linalg nn nn.functional nn.init nn.parameter nn.utils nn.utils.rnn "
    "optim optim.lr_scheduler utils utils.data"
)


def main():
    sys.modules["torch"] = importlib.import_module("lantern.torch")
    for name in PARTS.split():
        part = importlib.import_module(f"lantern.torch.{name}")
        sys.modules[f"torch.{name}"] = part
    runpy.run_path(sys.argv[1], run_name="__main__")


if __name__ == "__main__":
    main()
