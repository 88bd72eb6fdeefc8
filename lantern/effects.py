"""Effects, and handlers who decide what they mean: the public path."""

from lantern.control.effects import (
    Effect,
    UnhandledEffectError,
    WithRest,
    handle,
    with_rest,
)

__all__ = ["Effect", "UnhandledEffectError", "WithRest", "handle", "with_rest"]
