"""Load: ``python -m tests.contract.load [--steps N] [--soak SECONDS]``.

Training steps that go well, fail or are abandoned, and what each leaves in bytes;
derivatives nested in many threads; and a soak, a walk of chance among small programs,
faults, threads and abandoned derivatives, after each of which the answers are right.
"""

import argparse
import gc
import itertools
import random
import sys
import threading
import time
import tracemalloc
from contextlib import suppress

import numpy as np

import lantern
import lantern.torch as torch
from lantern import cps, grad
from tests.conftest import check_answers, leftovers, set_all_aside, surroundings
from tests.contract import faults
from tests.contract.programs import PROGRAMS


def trained():
    """A step of a small network."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
    )
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    x = torch.ones(3, 4)

    def step():
        optimiser.zero_grad()
        net(x).square().sum().backward()
        optimiser.step()

    return step


def failing():
    """A step whose way back fails, after one that went well."""
    w, step = np.ones(4), trained()

    @lantern.custom_rule
    def broken(x, /):
        yield x * 1.0
        raise KeyError("back")

    def both():
        step()
        with suppress(KeyError):
            grad(lambda w: lantern.sum(broken(lantern.tanh(w)) * w))(w)

    return both


def abandoned():
    """A step whose forward part is computed, and then nobody goes back."""
    step, w = trained(), np.ones(4)

    def both():
        step()
        lantern.vjp(lambda w: lantern.sum(lantern.tanh(w) * w), w)
        (torch.ones(3, requires_grad=True) * 2).sum()
        cps.reset(lambda: cps.shift(lambda k: 1) + 1)

    return both


STEPS = {"trained": trained, "failing": failing, "abandoned": abandoned}


def bytes_for_each(make, steps):
    """What a step leaves in memory, in bytes: the less of two halves of the steps.

    A table may grow once while they run; what every step leaves, both halves show.
    """
    step = make()
    tracemalloc.start()  # before all: what replaces something unseen counts as more
    try:
        levels = [after(step, n) for n in (600, steps // 2, steps // 2)]
    finally:
        tracemalloc.stop()
    return min(b - a for a, b in itertools.pairwise(levels)) / (steps // 2)


def after(step, times):
    """The memory that is in use after some steps."""
    for _ in range(times):
        step()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def nested_in_threads(threads=16, times=200):
    """How many nested derivatives were wrong, computed in threads at once."""
    wrong, barrier = [], threading.Barrier(threads, timeout=60)

    def work(i):
        barrier.wait()
        for n in range(times):
            x = 1.0 + i + n / times
            found = grad(lambda x: x * grad(lambda y: x * y**3)(2.0))(x)
            if found != 24.0 * x:
                wrong.append((i, n, found))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return len(wrong)


def soak(seconds, seed=0):
    """Steps of a walk of chance, and how many were wrong."""
    rng, wrong = random.Random(seed), 0
    names = list(PROGRAMS)
    expected = {name: run() for name, run in PROGRAMS.items()}
    ways = {
        name: list(faults.faults(run, {"interrupt"}, 50))
        for name, run in PROGRAMS.items()
    }
    set_all_aside()
    before, began = surroundings(), time.perf_counter()
    for count in itertools.count(1):
        name = rng.choice(names)
        if rng.random() < 0.3 and ways[name]:
            with suppress(KeyboardInterrupt):
                rng.choice(ways[name]).attempt(PROGRAMS[name])
        elif rng.random() < 0.1:
            nested_in_threads(4, 5)
        try:
            np.testing.assert_equal(PROGRAMS[name](), expected[name])
            if count % 20 == 0:
                check_answers()
                np.testing.assert_equal(surroundings(), before)
                np.testing.assert_equal(leftovers(), [])
        except AssertionError as error:
            wrong += 1
            print(f"wrong: step {count}, {name}: {error}", flush=True)
        if time.perf_counter() - began > seconds:
            return count, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--soak", type=float, default=600.0)
    options = parser.parse_args()
    sys.unraisablehook = lambda unraisable: None
    failed = 0
    for name, make in STEPS.items():
        left = bytes_for_each(make, options.steps)
        print(f"{options.steps} steps {name}: {left:.2f} bytes a step", flush=True)
        failed += left >= 1
    wrong = nested_in_threads()
    print(f"16 threads, 200 nested derivatives each: {wrong} wrong", flush=True)
    count, lost = soak(options.soak)
    print(f"soak of {options.soak:.0f} s: {count} steps, {lost} wrong")
    return bool(failed or wrong or lost)


if __name__ == "__main__":
    sys.exit(main())
