"""Differentiate Tangent's test functions with Lantern, and record what passes.

    python tests/conformance/tangent.py --suite PATH

PATH is a checkout of https://github.com/google/tangent. Every function of its
``tests/functions.py`` that does not need TensorFlow is differentiated to the second
order in every mix of modes, and checked against finite differences: as it stands, with
NumPy; and with Lantern's functions in place of NumPy's (``import lantern as np``). The
table in README.md, beside this file, is written anew, and what fails is printed. The
exit status is 1 if a function fails both ways that README.md does not explain (in a
line that begins with - and the function's name).
"""

import argparse
import copy
import importlib.util
import inspect
import platform
import sys
import warnings
from datetime import date
from pathlib import Path
from types import ModuleType

import numpy as np
import report

sys.path[0] = str(Path(__file__).resolve().parents[2])

import lantern  # noqa: E402  # from this checkout
from lantern.testing import check_grads  # noqa: E402

NAMESPACES = {"numpy": np, "lantern": lantern}

# Arguments by the names that Tangent gives them; a number is differentiated if it is
# no int.
rng = np.random.default_rng(0)
TRIPLE = (0.6, 0.9, -0.4)
ARGUMENTS = [
    {
        "a": a,
        "b": b,
        "c": -0.4,
        "n": n,
        "i": 1,
        "x": rng.uniform(0.3, 1.5, 4),
        "sqm": rng.normal(size=(3, 3)),
        "abc_packed_in_tuple": TRIPLE,
        "val": {"a": 0.6, "b": 0.9, "c": -0.4},
        "p": {"i": {"j": 1.5, "k": -0.7}},
        "input": rng.uniform(size=3),
        "label": np.eye(5)[1],
        "W": rng.normal(size=(3, 5)) / 2,
    }
    for a, b, n in ((0.6, 0.9, 2), (-0.7, 0.5, 0), (0.9, -1.1, 3))
]
# Where a name means something else.
SPECIAL = {
    "listcomp": {"a": rng.uniform(0.3, 1.5, 4)},
    "logistic_regression": {"b": rng.normal(size=5) / 2},
    "rnn": {"inputs": rng.normal(size=(3, 2)), "W": rng.normal(size=(2, 3))},
    "bilinear": {
        "x": rng.normal(size=(1, 3)),
        "h": rng.normal(size=(1, 3)),
        "U": rng.normal(size=(3, 3)),
        "W": rng.normal(size=(3, 3)),
        "b": rng.normal(size=(1, 3)),
    },
}


def functions(suite):
    """The functions to differentiate, with a stand-in for what they use of Tangent."""
    sys.modules["tangent"] = ModuleType("tangent")
    vars(sys.modules["tangent"]).update(
        trace=lambda f: f,
        Stack=list,
        push=lambda stack, x, name: stack.append(x),
        pop=lambda stack, name: stack.pop(),
        insert_grad_of=None,
    )
    path = suite / "tests" / "functions.py"
    spec = importlib.util.spec_from_file_location("tangent_functions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.tf = None
    return module, {
        name: f
        for name, f in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_") and f.__module__ == module.__name__
    }


def failure(name, f):
    """Why a function's derivatives are not those of finite differences; or None."""
    names = list(inspect.signature(f).parameters)
    for table in ARGUMENTS:
        table = table | SPECIAL.get(name, {})
        args = [table[k] for k in names]
        places = [i for i, x in enumerate(args) if not isinstance(x, int)]

        def g(*free, args=args, places=places):
            full = copy.deepcopy(args)  # for some write to their arguments
            for i, x in zip(places, free, strict=True):
                full[i] = copy.deepcopy(x)
            return f(*full)

        try:
            free = [args[i] for i in places]
            check_grads(g, free, order=2, atol=1e-5, rtol=1e-5)
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:90]}"
    return None


def table(results, commit):
    """What was measured, as Markdown."""
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    lines = [
        f"Measured on {date.today()} with {versions}, tangent {commit}:",
        "",
        "    python tests/conformance/tangent.py --suite PATH",
        "",
        "| the functions' `np` | passed | failed |",
        "|---|---|---|",
    ]
    for name, reasons in results.items():
        failed = sum(reason is not None for reason in reasons.values())
        lines.append(f"| {name} | {len(reasons) - failed} | {failed} |")
    both = sum(
        any(reasons[f] is None for reasons in results.values())
        for f in results["numpy"]
    )
    lines.append(f"| either | {both} | {len(results['numpy']) - both} |")
    return "\n".join(lines)


def main():
    """Measure, print and record; the number of failures without an explanation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", type=Path, required=True, help="its checkout")
    suite = parser.parse_args().suite.resolve()
    warnings.simplefilter("ignore")
    module, found = functions(suite)
    found = {k: f for k, f in found.items() if not k.startswith("tfe_")}
    results = {}
    for name, xp in NAMESPACES.items():
        module.np = xp
        results[name] = {k: failure(k, f) for k, f in found.items()}
        for k, reason in results[name].items():
            if reason is not None:
                print(f"{name}: {k}: {reason}")
    failed = [k for k in found if all(r[k] is not None for r in results.values())]
    return report.conclude("tangent", table(results, report.commit(suite)), failed)


if __name__ == "__main__":
    sys.exit(main() > 0)
