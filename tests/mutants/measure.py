"""Which tests run which statements, measured once: a plugin of pytest, and its results.

The statements of the mutated files are marked as these are imported, so that bodies in
greenlets, threads and generators count as well. What was measured stays in a file of
the temporary folder. A test is known by its file's contents: of a library that stays as
it is only tests that are new or changed are run again. Of one that has changed all are,
as a statement that stays may be reached in other ways; ``trust`` does without that, and
knows a statement by its text.
"""

import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from tests.mutants.changes import FILES, HOME
from tests.mutants.loading import Marks

FOLDER = Path(tempfile.gettempdir(), f"lantern-mutants-{os.getuid()}")
MEASURED = FOLDER / "measured.jsonl"
OPTIONS = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider"]


def keys(statements):
    """Names that statements keep when others come and go.

    The text, which of those alike it is, and of how many: if one of these comes or
    goes, nobody knows any longer which is which.
    """
    found, lines = {}, {p: (HOME / p).read_text().splitlines() for p in FILES}
    for path, line in statements:
        text = lines[path][line - 1].strip()
        found.setdefault((path, text), []).append(line)
    return {
        (path, line): f"{path} {text} {i} of {len(set(all_lines))}"
        for (path, text), all_lines in found.items()
        for i, line in enumerate(sorted(set(all_lines)))
    }


def digest(path):
    """What changes when a test file does."""
    return hashlib.sha256((HOME / path).read_bytes()).hexdigest()[:16]


@functools.cache
def library():
    """What changes when any file of the library does."""
    files = sorted((HOME / "lantern").rglob("*.py"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


class Measuring:
    """The plugin: notes the time of each test, and the statements that it ran."""

    def __init__(self):
        self.marks = Marks()
        names = keys(self.marks.statements)
        self.names = [names[x] for x in self.marks.statements]
        self.started = False

    def note(self, **what):
        seen = np.frombuffer(self.marks.seen, dtype=np.uint8)
        what |= {"worker": os.getpid(), "seen": np.packbits(seen).tobytes().hex()}
        with MEASURED.open("a") as file:
            file.write(json.dumps(what) + "\n")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        if not self.started:
            self.started = True
            self.note(names=self.names, library=library())  # what an import runs
        self.marks.seen[:] = bytes(len(self.marks.seen))
        began = time.perf_counter()
        result = yield
        self.note(
            test=item.nodeid,
            file=digest(item.nodeid.split("::")[0]),
            seconds=time.perf_counter() - began,
        )
        return result


class Measured:
    """What was measured, for the files as they are now.

    Args:
        files: the test files.
        trust: whether to believe what was measured of the library as it was.

    Attributes:
        tests: their names.
        seconds: how long each took.
        ran: for each test and each current statement, whether it ran it.
        on_import: for each current statement, whether an import runs it.
    """

    def __init__(self, files, trust=False):
        now = sorted(keys(_statements()).items())
        self.places = {place: i for i, (place, _) in enumerate(now)}
        columns, current = {}, {file: digest(file) for file in files}
        tests, self.on_import = {}, np.zeros(len(now), bool)
        for line in MEASURED.open() if MEASURED.exists() else ():
            what = json.loads(line)
            bits = np.unpackbits(np.frombuffer(bytes.fromhex(what["seen"]), np.uint8))
            if "names" in what:
                known = trust or what.get("library") == library()
                columns[what["worker"]] = known and _columns(now, what["names"])
            if not columns[what["worker"]]:
                continue
            seen = bits[columns[what["worker"]]].astype(bool)
            if "names" in what:
                self.on_import = seen
            elif current.get(what["test"].split("::")[0]) == what["file"]:
                tests[what["test"]] = what["seconds"], seen
        self.tests = list(tests)
        self.seconds = np.array([seconds for seconds, _ in tests.values()])
        self.ran = np.array([seen for _, seen in tests.values()])

    def missing(self, files):
        """The test files that are still to be measured."""
        return sorted(set(files) - {test.split("::")[0] for test in self.tests})


def _statements():
    path = list(sys.meta_path)
    try:
        return Marks().statements
    finally:
        sys.meta_path[:] = path


def _columns(now, names):
    """Where the statements of today stood; of a new one, where the one before it."""
    where = {name: i for i, name in enumerate(names)}
    columns, last = [], 0
    for _, name in now:
        last = where.get(name, last)
        columns.append(last)
    return columns


def measure(files, workers, trust=False):
    """Run test files, and keep what they ran; what is known, once all is known."""
    FOLDER.mkdir(exist_ok=True)
    found = Measured(files, trust)
    if missing := found.missing(files):
        command = [sys.executable, "-m", "pytest", *OPTIONS, *missing]
        command += ["-p", "tests.mutants.measuring", "-n", str(workers)]
        environment = os.environ | {"PYTHONPATH": str(HOME), "MEASURING": "yes"}
        subprocess.run(command, cwd=HOME, env=environment, check=False)
        found = Measured(files, trust)
    return found
