"""Train a small network to tell clothes on pictures of 28×28: Fashion-MNIST.

The network is that of the Lantern paper for MNIST: two convolutions and two linear
layers. A run that is stopped goes on from its checkpoint to the same bits. `python
fetch_fashion.py` fetches the data, once. It needs matplotlib and tqdm: pip install
matplotlib tqdm.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from course import (
    Array,
    Course,
    Parser,
    check_picture,
    draw_history,
    draw_losses,
    shares_told,
    stop,
)
from digits import GREY, STYLE, VERMILION, positive, whole
from fetch_fashion import CLASSES, load
from fetching import DataError, home

import lantern.torch as torch
from lantern.models import MNISTNet

MEAN, STD = 0.286, 0.353  # of all pictures


def numbers(pictures: Array) -> Any:
    """Pictures as the network reads them: (n, 1, 28, 28)."""
    x = (pictures[:, None].astype(np.float32) / 255 - MEAN) / STD
    return torch.tensor(x.astype(np.float32))


def batch(data: dict[str, Array], size: int, seed: int, step: int) -> tuple[Any, Any]:
    """The pictures and labels of a step: every picture once in an epoch."""
    count = len(data["train_y"])
    epoch, place = divmod(step, count // size)
    order = np.random.default_rng([seed, epoch]).permutation(count)
    chosen = np.sort(order[place * size : (place + 1) * size])
    x = data["train_x"][chosen].copy()
    mirrored = np.random.default_rng([seed, epoch, place]).random(size) < 0.5
    x[mirrored] = x[mirrored, :, ::-1]
    return numbers(x), torch.tensor(data["train_y"][chosen].astype(np.int64))


def predict(model: Any, pictures: Array) -> Array:
    """The likeliest class of each picture."""
    model.eval()
    with torch.no_grad():
        found = [
            model(numbers(pictures[i : i + 500])).argmax(1).numpy()
            for i in range(0, len(pictures), 500)
        ]
    model.train()
    return np.concatenate(found)


def begin(options: Any, count: int) -> tuple[Course, int]:
    """A training, and how many of its steps are an epoch."""
    epoch = count // options.batch
    if epoch == 0:
        stop(f"--batch: {options.batch} pictures are more than the {count} there are.")
    torch.manual_seed(options.seed)
    model = MNISTNet(dropout=options.dropout)
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.lr)
    names = ("epochs", "batch", "seed", "lr", "dropout")
    settings = {name: getattr(options, name) for name in names} | {"pictures": count}
    return (
        Course(model, optimiser, options.epochs * epoch, settings, options.checkpoint),
        epoch,
    )


def train(course: Course, data: dict[str, Array], epoch: int) -> None:
    """Train, with a measurement and a checkpoint after every epoch."""
    settings = course.settings

    def loss_of(model: Any, step: int) -> Any:
        x, y = batch(data, settings["batch"], settings["seed"], step)
        return torch.nn.functional.nll_loss(model(x), y)

    def measure() -> str:
        told = shares_told(course, data, predict)
        return f"epoch {course.step // epoch}: {told}"

    course.train(loss_of, measure, epoch, "loss {:.3f}".format)


def draw(course: Course, data: dict[str, Array], out: Path) -> None:
    """Draw the course of the training, and pictures with what was seen on them."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    seen = predict(course.parts["model"], data["test_x"])
    with rc_context(STYLE):
        figure = Figure(figsize=(9.2, 4.8), dpi=160)
        plots = figure.add_gridspec(
            2, 1, left=0.06, right=0.34, top=0.92, bottom=0.1, hspace=0.5
        )
        axes = figure.add_subplot(plots[0])
        draw_losses(axes, course)
        axes.set(title="Training loss", xlabel="step")
        axes = figure.add_subplot(plots[1])
        names = {"seen": "seen pictures", "unseen": "unseen pictures"}
        draw_history(axes, course, names, 100, "lower right")
        axes.set(title="Told rightly (%)", xlabel="step", ylim=(0, 100))
        draw_pictures(figure.add_axes((0.38, 0.02, 0.61, 0.9)), data, seen)
        figure.savefig(out)


def draw_pictures(axes: Any, data: dict[str, Array], seen: Array) -> None:
    """Draw some pictures of each class with what was seen, mistakes last."""
    x, y = data["test_x"], data["test_y"]
    for column, name in enumerate(CLASSES):
        axes.text(40 * column + 14, -8, name, ha="center", weight="bold", size=8)
        here = np.flatnonzero(y == column)
        right = here[seen[here] == column]
        wrong = here[seen[here] != column][:2]
        for row, i in enumerate([*right[: 6 - len(wrong)], *wrong]):
            left, top = 40 * column, 46 * row
            axes.imshow(x[i], extent=(left, left + 28, top + 28, top), cmap="Greys")
            missed = seen[i] != column
            axes.text(
                left + 14, top + 36, CLASSES[seen[i]], ha="center", va="center", size=7,
                color=VERMILION if missed else GREY,
                weight="bold" if missed else "normal",
            )  # fmt: skip
    axes.set(xlim=(-6, 400), ylim=(46 * 6, -16), anchor="N")
    axes.set_title(f"{np.mean(seen == y):.1%} of {len(y)} unseen pictures told rightly")
    axes.axis("off")


def main() -> None:
    """Read the options, train, draw, and say how it went."""
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add("--epochs", type=whole(1), default=5, help="default: 5")
    add("--batch", type=whole(1), default=64, help="pictures in a step; default: 64")
    add("--lr", type=positive, default=3e-3, help="the largest rate; default: 0.003")
    add("--dropout", type=float, default=0.1, help="default: 0.1")
    add("--seed", type=whole(0), default=0, help="default: 0")
    add("--pictures", type=whole(1), default=60_000, help="how many to learn from")
    add("--data", type=Path, default=home(), help="where fetch_fashion.py keeps them")
    add("--checkpoint", type=Path, help="where to go on from, and to save to")
    add("--out", type=Path, default=Path("fashion.png"), help="picture")
    options = parser.parse_args()
    check_picture(options.out)
    try:
        data = load(options.data)
    except DataError as error:
        stop(str(error))
    for kind in ("x", "y"):
        data[f"train_{kind}"] = data[f"train_{kind}"][: options.pictures]
    course, epoch = begin(options, len(data["train_y"]))
    start, before = time.perf_counter(), course.step
    train(course, data, epoch)
    seconds, steps = time.perf_counter() - start, course.step - before
    draw(course, data, options.out)
    told = course.history["unseen"][-1][1]
    print(
        f"{told:.1%} of {len(data['test_y'])} unseen pictures told rightly, after "
        f"{course.step} steps, {steps} of them in {seconds:.0f} s\n"
        f"picture: {options.out}"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("stopped; with --checkpoint it goes on from the last epoch")
        sys.exit(130)
