"""Run ONNX's own cases by ``lantern.onnx``, and write the tables of docs/onnx.md.

    python tests/conformance/onnx_backend.py [NAME ...] [--write]

The package onnx ships 2,033 cases for those who run its models. Each is run forward by
the package's own runner; those of one operator from floats to floats are differentiated
as well, and compared with central differences along random directions, input by input.
With NAMEs only cases are run whose names contain one. The exit status is 1 if a case
fails that REASONS does not explain.
"""

import argparse
import os
import platform
import sys
import tempfile
import unittest
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test import BackendTest
from onnx_cases import LanternBackend, check_derivative, float_cases

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"

# Why a case is not passed: by the beginning of its name.
REASONS = {
    "forward": {
        "test_bernoulli": "what is drawn at random is compared with one draw",
        "test_loop16_seq_none": "the runner cannot compare scalars in a sequence: the "
        "values are equal",
        "test_squeezenet": "made-up weights: sums near 1e10 are rounded otherwise "
        "before the exponential",
    },
    "derivative": {
        "test_ai_onnx_ml_tree_ensemble": "a step function, in loops: MissingRuleError",
        "test_basic_deform_conv": "in loops over elements: MissingRuleError",
        "test_deform_conv": "in loops over elements: MissingRuleError",
        "test_roialign": "in loops over elements: MissingRuleError",
        "test_bernoulli": "random: each of the two values is drawn anew",
        "test_mod_float_edge_cases": "at whole multiples, where the remainder jumps",
    },
}


def selected(name, wanted):
    """Whether a case is to be run."""
    return not wanted or any(part in name for part in wanted)


def run_forward(wanted):
    """The outcome of each case, as the package's runner has it, by kind and name."""
    outcomes = {}
    for cls in BackendTest(LanternBackend, __name__).test_cases.values():
        kind = cls.__name__.removeprefix("OnnxBackend").removesuffix("ModelTest")
        for name in unittest.TestLoader().getTestCaseNames(cls):
            if not name.endswith("_cpu") or not selected(name, wanted):
                continue
            result = unittest.TestResult()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cls(name).run(result)
            problems = result.errors + result.failures + result.skipped
            word = problems[0][1].strip().splitlines()[-1] if problems else None
            outcomes[kind, name.removesuffix("_cpu")] = word
    return outcomes


def run_backward(wanted):
    """What was found of each derivative: "confirmed", "zero", or an error's words."""
    found = {}
    for case in float_cases():
        if not selected(case.name, wanted):
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found[case.name] = check_derivative(case)
            except Exception as error:
                found[case.name] = f"{type(error).__name__}: {error}"
    return found


def reason(which, name):
    """Why a case fails; None if nobody has said."""
    for start, why in REASONS[which].items():
        if name.startswith(start):
            return why
    return None


def tables(forward, backward):
    """The generated part of the page."""
    version, numpy = platform.python_version(), np.__version__
    lines = [
        f"Measured with Python {version}, onnx {onnx.__version__}, numpy {numpy}:",
        "",
        "    python tests/conformance/onnx_backend.py --write",
        "",
        "| cases | of them | passed |",
        "|---|--:|--:|",
    ]
    kinds = Counter(kind for kind, _ in forward)
    passed = Counter(kind for (kind, _), word in forward.items() if word is None)
    for kind, count in kinds.items():
        lines.append(f"| {KINDS.get(kind, kind)} | {count:,} | {passed[kind]:,} |")
    lines.append(f"| **all** | {len(forward):,} | {passed.total():,} |")
    words = Counter(backward.values())
    confirmed, zero = words["confirmed"], words["zero"]
    failed = len(backward) - confirmed - zero
    lines += [
        "",
        "| derivatives of the cases of one operator, floats to floats | |",
        "|---|--:|",
        f"| confirmed by differences | {confirmed} |",
        f"| zero, and nothing changes | {zero} |",
        f"| refused, or not confirmed | {failed} |",
        f"| **all** | {len(backward)} |",
    ]
    lines += ["", "What is not passed:", ""]
    lines += explained("forward", [n for (_, n), w in forward.items() if w])
    bad = [n for n, word in backward.items() if word not in ("confirmed", "zero")]
    lines += ["", "Derivatives that are not confirmed:", ""]
    lines += explained("derivative", bad)
    return "\n".join(lines)


KINDS = {
    "Node": "of one operator, some written out as others",
    "Simple": "small models; both of `Gradient`",
    "PyTorchConverted": "layers that PyTorch has exported",
    "PyTorchOperator": "operators that PyTorch has exported",
    "Real": "AlexNet to VGG-19, with made-up weights",
}


def explained(which, names):
    """A line for each reason, with how many cases it is about."""
    counts = Counter(reason(which, name) or "unknown" for name in names)
    first = {reason(which, name) or "unknown": name for name in reversed(names)}
    return [f"- {n} × {why} (`{first[why]}`)" for why, n in counts.items()]


def main():
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--write", action="store_true", help="write docs/onnx.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["ONNX_HOME"] = home
        forward = run_forward(options.names)
        backward = run_backward(options.names)
    print(tables(forward, backward))
    bad = [("forward", name, word) for (_, name), word in forward.items() if word]
    bad += [
        ("derivative", name, word)
        for name, word in backward.items()
        if word not in ("confirmed", "zero")
    ]
    unknown = [case for case in bad if reason(*case[:2]) is None]
    for which, name, word in bad if options.names else unknown:
        print(f"{which}: {name}: {word}")
    if options.write and not options.names:
        begin, end = "<!-- cases: begin -->", "<!-- cases: end -->"
        before, _, rest = PAGE.read_text("utf-8").partition(begin)
        text = f"{before}{begin}\n\n{tables(forward, backward)}\n\n{end}"
        PAGE.write_text(text + rest.partition(end)[2], "utf-8")
    return int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main())
