"""Pictures for the gallery and for lantern.viz: python docs/pictures/make.py.

Small programs, seeded, so that a picture is the same whenever it is made.
"""

import re
from pathlib import Path

import numpy as np

import lantern
import lantern.torch as torch
from lantern import viz

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks" / "README.md"
# After Okabe and Ito, as in all of lantern.viz.
COLORS = ("#0072b2", "#c25000", "#007a54", "#b5548a", "#555555")


def trace():
    """What each operation says on the way there and back."""
    return viz.trace(lambda x, y: lantern.sin(x * y) + x**2, 0.5, 3.0)


def gradient_flow():
    """A deep network of tanh, whose first layers receive little."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(16, 16) for _ in range(8)]
    model = torch.nn.Sequential(*(x for y in layers for x in (y, torch.nn.Tanh())))
    model(torch.randn(32, 16)).square().mean().backward()
    return viz.gradient_flow({n: p.grad for n, p in model.named_parameters()})


def cost():
    """The memory of a loop, there and back again."""

    def f(x):
        for _ in range(12):
            x = lantern.tanh(x * 1.1)
        return x.sum()

    return viz.cost(f, np.linspace(-1, 1, 20_000))


def derivatives():
    """A function and its derivatives, each the grad of the one before."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    xs, f = np.linspace(-4, 4, 401), lantern.tanh
    for order, color in enumerate(COLORS):
        axes.plot(xs, lantern.vmap(f)(xs), color=color, label=f"order {order}")
        f = lantern.grad(f)
    axes.set(
        xlabel="x", ylabel="tanh and its derivatives", title="grad of grad of grad"
    )
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def pendulum():
    """A trajectory found by gradients through the whole simulation."""
    import matplotlib.pyplot as plt

    def swing(push):
        angle, speed, path = 0.0, 0.0, []
        for i in range(60):
            speed = speed + 0.1 * (push[i] - lantern.sin(angle))
            angle = angle + 0.1 * speed
            path.append(angle)
        return angle, speed, path

    def loss(push):
        angle, speed, _ = swing(push)
        return (angle - np.pi) ** 2 + speed**2 + 0.01 * lantern.sum(push * push)

    push = np.zeros(60)
    for _ in range(400):
        push = push - 0.3 * lantern.grad(loss)(push)
    figure, axes = plt.subplots(figsize=(7, 4))
    times = 0.1 * np.arange(1, 61)
    axes.plot(times, swing(push)[2], color=COLORS[0], label="angle (π is up)")
    axes.plot(times, push, color=COLORS[1], label="push")
    axes.set(xlabel="time", ylabel="radians, newton metres", title="Swing it up")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def speed():
    """The tables of benchmarks/README.md but single layers, beside every peer."""
    import matplotlib.pyplot as plt

    row = r"^\| (.+?) \| times as fast as (.+?) \| ([\d.e+]+) × \|"
    peers = {
        "PyTorch": ("PyTorch",),
        "autograd": ("autograd",),
        "JAX": ("JAX", "JAX op by op"),
        "JAX, compiled": ("JAX compiled", "JAX, compiled"),
        "by hand: C, NumPy": ("C", "NumPy by hand"),
    }
    known = {name for names in peers.values() for name in names}
    rows = re.findall(row, BENCHMARKS.read_text("utf-8"), re.MULTILINE)
    found = [x for x in rows if x[1] in known and not x[0].startswith("convolution")]
    programs = list(dict.fromkeys(program for program, _, _ in found))
    figure, axes = plt.subplots(
        figsize=(8, 0.8 + 0.22 * len(programs)), layout="constrained"
    )
    for (peer, names), color, marker in zip(
        peers.items(), COLORS, "os^vD", strict=True
    ):
        places = [(float(x), programs.index(p)) for p, n, x in found if n in names]
        axes.scatter(*zip(*places, strict=True), color=color, marker=marker, label=peer)
    axes.axvline(1, color="0.4", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(
        "time of the other ÷ time of Lantern (right of 1: Lantern is faster)"
    )
    axes.set_yticks(range(len(programs)), programs)
    axes.set_ylim(len(programs) - 0.4, -0.6)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def main():
    """Write every picture."""
    import matplotlib

    matplotlib.use("Agg")
    for make in (trace, gradient_flow, cost, derivatives, pendulum, speed):
        path = HERE / f"{make.__name__}.png"
        picture = make()
        if hasattr(picture, "save"):
            picture.save(str(path))
        else:
            picture.savefig(path, dpi=100, bbox_inches="tight")
        print(path.name, path.stat().st_size // 1000, "kB")


if __name__ == "__main__":
    main()
