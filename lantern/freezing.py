"""Arrays that are saved for the backward pass, and cannot be written to meanwhile."""

import threading
from typing import Any

__all__ = ["Freezer"]


class Freezer:
    """Makes arrays read-only, and writable again when nobody holds them any more.

    An array is frozen together with the arrays that it is a view of, which share its
    memory. A view that was made earlier from the same array stays writable: NumPy does
    not know of it. What was read-only before is left alone, and so are arrays of
    other libraries.

    Attributes:
        families: for the owner of each memory: how often it is held, and the arrays
            that were made read-only, the owner first.
    """

    def __init__(self) -> None:
        self.families: dict[int, tuple[list[int], list[Any]]] = {}
        self.lock = threading.Lock()

    def hold(self, array: Any) -> int | None:
        """Freeze an array; return what ``release`` wants, or None for nothing."""
        if not hasattr(type(array), "flags") or not array.shape:
            return None
        if not hasattr(array.flags, "writeable"):
            return None
        chain = [array]
        while hasattr(type(chain[-1].base), "flags"):
            chain.append(chain[-1].base)
        with self.lock:
            return self._hold(chain)

    def _hold(self, chain: list[Any]) -> int | None:
        owner = chain[-1]
        if id(owner) not in self.families and not owner.flags.writeable:
            return None
        count, members = self.families.setdefault(id(owner), ([0], [owner]))
        count[0] += 1
        for member in reversed(chain):
            if member.flags.writeable:
                member.flags.writeable = False
                if member is not owner:
                    members.append(member)
        return id(owner)

    def release(self, key: int) -> None:
        """Let go of one hold."""
        with self.lock:
            count, members = self.families[key]
            count[0] -= 1
            if count[0]:
                return
            del self.families[key]
            for member in members:  # the owner first: views follow it
                member.flags.writeable = True
