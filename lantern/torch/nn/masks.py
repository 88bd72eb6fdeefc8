"""Masks: which elements a dropout keeps, drawn where they lie."""

import math
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.torch.methods.sampling import rng
from lantern.torch.tensor.batches import mappings
from lantern.torch.tensor.devices import kernel
from lantern.vectorizing.batched import Batched

__all__ = ["drawn"]


def drawn(shape: Any, p: float, array: Any, kind: Any = np.float32) -> Any:
    """True with chance ``1 - p``, where an array lies.

    Args:
        shape: of the result.
        p: the chance of False.
        array: what it shall lie beside.
        kind: the type that is drawn in on the host.
    """
    if isinstance(array, np.ndarray | np.generic | Batched) or mappings():
        return rng().random(shape, kind) >= p
    seed = rng().integers(2**64, dtype=np.uint64)  # so that a state of rng() says all
    xp = namespace(array)
    numbers = xp.arange(math.prod(shape), dtype=np.uint64)
    least = np.uint64(min(int(p * 2.0**64), 2**64 - 1))
    return kernel(_at_least, xp)(numbers, seed, least).reshape(shape)


def _at_least(numbers: Any, seed: Any, least: Any, xp: Any) -> Any:
    """Whether random numbers of 64 bits are no less than one; each by its place.

    References:
        Steele, Lea and Flood (2014), "Fast splittable pseudorandom number generators":
        SplitMix64, whose i-th number is a function of seed and i.
    """
    z = numbers * np.uint64(0x9E3779B97F4A7C15) + seed
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return xp.greater_equal(z ^ (z >> np.uint64(31)), least)
