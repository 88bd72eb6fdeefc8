"""Use torchvision's models and transforms by ``lantern.torch``, beside PyTorch.

    python tests/conformance/torchvision_models.py [--folder FOLDER]

torchvision's wheel, without its dependencies, is fetched by pip into FOLDER, or for
this run only. Its models, with random weights, are run and differentiated on PyTorch;
then ``python -m lantern.torch`` runs this file again: torchvision's own models on
``lantern.torch``, and those of ``lantern.models``, load the same ``.pt`` files and give
the same values and gradients; transforms give the same pictures. The exit status is 1
if a model differs by more than 1e-9, or a picture by more than 1e-5.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import report

ROOT = Path(__file__).resolve().parents[2]
VERSION = "0.29.2"
# Models, with the size of a picture; those of lantern.models as well where they are.
MODELS = {
    "vit_b_16": 224, "swin_t": 64,
    "squeezenet1_0": 64, "squeezenet1_1": 64, "resnet18": 64, "resnet34": 64,
    "resnet50": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "vgg11_bn": 64,
    "shufflenet_v2_x0_5": 64, "densenet121": 64, "efficientnet_b0": 64,
    "convnext_tiny": 64, "regnet_y_400mf": 64, "mnasnet0_5": 64, "googlenet": 64,
    "inception_v3": 96, "alexnet": 64,
}  # fmt: skip
# Of torchvision's compiled part, which has to fit PyTorch's build, these are asked for.
COMPILED = ("nms", "qnms")


def pictures(size):
    """Pictures and what their classes' scores are multiplied with."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(2, 3, size, size)), rng.normal(size=(2, 1000))


def start(models, name):
    """A model without auxiliary outputs."""
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return getattr(models, name)(**options).double().eval()


def result(torch, model, size):
    """Scores, and the gradient by the pictures and by the first weights."""
    x, weights = pictures(size)
    x = torch.tensor(x, requires_grad=True)
    z = model(x)
    (z * torch.tensor(weights)).sum().backward()
    first = next(iter(model.parameters()))
    return [np.array(t.detach().numpy()) for t in (z, x.grad, first.grad)]


def changed(torch, transforms):
    """A picture, as some transforms make it."""
    from PIL import Image

    rng = np.random.default_rng(1)
    image = Image.fromarray(rng.integers(0, 256, (48, 64, 3), np.uint8).repeat(2, 0))
    found = []
    for change in (
        transforms.Resize(40), transforms.CenterCrop(32), transforms.Grayscale(3),
        transforms.Pad(4), transforms.ColorJitter(0), transforms.GaussianBlur(3, 1.0),
        transforms.RandomHorizontalFlip(1.0), transforms.RandomVerticalFlip(1.0),
    ):  # fmt: skip
        if not isinstance(change, transforms.GaussianBlur):
            steps = [change, transforms.ToTensor(),
                     transforms.Normalize((0.5,) * 3, (0.25,) * 3)]  # fmt: skip
            found.append(transforms.Compose(steps)(image))
        found.append(change(transforms.ToTensor()(image)))
    return [np.array(x.numpy(), np.float64) for x in found]


def theirs(folder):
    """What PyTorch makes of it: weights and results, in a folder."""
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for name in COMPILED:
        library.define(f"{name}(Tensor dets, Tensor scores, float least) -> Tensor")
    from torchvision import models, transforms

    for name, size in MODELS.items():
        torch.manual_seed(0)
        model = start(models, name)
        for x in model.state_dict().values():
            if x.is_floating_point():  # moments, scales, heads: not 0 and 1
                x += torch.rand_like(x) * (0.1 if x.ndim == 1 else 0.001)
        torch.save(model.state_dict(), folder / f"{name}.pt")
        np.savez(folder / name, *result(torch, model, size))
    np.savez(folder / "transforms", *changed(torch, transforms))


def far(folder, name, found):
    """How far results are from PyTorch's, beside the largest number of each."""
    with np.load(folder / f"{name}.npz") as file:
        wanted = list(file.values())
    return max(
        float(np.abs(z - w).max() / max(np.abs(w).max(), 1e-300))
        for z, w in zip(found, wanted, strict=True)
    )


def ours(folder):
    """What Lantern makes of it."""
    import torch
    import torchvision

    from lantern import models

    assert "lantern" in torch.__file__
    worst = 0.0
    lines = ["| model | torchvision's on lantern.torch | lantern.models |"]
    lines.append("|---|--:|--:|")
    for name, size in MODELS.items():
        state = torch.load(folder / f"{name}.pt", weights_only=True)
        cells = []
        for room in (torchvision.models, models):
            if not hasattr(room, name):
                cells.append("")
                continue
            model = start(room, name)
            model.load_state_dict(state)
            distance = far(folder, name, result(torch, model, size))
            worst = max(worst, distance)
            cells.append(f"{distance:.0e}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    distance = far(folder, "transforms", changed(torch, torchvision.transforms))
    lines += ["", f"Transforms of pictures and tensors, in float32: {distance:.0e}."]
    about = f"torchvision {VERSION}, PyTorch {os.environ['LANTERN_PEER']}:"
    command = "    python tests/conformance/torchvision_models.py"
    report.record(
        "torchvision",
        "\n".join([f"Measured with {about}", "", command, "", *lines]),
    )
    return int(worst > 1e-9 or distance > 1e-5)


def fetched(folder):
    """The folder in which torchvision lies."""
    if not (folder / "torchvision").exists():
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        with tempfile.TemporaryDirectory() as place:
            name = f"torchvision=={VERSION}"
            subprocess.run([*command, "-d", place, name], check=True)
            with zipfile.ZipFile(next(Path(place).iterdir())) as archive:
                names = archive.namelist()
                archive.extractall(folder, [n for n in names if n[-3:] != ".so"])
    return folder


def main():
    """Run under both, one after the other."""
    if "LANTERN_COMPARED" in os.environ:
        folder, library = os.environ["LANTERN_COMPARED"].split(os.pathsep)
        return {"torch": theirs, "lantern": ours}[library](Path(folder))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where torchvision is kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        library = fetched(options.folder or Path(place))
        paths = f"{ROOT}{os.pathsep}{library}"
        peer = version("torch")
        for name, way in (("torch", ()), ("lantern", ("-m", "lantern.torch"))):
            environment = os.environ | {
                "PYTHONPATH": paths,
                "LANTERN_PEER": peer,
                "LANTERN_COMPARED": f"{place}{os.pathsep}{name}",
            }
            done = subprocess.run([sys.executable, *way, __file__], env=environment)
            if done.returncode:
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
