"""Eight small programs that need the rest of the program as a value.

Each is explained in docs/continuations.md. Without a name, all of them run.
"""

import argparse
import collections
import contextlib
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import lantern
from lantern.op import op

RNG = np.random.default_rng(0)


@op
def tanh_on_disk(x: Any, /) -> Iterator[Any]:
    """A layer whose result waits for the backward pass in a file."""
    with tempfile.TemporaryFile() as file:
        z = np.tanh(x)
        np.save(file, z)
        print(f"  {file.tell():,} bytes written")
        z_bar = yield (z, z := None, x := None)[0]  # in memory nothing is kept
        file.seek(0)
        z = np.load(file)
        print("  and read again")
    yield z_bar * (1 - z * z)


def disk() -> None:
    """One body: a file is opened on the way there and closed on the way back."""
    x = RNG.standard_normal((100, 100))
    gradient = lantern.grad(lambda x: (tanh_on_disk(x) ** 2).sum())(x)
    expected = lantern.grad(lambda x: (np.tanh(x) ** 2).sum())(x)
    print(f"  the same gradient: {np.allclose(gradient, expected, rtol=1e-12)}")


def profile() -> None:
    """Brackets: how long each layer takes, there and back."""
    seconds: dict[str, list[float]] = collections.defaultdict(list)

    @contextlib.contextmanager
    def timed(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds[name].append(time.perf_counter() - start)

    def network(weights: list[Any]) -> Any:
        x = np.ones((64, 300))
        for i, w in enumerate(weights):
            with lantern.both_ways(lambda i=i: timed(f"layer {i}")):
                x = np.tanh(x @ w)
        return (x * x).mean()

    sizes = (300, 600, 50, 10)
    weights = [
        RNG.standard_normal((n, m)) / n**0.5 for n, m in itertools.pairwise(sizes)
    ]
    lantern.grad(network)(weights)
    for name, (there, back) in seconds.items():
        print(f"  {name}: {1e3 * there:.2f} ms there, {1e3 * back:.2f} ms back")


@op
def or_flat(x: Any, /) -> Iterator[Any]:
    """x; where its slope overflows, as if the rest did not depend on it."""
    try:
        z_bar = yield x
    except FloatingPointError as error:
        print(f"  caught on the way back: {error}")
        z_bar = 0 * x
    yield z_bar


def mend() -> None:
    """Exceptions travel along the chain rule: one bad term does not spoil the step."""

    def loss(w: Any) -> Any:
        steep = or_flat(w[0]) * 1e200 * 1e200
        return steep + ((w - 1.0) ** 2).sum()

    with np.errstate(over="raise"):
        gradient = lantern.grad(loss)(np.array([1e-300, 3.0]))
    print(f"  the gradient of the other term: {gradient}")


def blame() -> None:
    """The way back is the way there reversed: so an error can tell how it came."""
    order: list[str] = []

    def modest(name: str, g: Any) -> None:
        order.append(name)
        if abs(g) > 100:
            raise ValueError(f"a gradient of {g:.0f} in the {name}")

    def network(x: Any) -> Any:
        x = lantern.hook(lambda g: modest("encoder", g), 2.0 * x)
        y = np.exp(x)
        return lantern.hook(lambda g: modest("decoder", g), y * y)

    lantern.grad(network)(0.5)
    print(f"  {' and '.join(order)} were asked in this order")
    try:
        with lantern.debug():
            lantern.grad(network)(3.0)
    except ValueError as error:
        print(f"  {error}", *error.__notes__, sep="\n  ")


@lantern.with_answer
def score_function(log_probability: Any, /, draw: Any) -> Iterator[Any]:
    """A draw, whose probability is told what the program came to."""
    loss, _ = yield draw
    yield loss


def learn() -> None:
    """An operation sees the answer: learn which of three arms pays most (REINFORCE)."""
    pays, logits = np.array([0.2, 0.5, 0.8]), np.zeros(3)

    def play(logits: Any) -> Any:
        log_p = lantern.log_softmax(logits)
        arm = RNG.choice(3, p=np.exp(lantern.stop_gradient(log_p)))
        arm = score_function(log_p[arm], arm)
        return -float(RNG.random() < pays[arm])

    for _ in range(2000):
        logits = logits - 0.1 * lantern.grad(play)(logits)
    p = np.exp(logits - logits.max())
    print(f"  the arms are chosen with probability {(p / p.sum()).round(2)}")


def leave() -> None:
    """Leave early: integrate until a threshold is crossed, somewhere deep inside."""

    def fall(height: Any, leave: Any) -> None:
        def step(y: Any, v: Any, t: float) -> None:
            if y < 0:
                leave(t + y / v)  # back to the moment of impact
            step(y - 0.01 * v, v + 0.01 * 9.81, t + 0.01)

        step(height, height * 0.0, 0.0)

    def duration(height: Any) -> Any:
        return lantern.early_exit(lambda leave: fall(height, leave))

    t, slope = lantern.value_and_grad(duration)(10.0)
    print(f"  falling 10 m takes {t:.2f} s, and {slope:.3f} s more for each metre")


def wait() -> None:
    """Pause: three gradients wait for their data, which arrive in another order."""

    def loss(w: Any) -> Any:
        x, y = lantern.pause("data")
        return ((x @ w - y) ** 2).mean()

    truth = np.array([1.0, -2.0])
    sites = {name: RNG.standard_normal((20, 2)) for name in ("Oslo", "Lima", "Rome")}
    w = np.zeros(2)
    for _ in range(50):
        programs = {n: lantern.Program(lantern.grad(loss), w) for n in sites}
        for name in sorted(programs, key=lambda _: RNG.random()):
            programs[name].resume((sites[name], sites[name] @ truth))
        w = w - 0.1 * sum(program.result for program in programs.values())
    print(f"  learned {w.round(3)} from data that never met")


def threads() -> None:
    """Parts in threads: the same gradient to the last bit."""
    w, batches = (
        RNG.standard_normal((200, 200)) / 14,
        RNG.standard_normal((8, 200, 200)),
    )

    def part(w: Any) -> Any:
        return lambda x: (np.tanh(x @ w) @ w).sum()

    one = lantern.grad(lambda w: sum(map(part(w), batches)))(w)
    many = lantern.grad(lambda w: sum(lantern.parallel_map(part(w), batches)))(w)
    print(f"  identical to the last bit: {one.tobytes() == many.tobytes()}")


PROGRAMS = {
    f.__name__: f for f in (disk, profile, mend, blame, learn, leave, wait, threads)
}


def main() -> None:
    """Run the chosen programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = ", ".join(PROGRAMS)
    parser.add_argument("name", nargs="*", help=f"which of them: {names}")
    options = parser.parse_args()
    for name in options.name:
        if name not in PROGRAMS:
            parser.error(f"there is no {name!r}; choose from {names}")
    for name in options.name or PROGRAMS:
        print(f"{name}: {PROGRAMS[name].__doc__}")
        PROGRAMS[name]()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
