"""Delimited continuations: ``reset``, ``shift``, ``Prompt``; nothing of derivatives."""

from lantern.cps.control import reset, shift
from lantern.cps.delimiter import delimit
from lantern.cps.prompt import Prompt
from lantern.cps.task import Task

__all__ = ["Prompt", "Task", "delimit", "reset", "shift"]
