"""Train a network to tell what is on small photographs: CIFAR-10.

SqueezeNet in the Lantern paper's form by AdamW (without normalisation, descent with
momentum dies early), or ResNet-18 by gradient descent with momentum; pictures are
shifted and mirrored at random. A run that is stopped goes on from its
checkpoint to the same bits. `python fetch_cifar10.py` fetches the data, once. It needs
matplotlib and tqdm: pip install matplotlib tqdm.
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
from fetch_cifar10 import CLASSES, load
from fetching import DataError, home

import lantern.torch as torch
from lantern.models import resnet18, squeezenet_cifar

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of all pictures


def squeezenet(lr: float) -> tuple[Any, Any]:
    """SqueezeNet, and what trains it."""
    model = squeezenet_cifar()
    return model, torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)


def resnet(lr: float) -> tuple[Any, Any]:
    """ResNet-18, and what trains it."""
    model = resnet18(num_classes=10, stem="cifar")
    options = {"momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}
    return model, torch.optim.SGD(model.parameters(), lr=lr, **options)


# Each with the largest rate that it takes by default.
MODELS = {"squeezenet": (squeezenet, 1e-3), "resnet18": (resnet, 0.05)}


# The data.


def numbers(pictures: Array) -> Any:
    """Return pictures, (n, 32, 32, 3), as a network reads them, (n, 3, 32, 32)."""
    x = (pictures.astype(np.float32) / 255 - np.float32(MEAN)) / np.float32(STD)
    return torch.tensor(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))


def moved(pictures: Array, rng: np.random.Generator) -> Array:
    """Pictures shifted by up to four pixels, and half of them mirrored."""
    room = np.pad(pictures, ((0, 0), (4, 4), (4, 4), (0, 0)), mode="reflect")
    places = rng.integers(0, 9, (len(pictures), 2))
    found = np.stack(
        [x[i : i + 32, j : j + 32] for x, (i, j) in zip(room, places, strict=True)]
    )
    mirrored = rng.random(len(found)) < 0.5
    found[mirrored] = found[mirrored, :, ::-1]
    return found


def batch(data: dict[str, Array], size: int, seed: int, step: int) -> tuple[Any, Any]:
    """The pictures and labels of a step: every picture once in an epoch."""
    count = len(data["train_y"])
    epoch, place = divmod(step, count // size)
    order = np.random.default_rng([seed, epoch]).permutation(count)
    chosen = np.sort(order[place * size : (place + 1) * size])
    rng = np.random.default_rng([seed, epoch, place])
    x = numbers(moved(data["train_x"][chosen], rng))
    return x, torch.tensor(data["train_y"][chosen].astype(np.int64))


def predict(model: Any, pictures: Array) -> Array:
    """The likeliest class of each picture."""
    model.eval()
    with torch.no_grad():
        found = [
            model(numbers(pictures[i : i + 100])).argmax(1).numpy()
            for i in range(0, len(pictures), 100)
        ]
    model.train()
    return np.concatenate(found)


# The training.


def begin(options: Any, count: int) -> tuple[Course, int]:
    """A training, and how many of its steps are an epoch."""
    epoch = count // options.batch
    if epoch == 0:
        stop(f"--batch: {options.batch} pictures are more than the {count} there are.")
    make, rate = MODELS[options.model]
    rate = options.lr or rate
    torch.manual_seed(options.seed)
    names = ("model", "epochs", "batch", "seed")
    settings = {name: getattr(options, name) for name in names}
    settings |= {"lr": rate, "pictures": count}
    steps = options.epochs * epoch
    return Course(*make(rate), steps, settings, options.checkpoint), epoch


def train(course: Course, data: dict[str, Array], epoch: int) -> None:
    """Train, with a measurement and a checkpoint after every epoch."""
    settings = course.settings
    size, seed = settings["batch"], settings["seed"]

    def loss_of(model: Any, step: int) -> Any:
        x, y = batch(data, size, seed, step)
        return torch.nn.functional.cross_entropy(model(x), y)

    def measure() -> str:
        told = shares_told(course, data, predict)
        loss = np.mean(course.losses[-epoch:])
        return f"epoch {course.step // epoch}: loss {loss:.3f}, {told}"

    course.train(
        loss_of, measure, epoch, "loss {:.3f}".format,
        size=size, desc=settings["model"], unit="picture",
    )  # fmt: skip


# The picture.


def draw(course: Course, data: dict[str, Array], out: Path) -> None:
    """Draw the course of the training, and pictures with what was seen on them."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    seen = predict(course.parts["model"], data["test_x"])
    with rc_context(STYLE):
        figure = Figure(figsize=(9.2, 4.8), dpi=160)
        plots = figure.add_gridspec(
            2, 1, left=0.06, right=0.36, top=0.92, bottom=0.1, hspace=0.5
        )
        axes = figure.add_subplot(plots[0])
        draw_losses(axes, course)
        axes.set(title="Training loss", xlabel="step")
        axes = figure.add_subplot(plots[1])
        names = {"seen": "seen pictures", "unseen": "unseen pictures"}
        draw_history(axes, course, names, 100, "upper left")
        axes.axhline(10, color=GREY, lw=0.8, ls=":")
        axes.set(title="Told rightly (%; by chance 10)", xlabel="step", ylim=(0, 100))
        draw_pictures(figure.add_axes((0.41, 0.02, 0.58, 0.9)), data, seen)
        figure.savefig(out)


def draw_pictures(axes: Any, data: dict[str, Array], seen: Array) -> None:
    """Draw pictures of each class, as often right as in all, and what was seen."""
    x, y = data["test_x"], data["test_y"]
    for column, name in enumerate(CLASSES):
        axes.text(40 * column + 16, -8, name, ha="center", weight="bold", size=8)
        here = np.flatnonzero(y == column)
        share = (seen[here] == column).mean() if len(here) else 0
        right = here[seen[here] == column][: round(6 * share)]
        shown = [*right, *here[seen[here] != column][: 6 - len(right)]]
        for row, i in enumerate(shown):
            left, top = 40 * column, 46 * row
            axes.imshow(x[i], extent=(left, left + 32, top + 32, top))
            wrong = seen[i] != column
            axes.text(
                left + 16,
                top + 38,
                CLASSES[seen[i]],
                ha="center",
                va="center",
                size=7,
                color=VERMILION if wrong else GREY,
                weight="bold" if wrong else "normal",
            )
    axes.set(xlim=(-4, 400), ylim=(46 * 6, -16), anchor="N")
    axes.set_title(f"{np.mean(seen == y):.1%} of {len(y)} unseen pictures told rightly")
    axes.axis("off")


# The command.


def main() -> None:
    """Read the options, train, draw, and say how it went."""
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add("--model", choices=MODELS, default="squeezenet", help="default: squeezenet")
    add("--epochs", type=whole(1), default=20, help="default: 20")
    add("--batch", type=whole(1), default=64, help="pictures in a step; default: 64")
    add("--lr", type=positive, help="the largest rate; default: the model's")
    add("--seed", type=whole(0), default=0, help="default: 0")
    add("--pictures", type=whole(1), default=50_000, help="how many to learn from")
    add("--unseen", type=whole(1), default=10_000, help="how many to test with")
    add("--data", type=Path, default=home(), help="where fetch_cifar10.py keeps them")
    add("--checkpoint", type=Path, help="where to go on from, and to save to")
    add("--out", type=Path, default=Path("cifar10.png"), help="picture")
    options = parser.parse_args()
    check_picture(options.out)
    try:
        data = load(options.data)
    except DataError as error:
        stop(str(error))
    for part, count in (("train", options.pictures), ("test", options.unseen)):
        for kind in ("x", "y"):
            data[f"{part}_{kind}"] = data[f"{part}_{kind}"][:count]
    course, epoch = begin(options, len(data["train_y"]))
    start, before = time.perf_counter(), course.step
    train(course, data, epoch)
    seconds = time.perf_counter() - start
    draw(course, data, options.out)
    told = course.history["unseen"][-1][1]
    print(
        f"{told:.1%} of {len(data['test_y'])} unseen pictures told rightly, after "
        f"{course.step} steps, {course.step - before} of them in {seconds:.0f} s\n"
        f"picture: {options.out}"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("stopped; with --checkpoint it goes on from the last epoch")
        sys.exit(130)
