"""Signals: ``torch.signal``."""

from lantern.torch.signal import windows as windows
