"""Batching by continuations: stop each example where it calls; run the calls as one."""

from lantern.batching.verbs import batch, batched, fork

__all__ = ["batch", "batched", "fork"]
