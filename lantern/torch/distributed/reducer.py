"""Gradients in buckets, which leave as soon as their last one is complete.

A leaf's gradient is complete when no older rule can reach it any more: rules are
resumed newest first, so it is when the oldest rule that it is an operand of has been
resumed. There a ``Delivery`` lies in the heap of the pass, which is resumed in its turn
like any rule. A bucket whose gradients are all there goes to the thread of the group
(``work.Line``), and is on its way while rules still run.
"""

import time
import weakref
from collections.abc import Callable, Sequence
from heapq import heappush
from typing import Any

import numpy as np

from lantern.core.namespace import namespace
from lantern.eager.backward import listeners, order_of, reached
from lantern.eager.hooks import inspectors
from lantern.eager.versions import check_arrays, last_write, written
from lantern.errors import EagerError
from lantern.tensor.accumulate.deferred_products import DeferredSum
from lantern.torch.distributed.work import Line
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import fresh

__all__ = ["Bucket", "Reducer"]

# Seconds in which the thread that sends may take the processor from this one.
TURN = 1e-6
_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new "
    "one. This error indicates that your module has parameters that were not used in "
    "producing loss. You can enable unused parameter detection by passing the keyword "
    "argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` "
    "function outputs participate in calculating loss.\nParameter indices which did "
    "not receive grad for rank {rank}: {indices}"
)


class Bucket:
    """Gradients that are sent together.

    Attributes:
        indices: of their parameters.
        flat: the memory of all of them.
        views: the memory of each.
        missing: how many are not there yet.
        work: the operation that reduces them, once it is under way.
    """

    def __init__(self, number: int, indices: Sequence[int], parameters: Any) -> None:
        self.number, self.indices = number, list(indices)
        mine = [parameters[i] for i in indices]
        self.parameter_list = mine
        sizes = [p.numel() for p in mine]
        like = in_memory(mine[0])
        self.flat = namespace(like).zeros(sum(sizes), dtype=like.dtype)
        ends = np.cumsum([0, *sizes])
        self.views = [
            self.flat[a:b].reshape(tuple(p.shape))
            for p, a, b in zip(mine, ends, ends[1:], strict=False)
        ]
        self.missing, self.last = len(mine), False
        self.work: Any = None

    def index(self) -> int:
        """Its number, in the order in which buckets leave."""
        return self.number

    def is_last(self) -> bool:
        """Whether no other one leaves after it."""
        return self.last

    def buffer(self) -> Any:
        """All its gradients, in one tensor."""
        return fresh(self.flat)

    def set_buffer(self, tensor: Any) -> None:
        """Let another tensor take the gradients' place."""
        self.flat[...] = in_memory(tensor)

    def gradients(self) -> list[Any]:
        """Its gradients."""
        return [fresh(view) for view in self.views]

    def parameters(self) -> list[Any]:
        """Their parameters."""
        return self.parameter_list


class Delivery:
    """An entry in the heap of a pass; its turn comes when some leaves are complete."""

    def __init__(self, reducer: "Reducer", indices: list[int]) -> None:
        self.reducer, self.indices = reducer, indices

    def __lt__(self, other: Any) -> bool:
        return False  # of entries of one place any comes first

    @property
    def cotangent(self) -> None:
        """Nothing: whoever asks is about to resume the entry, and that is all."""
        for i in self.indices:
            self.reducer.arrived(i)

    @cotangent.setter
    def cotangent(self, nothing: None) -> None:
        """Nothing is kept."""


class Reducer:
    """The mean of all processes' gradients of some parameters, pass by pass.

    Attributes:
        armed: whether the next pass is to end with it.
        unfinished: the parameters that the latest pass has not reached.
        early: the share of bytes that were reduced before the latest pass was over.
    """

    def __init__(
        self,
        parameters: Sequence[Any],
        group: Any,
        sizes: tuple[int, int],
        find_unused: bool,
        as_views: bool = False,
    ) -> None:
        self.parameters, self.group = list(parameters), group
        self.find_unused, self.as_views = find_unused, as_views
        self.divisor = group.size()
        self.hook: Callable[..., Any] | None = None
        self.hook_state: Any = None
        self.armed = self.active = False
        self.early, self.began = 0.0, 0
        self.earlier: set[int] = set()
        self.unfinished: list[int] = []
        self.buckets = _buckets(self.parameters, sizes)
        self.buckets[-1].last = True
        self.place = {
            i: (bucket, k)
            for bucket in self.buckets
            for k, i in enumerate(bucket.indices)
        }
        self.sent = 0
        if group.line is None:
            group.line = Line(group.engine.twin())
        listeners.append(weakref.ref(self, listeners.remove))

    def prepare(self) -> None:
        """A pass is about to come, which ends with the mean."""
        if self.unfinished:
            indices, self.unfinished = self.unfinished, []
            rank = self.group.rank()
            raise EagerError(_UNFINISHED.format(rank=rank, indices=indices))
        self.armed = True

    def begin(self, roots: Sequence[Any], heap: list[Any], nested: bool) -> None:
        """A pass begins: find out when each gradient will be complete."""
        if self.active and not nested:
            self._abandon()
        if not self.armed and not self.find_unused:
            return
        self.began = last_write[0]
        mine = {id(p.receiver): i for i, p in enumerate(self.parameters)}
        oldest: dict[int, int] = {}
        for z in reached(roots).values():
            if id(z) in mine:
                oldest.setdefault(mine[id(z)], 0)
                continue
            at = order_of(z)
            for x in z.operands():
                i = mine.get(id(x)) if x is not None else None
                if i is not None:
                    oldest[i] = min(oldest.get(i) or at, at)
        if not self.armed:  # a pass without means, whose gradients the next one has
            self.earlier |= oldest.keys()
            return
        if not oldest:
            return
        if not self.active:
            self._reset()
        self.used |= oldest.keys()
        if nested:
            return
        turns: dict[int, list[int]] = {}
        for i, at in oldest.items():
            if at and self.parameters[i].receiver.hooks is None:
                turns.setdefault(at, []).append(i)
        for at, indices in turns.items():
            heappush(heap, (0.5 - at, Delivery(self, indices)))

    def _abandon(self) -> None:
        """The pass before was cut off by an error: what it has sent may end."""
        self.active = False
        for bucket in self.buckets:
            if bucket.work is not None:
                bucket.work.wait()
                bucket.work = None

    def _reset(self) -> None:
        self.active, self.there = True, set[int]()
        self.used, self.earlier = self.earlier, set()
        self.sent = 0
        for bucket in self.buckets:
            bucket.missing, bucket.work = len(bucket.indices), None

    def arrived(self, i: int) -> None:
        """A gradient is complete: into its bucket, with what was there before."""
        if i in self.there:
            return
        receiver = self.parameters[i].receiver
        new = receiver.cotangent
        if type(new) is DeferredSum and last_write[0] != self.began:
            check_arrays(self.began, new.arrays())
        if inspectors:  # the pass looks at what it leaves
            new = receiver.settled()
        else:
            receiver.cotangent = None  # the mean is all that it leaves
        self._put(i, new, receiver.dense_grad())
        if self.as_views:  # what the pass adds to is no part of the bucket
            receiver.grad = None

    def _put(self, i: int, new: Any, old: Any) -> None:
        """Add up this process's part of a mean; the bucket may leave then."""
        bucket, k = self.place[i]
        view = bucket.views[k]
        new, old = (getattr(x, "primal", x) for x in (new, old))
        share = view.dtype.type(1.0 / self.divisor)
        if type(new) is DeferredSum and old is None:
            new.settle_into(view, share)
        else:
            new = new.settle() if type(new) is DeferredSum else new
            total = old if new is None else new if old is None else new + old
            np.multiply(0.0 if total is None else total, share, out=view)
        self.there.add(i)
        bucket.missing -= 1
        while self.sent < len(self.buckets) and not self.buckets[self.sent].missing:
            self._send(self.buckets[self.sent])
            self.sent += 1

    def _send(self, bucket: Bucket) -> None:
        """Let a bucket leave; all processes send theirs in the same order."""
        if self.hook is not None:
            bucket.flat *= self.divisor  # a hook divides by itself
            bucket.work = self.hook(self.hook_state, bucket)
            return
        flat = bucket.flat
        bucket.work = self.group.line.add(
            lambda engine: engine.all_reduce(flat, flat, "sum"), None
        )
        time.sleep(TURN)

    def end(self) -> None:
        """The pass is over: wait for the means, and leave them in the gradients."""
        if not self.active:
            return
        self.active = self.armed = False
        self.early = self._reduced() / sum(b.flat.nbytes for b in self.buckets)
        n = len(self.parameters)
        if not self.find_unused and len(self.used) < n:
            self.unfinished = [i for i in range(n) if i not in self.used]
        for i in range(n):
            if i not in self.there and (self.find_unused or i in self.used):
                self._put(i, None, self.parameters[i].receiver.dense_grad())
        everywhere = self._used_anywhere() if self.find_unused else None
        for bucket in self.buckets:
            if bucket.work is not None:
                self._finish(bucket, everywhere)

    def _reduced(self) -> int:
        """How many bytes of gradients are means already."""
        works = [(b.flat.nbytes, b.work) for b in self.buckets if b.work is not None]
        return sum(n for n, work in works if getattr(work, "ended", None))

    def _used_anywhere(self) -> Any:
        """Which parameters some process has used."""
        used = np.zeros(len(self.parameters), np.uint8)
        used[list(self.used)] = 1
        self.group.engine.all_reduce(used, used, "max")
        return used

    def _finish(self, bucket: Bucket, everywhere: Any) -> None:
        """Wait for a bucket, and leave its means in the gradients."""
        result = bucket.work.wait()
        if self.hook is not None:
            tensor = result[0] if isinstance(result, list | tuple) else result
            bucket.set_buffer(tensor)
        bucket.work = None
        for i, view in zip(bucket.indices, bucket.views, strict=True):
            if everywhere is not None and not everywhere[i]:
                continue
            p = self.parameters[i]
            if self.as_views:
                p.grad = fresh(view)
                continue
            grad = p.grad
            if grad is None:
                p.grad = fresh(view.copy())
            else:
                array = in_memory(grad)
                array[...] = view
                written(array)

    def send_nothing(self) -> None:
        """Take part in the others' pass, with zeros: this process has no more data."""
        for bucket in self.buckets:
            bucket.flat[...] = 0.0
            self._send(bucket)
        if self.find_unused:
            self.used = set()
            self._used_anywhere()
        for bucket in self.buckets:
            bucket.work.wait()
            bucket.work = None


def _buckets(parameters: Sequence[Any], sizes: tuple[int, int]) -> list[Bucket]:
    """Parameters by their types, the last ones first; the first bucket is small."""
    groups: list[list[int]] = []
    filling: dict[Any, tuple[list[int], int]] = {}
    limits: dict[Any, int] = {}
    for i in reversed(range(len(parameters))):
        array = in_memory(parameters[i])
        indices, filled = filling.get(array.dtype, ([], 0))
        indices.append(i)
        filled += array.nbytes
        filling[array.dtype] = indices, filled
        if filled >= limits.get(array.dtype, sizes[0]):
            groups.append(indices)
            limits[array.dtype] = sizes[1]
            del filling[array.dtype]
    groups += [indices for indices, _ in filling.values()]
    return [Bucket(n, indices, parameters) for n, indices in enumerate(groups)]
