"""Train a small DeepSpeech2 to write down what a voice says, letter by letter.

The voice is that of a telephone exchange: 20 minutes of prompts, which
`python fetch_speech.py` fetches, once. Sounds become spectrograms; convolutions,
recurrent layers of both directions and CTC make letters of them. Every tenth prompt is
held out, less those whose words are also learnt from. A run that is stopped goes on
from its checkpoint to the same bits. It needs matplotlib and tqdm: pip install
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
    stop,
)
from digits import GREY, STYLE, VERMILION, positive, whole
from fetch_speech import LETTERS, RATE, load
from fetching import DataError, home

import lantern.torch as torch
from lantern.models import DeepSpeech2

WINDOW, STEP = 160, 80  # samples: of 20 ms, every 10 ms
BANDS = WINDOW // 2 + 1
SHORT, LONG = 0.3, 8.0  # seconds: of the prompts that are used


# The data.


def spectrogram(samples: Array) -> Array:
    """How loud each of `BANDS` frequencies is over time, as logarithms: (bands, t)."""
    padded = np.pad(samples / 32768, WINDOW // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::STEP]
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW))) ** 2
    x = np.log(power + 1e-6).T
    return ((x - x.mean()) / x.std()).astype(np.float32)


def prepared(folder: Path, count: int) -> dict[str, list[tuple[Array, str]]]:
    """Spectrograms and words, to learn from and held out."""
    prompts = [
        (x, text)
        for x, text in load(folder)[:count]
        if SHORT * RATE <= len(x) <= LONG * RATE
    ]
    order = np.random.default_rng(0).permutation(len(prompts))
    held = set(order[: max(1, len(prompts) // 10)].tolist())
    read = [p for i, p in enumerate(prompts) if i not in held]
    known = {text for _, text in read}
    unread = [prompts[i] for i in sorted(held) if prompts[i][1] not in known]
    parts = {"read": read, "unread": unread}
    return {
        name: [(spectrogram(x), text) for x, text in part]
        for name, part in parts.items()
    }


def varied(x: Array, rng: np.random.Generator) -> Array:
    """A spectrogram spoken faster or slower, with some bands and times left out."""
    length = x.shape[1]
    times = np.arange(0, length - 1, rng.uniform(0.87, 1.15))
    low = times.astype(int)
    x = x[:, low] + (x[:, low + 1] - x[:, low]) * (times - low).astype(np.float32)
    shift = int(rng.integers(-2, 3))
    x = np.roll(x, shift, axis=0)
    for axis, widest in ((0, 12), (0, 12), (1, 16), (1, 16)):
        width = int(rng.integers(0, min(widest, x.shape[axis] // 4) + 1))
        start = int(rng.integers(0, x.shape[axis] - width + 1))
        where = [slice(None), slice(None)]
        where[axis] = slice(start, start + width)
        x[tuple(where)] = 0
    return x


def together(prompts: list[tuple[Array, str]]) -> tuple[Any, Array, list[str]]:
    """Spectrograms in one tensor, how long each is, and their words."""
    lengths = np.array([x.shape[1] for x, _ in prompts])
    x = np.zeros((len(prompts), 1, BANDS, lengths.max()), np.float32)
    for row, (prompt, _) in zip(x, prompts, strict=True):
        row[0, :, : prompt.shape[1]] = prompt
    return torch.tensor(x), lengths, [text for _, text in prompts]


def batch(prompts: list[tuple[Array, str]], size: int, seed: int, step: int) -> Any:
    """The prompts of a step: each once in an epoch, beside others as long."""
    count = len(prompts) // size
    epoch, place = divmod(step, count)
    rng = np.random.default_rng([seed, epoch])
    lengths = np.array([x.shape[1] for x, _ in prompts])
    order = np.argsort(lengths * rng.uniform(0.8, 1.25, len(prompts)))
    order = order[rng.permutation(len(order) % size + 1)[0] :][: count * size]
    chosen = order.reshape(count, size)[rng.permutation(count)[place]]
    rng = np.random.default_rng([seed, epoch, place])
    return together([(varied(prompts[i][0], rng), prompts[i][1]) for i in chosen])


# The model.


def loss_of(model: Any, x: Any, lengths: Array, texts: list[str]) -> Any:
    """How unlikely the words are, in nats a letter."""
    numbers = [[LETTERS.index(letter) + 1 for letter in text] for text in texts]
    said = torch.tensor([len(row) for row in numbers])
    heard = torch.tensor(model.steps(lengths))
    labels = torch.tensor([n for row in numbers for n in row])
    losses = torch.nn.functional.ctc_loss(
        model(x), labels, heard, said, reduction="sum", zero_infinity=True
    )
    return losses / len(labels)


def likeliest(model: Any, prompts: list[tuple[Array, str]]) -> list[Array]:
    """The likeliest letter at each step of each prompt; 0 for none."""
    model.eval()
    found = []
    with torch.no_grad():
        for prompt in prompts:
            x, _, _ = together([prompt])
            found.append(model(x)[:, 0].argmax(1).numpy())
    model.train()
    return found


def written(steps: Array) -> str:
    """The letters of steps: each once, until another one or none comes between."""
    kept = [n for n, before in zip(steps, [0, *steps], strict=False) if n != before]
    return "".join(LETTERS[n - 1] for n in kept if n)


def mistakes(found: str, wanted: str) -> int:
    """How many letters have to be put in, left out or changed."""
    row = np.arange(len(wanted) + 1)
    for i, letter in enumerate(found, 1):
        other = np.array([letter != w for w in wanted], int)
        best = np.minimum(row[1:] + 1, row[:-1] + other)
        new = np.concatenate([[i], best])
        steps = np.arange(len(new))  # then those that leave letters out
        row = np.minimum.accumulate(new - steps) + steps
    return int(row[-1])


def error_rate(model: Any, prompts: list[tuple[Array, str]]) -> float:
    """The mistakes for each letter."""
    found = [written(steps) for steps in likeliest(model, prompts)]
    wrong = sum(
        mistakes(text, said) for text, (_, said) in zip(found, prompts, strict=True)
    )
    return wrong / sum(len(said) for _, said in prompts)


# The training.


def begin(options: Any, prompts: int) -> tuple[Course, int]:
    """A training, and how many of its steps are an epoch."""
    epoch = prompts // options.batch
    if epoch == 0:
        stop(f"--batch: {options.batch} prompts are more than the {prompts} there are.")
    torch.manual_seed(options.seed)
    model = DeepSpeech2(
        len(LETTERS) + 1, BANDS, options.hidden, options.layers, "gru", options.channels
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.01)
    names = "epochs batch seed lr hidden layers channels".split()
    settings = {name: getattr(options, name) for name in names} | {"prompts": prompts}
    steps = options.epochs * epoch
    return Course(model, optimiser, steps, settings, options.checkpoint), epoch


def train(course: Course, data: dict[str, Any], epoch: int) -> None:
    """Train, with a measurement and a checkpoint every few epochs."""
    model, settings = course.parts["model"], course.settings

    def loss(model: Any, step: int) -> Any:
        x, lengths, texts = batch(
            data["read"], settings["batch"], settings["seed"], step
        )
        return loss_of(model, x, lengths, texts)

    def measure() -> str:
        some = data["read"][:: max(1, len(data["read"]) // 40)]
        read, unread = error_rate(model, some), error_rate(model, data["unread"])
        course.note(read=read, unread=unread)
        return (
            f"{course.step}: {np.mean(course.losses[-epoch:]):.2f} nats, wrong "
            f"letters: {read:.1%} of read, {unread:.1%} of unread prompts"
        )

    every = max(1, settings["epochs"] // 12) * epoch
    course.train(loss, measure, every, "{:.2f} nats a letter".format, clip=5.0)


# The picture.


def draw(course: Course, data: dict[str, Any], out: Path) -> None:
    """Draw the course of the training, and held-out prompts with what was heard."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    good = [p for p in data["unread"] if p[0].shape[1] >= 150] or data["unread"]
    good = sorted(good, key=lambda p: p[0].shape[1])
    shown = good[:: max(1, len(good) // 3)][:3]
    with rc_context(STYLE):
        figure = Figure(figsize=(9.2, 6.4), dpi=160)
        grid = figure.add_gridspec(
            4, 2, left=0.07, right=0.97, top=0.94, bottom=0.08, hspace=0.9,
            height_ratios=(1.5, 1, 1, 1),
        )  # fmt: skip
        axes = figure.add_subplot(grid[0, 0])
        draw_losses(axes, course)
        axes.set(title="Training loss (nats a letter)", xlabel="step", ylim=(0, 4))
        axes = figure.add_subplot(grid[0, 1])
        names = {"read": "read prompts", "unread": "held-out prompts"}
        draw_history(axes, course, names, 100, "upper right")
        axes.set(title="Wrong letters (%)", xlabel="step", ylim=(0, 105))
        heard = likeliest(course.parts["model"], shown)
        for row, (prompt, steps) in enumerate(zip(shown, heard, strict=True), 1):
            draw_prompt(figure.add_subplot(grid[row, :]), prompt, steps)
        figure.savefig(out)


def draw_prompt(axes: Any, prompt: tuple[Array, str], steps: Array) -> None:
    """Draw a spectrogram, over it each letter when it is heard, and what was said."""
    x, said = prompt
    seconds = x.shape[1] * STEP / RATE
    top = BANDS * RATE / WINDOW / 1000
    axes.imshow(
        x, origin="lower", aspect="auto", cmap="Greys", extent=(0, seconds, 0, top),
        vmin=-1.5, vmax=3,
    )  # fmt: skip
    for i, (n, before) in enumerate(zip(steps, [0, *steps], strict=False)):
        if n and n != before:
            letter = LETTERS[n - 1].replace(" ", "␣")
            axes.text(
                i * 2 * STEP / RATE, top * 1.03, letter, ha="center", size=7,
                color=VERMILION if letter != "␣" else GREY, family="DejaVu Sans Mono",
            )  # fmt: skip
    wrong = mistakes(written(steps), said)
    axes.set_title(f"“{said}”: {wrong} of {len(said)} letters wrong", size=8, y=1.12)
    axes.set(ylabel="kHz", xlabel="seconds")


# The command.


def main() -> None:
    """Read the options, train, draw, and say how it went."""
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add("--epochs", type=whole(1), default=120, help="default: 120")
    add("--batch", type=whole(1), default=8, help="prompts in a step; default: 8")
    add("--lr", type=positive, default=2e-3, help="the largest rate; default: 0.002")
    add("--seed", type=whole(0), default=0, help="default: 0")
    add("--hidden", type=whole(1), default=128, help="of recurrent layers; 128")
    add("--layers", type=whole(1), default=3, help="how many of them; default: 3")
    add("--channels", type=whole(1), default=8, help="of convolutions; default: 8")
    add("--prompts", type=whole(2), default=10_000, help="how many to use at most")
    add("--data", type=Path, default=home(), help="where fetch_speech.py keeps them")
    add("--checkpoint", type=Path, help="where to go on from, and to save to")
    add("--out", type=Path, default=Path("speech.png"), help="picture")
    options = parser.parse_args()
    check_picture(options.out)
    try:
        data = prepared(options.data, options.prompts)
    except DataError as error:
        stop(str(error))
    if not data["unread"]:
        stop("--prompts: too few are left to be held out.")
    course, epoch = begin(options, len(data["read"]))
    start, before = time.perf_counter(), course.step
    train(course, data, epoch)
    seconds = time.perf_counter() - start
    draw(course, data, options.out)
    wrong, steps = course.history["unread"][-1][1], course.step - before
    print(
        f"{wrong:.1%} of the letters of {len(data['unread'])} unread prompts wrong, "
        f"after {course.step} steps, {steps} of them in {seconds:.0f} s\n"
        f"picture: {options.out}"
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("stopped; with --checkpoint it goes on from the last measurement")
        sys.exit(130)
