"""One of PyTorch's test files under one library: a line of JSON for each test.

    python torch_suite_run.py LIBRARY FILE RESULTS FOLDER

LIBRARY is ``torch`` or ``lantern``; FOLDER is ``torch/testing/_internal`` of an
installed PyTorch. What RESULTS already holds is not run again. Under ``lantern``, only
those tests run that stand in the file RESULTS.only.
"""

import contextlib
import contextvars
import io
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import unittest
import warnings
from collections import Counter
from pathlib import Path

LIMIT = 10  # seconds a test may take
VARIANTS = 3  # of one test, drawn once and for both
MEMORY = 8 << 30


class TooLongError(BaseException):
    """A test took too long."""


def alarm(*args):
    raise TooLongError


def tests_of(module):
    """All tests, in an order that is drawn once."""
    found = [
        (name, cls, method)
        for name, cls in sorted(vars(module).items())
        if isinstance(cls, type)
        and issubclass(cls, unittest.TestCase)
        and cls.__module__ == module.__name__
        for method in dir(cls)
        if method.startswith("test") and callable(getattr(cls, method, None))
    ]
    random.Random(0).shuffle(found)
    return found


def chosen(tests):
    """Of each test, some variants."""
    count = Counter()
    for name, cls, method in tests:
        key = name, getattr(getattr(cls, method), "__name__", method)
        count[key] += 1
        if count[key] <= VARIANTS:
            yield name, cls, method


def attempt(cls, method):
    """What comes of a test: its status, and why."""
    function = getattr(cls, method)
    if getattr(cls, "__unittest_skip__", False):
        return {"status": "skip"}
    expected = getattr(function, "__unittest_expecting_failure__", False)
    try:
        if getattr(function, "__unittest_skip__", False):
            return {"status": "skip"}
        with contextlib.redirect_stdout(io.StringIO()):
            signal.alarm(LIMIT)
            test = cls(method)
            test.setUp()
            try:
                getattr(test, method)()
            finally:
                signal.alarm(LIMIT)
                test.tearDown()
                test.doCleanups()
        return {"status": "skip" if expected else "pass"}
    except unittest.SkipTest:
        return {"status": "skip"}
    except TooLongError:
        return {"status": "slow"}
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        signal.alarm(0)
        frames = traceback.extract_tb(error.__traceback__)
        return {
            "status": "skip" if expected else "fail",
            "error": type(error).__name__,
            "text": str(error)[:400],
            "frames": [f"{Path(f.filename).name}:{f.lineno}" for f in frames[-4:]],
        }
    finally:
        signal.alarm(0)


def forget_hooks():
    """Take back what a test has registered for all modules."""
    from lantern.torch.nn.hooks import EVERY

    for table in vars(EVERY).values():
        table.clear()


def main(library, path, results, folder):
    sys.path.insert(0, str(Path(__file__).parent))
    if library == "lantern":
        from lantern.torch.run import as_torch

        as_torch.install()
    import torch
    import torch.testing

    if ("lantern" in torch.__file__) != (library == "lantern"):
        raise SystemExit(f"{library} is not what torch is: {torch.__file__}")
    import torch_suite_loading as loading
    import torch_suite_support as support

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, alarm)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    looks_into_files = Path(path).stem == "test_serialization"
    if library == "lantern" and looks_into_files:  # they shall be PyTorch's
        torch.serialization.set_default_format("pytorch")
    path, results = Path(path).resolve(), Path(results).resolve()
    support.install(Path(folder).resolve())
    os.chdir(path.parent)
    sys.path.insert(0, str(path.parent))
    module = loading.load(path, f"tested_{path.stem}")
    loading.Missing.loading = False
    lines = results.read_text().splitlines() if results.exists() else []
    known = {json.loads(line)["id"] for line in lines}
    wanted = Path(f"{results}.only")
    tests = tests_of(module)
    if wanted.exists():
        only = set(json.loads(wanted.read_text()))
        tests = [t for t in tests if f"{t[0]}.{t[2]}" in only]
        found = {f"{t[0]}.{t[2]}" for t in tests}
    else:
        tests, only, found = list(chosen(tests)), (), ()
    begun, started = set(), torch.get_default_dtype()
    with results.open("a") as out:

        def say(row):
            out.write(json.dumps(row) + "\n")
            out.flush()

        for name in sorted(set(only) - set(found) - known):
            say(
                {
                    "id": name,
                    "status": "fail",
                    "error": "NoVariant",
                    "text": "",
                    "frames": [],
                }
            )
        for name, cls, method in tests:
            identity = f"{name}.{method}"
            if identity in known:
                continue
            Path(f"{results}.running").write_text(identity)
            if cls not in begun:
                begun.add(cls)
                with contextlib.suppress(Exception):
                    cls.setUpClass()
            began = time.perf_counter()
            row = contextvars.copy_context().run(attempt, cls, method)
            say(
                {
                    "id": identity,
                    **row,
                    "seconds": round(time.perf_counter() - began, 2),
                }
            )
            if library == "lantern":  # PyTorch's tests assign its tables anew
                forget_hooks()
            torch.set_default_dtype(started)
            torch.set_grad_enabled(True)
    Path(f"{results}.running").unlink(missing_ok=True)
    sys.stdout.flush()
    os._exit(0)  # whatever threads and processes tests have left


if __name__ == "__main__":
    main(*sys.argv[1:])
