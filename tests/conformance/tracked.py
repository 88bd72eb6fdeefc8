"""``lantern.array_api`` with every floating-point array that it creates tracked.

One derivative is open for the whole run of the suite: what a creation function returns
belongs to it, and so does all that is computed from it. The operations are the
library's own. Only how a result is read is changed: ``float(x)``, ``x.item()``, DLPack
and the like would turn a tracked value into a constant, and raise; while the suite runs
they read through ``stop_gradient``.
"""

import functools
from collections import deque
from types import ModuleType

import lantern
from lantern import array_api
from lantern.core.value import is_tracked
from lantern.transforms.reverse import Reverse

CREATION = (
    "arange asarray empty empty_like eye from_dlpack full full_like linspace ones "
    "ones_like zeros zeros_like"
).split()


class TrackedNamespace(ModuleType):
    """The namespace, with one open derivative that tracks what it creates."""

    def __init__(self):
        super().__init__("lantern.array_api, tracked")
        self.derivative = Reverse("conformance")
        # Rules wait to be resumed, but not all of them for as long as the suite runs.
        self.derivative.suspend = deque(maxlen=10_000).append

    def __getattr__(self, name):
        found = getattr(array_api, name)
        return self.creating(found) if name in CREATION else found

    def creating(self, function):
        """A creation function whose results are tracked."""

        @functools.wraps(function)
        def create(*args, **options):
            z = function(*args, **options)
            if is_tracked(z) or z.dtype.kind not in "fc":
                return z
            return lantern.Tensor(lantern.stop_gradient(z), self.derivative)

        return create


def begin():
    """Open the derivative, and let the suite read values."""
    lantern.Tensor.plain = lambda x, where="": lantern.stop_gradient(x)
    return TrackedNamespace()
