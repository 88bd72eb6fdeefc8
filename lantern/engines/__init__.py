"""Libraries that compute the values of some operations: how, never what."""

from lantern.engines.onednn import in_use, set_threads, switch, switched

__all__ = ["in_use", "set_threads", "switch", "switched"]
