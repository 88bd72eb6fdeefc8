"""Who notices a mutant: its tests, one after another, in a child of a warm process."""

import functools
import gc
import os
import resource
import select
import signal
import time
from collections import Counter
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.loading import caches, functions, give_changed_code, load_mutated
from tests.mutants.measure import OPTIONS

FATES = {0: "survives", 1: "killed", 2: "by import", None: "ended"}
MEMORY = 6 << 30  # bytes that a child may take
# A random test need not find the smallest example, nor remember it.
hypothesis.settings.register_profile(
    "mutants",
    database=None,
    derandomize=True,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)


def covering(ran, seconds, rounds=2):
    """A few quick tests that together run, so many times, all that any of them runs.

    Args:
        ran: for each test and each statement, whether it ran it.
        seconds: how long each test takes.
    """
    order, left = [], np.ones(len(ran), bool)
    for _ in range(rounds):
        missing, counts = np.ones(ran.shape[1], bool), ran.sum(axis=1)
        while len(ran) and (scores := left * counts / (seconds + 0.05)).any():
            best = int(scores.argmax())
            order.append(best)
            left[best] = False
            counts = counts - ran[:, ran[best] & missing].sum(axis=1)
            missing &= ~ran[best]
    return order


def nearness(path):
    """How far a test file is from a file: 0 its namesake, 1 of its room, 2 others."""
    _, room, *_, name = Path(path).with_suffix("").parts
    namesake, room = f"/test_{name.partition('_')[0]}", f"tests/{room}/"
    return lambda file: 0 if namesake in file else 1 if file.startswith(room) else 2


class Order:
    """Which tests are asked about a mutant, and in which order.

    First those that have caught others in this file, then those of its namesake among
    the test files (``test_numpy_arguments`` of ``numpy_protocols``), then those of its
    room; of each of these a few that run much, then the quickest of each test function,
    of every test file by turns, then the rest, up to a number of seconds.
    """

    def __init__(self, measured, seconds):
        self.measured, self.budget = measured, seconds
        self.unsound, self.firsts = set(), {}
        self.caught = {}

    def of(self, mutant, by_import=False):
        """The tests, with the seconds that each takes.

        Of a change that is there from the import on, all that run any of its file:
        what the import has made of the statement is in use in others than those that
        run it.
        """
        measured = self.measured
        if not (by_import and self.is_early(mutant)):
            ran = self._ran(mutant)
        else:
            of_file = [i for (p, _), i in measured.places.items() if p == mutant.path]
            ran = measured.ran[:, of_file].any(axis=1)
        before, seen, left = self.caught.get(mutant.path, Counter()), Counter(), []
        first, near = self._first(mutant, ran), nearness(mutant.path)
        for i in sorted(np.flatnonzero(ran), key=lambda i: measured.seconds[i]):
            test, seconds = measured.tests[i], float(measured.seconds[i])
            if test not in self.unsound:
                name = test.split("[")[0]
                file = name.split("::")[0], seen[name]
                when = first.get(i, len(first)), seen[name], seen[file]
                far = near(file[0])
                left.append((-before[test], far, when, seconds, test))
                seen.update([name, file])
        chosen, total = [], 0.0
        for *_, seconds, test in sorted(left):
            total += seconds
            if total > self.budget and chosen:
                break
            chosen.append((test, seconds))
        return chosen

    def _first(self, mutant, ran):
        """Which tests come first, and when."""
        key = mutant.path, mutant.statement
        if key not in self.firsts:
            tests, measured = np.flatnonzero(ran), self.measured
            order = covering(measured.ran[tests], measured.seconds[tests])
            self.firsts[key] = {int(tests[i]): n for n, i in enumerate(order)}
        return self.firsts[key]

    def _ran(self, mutant):
        """Which tests have run the mutant's statement."""
        place = self.measured.places[mutant.path, mutant.statement]
        return self.measured.ran[:, place]

    def is_late(self, mutant):
        """Whether the mutant can come after the imports: a test runs its statement."""
        known = (mutant.path, mutant.statement) in self.measured.places
        return mutant.function and known and self._ran(mutant).any()

    def is_early(self, mutant):
        """Whether an import runs the mutant's statement, as well."""
        place = self.measured.places.get((mutant.path, mutant.statement))
        return place is None or not mutant.function or self.measured.on_import[place]

    def count(self, mutant, test):
        """Note which test has caught a mutant."""
        self.caught.setdefault(mutant.path, Counter())[test] += 1


def in_child(job, seconds):
    """Run a job in a fork of this process; it tells of each step that it begins.

    Args:
        job: a function of ``tell``; its result, a small number, is the exit status.
        seconds: how long each step may take.

    Returns:
        ``(status, how many steps have begun)``; the status is None if it was killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.setpgid(0, 0)
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            status = job(lambda: os.write(writing, b"."))
        finally:
            os._exit(status)
    os.close(writing)
    steps, hung = 0, False
    limits = iter(seconds)
    limit = 60.0  # before the first step
    while True:
        if not select.select([reading], [], [], limit)[0]:
            hung = True
            break
        told = os.read(reading, 1)
        if not told:
            break
        steps += 1
        limit = next(limits, 60.0)
    os.close(reading)
    if hung:
        for kill in (os.killpg, os.kill):
            try:
                kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
    _, status = os.waitpid(child, 0)
    exited = os.WIFEXITED(status) and not hung
    return (os.WEXITSTATUS(status) if exited else None), steps


def limits(tests):
    """How long each test may take before it counts as hung."""
    return [8 + 10 * seconds for _, seconds in tests]


def run(items, tests, tell):
    """Run tests until the first that fails; 1 if there is one."""
    for i, (test, _) in enumerate(tests):
        tell()
        following = items[tests[i + 1][0]] if i + 1 < len(tests) else None
        reports = runtestprotocol(items[test], log=False, nextitem=following)
        if any(report.failed for report in reports):
            return 1
    return 0


class Hunt:
    """The plugin: after the tests have been collected it takes over.

    Args:
        mutants: those to try here.
        order: which tests are asked.
        report: gets a mutant, what became of it, and the test that has caught it.
        jobs: in how many processes.
    """

    def __init__(self, mutants, order, report, jobs):
        self.mutants, self.order, self.report = mutants, order, report
        self.jobs, self.is_done = jobs, False

    def pytest_runtestloop(self, session):
        self.items = {item.nodeid: item for item in session.items}
        self.functions, self.caches = functions(), caches()
        gc.collect()
        gc.freeze()
        self.sound = {}
        for job in range(self.jobs):
            if os.fork() == 0:
                for mutant in self.mutants[job :: self.jobs]:
                    self.try_one(mutant)
                os._exit(0)
        self.is_done = not any(os.wait()[1] for _ in range(self.jobs))
        return True

    def try_one(self, mutant):
        began = time.perf_counter()
        while True:
            tests = [t for t in self.order.of(mutant) if t[0] in self.items]
            if not tests:
                return self.report(mutant, "not run", "", 0, 0.0)
            job = functools.partial(self.child, mutant, tests)
            status, steps = in_child(job, limits(tests))
            if status in (0, 2):
                break
            test = tests[max(steps - 1, 0)]
            if self.is_sound(test):
                break
            self.order.unsound.add(test[0])
        fate, caught = FATES.get(status, "ended"), ""
        if fate == "survives" and self.order.is_early(mutant):
            fate = "by import"  # it is tried once more
        if fate not in ("survives", "by import"):
            caught = test[0]
            self.order.count(mutant, caught)
        seconds = time.perf_counter() - began
        return self.report(mutant, fate, caught, len(tests), seconds)

    def child(self, mutant, tests, tell):
        for cache in self.caches:
            cache.cache_clear()
        alive = self.functions[mutant.path]
        if not give_changed_code(mutant.path, mutant.index, alive):
            return 2
        return run(self.items, tests, tell)

    def is_sound(self, test):
        """Whether a test passes in a child where nothing was changed."""
        if test[0] not in self.sound:
            status, _ = in_child(
                lambda tell: run(self.items, [test], tell), limits([test])
            )
            self.sound[test[0]] = status == 0
        return self.sound[test[0]]


class Single:
    """The plugin for a mutant that was imported: it runs the tests right here."""

    def __init__(self, tests, tell):
        self.tests, self.tell, self.status = tests, tell, 1

    def pytest_runtestloop(self, session):
        items = {item.nodeid: item for item in session.items}
        tests = [t for t in self.tests if t[0] in items]
        self.tell()
        if not session.testsfailed:  # each file could be imported
            self.status = run(items, tests, lambda: self.tell())
        return True


def start(files, plugin):
    """Collect test files, and let a plugin go on."""
    hypothesis.settings.load_profile("mutants")
    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main([*OPTIONS, *quiet, "--timeout", "0", *files], plugins=[plugin])


def by_import(mutant, tests):
    """What becomes of a mutant that is there from the import on."""

    def job(tell):
        load_mutated(mutant.path, mutant.index)
        plugin = Single(tests, tell)
        quiet()
        tell()
        start(sorted({test.split("::")[0] for test, _ in tests}), plugin)
        return plugin.status

    status, steps = in_child(job, [90.0, 8.0, *limits(tests)])
    caught = tests[steps - 3][0] if steps > 2 else "the import"
    return FATES.get(status, "not run"), caught


def quiet():
    """Let a child say nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
