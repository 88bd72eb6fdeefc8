"""What the scripts beside this file share: outcomes, and their place in README.md."""

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

README = Path(__file__).resolve().parent / "README.md"


def read(report):
    """The outcome of each test, from pytest's report in JUnit's form."""
    return {
        name(case): outcome(case) for case in ElementTree.parse(report).iter("testcase")
    }


def name(case):
    """A test's name, as pytest takes it; a file's, if it could not be imported."""
    module, _, last = (case.get("classname") or "").rpartition(".")
    if not module:
        return case.get("name").rpartition(".")[2] + ".py"
    return f"{last}.py::{case.get('name')}"


def outcome(case):
    """What came of a test."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def count(outcomes):
    """How many tests passed, failed and were skipped, and how many there are."""
    found = list(outcomes.values())
    return [*map(found.count, ("passed", "failed", "skipped")), len(found)]


def record(suite, text):
    """Put a table into the README, in place of the one before."""
    begin, end = f"<!-- {suite}: begin -->", f"<!-- {suite}: end -->"
    before, _, rest = README.read_text().partition(begin)
    README.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}")


def unexplained(tests):
    """Those tests that no line of the README is about."""
    explained = tuple(re.findall(r"^- `(.*?)`", README.read_text(), re.MULTILINE))
    return [test for test in tests if not test.startswith(explained)]


def conclude(suite, text, failed):
    """Print and record; the number of failures without an explanation."""
    print(text)
    record(suite, text)
    print("fails:", *failed, sep="\n    ")
    new = unexplained(failed)
    print("not explained in README.md:", *new, sep="\n    ")
    return len(new)


def commit(folder):
    """The commit of a checkout."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()
