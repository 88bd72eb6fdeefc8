"""What PyTorch, JAX and autograd give at the edges: `python -m tests.edges_of_peers`.

Run in a process of its own, since JAX starts threads. Prints, for each peer that is
installed, its version and the cells of its column in docs/explanation/edges.md.
"""

import json
import sys

import numpy as np

# Each row: a point, and what is differentiated there, written with a peer's names.
ROWS = {
    "`abs(x)`, x = 0": (0.0, "xp.abs(x)"),
    "`relu(x)`, x = 0": (0.0, "relu(x)"),
    "`maximum(x, 1)`, x = 1": (1.0, "xp.maximum(x, one)"),
    "`max(x)`, two ties": ([1.0, 1.0], "xp.max(x)"),
    "`clip(x, 0, 1)`, x = 1": (1.0, "xp.clip(x, 0.0, 1.0)"),
    "`x**0.0`, x = 0": (0.0, "x**0.0"),
    "`sqrt(x)`, x = 0": (0.0, "xp.sqrt(x)"),
    "`norm(x)`, x = (0, 0)": ([0.0, 0.0], "xp.linalg.norm(x)"),
    "`hypot(x, y)`, (0, 0)": ([0.0, 0.0], "xp.hypot(x[0], x[1])"),
    "`sinc(x)`, x = 0": (0.0, "xp.sinc(x)"),
    "`prod(x)`, x = (0, 2, 3)": ([0.0, 2.0, 3.0], "xp.prod(x)"),
    "`std(x)`, x = (1, 1)": ([1.0, 1.0], "xp.std(x)"),
    "`logsumexp(x)`, x = (−inf, −inf)": ([-np.inf, -np.inf], "logsumexp(x)"),
    "`where(x > 0, sqrt(x), 0)`, x = 0": (0.0, "xp.where(x > 0, xp.sqrt(x), 0.0)"),
    "gradient of `abs(z)**2`, z = 1 + 2i": (1 + 2j, "xp.abs(x) ** 2"),
}


def pytorch():
    import torch

    def grad(text, point):
        kind = torch.complex128 if isinstance(point, complex) else torch.float64
        x = torch.tensor(point, dtype=kind, requires_grad=True)
        names = {"xp": torch, "x": x, "one": torch.ones((), dtype=kind)}
        names |= {"relu": torch.relu, "logsumexp": lambda x: torch.logsumexp(x, 0)}
        eval(text, names).backward()
        return x.grad.numpy()

    return torch.__version__, grad


def jax():
    import jax

    jax.config.update("jax_enable_x64", True)

    def grad(text, point):
        names = {"xp": jax.numpy, "one": 1.0, "relu": jax.nn.relu}
        names["logsumexp"] = jax.scipy.special.logsumexp
        return jax.grad(eval(f"lambda x: {text}", names))(jax.numpy.asarray(point))

    return jax.__version__, grad


def autograd():
    from importlib.metadata import version

    import autograd
    import autograd.numpy as xp
    from autograd.scipy.special import logsumexp

    def grad(text, point):
        names = {"xp": xp, "one": 1.0, "relu": lambda x: xp.maximum(x, 0.0)}
        names["logsumexp"] = logsumexp
        return autograd.grad(eval(f"lambda x: {text}", names))(np.array(point))

    return version("autograd"), grad


def cell(x):
    """A gradient as the page writes it."""
    x = np.asarray(x)
    if np.iscomplexobj(x):
        return f"{x.real:g} {'−' if x.imag < 0 else '+'} {abs(x.imag):g}i"
    names = {"0.5": "½", "-0": "0"}
    found = [names.get(f"{v:g}", f"{v:g}") for v in x.ravel()]
    return ", ".join(found)


if __name__ == "__main__":
    found = {}
    for peer in (pytorch, jax, autograd):
        try:
            version, grad = peer()
        except ModuleNotFoundError:
            continue
        with np.errstate(all="ignore"):
            cells = {
                row: cell(grad(text, point)) for row, (point, text) in ROWS.items()
            }
            found[peer.__name__] = version, cells
    json.dump(found, sys.stdout)
