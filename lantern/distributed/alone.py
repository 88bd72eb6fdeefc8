"""A group of one process: everything that it tells the others, it hears itself.

So a program for many processes runs as it is in one, without MPI.
"""

from collections.abc import Callable, Sequence
from typing import Any

from lantern.distributed.watch import Watch
from lantern.errors import DistributedError

__all__ = ["AloneGroup"]


class AloneGroup:
    """As ``lantern.distributed.mpi.MpiGroup``, of this process alone."""

    def __init__(self, ranks: Sequence[int] = (0,), seconds: float = 1800.0) -> None:
        self.ranks, self.rank, self.size = tuple(ranks), 0, 1
        self.members, self.seconds, self.watch = frozenset(ranks), seconds, Watch()
        self.letters: list[Any] = []

    def __repr__(self) -> str:
        return "<group of this process alone>"

    def subgroup(self, ranks: Sequence[int], tag: int, seconds: float) -> "AloneGroup":
        """This process, as a group of its own."""
        return AloneGroup(ranks, seconds)

    def twin(self) -> "AloneGroup":
        """The same, once more."""
        return AloneGroup(self.ranks, self.seconds)

    def wait(self, request: Any, describe: Callable[[], str]) -> None:
        """Nothing takes time here."""

    def barrier(self, seconds: float | None = None) -> None:
        """Everyone is here."""

    def all_reduce(self, source: Any, target: Any, op: str) -> None:
        """The only array is the result."""
        if source is not target:
            target[...] = source.reshape(target.shape)

    def reduce(self, source: Any, target: Any, op: str, root: int) -> None:
        """As ``all_reduce``."""
        self.all_reduce(source, target, op)

    def broadcast(self, target: Any, root: int) -> None:
        """Everyone has it."""

    def all_gather(self, source: Any, target: Any) -> None:
        """As ``all_reduce``."""
        self.all_reduce(source, target, "sum")

    def gather(self, source: Any, target: Any, root: int) -> None:
        """As ``all_reduce``."""
        self.all_reduce(source, target, "sum")

    scatter = gather

    def reduce_scatter(self, source: Any, target: Any, op: str) -> None:
        """As ``all_reduce``."""
        self.all_reduce(source, target, op)

    def all_to_all(self, source: Any, target: Any) -> None:
        """As ``all_reduce``."""
        self.all_reduce(source, target, "sum")

    def all_to_all_parts(self, source: Any, sent: Any, target: Any, got: Any) -> None:
        """As ``all_reduce``."""
        self.all_reduce(source, target, "sum")

    def send(self, source: Any, to: int, tag: int = 0) -> None:
        """Keep a letter to oneself."""
        self.letters.append((tag, source.copy()))

    post = send

    def isend(self, source: Any, to: int, tag: int = 0) -> Any:
        """As ``send``; what ``wait`` takes."""
        self.send(source, to, tag)
        return None, lambda: "send"

    def receive(self, target: Any, source: int | None, tag: int = 0) -> int:
        """Take the oldest letter."""
        for i, (its, letter) in enumerate(self.letters):
            if its == tag:
                target[...] = letter
                del self.letters[i]
                return 0
        raise DistributedError(
            "recv: this process is alone, and has sent nothing to itself. Send first."
        )

    def ireceive(self, target: Any, source: int | None, tag: int = 0) -> Any:
        """As ``receive``; what ``wait`` takes."""
        self.receive(target, source, tag)
        return None, lambda: "recv", lambda: 0

    def late(self, seconds: float) -> list[int]:
        """Nobody is late."""
        return []

    def permute(self, source: Any, target: Any, to: Any, come_from: Any) -> None:
        """Send to oneself, or to nobody."""
        if to is not None:
            target[...] = source
