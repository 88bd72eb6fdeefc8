"""A debugger that steps through the reverse pass: the public path."""

from lantern.debugging.debugger import Session, Terminal, run

__all__ = ["Session", "Terminal", "run"]
