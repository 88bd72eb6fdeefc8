"""A first hour with the installed package alone: README, a CNN on digits, a notebook.

It runs in a folder that holds README.md, digits.npz, digits.py and the notebook, and
nothing else of the sources. `.ci/package` calls it.
"""

import doctest
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
from nbclient import NotebookClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import lantern
import lantern.torch as torch
from lantern.torch import nn
from lantern.torch.utils.data import DataLoader, TensorDataset
from lantern.torch.utils.tensorboard import SummaryWriter

HERE = Path.cwd()


def readme() -> str:
    """The programs that README.md shows, and the one that it names."""
    failed, tried = doctest.testfile(str(HERE / "README.md"), module_relative=False)
    assert tried > 10
    assert not failed
    shown = subprocess.run(
        [sys.executable, HERE / "digits.py", "--epochs", "3"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return shown.stdout.strip().splitlines()[-1]


def network() -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


def digits() -> float:
    """Train on the digits; the accuracy on others, after going on from a file."""
    torch.manual_seed(0)
    with np.load(HERE / "digits.npz") as data:
        x = torch.tensor(data["images"].astype(np.float32)).reshape(-1, 1, 8, 8) / 16
        y = torch.tensor(data["labels"].astype(np.int64))
    order = torch.randperm(len(y))
    seen, rest = order[:1437], order[1437:]
    loader = DataLoader(TensorDataset(x[seen], y[seen]), batch_size=64, shuffle=True)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    with SummaryWriter(HERE / "runs") as writer:
        for epoch in range(6):
            for xs, ys in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(xs), ys)
                loss.backward()
                optimizer.step()
            writer.add_scalar("loss", loss.item(), epoch)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, HERE / "checkpoint.safetensors")
    again = network()
    again.load_state_dict(torch.load(HERE / "checkpoint.safetensors")["model"])
    again.eval()
    with torch.no_grad():
        return (again(x[rest]).argmax(1) == y[rest]).float().mean().item()


def log() -> list[float]:
    """The losses, as TensorBoard itself reads them."""
    found = EventAccumulator(str(HERE / "runs"))
    found.Reload()
    return [event.value for event in found.Scalars("loss")]


def notebook(path: Path) -> int:
    """Run a notebook in a kernel of this interpreter; how many cells of code it has."""
    cells = nbformat.read(path, as_version=4)
    NotebookClient(cells, timeout=120, kernel_name="python3").execute()
    return sum(cell.cell_type == "code" for cell in cells.cells)


if __name__ == "__main__":
    assert "site-packages" in lantern.__file__, lantern.__file__
    print(f"README's programs run; digits.py: {readme()}")
    accuracy, losses = digits(), log()
    assert accuracy > 0.95
    assert len(losses) == 6
    assert losses[-1] < losses[0] / 5, losses
    print(
        f"the CNN reads {accuracy:.1%} of unseen digits, from its checkpoint;", end=" "
    )
    print(f"TensorBoard reads a loss from {losses[0]:.3f} to {losses[-1]:.4f}")
    for path in sorted(HERE.glob("*.ipynb")):
        print(f"{path.name}: {notebook(path)} cells ran")
