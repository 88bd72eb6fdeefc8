"""Arrays that are saved for the backward pass, and cannot be written to meanwhile."""

from typing import Any, NamedTuple

from lantern.blocks import mutex

__all__ = ["Freezer"]


class Family(NamedTuple):
    """Arrays that share one memory.

    Attributes:
        holders: who wants them read-only.
        members: those that were made read-only, the owner of the memory first.
    """

    holders: set[Any]
    members: list[Any]


class Freezer:
    """Makes arrays read-only, and writable again when nobody holds them any more.

    An array is frozen together with the arrays that it is a view of. A view that was
    made earlier from the same array stays writable: NumPy does not know of it. What was
    read-only before is left alone, and so is memory that belongs to no array of NumPy.
    """

    def __init__(self) -> None:
        self.families: dict[int, Family] = {}
        self.lock = mutex()

    def hold(self, array: Any, holder: Any, held: set[int]) -> None:
        """Freeze an array.

        Args:
            array: anything; only an array that can be frozen is.
            holder: who wants it.
            held: gets what ``release`` wants.
        """
        if not hasattr(type(array), "flags") or not array.shape:
            return
        if not hasattr(array.flags, "writeable"):
            return
        chain = [array]
        while hasattr(type(chain[-1].base), "flags"):
            chain.append(chain[-1].base)
        with self.lock:
            self._hold(chain, holder, held)

    def _hold(self, chain: list[Any], holder: Any, held: set[int]) -> None:
        owner = chain[-1]
        flags = owner.flags
        if id(owner) not in self.families and not (flags.writeable and flags.owndata):
            return  # only an array that owns its memory can be made writable again
        held.add(id(owner))  # first: an interrupt may come anywhere
        family = self.families.setdefault(id(owner), Family(set(), []))
        family.holders.add(holder)
        for member in reversed(chain):
            if member.flags.writeable:
                family.members.append(member)
                member.flags.writeable = False

    def release(self, key: int, holder: Any) -> None:
        """Let go of the arrays that share one memory."""
        with self.lock:
            family = self.families.get(key)
            if family is None:
                return
            family.holders.discard(holder)
            if not family.holders:
                for member in family.members:  # the owner first: views follow it
                    member.flags.writeable = True
                del self.families[key]
