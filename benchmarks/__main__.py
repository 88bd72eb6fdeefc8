"""``python -m benchmarks``: the only entry; it picks, runs, prints and writes."""

import argparse
import importlib
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import table
from benchmarks.environment import surroundings, use_cores

NAMES = (
    "scalar_chain",
    "one_call",
    "million",
    "growth",
    "zygote_table",
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
    "torch_func",
    "staging",
    "convolution",
    "models",
)
# These run only where --only names them.
ASKED_FOR = ("gpu", "short_ways", "distributed", "before")
FAILED = "failed"
RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks; 0 when each could run, whatever its figures say."""
    options = _parser().parse_args(arguments)
    chosen = options.only or list(NAMES)
    complaint = _complaint(chosen, options)
    if complaint:
        print(complaint, file=sys.stderr)
        return 2
    use_cores(options.threads)
    rows, took = _run(chosen, options.quick)
    note = f"Processor seconds: {took}"
    print(f"{surroundings()}\n\n{table.markdown(rows)}\n{note}\n")
    for file in table.write(rows, RESULTS, note):
        print(f"wrote {file}")
    if options.json:
        table.write_json(rows, options.json)
        print(f"wrote {options.json}")
    return 1 if any(row.figure == FAILED for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Lantern's speed and memory beside its peers, as one table.",
        epilog=f"Benchmarks: {', '.join(NAMES)}; if asked for: {', '.join(ASKED_FOR)}.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds and smaller sizes"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads, on as many cores, by the clock if more than one (default 1)",
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="run this one; may be repeated"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the rows to FILE as well"
    )
    return parser


def _complaint(chosen: Sequence[str], options: argparse.Namespace) -> str:
    """What is wrong with the arguments, in one line; empty if nothing is."""
    unknown = [name for name in chosen if name not in (*NAMES, *ASKED_FOR)]
    if unknown:
        known = ", ".join((*NAMES, *ASKED_FOR))
        return f"benchmarks: there is no {unknown[0]!r}. Choose from {known}."
    most = os.cpu_count() or 1
    if not 1 <= options.threads <= most:
        return f"benchmarks: {options.threads} threads. Choose 1 to {most}."
    json = options.json
    if json and (json.is_dir() or not json.parent.is_dir()):
        return f"benchmarks: cannot write {str(json)!r}. Name a file in a folder."
    return ""


def _run(chosen: Sequence[str], quick: bool) -> tuple[list[table.Row], str]:
    """The rows of all chosen benchmarks, and what each took of the processor's time.

    One that fails says so in its row, and the others still run.
    """
    rows: list[table.Row] = []
    took = {}
    for name in chosen:
        start, used = time.perf_counter(), _processor_seconds()
        try:
            rows += importlib.import_module(f"benchmarks.{name}").rows(quick)
        except Exception as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            rows.append(table.Row(name, FAILED, None, "", detail=told))
        took[name] = _processor_seconds() - used
        clock = time.perf_counter() - start
        told = f"{clock:.0f} s, of which the processor's {took[name]:.0f} s"
        print(f"{name}: {told}", file=sys.stderr, flush=True)
    each = ", ".join(f"{name} {seconds:.0f}" for name, seconds in took.items())
    return rows, f"{each}; together {sum(took.values()):.0f}."


def _processor_seconds() -> float:
    """What this process and those that it started have used: all those have ended."""
    for child in multiprocessing.active_children():
        child.join(timeout=10)
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main())
