"""Small programs, one for each way through the library, and each with a result.

They are interrupted, starved and repeated: by ``faults.py``, and by the tests.
"""

import numpy as np

import lantern
import lantern.torch as torch
from lantern import cps, grad, jvp, vjp

SQUARE = np.arange(4.0).reshape(2, 2) / 6


def nested(x):
    y = lantern.sin(x) * x + 2.0 / x
    slope = grad(lambda z: z * y * z)(x)
    return jvp(lambda z: lantern.where(z > 0, z * slope, y), (x,), (1.0,))[1]


def arrays(x):
    y = lantern.tanh(x @ x.T)[0] + x.sum(axis=0)[:2]
    return lantern.logsumexp(lantern.where(y > 0, y, 0.5 * y))


def checkpointed(x):
    y = lantern.checkpoint(lambda x: lantern.sin(x) * x)(x)
    with lantern.no_grad(x):
        scale = x * x
    return lantern.hook(lambda g: 2.0 * g, y) * scale


def product(x):
    return lantern.sin(x) * x


def direct():
    """Handlers in both styles, one that stores k, one that aborts."""
    kept = []

    def generator():
        answer = yield 2
        return answer + 1

    def store(k):
        kept.append(k)
        return 0

    def body():
        return cps.shift(generator) * cps.shift(lambda k: 10 * k(3))

    try:
        first = cps.reset(lambda: body() + cps.shift(store))
        return first, kept.pop()(5), cps.reset(lambda: 1 + cps.shift(lambda k: 7))
    finally:
        kept.clear()  # a body that leads to its own k is never freed


def stepped():
    *_, (_, cotangents) = lantern.backward_steps(arrays, SQUARE)
    return cotangents[0]


def network(x, w):
    return ((x @ w).relu() * (x @ w)).sum()


def leaves():
    x = torch.tensor(SQUARE.tolist(), requires_grad=True)
    return x, torch.tensor([[0.5], [0.25]], requires_grad=True)


def eager():
    x, w = leaves()
    network(x, w).backward()
    return x.grad.numpy(), w.grad.numpy()


def eager_twice():
    x, w = leaves()
    (slope,) = torch.autograd.grad(network(x, w), w, create_graph=True)
    slope.square().sum().backward()
    return x.grad.numpy(), w.grad.numpy()


def stepping(make):
    def run():
        x, w = leaves()
        optimiser = make([w])
        for _ in range(2):
            optimiser.zero_grad()
            network(x, w).backward()
            optimiser.step()
        return w.detach().numpy()

    return run


def lbfgs():
    x, w = leaves()
    optimiser = torch.optim.LBFGS([w], max_iter=3, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        loss = network(x, w) + (w * w).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return w.detach().numpy()


def modes():
    x, w = leaves()
    with torch.no_grad(), torch.enable_grad():
        y = network(x, w)
    with torch.inference_mode(), torch.autograd.detect_anomaly():
        z = network(x, w)
    with torch.set_grad_enabled(False):
        z = z + network(x, w)
    y.backward()
    return w.grad.numpy(), z.numpy()


@lantern.custom_rule
def cube(x, /):
    z_bar = yield x * x * x
    yield z_bar * 3.0 * x * x


def debugged():
    with lantern.debug():
        return grad(lambda x: arrays(x * 2.0))(SQUARE)


PROGRAMS = {
    "numbers": lambda: grad(nested)(1.5),
    "arrays": lambda: grad(arrays)(SQUARE),
    "pullback": lambda: vjp(product, 1.5)[1](2.0)[0],
    "forward": lambda: jvp(arrays, (SQUARE,), (SQUARE,)),
    "forward over reverse": lambda: jvp(grad(arrays), (SQUARE,), (SQUARE,))[1],
    "switching": lambda: grad(product, driver="switching")(1.5),
    "continuations": direct,
    "checkpoint": lambda: grad(checkpointed)(1.5),
    "steps": stepped,
    "own rule": lambda: grad(lambda x: cube(x) * cube(x * x))(1.5),
    "vmap": lambda: lantern.vmap(grad(product))(SQUARE[0]),
    "batch": lambda: lantern.batch(lambda i: product(SQUARE[i : i + 1]), [0, 1]),
    "debug": debugged,
    "eager": eager,
    "eager, second": eager_twice,
    "SGD": stepping(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    "Adam": stepping(lambda p: torch.optim.Adam(p, lr=0.1)),
    "LBFGS": lbfgs,
    "modes": modes,
}
