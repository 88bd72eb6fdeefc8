"""Which file of torchvision's or torchaudio's has which operations."""

from pathlib import PurePath
from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.of_libraries import alignment, deformed, filters, images, regions

__all__ = ["of_file"]


def _refused(*args: Any) -> Any:
    """What torchvision names when it is imported, and is not here."""
    raise MissingRuleError(
        "torchvision's quantised operations, rotated boxes and inner backward steps "
        "are not here. Use its other operations: they are differentiated as all are."
    )


_VISION = regions.OPERATIONS | deformed.OPERATIONS
_NAMED = [*(f"_{name}_backward" for name in _VISION), "qnms", "qroi_align"]
_REFUSED = dict.fromkeys([*_NAMED, "box_iou_rotated"], _refused)
# By the package, and the file's name up to the first dot: the library, and what it has.
_FILES = {
    ("torchvision", "_C"): (
        "torchvision",
        _VISION | _REFUSED | {"_cuda_version": lambda: -1},
    ),
    ("torchvision", "image"): ("image", images.OPERATIONS),
    ("torchaudio", "_torchaudio"): (
        "_torchaudio",
        {"cuda_version": lambda: None, "is_align_available": lambda: True},
    ),
    ("torchaudio", "libtorchaudio"): (
        "torchaudio",
        filters.OPERATIONS | alignment.OPERATIONS,
    ),
}


def of_file(path: Any) -> dict[str, Any]:
    """The operations of a file; none for one that is not known.

    Args:
        path: the file, as ``torchvision/_C.so`` or ``torchaudio/lib/_torchaudio.so``.

    Example:
        >>> from lantern.torch.of_libraries.files import of_file
        >>> "torchvision::nms" in of_file("torchvision/_C_stable.so")
        True
        >>> of_file("another/_C.so")
        {}
    """
    path = PurePath(path)
    stem = path.name.partition(".")[0].removesuffix("_stable")
    package = next((p for p in reversed(path.parts[:-1]) if p != "lib"), "")
    library, operations = _FILES.get((package, stem), ("", {}))
    return {f"{library}::{name}": f for name, f in operations.items()}
