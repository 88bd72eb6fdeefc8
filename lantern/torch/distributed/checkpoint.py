"""States that all processes write and read together.

Each process writes some of the tensors, to files of new names; then one file, which is
replaced at once, says where everything is. So whoever ends at whatever moment, there is
either the old state or the new one.
"""

import json
import os
import secrets
from pathlib import Path
from typing import Any

from lantern.errors import FileFormatError, MissingRuleError
from lantern.files import write_file
from lantern.torch.distributed import objects
from lantern.torch.distributed.collectives import array_of, written
from lantern.torch.distributed.groups import chosen, is_initialized
from lantern.torch.run.aliases import absent, lead
from lantern.torch.tensor.tensor import Tensor

__all__ = ["load", "save"]

_INDEX = ".metadata.json"
__path__: list[str] = []  # PyTorch's is a package


class _Refused:
    def __init__(self, *args: Any, **options: Any) -> None:
        raise MissingRuleError(
            f"{type(self).__name__}: states are in one form of files here. Use load "
            f"and save of this module."
        )


class HuggingFaceStorageReader(_Refused):
    """Files of another form."""


class HuggingFaceStorageWriter(_Refused):
    """Files of another form."""


lead(__name__, "hf_storage")
_PARTS = (
    "_consolidate_hf_safetensors default_planner filesystem format_utils metadata "
    "optimizer planner state_dict state_dict_loader state_dict_saver stateful storage"
)
globals().update(
    absent(
        __name__,
        dict.fromkeys(
            _PARTS.split(),
            "states of whole models are written and read here by save and load of "
            "torch.distributed.checkpoint.",
        ),
    )
)


def _flat(state: Any, path: str = "") -> dict[str, Any]:
    """The leaves of a nested state, by the keys that lead there."""
    if isinstance(state, dict):
        items = [(str(k), v) for k, v in state.items()]
    elif isinstance(state, list | tuple):
        items = [(str(i), v) for i, v in enumerate(state)]
    else:
        return {path: state}
    found: dict[str, Any] = {}
    for key, value in items:
        found |= _flat(value, f"{path}.{key}" if path else key)
    return found


def _engine(group: Any) -> Any:
    return chosen(group).engine if is_initialized() else None


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Write a state, which all processes have the same of, to a folder.

    Example:
        >>> import tempfile
        >>> import lantern.torch as torch
        >>> from lantern.torch.distributed import checkpoint
        >>> state = {"w": torch.ones(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoint.save({"w": torch.tensor([3.0, 4.0])}, checkpoint_id=folder)
        ...     checkpoint.load(state, checkpoint_id=folder)
        >>> state["w"]
        tensor([3., 4.])
    """
    from lantern.torch import save as save_file

    folder = Path(checkpoint_id if checkpoint_id is not None else storage_writer.path)
    engine = None if no_dist else _engine(process_group)
    rank, size = (engine.rank, engine.size) if engine else (0, 1)
    name = secrets.token_hex(8)
    if engine is not None:
        name = objects.broadcast(engine, name, 0)
    folder.mkdir(parents=True, exist_ok=True)
    leaves = _flat(state_dict)
    mine = {k: v for i, (k, v) in enumerate(leaves.items()) if i % size == rank}
    save_file(mine, folder / f"__{rank}_{name}.distcp")
    if engine is not None:
        engine.barrier()
    if rank == 0:
        places = {k: f"__{i % size}_{name}.distcp" for i, k in enumerate(leaves)}
        write_file("checkpoint.save", folder / _INDEX, json.dumps(places).encode())
        for old in folder.glob("__*.distcp"):
            if name not in old.name:
                os.unlink(old)
    if engine is not None:
        engine.barrier()


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Read a state from a folder, into the tensors of one of the same keys."""
    from lantern.torch import load as load_file

    folder = Path(checkpoint_id if checkpoint_id is not None else storage_reader.path)
    index = folder / _INDEX
    if not index.exists():
        raise FileFormatError(f"checkpoint.load: there is no state in {folder}.")
    places = json.loads(index.read_bytes())
    files = {name: load_file(folder / name) for name in sorted(set(places.values()))}
    _fill(state_dict, {k: files[name][k] for k, name in places.items()}, "")


def _fill(state: Any, saved: dict[str, Any], path: str) -> None:
    """Write saved leaves into a nested state."""
    items = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in list(items):
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict | list):
            _fill(value, saved, here)
        elif here not in saved:
            raise FileFormatError(f"Missing key in checkpoint state_dict: {here}.")
        elif isinstance(value, Tensor):
            array = array_of(value)
            if tuple(saved[here].shape) != array.shape:
                raise FileFormatError(
                    f"checkpoint.load: {here} has the shape {tuple(saved[here].shape)} "
                    f"in the file, and {array.shape} in the state."
                )
            array[...] = array_of(saved[here])
            written(array)
        else:
            state[key] = saved[here]
