"""Weights and models in files of their own: ``torch.hub``. Nothing is downloaded."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlparse as urlparse

from lantern.errors import OptionError

__all__ = [
    "download_url_to_file",
    "get_dir",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

try:
    from tqdm import tqdm
except ImportError:

    def tqdm(iterable: Iterable[Any], *args: Any, **options: Any) -> Any:
        """What is iterated over, without a bar."""
        return iterable


# Eight or more hexadecimal digits that end a name, of what a file must hold.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_folder: list[str] = []


def _get_torch_home() -> str:
    """The folder of what PyTorch keeps for its user."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of models.

    Example:
        >>> import lantern.torch as torch
        >>> torch.hub.set_dir("/tmp/models")
        >>> torch.hub.get_dir()
        '/tmp/models'
    """
    return _folder[-1] if _folder else os.path.join(_get_torch_home(), "hub")


def set_dir(d: Any) -> None:
    """Choose the folder of models.

    Example:
        >>> import lantern.torch as torch
        >>> torch.hub.set_dir("/tmp/models")
    """
    _folder[:] = [os.path.expanduser(os.fspath(d))]


def _absent(what: str, path: Any) -> OptionError:
    return OptionError(
        f"torch.hub: nothing is downloaded here, and {what} is not at {path}. Put the "
        f"file there."
    )


def download_url_to_file(
    url: str, dst: str, hash_prefix: Any = None, progress: bool = True
) -> None:
    """Refused: nothing is downloaded here."""
    raise _absent(url, dst)


def load_state_dict_from_url(
    url: str,
    model_dir: Any = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: Any = None,
    weights_only: bool = False,
) -> Any:
    """A state that was downloaded before, from the folder of models.

    Args:
        url: where it came from; its last part is the name of the file.
        model_dir: the folder; by default ``checkpoints`` in that of models.
        map_location: as ``torch.load`` takes it.
        progress: has no effect, as ``check_hash`` and ``weights_only``.
        check_hash: has no effect.
        file_name: the name of the file, if it is another one.
        weights_only: has no effect.

    Raises:
        ValueError: if the file is not there.
    """
    from lantern.torch.saving import load as load_file

    folder = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    path = folder / (file_name or os.path.basename(urlparse(url).path))
    if not path.exists():
        raise _absent(url, path)
    return load_file(path, map_location)


def load(
    repo_or_dir: str, model: str, *args: Any, source: str = "github", **kwargs: Any
) -> Any:
    """What a function of a folder's ``hubconf.py`` returns.

    Args:
        repo_or_dir: the folder; with ``source="github"`` it must have been fetched.
        model: the name of the function.
        args: its arguments.
        source: ``"local"`` for a folder.
        kwargs: its arguments by name.

    Raises:
        ValueError: if the folder is not there.
    """
    import importlib.util

    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(option, None)
    folder = Path(repo_or_dir)
    if source != "local":
        folder = Path(get_dir()) / (repo_or_dir.replace("/", "_").replace(":", "_"))
    path = folder / "hubconf.py"
    if not path.exists():
        raise _absent(repo_or_dir, path)
    spec: Any = importlib.util.spec_from_file_location("hubconf", path)
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, model)(*args, **kwargs)
