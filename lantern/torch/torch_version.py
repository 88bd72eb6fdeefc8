"""The version, which compares as versions do: ``torch.__version__``."""

from typing import Any

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A version as text that compares with texts and tuples by its numbers.

    Example:
        >>> from lantern.torch.torch_version import TorchVersion
        >>> TorchVersion("2.10.0") > "2.9", TorchVersion("2.10.0") >= (2, 10)
        (True, True)
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __lt__(self, other: Any) -> bool:
        return _numbers(self) < _numbers(other)

    def __le__(self, other: Any) -> bool:
        return _numbers(self) <= _numbers(other)

    def __gt__(self, other: Any) -> bool:
        return _numbers(self) > _numbers(other)

    def __ge__(self, other: Any) -> bool:
        return _numbers(self) >= _numbers(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple | list):
            return _numbers(self) == _numbers(other)
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def _numbers(version: Any) -> tuple[int, ...]:
    """The numbers of a version, without zeros at the end, and what follows."""
    parts = version.split("+")[0].split(".") if isinstance(version, str) else version
    found: list[int] = []
    for part in parts:
        digits = "".join(c for c in str(part).partition("a")[0] if c.isdigit())
        if not digits:
            break
        found.append(int(digits))
    while found and not found[-1]:
        found.pop()
    return tuple(found)
