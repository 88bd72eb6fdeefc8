"""A few of PyTorch's own operator records; the script runs all of them."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "conformance" / "torch_operators.py"
OPERATORS = """
add cat softmax sum where max index_select scatter_add linalg.inv fft.fft
nn.functional.nll_loss nn.functional.conv_transpose2d nn.functional.embedding_bag
nn.functional.grid_sample nn.functional.interpolate nn.functional.pad
nn.functional.avg_pool2d nn.functional.multi_margin_loss nn.Conv2d nn.LSTM
nn.CrossEntropyLoss nn.BatchNorm2d optim.Adam optim.Rprop nn.CTCLoss stft istft
linalg.lu linalg.lu_solve lu_unpack triangular_solve
"""


def test_operators_pass_pytorchs_samples():
    pytest.importorskip("torch", reason="the peer, whose records these are")
    pytest.importorskip("expecttest", reason="PyTorch's records need it")
    root = SCRIPT.parents[2]
    run = subprocess.run(
        [sys.executable, SCRIPT, *OPERATORS.split()],
        capture_output=True,
        text=True,
        cwd=root,
        env={"PYTHONPATH": str(root)},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(OPERATORS.split())} pass" in run.stdout
