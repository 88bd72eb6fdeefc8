"""A training that may be stopped at any time, and goes on to the same bits.

How training goes on is decided by weights, the optimiser's arrays, and how many steps
were taken; those are the checkpoint. Chance is no part of it: the order of examples,
and whatever else is drawn, is a function of the seed and the step, as the rate is.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from digits import BLUE, GREY, VERMILION
from numpy.typing import NDArray

import lantern.torch as torch

Array = NDArray[Any]


class Course:
    """A training under way, which goes on from its checkpoint if there is one.

    The rate rises over the first fifth of all steps, and then falls to nothing.

    Args:
        model: what is trained.
        optimiser: what changes its weights, at most at its rate.
        steps: how many there are in all.
        settings: what another training must have in common to go on from this one.
        path: the checkpoint; None for none.

    Attributes:
        step: how many steps were taken.
        losses: the loss of each.
        history: what was measured in between: pairs of a step and a number, by name.
    """

    def __init__(
        self,
        model: Any,
        optimiser: Any,
        steps: int,
        settings: dict[str, Any],
        path: Path | None = None,
    ) -> None:
        self.parts = {"model": model, "optimiser": optimiser}
        self.rate = optimiser.param_groups[0]["lr"]
        self.steps, self.settings, self.path = steps, settings, path
        self.step = 0
        self.losses: list[float] = []
        self.history: dict[str, list[tuple[int, float]]] = {}
        if path is not None and path.exists():
            try:
                self.resume(torch.load(path))
            except Exception as error:  # a file of any kind may be named
                stop(f"cannot go on from {path}: {error}")

    def resume(self, saved: Any) -> None:
        """Go on from what a checkpoint holds; from one of the same settings only."""
        if not isinstance(saved, dict) or "settings" not in saved:
            raise ValueError("it is no checkpoint of this program")
        for name, value in self.settings.items():
            old = saved["settings"].get(name)
            if old != value:
                raise ValueError(f"it was made with {name} {old}, not {value}")
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])
        self.step, self.losses = saved["step"], saved["losses"].tolist()
        self.history = json.loads(saved["history"])

    def save(self) -> None:
        """Write the checkpoint: whole, or not at all."""
        if self.path is None:
            return
        state = {name: part.state_dict() for name, part in self.parts.items()}
        state |= {"settings": self.settings, "step": self.step}
        state |= {"losses": np.array(self.losses), "history": json.dumps(self.history)}
        torch.save(state, self.path)

    def descend(self, loss_of: Callable[[Any], Any], clip: float = math.inf) -> float:
        """Take one step.

        Args:
            loss_of: the loss of the model, which is its argument.
            clip: how long the gradient may be.
        """
        model, optimiser = self.parts.values()
        torch.manual_seed(self.step)  # of dropout
        share = (self.step + 1) / self.steps
        for group in optimiser.param_groups:
            fall = 0.5 + 0.5 * math.cos(math.pi * max(share - 0.2, 0) / 0.8)
            group["lr"] = self.rate * min(share / 0.2, 1) * fall
        loss = loss_of(model)
        optimiser.zero_grad()
        loss.backward()
        if clip < math.inf:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimiser.step()
        self.step += 1
        self.losses.append(loss.item())
        if not math.isfinite(self.losses[-1]):
            stop(f"training diverged at step {self.step}. Try a smaller --lr.")
        return self.losses[-1]

    def train(
        self,
        loss_of: Callable[[Any, int], Any],
        measure: Callable[[], str],
        every: int,
        shown: Callable[[float], str],
        clip: float = math.inf,
        size: int = 1,
        **bar: Any,
    ) -> None:
        """Take all steps that are left, with a checkpoint after every measurement.

        Args:
            loss_of: the loss of a model in a step.
            measure: notes how well it does, and says so in a line.
            every: after how many steps that is.
            shown: a loss beside the bar of progress.
            clip: how long the gradient may be.
            size: how far a step takes the bar.
            bar: what else tqdm takes.
        """
        from tqdm import tqdm

        done, total = self.step * size, self.steps * size
        with tqdm(total=total, initial=done, disable=None, **bar) as progress:
            while self.step < self.steps:
                loss = self.descend(lambda model: loss_of(model, self.step), clip)
                progress.update(size)
                progress.set_postfix_str(shown(loss))
                if self.step % every == 0 or self.step == self.steps:
                    told = measure()
                    self.save()
                    progress.write(told, file=sys.stderr)

    def note(self, **measured: float) -> None:
        """Remember what was measured now."""
        for name, value in measured.items():
            self.history.setdefault(name, []).append((self.step, value))


def shares_told(
    course: Course, data: dict[str, Array], predict: Callable[[Any, Array], Array]
) -> str:
    """Note which share of seen and of unseen pictures is told rightly, and say it."""
    model, count = course.parts["model"], len(data["test_y"])
    right = predict(model, data["test_x"]) == data["test_y"]
    known = predict(model, data["train_x"][:count]) == data["train_y"][:count]
    course.note(seen=float(known.mean()), unseen=float(right.mean()))
    return f"right: {known.mean():.1%} of seen, {right.mean():.1%} of unseen pictures"


# --- pictures -------------------------------------------------------------------------


def smooth(values: Any, width: int) -> Array:
    """Means of the last values up to each."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(ends - width, 0)
    return (sums[ends] - sums[begins]) / (ends - begins)


def draw_losses(axes: Any, course: Course, unit: float = 1.0) -> None:
    """Draw the loss of each step, and its mean over a while."""
    steps, losses = np.arange(1, course.step + 1), np.array(course.losses) / unit
    axes.plot(steps, losses, color=BLUE, alpha=0.25, lw=0.8)
    axes.plot(steps, smooth(losses, max(1, course.step // 25)), color=BLUE)
    axes.set_xlim(0, course.step)


def draw_history(
    axes: Any, course: Course, names: dict[str, str], unit: float, where: str
) -> None:
    """Draw what was measured, under the names that a reader knows, shown somewhere."""
    for (name, shown), color in zip(names.items(), (GREY, VERMILION), strict=False):
        steps, values = np.array(course.history[name]).T
        told = f"{shown}: {values[-1] * unit:.3g}"
        axes.plot(
            steps, values * unit, "o-", ms=3, color=color, clip_on=False, label=told
        )
    axes.legend(loc=where, frameon=False, labelcolor="linecolor")
    axes.set_xlim(0, course.step)


# --- the command ----------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line long."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        stop(message)


def stop(message: str) -> NoReturn:
    """Say what is wrong and end with exit code 2."""
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(2)


def check_picture(out: Path) -> None:
    """Stop, before any work is done, if no picture can be written to `out`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from tqdm import tqdm  # noqa: F401 (only to see whether it is there)
    except ImportError as error:
        stop(f"no {error.name} here. Run: pip install matplotlib tqdm")
    if out.suffix[1:].lower() not in FigureCanvasAgg.get_supported_filetypes():
        stop(f"--out: {str(out)!r} does not end like a picture. Try a name with .png")
    if not out.resolve().parent.is_dir():
        stop(f"--out: there is no folder for {str(out)!r}.")
