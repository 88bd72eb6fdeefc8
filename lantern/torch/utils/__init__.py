"""Surroundings of a model: data, logs, values computed again."""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from lantern.torch.run.aliases import absent as _absent
from lantern.torch.run.aliases import missing as _missing

if _TYPE_CHECKING:
    from lantern.torch.utils import data as data

_absent(
    __name__,
    {
        "cpp_extension": "nothing is compiled here.",
    },
)
_LAZY = (
    "_contextlib",
    "_foreach_utils",
    "_python_dispatch",
    "_pytree",
    "benchmark",
    "checkpoint",
    "data",
    "deterministic",
    "dlpack",
    "hooks",
    "model_zoo",
    "tensorboard",
    "weak",
)
_LATER = {"summary": "summaries"}


def __getattr__(name: str) -> _Any:
    """A part that is imported when it is asked for; else the nearest name there is."""
    if name in _LATER:
        part = _importlib.import_module(f"lantern.torch.utils.{_LATER[name]}")
        return globals().setdefault(name, getattr(part, name))
    if name in _LAZY:
        return _importlib.import_module(f"lantern.torch.utils.{name}")
    raise _missing("module 'torch.utils'", name, globals())
