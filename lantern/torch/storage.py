"""The memory of tensors, as PyTorch shows it: bytes in a row."""

from typing import Any

import numpy as np

from lantern.errors import OptionError
from lantern.torch.tensor.devices import address
from lantern.torch.tensor.dtypes import CPU

__all__ = ["UntypedStorage"]


class UntypedStorage:
    """Bytes in a row, those of a tensor or new ones.

    Args:
        size: how many bytes; or an array, whose memory it is.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, 3).untyped_storage().nbytes()
        24
        >>> len(torch.UntypedStorage(5))
        5
    """

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        made = np.zeros(size, np.uint8) if isinstance(size, int) else size
        self.array = made.reshape(-1).view(np.uint8) if made.size else made

    @classmethod
    def from_file(
        cls, filename: str, shared: bool = False, nbytes: int = 0
    ) -> "UntypedStorage":
        """The bytes of a file, read as they are asked for.

        Args:
            filename: its path.
            shared: whether what is written goes into the file.
            nbytes: how many there are.
        """
        mode: Any = "r+" if shared else "c"
        return cls(np.memmap(filename, np.uint8, mode, shape=(nbytes,)))

    def nbytes(self) -> int:
        """How many bytes there are."""
        return int(self.array.nbytes)

    __len__ = size = nbytes

    def data_ptr(self) -> int:
        """The address of the first one."""
        return address(self.array)

    @property
    def _cdata(self) -> int:
        return address(self.array)

    @property
    def device(self) -> Any:
        """Where they lie."""
        return CPU

    def element_size(self) -> int:
        """1: bytes."""
        return 1

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return list(self.array.view(np.uint8).tolist())

    def __getitem__(self, index: Any) -> Any:
        part = self.array.view(np.uint8)[index]
        return UntypedStorage(part) if isinstance(index, slice) else int(part)

    def __setitem__(self, index: Any, value: Any) -> None:
        other = value.array if isinstance(value, UntypedStorage) else value
        self.array.view(np.uint8)[index] = other

    def __eq__(self, other: object) -> Any:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    def copy_(self, source: "UntypedStorage") -> "UntypedStorage":
        """Take the bytes of another one."""
        self[:] = source
        return self

    def clone(self) -> "UntypedStorage":
        """The same bytes in memory of their own."""
        return UntypedStorage(self.array.copy())

    def resize_(self, size: int) -> "UntypedStorage":
        """Refused, unless it changes nothing: arrays of NumPy do not grow."""
        if size != self.nbytes():
            raise OptionError(
                f"UntypedStorage.resize_: memory of {self.nbytes()} bytes cannot "
                f"become {size}. Make a new tensor, or use Tensor.resize_."
            )
        return self

    def untyped(self) -> "UntypedStorage":
        """Itself."""
        return self

    def is_shared(self) -> bool:
        """Whether processes share it: ask the tensor."""
        return False

    def __repr__(self) -> str:
        rows = "\n".join(f" {x}" for x in self.tolist())
        return f"{rows}\n[torch.storage.UntypedStorage(device=cpu) of size {len(self)}]"
