"""Which file of torchvision's has which operations."""

from pathlib import PurePath
from typing import Any

from lantern.errors import MissingRuleError
from lantern.torch.of_torchvision import deformed, images, regions

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
_LIBRARIES = {
    "_C": ("torchvision", _VISION | _REFUSED | {"_cuda_version": lambda: -1}),
    "image": ("image", images.OPERATIONS),
}


def of_file(path: Any) -> dict[str, Any]:
    """The operations of a file of torchvision's; none for another file.

    Args:
        path: the file, ``torchvision/_C.so`` or ``torchvision/image_stable.so``.

    Example:
        >>> from lantern.torch.of_torchvision.libraries import of_file
        >>> "torchvision::nms" in of_file("lib/torchvision/_C.so")
        True
        >>> of_file("lib/torchaudio/_C.so")
        {}
    """
    path = PurePath(path)
    stem = path.name.partition(".")[0].removesuffix("_stable")
    if path.parent.name != "torchvision" or stem not in _LIBRARIES:
        return {}
    library, operations = _LIBRARIES[stem]
    return {f"{library}::{name}": f for name, f in operations.items()}
