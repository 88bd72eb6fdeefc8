"""Train a network to write, letter by letter: a small GPT, or an LSTM.

It reads a text, by default the pages of Lantern's own documentation, and learns which
letter comes next. A run that is stopped goes on from its checkpoint to the same bits.
It needs matplotlib and tqdm: pip install matplotlib tqdm.
"""

import math
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
    stop,
)
from digits import GREY, STYLE, positive, whole

import lantern.torch as torch
from lantern.models import GPT2, CharacterRNN, generate

PAGES = Path(__file__).parents[1] / "docs"
CONTEXT, BIT = 96, math.log(2)
SHOWN = 6 * 64  # letters in a picture
# Each with the largest rate that it takes by default.
MODELS = {
    "gpt": (lambda n: GPT2(n, CONTEXT, width=128, heads=4, layers=4), 3e-3),
    "lstm": (lambda n: CharacterRNN(n, hidden=256, cell="lstm"), 5e-3),
}


# The text.


class Text:
    """A text as numbers: letters that are rare in it are one letter.

    Args:
        text: the text.

    Attributes:
        letters: the letters; the last stands for all rare ones.
        read: what is learned from, nine tenths.
        unread: the rest.
    """

    def __init__(self, text: str) -> None:
        found, counts = np.unique(np.array(list(text)), return_counts=True)
        self.letters = [*found[counts > len(text) * 1e-5].tolist(), "\N{WHITE SQUARE}"]
        numbers = {letter: i for i, letter in enumerate(self.letters)}
        rare = len(self.letters) - 1
        tokens = np.array([numbers.get(letter, rare) for letter in text])
        end = len(tokens) * 9 // 10
        self.read, self.unread = tokens[:end], tokens[end:]

    def bits(self) -> float:
        """The entropy of a letter for who only knows how frequent each is."""
        counts = np.bincount(self.read)
        chances = counts[counts > 0] / len(self.read)
        return float(-(chances * np.log2(chances)).sum())

    def spelt(self, tokens: Any) -> str:
        """Numbers as letters."""
        return "".join(self.letters[i] for i in tokens)


def pages() -> str:
    """The documentation as one text, without tables."""
    found = [p for p in sorted(PAGES.rglob("*.md")) if "reference" not in p.parts]
    lines = [x for path in found for x in path.read_text("utf-8").splitlines()]
    return "\n".join(line for line in lines if not line.startswith("|"))


def windows(tokens: Array, begins: Array) -> tuple[Any, Any]:
    """Pieces of a text, and what follows each of their letters."""
    places = np.asarray(begins)[:, None] + np.arange(CONTEXT + 1)
    rows = tokens[places]
    return torch.tensor(rows[:, :-1]), torch.tensor(rows[:, 1:])


# The training.


def scores(model: Any, x: Any) -> Any:
    """Of every letter, how likely it is to come next."""
    found = model(x)
    return found[0] if isinstance(found, tuple) else found


def loss(model: Any, x: Any, y: Any) -> Any:
    """How surprised the model is by the letters that follow, in nats."""
    return torch.nn.functional.cross_entropy(
        scores(model, x).flatten(0, 1), y.flatten()
    )


def measure(model: Any, text: Text) -> float:
    """How surprised the model is by the text that it did not read, in bits a letter."""
    last = len(text.unread) - CONTEXT - 1
    with torch.no_grad():
        return loss(model, *windows(text.unread, np.linspace(0, last, 32, dtype=int)))


def begin(options: Any, text: Text) -> Course:
    """A training."""
    make, rate = MODELS[options.model]
    rate = options.lr or rate
    torch.manual_seed(options.seed)
    model = make(len(text.letters))
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.99))
    names = ("model", "steps", "batch", "seed", "every")
    settings = {name: getattr(options, name) for name in names}
    settings |= {"lr": rate, "letters": len(text.letters), "length": len(text.read)}
    return Course(model, optimiser, options.steps, settings, options.checkpoint)


def train(course: Course, text: Text) -> None:
    """Train, with a measurement and a checkpoint every now and then."""
    model, settings = course.parts["model"], course.settings

    def loss_of(model: Any, step: int) -> Any:
        rng = np.random.default_rng([settings["seed"], step])
        last = len(text.read) - CONTEXT - 1
        x, y = windows(text.read, rng.integers(0, last + 1, settings["batch"]))
        return loss(model, x, y)

    def measured() -> str:
        bits = measure(model, text).item() / BIT
        course.note(unread=bits)
        written = text.spelt(continued(model, text, 60)[-60:])
        return (
            f"{course.step}: {bits:.2f} bits a letter of unread text; "
            f"writes {written!r}"
        )

    def shown(found: float) -> str:
        return f"{found / BIT:.2f} bits a letter"

    every, name = settings["every"], settings["model"]
    course.train(loss_of, measured, every, shown, clip=1.0, desc=name)


def continued(model: Any, text: Text, count: int) -> Array:
    """The beginning of the unread text, and how the model goes on."""
    start = torch.tensor(text.unread[None, :CONTEXT])
    chance = torch.Generator().manual_seed(1)
    return generate(model, start, count, 0.7, chance)[0].numpy()


# The picture.


def draw(course: Course, text: Text, out: Path) -> None:
    """Draw the course of the training, and texts with how surprising each letter is."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    model = course.parts["model"]
    with rc_context(STYLE):
        figure = Figure(figsize=(9.2, 4.8), dpi=160)
        axes = figure.add_axes((0.06, 0.11, 0.3, 0.79))
        draw_losses(axes, course, BIT)
        draw_history(axes, course, {"unread": "unread text"}, 1, "upper right")
        axes.axhline(text.bits(), color=GREY, lw=0.8, ls=":")
        axes.text(course.step, text.bits(), "by frequency ", ha="right", va="bottom")
        axes.set(title="Bits a letter", xlabel="step", ylim=(0, None))
        axes = figure.add_axes((0.405, 0.52, 0.585, 0.38))
        draw_text(axes, model, text, text.unread[: CONTEXT + SHOWN])
        axes.set_title("Unread text. Dark: what surprised the model")
        axes = figure.add_axes((0.405, 0.03, 0.585, 0.38))
        draw_text(axes, model, text, continued(model, text, SHOWN))
        axes.set_title("What it writes itself")
        figure.savefig(out)


def draw_text(axes: Any, model: Any, text: Text, tokens: Array) -> None:
    """Draw the letters after the first ones, on a ground that shows their surprise."""
    grid = surprises(model, tokens)
    axes.imshow(grid, cmap="Oranges", vmin=0, vmax=12, aspect="auto")
    for place, letter in enumerate(text.spelt(tokens[CONTEXT:])):
        row, column = divmod(place, grid.shape[1])
        shown = {"\n": "\N{PILCROW SIGN}", "$": r"\$"}.get(letter, letter)
        style = {"ha": "center", "va": "center", "family": "monospace", "size": 8}
        axes.text(column, row, shown, **style)
    axes.axis("off")


def surprises(model: Any, tokens: Array) -> Array:
    """How many bits each letter is worth to who has read at least 32 before it.

    tokens: (CONTEXT + 64 * n,); result: (n, 64), of those after the first CONTEXT.
    """
    begins = np.arange(CONTEXT, len(tokens), 64)
    rows = tokens[begins[:, None] + np.arange(-32, 64)]
    with torch.no_grad():
        logs = torch.log_softmax(scores(model, torch.tensor(rows)), -1).numpy()
    following = rows[:, 32:, None]
    return -np.take_along_axis(logs[:, 31:-1], following, 2)[..., 0] / BIT


# The command.


def main() -> None:
    """Read the options, train, draw, and say how it went."""
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add("--model", choices=MODELS, default="gpt", help="default: gpt")
    add("--text", type=Path, help="what to read; default: the documentation")
    add("--steps", type=whole(1), default=1500, help="default: 1500")
    add("--batch", type=whole(1), default=16, help="pieces in a step; default: 16")
    add("--every", type=whole(1), default=100, help="steps between measurements")
    add("--lr", type=positive, help="the largest rate; default: the model's")
    add("--seed", type=whole(0), default=0, help="default: 0")
    add("--checkpoint", type=Path, help="where to go on from, and to save to")
    add("--out", type=Path, default=Path("letters.png"), help="picture")
    options = parser.parse_args()
    check_picture(options.out)
    try:
        given = options.text
        text = Text(pages() if given is None else given.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        stop(f"--text: cannot read {options.text}: {error}")
    if len(text.unread) < CONTEXT + SHOWN:
        least = 10 * (CONTEXT + SHOWN)
        told = "--text: it is too short" if options.text else "no pages beside this"
        stop(f"{told}. Name a text of {least} letters or more: --text FILE.")
    course = begin(options, text)
    start, before = time.perf_counter(), course.step
    train(course, text)
    seconds = time.perf_counter() - start
    draw(course, text, options.out)
    print(
        f"{course.history['unread'][-1][1]:.2f} bits a letter of unread text "
        f"({text.bits():.2f} by frequency), after {course.step} steps, "
        f"{course.step - before} of them in {seconds:.0f} s\npicture: {options.out}"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("stopped; with --checkpoint it goes on from the last measurement")
        sys.exit(130)
