"""Fit a Bayesian regression; its handlers choose how gradients are estimated.

The model says what is drawn and what was observed. It is run four ways: dry; to make
the data; and twice to fit an approximate posterior by maximising the evidence lower
bound (ELBO), with gradients through the draws or by their scores. The model never
changes, and the posterior is compared with the exact one.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lantern
from lantern.effects import Effect, handle

sample, observe = Effect("sample"), Effect("observe")

NOISE, PRIOR = 0.7, 2.0  # standard deviations
X = np.linspace(-1.0, 1.0, 25)
DRAWS = 16  # at once, in each step
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#555555"

Array = np.ndarray
Parameters = dict[str, dict[str, Any]]


class Normal:
    """A normal distribution."""

    def __init__(self, mean: Any, scale: Any) -> None:
        self.mean, self.scale = mean, scale

    def log_density(self, x: Any) -> Any:
        """The logarithm of the density at x."""
        z = (x - self.mean) / self.scale
        return -0.5 * z * z - lantern.log(self.scale) - 0.5 * math.log(2 * math.pi)


def model() -> Any:
    """A straight line, seen through noise."""
    intercept = sample("intercept", Normal(0.0, PRIOR))
    slope = sample("slope", Normal(0.0, PRIOR))
    observe("y", Normal(intercept + slope * X, NOISE))
    return 0.0  # what it costs; the handlers add to that


# Handlers. A plain function answers; a generator also sees what the rest came to.


def dry_run() -> list[str]:
    """What the model would ask for, without any number drawn."""
    asked = []

    def note(name: str, distribution: Normal) -> Any:
        asked.append(name)
        return distribution.mean

    handle(model, {sample: note, observe: note})
    return asked


def data(rng: np.random.Generator, truth: dict[str, float]) -> Array:
    """What would be observed if the unknowns had these values."""
    seen = []

    def look(name: str, distribution: Normal) -> None:
        seen.append(distribution.mean + NOISE * rng.standard_normal(X.shape))

    handle(model, {sample: lambda name, prior: truth[name], observe: look})
    return seen[0]


def through_the_draw(
    guide: dict[str, Normal], rng: np.random.Generator, name: str, prior: Normal
) -> Iterator[Any]:
    """Draw so that the draw moves with the guide's parameters."""
    q = guide[name]
    draw = q.mean + q.scale * rng.standard_normal((DRAWS, 1))
    cost = yield draw
    return cost + (q.log_density(draw) - prior.log_density(draw))


def by_the_score(
    guide: dict[str, Normal], rng: np.random.Generator, name: str, prior: Normal
) -> Iterator[Any]:
    """Draw a constant; move its probability by what the rest then costs."""
    q = guide[name]
    mean, scale = map(lantern.stop_gradient, (q.mean, q.scale))
    draw = mean + scale * rng.standard_normal((DRAWS, 1))
    cost = yield draw
    log_density = q.log_density(draw)
    cost = cost + (log_density - prior.log_density(draw))
    size = lantern.stop_gradient(cost)
    baseline = (size.sum() - size) / (DRAWS - 1)  # of the other draws: less variance
    score = log_density - lantern.stop_gradient(log_density)
    return cost + (size - baseline) * score


def likelihood(y: Array, name: str, distribution: Normal) -> Iterator[Any]:
    """Count how badly the data fit."""
    cost = yield None
    return cost - lantern.sum(distribution.log_density(y), axis=1, keepdims=True)


ESTIMATORS: dict[str, Callable[..., Iterator[Any]]] = {
    "through the draw": through_the_draw,
    "by the score": by_the_score,
}


# Fitting.


def negative_elbo(
    parameters: Parameters, estimator: str, y: Array, rng: np.random.Generator
) -> Any:
    """The mean cost of the draws: minus the evidence lower bound."""
    guide = {
        name: Normal(p["mean"], lantern.exp(p["log_scale"]))
        for name, p in parameters.items()
    }
    handlers = {
        sample: partial(ESTIMATORS[estimator], guide, rng),
        observe: partial(likelihood, y),
    }
    return lantern.mean(handle(model, handlers))


def fit(
    estimator: str, y: Array, steps: int, seed: int
) -> tuple[Parameters, list[float]]:
    """Adam with a falling rate; the parameters and the ELBO at each step."""
    rng = np.random.default_rng(seed)
    parameters: Parameters = {
        name: {"mean": 0.0, "log_scale": 0.0} for name in ("intercept", "slope")
    }
    step = lantern.value_and_grad(negative_elbo)
    first = lantern.tree_map(lambda p: 0.0, parameters)
    second, elbos = first, []
    for t in range(1, steps + 1):
        value, g = step(parameters, estimator, y, rng)
        elbos.append(-float(value))
        first = lantern.tree_map(lambda m, g: 0.9 * m + 0.1 * g, first, g)
        second = lantern.tree_map(lambda v, g: 0.99 * v + 0.01 * g * g, second, g)
        rate = 0.1 * (1 - t / (steps + 1))

        def moved(
            p: float, m: float, v: float, t: int = t, rate: float = rate
        ) -> float:
            m, v = m / (1 - 0.9**t), v / (1 - 0.99**t)
            return p - rate * m / (math.sqrt(v) + 1e-8)

        parameters = lantern.tree_map(moved, parameters, first, second)
    return parameters, elbos


def exact(y: Array) -> dict[str, tuple[float, float]]:
    """The exact posterior: mean and standard deviation (X has mean 0)."""
    posterior = {}
    for name, column in (("intercept", np.ones_like(X)), ("slope", X)):
        precision = column @ column / NOISE**2 + 1 / PRIOR**2
        posterior[name] = (column @ y / NOISE**2 / precision, precision**-0.5)
    return posterior


# The picture.


def draw(y: Array, fits: dict[str, tuple[Parameters, list[float]]], out: Path) -> None:
    """Draw the posterior of the line, and how the bound rose."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(11, 4.5), layout="constrained"
    )
    left.plot(X, y, "o", color=GREY, label="observed")
    band(left, exact(y), color=GREY, label="exact posterior, ± 2 sd")
    styles = ((BLUE, 4.0), (VERMILION, 1.2))  # wide below, narrow above: they agree
    for (name, (parameters, elbos)), (color, width) in zip(
        fits.items(), styles, strict=True
    ):
        q = {k: (p["mean"], math.exp(p["log_scale"])) for k, p in parameters.items()}
        band(left, q, color=color, label=f"gradients {name}", width=width)
        steps = range(1, len(elbos) + 1)
        right.plot(steps, elbos, color=color, lw=width / 2, label=f"gradients {name}")
    left.set(xlabel="x", ylabel="y", title="The posterior of the line")
    left.legend(frameon=False)
    top = max(elbos for _, elbos in fits.values())[-1]
    right.set(xlabel="step", xscale="log", ylim=(top - 60, top + 5))
    right.set_title("The evidence lower bound")
    right.legend(frameon=False, loc="lower right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    figure.savefig(out, dpi=130)
    pyplot.close(figure)


def band(
    axes: Any,
    posterior: dict[str, tuple[float, float]],
    color: str,
    label: str,
    width: float = 1.0,
) -> None:
    """Draw where the line lies: filled for the exact posterior, as lines for others."""
    (a, a_sd), (b, b_sd) = posterior["intercept"], posterior["slope"]
    mean, sd = a + b * X, np.sqrt(a_sd**2 + (b_sd * X) ** 2)
    if color == GREY:
        axes.fill_between(
            X, mean - 2 * sd, mean + 2 * sd, color="0.88", linewidth=0, label=label
        )
        return
    axes.plot(X, mean, color=color, linewidth=width, label=label)
    for edge in (mean - 2 * sd, mean + 2 * sd):
        axes.plot(X, edge, color=color, linewidth=width / 2)


def main() -> None:
    """Read the options, fit twice, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="default: 1000")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--out", type=Path, default=None, help="picture, if wanted")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps: give a positive number")
    print("a dry run asks for:", ", ".join(dry_run()))
    truth = {"intercept": 1.0, "slope": -1.5}
    y = data(np.random.default_rng(options.seed), truth)
    fits = {name: fit(name, y, options.steps, options.seed) for name in ESTIMATORS}
    print(f"\n{'':28}{'intercept':>20}{'slope':>20}")
    rows = {"exact": exact(y)}
    for name, (parameters, _) in fits.items():
        rows[f"gradients {name}"] = {
            k: (p["mean"], math.exp(p["log_scale"])) for k, p in parameters.items()
        }
    for label, row in rows.items():
        cells = (f"{mean:.3f} ± {sd:.3f}" for mean, sd in row.values())
        print(f"{label:28}" + "".join(f"{cell:>20}" for cell in cells))
    if options.out is not None:
        draw(y, fits, options.out)
        print(f"\npicture: {options.out}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
