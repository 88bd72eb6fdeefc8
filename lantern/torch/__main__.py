"""``python -m lantern.torch SCRIPT ARGS``: a script of PyTorch's, on Lantern."""

import argparse
import os

from lantern.torch.run import as_torch


def main() -> None:
    """Take the command line apart, and run the script."""
    parser = argparse.ArgumentParser(
        prog="python -m lantern.torch",
        description=(
            "Run a script that was written for PyTorch: in it, and in what it imports, "
            "torch is lantern.torch. A name that is missing is an error that says "
            "which one is nearest."
        ),
        epilog="What follows SCRIPT is handed on to it.",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the file to run")
    parser.add_argument(
        "arguments",
        metavar="ARGS",
        nargs=argparse.REMAINDER,
        help="the script's own arguments",
    )
    options = parser.parse_args()
    if not os.path.isfile(options.script):
        parser.error(f"can't open file {options.script!r}")
    as_torch.run(options.script, options.arguments)


if __name__ == "__main__":
    main()
