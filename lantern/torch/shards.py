"""Checkpoints in several files: an index says which tensor is in which of them."""

import os
from collections.abc import Callable
from typing import Any

from lantern.blocks import between_turns
from lantern.torch.file_format import damaged, parsed, read_up_to, short

__all__ = ["read_shards"]

_LARGEST_INDEX = 100_000_000


@between_turns
def read_shards(path: str, load: Callable[[str], Any]) -> dict[str, Any]:
    """All tensors that an index names, in its order.

    The files lie beside the index, which may lead to no other folder.

    Args:
        path: of the index, as Hugging Face writes it: ``model.safetensors.index.json``.
        load: what reads one of the files.

    Raises:
        FileFormatError: if the index is damaged, or a tensor is not where it says.
    """
    with open(path, "rb") as file:
        packed = read_up_to(file, _LARGEST_INDEX + 1, path)
    if len(packed) > _LARGEST_INDEX:
        raise damaged(path, f"is an index of more than {_LARGEST_INDEX} bytes.")
    try:
        index = parsed(packed.decode(), 20, path, "index")
    except UnicodeDecodeError as error:
        raise damaged(path, f"has a damaged index ({error.reason}).") from None
    places = index.get("weight_map") if type(index) is dict else None
    if type(places) is not dict or {*map(type, places.values())} - {str}:
        raise damaged(path, "is no index: it has no weight_map of names to files.")
    found: dict[str, Any] = {}
    for name in dict.fromkeys(places.values()):
        if name != os.path.basename(name) or "\\" in name or name in ("", ".", ".."):
            raise damaged(
                path, f"names the file {short(name)}, which does not lie beside it."
            )
        shard = load(os.path.join(os.path.dirname(path), name))
        if not isinstance(shard, dict):
            raise damaged(path, f"names {short(name)}, which is no state.")
        wanted = [key for key, place in places.items() if place == name]
        missing = [key for key in wanted if key not in shard]
        if missing:
            raise damaged(path, f"has not {short(missing[0])} in {short(name)}.")
        found |= {key: shard[key] for key in wanted}
    return {key: found[key] for key in places}
