"""Which of the groups that wait is run next."""

from collections.abc import Callable, Sequence
from typing import Any

from lantern.batching.grouping import stack_leaves
from lantern.errors import ArgumentError

__all__ = ["Group", "Policy", "choose_policy", "largest", "shallowest"]


class Group:
    """Calls that are alike and wait to be run as one.

    Attributes:
        function: the batched function.
        args, shared: the arguments of the first call.
        bodies: who waits, one for each call.
        leaves: the arrays and numbers in the arguments of each call.
        depths: the sum of the bodies' depths.
    """

    __slots__ = ("args", "bodies", "depths", "function", "key", "leaves", "shared")

    def __init__(
        self, key: Any, function: Any, args: Sequence[Any], shared: dict[str, Any]
    ) -> None:
        self.key, self.function, self.args, self.shared = key, function, args, shared
        self.bodies: list[Any] = []
        self.leaves: list[list[Any]] = []
        self.depths = 0

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(self.function.__name__)

    @property
    def size(self) -> int:
        """How many calls there are."""
        return len(self.bodies)

    @property
    def depth(self) -> float:
        """How many calls lie behind a body here, on average."""
        return self.depths / len(self.bodies)

    def call(self, leaves: Sequence[Any]) -> Any:
        """The function's result, for these arrays in the place of the arguments'."""
        stacked = iter(leaves)
        args = [stack_leaves(x, stacked) for x in self.args]
        return self.function(*args, **self.shared)

    def remove(self, gone: set[Any]) -> None:
        """Forget the calls of bodies that have ended."""
        kept = [i for i, body in enumerate(self.bodies) if body not in gone]
        self.bodies = [self.bodies[i] for i in kept]
        self.leaves = [self.leaves[i] for i in kept]
        self.depths = sum(body.depth for body in self.bodies)

    def __str__(self) -> str:
        examples = sorted({body.index for body in self.bodies})
        shown = ", ".join(map(str, examples[:8])) + (", ..." if examples[8:] else "")
        return f"{self.name}, called {self.size} times at once (examples {shown})"


Policy = Callable[[Sequence[Group]], Group]


def largest(groups: Sequence[Group]) -> Group:
    """The group with the most calls; of equal ones, the one that began first."""
    return max(groups, key=lambda group: group.size)


def shallowest(groups: Sequence[Group]) -> Group:
    """The group with the fewest calls behind its bodies, on average.

    References:
        Neubig, Goldberg and Dyer (2017), "On-the-fly operation batching in dynamic
        computation graphs", section 3.3.
    """
    return min(groups, key=lambda group: group.depth)


_POLICIES: dict[str, Policy] = {"depth": shallowest, "largest": largest}


def choose_policy(policy: Any) -> Policy:
    """The policy of a name, or the function that is given."""
    if callable(policy):
        return policy
    if policy not in _POLICIES:
        raise ArgumentError(
            f"batch: there is no policy {policy!r}. Choose one of "
            f"{', '.join(_POLICIES)}, or give a function that takes the list of groups "
            f"and returns one of them."
        )
    return _POLICIES[policy]
