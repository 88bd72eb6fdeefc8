"""Several processes: all_reduce beside mpi4py's own and PyTorch's gloo, DDP, start-up.

``python -m benchmarks --only distributed``; it needs mpi4py, PyTorch and two cores.
What is compared runs in turns in the same processes, or in fresh ones in turns.
``benchmarks/distributed.py FILE.png timeline`` draws one step, where a launcher runs it
in two processes.
"""

import copy
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.environment import use_all_cores
from benchmarks.table import Row, Target

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"1 KB": 256, "1 MB": 1 << 18, "10 MB": 10 << 18, "100 MB": 100 << 18}
REPEATS = {"1 KB": 400, "1 MB": 100, "10 MB": 20, "100 MB": 5}
LAUNCHERS = {
    "plain": ("-m", "lantern.distributed.run"),
    "lantern": ("-m", "lantern.torch.distributed.run"),
    "torch": ("-m", "torch.distributed.run", "--standalone"),
}
NAME = "distributed"


def rows(quick: bool) -> list[Row]:
    """Every figure, for two processes."""
    missing = [p for p in ("mpi4py", "torch") if not importlib.util.find_spec(p)]
    if missing or (os.cpu_count() or 1) < 2:
        words = f"needs {', '.join(missing) or 'two cores'}"
        return [Row(NAME, "all_reduce", None, "×", Target(1.2), words)]
    return [*_reductions(quick), *_steps(quick), _starts(quick), *_faults(quick)]


def _run(launcher: str, *words: str) -> Any:
    """What one of the parts below says, in two processes."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        _launch(launcher, report, *words).check_returncode()
        return json.loads(report.read_text())


def _launch(launcher: str, report: Path, *words: str) -> Any:
    """Two processes that do one of the parts below, each on a core of its own."""
    return subprocess.run(
        [
            *(sys.executable, *LAUNCHERS[launcher], "--nproc_per_node", "2"),
            *(__file__, str(report), *words),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        preexec_fn=use_all_cores,
    )


def _reductions(quick: bool) -> list[Row]:
    found = _run("plain", "reductions", "0.1" if quick else "1")
    made = []
    for size, times in found.items():
        median = {name: 1e3 * statistics.median(t) for name, t in times.items()}
        ours = median["lantern"] / median["mpi4py"]
        gloo = median["gloo"] / median["lantern"]
        words = ", ".join(f"{name} {ms:.3g} ms" for name, ms in median.items())
        figure = f"all_reduce of {size}, mpi4py's own time"
        target = Target(2.5 if size == "1 KB" else 1.2, at_most=True)
        made.append(Row(NAME, figure, ours, "×", target, f"{words}; gloo {gloo:.2g} ×"))
    return made


def _steps(quick: bool) -> list[Row]:
    """What DDP adds to a step, of both in turns; what leaves while rules still run."""
    added: dict[str, list[float]] = {"lantern": [], "torch": []}
    steps: dict[str, list[float]] = {"lantern": [], "torch": []}
    early = []
    for _ in range(1 if quick else 3):
        for launcher in added:
            found = _run(launcher, "steps")
            alone, several = (statistics.median(found[k]) for k in ("alone", "several"))
            added[launcher].append(1e3 * (several - alone))
            steps[launcher].append(1e3 * alone)
            if launcher == "lantern":
                early += found["early"]
    ours, theirs = (statistics.median(added[name]) for name in added)
    words = ", ".join(
        f"{name}: a step {statistics.median(steps[name]):.3g} ms, DDP adds "
        f"{statistics.median(added[name]):.3g} ms"
        for name in added
    )
    share = 100 * statistics.median(early)
    return [
        Row(
            NAME,
            "what DDP adds, PyTorch's",
            ours / theirs,
            "×",
            Target(1.0, True),
            words,
        ),
        Row(
            NAME,
            "gradients' bytes reduced while rules still run",
            share,
            "%",
            Target(60.0),
            "an MLP of 5 layers of 512, buckets of 1 MB",
        ),
    ]


def _starts(quick: bool) -> Row:
    """From the command to the end of a program that reduces one number."""
    times: dict[str, list[float]] = {"lantern": [], "torch": []}
    for _ in range(2 if quick else 5):
        for launcher, found in times.items():
            began = time.perf_counter()
            _run(launcher, "start")
            found.append(time.perf_counter() - began)
    ours, theirs = (statistics.median(t) for t in times.values())
    words = f"lantern {ours:.2f} s, torch {theirs:.2f} s"
    target = Target(1 / 3, at_most=True)
    return Row(
        NAME,
        "start and end of 2 processes, PyTorch's",
        ours / theirs,
        "×",
        target,
        words,
    )


def _faults(quick: bool) -> list[Row]:
    """From the moment of a fault to the other's error, or to the end of the job."""
    made = []
    for what, end, limit in (
        ("killed", "the other says so", 1.0),
        ("stopped", "the other says so", 10.0),
        ("raises", "the job is over", 2.0),
    ):
        times: dict[str, list[float]] = {"the other says so": [], "the job is over": []}
        for _ in range(1 if quick or what == "stopped" else 5):
            for name, seconds in zip(times, _fault(what), strict=True):
                times[name].append(seconds)
        words = ", ".join(f"{name} after {max(t):.2g} s" for name, t in times.items())
        figure = f"one of 2 processes {'is ' * (end != 'the job is over')}{what}: {end}"
        target = Target(limit, at_most=True)
        made.append(
            Row(NAME, figure, max(times[end]), "s", target, f"slowest: {words}")
        )
    return made


def _fault(what: str) -> tuple[float, float]:
    """Seconds from a fault to the other process's error, and to the end of the job."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        _launch("plain", report, "fault", what)
        over = time.time()
        said, began = (float(report.with_suffix(f".{r}").read_text()) for r in (0, 1))
        return said - began, over - began


# --- what the processes do -----------------------------------------------------------


def reductions(report: str, share: str) -> None:
    """Reduce arrays by three ways in turns."""
    import numpy as np
    import torch
    import torch.distributed as theirs

    import lantern.distributed as dist

    dist.init()
    rank = dist.rank()
    from mpi4py import MPI

    comm = MPI.COMM_WORLD.Dup()
    with tempfile.NamedTemporaryFile() as file:
        path = comm.bcast(f"{file.name}.store")
        theirs.init_process_group(
            "gloo", init_method=f"file://{path}", rank=rank, world_size=2
        )
    group = dist.init().everyone
    found: dict[str, dict[str, list[float]]] = {}
    for size, n in SIZES.items():
        source, target = np.ones(n, np.float32), np.empty(n, np.float32)
        tensor = torch.ones(n)

        ways: dict[str, Any] = {
            "mpi4py": partial(comm.Allreduce, source, target),
            "lantern": partial(group.all_reduce, source, target, "sum"),
            "gloo": partial(theirs.all_reduce, tensor),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(max(3, int(REPEATS[size] * float(share)))):
            for name, way in ways.items():
                comm.Barrier()
                began = time.perf_counter()
                way()
                times[name].append(time.perf_counter() - began)
            tensor.fill_(1.0)
        found[size] = times
    if rank == 0:
        Path(report).write_text(json.dumps(found))
    comm.Barrier()


def steps(report: str) -> None:
    """Train with and without DDP, in turns; ``torch`` is PyTorch or Lantern."""
    import torch
    import torch.distributed as dist
    from torch import nn

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    layers: list[Any] = []
    for _ in range(5):
        layers += [nn.Linear(512, 512), nn.ReLU()]
    alone = nn.Sequential(*layers)
    several = nn.parallel.DistributedDataParallel(copy.deepcopy(alone), bucket_cap_mb=1)
    x = torch.randn(64, 512)
    found: dict[str, Any] = {"alone": [], "several": [], "early": []}
    ways = [
        (name, model, torch.optim.SGD(model.parameters(), 0.1))
        for name, model in (("alone", alone), ("several", several))
    ]
    for i in range(24):
        for name, model, optimizer in ways:
            dist.barrier()
            began = time.perf_counter()
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            if i > 3:
                found[name].append(time.perf_counter() - began)
        found["early"].append(getattr(several.reducer, "early", 0.0))
    if dist.get_rank() == 0:
        Path(report).write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def timeline(report: str) -> None:
    """One step with DDP: when rules ran, and when each bucket was on its way."""
    import lantern.torch as torch
    import lantern.torch.distributed as dist
    from lantern.eager.recorder import Recorder
    from lantern.torch import nn

    dist.init_process_group("gloo")
    layers: list[Any] = []
    for _ in range(8):
        layers += [nn.Linear(512, 512), nn.ReLU()]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=1)
    reducer, rules, buckets = model.reducer, [], []
    resume, finish = Recorder.resume, reducer._finish

    def resumed(z: Any, answer: Any) -> Any:
        began = time.time()
        try:
            return resume(z, answer)
        finally:
            rules.append((began, time.time()))

    def finished(bucket: Any, everywhere: Any) -> None:
        work = bucket.work
        finish(bucket, everywhere)
        buckets.append((work.began + shift, work.ended + shift))

    shift = time.time() - time.perf_counter()
    for owner, name, f in (
        (Recorder, "resume", resumed),
        (reducer, "_finish", finished),
    ):
        setattr(owner, name, f)
    x = torch.randn(256, 512)
    for _ in range(10):
        model.zero_grad()
        rules.clear()
        buckets.clear()
        dist.barrier()
        model(x).pow(2).mean().backward()
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (rules, buckets))
    if dist.get_rank() == 0:
        _draw(report, everyone)
    dist.destroy_process_group()


def _draw(path: str, everyone: list[Any]) -> None:
    """Two rows for each process: its rules, and its buckets."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 2.8))
    start = min(rules[0][0] for rules, _ in everyone)
    names: list[str] = []
    for rank, both in enumerate(everyone):
        for what, spans in zip(("rules", "buckets sent"), both, strict=True):
            colour = "tab:orange" if what == "rules" else "tab:green"
            bars = [(1e3 * (a - start), 1e3 * (b - a)) for a, b in spans]
            axes.broken_barh(
                bars, (len(names) - 0.35, 0.7), color=colour, edgecolor="w"
            )
            names.append(f"rank {rank}: {what}")
        end = 1e3 * (both[0][-1][1] - start)
        middle = len(names) - 1.5
        axes.plot([end, end], [middle - 1, middle + 1], color="k", lw=1, ls=":")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("ms; dotted: the last rule of the rank is over")
    axes.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def fault(report: str, what: str) -> None:
    """One process is killed, stopped or raises; each notes when it came to that."""
    import numpy as np

    import lantern.distributed as dist

    dist.init()
    note = Path(report).with_suffix(f".{dist.rank()}")
    dist.barrier()
    if dist.rank() == 1:
        note.write_text(str(time.time()))
        if what == "raises":
            raise ValueError("the reason")
        os.kill(os.getpid(), signal.SIGKILL if what == "killed" else signal.SIGSTOP)
    try:
        dist.all_reduce(np.ones(5))
    finally:
        note.write_text(str(time.time()))


def start(report: str) -> None:
    """Reduce one number."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == 0:
        Path(report).write_text("0")
    dist.destroy_process_group()


if __name__ == "__main__":
    parts: dict[str, Any] = {
        f.__name__: f for f in (reductions, steps, start, fault, timeline)
    }
    parts[sys.argv[2]](sys.argv[1], *sys.argv[3:])
