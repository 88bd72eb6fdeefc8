"""Train a two-layer perceptron to read handwritten digits.

It learns from four fifths of 1,797 scanned digits, is tested on the others after every
epoch, and draws what came of it. It takes a few seconds and needs matplotlib and tqdm:
pip install matplotlib tqdm.
"""

import argparse
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import lantern

DATA = Path(__file__).with_name("digits.npz")
HIDDEN, BATCH_SIZE, NOISE = 128, 32, 0.2

Array = NDArray[Any]
Params = dict[str, Array]


# The model.


def perceptron(params: Params, x: Array) -> Array:
    """Return the scores of the ten digits. x: (n, 64); result: (n, 10)."""
    hidden = lantern.relu(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def cross_entropy(params: Params, x: Array, labels: Array) -> Any:
    """Return the mean of -log p(label). labels: (n,), integers from 0 to 9."""
    log_p = lantern.log_softmax(perceptron(params, x))
    return -log_p[np.arange(len(labels)), labels].mean()


def descend(
    params: Params, velocity: Params, x: Array, labels: Array, lr: float
) -> float:
    """Take one step of gradient descent with momentum; return the loss before it."""
    loss, gradient = lantern.value_and_grad(cross_entropy)(params, x, labels)
    for name in params:
        velocity[name] = 0.9 * velocity[name] - lr * gradient[name]
        params[name] += velocity[name]
    return float(loss)


# The data and the training.


@dataclass
class Digits:
    """Images, (n, 64) from 0 (paper) to 1 (ink), and labels, (n,)."""

    x: Array
    labels: Array

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Any) -> "Digits":
        return Digits(self.x[index], self.labels[index])


@dataclass
class Outcome:
    """What training gave: parameters, a loss per step, an accuracy per epoch."""

    params: Params
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def load(path: Path) -> Digits:
    """Read the digits from a file of `images` (1797, 8, 8) and `labels` (1797,)."""
    with np.load(path) as file:
        images, labels = file["images"], file["labels"]
    return Digits(images.reshape(len(images), 64) / 16.0, labels.astype(np.int64))


def split(digits: Digits, rng: np.random.Generator) -> tuple[Digits, Digits]:
    """Shuffle the digits and hold out a fifth of them."""
    order = rng.permutation(len(digits))
    fifth = len(digits) // 5
    return digits[order[fifth:]], digits[order[:fifth]]


def predict(params: Params, x: Array) -> Array:
    """Return the most likely digit for each image."""
    return perceptron(params, x).argmax(axis=1)


def train(
    training: Digits, held_out: Digits, rng: np.random.Generator, epochs: int, lr: float
) -> Outcome:
    """Train on noisy copies of the digits, at a rate that falls from lr to zero."""
    from tqdm import trange

    outcome = Outcome(
        params={
            "w1": rng.normal(0.0, math.sqrt(2 / 64), (64, HIDDEN)),
            "b1": np.zeros(HIDDEN),
            "w2": rng.normal(0.0, math.sqrt(2 / HIDDEN), (HIDDEN, 10)),
            "b2": np.zeros(10),
        }
    )
    velocity = {name: np.zeros_like(value) for name, value in outcome.params.items()}
    batches = math.ceil(len(training) / BATCH_SIZE)
    with trange(epochs, desc="training", unit="epoch", disable=None) as bar:
        for epoch in bar:
            for chosen in np.array_split(rng.permutation(len(training)), batches):
                batch = training[chosen]
                x = batch.x + NOISE * rng.standard_normal(batch.x.shape)
                rate = lr * (1 - epoch / epochs)
                loss = descend(outcome.params, velocity, x, batch.labels, rate)
                outcome.losses.append(loss)
            if not math.isfinite(outcome.losses[-1]):
                stop(f"training diverged in epoch {epoch + 1}. Try a smaller --lr.")
            right = predict(outcome.params, held_out.x) == held_out.labels
            outcome.accuracies.append(float(right.mean()))
            bar.set_postfix_str(
                f"loss {np.mean(outcome.losses[-batches:]):.3f}, "
                f"held-out accuracy {right.mean():.1%}"
            )
    return outcome


# The picture.

# Colours that stay apart for every eye: M. Okabe and K. Ito, Color Universal Design.
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#666666"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlepad": 9,
    "grid.color": "#E6E6E6",
    "lines.linewidth": 2,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def draw(outcome: Outcome, held_out: Digits, out: Path) -> None:
    """Draw the course of the training, and digits with what was read in them."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.5), dpi=200)
        plots = figure.add_gridspec(
            2, 1, left=0.07, right=0.36, top=0.91, bottom=0.115, hspace=0.62
        )
        draw_loss(figure.add_subplot(plots[0]), outcome)
        draw_accuracy(figure.add_subplot(plots[1]), outcome)
        axes = figure.add_axes((0.425, 0.02, 0.56, 0.89))
        draw_digits(axes, held_out, predict(outcome.params, held_out.x))
        figure.savefig(out)


def draw_loss(axes: Any, outcome: Outcome) -> None:
    """Draw the mean loss in every epoch, and between what bounds most batches lie."""
    losses = np.reshape(outcome.losses, (len(outcome.accuracies), -1))
    low, high = np.percentile(losses, (10, 90), axis=1)
    draw_course(axes, losses.mean(axis=1))
    axes.fill_between(range(1, len(losses) + 1), low, high, color=BLUE, alpha=0.2, lw=0)
    axes.set_title(f"Training loss: {losses[-1].mean():.2g}")
    axes.set_yscale("log", subs=())
    axes.yaxis.get_major_locator().set_params(subs=(1, 3))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("epoch (shaded: 80% of the batches)")


def draw_accuracy(axes: Any, outcome: Outcome) -> None:
    """Draw the accuracy on the held-out digits after every epoch."""
    draw_course(axes, 100 * np.array(outcome.accuracies))
    axes.set_title(f"Held-out accuracy: {outcome.accuracies[-1]:.1%}")
    axes.set_xlabel("epoch")
    axes.yaxis.set_major_formatter("{x:g}%")


def draw_course(axes: Any, values: Array) -> None:
    """Draw a value for every epoch, with a dot on the last."""
    epochs = range(1, len(values) + 1)
    axes.plot(epochs, values, color=BLUE)
    axes.plot(epochs[-1], values[-1], "o", color=BLUE, clip_on=False)
    axes.set_xlim(0, len(values))
    axes.xaxis.get_major_locator().set_params(integer=True)


def draw_digits(axes: Any, held_out: Digits, read: Array, rows: int = 6) -> None:
    """Draw a column of each digit, mistakes first, with what was read in them below."""
    from matplotlib.patches import Rectangle

    wrong = read != held_out.labels
    width, height = 10, 12.6  # of a cell; the picture in it is 8 by 8
    for digit in range(10):
        x = width * digit
        axes.text(x + 4, -1.6, str(digit), ha="center", weight="bold")
        column = np.flatnonzero(held_out.labels == digit)
        column = column[np.argsort(~wrong[column], kind="stable")][:rows]
        for y, i in zip(height * np.arange(rows), column, strict=False):
            image = held_out.x[i].reshape(8, 8)
            axes.imshow(
                image, cmap="Greys", vmin=-0.08, vmax=1, extent=(x, x + 8, y + 8, y)
            )
            below = {"s": str(read[i]), "color": GREY}
            if wrong[i]:
                below = {"s": f"✗ {read[i]}", "color": VERMILION, "weight": "bold"}
                frame = Rectangle((x, y), 8, 8, fill=False, color=VERMILION, lw=2)
                axes.add_patch(frame)
            axes.text(x + 4, y + 10, ha="center", va="center", size=8, **below)
    axes.set(xlim=(-1, 99), ylim=(height * rows + 4, -5), anchor="N")
    axes.set_title(f"{np.sum(~wrong)} of {len(wrong)} held-out digits read correctly")
    caption = "Columns: the digit written. Below each: the digit read. ✗: a mistake."
    axes.text(0, height * rows + 2, caption, color=GREY, size=8)
    axes.axis("off")


# The command.


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line long."""

    def error(self, message: str) -> NoReturn:
        stop(message)


def stop(message: str) -> NoReturn:
    """Say what is wrong and end with exit code 2."""
    print(f"digits.py: {message}", file=sys.stderr)
    sys.exit(2)


def whole(least: int) -> Any:
    """Return a reader of whole numbers from `least` on."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {least} on"
            )
        return value

    return read


def positive(text: str) -> float:
    """Read a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def check_picture(out: Path) -> None:
    """Stop, before any work is done, if no picture can be written to `out`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from tqdm import tqdm  # noqa: F401 (only to see whether it is there)
    except ImportError as error:
        stop(f"no {error.name} here. Run: pip install matplotlib tqdm")
    if out.suffix[1:].lower() not in FigureCanvasAgg.get_supported_filetypes():
        stop(f"--out: {str(out)!r} does not end like a picture. Try digits.png.")
    existed = out.exists()
    try:
        out.open("ab").close()
    except OSError as error:
        stop(f"--out: cannot write {str(out)!r}: {error.strerror}")
    if not existed:
        out.unlink()


def main() -> None:
    """Read the options, train, draw, and say how it went."""
    parser = Parser(description=__doc__)
    parser.add_argument("--epochs", type=whole(1), default=40, help="default: 40")
    parser.add_argument("--seed", type=whole(0), default=0, help="default: 0")
    parser.add_argument("--lr", type=positive, default=0.1, help="default: 0.1")
    parser.add_argument("--out", type=Path, default=Path("digits.png"), help="picture")
    options = parser.parse_args()
    check_picture(options.out)
    try:
        digits = load(DATA)
    except Exception as error:  # a damaged file can make NumPy raise anything
        stop(f"cannot read the digits from {DATA}: {error}")

    rng = np.random.default_rng(options.seed)
    training, held_out = split(digits, rng)
    start = time.perf_counter()
    with np.errstate(over="ignore", invalid="ignore"):
        outcome = train(training, held_out, rng, options.epochs, options.lr)
    seconds = time.perf_counter() - start
    draw(outcome, held_out, options.out)
    epochs = "1 epoch" if options.epochs == 1 else f"{options.epochs} epochs"
    accuracy = outcome.accuracies[-1]
    print(
        f"held-out accuracy {accuracy:.1%} after {epochs} in {seconds:.1f} s\n"
        f"picture: {options.out}"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
