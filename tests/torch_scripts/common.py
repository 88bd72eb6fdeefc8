"""What the scripts share: weights that start the same, and how they report."""

import numpy as np
import torch

torch.set_default_dtype(torch.float64)


def random(seed=0):
    return np.random.default_rng(seed)


def same_start(model, seed=0, scale=0.3):
    """Give all parameters values that do not depend on the library's generator."""
    draws = random(seed)
    with torch.no_grad():
        for p in model.parameters():
            values = draws.normal(size=tuple(p.shape)) * scale
            p.copy_(torch.as_tensor(np.asarray(values)))
    return model


def draw(*shape, seed=0):
    return torch.as_tensor(random(seed).normal(size=shape))


def classes(n, *shape, seed=0):
    return torch.as_tensor(random(seed).integers(0, n, shape))


def report(step, *losses):
    print(step, *(f"{float(loss):.12g}" for loss in losses))
