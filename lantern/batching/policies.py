"""Policies: which of the groups that wait is run next."""

from collections.abc import Callable, Sequence
from typing import Any

from lantern.batching.calls import Call, Form
from lantern.errors import ArgumentError

__all__ = ["Group", "Policy", "choose_policy", "largest", "shallowest"]


class Group:
    """Calls that are alike, have all that they need, and wait to be run as one.

    Attributes:
        key: what they have in common.
        form: the batched function and its arguments.
        calls: the calls.
        depths: the sum of their depths.
    """

    __slots__ = ("calls", "depths", "form", "key")

    def __init__(self, key: Any, form: Form) -> None:
        self.key, self.form = key, form
        self.calls: list[Call] = []
        self.depths = 0

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.form.name

    @property
    def size(self) -> int:
        """How many calls there are."""
        return len(self.calls)

    @property
    def depth(self) -> float:
        """How many calls lie behind one of these, on average."""
        return self.depths / len(self.calls)

    def remove(self, gone: set[Any]) -> None:
        """Forget the calls of bodies that have ended, unless someone needs them."""
        self.calls = [
            call
            for call in self.calls
            if call.body not in gone or not gone.issuperset(call.followers())
        ]
        self.depths = sum(call.depth for call in self.calls)

    def __str__(self) -> str:
        examples = sorted({call.body.index for call in self.calls})
        shown = ", ".join(map(str, examples[:8])) + (", ..." if examples[8:] else "")
        return f"{self.name}, called {self.size} times at once (examples {shown})"


Policy = Callable[[Sequence[Group]], Group]


def largest(groups: Sequence[Group]) -> Group:
    """The group with the most calls; of equal ones, the one that began first."""
    return max(groups, key=lambda group: group.size)


def shallowest(groups: Sequence[Group]) -> Group:
    """The group with the fewest calls behind its own, on average.

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
