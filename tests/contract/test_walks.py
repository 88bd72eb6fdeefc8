"""The walks through the source that docs/explanation/design.md describes, followed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "design.md"
# Run twice before it is followed, so that all is imported and found.
PROGRAM = """
import gc, json, os, sys
import numpy as np
import lantern
from lantern import batch, grad

x, w = np.arange(6.0).reshape(2, 3), np.ones((3, 2))
if "backward" in sys.argv[1]:
    import lantern.torch as torch
    t = torch.ones(3, requires_grad=True)
walk = eval("lambda: " + sys.argv[1])
home, passed = os.path.dirname(lantern.__file__) + os.sep, {}

def follow(frame, event, arg):
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(home):
        passed[file.removeprefix(home).removesuffix(".py").replace(os.sep, "/")] = None

walk(), walk()
gc.disable()  # a collection may call the library at any moment
sys.setprofile(follow)
walk()
sys.setprofile(None)
print(json.dumps(list(passed)))
"""


def walks():
    """For each walk its program, and the files that the page names, in order."""
    heading = r"^### [^:\n]*: `([^`]*)`, (\d+) files\n(.*?)(?=^##)"
    for program, n, table in re.findall(heading, PAGE.read_text("utf-8"), re.M | re.S):
        files = re.findall(r"^\| `(.*?)` \|", table, re.M)
        assert len(files) == int(n), program
        yield program, files


WALKS = dict(walks())


def test_the_page_has_four_walks():
    assert len(WALKS) == 4


@pytest.mark.parametrize("program", WALKS)
def test_a_walk_passes_through_the_files_that_the_page_names(program):
    run = [sys.executable, "-c", PROGRAM, program]
    found = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(found.stdout) == WALKS[program]
