"""When one process dies, hangs, raises or calls something else: what the others do."""

import pytest

from tests.ranks import needs_mpi, start

pytestmark = needs_mpi

FAULTY = """
import os, signal, sys
import numpy as np
import lantern.distributed as dist

dist.init(timeout=2 if HOW == "other" else 60)
dist.barrier()
if dist.rank() == 1:
    if HOW == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if HOW == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if HOW == "raised":
        raise ValueError("the reason")
    if HOW == "ended":
        sys.exit(3)
    if HOW == "other":
        dist.broadcast(np.ones((2, 3)))
dist.all_reduce(np.ones(5))
"""


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("killed", ["all_reduce(float64[5], sum): rank 1 is lost", "SIGKILL"]),
        ("stopped", ["rank 1 is lost: nothing was heard of it"]),
        ("raised", ["ValueError: the reason", "rank 1 is lost: it raised ValueError"]),
        ("ended", ["all_reduce(float64[5], sum): rank 1 has left"]),
        ("other", ["after 2 s; rank 1 is in broadcast(float64[2, 3], root=0)"]),
    ],
)
def test_the_others_end_with_an_error_that_names_the_rank(how, words, tmp_path):
    prelude = f"HOW = {how!r}\n"
    done = start(FAULTY, tmp_path, prelude=prelude, LANTERN_HEARTBEAT_LIMIT="2")
    assert done.returncode != 0
    for text in words:
        assert text in done.stderr
    assert "Fatal" not in done.stderr


def test_a_job_begins_again_from_what_it_has_saved(tmp_path):
    done = start(
        """
        import os
        from pathlib import Path
        import numpy as np
        import lantern, lantern.distributed as dist
        from lantern.files import write_file

        dist.init(timeout=60)
        saved = Path("saved")
        step, w = 0, np.zeros(3)
        if saved.exists():
            step, *w = map(float.fromhex, saved.read_text().split())
            w = np.array(w)
        x = np.random.default_rng(dist.rank()).normal(size=(4, 3))
        while step < 6:
            g = lantern.grad(lambda w: ((x @ w - 1.0) ** 2).mean())(w)
            w = w - 0.1 * dist.pmean(g)
            step += 1
            if dist.rank() == 0:
                text = " ".join(float(v).hex() for v in (step, *w))
                write_file("program", saved, text.encode())
            dist.barrier()
            first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
            if FAIL and first and step == 3 and dist.rank() == 1:
                os._exit(7)
        """,
        tmp_path,
        2,
        "--max_restarts=1",
        prelude="FAIL = True\n",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rank 1 ended with the exit status 7" in done.stderr
    interrupted = (tmp_path / "saved").read_text()
    assert interrupted.startswith("0x1.8000000000000p+2 ")


def test_the_exit_status_is_that_of_the_first_to_fail(tmp_path):
    assert start("import os; os._exit(5)", tmp_path, 1).returncode == 5
    assert start("pass", tmp_path, 3).returncode == 0
