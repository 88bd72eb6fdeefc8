"""How training would scale: a simulation, calibrated on what is measured here.

``python -m benchmarks.scaling [--picture FILE]`` measures, in this process, for an MLP,
a ResNet-50 and the TreeLSTM: when in a step each bucket of gradients is complete, how
long a step takes, and how much that varies. With root it measures ``all_reduce``
between two network namespaces, without over shared memory. Then it lets 2 to 1,024
workers take steps together:

* worker i's step takes its measured length times a factor whose logarithm is normal,
  with the deviation measured (half of the middle 68 % of the steps' logarithms);
* a bucket is reduced when all workers have it, and the bucket before is reduced, in
  2 log₂(n) latencies and 2 (n-1)/n of its bytes by the bandwidth (recursive halving and
  doubling, which MPI uses for large arrays): no switch is ever full, nobody else sends;
* the step is over when its last bucket is.

Efficiency is a step alone, as a share of a step together: weak scaling, each worker
with its own batch. What a sending thread takes from a busy processor is left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.treelstm import data

WORKERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
STEPS = 200
# A network as clusters have: 25 Gbit/s, in full, and 10 µs.
CLUSTER = (10e-6, 25e9 / 8)
LINK = """
import json, statistics, sys, time, numpy as np
import lantern.distributed as dist
group = dist.init().everyone
found = []
for n, times in ((1, 100), (1 << 21, 5)):
    x, took = np.zeros(n, np.float32), []
    for _ in range(5):
        dist.barrier()
        began = time.perf_counter()
        for _ in range(times):
            group.all_reduce(x, x, "sum")
        took.append((time.perf_counter() - began) / times)
    found.append(statistics.median(took))
if dist.rank() == 0:
    open(sys.argv[1], "w").write(json.dumps(found))
"""


def link() -> tuple[float, float, str]:
    """Latency in seconds, bytes in a second, and between what."""
    from tests.ranks import ROOT, can_have_two_hosts, two_hosts

    environ = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    launcher = [sys.executable, "-m", "lantern.distributed.run"]
    with tempfile.TemporaryDirectory() as folder:
        script, report = Path(folder, "link.py"), Path(folder, "report")
        script.write_text(LINK)
        words = [str(script), str(report)]
        if can_have_two_hosts():
            with two_hosts() as (hosts, address):
                each = ["--nnodes=2", f"--rdzv_endpoint={address}:29513"]
                running = [
                    subprocess.Popen(
                        [*host, *launcher, *each, f"--node_rank={i}", *words],
                        env=environ,
                    )
                    for i, host in enumerate(hosts)
                ]
                for process in running:
                    process.wait(120)
            where = "two network namespaces"
        else:
            command = [*launcher, "--nproc_per_node=2", *words]
            subprocess.run(command, env=environ, check=True)
            where = "shared memory"
        little, much = json.loads(report.read_text())
    # Of two ranks: two latencies, and all bytes once.
    return little / 2, (8 << 20) / (much - little), where


Course = tuple[list[tuple[float, int]], list[float]]


def measured(model: Any, step: Callable[[Any], None], repeats: int) -> Course:
    """When each bucket of a step is complete, and its bytes; how long steps took."""
    import lantern.torch.distributed as dist
    from lantern.torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    parallel = DistributedDataParallel(model)
    reducer, sent = parallel.reducer, []
    whole = reducer._send

    def send(bucket: Any) -> None:
        sent.append((time.perf_counter(), bucket.flat.nbytes))
        whole(bucket)

    reducer._send = send
    ready, took = [], []
    for _ in range(repeats + 1):
        sent.clear()
        began = time.perf_counter()
        step(parallel)
        took.append(time.perf_counter() - began)
        ready.append([at - began for at, _ in sent])
        parallel.zero_grad()
    dist.destroy_process_group()
    middle = [statistics.median(times) for times in zip(*ready[1:], strict=True)]
    sizes = [size for _, size in sent]
    return list(zip(middle, sizes, strict=True)), took[1:]


def mlp() -> Course:
    """Five layers of 512, 64 examples."""
    import lantern.torch as torch

    layers: list[Any] = []
    for _ in range(5):
        layers += [torch.nn.Linear(512, 512), torch.nn.ReLU()]
    x = torch.randn(64, 512)
    step = lambda model: model(x).pow(2).mean().backward()  # noqa: E731
    return measured(torch.nn.Sequential(*layers), step, 100)


def resnet() -> Course:
    """ResNet-50, two pictures of 224 × 224."""
    import lantern.torch as torch
    from lantern.models import resnet50

    x = torch.randn(2, 3, 224, 224)
    step = lambda model: model(x).pow(2).mean().backward()  # noqa: E731
    return measured(resnet50(), step, 6)


def treelstm() -> Course:
    """The example's, 20 trees at once; its gradients leave together, at the end."""
    model, trees, course, table = data(20)
    took = []
    for _ in range(20):
        began = time.perf_counter()
        model.train_epoch(course, table, trees, 20, 0.05)
        took.append(time.perf_counter() - began)
    size = sum(w.nbytes for w in course.weights.values())
    return [(statistics.median(took[1:]), size)], took[1:]


def spread(took: list[float]) -> float:
    """How much steps differ: half of the middle 68 % of their logarithms."""
    low, high = np.quantile(np.log(took), [0.16, 0.84])
    return float(high - low) / 2


def simulated(course: Course, n: int, latency: float, bandwidth: float) -> float:
    """The efficiency of n workers."""
    buckets, took = course
    length, deviation = statistics.median(took), spread(took)
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(STEPS):
        slowest = float(np.exp(rng.normal(0.0, deviation, n)).max())
        free = 0.0
        for at, size in buckets:
            free = max(free, at * slowest)
            if n > 1:
                free += 2 * np.log2(n) * latency + 2 * (n - 1) / n * size / bandwidth
        total += max(free, length * slowest)
    return float(length * np.exp(deviation**2 / 2) * STEPS / total)


def draw(path: str, curves: dict[str, dict[str, list[float]]]) -> None:
    """A panel for each network."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(curves), figsize=(9, 3.6), sharey=True)
    for axes, (network, lines) in zip(panels, curves.items(), strict=True):
        for name, line in lines.items():
            axes.plot(WORKERS, [100 * e for e in line], marker="o", ms=3, label=name)
        axes.set(xscale="log", xlabel="workers", title=network, ylim=(0, 105))
        axes.set_xticks(WORKERS[::2], [str(n) for n in WORKERS[::2]])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("efficiency, %")
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, simulate, print a table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--picture", help="where to draw the curves")
    options = parser.parse_args()
    latency, bandwidth, where = link()
    networks = {
        f"{where}: {1e6 * latency:.0f} µs, {8e-9 * bandwidth:.1f} Gbit/s": (
            latency,
            bandwidth,
        ),
        "assumed: 10 µs, 25 Gbit/s": CLUSTER,
    }
    courses = {"MLP": mlp(), "ResNet-50": resnet(), "TreeLSTM": treelstm()}
    curves: dict[str, dict[str, list[float]]] = {}
    for network, figures in networks.items():
        print(f"\n{network}\n")
        print("| model | step | gradients | varies by | 8 | 64 | 1,024 |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        for name, course in courses.items():
            line = [simulated(course, n, *figures) for n in WORKERS]
            curves.setdefault(network, {})[name] = line
            step = statistics.median(course[1])
            varies = spread(course[1])
            size = sum(size for _, size in course[0]) / 1e6
            at = [f"{100 * line[WORKERS.index(n)]:.0f} %" for n in (8, 64, 1024)]
            words = f"{1e3 * step:.3g} ms | {size:.3g} MB | {100 * varies:.0f} %"
            print(f"| {name} | {words} | {' | '.join(at)} |")
    if options.picture:
        draw(options.picture, curves)


if __name__ == "__main__":
    main()
