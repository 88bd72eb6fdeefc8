"""The program's random numbers: seeds and states."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lantern.torch.methods.sampling import default_generator as default_generator
from lantern.torch.methods.sampling import get_rng_state as get_rng_state
from lantern.torch.methods.sampling import initial_seed as initial_seed
from lantern.torch.methods.sampling import manual_seed as manual_seed
from lantern.torch.methods.sampling import seed as seed
from lantern.torch.methods.sampling import set_rng_state as set_rng_state

__all__ = [
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, **options: Any
) -> Iterator[None]:
    """A block after which random numbers go on as if it had drawn none.

    Example:
        >>> import lantern.torch as torch
        >>> _ = torch.manual_seed(0)
        >>> with torch.random.fork_rng():
        ...     inside = torch.rand(1)
        >>> bool(inside == torch.rand(1))
        True
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
