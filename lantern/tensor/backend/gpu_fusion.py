"""On a GPU an elementwise rule is two kernels, there and back, traced from itself.

CuPy launches a kernel for each operator, and each reads and writes whole arrays: of
``z_bar * (1.0 - z * z)`` three. ``cupy.fuse`` runs a function once on stand-ins for
arrays and compiles what it did. What is run here is the rule, as it stands; the way
back repeats the way there, in registers, so that the operand is kept in place of what
the rule would keep.
"""

from collections.abc import Callable
from typing import Any

from lantern.core.dispatch import register_rule
from lantern.core.namespace import namespace
from lantern.core.value import Rule
from lantern.engines import gpu
from lantern.rules.special import passed

__all__ = ["Fuser", "fusers"]

# By the type of array, what makes a rule one of two kernels. It is empty, and costs
# nothing, until CuPy is imported.
fusers: dict[type, "Fuser"] = {}

# What ``cupy.fuse`` cannot compile, and what would keep an operand for nothing.
_AS_THEY_ARE = frozenset(
    {"gamma", "lgamma", "positive", "negative", "fraction", "deg2rad", "rad2deg"}
)


def _relu(x: Any) -> Rule:
    """As ``lantern.rules.special.relu``, whose result says where x is positive."""
    z = gpu.elementwise.relu(x)
    if z is None:
        z = namespace(x).relu(x)
    del x
    z_bar = yield z
    x_bar = gpu.elementwise.relu_back(z_bar, z)
    yield passed(z_bar, z) if x_bar is None else x_bar


# With kernels of our own, for single precision; they keep what the rule keeps.
_BY_HAND = {"relu": register_rule(_relu, "elementwise")}


class Fuser:
    """Makes the elementwise rules of one operand rules of two kernels.

    Args:
        fuse: CuPy's decorator.
        real: the types of elements that it may be used for.
    """

    def __init__(self, fuse: Callable[..., Any], real: frozenset[Any]) -> None:
        self.fuse, self.real = fuse, real
        self.fused: dict[Any, Any] = {}
        self.keeps: dict[Any, bool] = {}

    def __call__(self, rule: Any, x: Any, keeping: bool = False) -> Any:
        """The rule to start on an array in place of another; itself, where it stays.

        Args:
            rule: the rule.
            x: the array.
            keeping: whether it has to keep what the rule would keep, no less, no more.
        """
        if x.dtype not in self.real or not x.size or not x.ndim:
            return rule
        name = rule.__name__.lstrip("_")
        if name in _BY_HAND and x.dtype.char == "f":
            return _BY_HAND[name]
        if rule not in self.fused:
            stays = name in _AS_THEY_ARE
            self.fused[rule] = rule if stays else self._made(rule)
        if keeping and not self._keeps_operand(rule, x):
            return rule
        return self.fused[rule]

    def _keeps_operand(self, rule: Any, x: Any) -> bool:
        if rule not in self.keeps:
            started = rule(x)
            next(started)
            kept = started.gi_frame.f_locals.values()
            self.keeps[rule] = [v is x for v in kept if type(v) is type(x)] == [True]
        return self.keeps[rule]

    def _made(self, rule: Any) -> Any:
        name = rule.__name__

        def forward(x: Any) -> Any:
            return next(rule(x))

        def backward(z_bar: Any, x: Any) -> Any:
            started = rule(x)
            next(started)
            return started.send(z_bar)

        there = self.fuse(kernel_name=f"{name}_there")(forward)
        back = self.fuse(kernel_name=f"{name}_back")(backward)

        def fused(x: Any) -> Rule:
            z_bar = yield there(x)
            alike = type(z_bar) is type(x) and z_bar.dtype == x.dtype
            yield (back if alike else backward)(z_bar, x)

        fused.__name__ = name
        return register_rule(fused, "elementwise")
