"""``python -m benchmarks``: the only entry; it picks, runs, prints and writes."""

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import table
from benchmarks.environment import surroundings, use_one_core

NAMES = (
    "scalar_chain",
    "one_call",
    "million",
    "import_time",
    "tensor_chain",
    "mlp_step",
    "jacobians",
    "threads",
    "checkpointing",
    "buffer",
    "collected",
    "treelstm",
    "training",
)
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks; 0 when each could run, whatever its figures say."""
    options = _parser().parse_args(arguments)
    chosen = options.only or list(NAMES)
    complaint = _complaint(chosen, options.json)
    if complaint:
        print(complaint, file=sys.stderr)
        return 2
    use_one_core()
    rows, failed = _run(chosen, options.quick)
    print(f"{surroundings()}\n\n{table.markdown(rows)}")
    for file in table.write(rows, RESULTS):
        print(f"wrote {file}")
    if options.json:
        table.write_json(rows, options.json)
        print(f"wrote {options.json}")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Lantern's speed and memory beside its peers, as one table.",
        epilog=f"Benchmarks: {', '.join(NAMES)}.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds and smaller sizes"
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="run this one; may be repeated"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the rows to FILE as well"
    )
    return parser


def _complaint(chosen: Sequence[str], json: Path | None) -> str:
    """What is wrong with the arguments, in one line; empty if nothing is."""
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        known = ", ".join(NAMES)
        return f"benchmarks: there is no {unknown[0]!r}. Choose from {known}."
    if json and (json.is_dir() or not json.parent.is_dir()):
        return f"benchmarks: cannot write {str(json)!r}. Name a file in a folder."
    return ""


def _run(chosen: Sequence[str], quick: bool) -> tuple[list[table.Row], bool]:
    """The rows of all chosen benchmarks; one that fails says so in its row."""
    rows: list[table.Row] = []
    failed = False
    for name in chosen:
        start = time.perf_counter()
        try:
            rows += importlib.import_module(f"benchmarks.{name}").rows(quick)
        except Exception as error:  # the others shall still run
            failed = True
            told = " ".join(f"{type(error).__name__}: {error}".split())
            rows.append(table.Row(name, "failed", None, "", detail=told))
        seconds = time.perf_counter() - start
        print(f"{name}: {seconds:.0f} s", file=sys.stderr)
    return rows, failed


if __name__ == "__main__":
    sys.exit(main())
