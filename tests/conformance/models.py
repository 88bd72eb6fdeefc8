"""Train the models beside PyTorch in float64, and record how far they are apart.

    python tests/conformance/models.py [--steps 20] [--ctc 1000] [--only NAME]

Each model of ``lantern.models`` is trained beside the same source on PyTorch: each step
from PyTorch's weights; SqueezeNet's paper form and DeepSpeech2 also without being
brought together again. Then the CTC loss is compared in random cases. The table in
README.md, beside this file, is written anew. The exit status is 1 if a step is further
away than 1e-9 (1e-6 where the two were never brought together), or a case differs.
"""

import argparse
import platform
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import report

sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.models import ctc, twins  # noqa: E402  # from this checkout

ALONE = ("SqueezeNet, CIFAR", "DeepSpeech2, RNN", "DeepSpeech2, LSTM")


def trained(name, steps, together):
    """The largest distance in some steps of losses, of gradients and of weights."""
    pair = twins.Pair(name)
    found = []
    for _ in range(steps):
        if together:
            pair.synchronise()
        found.append(pair.step())
    return np.max(found, 0)


def main():
    """Run what is asked for; the number of what differs."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--ctc", type=int, default=1000)
    parser.add_argument("--only", default="", help="a part of a model's name")
    options = parser.parse_args()
    rows, failed = [], []
    runs = [(name, True, 1e-9) for name in twins.MODELS]
    runs += [(name, False, 1e-6) for name in ALONE]
    for name, together, most in runs:
        if options.only not in name:
            continue
        start = time.perf_counter()
        far = trained(name, options.steps, together)
        seconds = time.perf_counter() - start
        print(name, together, far, f"{seconds:.0f} s", flush=True)
        if not max(far) < most:
            failed.append(name)
        how = "each step from equal weights" if together else "never brought together"
        rows.append(f"| {name} | {how} | " + " | ".join(f"{x:.0e}" for x in far) + " |")
    different = 0
    for seed in range(options.ctc):
        try:
            ctc.check(seed)
        except AssertionError as error:
            different += 1
            print("CTC, case", seed, error)
    if options.only:
        return len(failed) + different
    versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    text = "\n".join([
        f"Measured on {date.today()} with {versions}:", "",
        f"    python tests/conformance/models.py --steps {options.steps}", "",
        "| model | steps | losses | gradients | weights |", "|---|---|---|---|---|",
        *rows, "",
        f"CTC: {options.ctc} random cases, {different} of which differ.",
    ])  # fmt: skip
    report.record("models", text)
    print(text, "fails:", *failed, sep="\n")
    return len(failed) + different


if __name__ == "__main__":
    sys.exit(main() > 0)
